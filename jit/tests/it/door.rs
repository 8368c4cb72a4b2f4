//! Tests of the low-level API: C functions of compiled code, by their addresses.

mod host_addresses;
mod imports;
mod refusals;
mod slot_form;

use std::sync::Arc;
use std::thread;

use slotvm::raw::{CFunction, Code, Compiler, Context};
use slotvm::{Config, Engine, SlotMode, Tier, TrapCode};

type Unary = unsafe extern "C" fn(*mut Context, i64) -> i64;
type Binary = unsafe extern "C" fn(*mut Context, i64, i64) -> i64;

/// Engines that make C functions, all slot modes, with signals and without.
fn engines() -> Vec<Engine> {
    let engine = |slots, signals| {
        Engine::new(Config::new().tier(Tier::BEST).slots(slots).signals_based_traps(signals))
            .unwrap()
    };
    SlotMode::ALL.into_iter().flat_map(|slots| [true, false].map(|s| engine(slots, s))).collect()
}

fn compile(engine: &Engine, source: &str) -> Code {
    Compiler::new(engine).unwrap().compile_text(source).unwrap()
}

/// The exported function of that name.
fn get<F: CFunction>(code: &Code, name: &str) -> F {
    code.get(name).unwrap()
}

fn status_of(code: TrapCode) -> u32 {
    code.number().into()
}

#[test]
fn functions_compute_and_call_each_other() {
    for engine in engines() {
        let code = compile(
            &engine,
            r#"
            export "sum_of_squares" func sum_of_squares
            export "fib" func fib
            export "even" func even
            func square(n: i64) -> i64 { local.get n  local.get n  i64.mul  return }
            func sum_of_squares(n: i64) -> i64 {
              local sum: i64
            next:
              local.get n  i64.eqz  br_if done
              local.get n  call square  local.get sum  i64.add  local.set sum
              local.get n  i64.const 1  i64.sub  local.set n
              br next
            done:
              local.get sum  return
            }
            func fib(n: i64) -> i64 {
              local.get n  i64.const 2  i64.lt_s  br_if small
              local.get n  i64.const 1  i64.sub  call fib
              local.get n  i64.const 2  i64.sub  call fib
              i64.add  return
            small:
              local.get n  return
            }
            func even(n: i64) -> i64 {
              local.get n  i64.eqz  br_if yes
              local.get n  i64.const 1  i64.sub  return_call odd
            yes: i64.const 1  return
            }
            func odd(n: i64) -> i64 {
              local.get n  i64.eqz  br_if no
              local.get n  i64.const 1  i64.sub  return_call even
            no: i64.const 0  return
            }"#,
        );
        let call = |name: &str, n| {
            let mut context = Context::new(&engine);
            // SAFETY: the code lives, the context is new.
            let result = unsafe { get::<Unary>(&code, name)(&mut context, n) };
            context.check().unwrap();
            result
        };
        assert_eq!(call("sum_of_squares", 10), 385);
        assert_eq!(call("fib", 20), 6765);
        // Tail calls take no stack.
        assert_eq!((call("even", 1_000_000), call("even", 1_000_001)), (1, 0));
    }
}

