//! The comparison of engines: one case in the interpreter, in the SSA evaluator on slot form, on SSA form
//! by promotion and by construction on the fly, and as native code in every slot mode.
//!
//! All observable behaviour must be equal: results, or trap code, place and backtrace; the fuel left and the
//! polls made; memory, globals and tables after each call; the calls of host functions and their arguments.
//! NaNs are canonical and call stacks deterministic, so no difference is legitimate. Programs that end
//! without running out of anything also run without fuel and without a deterministic call stack, and must
//! behave the same.
//!
//! In each slot mode native code runs twice: relying on guard pages, and checking each memory access. In the
//! second run it traps by signals in some slot modes and by calls in the others, chosen by the case. So each
//! case covers both, and each mode covers both in half of the cases.
//!
//! Then two slot modes run with a part of the passes, which the case selects: one pass alone, or all but one.
//!
//! This works for any module, not only for generated ones: all imports are provided (`host`), and all
//! definitions are exported for inspection, tables in half of the cases.

mod configurations;
mod engine;
mod evaluator;
mod exits;
mod expose;
mod heap;
mod host;
mod optimized;
mod some_passes;
mod survey;

use std::fmt;
use std::sync::Arc;

use slotvm::compiler::{OnTheFly, Placement, Renaming};
use slotvm::{
    Compile, Config, Engine, Limits, MemoryPlan, SlotMode, Tier, TierCompilation, TierThresholds,
};
use slotvm_bytecode::{TrapCode, VerifiedModule, VerifyError, verify};
use slotvm_ssa::construction::braun::BraunOptions;
use slotvm_ssa::construction::build::{BuildOptions, SsaOptions};
use slotvm_ssa::construction::promote::PromoteOptions;
use slotvm_ssa::ir::Function;
use slotvm_ssa::ir::verify::Form;

use crate::generate::Case;
pub use configurations::{Met, check_configurations, last_configuration};
use engine::Interpretation;
pub use optimized::check_optimized;
use slotvm_cases::stages;
pub use some_passes::parts;
use survey::Watch;
pub use survey::{Facts, Survey};

/// The fuel and the polls that a call may use.
#[derive(Copy, Clone, Debug)]
struct Budget {
    fuel: u64,
    /// The number of polls that let it continue.
    polls: u64,
}

impl Budget {
    /// Everything that a case has.
    fn whole(case: &Case) -> Budget {
        Budget { fuel: case.fuel, polls: u64::MAX }
    }
}

/// Size of the deterministic call stack, in cells.
const STACK_CELLS_MAX: u64 = 2_000;
/// The host's stack that a case may use, if its thread has as much.
pub const NATIVE_STACK_BYTES_MAX: usize = 24 << 20;
/// Limit of the pages of a memory, since all of them are compared.
const MEMORY_PAGES_MAX: u32 = 20;
/// Limit of the elements of a table.
const TABLE_ELEMS_MAX: u32 = 10_000;

/// The outcome of a case in an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The end of instantiation, if it failed.
    pub start: Option<End>,
    /// The calls, the last one with all the fuel.
    pub calls: Vec<Call>,
    /// The arguments of the calls of host functions, as bits, references as null or not.
    pub log: Vec<u128>,
}

/// The outcome of a call, and the state that it leaves behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The end of the call.
    pub end: End,
    /// The fuel left, if it was limited.
    pub fuel: Option<u64>,
    /// The number of polls left that would have let it continue, if they were counted.
    pub polls: Option<u64>,
    /// The memory.
    pub memory: Vec<u8>,
    /// The globals, references as null or not.
    pub globals: Vec<u128>,
    /// The tables, elements as null or not.
    pub tables: Vec<Vec<bool>>,
}

/// The end of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Results, with references as null or not.
    Returned(Vec<u128>),
    /// A trap, with the number of the instruction `trap` if that has trapped.
    Trapped(TrapCode, Option<u32>, Place),
    /// The error of a host function, at its call.
    HostFailed(Place),
    /// The instance cannot be made, for this reason.
    Refused(String),
}

/// The place where a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The function.
    pub func: u32,
    /// The code offset there.
    pub offset: u32,
    /// Function and code offset of each frame, and the number of frames that are not listed. The
    /// evaluator has none.
    pub backtrace: Option<(Vec<(u32, u32)>, u64)>,
}

impl Outcome {
    /// The end of the last call, or of instantiation.
    pub fn end(&self) -> &End {
        self.start.as_ref().unwrap_or_else(|| &self.calls.last().expect("there are calls").end)
    }

