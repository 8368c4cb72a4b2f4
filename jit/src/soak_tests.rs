//! Soak tests: an engine that loads, runs and drops hostile modules for long leaks nothing; and tests of the
//! lifetime of trampolines. They inspect lists private to the crate; `tests/it/hostile.rs` also inspects the
//! process.

#[path = "../tests/it/alone.rs"]
mod alone;

use alone::alone;

use crate::code::registry;
use crate::{
    AsContext, Compile, Config, Engine, Error, Func, Instance, Linker, Module, Store, Tier,
    TrapCode,
};

/// The figures that a leak would make grow.
#[derive(Debug)]
struct Sample {
    resident_bytes: usize,
    n_mappings: usize,
    n_files: usize,
    n_threads: usize,
    n_code_ranges: usize,
    n_trampolines: usize,
}

impl Sample {
    fn now(engines: &[Engine]) -> Sample {
        let read = |file| std::fs::read_to_string(file).unwrap();
        let count = |folder| std::fs::read_dir(folder).unwrap().count();
        let rollup = read("/proc/self/smaps_rollup");
        let kib = rollup.lines().find_map(|line| line.strip_prefix("Rss:")).unwrap();
        let kib: usize = kib.trim().trim_end_matches(" kB").parse().unwrap();
        Sample {
            resident_bytes: kib << 10,
            n_mappings: read("/proc/self/maps").lines().count(),
            n_files: count("/proc/self/fd"),
            n_threads: count("/proc/self/task"),
            n_code_ranges: registry::n_ranges(),
            n_trampolines: engines.iter().map(n_trampolines).sum(),
        }
    }
}

fn n_trampolines(engine: &Engine) -> usize {
    engine.native().unwrap().n_trampolines()
}

/// Parameters of one of a million types.
fn params(mut number: usize) -> String {
    let types = ["i32", "i64", "f32", "f64"];
    let mut params = Vec::new();
    for _ in 0..10 {
        params.push(types[number % 4]);
        number /= 4;
    }
    params.join(", ")
}

/// A module with imports and exports of types of its own.
fn source(number: usize, start: &str) -> String {
    let [a, b, c] = [0, 1, 2].map(|i| params(number * 3 + i));
    format!(
        r#"
        import "env" "a" func a({a})
        import "env" "b" func b({b}) -> i64
        import "env" "fail" func fail()
        memory m 1 3
        table t funcref 10
        elem e t at i32.const 2 func run, spare
        data d at i32.const 70 "abc"
        export "run" func run
        export "spare" func spare
        {start}
        func run(n: i64) -> i64 {{
          i32.const 1 memory.grow drop
          local.get n i64.eqz br_if host
          i64.const 100 local.get n i64.const 1 i64.sub i64.div_u return
        host: call fail i64.const 0 return
        }}
        func spare({c}) -> i64 {{ i64.const 5 return }}
        func never() {{ unreachable }}"#
    )
}

/// Loads, runs and drops a module. Everything varies with the number: how instances fail, what comes before
/// what, and the order in which things are dropped.
fn round(engine: &Engine, number: usize) {
    let start = ["", "", "start run_never", "", "", ""][number % 6];
    let start = start.replace("run_never", "never");
    let module = Module::from_text(engine, &source(number, &start)).unwrap();
    let mut linker = Linker::new(engine);
    for import in module.imports().take(2) {
        let crate::ExternType::Func(ty) = import.ty() else { unreachable!("it is a function") };
        linker.func_new("env", import.name(), ty.clone(), |_, _, _| Ok(())).unwrap();
    }
    let mut store = Store::new(engine, ());
    // A function of the embedder, of a type that no module has.
    if number.is_multiple_of(5) {
        Func::wrap(&mut store, |a: i64, b: f64| a as f64 + b).unwrap();
    }
    if number.is_multiple_of(7) {
        assert!(matches!(linker.instantiate(&mut store, &module), Err(Error::Link(_))));
    }
    let failing = || Err::<(), _>(Error::host("no"));
    linker.func_wrap("env", "fail", failing).unwrap();
    let made = linker.instantiate(&mut store, &module);
    if !start.is_empty() {
        assert_eq!(made.unwrap_err().trap_code(), Some(TrapCode::Unreachable));
        return;
    }
    let run = |store: &mut Store<()>, instance: Instance, n| {
        let run = instance.get_typed_func::<i64, i64>(&*store, "run").unwrap();
        run.call(store, n)
    };
    let instance = made.unwrap();
    assert_eq!(run(&mut store, instance, 11).unwrap(), 10);
    let error = run(&mut store, instance, 1).unwrap_err();
    assert_eq!(error.trap_code(), Some(TrapCode::IntegerDivisionByZero));
    assert!(matches!(run(&mut store, instance, 0), Err(Error::Host(_))));
    let mut other = Store::new(engine, ());
    let second = linker.instantiate(&mut other, &module).unwrap();
    let spare = second.get_func(&other, "spare").unwrap();
    let zeros: Vec<_> =
        spare.ty(&other).params.iter().map(|&ty| crate::Val::default_for(ty)).collect();
    spare.call(&mut other, &zeros, &mut [crate::Val::I64(0)]).unwrap();
    match number % 4 {
        0 => drop((store, other, module, linker)),
        1 => drop((module, linker, store, other)),
        2 => drop((other, linker, module, store)),
        _ => {
            drop((store, module));
            assert_eq!(run(&mut other, second, 5).unwrap(), 25);
        }
    }
}