#[test]
fn values_of_all_types_and_many_of_them_cross() {
    let engine = Engine::new(Config::new().tier(Tier::BEST)).unwrap();
    let params: Vec<String> =
        (0..12).map(|i| format!("p{i}: {}", ["i32", "f64", "i64", "f32"][i % 4])).collect();
    let source = format!(
        r#"
        export "last" func last
        export "u" func u
        export "f" func f
        export "nothing" func nothing
        func last({}) -> f64 {{
          local.get p0  i64.extend_i32_s  local.get p10  i64.add  f64.convert_i64_s
          local.get p9  f64.add  local.get p11  f64.promote_f32  f64.add  return }}
        func u(a: i32) -> i32 {{ local.get a  i32.const 1  i32.shr_u  return }}
        func f(a: f32) -> f32 {{ local.get a  f32.const 2  f32.mul  return }}
        func nothing() {{ return }}"#,
        params.join(", ")
    );
    let code = compile(&engine, &source);
    let context = &mut Context::new(&engine);
    type Last = unsafe extern "C" fn(
        *mut Context,
        i32,
        f64,
        i64,
        f32,
        i32,
        f64,
        i64,
        f32,
        i32,
        f64,
        i64,
        f32,
    ) -> f64;
    // SAFETY: the code lives, and the context is used by one call at a time.
    unsafe {
        let last: Last = get(&code, "last");
        let sum = last(context, -7, 0.0, 0, 0.0, 0, 0.0, 0, 0.0, 0, 0.25, 1 << 40, 0.5);
        assert_eq!(sum, f64::from(-7) + (1u64 << 40) as f64 + 0.75);
        let u: unsafe extern "C" fn(*mut Context, u32) -> u32 = get(&code, "u");
        assert_eq!(u(context, u32::MAX), u32::MAX >> 1);
        let f: unsafe extern "C" fn(*mut Context, f32) -> f32 = get(&code, "f");
        assert_eq!(f(context, 1.25), 2.5);
        let nothing: unsafe extern "C" fn(*mut Context) = get(&code, "nothing");
        nothing(context);
    }
    assert_eq!(context.status(), 0);
}

#[test]
fn several_results_go_where_the_caller_wants_them() {
    let engine = Engine::new(Config::new().tier(Tier::BEST)).unwrap();
    let nine = "i64.const 9  ".repeat(8);
    let code = compile(
        &engine,
        &format!(
            r#"
            func two(a: i32) -> (i32, f32) {{ local.get a  f32.const 1.5  return }}
            func nine(a: i64) -> ({}) {{ {nine} local.get a  return }}
            func trapping() -> (i32, i32) {{ unreachable }}"#,
            ["i64"; 9].join(", ")
        ),
    );
    let context = &mut Context::new(&engine);
    let mut cells = [u64::MAX; 9];
    // SAFETY: the signatures are those of the functions; the code lives; there is room for the results.
    unsafe {
        let two: unsafe extern "C" fn(*mut Context, *mut u64, i32) =
            std::mem::transmute(code.pointer(0).unwrap());
        two(context, cells.as_mut_ptr(), -1);
        assert_eq!(cells[..3], [u32::MAX.into(), 1.5f32.to_bits().into(), u64::MAX]);
        let nine: unsafe extern "C" fn(*mut Context, *mut u64, i64) =
            std::mem::transmute(code.pointer(1).unwrap());
        nine(context, cells.as_mut_ptr(), 7);
        assert_eq!(cells, [9, 9, 9, 9, 9, 9, 9, 9, 7]);
        let trapping: unsafe extern "C" fn(*mut Context, *mut u64) =
            std::mem::transmute(code.pointer(2).unwrap());
        trapping(context, cells.as_mut_ptr());
        assert_eq!(context.status(), status_of(TrapCode::Unreachable));
        assert_eq!(cells, [9, 9, 9, 9, 9, 9, 9, 9, 7]);
    }
    assert_eq!(code.func_type(1).unwrap().results.len(), 9);
    assert!(code.pointer(3).is_none() && code.func_type(3).is_none());
}

#[test]
fn a_trap_is_a_status_and_an_error_with_its_place() {
    for engine in engines() {
        let code = compile(
            &engine,
            r#"
            export "outer" func outer
            func inner(a: i64, b: i64) -> i64 {
              local.get a  i64.const 77  i64.eq  br_if stop
              local.get a  local.get b  i64.div_s  return
            stop: unreachable
            }
            func outer(a: i64, b: i64) -> i64 { local.get a  local.get b  call inner  return }"#,
        );
        let outer: Binary = get(&code, "outer");
        let mut context = Context::new(&engine);
        let mut call = |a, b| {
            // SAFETY: the code lives, and nothing else uses the context.
            let result = unsafe { outer(&mut context, a, b) };
            (result, context.status(), context.check())
        };
        for (a, b, code) in [
            (1, 0, TrapCode::IntegerDivisionByZero),
            (i64::MIN, -1, TrapCode::IntegerOverflow),
            (77, 1, TrapCode::Unreachable),
        ] {
            let (result, status, outcome) = call(a, b);
            assert_eq!((result, status), (0, status_of(code)));
            let slotvm::Error::Trap(trap) = outcome.unwrap_err() else { panic!("a trap") };
            assert_eq!(trap.code, code);
            let names: Vec<String> = trap.frames().iter().map(|frame| frame.func_name()).collect();
            assert_eq!(names, ["inner", "outer"], "{}", engine.slots());
        }
        let (result, status, outcome) = call(42, -6);
        assert_eq!((result, status), (-7, 0));
        outcome.unwrap();
        // The error of a call is forgotten by the next one, whether or not anybody asked for it.
        // SAFETY: as above.
        unsafe {
            outer(&mut context, 1, 0);
            assert_ne!(context.status(), 0);
            outer(&mut context, 1, 1);
        }
        assert_eq!(context.status(), 0);
        context.check().unwrap();
    }
}

