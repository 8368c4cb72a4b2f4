//! Every trap, with its code, its place and its backtrace.

use std::sync::atomic::{AtomicU32, Ordering};

use slotvm::{Config, Engine, Error, Linker, Tier, TrapCode, UpdateDeadline, Val};

use crate::support::{for_all, for_all_with, frames, instance, instance_with, marked};

/// Declarations for the bodies of the cases.
const PRELUDE: &str = r#"
type 0 = () -> ()
import "env" "host" func host()
memory mem 1 1
table t funcref 4 8
data d "0123"
elem e t at i32.const 1 func other, boom
elem p func other
frame_stack 1024 64
global zero: mut i32 = i32.const 0
func other(a: i64) -> i64 {
  local.get a return
}
func boom() {
  unreachable
}
export "main" func main
func main(n: i32) -> i32 {
  local.get n
  call victim ; called
  i32.const 1 i32.add
  return
}
"#;

/// The body of `victim(n: i32) -> i32`, called with `n`; the line marked `; trap` traps.
fn check(engine: &Engine, n: i32, code: TrapCode, body: &str) {
    let source = format!("{PRELUDE}\nfunc victim(n: i32) -> i32 {{\n{body}\n}}");
    let mut linker = Linker::new(engine);
    linker
        .func_wrap("env", "host", || Err::<(), _>(slotvm::Trap::new(TrapCode::Unreachable, [])))
        .unwrap();
    let (mut store, instance) = instance_with(engine, &source, &linker, ());
    let main = instance.get_typed_func::<i32, i32>(&store, "main").unwrap();
    // Twice: the first trap leaves everything as it was.
    for _ in 0..2 {
        let error = main.call(&mut store, n).unwrap_err();
        assert_eq!(error.trap_code(), Some(code), "{error}\n{body}");
        let expected =
            [("victim", marked(&source, "trap")[0]), ("main", marked(&source, "called")[0])];
        assert_eq!(frames(&error), expected.map(|(f, line)| (f.to_owned(), line)), "{body}");
        let Error::Trap(trap) = error else { unreachable!() };
        assert_eq!((trap.func, trap.offset), (trap.frames()[0].func, trap.frames()[0].offset));
    }
}

fn check_all(cases: &[(i32, TrapCode, &str)]) {
    for_all(|engine| {
        for &(n, code, body) in cases {
            check(engine, n, code, body);
        }
    });
}

#[test]
fn unreachable() {
    check_all(&[(0, TrapCode::Unreachable, "nop \n unreachable ; trap")]);
}

#[test]
fn memory() {
    let code = TrapCode::MemoryOutOfBounds;
    check_all(&[
        (65_536, code, "local.get n \n i32.load8_u ; trap \n return"),
        (65_533, code, "local.get n \n i32.load ; trap \n return"),
        (-1, code, "local.get n \n i32.load ; trap \n return"),
        (-1, code, "local.get n \n i32.load 4294967295 ; trap \n return"),
        (65_529, code, "local.get n \n f64.load ; trap \n f64.abs i32.trunc_sat_f64_s return"),
        (0, code, "local.get n \n i64.load16_s 65535 ; trap \n i32.wrap_i64 return"),
        (65_536, code, "local.get n i32.const 1 \n i32.store8 ; trap \n i32.const 0 return"),
        (-8, code, "local.get n i64.const 1 \n i64.store ; trap \n i32.const 0 return"),
        (2, code, "local.get n f32.const 1.0 \n f32.store 65531 ; trap \n i32.const 0 return"),
        // The result of the load is not used.
        (65_536, code, "local.get n \n i32.load ; trap \n drop i32.const 0 return"),
        // The store is overwritten.
        (
            65_536,
            code,
            "local.get n i32.const 1 \n i32.store ; trap \n local.get n i32.const 2 \n i32.store \n i32.const 0 return",
        ),
        // Two loads that one instruction could do.
        (
            65_536,
            code,
            "local.get n local.get n \n i32.load ; trap \n i32.add local.get n \n i32.load \n i32.add return",
        ),
    ]);
}

