//! Calls that are interrupted while they wait for code.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use slotvm::{
    Caller, Compile, Config, Engine, Extern, Instance, Linker, MemoryPlan, Module, Store, Tier,
    TrapCode, TypedFunc, UpdateDeadline,
};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};

use crate::alone::alone;
use crate::fork::in_both;
use crate::support::{for_all_with, n_threads, threads_become};

/// The name of threads that compile.
const COMPILER: &str = "slotvm-compiler";
/// Compilations of a module that run at a time.
const RUNNING_MAX: usize = 4;

/// A function that takes some tenths of a second to compile, and less than a millisecond to run.
fn slow(name: &str) -> String {
    function(name, 2_500)
}

fn function(name: &str, n_blocks: usize) -> String {
    let blocks: String = (0..n_blocks)
        .map(|i| {
            format!(
                "local.get n i32.const {i} i32.mul local.tee n br_if a{i}
                 local.get n i32.const 7 i32.xor local.set n a{i}: "
            )
        })
        .collect();
    format!(
        "export \"{name}\" func {name}
         func {name}(n: i32) -> i32 {{ {blocks} local.get n return }}\n"
    )
}

fn slow_functions(n: usize) -> String {
    (0..n).map(|i| slow(&format!("f{i}"))).collect()
}

fn lazy(configure: impl FnOnce(&mut Config)) -> Engine {
    let mut config = Config::new();
    config.tier(Tier::BEST);
    config.compile(Compile::Lazy);
    configure(&mut config);
    Engine::new(&config).unwrap()
}

fn with_timeout(millis: u64) -> Engine {
    lazy(|config| _ = config.timeout(Some(Duration::from_millis(millis))))
}

fn func(store: &mut Store<()>, module: &Module, name: &str) -> TypedFunc<i32, i32> {
    let instance = Instance::new(&mut *store, module, &[]).unwrap();
    instance.get_typed_func(&*store, name).unwrap()
}

/// A function that is being compiled: a call had too little time, and left. The next one has enough.
fn left_behind(engine: &Engine) -> (Module, Store<()>, TypedFunc<i32, i32>) {
    let module = Module::from_text(engine, &slow("f")).unwrap();
    let mut store = Store::new(engine, ());
    let f = func(&mut store, &module, "f");
    let error = f.call(&mut store, 0).unwrap_err();
    assert_eq!(error.trap_code(), Some(TrapCode::Interrupted));
    assert!(module.functions().is_empty(), "the call returned before there was code");
    store.set_timeout(Some(Duration::from_secs(3600))).unwrap();
    (module, store, f)
}

#[test]
fn a_call_does_not_wait_for_its_code_beyond_its_time() {
    let engine = with_timeout(10);
    let (module, mut store, f) = left_behind(&engine);
    // The compilation continues, and a call with more time has its result.
    f.call(&mut store, 0).unwrap();
    assert_eq!(module.functions().len(), 1);
}

#[test]
fn a_call_that_waits_for_its_code_notices_epochs() {
    let engine = lazy(|config| _ = config.epoch_interruption(true));
    let module = Module::from_text(&engine, &slow("f")).unwrap();
    let mut store = Store::new(&engine, 0);
    store.set_epoch_deadline(1);
    let instance = Instance::new(&mut store, &module, &[]).unwrap();
    let f = instance.get_typed_func::<i32, i32>(&store, "f").unwrap();
    store.epoch_deadline_callback(|mut context| {
        *context.data_mut() += 1;
        let decision = match *context.data() {
            0..3 => UpdateDeadline::Continue(1),
            _ => UpdateDeadline::Interrupt,
        };
        Ok(decision)
    });
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                engine.increment_epoch();
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let result = f.call(&mut store, 0);
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(result.unwrap_err().trap_code(), Some(TrapCode::Interrupted));
    });
    assert_eq!(*store.data(), 3);
    assert!(module.functions().is_empty(), "the call returned before there was code");
}

