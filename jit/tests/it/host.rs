//! Host functions: how they are called, call back, fail and panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use slotvm::{
    Caller, Error, ExternRef, Func, FuncType, Linker, Store, Trap, TrapCode, Val, ValType,
};

use crate::support::{for_all, for_all_with, frames, instance_with, marked};

#[test]
fn closures_of_all_shapes() {
    let source = r#"
        import "env" "none" func none()
        import "env" "twelve" func twelve(i32, i64, f32, f64, i32, i64, f32, f64, i32, i64, f32, f64) -> f64
        import "env" "unsigned" func unsigned(i32, i64) -> (i64, i32)
        import "env" "floats" func floats(f32, f64) -> (f64, f32)
        import "env" "caller" func caller(i32) -> i32
        export "run" func run
        func run() -> (f64, i64, i32, f64, f32, i32) {
          call none
          i32.const 1 i64.const 2 f32.const 3.0 f64.const 4.0
          i32.const 5 i64.const 6 f32.const 7.0 f64.const 8.0
          i32.const 9 i64.const 10 f32.const 11.0 f64.const 12.0
          call twelve
          i32.const -1 i64.const -1 call unsigned
          f32.const 1.5 f64.const -2.5 call floats
          i32.const 20 call caller
          return
        }"#;
    for_all(|engine| {
        let mut linker: Linker<Vec<String>> = Linker::new(engine);
        linker.func_wrap("env", "none", || {}).unwrap();
        type I = i32;
        type L = i64;
        linker
            .func_wrap(
                "env",
                "twelve",
                |mut caller: Caller<'_, Vec<String>>,
                 a: I,
                 b: L,
                 c: f32,
                 d: f64,
                 e: I,
                 f: L,
                 g: f32,
                 h: f64,
                 i: I,
                 j: L,
                 k: f32,
                 l: f64| {
                    caller
                        .data_mut()
                        .push(format!("{a} {b} {c} {d} {e} {f} {g} {h} {i} {j} {k} {l}"));
                    f64::from(a) + l
                },
            )
            .unwrap();
        linker
            .func_wrap("env", "unsigned", |a: u32, b: u64| -> Result<(u64, u32), Error> {
                Ok((b - u64::from(a), a / 2))
            })
            .unwrap();
        linker.func_wrap("env", "floats", |a: f32, b: f64| (b, a)).unwrap();
        linker
            .func_wrap("env", "caller", |caller: Caller<'_, Vec<String>>, n: i32| {
                n + caller.data().len() as i32
            })
            .unwrap();
        let (mut store, instance) = instance_with(engine, source, &linker, Vec::new());
        type Results = (f64, i64, i32, f64, f32, i32);
        let run = instance.get_typed_func::<(), Results>(&store, "run").unwrap();
        let results = run.call(&mut store, ()).unwrap();
        assert_eq!(results, (13.0, -1 << 32, i32::MAX, -2.5, 1.5, 21));
        assert_eq!(*store.data(), ["1 2 3 4 5 6 7 8 9 10 11 12"]);
    });
}

#[test]
fn functions_of_dynamic_types() {
    let source = r#"
        import "env" "reverse" func reverse(i32, f32, externref, funcref) -> (funcref, externref, f32, i32)
        export "run" func run
        func run(r: externref) -> (i32, f32, i32, externref, i32) {
          local f: funcref, e: externref, x: f32, n: i32
          i32.const 7 f32.const 0.5 local.get r ref.func run call reverse
          local.set n local.set x local.set e local.set f
          local.get n local.get x local.get e ref.is_null local.get e local.get f ref.is_null
          return
        }"#;
    for_all(|engine| {
        let mut linker: Linker<()> = Linker::new(engine);
        let params = [ValType::I32, ValType::F32, ValType::ExternRef, ValType::FuncRef];
        let results = [ValType::FuncRef, ValType::ExternRef, ValType::F32, ValType::I32];
        linker
            .func_new("env", "reverse", FuncType::new(params, results), |_, params, results| {
                assert!(matches!(results[0], Val::FuncRef(None)));
                for (result, param) in results.iter_mut().zip(params.iter().rev()) {
                    *result = *param;
                }
                Ok(())
            })
            .unwrap();
        let (mut store, instance) = instance_with(engine, source, &linker, ());
        type Results = (i32, f32, i32, Option<ExternRef>, i32);
        let run = instance.get_typed_func::<Option<ExternRef>, Results>(&store, "run").unwrap();
        assert_eq!(run.call(&mut store, None).unwrap(), (7, 0.5, 1, None, 0));
        let object = ExternRef::new(&mut store, "a host object").unwrap();
        let (_, _, is_null, back, _) = run.call(&mut store, Some(object)).unwrap();
        assert_eq!((is_null, back), (0, Some(object)));
        let object = back.unwrap().data(&store).downcast_ref::<&str>();
        assert_eq!(object, Some(&"a host object"));
    });
}

