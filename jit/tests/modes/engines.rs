//! The engines that are compared, and what is compared.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use slotvm::{
    Compile, Config, Engine, Error, Instance, Linker, Module, SlotMode, Store, Tier,
    TierCompilation, TierThresholds, Val,
};
use slotvm_runtime::MemoryPlan;

/// Fuel of each call, where fuel is counted.
const FUEL: u64 = 100_000;

/// Shared setup of the engines.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Setup {
    /// Whether fuel is counted and the call stack is deterministic.
    pub(crate) accounting: bool,
    /// Whether NaNs are canonical.
    pub(crate) canonical_nans: bool,
}

/// An engine and what to call it.
pub(crate) struct Candidate {
    pub(crate) name: String,
    pub(crate) engine: Engine,
}

/// The interpreter, then native code in all modes, with guard pages, with checks of memory accesses, and
/// without signals; native code that is compiled when it is called; and all tiers in one program. If the build has native code.
pub(crate) fn candidates(setup: Setup) -> Vec<Candidate> {
    let interpreter = candidate(setup, "interpreter".to_owned(), |config| {
        config.tier(Tier::Interpreter);
    });
    let mut candidates = vec![interpreter];
    for slots in SlotMode::ALL.into_iter().filter(|_| Tier::ALL.contains(&Tier::Jit)) {
        let guarded = candidate(setup, slots.to_string(), |config| {
            config.slots(slots);
        });
        let checked = candidate(setup, format!("{slots}, checked"), |config| {
            config.slots(slots).memory(Some(MemoryPlan::CHECKED));
        });
        let without_signals = candidate(setup, format!("{slots}, without signals"), |config| {
            config.slots(slots).signals_based_traps(false);
        });
        candidates.extend([guarded, checked, without_signals]);
    }
    candidates.extend([true, false].map(|signals| {
        candidate(setup, format!("lazily, signals: {signals}"), |config| {
            config.compile(Compile::Lazy).signals_based_traps(signals);
        })
    }));
    let thresholds = [1, 2].into_iter().filter(|_| Tier::ALL.contains(&Tier::Auto));
    candidates.extend(thresholds.map(|n| {
        candidate(setup, format!("tiers from {n} on"), |config| {
            let thresholds = TierThresholds { calls: n, rounds: n };
            config.tier(Tier::Auto).tier_thresholds(Some(thresholds));
            config.tier_compilation(TierCompilation::Synchronous).signals_based_traps(n == 1);
        })
    }));
    candidates
}

fn candidate(setup: Setup, name: String, change: impl FnOnce(&mut Config)) -> Candidate {
    let mut config = Config::new();
    config.tier(Tier::BEST).canonical_nans(setup.canonical_nans);
    if setup.accounting {
        config.consume_fuel(true).deterministic_stack(Some(2_000));
    }
    change(&mut config);
    Candidate { name, engine: Engine::new(&config).unwrap() }
}

/// An instance in a store of its own, with the host functions that the tests know.
pub(crate) struct Guest {
    pub(crate) store: Store<u64>,
    pub(crate) instance: Instance,
    accounting: bool,
}

impl Guest {
    pub(crate) fn new(candidate: &Candidate, setup: Setup, source: &str) -> Guest {
        let engine = &candidate.engine;
        let module = Module::from_text(engine, source).unwrap_or_else(|error| panic!("{error}"));
        let mut linker = Linker::new(engine);
        let mix = |a: i32, b: f64| i64::from(a) + b as i64;
        linker.func_wrap("env", "mix", mix).unwrap();
        let fail = |a: i64| if a < 0 { Err(Error::Usage("negative".into())) } else { Ok(a + 1) };
        linker.func_wrap("env", "fail", fail).unwrap();
        let mut store = Store::new(engine, 0);
        let instance = linker.instantiate(&mut store, &module).unwrap();
        Guest { store, instance, accounting: setup.accounting }
    }

    /// Calls an export. Returns results, or where and why it stopped; the fuel left, and a digest of the
    /// memory.
    pub(crate) fn call(&mut self, export: &str, args: &[Val]) -> String {
        if self.accounting {
            self.store.set_fuel(FUEL).unwrap();
        }
        let func = self.instance.get_func(&self.store, export).expect("the export is a function");
        let ty = func.ty(&self.store);
        let mut results: Vec<Val> = ty.results.iter().map(|&ty| Val::default_for(ty)).collect();
        let mut outcome = match func.call(&mut self.store, args, &mut results) {
            Ok(()) => results.iter().map(show).collect::<Vec<_>>().join(" "),
            Err(Error::Trap(trap)) => {
                let frames =
                    trap.frames().iter().map(|f| format!("{}+{:#x}", f.func_name(), f.offset));
                format!("{} at {}", trap.code, frames.collect::<Vec<_>>().join(" < "))
            }
            Err(error) => format!("error: {error}"),
        };
        if self.accounting {
            outcome += &format!(", fuel {}", self.store.get_fuel().unwrap());
        }
        if let Some(memory) = self.instance.get_memory(&self.store, "mem") {
            let mut hasher = DefaultHasher::new();
            memory.data(&self.store).hash(&mut hasher);
            outcome += &format!(", memory {:x}", hasher.finish());
        }
        outcome
    }
}

/// A value by its bits. The bits of a NaN are the machine's business, so they are left out; tests of
/// canonical ones look at integers.
fn show(value: &Val) -> String {
    match *value {
        Val::I32(value) => format!("{value:#x}"),
        Val::I64(value) => format!("{value:#x}"),
        Val::F32(bits) if f32::from_bits(bits).is_nan() => "nan".into(),
        Val::F32(bits) => format!("{bits:#x}f"),
        Val::F64(bits) if f64::from_bits(bits).is_nan() => "nan".into(),
        Val::F64(bits) => format!("{bits:#x}d"),
        Val::V128(vector) => format!("{:#x}", vector.as_u128()),
        Val::FuncRef(func) => format!("func {}", func.is_some()),
        Val::ExternRef(object) => format!("extern {}", object.is_some()),
        Val::Ref(object) => format!("ref {}", object.is_some()),
    }
}

/// Makes the same calls, one after the other, in all engines; the interpreter's outcomes are right.
/// Returns these.
pub(crate) fn compare(source: &str, calls: &[(&str, Vec<Val>)]) -> Vec<String> {
    let mut expected = Vec::new();
    for accounting in [false, true] {
        let setup = Setup { accounting, ..Setup::default() };
        let mut reference: Option<Vec<String>> = None;
        for candidate in &candidates(setup) {
            let mut guest = Guest::new(candidate, setup, source);
            let outcomes: Vec<String> =
                calls.iter().map(|(export, args)| guest.call(export, args)).collect();
            let Some(reference) = &reference else {
                reference = Some(outcomes);
                continue;
            };
            for ((outcome, expected), call) in outcomes.iter().zip(reference).zip(calls) {
                assert_eq!(outcome, expected, "{call:?} in {}, {setup:?}", candidate.name);
            }
        }
        if !accounting {
            expected = reference.expect("there are engines");
        }
    }
    expected
}
