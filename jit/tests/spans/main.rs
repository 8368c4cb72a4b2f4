//! The stages as spans, as a subscriber sees them.
//!
//! A program of its own with one test at a time: `tracing` keeps for each span whether anybody wants it, and a
//! span that one thread enters for the first time, wanted by nobody there, while another thread gets its
//! subscriber, stays unwanted for both.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use slotvm::compiler::OnTheFly;
use slotvm::{Config, Engine, Instance, Module, SlotMode, Store, Tier};
use slotvm_bytecode::{encode, text, verify};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

const SOURCE: &str = r#"
    export "f" func f
    func f(n: i64) -> i64 {
      local sum: i64
    next:
      local.get sum local.get n i64.add local.set sum
      local.get n i64.const 1 i64.sub local.tee n i64.eqz i32.eqz br_if next
      local.get sum return }"#;

/// Writes down the spans up to a level, each with those that it was made in, and what is told of kept code.
struct Recorder {
    level: Level,
    n_spans: AtomicU64,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Names, by number less one.
    names: Vec<String>,
    entered: Vec<u64>,
    /// Whenever a span was entered: all that are then entered, outermost first.
    paths: Vec<String>,
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        (metadata.is_span() || metadata.target() == "slotvm::cache")
            && *metadata.level() <= self.level
            && metadata.target().starts_with("slotvm")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut name = span.metadata().name().to_owned();
        span.record(&mut Fields(&mut name));
        self.state.lock().unwrap().names.push(name);
        Id::from_u64(self.n_spans.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn enter(&self, span: &Id) {
        let mut state = self.state.lock().unwrap();
        state.entered.push(span.into_u64());
        let names = state.entered.iter().map(|&id| state.names[id as usize - 1].as_str());
        let path = names.collect::<Vec<_>>().join(" > ");
        state.paths.push(path);
    }

    fn exit(&self, span: &Id) {
        let innermost = self.state.lock().unwrap().entered.pop();
        assert_eq!(innermost, Some(span.into_u64()));
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut state = self.state.lock().unwrap();
        values.record(&mut Fields(&mut state.names[span.into_u64() as usize - 1]));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut text = event.metadata().level().to_string();
        event.record(&mut Fields(&mut text));
        self.state.lock().unwrap().paths.push(text);
    }
}

/// Adds fields to the name of a span.
struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        *self.0 += &format!(" {}={value:?}", field.name());
    }
}

/// Returns the spans entered meanwhile. Whatever enters spans in this program does so in here: see above.
fn spans(level: Level, run: impl FnOnce()) -> Vec<String> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let state = Arc::new(Mutex::new(State::default()));
    let recorder = Recorder { level, n_spans: AtomicU64::new(0), state: state.clone() };
    tracing::subscriber::with_default(recorder, run);
    let mut state = state.lock().unwrap();
    assert!(state.entered.is_empty(), "{:?}", state.entered);
    std::mem::take(&mut state.paths)
}

fn instantiate(config: &Config, bytes: &[u8]) {
    let engine = Engine::new(config).unwrap();
    let module = Module::new(&engine, bytes).unwrap();
    Instance::new(Store::new(&engine, ()), &module, &[]).unwrap();
}

#[test]
fn modules_without_native_code_have_a_span_for_each_stage() {
    let mut config = Config::new();
    config.tier(Tier::Interpreter);
    let found = spans(Level::TRACE, || instantiate(&config, SOURCE.as_bytes()));
    let parse = format!("load bytes={}", SOURCE.len());
    assert_eq!(found, [&parse, "verify functions=1", "instantiate"]);
    let bytes = encode(&text::parse(SOURCE).unwrap());
    let found = spans(Level::TRACE, || instantiate(&config, &bytes));
    assert_eq!(found[0], format!("load bytes={}", bytes.len()));
}