#[test]
fn results_of_the_wrong_type_are_an_error() {
    let source = r#"
        import "env" "f" func f() -> i32
        export "run" func run
        func run() -> i32 { call f return }"#;
    for_all(|engine| {
        let mut linker: Linker<()> = Linker::new(engine);
        let ty = FuncType::new([], [ValType::I32]);
        linker
            .func_new("env", "f", ty, |_, _, results| {
                results[0] = Val::I64(1);
                Ok(())
            })
            .unwrap();
        let (mut store, instance) = instance_with(engine, source, &linker, ());
        let run = instance.get_typed_func::<(), i32>(&store, "run").unwrap();
        let error = run.call(&mut store, ()).unwrap_err();
        assert!(matches!(error, Error::Usage(_)), "{error}");
    });
}

/// A host function `again` that calls the function `down` of its caller.
const REENTRANT: &str = r#"
    import "env" "again" func again(i64) -> i64
    export "down" func down
    func down(n: i64) -> i64 {
      local.get n i64.eqz br_if bottom
      local.get n i64.const 1 i64.sub
      call again ; called
      local.get n i64.add
      return
    bottom:
      i64.const 100
      local.get n i64.div_s ; trap
      return
    }"#;

fn down(caller: &mut Caller<'_, u32>, n: i64) -> Result<i64, Error> {
    *caller.data_mut() += 1;
    let down = caller.get_export("down").unwrap().into_func().unwrap();
    down.typed::<i64, i64>(&*caller)?.call(caller, n)
}

fn again(mut caller: Caller<'_, u32>, n: i64) -> Result<i64, Error> {
    down(&mut caller, n)
}

#[test]
fn host_functions_call_back() {
    for_all(|engine| {
        let mut linker = Linker::new(engine);
        // The host gives an answer where the guest would trap.
        linker
            .func_wrap(
                "env",
                "again",
                |mut caller: Caller<'_, u32>, n: i64| -> Result<i64, Error> {
                    let trapped = down(&mut caller, 0).unwrap_err();
                    assert_eq!(
                        frames(&trapped),
                        [("down".to_owned(), marked(REENTRANT, "trap")[0])]
                    );
                    if n == 0 { Ok(1000) } else { down(&mut caller, n) }
                },
            )
            .unwrap();
        let (mut store, instance) = instance_with(engine, REENTRANT, &linker, 0);
        let down = instance.get_typed_func::<i64, i64>(&store, "down").unwrap();
        assert_eq!(down.call(&mut store, 4).unwrap(), 1000 + 1 + 2 + 3 + 4);
        assert_eq!(*store.data(), 7);
    });
}

#[test]
fn a_trap_passes_through_the_host_and_collects_all_frames() {
    for_all(|engine| {
        let mut linker = Linker::new(engine);
        linker.func_wrap("env", "again", again).unwrap();
        let (mut store, instance) = instance_with(engine, REENTRANT, &linker, 0);
        let down = instance.get_typed_func::<i64, i64>(&store, "down").unwrap();
        let error = down.call(&mut store, 3).unwrap_err();
        let line = |mark| marked(REENTRANT, mark)[0];
        let lines = [line("trap"), line("called"), line("called"), line("called")];
        assert_eq!(frames(&error), lines.map(|line| ("down".to_owned(), line)));
    });
}