/// 100,000 rounds with `SLOTVM_FULL=1`, otherwise 400.
#[test]
fn hostile_modules_leave_nothing_behind() {
    alone("soak_tests::hostile_modules_leave_nothing_behind", || {
        let is_full = std::env::var("SLOTVM_FULL").as_deref() == Ok("1");
        let (n_rounds, n_samples) = if is_full { (100_000, 20) } else { (400, 10) };
        let engines = [Compile::Eager, Compile::Lazy].map(|compile| {
            let engine = Engine::new(Config::new().tier(Tier::BEST).compile(compile)).unwrap();
            // Allocations that are made once.
            round(&engine, 1);
            engine
        });
        let mut samples = Vec::new();
        for number in 0..n_rounds {
            round(&engines[number / 3 % 2], number);
            let half = n_rounds / 2;
            if number >= half && (number - half) % (half / n_samples) == 0 {
                samples.push(Sample::now(&engines));
            }
        }
        // The means of the first and of the last samples, so that one of them does not decide.
        let growth = |of: fn(&Sample) -> usize| {
            let n = samples.len() / 3;
            let sum = |samples: &[Sample]| samples.iter().map(of).sum::<usize>() as f64;
            (sum(&samples[samples.len() - n..]) - sum(&samples[..n])) / n as f64
        };
        println!("{n_rounds} rounds: {:?}, then {:?}", samples[0], samples.last().unwrap());
        let bytes = growth(|sample| sample.resident_bytes);
        // The allocator splits and joins its blocks.
        let bytes_max = f64::from(1 << 20);
        assert!(bytes <= bytes_max, "{bytes} bytes more: {samples:#?}");
        assert!(growth(|sample| sample.n_mappings) <= 4.0, "{samples:#?}");
        for sample in &samples {
            assert_eq!(sample.n_files, samples[0].n_files);
            assert_eq!(sample.n_threads, samples[0].n_threads);
            assert_eq!(sample.n_code_ranges, samples[0].n_code_ranges);
            assert_eq!(sample.n_trampolines, 0);
        }
    });
}

/// Instantiates a module generated by [`source`].
fn instantiate(store: &mut Store<()>, module: &Module) -> Instance {
    let engine = store.as_context().engine().clone();
    let mut linker = Linker::new(&engine);
    for import in module.imports() {
        let crate::ExternType::Func(ty) = import.ty() else { unreachable!("it is a function") };
        linker.func_new("env", import.name(), ty.clone(), |_, _, _| Ok(())).unwrap();
    }
    linker.instantiate(store, module).unwrap()
}

#[test]
fn trampolines_are_made_when_they_are_needed_and_freed_with_the_last_who_keeps_them() {
    for compile in [Compile::Eager, Compile::Lazy] {
        let engine = Engine::new(Config::new().tier(Tier::BEST).compile(compile)).unwrap();
        let n = || n_trampolines(&engine);
        let module = Module::from_text(&engine, &source(5, "")).unwrap();
        let same_types = Module::from_text(&engine, &source(5, "")).unwrap();
        assert_eq!(n(), 0, "a module alone needs none");
        let mut store = Store::new(&engine, ());
        let instance = instantiate(&mut store, &module);
        assert_eq!(n(), 3, "those of its imports");
        let run = instance.get_typed_func::<i64, i64>(&store, "run").unwrap();
        run.call(&mut store, 11).unwrap();
        assert_eq!(n(), 4, "and that of the function that was called");
        run.call(&mut store, 12).unwrap();
        let mut other = Store::new(&engine, ());
        let second = instantiate(&mut other, &same_types);
        let second = second.get_typed_func::<i64, i64>(&other, "run").unwrap();
        second.call(&mut other, 11).unwrap();
        assert_eq!(n(), 4, "another module and store share them");
        drop((store, module));
        assert_eq!(n(), 4, "the others keep them");
        second.call(&mut other, 11).unwrap();
        drop(other);
        assert_eq!(n(), 4, "a module keeps them for its next instance");
        drop(same_types);
        assert_eq!(n(), 0);

        // What the embedder makes belongs to the store, and to the module that imports it.
        let mut store = Store::new(&engine, ());
        let host = Func::wrap(&mut store, |n: i64| n).unwrap();
        Func::wrap(&mut store, |n: i64| n + 1).unwrap();
        assert_eq!(n(), 1);
        let importing = "import \"env\" \"host\" func host(i64) -> i64";
        let importing = Module::from_text(&engine, importing).unwrap();
        Instance::new(&mut store, &importing, &[host.into()]).unwrap();
        drop(store);
        assert_eq!(n(), 1);
        drop(importing);
        assert_eq!(n(), 0);
    }
}

#[test]
fn threads_that_need_the_same_trampolines_share_them() {
    let engine = Engine::new(Config::new().tier(Tier::BEST)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let engine = &engine;
            scope.spawn(move || {
                for i in 0..20 {
                    let module = Module::from_text(engine, &source(i, "")).unwrap();
                    let mut store = Store::new(engine, ());
                    let instance = instantiate(&mut store, &module);
                    if thread % 2 == 0 {
                        drop(module);
                    }
                    let run = instance.get_typed_func::<i64, i64>(&store, "run").unwrap();
                    assert_eq!(run.call(&mut store, 11).unwrap(), 10);
                    // Of 20 modules at a time, if no two threads are at the same.
                    assert!(n_trampolines(engine) <= 16 * 4);
                }
            });
        }
    });
    assert_eq!(n_trampolines(&engine), 0);
}
