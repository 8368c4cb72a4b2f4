//! Fuel, stacks and other limits.

use slotvm::compiler::Effort;
use slotvm::{
    Config, Engine, Error, Instance, Limits, Linker, Module, SlotMode, Store, Tier, TrapCode,
};

use crate::support::{
    for_all, for_all_with, frames, instance, instance_with, kinds, marked, module,
};

const COUNT: &str = r#"
    export "count" func count
    func count(n: i64) -> i64 {
    next:
      local.get n i64.eqz br_if done ; block
      local.get n i64.const 1 i64.sub local.set n
      br next
    done:
      local.get n
      return
    }"#;

#[test]
fn fuel_is_charged_by_basic_block() {
    for_all_with(
        |config| {
            config.consume_fuel(true);
        },
        |engine| {
            let (mut store, instance) = instance(engine, COUNT);
            let count = instance.get_typed_func::<i64, i64>(&store, "count").unwrap();
            // A store starts without fuel.
            assert_eq!(
                count.call(&mut store, 0).unwrap_err().trap_code(),
                Some(TrapCode::OutOfFuel)
            );
            // Three instructions to test, five to go round, two to return.
            for (n, fuel) in [(0, 5), (1, 13), (10, 85)] {
                store.set_fuel(fuel).unwrap();
                assert_eq!(count.call(&mut store, n).unwrap(), 0);
                assert_eq!(store.get_fuel().unwrap(), 0);
                store.set_fuel(fuel - 1).unwrap();
                let error = count.call(&mut store, n).unwrap_err();
                assert_eq!(error.trap_code(), Some(TrapCode::OutOfFuel));
                // The last block costs two; nothing of it is charged.
                assert_eq!(store.get_fuel().unwrap(), 1);
            }
            store.set_fuel(2).unwrap();
            let error = count.call(&mut store, 7).unwrap_err();
            assert_eq!(frames(&error), [("count".to_owned(), marked(COUNT, "block")[0])]);
            assert_eq!(store.get_fuel().unwrap(), 2);
            // No fuel is less than none.
            store.set_fuel(u64::MAX).unwrap();
            assert_eq!(count.call(&mut store, 3).unwrap(), 0);
        },
    );
}

#[test]
fn without_fuel_there_is_none_to_set() {
    for_all(|engine| {
        let (mut store, instance) = instance(engine, COUNT);
        assert!(matches!(store.set_fuel(5), Err(Error::Usage(_))));
        assert!(matches!(store.get_fuel(), Err(Error::Usage(_))));
        let count = instance.get_typed_func::<i64, i64>(&store, "count").unwrap();
        assert_eq!(count.call(&mut store, 100_000).unwrap(), 0);
    });
}

#[test]
fn the_deterministic_stack_ends_at_the_same_depth_everywhere() {
    let source = r#"
        export "deep" func deep
        export "depth" global depth
        global depth: mut i32 = i32.const 0
        func deep(n: i32, a: i64) {
          local b: f64
          local.get n global.set depth
          local.get n i32.const 1 i32.add local.get a call wide drop
          return
        }
        func wide(n: i32, a: i64) -> i64 {
          local 20 i64
          local.get n global.set depth
          local.get n i32.const 1 i32.add local.get a call deep
          i64.const 0
          return
        }"#;
    let mut depths = Vec::new();
    for cells in [0, 7, 8, 100, 12_345] {
        let kinds = kinds(|config| {
            config.deterministic_stack(Some(cells));
        });
        for kind in kinds {
            let (mut store, instance) = instance(&kind.engine, source);
            let deep = instance.get_typed_func::<(i32, i64), ()>(&store, "deep").unwrap();
            let depth = instance.get_global(&store, "depth").unwrap();
            for _ in 0..2 {
                depth.set(&mut store, slotvm::Val::I32(-1)).unwrap();
                let error = deep.call(&mut store, (0, 0)).unwrap_err();
                let Error::Trap(trap) = error else { panic!("{kind}: {error}") };
                assert_eq!((trap.code, trap.offset), (TrapCode::StackOverflow, 0), "{kind}");
                let n_frames = trap.frames().len() as u64 + trap.backtrace().n_frames_omitted();
                depths.push((cells, depth.get(&store).unwrap_i32(), trap.func, n_frames));
            }
        }
    }
    depths.dedup();
    assert_eq!(depths.len(), 5, "{depths:?}");
    assert!(depths.is_sorted_by_key(|&(_, depth, ..)| depth), "{depths:?}");
}