    /// Whether the last call ended for another reason than lack of fuel or stack.
    fn runs_without_limits(&self) -> bool {
        use TrapCode::{OutOfFuel, StackOverflow};
        let ends_itself = |end: &End| match end {
            End::Trapped(code, ..) => !matches!(code, OutOfFuel | StackOverflow),
            End::Refused(_) => false,
            End::Returned(_) | End::HostFailed(_) => true,
        };
        ends_itself(self.end())
    }

    fn without_fuel(mut self) -> Outcome {
        self.calls.iter_mut().for_each(|call| (call.fuel, call.polls) = (None, None));
        self
    }

    fn without_backtraces(mut self) -> Outcome {
        let ends = self.start.iter_mut().chain(self.calls.iter_mut().map(|call| &mut call.end));
        for end in ends {
            if let End::Trapped(.., place) | End::HostFailed(place) = end {
                place.backtrace = None;
            }
        }
        self
    }
}

/// Two engines that disagree.
#[derive(Clone, Debug)]
pub struct Difference {
    engine: String,
    expected: Box<Outcome>,
    found: Box<Outcome>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { engine, expected, found } = self;
        writeln!(f, "{engine} differs from the interpreter:")?;
        let mut line = |what: &str, a: &dyn fmt::Debug, b: &dyn fmt::Debug| {
            writeln!(f, "  {what}: {b:?} instead of {a:?}")
        };
        if expected.start != found.start {
            line("start", &expected.start, &found.start)?;
        }
        if expected.log != found.log {
            line("host calls", &expected.log, &found.log)?;
        }
        for (i, (a, b)) in expected.calls.iter().zip(&found.calls).enumerate() {
            if a.end != b.end {
                line(&format!("end of call {i}"), &a.end, &b.end)?;
            }
            if a.fuel != b.fuel {
                line(&format!("fuel after call {i}"), &a.fuel, &b.fuel)?;
            }
            if a.polls != b.polls {
                line(&format!("polls after call {i}"), &a.polls, &b.polls)?;
            }
            if a.globals != b.globals {
                line(&format!("globals after call {i}"), &a.globals, &b.globals)?;
            }
            if a.tables != b.tables {
                line(&format!("tables after call {i}"), &a.tables, &b.tables)?;
            }
            if a.memory != b.memory {
                let at = a.memory.iter().zip(&b.memory).position(|(a, b)| a != b);
                let lens = (a.memory.len(), b.memory.len());
                line(&format!("memory lengths and first difference after call {i}"), &lens, &at)?;
            }
        }
        Ok(())
    }
}

/// A way to run programs.
#[derive(Copy, Clone, Debug)]
struct Plan {
    /// Whether fuel, polls and call stack are limited.
    limited: bool,
    /// The address space of memories in native code that relies on guard pages.
    memory: Option<MemoryPlan>,
}

/// The way in which native code detects accesses out of bounds.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Bounds {
    /// Code relies on guard pages where it can.
    Guarded,
    /// Code checks each access.
    Checked,
    /// Code checks everything, and does not use signals.
    WithoutSignals,
}

impl Bounds {
    const ALL: [Bounds; 3] = [Bounds::Guarded, Bounds::Checked, Bounds::WithoutSignals];

    /// Kinds of memory for a slot mode: with guard pages, and one of those without.
    fn both(case: &Case, slots: SlotMode) -> [Bounds; 2] {
        let mode = SlotMode::ALL.into_iter().position(|mode| mode == slots).expect("all are there");
        let by_signals = (usize::from(case.cut) + mode).is_multiple_of(2);
        [Bounds::Guarded, if by_signals { Bounds::Checked } else { Bounds::WithoutSignals }]
    }
}

impl Plan {
    fn config(self) -> Config {
        let mut config = Config::new();
        config.tier(Tier::BEST);
        let limits = Limits {
            memory_pages_max: MEMORY_PAGES_MAX,
            table_elems_max: TABLE_ELEMS_MAX,
            ..Limits::default()
        };
        config.canonical_nans(true).memory(self.memory).limits(limits);
        // Calls that lead through all tiers take several KB each, and the deterministic call stack must end first.
        config.max_native_stack(NATIVE_STACK_BYTES_MAX);
        if self.limited {
            config
                .consume_fuel(true)
                .epoch_interruption(true)
                .deterministic_stack(Some(STACK_CELLS_MAX));
        }
        config
    }

    /// The accounting of functions.
    fn accounts(self) -> BuildOptions {
        BuildOptions {
            fuel: self.limited,
            stack_cells: self.limited,
            polls: self.limited,
            waits: false,
        }
    }