#[test]
fn running_out_of_stack_is_a_trap() {
    for engine in engines() {
        let code = compile(
            &engine,
            r#"
            export "depth" func depth
            func depth(n: i64) -> i64 {
              local.get n  i64.eqz  br_if done
              local.get n  i64.const 1  i64.sub  call depth  i64.const 1  i64.add  return
            done: i64.const 0  return
            }"#,
        );
        let depth: Unary = get(&code, "depth");
        let check = || {
            let mut context = Context::new(&engine);
            // SAFETY: the code lives, the context is new.
            unsafe {
                assert_eq!(depth(&mut context, 100), 100);
                depth(&mut context, 100_000_000);
                assert_eq!(context.status(), status_of(TrapCode::StackOverflow));
                assert_eq!(depth(&mut context, 100), 100);
            }
            context.check().unwrap();
            // On another thread there is another limit.
            context
        };
        thread::scope(|scope| {
            let small = thread::Builder::new().stack_size(512 << 10);
            small.spawn_scoped(scope, || drop(check())).unwrap();
        });
        check();
    }
}

const MEMORY: &str = r#"
    memory m 0
    export "sum" func sum
    export "put" func put
    export "fill" func fill
    export "copy" func copy
    export "pages" func pages
    func sum(at: i64, n: i64) -> i64 {
      local sum: i64
    next:
      local.get n  i64.eqz  br_if done
      local.get at  i32.wrap_i64  i32.load8_u m 0  i64.extend_i32_u  local.get sum  i64.add  local.set sum
      local.get at  i64.const 1  i64.add  local.set at
      local.get n  i64.const 1  i64.sub  local.set n
      br next
    done:
      local.get sum  return
    }
    func put(at: i64, value: i64) -> i64 {
      local.get at  i32.wrap_i64  local.get value  i64.store m 0
      local.get at  i32.wrap_i64  i64.load m 0  return
    }
    func fill(at: i64, n: i64) -> i64 {
      local.get at  i32.wrap_i64  i32.const 5  local.get n  i32.wrap_i64  memory.fill  i64.const 1  return
    }
    func copy(to: i64, n: i64) -> i64 {
      local.get to  i32.wrap_i64  i32.const 0  local.get n  i32.wrap_i64  memory.copy  i64.const 1  return
    }
    func pages() -> i64 {
      i32.const 1  memory.grow  i64.extend_i32_s  i64.const 1000  i64.mul
      memory.size  i64.extend_i32_u  i64.add  return
    }"#;

