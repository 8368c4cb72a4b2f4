//! Faults of the compiler, which the names of functions ask for ([`crate::compile::faults`]).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::compile::faults::{INVALID, LOOP_PANICS, PANICS};
use crate::{
    Compile, CompileFailure, CompileStats, Config, Engine, Instance, Module, Store, Tier,
    TierCompilation, TierThresholds, compiling, raw,
};

/// A function with a loop, and another one that calls it.
fn source(name: &str) -> String {
    format!(
        r#"
        export "run" func run
        func run(n: i64) -> i64 {{
            local.get n  call {name}  i64.const 1  i64.add  return
        }}
        func {name}(n: i64) -> i64 {{
            local t: i64
          again:
            local.get t  local.get n  i64.add  local.set t
            local.get n  i64.const 1  i64.sub  local.tee n
            i64.eqz  i32.eqz  br_if again
            local.get t  return
        }}"#
    )
}

const N: i64 = 100;
const RESULT: i64 = N * (N + 1) / 2 + 1;

fn tiered(compilation: TierCompilation, contain: bool) -> Engine {
    let mut config = Config::new();
    let thresholds = TierThresholds { calls: 1, rounds: 1 };
    config.tier(Tier::Auto).tier_thresholds(Some(thresholds)).tier_compilation(compilation);
    Engine::new(config.passes("-inline".parse().unwrap()).contain_faults(contain)).unwrap()
}

fn jit(contain: bool, configure: impl FnOnce(&mut Config)) -> Engine {
    let mut config = Config::new();
    // What all callers have inlined is not compiled.
    config.tier(Tier::Jit).contain_faults(contain).passes("-inline".parse().unwrap());
    configure(&mut config);
    Engine::new(&config).unwrap()
}

/// Calls `run` in a new store.
fn run(module: &Module) -> Result<i64, crate::Error> {
    let mut store = Store::new(module.engine(), ());
    let instance = Instance::new(&mut store, module, &[])?;
    instance.get_typed_func::<i64, i64>(&store, "run")?.call(&mut store, N)
}

fn failures(stats: &CompileStats) -> Vec<(CompileFailure, u64)> {
    stats.all_failures().collect()
}

#[test]
fn programs_go_on_interpreted_after_a_fault() {
    for compilation in [TierCompilation::Synchronous, TierCompilation::Background] {
        for (name, reason) in [
            (PANICS, CompileFailure::Panic),
            (LOOP_PANICS, CompileFailure::Panic),
            (INVALID, CompileFailure::InvalidForm),
        ] {
            let engine = tiered(compilation, true);
            let module = Module::from_text(&engine, &source(name)).unwrap();
            // A function and its loop fail once each, and no more.
            let n_failures = if name == LOOP_PANICS { 1 } else { 2 };
            let is_done = |stats: &CompileStats| {
                stats.failures(reason) == n_failures && stats.compiled() >= 3 - n_failures
            };
            while !is_done(&module.compile_stats()) {
                assert_eq!(run(&module).unwrap(), RESULT);
                thread::yield_now();
            }
            for _ in 0..20 {
                assert_eq!(run(&module).unwrap(), RESULT);
            }
            drop(module);
            let stats = engine.compile_stats();
            assert_eq!(failures(&stats), [(reason, n_failures)], "{name} {compilation:?}");
            assert_eq!(stats.bugs(), n_failures);
        }
    }
}

#[test]
fn modules_that_are_compiled_at_once_fail_without_a_panic() {
    for is_parallel in [false, true] {
        let engine = jit(true, |config| _ = config.parallel_compilation(is_parallel));
        let error = Module::from_text(&engine, &source(PANICS)).unwrap_err().to_string();
        assert!(error.starts_with("function fault_panics cannot be compiled"), "{error}");
        assert!(error.contains("a fault was asked for; this is a bug in slotvm"), "{error}");
        assert_eq!(failures(&engine.compile_stats()), [(CompileFailure::Panic, 1)]);
        // The engine is of use.
        assert_eq!(run(&Module::from_text(&engine, &source("f")).unwrap()).unwrap(), RESULT);
    }
}

#[test]
fn calls_that_wait_for_code_fail_without_a_panic() {
    for is_interruptible in [false, true] {
        let engine = jit(true, |config| {
            config.compile(Compile::Lazy);
            config.timeout(is_interruptible.then_some(Duration::from_secs(1_000)));
        });
        let module = Module::from_text(&engine, &source(PANICS)).unwrap();
        for _ in 0..3 {
            let error = run(&module).unwrap_err().to_string();
            assert!(error.contains("this is a bug in slotvm"), "{error}");
        }
        let stats = module.compile_stats();
        assert_eq!(failures(&stats), [(CompileFailure::Panic, 1)], "it is tried once");
    }
}

