//! Interruption by epochs and by time: every loop ends, at the same place in every engine.

use std::time::Duration;

use slotvm::{
    Caller, Config, Engine, Error, Instance, Linker, Store, Trap, TrapCode, UpdateDeadline, Val,
};

use crate::support::{Kind, for_all, for_all_with, instance, kinds, module};

mod host;

/// Loops of all kinds that never end by themselves. Each has a function `run` without parameters, and may
/// import the function `host`.
const LOOPS: &[(&str, &str)] = &[
    ("a block that goes to itself", "func run() { again: br again }"),
    (
        "a loop with a way out",
        "func run() {
          local n: i64
        again:
          local.get n i64.const 1 i64.add local.tee n
          i64.const 0 i64.ge_u br_if again
          return }",
    ),
    (
        "an irreducible loop",
        "func run() {
          local n: i32
          local.get n br_if b
        a:
          local.get n i32.const 1 i32.add local.set n
        b:
          local.get n i32.const 3 i32.xor local.set n
          br a }",
    ),
    (
        "a loop through a table",
        "func run() {
          local n: i32
        again:
          local.get n i32.const 1 i32.add local.tee n
          i32.const 1 i32.and
          br_table [again] again }",
    ),
    ("a recursion that ends", "func run() { again: call g br again } func g() { return }"),
    (
        "a tree of calls without loops",
        "func run() { call a call a call a call a call a call a call a call a call a return }
         func a() { call b call b call b call b call b call b call b call b call b return }
         func b() { call c call c call c call c call c call c call c call c call c return }
         func c() { call d call d call d call d call d call d call d call d call d return }
         func d() { call e call e call e call e call e call e call e call e call e return }
         func e() { call f call f call f call f call f call f call f call f call f return }
         func f() { call g call g call g call g call g call g call g call g call g return }
         func g() { call h call h call h call h call h call h call h call h call h return }
         func h() { call i call i call i call i call i call i call i call i call i return }
         func i() { call j call j call j call j call j call j call j call j call j return }
         func j() { call k call k call k call k call k call k call k call k call k return }
         func k() { call l call l call l call l call l call l call l call l call l return }
         func l() { return }",
    ),
    ("tail calls", "func run() { return_call other } func other() { return_call run }"),
    (
        "indirect tail calls",
        "table t funcref 2
         elem e t at i32.const 0 func run, other
         func run() { i32.const 1 return_call_indirect (), t }
         func other() { i32.const 0 return_call_indirect (), t }",
    ),
    ("calls of the host", "func run() { again: call host br again }"),
];

/// The module of a loop.
fn source(functions: &str) -> String {
    format!("import \"env\" \"host\" func host()\nexport \"run\" func run\n{functions}")
}

fn linker<T: Send + 'static>(engine: &Engine) -> Linker<T> {
    let mut linker = Linker::new(engine);
    linker.func_wrap("env", "host", || ()).unwrap();
    linker
}

/// An instance of a loop, and its function.
fn start<T: Send + 'static>(store: &mut Store<T>, functions: &str) -> slotvm::TypedFunc<(), ()> {
    let engine = store.engine().clone();
    let module = module(&engine, &source(functions));
    let instance = linker(&engine).instantiate(&mut *store, &module).unwrap();
    instance.get_typed_func(&*store, "run").unwrap()
}

/// Code, and function and offset of each frame.
fn place(error: &Error) -> (TrapCode, Vec<(u32, u32)>) {
    let Error::Trap(trap) = error else { panic!("not a trap: {error}") };
    assert_eq!((trap.func, trap.offset), (trap.frames()[0].func, trap.frames()[0].offset));
    (trap.code, trap.frames().iter().map(|frame| (frame.func, frame.offset)).collect())
}

fn epochs(config: &mut Config) {
    config.epoch_interruption(true);
}

/// Engines of all kinds that can be interrupted. The first is the interpreter.
fn epoch_kinds() -> Vec<Kind> {
    kinds(epochs)
}