    /// The functions of a module for the evaluator.
    fn functions(self, module: &VerifiedModule, form: Form) -> Vec<Function> {
        stages::functions(module, form, self.accounts()).unwrap_or_else(|e| panic!("{e}"))
    }

    fn interpreter(self) -> Engine {
        let mut config = self.config();
        config.tier(Tier::Interpreter);
        Engine::new(&config).expect("the interpreter runs everywhere")
    }

    fn promoted(self, promotion: PromoteOptions) -> Engine {
        let mut config = self.config();
        config.tier(Tier::Jit).slots(SlotMode::Ssa).promotion(promotion);
        Engine::new(&config).expect("there is native code for this machine")
    }

    fn on_the_fly(self, options: SsaOptions) -> Engine {
        let mut config = self.config();
        let SsaOptions { braun, fold, copies, .. } = options;
        let options = OnTheFly { braun, fold, copies };
        config.tier(Tier::Jit).slots(SlotMode::Ssa).on_the_fly(options);
        Engine::new(&config).expect("there is native code for this machine")
    }

    fn native_config(self, slots: SlotMode, bounds: Bounds, compile: Compile) -> Config {
        let mut config = self.config();
        config.tier(Tier::Jit).slots(slots).compile(compile);
        match bounds {
            Bounds::Guarded => {}
            Bounds::Checked => _ = config.memory(Some(MemoryPlan::CHECKED)),
            Bounds::WithoutSignals => _ = config.signals_based_traps(false),
        }
        config
    }

    fn native(self, slots: SlotMode, bounds: Bounds, compile: Compile) -> Engine {
        let config = self.native_config(slots, bounds, compile);
        Engine::new(&config).expect("there is native code for this machine")
    }
}

/// The module of a case, verified, with its entities exported; tables only in half of the cases.
///
/// # Errors
/// Fails if the module does not verify.
pub fn verified(case: &Case) -> Result<Arc<VerifiedModule>, Box<VerifyError>> {
    let mut module = case.module.clone();
    expose::expose(&mut module, case.cut.is_multiple_of(2));
    verify(module).map(Arc::new).map_err(Box::new)
}

/// Runs a case in every engine. Returns properties of the program.
///
/// # Errors
/// Returns the first engine that differs from the interpreter.
///
/// # Panics
/// Panics if the case does not verify, an engine refuses it, or the IR verifier finds a violation.
pub fn check(case: &Case) -> Result<Facts, Difference> {
    let module = verified(case).unwrap_or_else(|error| panic!("cases verify: {error}"));
    let plan = Plan { limited: true, memory: case.memory };
    let interpreter = plan.interpreter();
    let (watch, trace) = Watch::start();
    let traced = Interpretation::Traced(trace);
    let whole = engine::run_by(&interpreter, &module, case, &[Budget::whole(case)], traced);
    let budgets = budgets(case, &whole);
    let expected = match budgets.len() {
        1 => whole.clone(),
        _ => engine::run(&interpreter, &module, case, &budgets),
    };
    let found = engine::run(&interpreter, &module, case, &budgets);
    compare(|| "the interpreter without an observer".to_owned(), expected.clone(), found)?;
    let found = engine::run_by(&interpreter, &module, case, &budgets, Interpretation::ByLoop);
    compare(|| "the interpreter by a loop".to_owned(), expected.clone(), found)?;
    // The evaluator has no limits, so it is left out if a store's limits refuse the instance.
    let is_refused = matches!(whole.start, Some(End::Refused(_)));
    if !is_refused {
        let on_the_fly = ssa_options(plan, case);
        let forms = [
            ("slot form".to_owned(), plan.functions(&module, Form::Slots)),
            ("SSA form".to_owned(), plan.functions(&module, Form::Ssa)),
            (format!("SSA form by {on_the_fly:?}"), functions_on_the_fly(&module, &on_the_fly)),
        ];
        for (form, functions) in forms {
            let found = evaluator::run(&module, functions, plan, case, &budgets);
            let engine = || format!("the evaluator on {form}");
            compare(engine, expected.clone().without_backtraces(), found)?;
        }
        exits::check(case, plan, &module, &budgets, &expected)?;
    }
    for mode in SlotMode::ALL {
        for (i, bounds) in Bounds::both(case, mode).into_iter().enumerate() {
            // One of the two, alternating.
            let is_lazy = (usize::from(case.cut) / 2 + i).is_multiple_of(2);
            let compile = if is_lazy { Compile::Lazy } else { Compile::Eager };
            let engine = plan.native(mode, bounds, compile);
            let found = engine::run(&engine, &module, case, &budgets);
            let name = || format!("native code, {mode}, {bounds:?}, {compile:?}");
            compare(name, expected.clone(), found)?;
        }
    }
    check_tiers(case, plan, &module, &budgets, &expected)?;
    check_kept(case, plan, &module, &budgets, &expected)?;
    some_passes::check(case, &module, &budgets, &expected)?;
    if whole.runs_without_limits() {
        check_without_limits(case, &module, &whole)?;
    }
    let watch = watch.lock().expect("the watch does not panic");
    Ok(Facts::new(&module, case.func, &watch, &whole))
}

