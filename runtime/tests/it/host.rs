//! Host functions: what they get, may do and give, and that guest code survives their failures.

use std::panic::{AssertUnwindSafe, catch_unwind};

use slotvm_bytecode::TrapCode;
use slotvm_bytecode::ValType::{F32, FuncRef, I32, I64};
use slotvm_runtime::{Error, FuncHandle, InstanceId, Limits, Store, StoreConfig, Trap};

use crate::support::{Program, call, func, host_func, i32, module, stack_cells};

#[test]
fn parameters_and_results() {
    let source = "import \"env\" \"mix\" func mix(i32, i64, f32) -> (f32, i64)
         func f(a: i64) -> (i64, f32, i64) {
           i64.const 5 i32.const -2 local.get a f32.const 0.5 call mix return }
         func tail(a: i64) -> (f32, i64) { local 3 i64
           i32.const -2 local.get a f32.const 0.5 return_call mix }
         func above_tail(a: i64) -> (i64, f32, i64) { i64.const 6 local.get a call tail return }";
    let mut program = Program::with_imports(StoreConfig::default(), source, |store| {
        vec![host_func(store, &[I32, I64, F32], &[F32, I64], |call| {
            assert_eq!(call.cells[0], i32(-2));
            let sum = call.cells[1] + 1;
            // Garbage above 32 bits does not reach the guest.
            call.cells[0] = 0xdead_0000_0000_0000 | call.cells[2];
            call.cells[1] = sum;
            Ok(())
        })]
    })
    .unwrap();
    let half = u64::from(0.5f32.to_bits());
    assert_eq!(program.call("f", &[41]).unwrap(), [5, half, 42]);
    assert_eq!(program.call("tail", &[41]).unwrap(), [half, 42]);
    assert_eq!(program.call("above_tail", &[41]).unwrap(), [6, half, 42]);
    let mix = program.func("mix");
    assert_eq!(call(&mut program.store, mix, &[i32(-2), 1, half]).unwrap(), [half, 2]);
}

#[test]
fn many_results_fit_behind_a_tail_call() {
    let source = "import \"env\" \"many\" func many() -> (i64, i64, i64, i64, i64, i64, i64, i64,
           i64, i64, i64, i64, i64, i64, i64, i64, i64, i64)
         func f() -> (i64, i64, i64, i64, i64, i64, i64, i64,
           i64, i64, i64, i64, i64, i64, i64, i64, i64, i64) { return_call many }";
    let mut program = Program::with_imports(StoreConfig::default(), source, |store| {
        vec![host_func(store, &[], &[I64; 18], |call| {
            call.cells.iter_mut().zip(1..).for_each(|(cell, i)| *cell = i);
            Ok(())
        })]
    })
    .unwrap();
    assert_eq!(program.call("f", &[]).unwrap(), (1..=18).collect::<Vec<_>>());
}

#[test]
fn a_host_function_knows_who_calls_and_reaches_memory_and_data() {
    let source = "import \"env\" \"log\" func log(i32, i32)
         memory 0 1 data d at i32.const 8 \"hello\"
         func f() { i32.const 8 i32.const 5 call log return }";
    let mut store = Store::new(StoreConfig::default(), Box::new(Vec::<String>::new()));
    let log = host_func(&mut store, &[I32, I32], &[], |call| {
        let instance = call.instance.expect("called by an instance");
        let memory = call.store.instance_memory(instance).expect("it has a memory");
        let text = call.store.memory(memory).slice(call.cells[0], call.cells[1]);
        let text = String::from_utf8(text.map_err(|code| Trap::new(code, []))?.to_vec());
        let lines = call.store.data_mut().downcast_mut::<Vec<String>>().unwrap();
        lines.push(format!("{}: {}", instance.number(), text.map_err(Error::host)?));
        Ok(())
    });
    let module = module(source);
    for _ in 0..2 {
        let instance = store.instantiate(module.clone(), &[log]).unwrap();
        let f = func(&store, instance, "f");
        call(&mut store, f, &[]).unwrap();
    }
    let lines = store.data().downcast_ref::<Vec<String>>().unwrap();
    assert_eq!(lines, &["0: hello", "1: hello"]);
}