#[test]
fn kept_code_texts_and_c_functions_fail_without_a_panic() {
    let engine = jit(true, |_| {});
    assert!(engine.precompile_module(source(PANICS).as_bytes()).is_err());
    let compiler = raw::Compiler::new(&engine).unwrap();
    assert!(compiler.compile_text(&source(PANICS)).is_err());
    let lazy = jit(true, |config| _ = config.compile(Compile::Lazy));
    let module = Module::from_text(&lazy, &source(PANICS)).unwrap();
    assert!(module.clif(1).is_err() && module.machine_code(1).is_err());
    assert!(module.clif(0).unwrap().is_some());
    assert_eq!(failures(&engine.compile_stats()), [(CompileFailure::Panic, 2)]);
    assert_eq!(failures(&lazy.compile_stats()), [(CompileFailure::Panic, 2)]);
}

fn panics(work: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(work)).is_err()
}

/// No test in a build with debug assertions passes that has a fault.
#[test]
fn faults_panic_where_they_are_not_contained() {
    assert_eq!(Config::new().contain_faults, !cfg!(debug_assertions));
    for name in [PANICS, INVALID] {
        assert!(panics(|| drop(Module::from_text(&jit(false, |_| {}), &source(name)))));
        let lazy = jit(false, |config| _ = config.compile(Compile::Lazy));
        let module = Module::from_text(&lazy, &source(name)).unwrap();
        assert!(panics(|| drop(run(&module))));
        assert!(lazy.compile_stats().bugs() > 0);
        let synchronous = tiered(TierCompilation::Synchronous, false);
        let module = Module::from_text(&synchronous, &source(name)).unwrap();
        assert!(panics(|| drop(run(&module))));
        assert!(synchronous.compile_stats().bugs() > 0);
    }
    for name in [PANICS, INVALID, LOOP_PANICS] {
        let engine = tiered(TierCompilation::Background, false);
        let module = Module::from_text(&engine, &source(name)).unwrap();
        while module.compile_stats().bugs() == 0 {
            assert_eq!(run(&module).unwrap(), RESULT);
            thread::yield_now();
        }
        assert!(panics(|| drop(module)), "{name}");
    }
    // Threads that calls wait for.
    let timeout = Some(Duration::from_secs(1_000));
    let engine = jit(false, |config| _ = config.compile(Compile::Lazy).timeout(timeout));
    let module = Module::from_text(&engine, &source(PANICS)).unwrap();
    assert!(run(&module).is_err());
    assert!(panics(|| drop(module)));
}

/// Takes the events of faults.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<String>>>);

impl Subscriber for Events {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target() == "slotvm::compile"
    }

    fn event(&self, event: &Event<'_>) {
        struct Text(String);
        impl Visit for Text {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                self.0 += &format!("{}={value:?};", field.name());
            }
        }
        let mut text = Text(event.metadata().level().to_string());
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn an_event_names_function_form_and_message() {
    let fail = || {
        let engine = tiered(TierCompilation::Synchronous, true);
        let module = Module::from_text(&engine, &source(PANICS)).unwrap();
        assert_eq!(run(&module).unwrap(), RESULT);
    };
    // What the thread of another test tells first, wanted by nobody there, while this one gets its subscriber, stays
    // unwanted here. So everything is told once before.
    fail();
    let events = Events::default();
    tracing::subscriber::with_default(events.clone(), fail);
    let events = events.0.lock().unwrap();
    let has = |parts: &[&str]| events.iter().any(|e| parts.iter().all(|part| e.contains(part)));
    let message = "a fault was asked for";
    assert!(
        has(&["ERROR", "subject=function f1;", PANICS, message, "bug in slotvm"]),
        "{events:?}"
    );
    assert!(has(&["ERROR", "subject=function f1, loop at 0x", PANICS, message]), "{events:?}");
}

#[test]
fn hooks_learn_of_panics_that_will_be_caught() {
    use crate::compile::contain::Containment;
    use crate::compile::error::CompileError;
    use crate::compile::subject::Subject;

    let subject = Subject::Function(3);
    for contain in [false, true] {
        let containment = Containment::new(Arc::default(), contain);
        let ask = || Ok::<_, CompileError>(compiling());
        let told = containment.run(subject, String::new, ask).unwrap();
        assert_eq!(told, contain.then_some(subject));
        assert_eq!(compiling(), None);
    }
}
