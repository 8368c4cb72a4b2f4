//! Cost of checks in place of guard pages and signals: all programs with guard pages, with a check of each memory
//! access, and without signals, in mode `ssa`.
//!
//! Times are CPU time of `main`, the least of several rounds; a round runs the three one after the other.
//! A filter selects programs by name, `--quick` measures one round.

use std::time::Duration;

use comfy_table::Table;
use slotvm::{Config, Engine, MemoryPlan, Module};
use slotvm_benches::{Args, program_files};
use vmrun::bench::clock::thread_cpu_time;
use vmrun::bench::program::{self, Program};
use vmrun::error::CliError;
use vmrun::table::table;

const ROUNDS: u32 = 10;
/// Guard pages, checks of accesses, and no signals.
const KINDS: usize = 3;

fn main() -> Result<(), CliError> {
    let args = Args::from_env();
    let rounds = if args.is_test || args.is_quick { 1 } else { ROUNDS };
    let size = args.is_test.then_some(1);
    let engines = engines()?;
    let mut rows = Vec::new();
    for path in program_files() {
        if args.selects(&program::name(&path)) {
            rows.push(Row::measure(&Program::load(&path, size)?, &engines, rounds)?);
        }
    }
    if !rows.is_empty() {
        println!("{}", costs(&rows));
    }
    Ok(())
}

fn engines() -> Result<[Engine; KINDS], CliError> {
    let guarded = Config::new();
    let (mut checked, mut without_signals) = (Config::new(), Config::new());
    checked.memory(Some(MemoryPlan::CHECKED));
    without_signals.signals_based_traps(false);
    Ok([Engine::new(&guarded)?, Engine::new(&checked)?, Engine::new(&without_signals)?])
}

/// The figures of a program, in the order of the engines.
struct Row {
    name: String,
    times: [Duration; KINDS],
    code_bytes: [usize; KINDS],
}

impl Row {
    fn measure(program: &Program, engines: &[Engine; KINDS], rounds: u32) -> Result<Row, CliError> {
        let modules: Vec<Module> =
            engines.iter().map(|engine| program.compile(engine)).collect::<Result<_, _>>()?;
        let mut times = [Duration::MAX; KINDS];
        for _ in 0..rounds {
            for (module, least) in modules.iter().zip(&mut times) {
                let mut run = program.start(module)?;
                let start = thread_cpu_time();
                run.call()?;
                *least = (*least).min(thread_cpu_time() - start);
            }
        }
        let code_bytes = std::array::from_fn(|i| modules[i].code_bytes());
        Ok(Row { name: program.name.clone(), times, code_bytes })
    }

    /// Time and code of an engine, divided by those of the first.
    fn ratios(&self, engine: usize) -> [f64; 2] {
        let time = self.times[engine].as_secs_f64() / self.times[0].as_secs_f64();
        [time, self.code_bytes[engine] as f64 / self.code_bytes[0] as f64]
    }
}

fn costs(rows: &[Row]) -> Table {
    let headers =
        ["program", "guard pages ms", "checked", "no signals", "code, checked", "code, no signals"];
    let mut table = table(1, headers);
    let mut add = |name: &str, time: String, ratios: [f64; 4]| {
        let ratios = ratios.map(|ratio| format!("{ratio:.2}x"));
        table.add_row([name.to_owned(), time].into_iter().chain(ratios));
    };
    let all = |row: &Row| {
        let ([checked, checked_code], [calls, calls_code]) = (row.ratios(1), row.ratios(2));
        [checked, calls, checked_code, calls_code]
    };
    let mut logs = [0.0; 4];
    for row in rows {
        let ratios = all(row);
        logs = std::array::from_fn(|i| logs[i] + ratios[i].ln());
        add(&row.name, format!("{:.2}", row.times[0].as_secs_f64() * 1e3), ratios);
    }
    add("geometric mean", String::new(), logs.map(|log| (log / rows.len() as f64).exp()));
    table
}