#[test]
fn errors_and_traps_of_the_host_come_out() {
    let source = "import \"env\" \"fail\" func fail(i32)
         func f(a: i32) { nop local.get a .line 4 call fail return }
         func tail(a: i32) { local.get a return_call fail }
         func g(a: i32) { local.get a .line 6 call tail return }";
    let mut program = Program::with_imports(StoreConfig::default(), source, |store| {
        vec![host_func(store, &[I32], &[], |call| match call.cells[0] {
            0 => Err(Error::host("no such file")),
            _ => Err(Trap::new(TrapCode::Unreachable, []).into()),
        })]
    })
    .unwrap();
    let error = program.call("f", &[0]).unwrap_err();
    assert!(matches!(error, Error::Host(_)));
    assert_eq!(error.to_string(), "no such file");
    program.expect_trap("f", &[1], TrapCode::Unreachable, ("f", 4));
    // The frame of a tail call is gone when its callee fails.
    program.expect_trap("g", &[1], TrapCode::Unreachable, ("g", 6));
    let trap = program.trap("tail", &[1]);
    assert!(trap.frames().is_empty());
}

/// A program whose host function calls the guest function that its parameter refers to, with a number
/// one less than its own.
fn reentrant(config: StoreConfig) -> Program {
    let source = "import \"env\" \"back\" func back(funcref, i64) -> i64
         memory 0 1 frame_stack 1024 4096
         table t funcref 1
         elem e t at i32.const 0 func down, trapping
         func down(n: i64) -> i64 { local x: i64
           local.addr x i64.const 7 i64.store 0 local.addr x drop
           local.addr x i32.const 1 i32.and drop
           local.get n i64.eqz br_if end
           ref.func down local.get n call back
           local.get x i64.add return
         end: i64.const 100 return }
         func trapping(n: i64) -> i64 { local x: i64
           local.addr x i32.const 1 i32.and drop
           ref.func trapping local.get n .line 3 call back return }
         func address() -> i32 { local x: i64 local.addr x return }";
    let source = source.replace("funcref 1\n", "funcref 2\n");
    Program::with_imports(config, &source, |store| {
        vec![host_func(store, &[FuncRef, I64], &[I64], |call| {
            let func = FuncHandle::from_cell(call.cells[0]).expect("not null");
            let mut cells = [call.cells[1].wrapping_sub(1)];
            if call.cells[1] == 0 {
                return Err(Trap::new(TrapCode::Unreachable, []).into());
            }
            call.store.call(func, &mut cells)?;
            call.cells[0] = cells[0];
            Ok(())
        })]
    })
    .unwrap()
}

#[test]
fn host_functions_call_back_into_guest_code() {
    for config in [StoreConfig::default(), stack_cells(1000)] {
        let mut program = reentrant(config);
        assert_eq!(program.call("down", &[0]).unwrap(), [100]);
        assert_eq!(program.call("down", &[20]).unwrap(), [240]);
        assert_eq!(program.call("address", &[]).unwrap(), [1024 + 4096 - 8]);
    }
}

#[test]
fn a_trap_behind_several_calls_from_the_host_unwinds_them_all() {
    let mut program = reentrant(StoreConfig::default());
    let trap = program.trap("trapping", &[5]);
    assert_eq!(trap.code, TrapCode::Unreachable);
    let lines: Vec<_> = trap.frames().iter().map(|frame| frame.line()).collect();
    assert_eq!(lines, [Some(3); 6]);
    assert_eq!(program.call("address", &[]).unwrap(), [1024 + 4096 - 8]);
    assert_eq!(program.call("down", &[20]).unwrap(), [240]);
}

#[test]
fn calls_from_the_host_are_limited() {
    let limits = Limits { host_calls_max: 10, ..Limits::default() };
    let mut program = reentrant(StoreConfig { limits, ..StoreConfig::default() });
    assert_eq!(program.call("down", &[9]).unwrap(), [163]);
    let error = program.call("down", &[10]).unwrap_err();
    assert_eq!(error.to_string(), "limit host_calls_max (10) exceeded: 11 wanted");
    assert_eq!(program.call("down", &[9]).unwrap(), [163]);
}

#[test]
fn the_deterministic_stack_is_shared_across_calls_from_the_host() {
    // 6 locals and operands and 4 more for each call.
    let n_cells = reentrant(StoreConfig::default())
        .store
        .module(InstanceId::from_number(0))
        .body(1)
        .unwrap()
        .n_cells();
    let cost = u64::from(n_cells) + 4;
    let mut program = reentrant(stack_cells(cost * 5));
    assert_eq!(program.call("down", &[4]).unwrap(), [128]);
    let trap = program.trap("down", &[5]);
    assert_eq!((trap.code, trap.offset, trap.frames().len()), (TrapCode::StackOverflow, 0, 6));
    assert_eq!(program.call("down", &[4]).unwrap(), [128]);
}