#[test]
fn the_stack_of_the_thread_is_a_limit_too() {
    let source = r#"
        export "deep" func deep
        global depth: mut i64 = i64.const 0
        export "depth" global depth
        func deep(n: i64) -> i64 {
          local.get n global.set depth
          local.get n i64.const 1 i64.add call deep i64.const 1 i64.add return
        }"#;
    for_all_with(
        |config| {
            // More than the threads have.
            config.max_native_stack(1 << 30);
        },
        |engine| {
            for stack_bytes in [256 << 10, 512 << 10, 4 << 20] {
                let run = || {
                    let (mut store, instance) = instance(engine, source);
                    let deep = instance.get_typed_func::<i64, i64>(&store, "deep").unwrap();
                    let error = deep.call(&mut store, 0).unwrap_err();
                    assert_eq!(error.trap_code(), Some(TrapCode::StackOverflow));
                    instance.get_global(&store, "depth").unwrap().get(&store).unwrap_i64()
                };
                let depth = std::thread::scope(|scope| {
                    let builder = std::thread::Builder::new().stack_size(stack_bytes);
                    builder.spawn_scoped(scope, run).unwrap().join().unwrap()
                });
                assert!(depth > 100);
            }
        },
    );
}

#[test]
fn large_frames_do_not_jump_over_the_limit() {
    // 30,000 locals that live across a call.
    let mut source =
        String::from("export \"deep\" func deep\nfunc deep(n: i64) -> i64 {\n  local 30000 i64\n");
    for i in 1..=30_000 {
        source += &format!("local.get n i64.const {i} i64.add local.set {i}\n");
    }
    source += "local.get n i64.const 1 i64.add call deep\n";
    for i in 1..=30_000 {
        source += &format!("local.get {i} i64.xor\n");
    }
    source += "return }";
    let mut config = Config::new();
    config.tier(Tier::BEST);
    config.verify_passes(false);
    config.slots(slotvm::SlotMode::Memory);
    let engine = slotvm::Engine::new(&config).unwrap();
    let (mut store, instance) = instance(&engine, &source);
    let deep = instance.get_typed_func::<i64, i64>(&store, "deep").unwrap();
    for _ in 0..2 {
        let error = deep.call(&mut store, 0).unwrap_err();
        assert_eq!(error.trap_code(), Some(TrapCode::StackOverflow));
    }
}

#[test]
fn limits_of_the_store_hold() {
    let source = r#"
        memory m 2 10
        export "grow" func grow
        func grow(n: i32) -> i32 { local.get n memory.grow return }"#;
    for_all_with(
        |config| {
            config.limits(Limits { memory_pages_max: 4, instances_max: 2, ..Limits::default() });
        },
        |engine| {
            let (mut store, instance) = instance(engine, source);
            let grow = instance.get_typed_func::<i32, i32>(&store, "grow").unwrap();
            assert_eq!(grow.call(&mut store, 3).unwrap(), -1);
            assert_eq!(grow.call(&mut store, 2).unwrap(), 2);
            let module = crate::support::module(engine, source);
            let linker = Linker::new(engine);
            linker.instantiate(&mut store, &module).unwrap();
            let error = linker.instantiate(&mut store, &module).unwrap_err();
            assert!(matches!(error, Error::Limit { name: "instances_max", .. }), "{error}");
        },
    );
}

#[test]
fn deadlocks_and_runaways_are_bounded_by_fuel() {
    let source = r#"
        import "env" "tick" func tick()
        export "spin" func spin
        func spin() {
        again:
          call tick
          br again
        }"#;
    for_all_with(
        |config| {
            config.consume_fuel(true);
        },
        |engine| {
            let mut linker = Linker::new(engine);
            linker
                .func_wrap("env", "tick", |mut caller: slotvm::Caller<'_, u32>| {
                    *caller.data_mut() += 1;
                })
                .unwrap();
            let (mut store, instance) = instance_with(engine, source, &linker, 0_u32);
            store.set_fuel(2001).unwrap();
            let spin = instance.get_typed_func::<(), ()>(&store, "spin").unwrap();
            let error = spin.call(&mut store, ()).unwrap_err();
            assert_eq!(error.trap_code(), Some(TrapCode::OutOfFuel));
            assert_eq!((*store.data(), store.get_fuel().unwrap()), (1000, 1));
        },
    );
}