#[test]
fn every_loop_is_interrupted_at_the_same_poll_everywhere() {
    for (name, functions) in LOOPS {
        for n_polls in [0, 1, 2, 3, 17, 1000] {
            let mut expected = None;
            for kind in epoch_kinds() {
                // Each poll asks; the last one stops.
                let mut store = Store::new(&kind.engine, n_polls);
                store.epoch_deadline_callback(|mut context| {
                    if *context.data() == 0 {
                        return Ok(UpdateDeadline::Interrupt);
                    }
                    *context.data_mut() -= 1;
                    Ok(UpdateDeadline::Continue(0))
                });
                let run = start(&mut store, functions);
                let found = place(&run.call(&mut store, ()).unwrap_err());
                assert_eq!(found.0, TrapCode::Interrupted, "{name}, {kind}");
                assert_eq!(*store.data(), 0, "{name}, {kind}");
                assert_eq!(*expected.get_or_insert(found.clone()), found, "{name}, {kind}");
            }
        }
    }
}

#[test]
fn every_loop_ends_when_its_time_is_up() {
    let kinds = kinds(|config| {
        config.timeout(Some(Duration::from_millis(1)));
    });
    for (name, functions) in LOOPS {
        for kind in &kinds {
            let mut store = Store::new(&kind.engine, ());
            let run = start(&mut store, functions);
            for _ in 0..2 {
                let error = run.call(&mut store, ()).unwrap_err();
                assert_eq!(error.trap_code(), Some(TrapCode::Interrupted), "{name}, {kind}");
            }
        }
    }
}

#[test]
fn every_loop_ends_when_another_thread_counts_the_epoch() {
    for (name, functions) in LOOPS {
        for kind in epoch_kinds() {
            let mut store = Store::new(&kind.engine, ());
            let run = start(&mut store, functions);
            store.set_epoch_deadline(3);
            let (engine, done) = (kind.engine.clone(), std::sync::atomic::AtomicBool::new(false));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !done.load(std::sync::atomic::Ordering::Relaxed) {
                        engine.increment_epoch();
                        std::thread::yield_now();
                    }
                });
                let error = run.call(&mut store, ()).unwrap_err();
                done.store(true, std::sync::atomic::Ordering::Relaxed);
                assert_eq!(error.trap_code(), Some(TrapCode::Interrupted), "{name}, {kind}");
            });
        }
    }
}

/// More integers and floats than there are registers.
const N_VALUES: usize = 40;

/// A loop in which so many values of each kind change in each turn, and what is made of all of them.
fn busy_loop() -> String {
    let names = |prefix: char| (0..N_VALUES).map(move |i| format!("{prefix}{i}"));
    let locals =
        |prefix, ty| names(prefix).map(|n| format!("{n}: {ty}")).collect::<Vec<_>>().join(", ");
    let (ints, floats) = (locals('i', "i64"), locals('f', "f64"));
    let turns = (0..N_VALUES).map(|i| {
        format!(
            "local.get i{i} i64.const 3 i64.mul i64.const {i} i64.add local.set i{i}
             local.get f{i} f64.const 0.5 f64.mul f64.const {i}.0 f64.add local.set f{i}\n"
        )
    });
    let folds = (0..N_VALUES).map(|i| {
        format!("i64.const 7 i64.mul local.get i{i} i64.add local.get f{i} i64.reinterpret_f64 i64.xor\n")
    });
    format!(
        "export \"run\" func run
         func run(n: i32) -> i64 {{
           local {ints}, {floats}
         again:
           {}
           local.get n i32.const 1 i32.sub local.tee n br_if again
           i64.const 0
           {}
           return }}",
        turns.collect::<String>(),
        folds.collect::<String>(),
    )
}

/// Result of [`busy_loop`].
fn busy_loop_result(n: usize) -> i64 {
    let of = |i: usize| {
        (0..n).fold((0i64, 0f64), |(int, float), _| {
            (int.wrapping_mul(3).wrapping_add(i as i64), float * 0.5 + i as f64)
        })
    };
    (0..N_VALUES).map(of).fold(0i64, |sum, (int, float)| {
        sum.wrapping_mul(7).wrapping_add(int) ^ float.to_bits() as i64
    })
}