#[test]
fn the_memory_is_a_buffer_of_the_host_and_ends_with_it() {
    for engine in engines() {
        let code = compile(&engine, MEMORY);
        let [sum, put, fill, copy] =
            ["sum", "put", "fill", "copy"].map(|n| get::<Binary>(&code, n));
        let mut context = Context::new(&engine);
        let mut bytes: Vec<u8> = (0..100).collect();
        let buffer = bytes.as_mut_ptr();
        let oob = status_of(TrapCode::MemoryOutOfBounds);
        // SAFETY: the code lives; the buffer is accessed by its pointer only, and the last 4 bytes of it
        // are not part of the memory.
        unsafe {
            let mut status = |function: Binary, a, b| {
                function(&mut context, a, b);
                context.status()
            };
            // There is no memory yet.
            assert_eq!(status(sum, 0, 1), oob);
            assert_eq!((status(fill, 0, 0), status(fill, 0, 1)), (0, oob));
            context.set_memory(buffer, 96);
            assert_eq!(sum(&mut context, 0, 96), 95 * 96 / 2);
            let mut status = |function: Binary, a, b| {
                function(&mut context, a, b);
                context.status()
            };
            assert_eq!((status(sum, 95, 1), status(sum, 95, 2), status(sum, -1, 1)), (0, oob, oob));
            // The last byte of the memory, and one beyond it, which is not written at all.
            assert_eq!((status(put, 88, -1), status(put, 89, 0)), (0, oob));
            assert_eq!((status(fill, 90, 6), status(fill, 90, 7)), (0, oob));
            assert_eq!((status(copy, 92, 4), status(copy, 93, 4)), (0, oob));
            assert_eq!(status(copy, 0, u32::MAX.into()), oob);
            assert_eq!(put(&mut context, 1, 0x0102_0304_0506_0708), 0x0102_0304_0506_0708);
            let pages: unsafe extern "C" fn(*mut Context) -> i64 = get(&code, "pages");
            assert_eq!(pages(&mut context), -1000);
        }
        assert_eq!(bytes[..10], [0, 8, 7, 6, 5, 4, 3, 2, 1, 9]);
        assert_eq!(bytes[86..], [86, 87, 255, 255, 5, 5, 0, 1, 2, 3, 96, 97, 98, 99]);
    }
}

#[test]
fn threads_run_the_same_code_each_with_a_context() {
    let engine = Engine::new(Config::new().tier(Tier::BEST)).unwrap();
    let code = compile(&engine, MEMORY);
    let sum: Binary = get(&code, "sum");
    thread::scope(|scope| {
        for thread in 0..8_u8 {
            let engine = &engine;
            scope.spawn(move || {
                let mut bytes = vec![thread; 1000];
                let mut context = Context::new(engine);
                // SAFETY: the code lives as long as the scope, the context and the buffer are the
                // thread's own.
                unsafe {
                    context.set_memory(bytes.as_mut_ptr(), bytes.len());
                    for n in 0..1001 {
                        assert_eq!(sum(&mut context, 0, n), n * i64::from(thread));
                        context.check().unwrap();
                        sum(&mut context, 1, 1000);
                        assert_eq!(context.status(), status_of(TrapCode::MemoryOutOfBounds));
                    }
                }
            });
        }
    });
}

#[test]
fn fuel_is_the_contexts() {
    let engine = Engine::new(Config::new().tier(Tier::BEST).consume_fuel(true)).unwrap();
    let code = compile(&engine, MEMORY);
    let sum: Binary = get(&code, "sum");
    let mut bytes = [1; 64];
    let mut context = Context::new(&engine);
    // SAFETY: the code lives; the buffer does, too, and is accessed by nothing else.
    unsafe {
        context.set_memory(bytes.as_mut_ptr(), bytes.len());
        sum(&mut context, 0, 64);
        assert_eq!(context.status(), status_of(TrapCode::OutOfFuel));
        context.set_fuel(u64::MAX);
        assert_eq!(context.fuel(), i64::MAX as u64);
        assert_eq!(sum(&mut context, 0, 64), 64);
        let used = i64::MAX as u64 - context.fuel();
        context.set_fuel(used);
        assert_eq!((sum(&mut context, 0, 64), context.fuel()), (64, 0));
        context.set_fuel(used - 1);
        sum(&mut context, 0, 64);
        assert_eq!(context.status(), status_of(TrapCode::OutOfFuel));
    }
}

#[test]
fn code_is_freed_with_its_last_owner() {
    let engine = Engine::new(Config::new().tier(Tier::BEST)).unwrap();
    let code = compile(&engine, MEMORY);
    assert!(code.code_bytes() > 100);
    let module = code.verified().clone();
    // The native code has the module for its backtraces.
    assert_eq!(Arc::strong_count(&module), 3);
    drop(engine);
    drop(code);
    assert_eq!(Arc::strong_count(&module), 1);
}