#[test]
fn waiting_for_code_costs_no_fuel() {
    let run = |engine: &Engine| {
        let module = Module::from_text(engine, &slow("f")).unwrap();
        let mut store = Store::new(engine, ());
        store.set_fuel(1_000_000).unwrap();
        let f = func(&mut store, &module, "f");
        // The deadline has come.
        let error = f.call(&mut store, 0).unwrap_err();
        assert_eq!(error.trap_code(), Some(TrapCode::Interrupted));
        let interrupted = store.get_fuel().unwrap();
        store.set_epoch_deadline(1 << 40);
        f.call(&mut store, 0).unwrap();
        (interrupted, store.get_fuel().unwrap())
    };
    let configure = |config: &mut Config| _ = config.epoch_interruption(true).consume_fuel(true);
    let interpreter = lazy(|config| configure(config.tier(Tier::Interpreter)));
    let expected = run(&interpreter);
    assert_eq!(run(&lazy(configure)), expected);
    assert_eq!(run(&lazy(|config| configure(config.compile(Compile::Eager)))), expected);
}

/// The host lets the deadline come, and the next function is one that may not be compiled yet.
#[test]
fn backtraces_of_calls_that_wait_are_those_of_other_engines() {
    let source = format!(
        "import \"host\" \"tick\" func tick() -> i32
         import \"host\" \"back\" func back() -> i32
         {}
         export \"called\" func called
         export \"tail\" func tail
         export \"nested\" func nested
         func called() -> i32 {{ call tick drop call inner return }}
         func inner() -> i32 {{ i32.const 1 drop i32.const 5 call f return }}
         func tail() -> i32 {{ call tick return_call f }}
         func nested() -> i32 {{ i32.const 3 drop call back return }}",
        function("f", 200)
    );
    let configure = |config: &mut Config| _ = config.epoch_interruption(true);
    let traces = std::cell::RefCell::new(Vec::new());
    for_all_with(configure, |engine| {
        let mut linker = Linker::new(engine);
        let ticking = engine.clone();
        linker
            .func_wrap("host", "tick", move |_: Caller<'_, ()>| {
                ticking.increment_epoch();
                5
            })
            .unwrap();
        linker
            .func_wrap("host", "back", |mut caller: Caller<'_, ()>| {
                let called = caller.get_export("called").and_then(Extern::into_func).unwrap();
                called.typed::<(), i32>(&caller)?.call(&mut caller, ())
            })
            .unwrap();
        let module = Module::from_text(engine, &source).unwrap();
        for name in ["called", "tail", "nested"] {
            let mut store = Store::new(engine, ());
            let instance = linker.instantiate(&mut store, &module).unwrap();
            store.set_epoch_deadline(1);
            let run = instance.get_typed_func::<(), i32>(&store, name).unwrap();
            let error = run.call(&mut store, ()).unwrap_err();
            traces.borrow_mut().push((name, error.to_string()));
        }
    });
    let traces = traces.into_inner();
    let (expected, others) = traces.split_at(3);
    assert!(expected[0].1.contains("inner"), "{}", expected[0].1);
    assert!(others.len() > 3);
    for others in others.chunks(3) {
        assert_eq!(others, expected);
    }
}

/// Code that checks accesses, since no memory has such a reservation, is made for an instance.
#[test]
fn code_that_is_made_for_an_instance_is_waited_for_as_long_as_calls_may_take() {
    let plan = MemoryPlan { reservation_bytes: 1 << 60, guard_bytes: 1 << 16 };
    let mut config = Config::new();
    config.tier(Tier::BEST);
    let engine = Engine::new(config.memory(Some(plan)).timeout(Some(Duration::from_millis(10))));
    let source = format!(
        "memory m 1 start run func run() {{ i32.const 0 call f drop return }} {}",
        slow("f")
    );
    let engine = engine.unwrap();
    let module = Module::from_text(&engine, &source).unwrap();
    let mut store = Store::new(&engine, ());
    let error = Instance::new(&mut store, &module, &[]).unwrap_err();
    assert_eq!(error.trap_code(), Some(TrapCode::Interrupted));
    store.set_timeout(None).unwrap();
    Instance::new(&mut store, &module, &[]).unwrap();
}

#[test]
fn compilations_that_calls_left_are_few_and_end_with_the_module() {
    alone("waiting::compilations_that_calls_left_are_few_and_end_with_the_module", || {
        let engine = with_timeout(2);
        let n = RUNNING_MAX + 2;
        let module = Module::from_text(&engine, &slow_functions(n)).unwrap();
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        for i in 0..n {
            let f = instance.get_typed_func::<i32, i32>(&store, &format!("f{i}")).unwrap();
            let error = f.call(&mut store, 0).unwrap_err();
            assert_eq!(error.trap_code(), Some(TrapCode::Interrupted));
        }
        assert!((1..=RUNNING_MAX).contains(&n_threads(COMPILER)));
        drop(store);
        assert!((1..=RUNNING_MAX).contains(&n_threads(COMPILER)), "the store does not wait");
        drop(module);
        assert!(threads_become(COMPILER, 0));
    });
}

