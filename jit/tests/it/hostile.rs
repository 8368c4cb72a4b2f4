//! Cost of modules of a few bytes. Each test measures in a process of its own, since memory belongs to a process.

use std::process::Command;

use slotvm::{
    Compile, Config, Engine, Error, ExternType, Func, Instance, Limits, Linker, Module, Store,
    Table, Tier, TrapCode, Val,
};
use slotvm_bytecode::module::{Func as FuncDef, Import, ImportCall, ImportKind, TableType};
use slotvm_bytecode::{FuncType, ValType, encode, limits};

use crate::alone::alone;
use crate::support::{for_all, for_all_with, module, status_bytes};

const MIB: u64 = 1 << 20;

/// The most memory that the process has had at a time, in bytes. Unlike that of `getrusage`, this figure
/// knows nothing of the process that started this one.
fn peak_bytes() -> u64 {
    status_bytes("VmHWM:")
}

/// Growth of the process's peak.
fn cost_bytes<R>(f: impl FnOnce() -> R) -> (u64, R) {
    let before = peak_bytes();
    let result = f();
    // The system counts in batches, so even the peak can go down a little.
    (peak_bytes().saturating_sub(before), result)
}

/// Limits the process's address space.
fn limit_address_space(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the structure is complete.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
}

#[test]
fn as_many_locals_as_a_module_may_declare_take_little_memory() {
    alone("hostile::as_many_locals_as_a_module_may_declare_take_little_memory", || {
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
    alone("hostile::tables_that_nobody_writes_take_no_memory", || {
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
#[cfg_attr(not(feature = "jit"), ignore = "needs native code")]
fn a_host_function_without_memory_for_its_trampoline_is_an_error() {
    alone("hostile::a_host_function_without_memory_for_its_trampoline_is_an_error", || {
        // What the heap needs it has already, in one piece that it never gives back.
        // SAFETY: these only choose where the allocator gets memory from.
        unsafe {
            assert_eq!(libc::mallopt(libc::M_MMAP_MAX, 0), 1);
            assert_eq!(libc::mallopt(libc::M_TRIM_THRESHOLD, -1), 1);
        }
        drop(std::hint::black_box(vec![0_u8; 64 << 20]));
        let engine = Engine::new(Config::new().tier(Tier::BEST)).unwrap();
        let mut store = Store::new(&engine, ());
        Func::wrap(&mut store, |x: i64| x).unwrap();
        limit_address_space(1);
        let same = Func::wrap(&mut store, |x: i64| x + 1);
        let other = Func::wrap(&mut store, |x: i64, y: f64| x as f64 + y);
        limit_address_space(libc::RLIM_INFINITY);
        assert!(same.is_ok(), "its trampoline exists");
        let Err(Error::Compile(error)) = other else { panic!("{other:?}") };
        assert!(error.to_string().starts_with("cannot allocate memory for native code"), "{error}");
    });
}

#[test]
fn four_gibibytes_cost_what_is_written() {
    alone("hostile::four_gibibytes_cost_what_is_written", || {
        let source = r#"
            memory m 65536
            export "last" func last
            func last() -> i32 {
              i32.const -4 i32.const 7 i32.store 0
              i32.const -4 i32.load 0 return
            }"#;
        let growing = source.replace("memory m 65536", "memory m 0").replace(
            "func last() -> i32 {",
            "func last() -> i32 { i32.const 65536 memory.grow drop",
        );
        for_all(|engine| {
            for source in [source, &growing] {
                let module = module(engine, source);
                let (cost, ()) = cost_bytes(|| {
                    let mut store = Store::new(engine, ());
                    let instance = Instance::new(&mut store, &module, &[]).unwrap();
                    let last = instance.get_typed_func::<(), i32>(&store, "last").unwrap();
                    assert_eq!(last.call(&mut store, ()).unwrap(), 7);
                });
                assert!(cost <= 10 * MIB, "{cost}");
            }
        });
    });
}

#[test]
fn four_billion_elements_or_locals_are_refused() {
    alone("hostile::four_billion_elements_or_locals_are_refused", || {
        let engine = Engine::new(Config::new().tier(Tier::BEST)).unwrap();
        let (cost, ()) = cost_bytes(|| {
            let ty = TableType { elem: ValType::FuncRef, min: u32::MAX, max: None };
            let mut bytecode = slotvm_bytecode::Module { tables: vec![ty], ..Default::default() };
            let module = Module::new(&engine, encode(&bytecode)).unwrap();
            let mut store = Store::new(&engine, ());
            let error = Instance::new(&mut store, &module, &[]).unwrap_err().to_string();
            let expected = "limit table_elems_max (10000000) exceeded: 4294967295 wanted";
            assert_eq!(error, expected);
            let error = Table::new(&mut store, ty, Val::FuncRef(None)).unwrap_err().to_string();
            assert_eq!(error, expected);
            let ty = TableType { min: 1, ..ty };
            let table = Table::new(&mut store, ty, Val::FuncRef(None)).unwrap();
            let error = table.grow(&mut store, u32::MAX.into(), Val::FuncRef(None)).unwrap_err();
            assert_eq!(error.to_string(), "the table cannot grow by 4294967295 elements");

            bytecode.tables.clear();
            bytecode.types = vec![FuncType::new([], [])];
            let locals = vec![(u32::MAX, ValType::I64)];
            bytecode.funcs = vec![FuncDef { locals, ..FuncDef::default() }];
            let error = Module::new(&engine, encode(&bytecode)).unwrap_err().to_string();
            assert!(error.contains("LOCALS_MAX"), "{error}");
        });
        assert!(cost <= 10 * MIB, "{cost}");
    });
}

/// Set, in the process that a test has started for itself, to the MiB of address space that it may have
/// beside what it starts with.
const ADDRESS_SPACE: &str = "SLOTVM_TEST_ADDRESS_SPACE";

#[test]
fn with_any_address_space_modules_run_or_give_errors() {
    if let Ok(mib) = std::env::var(ADDRESS_SPACE) {
        limit_address_space(status_bytes("VmSize:") + mib.parse::<u64>().unwrap() * MIB);
        return run_many();
    }
    for mib in [64, 96, 128, 192, 256, 512, 1024, 2048, 4096] {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "hostile::with_any_address_space_modules_run_or_give_errors"])
            .args(["--test-threads=1", "--nocapture"])
            .env(ADDRESS_SPACE, mib.to_string())
            .output()
            .unwrap();
        let (out, err) =
            (String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
        assert!(child.status.success(), "{mib} MiB: {}\n{out}\n{err}", child.status);
        assert!(!out.contains("none ran"), "{mib} MiB: {out}");
    }
}

/// Makes more and more instances with memories and tables, until there is no more address space, and
/// runs each; in all engines.
fn run_many() {
    let source = r#"
        memory m 1
        table t funcref 100000
        export "get" func get
        func get(base: i32, index: i32) -> i32 {
          i32.const 1 memory.grow drop
          local.get base i32.const 7 i32.store8
          local.get base local.get index i32.load8_u_indexed 8 return
        }"#;
    for_all(|engine| {
        let module = match Module::from_text(engine, source) {
            Ok(module) => module,
            Err(error) => return println!("none ran, {error}"),
        };
        let mut store = Store::new(engine, ());
        let mut n_instances = 0;
        let error = loop {
            if n_instances == 50 {
                break None;
            }
            let instance = match Instance::new(&mut store, &module, &[]) {
                Ok(instance) => instance,
                Err(error) => break Some(error),
            };
            n_instances += 1;
            let get = instance.get_typed_func::<(i32, i32), i32>(&store, "get").unwrap();
            assert_eq!(get.call(&mut store, (60_000, 0)).unwrap(), 7);
            let error = get.call(&mut store, (-1, -1)).unwrap_err();
            assert_eq!(error.trap_code(), Some(TrapCode::MemoryOutOfBounds));
        };
        println!("{n_instances} instances, {error:?}");
        if n_instances == 0 {
            println!("none ran");
        }
    });
}

/// Resources that a leak would increase.
#[derive(Debug)]
struct Resources {
    resident_bytes: u64,
    n_mappings: usize,
    n_files: usize,
}

impl Resources {
    fn now() -> Resources {
        let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
        let kib = rollup.lines().find_map(|line| line.strip_prefix("Rss:")).unwrap();
        let kib: u64 = kib.trim().trim_end_matches(" kB").parse().unwrap();
        Resources {
            resident_bytes: kib << 10,
            n_mappings: std::fs::read_to_string("/proc/self/maps").unwrap().lines().count(),
            n_files: std::fs::read_dir("/proc/self/fd").unwrap().count(),
        }
    }
}

/// Repeats something and checks that the process is afterwards as after the first tenth of it. 10,000
/// times with `SLOTVM_FULL=1`, otherwise 300.
fn stays_flat(mut round: impl FnMut(usize)) {
    let is_full = std::env::var("SLOTVM_FULL").as_deref() == Ok("1");
    let n_rounds = if is_full { 10_000 } else { 300 };
    (0..n_rounds / 10).for_each(&mut round);
    let before = Resources::now();
    (n_rounds / 10..n_rounds).for_each(&mut round);
    let after = Resources::now();
    // The allocator may keep a little more, and split or join what it has.
    let is_flat = after.resident_bytes <= before.resident_bytes + 2 * MIB
        && after.n_mappings <= before.n_mappings + 16
        && after.n_files == before.n_files;
    assert!(is_flat, "{n_rounds} rounds: {before:?}, then {after:?}");
    println!("{n_rounds} rounds: {before:?}, then {after:?}");
}

const ROUND: &str = r#"
    import "env" "host" func host(i64) -> i64
    memory m 2 20
    table t funcref 1000
    elem e t at i32.const 5 func run, run
    data d at i32.const 70000 "abc"
    global g: mut i64 = i64.const 5
    export "run" func run
    func run(n: i64) -> i64 {
      i32.const 1 memory.grow drop
      ref.func run i32.const 500 table.grow t drop
      global.get g local.get n call host i64.add
      i32.const 70000 i64.load8_u 0 i64.add return
    }"#;

/// Makes an instance, runs it, and drops it with its store.
fn instantiate(engine: &Engine, module: &Module) {
    let mut store = Store::new(engine, ());
    let host = Func::wrap(&mut store, |n: i64| n * 2).unwrap();
    let instance = Instance::new(&mut store, module, &[host.into()]).unwrap();
    let run = instance.get_typed_func::<i64, i64>(&store, "run").unwrap();
    assert_eq!(run.call(&mut store, 7).unwrap(), 5 + 14 + i64::from(b'a'));
}

/// Makes a module that imports a function of each of `n` types.
fn imports_of_types(n_types: u32) -> Vec<u8> {
    imports(n_types, n_types)
}

/// A module that imports a function of each of its types, of which so many differ.
fn imports(n_types: u32, n_different: u32) -> Vec<u8> {
    // The digits of the number, each as a type.
    let ty = |i: u32| {
        let i = i % n_different;
        let digit = |k: u32| ValType::ALL[(i >> (2 * k) & 3) as usize];
        FuncType::new((0..10).map(digit).collect::<Vec<_>>(), [])
    };
    let import = |ty: u32| Import {
        module: "m".to_owned(),
        name: ty.to_string(),
        kind: ImportKind::Func(ty, ImportCall::Ordinary),
    };
    encode(&slotvm_bytecode::Module {
        types: (0..n_types).map(ty).collect(),
        imports: (0..n_types).map(import).collect(),
        ..slotvm_bytecode::Module::default()
    })
}

#[test]
#[cfg_attr(not(feature = "jit"), ignore = "needs native code")]
fn types_of_imports_cost_nothing_before_there_are_instances() {
    alone("hostile::types_of_imports_cost_nothing_before_there_are_instances", || {
        for compile in [Compile::Eager, Compile::Lazy] {
            let engine = Engine::new(Config::new().tier(Tier::BEST).compile(compile)).unwrap();
            let load = |n_types| {
                let module = Module::new(&engine, imports_of_types(n_types)).unwrap();
                (module.code_bytes(), Resources::now())
            };
            // The first module also pays for what is made once.
            let (few_bytes, before) = load(1);
            let (many_bytes, after) = load(3_000);
            assert_eq!(few_bytes, many_bytes);
            assert_eq!(before.n_mappings, after.n_mappings, "{before:?}, then {after:?}");
            // The module itself, with its types.
            let cost = after.resident_bytes.saturating_sub(before.resident_bytes);
            assert!(cost <= 4 * MIB, "{before:?}, then {after:?}");
        }
    });
}

#[test]
#[cfg_attr(not(feature = "jit"), ignore = "needs native code")]
fn host_functions_of_too_many_types_are_refused() {
    let n_types = 40_000;
    let engine = Engine::new(Config::new().tier(Tier::BEST)).unwrap();
    let load = |bytes: Vec<u8>| {
        let module = Module::new(&engine, bytes).unwrap();
        let mut linker = Linker::new(&engine);
        for import in module.imports() {
            let ExternType::Func(ty) = import.ty() else { unreachable!("it imports functions") };
            linker.func_new("m", import.name(), ty.clone(), |_, _, _| Ok(())).unwrap();
        }
        (module, linker)
    };
    let mut store = Store::new(&engine, ());
    let (module, linker) = load(imports_of_types(n_types));
    let error = linker.instantiate(&mut store, &module).unwrap_err();
    assert!(matches!(error, Error::Compile(_)), "{error}");
    assert!(error.to_string().contains("(compile work)"), "{error}");
    // Nothing was made of them, and the store can be used.
    let small = Module::new(&engine, imports_of_types(100)).unwrap();
    linker.instantiate(&mut store, &small).unwrap();
    // Types that are equal are one.
    let (equal, linker) = load(imports(n_types, 100));
    linker.instantiate(&mut store, &equal).unwrap();
}

/// The widest types, each cheap enough for a module that has little else.
#[test]
fn functions_of_the_widest_types_call_and_are_called() {
    let n = limits::PARAMS_MAX;
    let cells = vec!["i64"; n].join(", ");
    let gets: String = (0..n).map(|i| format!("local.get {i} ")).collect();
    let params: Vec<String> = (0..n).map(|i| format!("p{i}: i64")).collect();
    let source = format!(
        "import \"env\" \"f\" func f({cells}) -> ({cells})
         import \"env\" \"g\" func g({cells}) -> i32
         export \"run\" func run
         func run({}) -> ({cells}) {{ {gets} call g drop {gets} call f return }}",
        params.join(", ")
    );
    for compile in [Compile::Eager, Compile::Lazy] {
        let engine = Engine::new(Config::new().tier(Tier::BEST).compile(compile)).unwrap();
        let module = Module::from_text(&engine, &source).unwrap();
        let mut linker = Linker::new(&engine);
        let wide = vec![ValType::I64; n];
        let f = FuncType::new(wide.clone(), wide.clone());
        linker
            .func_new("env", "f", f, |_, params, results| {
                results.copy_from_slice(params);
                results.reverse();
                Ok(())
            })
            .unwrap();
        let g = FuncType::new(wide, [ValType::I32]);
        linker.func_new("env", "g", g, |_, _, _| Ok(())).unwrap();
        let mut store = Store::new(&engine, ());
        let instance = linker.instantiate(&mut store, &module).unwrap();
        let run = instance.get_func(&store, "run").unwrap();
        let args: Vec<Val> = (0..n as i64).map(Val::I64).collect();
        let mut results = vec![Val::I64(0); n];
        run.call(&mut store, &args, &mut results).unwrap();
        results.reverse();
        assert_eq!(format!("{results:?}"), format!("{args:?}"));
    }
}

#[test]
fn instances_leave_nothing_behind() {
    alone("hostile::instances_leave_nothing_behind", || {
        for &tier in Tier::ALL {
            let engine = Engine::new(Config::new().tier(tier)).unwrap();
            let module = module(&engine, ROUND);
            stays_flat(|_| instantiate(&engine, &module));
        }
    });
}

#[test]
fn modules_and_engines_leave_nothing_behind() {
    alone("hostile::modules_and_engines_leave_nothing_behind", || {
        for &tier in Tier::ALL {
            let engine = Engine::new(Config::new().tier(tier)).unwrap();
            stays_flat(|round| {
                instantiate(&engine, &module(&engine, ROUND));
                let other = Engine::new(Config::new().tier(tier)).unwrap();
                let params = ["i32", "i64", "f32", "f64"].map(|ty| [ty, ty].join(", "));
                let params = params[..1 + round % 4].join(", ");
                module(
                    &other,
                    &format!("import \"env\" \"f\" func f({params}) func g() {{ return }}"),
                );
            });
        }
    });
}
