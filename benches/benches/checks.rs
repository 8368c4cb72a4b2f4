//! Cost of checks in place of guard pages and signals: all programs with guard pages, with a check of each memory
//! access, and without signals, in mode `ssa`.
//!
//! Code is compiled at several places, since its time depends on where it lies. At each, times are CPU time of `main`,
//! the least of several rounds; a round runs the three one after the other. A ratio is the median over the places.
//! A filter selects programs by name, `--quick` measures one round at one place.

use std::time::Duration;

use comfy_table::Table;
use slotvm::{Engine, MemoryPlan, Module, PassSet, SlotMode};
use slotvm_benches::{Args, program_files};
use vmrun::bench::clock::thread_cpu_time;
use vmrun::bench::program::{self, Program};
use vmrun::error::CliError;
use vmrun::table::table;

/// The number of places of the code, and of rounds at each.
const PLACEMENTS: usize = 7;
const ROUNDS: u32 = 2;
/// Guard pages, checks of accesses, and no signals.
const KINDS: usize = 3;

fn main() -> Result<(), CliError> {
    let args = Args::from_env();
    let is_short = args.is_test || args.is_quick;
    let (placements, rounds) = if is_short { (1, 1) } else { (PLACEMENTS, ROUNDS) };
    let size = args.is_test.then_some(1);
    let engines: Vec<[Engine; KINDS]> = (0..placements).map(engines).collect::<Result<_, _>>()?;
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

fn engines(placement: usize) -> Result<[Engine; KINDS], CliError> {
    let config = || program::config_at(SlotMode::Ssa, PassSet::all(), placement);
    let (guarded, mut checked, mut without_signals) = (config(), config(), config());
    checked.memory(Some(MemoryPlan::CHECKED));
    without_signals.signals_based_traps(false);
    Ok([Engine::new(&guarded)?, Engine::new(&checked)?, Engine::new(&without_signals)?])
}

/// The figures of a program.
struct Row {
    name: String,
    /// The times of the engines in each place.
    times: Vec<[Duration; KINDS]>,
    code_bytes: [usize; KINDS],
}

impl Row {
    fn measure(
        program: &Program,
        engines: &[[Engine; KINDS]],
        rounds: u32,
    ) -> Result<Row, CliError> {
        let mut row = Row { name: program.name.clone(), times: Vec::new(), code_bytes: [0; KINDS] };
        for engines in engines {
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
            if row.times.is_empty() {
                row.code_bytes = std::array::from_fn(|i| modules[i].code_bytes());
            }
            row.times.push(times);
        }
        Ok(row)
    }

    /// The time with guard pages in milliseconds.
    fn guarded_ms(&self) -> f64 {
        median(self.times.iter().map(|times| times[0].as_secs_f64() * 1e3).collect())
    }

    /// Time and code of an engine, divided by those of the first.
    fn ratios(&self, engine: usize) -> [f64; 2] {
        let ratio =
            |times: &[Duration; KINDS]| times[engine].as_secs_f64() / times[0].as_secs_f64();
        let time = median(self.times.iter().map(ratio).collect());
        [time, self.code_bytes[engine] as f64 / self.code_bytes[0] as f64]
    }
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
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
        add(&row.name, format!("{:.2}", row.guarded_ms()), ratios);
    }
    add("geometric mean", String::new(), logs.map(|log| (log / rows.len() as f64).exp()));
    table
}