#[test]
fn what_lives_across_a_poll_is_as_it_was() {
    for kind in epoch_kinds() {
        let module = module(&kind.engine, &busy_loop());
        let mut store = Store::new(&kind.engine, 0);
        store.epoch_deadline_callback(|mut context| {
            *context.data_mut() += 1;
            // Uses registers of both kinds.
            let text = format!("{:?}", [0.1f64, 0.7].map(|x| x * f64::from(*context.data())));
            assert!(text.contains('.'));
            Ok(UpdateDeadline::Continue(0))
        });
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        let run = instance.get_typed_func::<i32, i64>(&store, "run").unwrap();
        assert_eq!(run.call(&mut store, 50).unwrap(), busy_loop_result(50), "{kind}");
        assert_eq!(*store.data(), 50, "{kind}: each poll has asked");
    }
}

#[test]
fn the_deadline_counts_from_the_present_epoch() {
    for_all_with(epochs, |engine| {
        let (mut store, instance) =
            instance(engine, "export \"run\" func run\nfunc run() { return }");
        let run = instance.get_typed_func::<(), ()>(&store, "run").unwrap();
        let call = |store: &mut Store<()>| match run.call(store, ()) {
            Ok(()) => true,
            Err(error) => {
                assert_eq!(place(&error), (TrapCode::Interrupted, vec![(0, 0)]));
                false
            }
        };
        assert!(!call(&mut store), "a store starts with a deadline that has come");
        store.set_epoch_deadline(1);
        assert!(call(&mut store) && call(&mut store));
        engine.increment_epoch();
        assert!(!call(&mut store) && !call(&mut store));
        store.set_epoch_deadline(2);
        engine.increment_epoch();
        assert!(call(&mut store));
        engine.increment_epoch();
        assert!(!call(&mut store));
        store.set_epoch_deadline(u64::MAX);
        assert!(call(&mut store));
        store.set_epoch_deadline(0);
        assert!(!call(&mut store));
        // The callback replaces the trap, and the trap the callback.
        store.epoch_deadline_callback(|_| Ok(UpdateDeadline::Continue(1)));
        assert!(call(&mut store));
        store.epoch_deadline_trap();
        assert!(call(&mut store));
        engine.increment_epoch();
        assert!(!call(&mut store));
    });
}

#[test]
fn code_that_cannot_be_interrupted_is_not() {
    for_all(|engine| {
        let source = "export \"run\" func run\nfunc run() { return }";
        let (mut store, instance) = instance(engine, source);
        store.set_epoch_deadline(0);
        engine.increment_epoch();
        store.epoch_deadline_callback(|_| Ok(UpdateDeadline::Interrupt));
        let run = instance.get_typed_func::<(), ()>(&store, "run").unwrap();
        run.call(&mut store, ()).unwrap();
        assert!(matches!(store.set_timeout(Some(Duration::ZERO)), Err(Error::Usage(_))));
    });
    // Where only time counts, epochs do not.
    let timeout = |config: &mut Config| {
        config.timeout(Some(Duration::from_secs(3600)));
    };
    for_all_with(timeout, |engine| {
        let (mut store, instance) =
            instance(engine, "export \"run\" func run\nfunc run() { return }");
        store.set_epoch_deadline(0);
        engine.increment_epoch();
        let run = instance.get_typed_func::<(), ()>(&store, "run").unwrap();
        run.call(&mut store, ()).unwrap();
        store.set_timeout(Some(Duration::ZERO)).unwrap();
        let error = run.call(&mut store, ()).unwrap_err();
        assert_eq!(place(&error), (TrapCode::Interrupted, vec![(0, 0)]));
        store.set_timeout(None).unwrap();
        run.call(&mut store, ()).unwrap();
    });
}