#[test]
fn indexed_memory() {
    let code = TrapCode::MemoryOutOfBounds;
    check_all(&[
        (65_536, code, "i32.const 0 local.get n \n i32.load8_u_indexed 1 ; trap \n return"),
        (-1, code, "local.get n local.get n \n i32.load_indexed 8 ; trap \n return"),
        (
            -1,
            code,
            "local.get n local.get n \n i64.load_indexed 8 4294967295 ; trap \n i32.wrap_i64 return",
        ),
        (-1, code, "i32.const 4 local.get n \n i32.load_indexed 4 ; trap \n return"),
        (
            -1,
            code,
            "local.get n i32.const 1 \n f64.load_indexed 1 ; trap \n i32.trunc_sat_f64_s return",
        ),
        (
            -1,
            code,
            "local.get n local.get n i64.const 1 \n i64.store_indexed 8 ; trap \n i32.const 0 return",
        ),
        (
            16_384,
            code,
            "i32.const 0 local.get n f32.const 1.0 \n f32.store_indexed 4 ; trap \n i32.const 0 return",
        ),
    ]);
}

#[test]
fn bulk_memory() {
    let code = TrapCode::MemoryOutOfBounds;
    check_all(&[
        (
            65_530,
            code,
            "local.get n i32.const 1 i32.const 7 \n memory.fill ; trap \n i32.const 0 return",
        ),
        (
            -1,
            code,
            "local.get n i32.const 1 i32.const 2 \n memory.fill ; trap \n i32.const 0 return",
        ),
        (
            65_537,
            code,
            "local.get n i32.const 1 i32.const 0 \n memory.fill ; trap \n i32.const 0 return",
        ),
        (
            65_530,
            code,
            "i32.const 0 local.get n i32.const 7 \n memory.copy ; trap \n i32.const 0 return",
        ),
        (
            65_530,
            code,
            "local.get n i32.const 0 i32.const 7 \n memory.copy ; trap \n i32.const 0 return",
        ),
        (
            2,
            code,
            "i32.const 0 local.get n i32.const 3 \n memory.init d ; trap \n i32.const 0 return",
        ),
        (
            1,
            code,
            "data.drop d i32.const 0 i32.const 0 local.get n \n memory.init d ; trap \n i32.const 0 return",
        ),
    ]);
}

#[test]
fn tables() {
    let code = TrapCode::TableOutOfBounds;
    check_all(&[
        (4, code, "local.get n \n table.get t ; trap \n ref.is_null return"),
        (-1, code, "local.get n ref.null funcref \n table.set t ; trap \n i32.const 0 return"),
        (
            4,
            code,
            "local.get n ref.null funcref i32.const 1 \n table.fill t ; trap \n i32.const 0 return",
        ),
        (
            2,
            code,
            "i32.const 0 i32.const 3 local.get n \n table.copy t t ; trap \n i32.const 0 return",
        ),
        (
            1,
            code,
            "i32.const 0 local.get n i32.const 1 \n table.init p t ; trap \n i32.const 0 return",
        ),
        (
            1,
            code,
            "elem.drop p i32.const 0 i32.const 0 local.get n \n table.init p t ; trap \n i32.const 0 return",
        ),
        (4, code, "local.get n \n call_indirect 0 t ; trap \n i32.const 0 return"),
        (-1, code, "local.get n \n call_indirect 0 t ; trap \n i32.const 0 return"),
    ]);
}

#[test]
fn indirect_calls() {
    check_all(&[
        (
            0,
            TrapCode::IndirectCallToNull,
            "local.get n \n call_indirect 0 t ; trap \n i32.const 0 return",
        ),
        (
            1,
            TrapCode::BadSignature,
            "local.get n \n call_indirect 0 t ; trap \n i32.const 0 return",
        ),
        (1, TrapCode::BadSignature, "local.get n \n call_indirect () -> i32, t ; trap \n return"),
    ]);
}

#[test]
fn integers() {
    use TrapCode::{BadConversionToInteger, IntegerDivisionByZero, IntegerOverflow};
    check_all(&[
        (0, IntegerDivisionByZero, "i32.const 5 local.get n \n i32.div_s ; trap \n return"),
        (0, IntegerDivisionByZero, "i32.const 5 local.get n \n i32.div_u ; trap \n return"),
        (0, IntegerDivisionByZero, "i32.const 5 local.get n \n i32.rem_s ; trap \n return"),
        (0, IntegerDivisionByZero, "i32.const 5 local.get n \n i32.rem_u ; trap \n return"),
        (
            0,
            IntegerDivisionByZero,
            "i32.const 5 local.get n \n i32.div_s ; trap \n drop i32.const 1 return",
        ),
        (
            0,
            IntegerDivisionByZero,
            "i64.const 5 local.get n i64.extend_i32_s \n i64.rem_u ; trap \n i32.wrap_i64 return",
        ),
        (
            0,
            IntegerDivisionByZero,
            "i64.const 5 i64.const 0 \n i64.div_s ; trap \n i32.wrap_i64 return",
        ),
        (-1, IntegerOverflow, "i32.const -2147483648 local.get n \n i32.div_s ; trap \n return"),
        (
            -1,
            IntegerOverflow,
            "i64.const -9223372036854775808 local.get n i64.extend_i32_s \n i64.div_s ; trap \n i32.wrap_i64 return",
        ),
        (0, BadConversionToInteger, "f64.const nan \n i32.trunc_f64_s ; trap \n return"),
        (
            0,
            BadConversionToInteger,
            "f32.const nan \n i64.trunc_f32_u ; trap \n i32.wrap_i64 return",
        ),
        (0, IntegerOverflow, "f64.const 4294967296.0 \n i32.trunc_f64_u ; trap \n return"),
        (0, IntegerOverflow, "f64.const -1.0 \n i32.trunc_f64_u ; trap \n return"),
        (0, IntegerOverflow, "f32.const 1e30 \n i64.trunc_f32_s ; trap \n i32.wrap_i64 return"),
    ]);
}

