//! Configurations as users choose them: a few for each case, drawn by a number so that all pairs of settings meet over
//! a run.
//!
//! [`check`](super::check) runs each case in every engine and form; this runs it in four configurations, and so gets
//! through many more cases, in the build that users have. Programs that end by themselves also run without fuel, polls and
//! a deterministic call stack, as by default.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use slotvm::{
    Compile, CompileFailure, Config, Engine, PassSet, SlotMode, Tier, TierCompilation,
    TierThresholds,
};
use slotvm_bytecode::{Op, ValType, VerifiedModule};

use super::{Bounds, Budget, Difference, Outcome, Plan, budgets, compare, engine, parts};
use crate::choices::{Choices, random_bytes};
use crate::generate::Case;

/// The configurations that each case runs in.
const CONFIGURATIONS: usize = 4;
/// Thresholds of tiers; 0 stands for the default.
const THRESHOLDS: [u32; 7] = [0, 1, 2, 3, 7, 50, 1_000];

/// When native code is made.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Making {
    /// The default: by other threads, while the program is interpreted.
    Background,
    /// By the program's thread, at thresholds.
    Synchronous,
    /// By the program's thread, at random moments.
    Random,
    Eager,
    Lazy,
}

impl Making {
    const ALL: [Making; 5] =
        [Making::Background, Making::Synchronous, Making::Random, Making::Eager, Making::Lazy];
}

/// Settings of an engine.
#[derive(Clone, Debug)]
struct Configuration {
    making: Making,
    threshold: u32,
    slots: SlotMode,
    passes: PassSet,
    /// The number of the passes among those of a draw.
    passes_number: usize,
    bounds: Bounds,
    /// Whether fuel, polls and call stack are limited.
    is_limited: bool,
    /// Whether code polls although nothing ever interrupts it.
    polls_idly: bool,
    /// Whether native code of some blocks is left for the interpreter.
    has_exits: bool,
    /// Whether code is written and read again.
    is_kept: bool,
    seed: u64,
}

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Configuration { making, threshold, slots, passes, bounds, .. } = self;
        let Configuration { is_limited, polls_idly, has_exits, is_kept, .. } = self;
        write!(f, "{making:?}, threshold {threshold}, {slots}, passes {passes}, {bounds:?}")?;
        write!(f, "{}", if *is_limited { ", with limits" } else { "" })?;
        write!(f, "{}", if *polls_idly { ", polling" } else { "" })?;
        write!(f, "{}", if *has_exits { ", with exits" } else { "" })?;
        write!(f, "{}", if *is_kept { ", kept" } else { "" })
    }
}

/// The sets of passes: all, none, and [`parts`].
fn pass_sets() -> impl Iterator<Item = PassSet> {
    [PassSet::all(), PassSet::none()].into_iter().chain(parts())
}