/// Set in a child process whose address space is limited.
const LITTLE: &str = "SLOTVM_TEST_LITTLE_ADDRESS_SPACE";

#[test]
fn little_address_space_costs_checks_and_nothing_else() {
    if std::env::var_os(LITTLE).is_some() {
        return run_with_little_address_space();
    }
    let test = "limits::little_address_space_costs_checks_and_nothing_else";
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .env(LITTLE, "1")
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
}

fn run_with_little_address_space() {
    let limit = libc::rlimit { rlim_cur: 2 << 30, rlim_max: 2 << 30 };
    // SAFETY: the structure is complete; the limit ends with this process.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
    let source = r#"
        memory m 1 100
        export "get" func get
        func get(base: i32, index: i32) -> i32 {
          i32.const 1 memory.grow drop
          local.get base local.get index i32.load8_u_indexed 8 return
        }"#;
    for_all(|engine| {
        let (mut store, instance) = instance(engine, source);
        let get = instance.get_typed_func::<(i32, i32), i32>(&store, "get").unwrap();
        assert_eq!(get.call(&mut store, (65_536, 1)).unwrap(), 0);
        for (base, index) in [(-1, -1), (-1, 0), (0, -1), (7_000_000, 0)] {
            let error = get.call(&mut store, (base, index)).unwrap_err();
            assert_eq!(error.trap_code(), Some(TrapCode::MemoryOutOfBounds));
        }
    });
}

#[test]
#[cfg_attr(not(feature = "jit"), ignore = "needs native code")]
fn a_function_with_absurdly_many_operands_is_not_compiled() {
    // Each call gives a thousand results, which the end of its block forgets.
    let calls = "call g ".repeat(900);
    let blocks: String = (0..20).map(|i| format!("l{i}: {calls} unreachable\n")).collect();
    let results = vec!["i64"; 1_000].join(", ");
    let source = format!("func f() {{ {blocks} }}\nfunc g() -> ({results}) {{ unreachable }}");
    let engine = |tier| Engine::new(Config::new().tier(tier)).unwrap();
    let module = Module::from_text(&engine(Tier::Interpreter), &source).unwrap();
    let error = Module::from_verified(&engine(Tier::Jit), module.verified().clone()).unwrap_err();
    let message =
        "function f cannot be compiled: its instructions have more than 16777216 operands";
    assert_eq!(error.to_string(), message);
}

/// A function with very many edges back gets its registers in one pass, which only large inputs reach.
#[test]
#[cfg_attr(not(feature = "jit"), ignore = "needs native code")]
fn a_loop_with_very_many_edges_back_computes_the_same() {
    // Each round adds the number of the branch that ended it, and takes another one.
    let n = 17_000;
    let mut source = String::from(
        "export \"f\" func f\nfunc f(n: i32) -> i64 {\n  local sum: i64, at: i32\nagain:\n",
    );
    for i in 0..n {
        source += "  local.get n i32.const 7 i32.mul i32.const 65535 i32.and local.tee at\n";
        source += &format!("  local.get sum i64.const {i} i64.add local.set sum\n");
        source += &format!("  local.get n i32.const 1 i32.sub local.tee n i32.const {i}\n");
        source += "  i32.gt_s i32.and br_if again\n";
    }
    source += "  local.get sum return }";
    let run = |config: &Config| {
        let engine = Engine::new(config).unwrap();
        let module = module(&engine, &source);
        let one_pass = module.functions().iter().any(|f| f.work.effort == Effort::OnePass);
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        let f = instance.get_typed_func::<i32, i64>(&store, "f").unwrap();
        (f.call(&mut store, 1000).unwrap(), one_pass)
    };
    let (expected, _) = run(Config::new().tier(Tier::Interpreter));
    for slots in [SlotMode::Memory, SlotMode::Ssa] {
        assert_eq!(run(Config::new().tier(Tier::BEST).slots(slots)), (expected, true), "{slots}");
    }
}