#[test]
#[cfg_attr(not(feature = "jit"), ignore = "needs native code")]
fn compiling_has_a_span_for_each_stage_of_each_function() {
    let functions = |slots, on_the_fly: Option<OnTheFly>| {
        let mut config = Config::new();
        config.tier(Tier::BEST);
        config.slots(slots);
        if let Some(options) = on_the_fly {
            config.on_the_fly(options);
        }
        let found = spans(Level::TRACE, || instantiate(&config, SOURCE.as_bytes()));
        let compile = found.iter().position(|span| span == "compile functions=1").unwrap();
        let stages = found.iter().filter_map(|span| span.strip_prefix("compile functions=1 > "));
        let stages = stages.map(|span| span.replace("function func=0 name=\"f\"", "f"));
        let stages: Vec<String> = stages.collect();
        assert_eq!(found[compile + 1 + stages.len()], "instantiate", "{found:?}");
        stages.join(", ")
    };
    let passes = "f > forward, f > peephole, f > simplify_cfg, f > if_convert";
    let ssa = format!(
        "f, f > slots, f > devirtualise, f > inline, f > rotate, f > roots, f > pressure, f > ssa, {passes}, f > budget, f > clif, f > asm, place"
    );
    assert_eq!(functions(SlotMode::Ssa, None), ssa);
    let memory = "f, f > slots, f > devirtualise, f > inline, f > rotate, f > roots, f > budget, f > clif, f > asm, place";
    assert_eq!(functions(SlotMode::Memory, None), memory);
    let on_the_fly = format!("f, f > ssa, {passes}, f > budget, f > clif, f > asm, place");
    assert_eq!(functions(SlotMode::Ssa, Some(OnTheFly::default())), on_the_fly);
}

#[test]
fn spans_of_functions_are_of_the_lowest_level_only() {
    let found =
        spans(Level::DEBUG, || instantiate(Config::new().tier(Tier::BEST), SOURCE.as_bytes()));
    assert!(found.iter().any(|span| span == "instantiate"), "{found:?}");
    assert!(found.iter().all(|span| !span.contains("function func")), "{found:?}");
}

#[test]
#[cfg_attr(not(feature = "jit"), ignore = "needs native code")]
fn kept_code_that_is_not_used_is_told_of() {
    let is_used = |engine: &Engine, bytes: &[u8]| {
        let module = Module::deserialize_authenticated(engine, bytes).unwrap();
        let mut store = Store::new(engine, ());
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        let f = instance.get_typed_func::<i64, i64>(&store, "f").unwrap();
        assert_eq!(f.call(&mut store, 4).unwrap(), 10);
        module.compile_stats().replaced() == 0
    };
    let found = spans(Level::WARN, || {
        let engine = Engine::new(Config::new().tier(Tier::BEST).code_key(Some([7; 32]))).unwrap();
        let bytes = engine.precompile_module(SOURCE.as_bytes()).unwrap();
        assert!(is_used(&engine, &bytes));
        // The code comes after what is read at once, and before what is read for other things.
        let mut places = (0..bytes.len()).rev().step_by(8);
        places
            .find(|&at| {
                let mut changed = bytes.clone();
                changed[at] ^= 1;
                !is_used(&engine, &changed)
            })
            .unwrap();
    });
    let refusal = "a precompiled module that was changed, or that has another key";
    assert_eq!(found, [format!("WARN message=code not used chunk=1 refusal={refusal}")]);
}

#[test]
fn passes_of_bytecode_have_spans() {
    let found = spans(Level::TRACE, || {
        let module = verify(text::parse(SOURCE).unwrap()).unwrap();
        slotvm_ssa::optimize::optimize(&module).unwrap();
    });
    let passes = ["slots", "ssa", "peephole", "simplify", "simplify_cfg", "destruct", "write"];
    let passes = passes.map(|pass| format!("optimize > function func=0 name=\"f\" > {pass}"));
    assert_eq!(found[2..], passes);
}