#[test]
fn a_failed_call_from_a_host_function_leaves_the_frames_below_alone() {
    let source = "import \"env\" \"try\" func try(i64) -> i64
         memory 0 1 frame_stack 1024 64
         func f(n: i64) -> i64 { local x: i64, y: i64
           i64.const 30 local.set y
           local.addr x i64.const 5 i64.store 0 local.addr x i32.eqz drop
           i64.const 1000 local.get n call try i64.add local.get x i64.add local.get y i64.add
           return }
         func bad(n: i64) -> i64 { local x: i64, y: i64
           local.addr x i32.eqz drop local.addr y i32.eqz drop
           local.get n i64.eqz br_if now
           local.get n i64.const 1 i64.sub call bad return
         now: unreachable }";
    for panics in [false, true] {
        let mut program = Program::with_imports(StoreConfig::default(), source, |store| {
            vec![host_func(store, &[I64], &[I64], move |call| {
                let bad = func(call.store, call.instance.expect("an instance calls"), "bad");
                let mut cells = [call.cells[0]];
                if panics {
                    let result = catch_unwind(AssertUnwindSafe(|| {
                        assert!(call.store.call(bad, &mut cells).is_err());
                        panic!("by the host");
                    }));
                    assert!(result.is_err());
                } else {
                    assert!(call.store.call(bad, &mut cells).is_err());
                }
                Ok(())
            })]
        })
        .unwrap();
        // Two of `bad` fit beside `f`, more overflow; both fail.
        for n in [0, 2, 5] {
            assert_eq!(program.call("f", &[n]).unwrap(), [1035 + n]);
        }
    }
}

#[test]
fn a_panic_of_the_host_passes_through_and_leaves_the_store_usable() {
    let source = "import \"env\" \"panic\" func panic(i64)
         memory 0 1 frame_stack 1024 64
         func f(n: i64) { local x: i64
           local.addr x i32.eqz drop
           local.get n i64.eqz br_if now
           local.get n i64.const 1 i64.sub call f return
         now: i64.const 1 call panic return }
         func address() -> i32 { local x: i64 local.addr x return }";
    for config in [StoreConfig::default(), stack_cells(100)] {
        let mut program = Program::with_imports(config, source, |store| {
            vec![host_func(store, &[I64], &[], |_| panic!("by the host"))]
        })
        .unwrap();
        for _ in 0..20 {
            let result = catch_unwind(AssertUnwindSafe(|| program.call("f", &[3])));
            let panic = result.unwrap_err();
            assert_eq!(panic.downcast_ref(), Some(&"by the host"));
        }
        assert_eq!(program.call("address", &[]).unwrap(), [1080]);
    }
}

#[test]
fn wrong_cells_are_refused() {
    let source = "import \"env\" \"make\" func make() -> funcref
         func f(r: funcref) -> i32 { local.get r ref.is_null return }
         func g() -> i32 { call make ref.is_null return }";
    let mut program = Program::with_imports(StoreConfig::default(), source, |store| {
        vec![host_func(store, &[], &[FuncRef], |call| {
            call.cells[0] = 1234;
            Ok(())
        })]
    })
    .unwrap();
    assert_eq!(program.call("f", &[0]).unwrap(), [1]);
    let f = program.func("f");
    assert_eq!(program.call("f", &[f.cell()]).unwrap(), [0]);
    for (func, cells) in [
        (f, &mut [1234][..]),
        (f, &mut []),
        (f, &mut [0, 0]),
        (program.func("g"), &mut [0]),
        // Behind all functions, between two of them, and before all.
        (FuncHandle::from_cell(99 * f.cell()).unwrap(), &mut []),
        (FuncHandle::from_cell(f.cell() + 1).unwrap(), &mut []),
        (FuncHandle::from_cell(1).unwrap(), &mut []),
    ] {
        let result = program.store.call(func, cells);
        assert!(matches!(result, Err(Error::Usage(_))), "{result:?}");
    }
}

#[test]
fn a_host_function_can_link_and_run_another_module() {
    let source = "import \"env\" \"load\" func load(i64) -> i64
         func f(n: i64) -> i64 { i64.const 3 local.get n call load i64.mul return }";
    let other = module("func square(n: i64) -> i64 { local.get n local.get n i64.mul return }");
    let mut program = Program::with_imports(StoreConfig::default(), source, |store| {
        vec![host_func(store, &[I64], &[I64], move |host| {
            let instance = host.store.instantiate(other.clone(), &[])?;
            let square = func(host.store, instance, "square");
            host.store.call(square, host.cells)
        })]
    })
    .unwrap();
    assert_eq!(program.call("f", &[5]).unwrap(), [75]);
    assert_eq!(program.call("f", &[6]).unwrap(), [108]);
}

/// Set in a child process to what its host function does with the store that it has borrowed.
const STEAL: &str = "SLOTVM_TEST_STEAL_STORE";