/// Runs a case in engines that interpret at first, with equal thresholds for all functions and loops, with random ones, and
/// with native code that leaves for the interpreter in the place of random blocks.
fn check_tiers(
    case: &Case,
    plan: Plan,
    module: &Arc<VerifiedModule>,
    budgets: &[Budget],
    expected: &Outcome,
) -> Result<(), Difference> {
    const THRESHOLDS: [u32; 6] = [1, 2, 3, 7, 50, 1000];
    let number = usize::from(case.cut);
    let [guarded, other] = Bounds::both(case, case.bare);
    for (i, bounds) in [guarded, other, guarded].into_iter().enumerate() {
        let slots = if i == 1 { case.bare } else { SlotMode::Ssa };
        let mut config = plan.native_config(slots, bounds, Compile::Eager);
        config.tier(Tier::Auto).tier_compilation(TierCompilation::Synchronous);
        let n = THRESHOLDS[number % THRESHOLDS.len()];
        match i {
            1 => _ = config.tier_seed(number as u64),
            _ => _ = config.tier_thresholds(Some(TierThresholds { calls: n, rounds: n })),
        }
        if i == 2 {
            config.tier_exits(number as u64, number % 2 == 1);
        }
        let engine = Engine::new(&config).expect("there is native code for this machine");
        let found = engine::run(&engine, module, case, budgets);
        let name = || match i {
            0 => format!("all tiers from {n} on, {slots}, {bounds:?}"),
            1 => format!("all tiers at random, {slots}, {bounds:?}"),
            _ => format!("all tiers from {n} on with exits, {slots}, {bounds:?}"),
        };
        compare(name, expected.clone(), found)?;
    }
    Ok(())
}

/// Runs every fourth case with code that was written and read again, in native code alone or in all tiers.
fn check_kept(
    case: &Case,
    plan: Plan,
    module: &Arc<VerifiedModule>,
    budgets: &[Budget],
    expected: &Outcome,
) -> Result<(), Difference> {
    const EVERY: u16 = 4;
    if !case.cut.is_multiple_of(EVERY) {
        return Ok(());
    }
    let number = usize::from(case.cut / EVERY);
    let slots = if number.is_multiple_of(2) { SlotMode::Ssa } else { case.bare };
    let both = Bounds::both(case, slots);
    let bounds = both[number / 2 % both.len()];
    let tier = if (number / 4).is_multiple_of(2) { Tier::Jit } else { Tier::Auto };
    let mut config = plan.native_config(slots, bounds, Compile::Eager);
    config.tier(tier).tier_compilation(TierCompilation::Synchronous).code_key(Some([1; 32]));
    let engine = Engine::new(&config).expect("there is native code for this machine");
    let found = engine::run_kept(&engine, module, case, budgets);
    compare(|| format!("kept code, {tier}, {slots}, {bounds:?}"), expected.clone(), found)
}

/// Runs a case in the interpreter and in two kinds of native code, chosen by a number: one with slots in
/// registers, and one in any mode. `module` is what [`verified`] made of the case.
///
/// # Errors
/// Returns the first engine that differs from the interpreter.
///
/// # Panics
/// Panics if an engine refuses the module.
pub fn check_some(case: &Case, module: &Arc<VerifiedModule>, which: u64) -> Result<(), Difference> {
    let plan = Plan { limited: true, memory: case.memory };
    let interpreter = plan.interpreter();
    let whole = engine::run(&interpreter, module, case, &[Budget::whole(case)]);
    let budgets = budgets(case, &whole);
    let expected = match budgets.len() {
        1 => whole,
        _ => engine::run(&interpreter, module, case, &budgets),
    };
    for mode in [SlotMode::Ssa, case.bare] {
        for (i, bounds) in Bounds::both(case, mode).into_iter().enumerate() {
            // One of the two for each mode.
            if (which >> (mode as u32) & 1) as usize != i {
                continue;
            }
            let is_lazy = which >> (8 + i) & 1 == 0;
            let compile = if is_lazy { Compile::Lazy } else { Compile::Eager };
            let engine = plan.native(mode, bounds, compile);
            let found = engine::run(&engine, module, case, &budgets);
            let name = || format!("native code, {mode}, {bounds:?}, {compile:?}");
            compare(name, expected.clone(), found)?;
        }
    }
    Ok(())
}