impl Configuration {
    /// Each setting is the default one in half of the draws, or more.
    fn draw(choices: &mut Choices<'_>) -> Configuration {
        // Most users change one setting or none.
        let is_usual = choices.percent(30);
        let mut is_default = || is_usual || choices.percent(50);
        let defaults: [bool; 6] = std::array::from_fn(|_| is_default());
        let or = |is_default: bool, n: usize, choices: &mut Choices<'_>| {
            let number = choices.below(n);
            if is_default { 0 } else { number }
        };
        let making = Making::ALL[or(defaults[0], Making::ALL.len(), choices)];
        // What runs in the background would seldom get far enough.
        let threshold = THRESHOLDS[or(defaults[1], THRESHOLDS.len(), choices)];
        let slots =
            SlotMode::ALL[SlotMode::ALL.len() - 1 - or(defaults[2], SlotMode::ALL.len(), choices)];
        let passes_number = or(defaults[3], pass_sets().count(), choices);
        let passes = pass_sets().nth(passes_number).expect("the number is less than theirs");
        let bounds = Bounds::ALL[or(defaults[4], Bounds::ALL.len(), choices)];
        let is_limited = !defaults[5];
        let is_kept = choices.percent(6);
        let seed = choices.bits();
        let has_exits = !is_usual && seed & 1 == 1;
        let polls_idly = !is_usual && !is_limited && seed & 4 == 4;
        Configuration {
            making,
            threshold,
            slots,
            passes,
            passes_number,
            bounds,
            is_limited,
            polls_idly,
            has_exits,
            is_kept,
            seed,
        }
    }

    fn engine(&self, case: &Case, canonical_nans: bool, verifies: bool) -> Engine {
        let plan = Plan { limited: self.is_limited, memory: case.memory };
        let compile = if self.making == Making::Lazy { Compile::Lazy } else { Compile::Eager };
        let mut config: Config = plan.native_config(self.slots, self.bounds, compile);
        config.canonical_nans(canonical_nans).passes(self.passes).code_key(Some([1; 32]));
        if verifies {
            config.verify_passes(true);
        }
        match self.making {
            Making::Eager | Making::Lazy => {}
            Making::Background => _ = config.tier(Tier::Auto),
            Making::Synchronous | Making::Random => {
                config.tier(Tier::Auto).tier_compilation(TierCompilation::Synchronous);
            }
        }
        if self.polls_idly {
            config.epoch_interruption(true);
        }
        if self.has_exits {
            config.tier_exits(self.seed, self.seed & 2 == 2);
        }
        if self.making == Making::Random {
            config.tier_seed(self.seed);
        } else if self.threshold > 0 {
            let n = self.threshold;
            config.tier_thresholds(Some(TierThresholds { calls: n, rounds: n }));
        }
        Engine::new(&config).expect("there is native code for this machine")
    }

    fn is_tiered(&self) -> bool {
        !matches!(self.making, Making::Eager | Making::Lazy)
    }

    /// The settings, as numbers of a table: setting and option.
    fn settings(&self) -> [(u8, u8); 7] {
        let slots = SlotMode::ALL.into_iter().position(|slots| slots == self.slots);
        let bounds = Bounds::ALL.into_iter().position(|bounds| bounds == self.bounds);
        let threshold = THRESHOLDS.into_iter().position(|threshold| threshold == self.threshold);
        let number = |option: Option<usize>| option.expect("it is in the table") as u8;
        [
            (0, self.making as u8),
            (1, number(threshold)),
            (2, number(slots)),
            (3, self.passes_number as u8),
            (4, number(bounds)),
            (5, u8::from(self.is_limited)),
            (6, u8::from(self.has_exits)),
        ]
    }
}

/// The number of options of each setting.
fn n_options() -> [u8; 7] {
    let n_passes = pass_sets().count();
    [Making::ALL.len(), THRESHOLDS.len(), SlotMode::ALL.len(), n_passes, Bounds::ALL.len(), 2, 2]
        .map(|n| n as u8)
}

/// An option of a setting.
type Setting = (u8, u8);

/// The pairs of options that met in configurations, and the refusals.
#[derive(Clone, Debug, Default)]
pub struct Met {
    had: BTreeSet<(Setting, Setting)>,
    n_refused: u64,
}

impl Met {
    /// Adds those of others.
    pub fn add(&mut self, other: Met) {
        self.had.extend(other.had);
        self.n_refused += other.n_refused;
    }

    /// The number of compilations that were refused for the budget.
    pub fn n_refused(&self) -> u64 {
        self.n_refused
    }

    fn add_configuration(&mut self, configuration: &Configuration) {
        let settings = configuration.settings();
        for (i, &a) in settings.iter().enumerate() {
            self.had.extend(settings[i + 1..].iter().map(|&b| (a, b)));
        }
    }

    /// The number of pairs of options that no configuration had.
    pub fn n_missing(&self) -> usize {
        let n = n_options().map(usize::from);
        let n_pairs: usize =
            (0..n.len()).map(|i| n[i + 1..].iter().map(|other| n[i] * other).sum::<usize>()).sum();
        n_pairs - self.had.len()
    }
}

