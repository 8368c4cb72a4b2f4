//! Engines of all kinds, and short ways to a running instance.

use std::cell::Cell;
use std::fmt;
use std::time::{Duration, Instant};

use slotvm::{
    Compile, Config, Engine, Error, Instance, Linker, MemoryPlan, Module, SlotMode, Store, Tier,
    TierCompilation, TierThresholds,
};
use slotvm_bytecode::text;

/// An engine with a description that tells it from others.
pub(crate) struct Kind {
    pub(crate) engine: Engine,
    description: String,
}

thread_local! {
    /// Whether modules are written and read again.
    static ARE_KEPT: Cell<bool> = const { Cell::new(false) };
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.description)
    }
}

/// The prefix of descriptions of engines whose modules are written and read again.
const KEPT: &str = "kept code";

/// The interpreter, native code in all slot modes, the same with a check of each memory access, and the same without
/// signals; native code that is compiled when it is called; all tiers in one program, without and with exits of native
/// code; and code that was kept; all with the configuration that `configure` makes.
pub(crate) fn kinds(configure: impl Fn(&mut Config)) -> Vec<Kind> {
    let kind = |description: String, change: &dyn Fn(&mut Config)| {
        let mut config = Config::new();
        config.tier(Tier::BEST);
        configure(&mut config);
        change(&mut config);
        Kind { engine: Engine::new(&config).unwrap(), description }
    };
    let interpreter = kind("interpreter".to_owned(), &|config| {
        config.tier(Tier::Interpreter);
    });
    let native = SlotMode::ALL.into_iter().filter(|_| Tier::BEST != Tier::Interpreter);
    let native = native.flat_map(|slots| {
        let guarded = kind(slots.to_string(), &|config| {
            config.slots(slots);
        });
        let checked = kind(format!("{slots}, checked"), &|config| {
            config.slots(slots).memory(Some(MemoryPlan::CHECKED));
        });
        let without_signals = kind(format!("{slots}, without signals"), &|config| {
            config.slots(slots).signals_based_traps(false);
        });
        [guarded, checked, without_signals]
    });
    let lazy = [true, false].into_iter().filter(|_| Tier::BEST != Tier::Interpreter);
    let lazy = lazy.map(|signals| {
        let slots = if signals { SlotMode::Ssa } else { SlotMode::Memory };
        let suffix = if signals { "" } else { ", without signals" };
        kind(format!("{slots}, lazily{suffix}"), &|config| {
            config.slots(slots).compile(Compile::Lazy).signals_based_traps(signals);
        })
    });
    let thresholds = [1, 2, 3].into_iter().filter(|_| Tier::BEST != Tier::Interpreter);
    let tiered = thresholds.map(|n| {
        let suffix = if n == 2 { ", without signals" } else { "" };
        kind(format!("tiers from {n} on{suffix}"), &|config| {
            let thresholds = TierThresholds { calls: n, rounds: n };
            config.tier(Tier::Auto).tier_thresholds(Some(thresholds));
            config.tier_compilation(TierCompilation::Synchronous).signals_based_traps(n != 2);
        })
    });
    let exits = [1, 2, 3].into_iter().filter(|_| Tier::BEST != Tier::Interpreter);
    let exits = exits.map(|n| {
        kind(format!("tiers from {n} on, with exits"), &|config| {
            let thresholds = TierThresholds { calls: n, rounds: n };
            config.tier(Tier::Auto).tier_thresholds(Some(thresholds));
            config.tier_compilation(TierCompilation::Synchronous).tier_exits(n.into(), n == 3);
        })
    });
    let tiered = tiered.chain(exits);
    let kept = [Tier::Jit, Tier::Auto].into_iter().filter(|tier| Tier::ALL.contains(tier));
    let kept = kept.map(|tier| {
        kind(format!("{KEPT}, {tier}"), &|config| {
            config.tier(tier).code_key(Some([1; 32]));
        })
    });
    std::iter::once(interpreter).chain(native).chain(lazy).chain(tiered).chain(kept).collect()
}

/// Runs a test with engines of all kinds. A failure names the engine.
pub(crate) fn for_all(test: impl Fn(&Engine)) {
    for_all_with(|_| {}, test);
}

/// Runs a test with engines of all kinds and a configuration.
pub(crate) fn for_all_with(configure: impl Fn(&mut Config), test: impl Fn(&Engine)) {
    for kind in kinds(configure) {
        let guard = SayOnPanic(&kind);
        ARE_KEPT.set(kind.description.starts_with(KEPT));
        test(&kind.engine);
        ARE_KEPT.set(false);
        std::mem::forget(guard);
    }
}

struct SayOnPanic<'a>(&'a Kind);

impl Drop for SayOnPanic<'_> {
    fn drop(&mut self) {
        eprintln!("this happened with the engine: {}", self.0);
    }
}

/// A module from text that knows the lines it was made from.
pub(crate) fn module(engine: &Engine, source: &str) -> Module {
    let options = text::ParseOptions { record_lines: true };
    let parsed = text::parse_with(source, options).unwrap_or_else(|error| panic!("{error}"));
    let module = Module::from_bytecode(engine, parsed);
    let module = module.unwrap_or_else(|error| panic!("{error}"));
    if !ARE_KEPT.get() {
        return module;
    }
    Module::deserialize_authenticated(engine, module.serialize().unwrap()).unwrap()
}

/// An instance of a module without imports, in a store without data.
pub(crate) fn instance(engine: &Engine, source: &str) -> (Store<()>, Instance) {
    instance_with(engine, source, &Linker::new(engine), ())
}

/// An instance of a module that imports from a linker.
pub(crate) fn instance_with<T: Send + 'static>(
    engine: &Engine,
    source: &str,
    linker: &Linker<T>,
    data: T,
) -> (Store<T>, Instance) {
    let mut store = Store::new(engine, data);
    let instance = linker.instantiate(&mut store, &module(engine, source));
    (store, instance.unwrap_or_else(|error| panic!("{error}")))
}

/// The frames of a trap: function and source line.
pub(crate) fn frames(error: &Error) -> Vec<(String, u32)> {
    let Error::Trap(trap) = error else { panic!("not a trap: {error}") };
    trap.frames().iter().map(|frame| (frame.func_name(), frame.line().unwrap())).collect()
}

/// Lines of a source that have a mark in a comment.
pub(crate) fn marked(source: &str, mark: &str) -> Vec<u32> {
    let mark = format!("; {mark}");
    let lines = source.lines().enumerate().filter(|(_, line)| line.contains(&mark));
    lines.map(|(i, _)| i as u32 + 1).collect()
}

/// A figure of the process.
pub(crate) fn status_bytes(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let kib = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    kib.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// The threads of this process that have a name.
pub(crate) fn n_threads(name: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| {
        // A thread may end meanwhile.
        std::fs::read_to_string(task.unwrap().path().join("comm")).ok()
    });
    names.filter(|found| found.trim() == name).count()
}

/// Waits until this number of threads have a name: one that has been joined may still be listed.
pub(crate) fn threads_become(name: &str, n: usize) -> bool {
    let hangs_at = Instant::now() + Duration::from_secs(60);
    while n_threads(name) != n {
        if Instant::now() > hangs_at {
            return false;
        }
        std::thread::yield_now();
    }
    true
}