#[test]
fn recursion_through_the_host_ends() {
    for_all(|engine| {
        let mut linker = Linker::new(engine);
        linker.func_wrap("env", "again", again).unwrap();
        let (mut store, instance) = instance_with(engine, REENTRANT, &linker, 0);
        let down = instance.get_typed_func::<i64, i64>(&store, "down").unwrap();
        for _ in 0..2 {
            // By the limit of calls from the host, or by the stack.
            let error = down.call(&mut store, i64::MAX).unwrap_err();
            let of_stack = error.trap_code() == Some(TrapCode::StackOverflow);
            assert!(of_stack || matches!(error, Error::Limit { .. }), "{error}");
        }
    });
}

#[test]
fn a_call_back_on_another_thread_has_the_stack_of_that_thread() {
    let source = r#"
        import "env" "elsewhere" func elsewhere() -> i64
        export "run" func run
        export "deep" func deep
        func run(n: i64) -> i64 {
          call elsewhere
          local.get n call deep
          i64.add
          return
        }
        func deep(n: i64) -> i64 {
          local.get n i64.eqz br_if bottom
          local.get n i64.const 1 i64.sub call deep i64.const 1 i64.add
          return
        bottom:
          local.get n
          return
        }"#;
    fn elsewhere(mut caller: Caller<'_, ()>) -> i64 {
        let deep = caller.get_export("deep").unwrap().into_func().unwrap();
        let deep = deep.typed::<i64, i64>(&caller).unwrap();
        let overflow = |error: Error| {
            assert_eq!(error.trap_code(), Some(TrapCode::StackOverflow), "{error}");
        };
        let result = std::thread::scope(|scope| {
            let there = std::thread::Builder::new().stack_size(512 << 10);
            let caller = &mut caller;
            let there = there.spawn_scoped(scope, move || {
                overflow(deep.call(&mut *caller, i64::MAX).unwrap_err());
                deep.call(caller, 1000).unwrap()
            });
            there.unwrap().join().unwrap()
        });
        // This thread has its own limit again.
        overflow(deep.call(&mut caller, i64::MAX).unwrap_err());
        result
    }
    for_all(|engine| {
        let mut linker: Linker<()> = Linker::new(engine);
        linker.func_wrap("env", "elsewhere", elsewhere).unwrap();
        let (mut store, instance) = instance_with(engine, source, &linker, ());
        let run = instance.get_typed_func::<i64, i64>(&store, "run").unwrap();
        assert_eq!(run.call(&mut store, 500).unwrap(), 1500);
        let error = run.call(&mut store, i64::MAX).unwrap_err();
        assert_eq!(error.trap_code(), Some(TrapCode::StackOverflow));
    });
}

#[derive(Debug, thiserror::Error, PartialEq)]
#[error("the host says {0}")]
struct Refusal(i32);

const FAILING: &str = r#"
    import "env" "check" func check(i32)
    export "run" func run
    global before: mut i32 = i32.const 0
    global after: mut i32 = i32.const 0
    export "before" global before
    export "after" global after
    func run(n: i32) {
      global.get before i32.const 1 i32.add global.set before
      local.get n call inner
      global.get after i32.const 1 i32.add global.set after
      return
    }
    func inner(n: i32) {
      local a: i64
      local.addr a global.set before
      local.get n call check
      return
    }
    memory m 1
    frame_stack 0 32"#;

