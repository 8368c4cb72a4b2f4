//! Costs and gains of compiling each function at its first call: all programs in mode `ssa`, and the start of a large
//! one.
//!
//! Times are CPU time, the least of several rounds; a round runs both ways one after the other. What a
//! program takes to start is making its module; it then runs twice, in two instances, the second time with all
//! that it calls compiled. The large module has many functions, of which one is called. A filter selects
//! programs by name, `--quick` measures one round.

use std::time::Duration;

use slotvm::{Compile, Config, Engine, Error, Instance, Module, Store, Tier};
use slotvm_benches::{Args, program_files};
use slotvm_bytecode::encode;
use slotvm_filetests::bombs::{NAME, family};
use vmrun::bench::clock::thread_cpu_time;
use vmrun::bench::program::{self, Program};
use vmrun::error::CliError;
use vmrun::table::table;

const ROUNDS: u32 = 10;
/// Functions of the large module, and their size.
const LARGE: (usize, usize) = (10_000, 20);
/// Rounds for the large module at most.
const LARGE_ROUNDS: u32 = 3;

fn main() -> Result<(), CliError> {
    let args = Args::from_env();
    let rounds = if args.is_test || args.is_quick { 1 } else { ROUNDS };
    let size = args.is_test.then_some(1);
    let engine = |compile| Engine::new(Config::new().tier(Tier::BEST).compile(compile));
    let engines = [engine(Compile::Eager)?, engine(Compile::Lazy)?];
    let headers = [
        "program",
        "start: eager ms",
        "lazy ms",
        "first run: eager ms",
        "lazy ms",
        "then: eager ms",
        "lazy ms",
        "lazy / eager",
    ];
    let mut table = table(1, headers);
    let mut logs = Vec::new();
    for path in program_files() {
        let name = program::name(&path);
        if args.selects(&name) {
            let program = Program::load(&path, size)?;
            let times = best(rounds, &engines, |engine| program_times(&program, engine))?;
            logs.push(ratio(times).ln());
            table.add_row(row(&name, times));
        }
    }
    if !logs.is_empty() {
        let mean = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
        println!("{table}\nrunning what is compiled, geometric mean: {mean:.3}\n");
    }
    if args.selects("large") {
        let (n_funcs, n) = if args.is_test { (200, 2) } else { LARGE };
        let bytes = encode(&family("ifs").modules(n, n_funcs));
        let times =
            best(rounds.min(LARGE_ROUNDS), &engines, |engine| Ok(large_times(&bytes, engine)?))?;
        let [eager, lazy] = times.map(|[start, first, _]| (start + first).as_secs_f64() * 1e3);
        println!(
            "a module of {} KB with {n_funcs} functions, to the end of the first call: eager \
             {eager:.1} ms, lazy {lazy:.1} ms",
            bytes.len() >> 10
        );
    }
    Ok(())
}

/// Start, first run, second run.
type Times = [Duration; 3];

/// The least times of each engine.
fn best(
    rounds: u32,
    engines: &[Engine; 2],
    measure: impl Fn(&Engine) -> Result<Times, CliError>,
) -> Result<[Times; 2], CliError> {
    let mut best = [[Duration::MAX; 3]; 2];
    for _ in 0..rounds {
        for (engine, best) in engines.iter().zip(&mut best) {
            for (least, time) in best.iter_mut().zip(measure(engine)?) {
                *least = time.min(*least);
            }
        }
    }
    Ok(best)
}

fn program_times(program: &Program, engine: &Engine) -> Result<Times, CliError> {
    let start = thread_cpu_time();
    let module = program.compile(engine)?;
    let mut times = [thread_cpu_time() - start, Duration::ZERO, Duration::ZERO];
    for time in &mut times[1..] {
        let mut run = program.start(&module)?;
        let start = thread_cpu_time();
        run.call()?;
        *time = thread_cpu_time() - start;
    }
    Ok(times)
}

fn large_times(bytes: &[u8], engine: &Engine) -> Result<Times, Error> {
    let start = thread_cpu_time();
    let module = Module::new(engine, bytes)?;
    let mut store = Store::new(engine, ());
    let instance = Instance::new(&mut store, &module, &[])?;
    let func = instance.get_typed_func::<i32, i64>(&store, NAME)?;
    let started = thread_cpu_time();
    func.call(&mut store, 1)?;
    let first = thread_cpu_time();
    func.call(&mut store, 1)?;
    Ok([started - start, first - started, thread_cpu_time() - first])
}

fn row(name: &str, [eager, lazy]: [Times; 2]) -> Vec<String> {
    let ms = |time: Duration| format!("{:.2}", time.as_secs_f64() * 1e3);
    let times = eager.iter().zip(&lazy).flat_map(|(&eager, &lazy)| [ms(eager), ms(lazy)]);
    let ratio = format!("{:.3}", ratio([eager, lazy]));
    std::iter::once(name.to_owned()).chain(times).chain([ratio]).collect()
}

fn ratio([eager, lazy]: [Times; 2]) -> f64 {
    lazy[2].as_secs_f64() / eager[2].as_secs_f64().max(1e-9)
}
