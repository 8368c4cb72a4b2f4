//! The dependence of each program's time on the place of its code: a report.
//!
//! Each program runs in mode `ssa` with its code at 16 places, in turns. Its rows are the median CPU time of `main`
//! over the places, of which the least of several rounds counts at each, and the slowest place over the fastest. The
//! project wants at most [`SPREAD_MAX`]; `!` marks programs above it.
//!
//! `--quick` measures one round; a filter selects programs.

use std::time::{Duration, Instant};

use slotvm::{Module, PassSet, SlotMode};
use slotvm_benches::{Args, program_files};
use vmrun::bench::clock::thread_cpu_time;
use vmrun::bench::program::{Program, engine_at};
use vmrun::error::CliError;
use vmrun::table::table;

const PLACEMENTS: usize = 16;
const ROUNDS: u32 = 5;
/// A short program is run repeatedly in each round until this much time has passed.
const ROUND_TIME_MIN: Duration = Duration::from_millis(4);
/// The slowest place over the fastest, at most.
const SPREAD_MAX: f64 = 1.15;

fn main() -> Result<(), CliError> {
    let args = Args::from_env();
    let rounds = if args.is_test || args.is_quick { 1 } else { ROUNDS };
    let mut table = table(1, ["program", "median ms", "slowest/fastest"]);
    let mut logs = Vec::new();
    for path in program_files() {
        // A test only has to see that it works.
        let program = Program::load(&path, args.is_test.then_some(1))?;
        if !args.selects(&program.name) {
            continue;
        }
        let [fastest, median, slowest] = measure(&program, rounds)?;
        let spread = slowest.as_secs_f64() / fastest.as_secs_f64().max(1e-9);
        logs.push(spread.ln());
        table.add_row([program.name, format!("{:.2}", median.as_secs_f64() * 1e3), mark(spread)]);
    }
    let mean = (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp();
    table.add_row(["geometric mean".to_owned(), String::new(), mark(mean)]);
    println!("{table}");
    Ok(())
}

fn mark(spread: f64) -> String {
    format!("{}{spread:.2}x", if spread > SPREAD_MAX { "! " } else { "" })
}

/// The time of the fastest place, of the median and of the slowest.
fn measure(program: &Program, rounds: u32) -> Result<[Duration; 3], CliError> {
    let module = |i| program.compile(&engine_at(SlotMode::Ssa, PassSet::all(), i)?);
    let modules: Vec<Module> = (0..PLACEMENTS).map(module).collect::<Result<_, _>>()?;
    let mut least = [Duration::MAX; PLACEMENTS];
    for _ in 0..rounds {
        for (module, least) in modules.iter().zip(&mut least) {
            *least = run(program, module)?.min(*least);
        }
    }
    least.sort_unstable();
    Ok([least[0], least[PLACEMENTS / 2], least[PLACEMENTS - 1]])
}

/// The shortest run of a round.
fn run(program: &Program, module: &Module) -> Result<Duration, CliError> {
    let (start, mut least) = (Instant::now(), Duration::MAX);
    while least == Duration::MAX || start.elapsed() < ROUND_TIME_MIN {
        let mut run = program.start(module)?;
        let before = thread_cpu_time();
        run.call()?;
        least = least.min(thread_cpu_time() - before);
    }
    Ok(least)
}