/// Runs a case in every form that promotion can construct, in the evaluator and as native code. Also runs
/// native code of the form made directly from bytecode, which [`check`] evaluates.
///
/// # Errors
/// Returns the first form that differs from the interpreter.
///
/// # Panics
/// Panics if the case does not verify, an engine refuses it, or the IR verifier finds a violation.
pub fn check_constructions(case: &Case) -> Result<(), Difference> {
    let module = verified(case).unwrap_or_else(|error| panic!("cases verify: {error}"));
    let plan = Plan { limited: true, memory: case.memory };
    let budgets = [Budget::whole(case)];
    let expected = engine::run(&plan.interpreter(), &module, case, &budgets);
    if matches!(expected.start, Some(End::Refused(_))) {
        return Ok(());
    }
    // Each form runs in native code with the usual options, and in the evaluator with others.
    for (construction, placement) in stages::constructions().zip(Placement::ALL) {
        let usual = PromoteOptions { construction, ..PromoteOptions::default() };
        let found = engine::run(&plan.promoted(usual), &module, case, &budgets);
        compare(|| format!("native code, {usual:?}"), expected.clone(), found)?;
        let other = PromoteOptions { placement, renaming: Renaming::Chains, ..usual };
        let functions = stages::functions_with(&module, Some(other), plan.accounts());
        let functions = functions.unwrap_or_else(|e| panic!("{e}"));
        let found = evaluator::run(&module, functions, plan, case, &budgets);
        let engine = || format!("the evaluator, {other:?}");
        compare(engine, expected.clone().without_backtraces(), found)?;
    }
    let on_the_fly = ssa_options(plan, case);
    let found = engine::run(&plan.on_the_fly(on_the_fly), &module, case, &budgets);
    compare(|| format!("native code, {on_the_fly:?}"), expected, found)
}

/// Runs a case that ends by itself in engines without fuel and without a deterministic call stack.
fn check_without_limits(
    case: &Case,
    module: &Arc<VerifiedModule>,
    limited: &Outcome,
) -> Result<(), Difference> {
    let plan = Plan { limited: false, memory: case.memory };
    let expected = limited.clone().without_fuel();
    let budgets = [Budget::whole(case)];
    let found = engine::run(&plan.interpreter(), module, case, &budgets);
    compare(|| "the interpreter without limits".to_owned(), expected.clone(), found)?;
    for bounds in Bounds::both(case, case.bare) {
        let found =
            engine::run(&plan.native(case.bare, bounds, Compile::Eager), module, case, &budgets);
        let engine = || format!("native code without limits, {}, {bounds:?}", case.bare);
        compare(engine, expected.clone(), found)?;
    }
    let found = evaluator::run(module, plan.functions(module, Form::Ssa), plan, case, &budgets);
    let engine = || "the evaluator without limits".to_owned();
    compare(engine, expected.without_backtraces(), found)
}

/// The options for SSA construction on the fly that a case selects.
fn ssa_options(plan: Plan, case: &Case) -> SsaOptions {
    let is_on = |bit: u32| case.cut >> bit & 1 == 0;
    let braun = BraunOptions { marker: is_on(0), scc_removal: is_on(1), ..BraunOptions::default() };
    SsaOptions { build: plan.accounts(), braun, fold: is_on(2), copies: is_on(3) }
}

fn functions_on_the_fly(module: &VerifiedModule, options: &SsaOptions) -> Vec<Function> {
    stages::functions_on_the_fly(module, options).unwrap_or_else(|e| panic!("{e}"))
}

fn compare(
    engine: impl FnOnce() -> String,
    expected: Outcome,
    found: Outcome,
) -> Result<(), Difference> {
    if found == expected {
        return Ok(());
    }
    let (expected, found) = (Box::new(expected), Box::new(found));
    Err(Difference { engine: engine(), expected, found })
}

/// The budget of each call. If the case asks for it, one call gets too little fuel and one too few polls.
fn budgets(case: &Case, whole: &Outcome) -> Vec<Budget> {
    let all = Budget::whole(case);
    let part = |used: u64| (used * u64::from(case.cut)) >> 16;
    match whole.calls.last() {
        Some(&Call { fuel: Some(fuel), polls: Some(polls), .. }) if case.cut > 0 => vec![
            Budget { fuel: part(all.fuel - fuel), ..all },
            Budget { polls: part(all.polls - polls), ..all },
            all,
        ],
        _ => vec![all],
    }
}