#[test]
fn errors_of_the_host_come_out_as_they_are() {
    for_all(|engine| {
        let mut linker: Linker<()> = Linker::new(engine);
        linker
            .func_wrap("env", "check", |n: i32| match n {
                0 => Ok(()),
                n => Err(Error::host(Refusal(n))),
            })
            .unwrap();
        let (mut store, instance) = instance_with(engine, FAILING, &linker, ());
        let run = instance.get_typed_func::<i32, ()>(&store, "run").unwrap();
        for n in 1..10 {
            let error = run.call(&mut store, n).unwrap_err();
            let Error::Host(error) = error else { panic!("{error}") };
            assert_eq!(error.downcast_ref(), Some(&Refusal(n)));
        }
        run.call(&mut store, 0).unwrap();
        let after = instance.get_global(&store, "after").unwrap();
        assert_eq!(after.get(&store).unwrap_i32(), 1);
    });
}

#[test]
fn panics_of_the_host_pass_through_the_guest() {
    for_all(|engine| {
        let mut linker: Linker<()> = Linker::new(engine);
        linker
            .func_wrap("env", "check", |n: i32| {
                if n != 0 {
                    // Unlike `panic!` this prints nothing.
                    std::panic::resume_unwind(Box::new(Refusal(n)));
                }
            })
            .unwrap();
        let (mut store, instance) = instance_with(engine, FAILING, &linker, ());
        let run = instance.get_typed_func::<i32, ()>(&store, "run").unwrap();
        for n in 1..100 {
            let result = catch_unwind(AssertUnwindSafe(|| run.call(&mut store, n)));
            assert_eq!(result.unwrap_err().downcast_ref(), Some(&Refusal(n)));
        }
        // Frame stack and everything else are as they were.
        run.call(&mut store, 0).unwrap();
        let after = instance.get_global(&store, "after").unwrap();
        assert_eq!(after.get(&store).unwrap_i32(), 1);
    });
}

#[test]
fn a_panic_passes_through_several_activations() {
    for_all(|engine| {
        let mut linker = Linker::new(engine);
        linker
            .func_wrap("env", "again", |caller: Caller<'_, u32>, n: i64| match n {
                0 => std::panic::resume_unwind(Box::new(Refusal(0))),
                n => again(caller, n),
            })
            .unwrap();
        let (mut store, instance) = instance_with(engine, REENTRANT, &linker, 0);
        let down = instance.get_typed_func::<i64, i64>(&store, "down").unwrap();
        let result = catch_unwind(AssertUnwindSafe(|| down.call(&mut store, 5)));
        assert_eq!(result.unwrap_err().downcast_ref(), Some(&Refusal(0)));
        let error = down.call(&mut store, 0).unwrap_err();
        assert_eq!(error.trap_code(), Some(TrapCode::IntegerDivisionByZero));
    });
}

#[test]
fn the_host_can_trap() {
    for_all(|engine| {
        let mut linker: Linker<()> = Linker::new(engine);
        linker
            .func_wrap("env", "check", |_: i32| Err::<(), _>(Trap::new(TrapCode::Unreachable, [])))
            .unwrap();
        let (mut store, instance) = instance_with(engine, FAILING, &linker, ());
        let run = instance.get_typed_func::<i32, ()>(&store, "run").unwrap();
        let error = run.call(&mut store, 1).unwrap_err();
        let names: Vec<_> = frames(&error).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["inner", "run"]);
        assert_eq!(error.trap_code(), Some(TrapCode::Unreachable));
    });
}

#[test]
fn callers_reach_the_memory_and_the_fuel_of_the_guest() {
    let source = r#"
        import "env" "upper" func upper(i32, i32) -> i64
        memory m 1 2
        data d at i32.const 8 "shout"
        export "run" func run
        func run() -> i64 { i32.const 8 i32.const 5 call upper return }"#;
    for_all_with(
        |config| {
            config.consume_fuel(true);
        },
        |engine| {
            let mut linker: Linker<String> = Linker::new(engine);
            linker
                .func_wrap(
                    "env",
                    "upper",
                    |mut caller: Caller<'_, String>, at: u32, len: u32| -> Result<i64, Error> {
                        let memory = caller.memory().expect("the module has a memory");
                        let mut bytes = vec![0; len as usize];
                        memory.read(&caller, at as usize, &mut bytes)?;
                        bytes.make_ascii_uppercase();
                        memory.write(&mut caller, at as usize, &bytes)?;
                        memory.grow(&mut caller, 1)?;
                        assert!(memory.write(&mut caller, 131_070, &bytes).is_err());
                        *caller.data_mut() = String::from_utf8_lossy(&bytes).into_owned();
                        let fuel = caller.get_fuel()?;
                        caller.set_fuel(fuel + 1000)?;
                        Ok(fuel as i64)
                    },
                )
                .unwrap();
            let (mut store, instance) = instance_with(engine, source, &linker, String::new());
            store.set_fuel(100).unwrap();
            let run = instance.get_typed_func::<(), i64>(&store, "run").unwrap();
            assert_eq!(run.call(&mut store, ()).unwrap(), 96);
            assert_eq!(store.get_fuel().unwrap(), 1096);
            assert_eq!(store.data(), "SHOUT");
        },
    );
}