thread_local! {
    /// The configuration that runs, for reports of panics.
    static RUNNING: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The configuration that this thread ran last.
pub fn last_configuration() -> String {
    RUNNING.with_borrow(String::clone)
}

/// Runs a case in the interpreter, and in four configurations that a seed draws, with passes verified or not.
///
/// # Errors
/// Returns the first configuration that differs from the interpreter.
///
/// # Panics
/// Panics if the case does not verify, or an engine refuses it.
pub fn check_configurations(case: &Case, seed: u64, verifies: bool) -> Result<Met, Difference> {
    let module = super::verified(case).unwrap_or_else(|error| panic!("cases verify: {error}"));
    let bytes = random_bytes(seed, CONFIGURATIONS * 32);
    let mut drawn = bytes.chunks(32).map(|bytes| Configuration::draw(&mut Choices::new(bytes)));
    let expected = Expected::new(case, &module);
    let mut met = Met::default();
    drawn.try_for_each(|mut configuration| {
        configuration.is_limited |= expected.unlimited.is_none();
        met.add_configuration(&configuration);
        RUNNING.replace(configuration.to_string());
        met.n_refused += check_one(case, &module, &expected, &configuration, verifies)?;
        Ok(())
    })?;
    Ok(met)
}

fn check_one(
    case: &Case,
    module: &Arc<VerifiedModule>,
    expected: &Expected,
    configuration: &Configuration,
    verifies: bool,
) -> Result<u64, Difference> {
    let engine = configuration.engine(case, expected.canonical_nans, verifies);
    let (budgets, expected) = match &expected.unlimited {
        Some(unlimited) if !configuration.is_limited => (&[Budget::whole(case)][..], unlimited),
        _ => (&expected.budgets[..], &expected.limited),
    };
    let found = match configuration.is_kept {
        true => engine::run_kept(&engine, module, case, budgets),
        false => engine::run(&engine, module, case, budgets),
    };
    let n_refused = n_refused(&engine, configuration);
    compare(|| configuration.to_string(), expected.clone(), found)?;
    Ok(n_refused)
}

/// Returns the number of compilations that were refused for the budget.
///
/// # Panics
/// Panics if the engine, whose modules and stores are gone, could not compile something, except for two reasons. Several
/// loops may have no form in common, since each then has one of its own. Code of a function and of its loops draws on one
/// share of the budget, which can be too little if thresholds ask for more of it than a program would need.
fn n_refused(engine: &Engine, configuration: &Configuration) -> u64 {
    let stats = engine.compile_stats();
    let may_exceed = configuration.is_tiered() && configuration.threshold != 0
        || configuration.making == Making::Random;
    for (reason, n) in stats.all_failures() {
        match reason {
            CompileFailure::DifferentOperands => {}
            CompileFailure::Budget if may_exceed => {}
            reason => panic!("{n} compilations failed: {reason}"),
        }
    }
    assert_eq!(stats.replaced(), 0, "pieces of kept code failed their check");
    stats.failures(CompileFailure::Budget)
}

/// The outcomes of a case in the interpreter.
struct Expected {
    budgets: Vec<Budget>,
    limited: Outcome,
    /// The outcome without limits, if the program ends by itself.
    unlimited: Option<Outcome>,
    /// Whether NaNs must be canonical for outcomes to be equal.
    canonical_nans: bool,
}

impl Expected {
    fn new(case: &Case, module: &Arc<VerifiedModule>) -> Expected {
        let canonical_nans = computes_floats(module);
        let interpreter = |limited| {
            let mut config = Plan { limited, memory: case.memory }.config();
            config.canonical_nans(canonical_nans).tier(Tier::Interpreter);
            Engine::new(&config).expect("the interpreter runs everywhere")
        };
        let (limited, whole) = (interpreter(true), [Budget::whole(case)]);
        let outcome = engine::run(&limited, module, case, &whole);
        let budgets = budgets(case, &outcome);
        let ends = outcome.runs_without_limits();
        let unlimited = ends.then(|| outcome.clone().without_fuel());
        let limited = match budgets.len() {
            1 => outcome,
            _ => engine::run(&limited, module, case, &budgets),
        };
        Expected { budgets, limited, unlimited, canonical_nans }
    }
}

/// Whether instructions of a module may make NaNs.
fn computes_floats(module: &VerifiedModule) -> bool {
    let makes_floats = |op: Op| {
        let types = op.signature().map_or(&[][..], |sig| sig.results);
        let is_float = |ty: &ValType| matches!(ty, ValType::F32 | ValType::F64 | ValType::V128);
        types.iter().any(is_float)
            && op.access_bytes().is_none()
            && !op.signature().is_some_and(|sig| sig.params.is_empty())
    };
    (module.n_imported_funcs()..module.n_funcs()).any(|func| {
        let blocks = &module.body(func).expect("the module defines it").blocks;
        blocks.iter().any(|block| module.insts(func, block).any(|(_, inst)| makes_floats(inst.op)))
    })
}