/// Threads that come and go call two functions of a module with little time, itself or by way of the host.
#[test]
fn many_threads_share_compilations_and_leave_them() {
    alone("waiting::many_threads_share_compilations_and_leave_them", || {
        let engine = with_timeout(1);
        for round in 0..3 {
            let source = format!(
                "import \"host\" \"back\" func back() -> i32
                 export \"run\" func run
                 func run() -> i32 {{ call back return }} {}",
                slow_functions(2)
            );
            let module = Module::from_text(&engine, &source).unwrap();
            std::thread::scope(|scope| {
                for thread in 0..8 {
                    let (engine, module) = (&engine, module.clone());
                    scope.spawn(move || call_often(engine, &module, thread));
                }
            });
            if round == 2 {
                let mut store = Store::new(&engine, ());
                store.set_timeout(None).unwrap();
                let instance = instance_with_back(&mut store, &module);
                for name in ["f0", "f1"] {
                    let f = instance.get_typed_func::<i32, i32>(&store, name).unwrap();
                    assert_eq!(f.call(&mut store, 0).unwrap(), f.call(&mut store, 0).unwrap());
                }
                assert_eq!(
                    module.functions().iter().filter(|f| f.name.starts_with('f')).count(),
                    2
                );
            }
            drop(module);
            assert!(threads_become(COMPILER, 0));
        }
    });
}

fn instance_with_back(store: &mut Store<()>, module: &Module) -> Instance {
    let mut linker = Linker::new(module.engine());
    linker
        .func_wrap("host", "back", |mut caller: Caller<'_, ()>| {
            let f = caller.get_export("f0").and_then(Extern::into_func).unwrap();
            f.typed::<i32, i32>(&caller)?.call(&mut caller, 0)
        })
        .unwrap();
    linker.instantiate(store, module).unwrap()
}

fn call_often(engine: &Engine, module: &Module, thread: usize) {
    for turn in 0..6 {
        let mut store = Store::new(engine, ());
        let instance = instance_with_back(&mut store, module);
        let result = match (thread + turn) % 3 {
            2 => instance.get_typed_func::<(), i32>(&store, "run").unwrap().call(&mut store, ()),
            i => {
                let f = instance.get_typed_func::<i32, i32>(&store, &format!("f{i}")).unwrap();
                f.call(&mut store, 0)
            }
        };
        if let Err(error) = result {
            assert_eq!(error.trap_code(), Some(TrapCode::Interrupted), "{error}");
        }
    }
}

#[test]
fn the_child_of_a_fork_compiles_what_its_parent_was_compiling() {
    alone("waiting::the_child_of_a_fork_compiles_what_its_parent_was_compiling", || {
        let engine = with_timeout(10);
        let (module, mut store, f) = left_behind(&engine);
        // SAFETY: the child runs what only this thread uses, until it exits.
        let child = unsafe { libc::fork() };
        in_both(child, || {
            f.call(&mut store, 0).unwrap();
            // The thread that the child has not is not waited for.
            drop((store, module, engine));
        });
    });
}

/// Panics in the middle of compilations.
struct Panicking;

impl Subscriber for Panicking {
    /// Ignores other threads.
    fn register_callsite(&self, _: &Metadata<'_>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.name() == "clif" && std::thread::current().name() == Some(COMPILER)
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        panic!("in the middle of it");
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn a_panic_while_a_thread_compiles_is_an_error_of_each_call() {
    alone("waiting::a_panic_while_a_thread_compiles_is_an_error_of_each_call", || {
        tracing::subscriber::set_global_default(Panicking).unwrap();
        let engine = lazy(|config| {
            _ = config.timeout(Some(Duration::from_secs(3_600))).contain_faults(true);
        });
        let module = Module::from_text(&engine, &function("f", 3)).unwrap();
        for _ in 0..2 {
            let mut store = Store::new(&engine, ());
            let f = func(&mut store, &module, "f");
            let error = f.call(&mut store, 0).unwrap_err();
            assert!(
                error.to_string().contains("the compiler has panicked: in the middle of it"),
                "{error}"
            );
        }
        assert!(module.functions().is_empty());
    });
}