#[test]
fn functions_made_in_a_store() {
    let source = r#"
        export "apply" func apply
        table t funcref 2
        export "t" table t
        func apply(i: i32, a: i64, b: i64) -> i64 {
          local.get a local.get b local.get i call_indirect (i64, i64) -> i64, t return
        }"#;
    for_all(|engine| {
        let (mut store, instance) = instance_with(engine, source, &Linker::new(engine), 10_i64);
        let add = Func::wrap(&mut store, |caller: Caller<'_, i64>, a: i64, b: i64| {
            a + b + *caller.data()
        });
        let add = add.unwrap();
        let ty = FuncType::new([ValType::I64; 2], [ValType::I64]);
        let sub = Func::new(&mut store, ty, |_: Caller<'_, i64>, params, results| {
            results[0] = Val::I64(params[0].unwrap_i64() - params[1].unwrap_i64());
            Ok(())
        });
        let sub = sub.unwrap();
        let table = instance.get_table(&store, "t").unwrap();
        table.set(&mut store, 0, Val::from(add)).unwrap();
        table.set(&mut store, 1, Val::from(sub)).unwrap();
        let apply = instance.get_typed_func::<(i32, i64, i64), i64>(&store, "apply").unwrap();
        assert_eq!(apply.call(&mut store, (0, 5, 3)).unwrap(), 18);
        assert_eq!(apply.call(&mut store, (1, 5, 3)).unwrap(), 2);
        // The host calls them directly, too.
        let direct = sub.typed::<(i64, i64), i64>(&store).unwrap();
        assert_eq!(direct.call(&mut store, (1, 2)).unwrap(), -1);
        assert_eq!(add.ty(&store).params.len(), 2);
    });
}

#[test]
fn stores_nest() {
    // A host function of one store runs a guest of another store, which traps.
    let inner_source =
        r#"export "f" func f func f(n: i32) -> i32 { i32.const 9 local.get n i32.div_s return }"#;
    let source = r#"
        import "env" "f" func f(i32) -> i32
        export "run" func run
        func run(n: i32) -> i32 { local.get n call f i32.const 1 i32.add return }"#;
    for_all(|engine| {
        let module = crate::support::module(engine, inner_source);
        let mut linker: Linker<()> = Linker::new(engine);
        linker
            .func_wrap("env", "f", move |n: i32| -> Result<i32, Error> {
                let mut store = Store::new(module.engine(), ());
                let instance = slotvm::Instance::new(&mut store, &module, &[])?;
                let f = instance.get_typed_func::<i32, i32>(&store, "f")?;
                match f.call(&mut store, n) {
                    Err(Error::Trap(trap)) => {
                        assert_eq!(trap.code, TrapCode::IntegerDivisionByZero);
                        Ok(-1)
                    }
                    other => other,
                }
            })
            .unwrap();
        let (mut store, instance) = instance_with(engine, source, &linker, ());
        let run = instance.get_typed_func::<i32, i32>(&store, "run").unwrap();
        assert_eq!(run.call(&mut store, 0).unwrap(), 0);
        assert_eq!(run.call(&mut store, 3).unwrap(), 4);
    });
}
