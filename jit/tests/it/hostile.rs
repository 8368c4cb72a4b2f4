//! What modules of a few bytes may cost. Each test measures in a process of its own, since memory belongs
//! to a process.

use std::process::Command;

use slotvm::{Config, Engine, Error, Func, Instance, Limits, Module, Store, Tier};
use slotvm_bytecode::module::Func as FuncDef;
use slotvm_bytecode::{FuncType, ValType, encode, limits};

use crate::support::{for_all, for_all_with, module};

/// Set in the process that a test has started for itself.
const ALONE: &str = "SLOTVM_TEST_ALONE";
const MIB: u64 = 1 << 20;

/// Runs a test in a process that runs nothing else.
fn alone(test: &str, run: impl FnOnce()) {
    if std::env::var_os(ALONE).is_some() {
        return run();
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("hostile::{test}"), "--test-threads=1"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    assert!(child.status.success() && out.contains("1 passed"), "{}\n{out}\n{err}", child.status);
}

/// The most memory that the process has had at a time, in bytes. Unlike that of `getrusage`, this figure
/// knows nothing of the process that started this one.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    kib.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// How far something raises the peak of the process.
fn cost_bytes<R>(f: impl FnOnce() -> R) -> (u64, R) {
    let before = peak_bytes();
    let result = f();
    (peak_bytes() - before, result)
}

/// Lets the system refuse address space beyond so many bytes.
fn limit_address_space(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the structure is complete.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
}

#[test]
fn as_many_locals_as_a_module_may_declare_take_little_memory() {
    alone("as_many_locals_as_a_module_may_declare_take_little_memory", || {
        let ret = slotvm_bytecode::text::parse("func f() { return }").unwrap().funcs.remove(0).code;
        let of_funcs = |n_funcs: usize| {
            let func = FuncDef {
                locals: vec![(limits::LOCALS_MAX as u32, ValType::I64)],
                code: ret.clone(),
                ..FuncDef::default()
            };
            encode(&slotvm_bytecode::Module {
                types: vec![FuncType::new([], [])],
                funcs: vec![func; n_funcs],
                ..slotvm_bytecode::Module::default()
            })
        };
        let engine = Engine::new(Config::new().tier(Tier::Interpreter)).unwrap();
        // The first module also pays for what is made once.
        Module::new(&engine, of_funcs(1)).unwrap();
        let bytes = of_funcs(limits::MODULE_LOCALS_MAX / limits::LOCALS_MAX);
        let (cost, _module) = cost_bytes(|| Module::new(&engine, &bytes).unwrap());
        let max = 64 * MIB + 512 * bytes.len() as u64;
        assert!(cost <= max, "{} bytes cost {cost} bytes", bytes.len());
    });
}

#[test]
fn tables_that_nobody_writes_take_no_memory() {
    alone("tables_that_nobody_writes_take_no_memory", || {
        let source = r#"
            table t funcref 10000000
            table u externref 10000000
            table v externref 1
            export "grow" func grow
            func grow() -> i32 {
              ref.null externref i32.const 9999999 table.grow v return
            }"#;
        for_all(|engine| {
            let module = module(engine, source);
            let mut store = Store::new(engine, ());
            let (cost, ()) = cost_bytes(|| {
                let instance = Instance::new(&mut store, &module, &[]).unwrap();
                let grow = instance.get_typed_func::<(), i32>(&store, "grow").unwrap();
                assert_eq!(grow.call(&mut store, ()).unwrap(), 1);
            });
            assert!(cost < 10 * MIB, "{cost}");
        });
    });
}

#[test]
fn tables_and_memories_of_a_store_are_limited_together() {
    let source = r#"
        memory m 2
        table t funcref 3
        table u funcref 4
        export "grow_memory" func grow_memory
        func grow_memory(n: i32) -> i32 { local.get n memory.grow return }
        export "grow_table" func grow_table
        func grow_table(n: i32) -> i32 { ref.null funcref local.get n table.grow u return }"#;
    let limits =
        Limits { memory_bytes_total_max: 5 << 16, table_elems_total_max: 16, ..Limits::default() };
    for_all_with(
        |config| {
            config.limits(limits.clone());
        },
        |engine| {
            let module = module(engine, source);
            let mut store = Store::new(engine, ());
            let first = Instance::new(&mut store, &module, &[]).unwrap();
            let second = Instance::new(&mut store, &module, &[]).unwrap();
            let mut grow = |instance: &Instance, what, n| {
                let f = instance.get_typed_func::<i32, i32>(&store, what).unwrap();
                f.call(&mut store, n).unwrap()
            };
            assert_eq!(grow(&first, "grow_memory", 2), -1);
            assert_eq!(grow(&second, "grow_memory", 1), 2);
            assert_eq!(grow(&first, "grow_memory", 1), -1);
            assert_eq!(grow(&first, "grow_memory", 0), 2);
            assert_eq!(grow(&first, "grow_table", 3), -1);
            assert_eq!(grow(&first, "grow_table", 2), 4);
            assert_eq!(grow(&second, "grow_table", 1), -1);
            let error = Instance::new(&mut store, &module, &[]).unwrap_err();
            let expected = "limit memory_bytes_total_max (327680) exceeded: 458752 wanted";
            assert_eq!(error.to_string(), expected);
        },
    );
}

#[test]
fn a_hundred_large_tables_are_refused() {
    let source: String =
        (0..limits::TABLES_MAX).map(|i| format!("table t{i} funcref 10000000\n")).collect();
    for_all(|engine| {
        let module = module(engine, &source);
        let error = Instance::new(Store::new(engine, ()), &module, &[]).unwrap_err();
        let expected = "limit table_elems_total_max (50000000) exceeded: 1000000000 wanted";
        assert_eq!(error.to_string(), expected);
    });
}

#[test]
fn a_host_function_without_memory_for_its_trampoline_is_an_error() {
    if Tier::BEST == Tier::Interpreter {
        return;
    }
    alone("a_host_function_without_memory_for_its_trampoline_is_an_error", || {
        // What the heap needs it has already, in one piece that it never gives back.
        // SAFETY: these only choose where the allocator gets memory from.
        unsafe {
            assert_eq!(libc::mallopt(libc::M_MMAP_MAX, 0), 1);
            assert_eq!(libc::mallopt(libc::M_TRIM_THRESHOLD, -1), 1);
        }
        drop(std::hint::black_box(vec![0_u8; 64 << 20]));
        let engine = Engine::new(&Config::new()).unwrap();
        let mut store = Store::new(&engine, ());
        Func::wrap(&mut store, |x: i64| x).unwrap();
        limit_address_space(1);
        let same = Func::wrap(&mut store, |x: i64| x + 1);
        let other = Func::wrap(&mut store, |x: i64, y: f64| x as f64 + y);
        limit_address_space(libc::RLIM_INFINITY);
        assert!(same.is_ok(), "its trampoline exists");
        let Err(Error::Host(error)) = other else { panic!("{other:?}") };
        assert!(error.to_string().starts_with("no memory for native code"), "{error}");
    });
}