#[test]
fn traps_of_host_functions_are_at_the_call() {
    check_all(&[(0, TrapCode::Unreachable, "call host ; trap \n i32.const 0 return")]);
}

#[test]
fn a_tail_call_leaves_no_frame_for_a_trap_of_the_host() {
    let source = r#"
        import "env" "host" func host()
        export "outer" func outer
        func outer() { call tail return }
        export "tail" func tail
        func tail() { nop return_call host }"#;
    for_all(|engine| {
        let mut linker = Linker::new(engine);
        let trap =
            || -> Result<(), Error> { Err(slotvm::Trap::new(TrapCode::Unreachable, []).into()) };
        linker.func_wrap("env", "host", trap).unwrap();
        let (mut store, instance) = instance_with(engine, source, &linker, ());
        for (name, n_frames) in [("outer", 1), ("tail", 0)] {
            let func = instance.get_typed_func::<(), ()>(&store, name).unwrap();
            let error = func.call(&mut store, ()).unwrap_err();
            assert_eq!(error.trap_code(), Some(TrapCode::Unreachable));
            assert_eq!(frames(&error).len(), n_frames, "{name}: {error}");
        }
    });
}

/// Frames of code that belongs to no function, as that which calls the host, are neither listed nor counted.
#[test]
fn deep_backtraces_have_as_many_frames_whatever_traps() {
    let source = r#"
        import "env" "host" func host()
        export "deep" func deep
        func deep(what: i32, n: i32) {
          local.get n i32.eqz br_if end
          local.get what local.get n i32.const 1 i32.sub call deep return
        end:
          local.get what i32.eqz br_if trap
          call host
        again:
          br again
        trap:
          unreachable
        }"#;
    for_all_with(
        |config| {
            config.epoch_interruption(true);
        },
        |engine| {
            for depth in [1, 2, 99, 100, 101, 250] {
                for code in
                    [TrapCode::Unreachable, TrapCode::MemoryOutOfBounds, TrapCode::Interrupted]
                {
                    let mut linker = Linker::new(engine);
                    let fails = code == TrapCode::MemoryOutOfBounds;
                    let host = move || match fails {
                        true => Err(slotvm::Trap::new(TrapCode::MemoryOutOfBounds, [])),
                        false => Ok(()),
                    };
                    linker.func_wrap("env", "host", host).unwrap();
                    let (mut store, instance) = instance_with(engine, source, &linker, 0);
                    store.set_epoch_deadline(0);
                    // Each function polls when it starts, and the loop at the end for ever.
                    store.epoch_deadline_callback(move |mut context| {
                        *context.data_mut() += 1;
                        let goes_on = *context.data() <= depth;
                        Ok(if goes_on {
                            UpdateDeadline::Continue(0)
                        } else {
                            UpdateDeadline::Interrupt
                        })
                    });
                    let deep = instance.get_typed_func::<(i32, i32), ()>(&store, "deep").unwrap();
                    let what = i32::from(code != TrapCode::Unreachable);
                    let error = deep.call(&mut store, (what, depth - 1)).unwrap_err();
                    let Error::Trap(trap) = error else { panic!("{error}") };
                    assert_eq!(trap.code, code);
                    let n_listed = depth.min(100) as usize;
                    let n_frames = (trap.frames().len(), trap.backtrace().n_frames_omitted());
                    assert_eq!(
                        n_frames,
                        (n_listed, depth as u64 - n_listed as u64),
                        "{code}, {depth}"
                    );
                }
            }
        },
    );
}

