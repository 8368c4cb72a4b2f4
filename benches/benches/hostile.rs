//! Cost of hostile modules; `jit/tests/it/hostile.rs` tests that they take no more.
//!
//! Each row is something that a module of a few bytes asks for, and how it ends: in milliseconds of the
//! clock, the median and the slowest of 100 times, and by how much the process has grown at most. The
//! modules are made before. What compile bombs cost is in the example `bombs` of `filetests`, how late
//! deadlines are in the bench `interruption`. Reads `/proc`, so it needs Linux.

use std::time::{Duration, Instant};

use slotvm::{Config, Engine, Error, Instance, Module, Store, Tier};
use slotvm_benches::Args;
use slotvm_bytecode::module::{Func, TableType};
use slotvm_bytecode::{FuncType, ValType, encode};
use vmrun::table::table;

const ROUNDS: usize = 100;

fn main() -> Result<(), Error> {
    let args = Args::from_env();
    let rounds = if args.is_test || args.is_quick { 1 } else { ROUNDS };
    let mut table = table(2, ["what", "ends", "ms", "slowest", "MiB"]);
    for tier in [Tier::Jit, Tier::Interpreter] {
        let engine = Engine::new(Config::new().tier(tier).consume_fuel(true))?;
        for attack in attacks(&engine)? {
            let name = format!("{}, {tier}", attack.name);
            if args.selects(&name) {
                table.add_row(row(&name, &attack, rounds)?);
            }
        }
    }
    println!("{table}");
    Ok(())
}

/// Something that a module asks for.
struct Attack {
    name: &'static str,
    /// Runs the case, and returns how it ends.
    run: Box<dyn Fn() -> Result<String, Error>>,
}

fn attacks(engine: &Engine) -> Result<Vec<Attack>, Error> {
    let module = |source: &str| Module::from_text(engine, source);
    let running = |name, source: &str, fuel: u64| -> Result<Attack, Error> {
        let (engine, module) = (engine.clone(), module(source)?);
        let run = move || call(&engine, &module, fuel);
        Ok(Attack { name, run: Box::new(run) })
    };
    let loading = |name, module: slotvm_bytecode::Module| {
        let (engine, bytes) = (engine.clone(), encode(&module));
        let instantiate = move || {
            let module = Module::new(&engine, &bytes)?;
            Instance::new(&mut Store::new(&engine, ()), &module, &[])
        };
        let run = move || Ok(end(instantiate().map(|_| "it is made".to_owned())));
        Attack { name, run: Box::new(run) }
    };
    let elements = TableType { elem: ValType::FuncRef, min: u32::MAX, max: None };
    let locals = Func { locals: vec![(u32::MAX, ValType::I64)], ..Func::default() };
    let enough = 1 << 40;
    Ok(vec![
        running(
            "4 GiB of memory, the last page used",
            "memory m 65536 export \"run\" func run
             func run() { i32.const -4 i32.const 7 i32.store 0 return }",
            enough,
        )?,
        running(
            "growing to 4 GiB, the last page used",
            "memory m 0 export \"run\" func run
             func run() { i32.const 65536 memory.grow drop i32.const -4 i32.const 7 i32.store 0 return }",
            enough,
        )?,
        loading(
            "4,294,967,295 table elements",
            slotvm_bytecode::Module { tables: vec![elements], ..Default::default() },
        ),
        loading(
            "4,294,967,295 locals",
            slotvm_bytecode::Module {
                types: vec![FuncType::new([], [])],
                funcs: vec![locals],
                ..Default::default()
            },
        ),
        running(
            "a loop without end, 1,000,000 of fuel",
            "export \"run\" func run func run() { again: br again }",
            1_000_000,
        )?,
        running(
            "recursion without end",
            "export \"run\" func run func run() { call run return }",
            enough,
        )?,
        running(
            "recursion without end, large frames",
            &format!("export \"run\" func run func run() {{ local 1000 i64 {} return }}", RECURSE),
            enough,
        )?,
        running(
            "filling 4 GiB again and again, 10,000,000 of fuel",
            "memory m 65536 export \"run\" func run
             func run() { again: i32.const 0 i32.const 0 i32.const -1 memory.fill br again }",
            10_000_000,
        )?,
    ])
}

/// Keeps the locals of a frame in use over a call.
const RECURSE: &str = "local.get 999 i64.const 1 i64.add local.set 999 call run \
                       local.get 999 local.set 0";

fn call(engine: &Engine, module: &Module, fuel: u64) -> Result<String, Error> {
    let mut store = Store::new(engine, ());
    store.set_fuel(fuel)?;
    let instance = Instance::new(&mut store, module, &[])?;
    let run = instance.get_typed_func::<(), ()>(&store, "run")?;
    Ok(end(run.call(&mut store, ()).map(|()| "it returns".to_owned())))
}

fn end(result: Result<String, Error>) -> String {
    let text = result.unwrap_or_else(|error| match error {
        Error::Trap(trap) => trap.code.message().to_owned(),
        error => error.to_string(),
    });
    // The rule that was broken is as good as its number.
    let line = text.lines().next().unwrap_or_default();
    line.split(" (rule ").next().unwrap_or_default().to_owned()
}

fn row(name: &str, attack: &Attack, rounds: usize) -> Result<[String; 5], Error> {
    let before = status_kib("VmRSS");
    let mut times = Vec::with_capacity(rounds);
    let mut ends = String::new();
    let mut grown = 0;
    for _ in 0..rounds {
        // Sets the peak to what the process has now.
        let is_reset = std::fs::write("/proc/self/clear_refs", "5").is_ok();
        let start = Instant::now();
        ends = (attack.run)()?;
        times.push(start.elapsed());
        let now = status_kib(if is_reset { "VmHWM" } else { "VmRSS" });
        grown = grown.max(now.saturating_sub(before));
    }
    times.sort_unstable();
    let ms = |time: Duration| format!("{:.2}", time.as_secs_f64() * 1e3);
    let (median, slowest) = (times[times.len() / 2], times[times.len() - 1]);
    let mib = format!("{:.1}", grown as f64 / 1024.0);
    Ok([name.to_owned(), ends, ms(median), ms(slowest), mib])
}

fn status_kib(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("this is Linux");
    let line = status.lines().find(|line| line.starts_with(key)).expect("the line is there");
    let number = line.split_whitespace().nth(1).and_then(|word| word.parse().ok());
    number.expect("it is a number")
}