#[test]
fn only_code_that_can_be_interrupted_polls() {
    let source = "func f(n: i32) {
          local.get n br_if skip
          nop
        skip:
          nop
        again:
          local.get n br_if again
          return }";
    // The entry and the loop.
    let timeout = |config: &mut Config| {
        config.timeout(Some(Duration::from_secs(1)));
    };
    let neither = |_: &mut Config| ();
    type Configure = fn(&mut Config);
    let configs: [(Configure, usize); 3] = [(epochs, 2), (timeout, 2), (neither, 0)];
    for (configure, n_polls) in configs {
        for kind in kinds(configure) {
            // The interpreter has no code.
            if let Some(clif) = module(&kind.engine, source).clif(0).unwrap() {
                // Without signals the trap for lack of stack is a call, too.
                let is_without_signals = kind.to_string().contains("without signals");
                let n_calls = n_polls + usize::from(is_without_signals);
                assert_eq!(clif.matches("call_indirect").count(), n_calls, "{kind}\n{clif}");
            }
        }
    }
}

#[test]
fn start_functions_are_interrupted() {
    let source = "start run\nfunc run() { again: br again }";
    let timeout = |config: &mut Config| {
        config.timeout(Some(Duration::from_millis(1)));
    };
    for configure in [epochs as fn(&mut Config), timeout] {
        for_all_with(configure, |engine| {
            let mut store = Store::new(engine, ());
            let error = Instance::new(&mut store, &module(engine, source), &[]).unwrap_err();
            assert_eq!(place(&error), (TrapCode::Interrupted, vec![(0, 0)]));
        });
    }
}

#[test]
fn callbacks_may_refuel_change_the_store_call_the_guest_and_fail() {
    // Counts the rounds in global `n` until the host sets global `stop`.
    let source = r#"
        memory m 1
        export "memory" memory m
        export "stop" global stop
        export "n" global n
        export "run" func run
        export "twice" func twice
        global stop: mut i32 = i32.const 0
        global n: mut i32 = i32.const 0
        func twice(a: i32) -> i32 { local.get a i32.const 2 i32.mul return }
        func run() -> i32 {
        again:
          global.get n i32.const 1 i32.add global.set n
          global.get stop i32.eqz br_if again
          i32.const 70000 i32.load8_u 0
          return }"#;
    let configure = |config: &mut Config| {
        config.epoch_interruption(true).consume_fuel(true);
    };
    for_all_with(configure, |engine| {
        let (mut store, instance) = instance(engine, source);
        let run = instance.get_typed_func::<(), i32>(&store, "run").unwrap();
        let (mut rounds, stop) = (0, instance.get_global(&store, "stop").unwrap());
        let memory = instance.get_memory(&store, "memory").unwrap();
        let twice = instance.get_typed_func::<i32, i32>(&store, "twice").unwrap();
        store.epoch_deadline_callback(move |mut context| {
            rounds += 1;
            // Seven instructions a round: without this there would be none.
            context.set_fuel(7)?;
            if rounds == 1000 {
                context.set_fuel(100)?;
                stop.set(&mut context, Val::I32(1))?;
                assert_eq!(memory.grow(&mut context, 1)?, 1);
                memory.data_mut(&mut context)[70_000] = 9;
                context.set_epoch_deadline(1);
                assert_eq!(twice.call(&mut context, 21)?, 42);
                // What the guest does meanwhile is interrupted by itself.
                context.set_epoch_deadline(0);
                let error = twice.call(&mut context, 21).unwrap_err();
                assert_eq!(error.trap_code(), Some(TrapCode::Interrupted));
                return Ok(UpdateDeadline::Continue(1));
            }
            Ok(UpdateDeadline::Continue(0))
        });
        assert_eq!(run.call(&mut store, ()).unwrap(), 9);
        assert_eq!(instance.get_global(&store, "n").unwrap().get(&store).unwrap_i32(), 1000);

        stop.set(&mut store, Val::I32(0)).unwrap();
        store.set_epoch_deadline(0);
        store.epoch_deadline_callback(|_| Err(Error::host("no more")));
        assert_eq!(run.call(&mut store, ()).unwrap_err().to_string(), "no more");
        // The trap of a callback has the place of the poll.
        store.epoch_deadline_callback(|_| Err(Trap::new(TrapCode::BadSignature, []).into()));
        let error = run.call(&mut store, ()).unwrap_err();
        assert_eq!(place(&error), (TrapCode::BadSignature, vec![(1, 0)]));
        // A panic resumes in the host; the callback stays.
        let mut n_panics = 0;
        store.epoch_deadline_callback(move |_| {
            n_panics += 1;
            std::panic::resume_unwind(Box::new(n_panics))
        });
        for n in 1..3 {
            let call = std::panic::AssertUnwindSafe(|| run.call(&mut store, ()));
            let panic = std::panic::catch_unwind(call).unwrap_err();
            assert_eq!(panic.downcast_ref(), Some(&n));
        }
    });
}