#[test]
fn the_frame_stack_overflows_at_the_start_of_the_function_that_needs_it() {
    let source = PRELUDE.replace("frame_stack 1024 64", "frame_stack 1024 40")
        + "func victim(n: i32) -> i32 {
             local a: i64, b: i64, c: i64, d: i64, e: i64
             local.addr a ; trap
             global.set zero local.addr b global.set zero
             local.addr c global.set zero local.addr d global.set zero
             local.addr e global.set zero
             local.get n i32.eqz br_if done
             local.get n i32.const 1 i32.sub
             call victim ; again
             return
           done:
             i32.const 0 return
           }";
    for_all(|engine| {
        let mut linker = Linker::new(engine);
        linker.func_wrap("env", "host", || {}).unwrap();
        let (mut store, instance) = instance_with(engine, &source, &linker, ());
        let main = instance.get_typed_func::<i32, i32>(&store, "main").unwrap();
        for _ in 0..2 {
            assert_eq!(main.call(&mut store, 0).unwrap(), 1);
            let error = main.call(&mut store, 1).unwrap_err();
            assert_eq!(error.trap_code(), Some(TrapCode::FrameStackOverflow));
            let lines: Vec<u32> = frames(&error).into_iter().map(|(_, line)| line).collect();
            let line = |mark| marked(&source, mark)[0];
            assert_eq!(lines, [line("trap"), line("again"), line("called")]);
        }
    });
}

#[test]
fn infinite_recursion_is_a_trap_with_a_backtrace() {
    let source = r#"
        export "direct" func direct
        export "mutual" func mutual
        export "indirect" func indirect
        table t funcref 1
        elem e t at i32.const 0 func indirect
        func direct(n: i64) -> i64 {
          local.get n i64.const 1 i64.add call direct i64.const 1 i64.add return
        }
        func mutual(n: i64) -> i64 {
          local.get n call partner i64.const 1 i64.add return
        }
        func partner(n: i64) -> i64 {
          local.get n call mutual i64.const 3 i64.mul return
        }
        func indirect(n: i64) -> i64 {
          local.get n i32.const 0 call_indirect (i64) -> i64, t i64.const 1 i64.add return
        }"#;
    for_all(|engine| {
        let (mut store, instance) = instance(engine, source);
        for name in ["direct", "mutual", "indirect", "direct"] {
            let func = instance.get_typed_func::<i64, i64>(&store, name).unwrap();
            let error = func.call(&mut store, 0).unwrap_err();
            let Error::Trap(trap) = error else { panic!("{error}") };
            assert_eq!(trap.code, TrapCode::StackOverflow);
            assert_eq!(trap.offset, 0);
            assert_eq!(trap.frames().len(), slotvm_runtime::limits::TRACE_FRAMES_MAX);
            assert!(
                trap.backtrace().n_frames_omitted() > 1000,
                "{}",
                trap.backtrace().n_frames_omitted()
            );
            assert!(trap.frames()[1..].iter().all(|frame| frame.offset > 0));
        }
    });
}

#[test]
fn tail_calls_leave_no_frames() {
    let source = r#"
        export "count" func count
        func count(n: i64, sum: i64) -> i64 {
          local.get n i64.eqz br_if done
          local.get n i64.const 1 i64.sub
          local.get sum local.get n i64.add
          return_call other
        done:
          local.get sum i64.const 500000500000 i64.sub
          i64.const 7 local.get sum i64.const 500000500000 i64.sub i64.div_s ; trap
          i64.add return
        }
        func other(n: i64, sum: i64) -> i64 {
          local.get n local.get sum i32.const 0 return_call_indirect (i64, i64) -> i64, t
        }
        table t funcref 1
        elem e t at i32.const 0 func count
        "#;
    for_all_with(
        |config: &mut Config| {
            config.consume_fuel(true).deterministic_stack(Some(100));
        },
        |engine| {
            let (mut store, instance) = instance(engine, source);
            store.set_fuel(u64::MAX / 4).unwrap();
            let count = instance.get_typed_func::<(i64, i64), i64>(&store, "count").unwrap();
            assert_eq!(count.call(&mut store, (10, 0)).unwrap(), 55 - 500_000_500_000);
            let error = count.call(&mut store, (1_000_000, 0)).unwrap_err();
            assert_eq!(error.trap_code(), Some(TrapCode::IntegerDivisionByZero));
            assert_eq!(frames(&error), [("count".to_owned(), marked(source, "trap")[0])]);
        },
    );
}