#[test]
fn whoever_steals_the_store_is_stopped() {
    use std::os::unix::process::ExitStatusExt as _;

    if let Ok(how) = std::env::var(STEAL) {
        return steal(how == "drop");
    }
    for (how, message) in [
        ("drop", "a host function dropped the store that it was called in"),
        ("keep", "a host function replaced the store that it was called in"),
    ] {
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "host::whoever_steals_the_store_is_stopped", "--nocapture"])
            .env(STEAL, how)
            .output()
            .unwrap();
        assert_eq!(child.status.signal(), Some(libc::SIGABRT), "{how}: {child:?}");
        let printed = String::from_utf8_lossy(&child.stderr);
        assert!(printed.contains(message), "{how}: {printed}");
    }
}

fn steal(drops: bool) {
    let source = "import \"env\" \"steal\" func steal() func f() { call steal return }";
    let mut program = Program::with_imports(StoreConfig::default(), source, |store| {
        vec![host_func(store, &[], &[], move |call| {
            let other = Store::new(StoreConfig::default(), Box::new(()));
            let stolen = std::mem::replace(call.store, other);
            if drops {
                drop(stolen)
            } else {
                std::mem::forget(stolen)
            }
            Ok(())
        })]
    })
    .unwrap();
    drop(program.call("f", &[]));
}

/// A host function may put other cells in the place of its own, but not have those checked instead.
#[test]
fn the_results_that_are_checked_are_those_that_are_taken() {
    let source = "
        import \"env\" \"forge\" func forge() -> funcref
        func f() -> i32 { call forge ref.is_null return }";
    let mut program = Program::with_imports(StoreConfig::default(), source, |store| {
        vec![host_func(store, &[], &[FuncRef], |call| {
            call.cells[0] = 33;
            call.cells = Box::leak(Box::new([0]));
            Ok(())
        })]
    })
    .unwrap();
    let error = program.call("f", &[]).unwrap_err();
    assert_eq!(error.to_string(), "unknown function 33 in the store");
}

/// Each call that a host function makes takes the host's stack.
#[test]
fn running_out_of_the_stack_of_the_host_is_a_trap() {
    let run = || {
        let limits = Limits { host_calls_max: u32::MAX, ..Limits::default() };
        let mut program = reentrant(StoreConfig { limits, ..StoreConfig::default() });
        for _ in 0..2 {
            let trap = program.trap("down", &[100_000]);
            assert_eq!(trap.code, TrapCode::StackOverflow);
            assert_eq!(program.call("down", &[5]).unwrap(), [135]);
        }
    };
    std::thread::Builder::new().stack_size(256 << 10).spawn(run).unwrap().join().unwrap();
}

/// A panic of the hook for tracing leaves the frames below the call as they were.
#[test]
fn a_panic_while_tracing_does_not_take_the_stack_with_it() {
    let source = "import \"env\" \"trace\" func trace()
         table t funcref 1
         elem e t at i32.const 0 func g
         func g() -> i64 { i64.const 1 return }
         func f(a: i64) -> i64 { local.get a call trace i64.const 2 i64.add return }";
    let mut program = Program::with_imports(StoreConfig::default(), source, |store| {
        vec![host_func(store, &[], &[], |call| {
            let g = func(call.store, call.instance.unwrap(), "g");
            call.store.set_trace(Some(std::sync::Arc::new(|_| panic!("by the hook"))));
            let traced = || call.store.call(g, &mut [0]);
            let panic = catch_unwind(AssertUnwindSafe(traced)).unwrap_err();
            assert_eq!(panic.downcast_ref(), Some(&"by the hook"));
            call.store.set_trace(None);
            let mut cells = [0];
            call.store.call(g, &mut cells)?;
            assert_eq!(cells, [1]);
            Ok(())
        })]
    })
    .unwrap();
    assert_eq!(program.call("f", &[40]).unwrap(), [42]);
}

/// Functions without parameters, locals and operands have no cells, only frames.
#[test]
fn frames_without_cells_wait_for_a_call_that_fails() {
    let source = "import \"env\" \"back\" func back() func f() { call back return }
         func g() { unreachable }";
    let mut program = Program::with_imports(StoreConfig::default(), source, |store| {
        vec![host_func(store, &[], &[], |call| {
            let g = func(call.store, call.instance.unwrap(), "g");
            call.store.call(g, &mut [])
        })]
    })
    .unwrap();
    let trap = program.trap("f", &[]);
    let names: Vec<_> = trap.frames().iter().map(|frame| frame.func_name()).collect();
    assert_eq!(names, ["g", "f"]);
}