#[test]
fn nested_calls_keep_the_time_of_the_outermost() {
    // `run` calls the host, which calls `inner` with another store's time in between, and continues.
    let source = r#"
        import "env" "host" func host()
        export "run" func run
        export "inner" func inner
        func inner() { again: br again }
        func run() { call host return }"#;
    let configure = |config: &mut Config| {
        // Enough for compiling `run`, which belongs to the call if that is done when it is called.
        config.timeout(Some(Duration::from_millis(100)));
    };
    for_all_with(configure, |engine| {
        let mut linker = Linker::new(engine);
        linker
            .func_wrap("env", "host", |mut caller: Caller<'_, u32>| {
                let inner = caller.get_export("inner").unwrap().into_func().unwrap();
                for _ in 0..3 {
                    // The time is up once, and stays so.
                    let error = inner.call(&mut caller, &[], &mut []).unwrap_err();
                    assert_eq!(error.trap_code(), Some(TrapCode::Interrupted));
                    *caller.data_mut() += 1;
                }
                Ok::<(), Error>(())
            })
            .unwrap();
        let (mut store, instance) = crate::support::instance_with(engine, source, &linker, 0);
        let run = instance.get_typed_func::<(), ()>(&store, "run").unwrap();
        // Nothing polls after the host function, so the call returns.
        run.call(&mut store, ()).unwrap();
        assert_eq!(*store.data(), 3);
        // The next call has time of its own, which the last has not touched.
        store.set_timeout(Some(Duration::from_secs(3600))).unwrap();
        let host_only = "export \"run\" func run\nfunc run() { return }";
        let other = Instance::new(&mut store, &module(engine, host_only), &[]).unwrap();
        let other = other.get_typed_func::<(), ()>(&store, "run").unwrap();
        other.call(&mut store, ()).unwrap();
    });
}

#[test]
fn time_that_ends_with_a_call_does_not_strike_the_next() {
    // Calls that take about as long as they may: some end by themselves, some do not; the calls between
    // them, which have all the time in the world, always do.
    let source = r#"
        export "count" func count
        func count(n: i64) -> i64 {
        again:
          local.get n i64.const 1 i64.sub local.tee n i64.const 0 i64.gt_s br_if again
          local.get n return }"#;
    for_all_with(epochs, |engine| {
        let (mut store, instance) = instance(engine, source);
        let count = instance.get_typed_func::<i64, i64>(&store, "count").unwrap();
        store.set_epoch_deadline(1);
        let mut n = 1000;
        for i in 0..2000 {
            store.set_timeout(Some(Duration::from_micros(20))).unwrap();
            match count.call(&mut store, n) {
                Ok(left) => assert_eq!(left, 0),
                Err(error) => assert_eq!(error.trap_code(), Some(TrapCode::Interrupted)),
            }
            n = 1000 + (i * 7919) % 60_000;
            store.set_timeout(Some(Duration::from_secs(3600))).unwrap();
            assert_eq!(count.call(&mut store, 5).unwrap(), 0);
            store.set_timeout(None).unwrap();
            assert_eq!(count.call(&mut store, 5).unwrap(), 0);
        }
    });
}