#[test]
fn untyped_calls_trap_in_the_same_way() {
    for_all(|engine| {
        let (mut store, instance) = instance(
            engine,
            r#"export "f" func f
               func f(a: i32) -> (i32, f64) { i32.const 6 local.get a i32.div_u f64.const 0.5 return }"#,
        );
        let f = instance.get_func(&store, "f").unwrap();
        let mut results = [Val::I32(0), Val::I32(0)];
        f.call(&mut store, &[Val::I32(2)], &mut results).unwrap();
        assert_eq!((results[0].unwrap_i32(), results[1].unwrap_f64()), (3, 0.5));
        let error = f.call(&mut store, &[Val::I32(0)], &mut results).unwrap_err();
        assert_eq!(error.trap_code(), Some(TrapCode::IntegerDivisionByZero));
    });
}

/// Set in a child process that gets signals all the time.
const TIMER: &str = "SLOTVM_TEST_TIMER";

static TICKS: AtomicU32 = AtomicU32::new(0);

#[test]
fn signals_of_others_do_not_disturb() {
    if std::env::var_os(TIMER).is_some() {
        return trap_under_signals();
    }
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "traps::signals_of_others_do_not_disturb"])
        .env(TIMER, "1")
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
}

/// Traps of all kinds while a timer interrupts the process every 200 microseconds.
fn trap_under_signals() {
    extern "C" fn tick(_: libc::c_int) {
        TICKS.fetch_add(1, Ordering::Relaxed);
    }
    let every = libc::timeval { tv_sec: 0, tv_usec: 200 };
    let timer = libc::itimerval { it_interval: every, it_value: every };
    // SAFETY: the handler does nothing but an atomic addition; the structures are complete.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = tick as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGALRM, &action, std::ptr::null_mut()), 0);
        assert_eq!(libc::setitimer(libc::ITIMER_REAL, &timer, std::ptr::null_mut()), 0);
    }
    let source = r#"
        memory m 1
        export "f" func f
        func f(kind: i32) -> i32 {
          local.get kind br_table [load, divide, recurse] unreachable
        load: i32.const -1 i32.load return
        divide: i32.const 1 i32.const 0 i32.div_s return
        recurse: local.get kind call f i32.const 1 i32.add return
        unreachable: unreachable
        }"#;
    let engine = Engine::new(Config::new().tier(Tier::BEST)).unwrap();
    let (mut store, instance) = instance(&engine, source);
    let f = instance.get_typed_func::<i32, i32>(&store, "f").unwrap();
    let codes = [
        TrapCode::MemoryOutOfBounds,
        TrapCode::IntegerDivisionByZero,
        TrapCode::StackOverflow,
        TrapCode::Unreachable,
    ];
    let mut n_traps = 0;
    while n_traps < 4000 || TICKS.load(Ordering::Relaxed) < 500 {
        for (kind, code) in (0..).zip(codes) {
            assert_eq!(f.call(&mut store, kind).unwrap_err().trap_code(), Some(code));
            n_traps += 1;
        }
    }
}

/// The frame must not be too large: without signals a function compares with the limit of the stack while its frame
/// is in place.
#[test]
fn a_function_with_a_frame_that_is_too_large_overflows_without_signals() {
    let source = |n_locals: usize| {
        let mut body = String::new();
        for local in 1..=n_locals {
            body += &format!("  local.get {} i64.const 1 i64.add local.set {local}\n", local - 1);
        }
        format!(
            "export \"sum\" func sum
             func sum(n: i64) -> i64 {{
               local {n_locals} i64
               local.get n i64.eqz br_if done
             {body}
             done:
               local.get {n_locals} return
             }}"
        )
    };
    for (n_locals, overflows_without) in [(1_000, false), (20_000, true)] {
        for without in [false, true] {
            let mut config = Config::new();
            config.tier(Tier::BEST);
            config.slots(slotvm::SlotMode::Memory).signals_based_traps(!without);
            let engine = Engine::new(&config).unwrap();
            let (mut store, instance) = instance(&engine, &source(n_locals));
            let sum = instance.get_typed_func::<i64, i64>(&store, "sum").unwrap();
            if without && overflows_without && engine.tier() != slotvm::Tier::Interpreter {
                let error = sum.call(&mut store, 5).unwrap_err();
                assert_eq!(error.trap_code(), Some(TrapCode::StackOverflow));
                let Error::Trap(trap) = error else { unreachable!() };
                assert_eq!((trap.offset, trap.frames().len()), (0, 1));
            } else {
                assert_eq!(sum.call(&mut store, 5).unwrap(), 5 + n_locals as i64);
            }
        }
    }
}
