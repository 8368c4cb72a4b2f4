//! The loop over the rows that leave a function of our IR: everyone who runs them calls it.
//!
//! A [`Driver`] runs the rows of its user that are switched on, in the order of the table, from the form that its function
//! has. A row gets the function and a [`PassContext`], where it leaves its report, and returns its [`Outcome`].

use slotvm_bytecode::VerifiedModule;

use super::{
    Checks, Growth, PassSet, Product, Row, Run, StageError, TABLE, Times, User, When, rows_of,
};
use crate::construction::build::{BuildOptions, BuildScratch, FuncExits};
use crate::construction::promote::{self, PromoteOptions, PromotionReport};
use crate::ir::Function;
use crate::ir::analyses::Analyses;
use crate::passes::inline::{BodyExits, ExitPlan, KeptForms};
use crate::passes::pressure::PreservedRegisters;

/// The function of a row.
pub type Pass = fn(&mut Function, &mut PassContext<'_>) -> Outcome;

/// How a row went.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The function is in the form that the row makes, and its blocks and edges are as they were.
    Kept,
    /// The function is in the form that the row makes.
    Changed,
    /// Likewise, and it may have become larger than its bytecode. Only rows with a [`Growth`] say so.
    Grown,
    /// The row cannot be run on this function, which is as it was. No row after it runs.
    GivenUp,
}

impl Outcome {
    /// The outcome of a row that makes functions larger, if it has made changes.
    pub fn grown_if(has_changed: bool) -> Outcome {
        if has_changed { Outcome::Grown } else { Outcome::Kept }
    }
}

/// Memory that rows reuse from function to function.
#[derive(Debug, Default)]
pub struct PassScratch {
    /// Memory of construction.
    pub build: BuildScratch,
    /// Functions that others call, for inlining.
    pub callees: KeptForms,
    /// Memory of promotion. After promotion it has the values of slots.
    pub promote: promote::Scratch,
    /// What is known of the function that went through the rows last.
    pub analyses: Analyses,
}

/// The inputs of rows besides their function, and their reports.
#[derive(Debug)]
pub struct PassContext<'a> {
    /// The module of the function.
    pub module: &'a VerifiedModule,
    /// The number of the function, which is built of its bytecode.
    pub func: u32,
    /// The blocks that it is entered at instead of its start, if there are any.
    pub starts: &'a [u32],
    /// The exits of the function itself.
    pub exits: &'a FuncExits,
    /// The exits of the bodies of functions that are inlined, if they have any. Then [`BuildOptions::waits`] has to be set.
    pub body_exits: Option<BodyExits<'a>>,
    /// Whether values get the names of locals.
    pub takes_names: bool,
    /// The charges of this function and of those that are inlined.
    pub build: BuildOptions,
    /// The options of promotion.
    pub promotion: PromoteOptions,
    /// The registers of the machine that code is made for.
    pub preserved: PreservedRegisters,
    /// Memory.
    pub scratch: &'a mut PassScratch,
    /// The report of promotion, once it ran.
    pub promoted: Option<PromotionReport>,
    /// The functions whose bodies were inlined.
    pub inlined: Vec<u32>,
    /// The locals of the slots that a function out of SSA form has: see [`mod@crate::passes::destruct`].
    pub locals: Vec<Option<u32>>,
}

impl<'a> PassContext<'a> {
    /// The context of a function without charges, with the default options.
    pub fn new(module: &'a VerifiedModule, func: u32, scratch: &'a mut PassScratch) -> Self {
        PassContext {
            module,
            func,
            starts: &[],
            exits: FuncExits::NONE,
            body_exits: None,
            takes_names: false,
            build: BuildOptions::default(),
            promotion: PromoteOptions::default(),
            preserved: PreservedRegisters::default(),
            scratch,
            promoted: None,
            inlined: Vec::new(),
            locals: Vec::new(),
        }
    }

    /// The same with the exits of a plan, if there is one.
    pub fn with_exits(self, plan: Option<&'a ExitPlan>) -> Self {
        let Some(plan) = plan else { return self };
        let body_exits = plan.of_bodies();
        let build = BuildOptions { waits: body_exits.is_some(), ..self.build };
        PassContext { exits: &plan.of_func, body_exits, build, ..self }
    }
}

/// Where the rows begin.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// The function is built of its bytecode.
    Bytecode,
    /// It is in slot form.
    Slots,
    /// It is in SSA form.
    Ssa,
}

/// A run of rows over a function.
#[derive(Debug)]
pub struct Driver<'t> {
    user: User,
    passes: PassSet,
    is_promoted: bool,
    last: Option<&'static str>,
    checks: Checks,
    times: &'t mut Times,
}

/// The end of a run.
#[derive(Copy, Clone, Debug)]
pub struct Ran {
    /// The row that has given up.
    pub given_up: Option<&'static Row>,
    /// How much larger the rows may have made the function.
    pub growth: Growth,
}

impl<'t> Driver<'t> {
    /// A driver of the rows of a user that are switched on. Functions are verified after each row if `verifies`.
    pub fn new(user: User, passes: PassSet, verifies: bool, times: &'t mut Times) -> Driver<'t> {
        let checks = Checks::new(verifies);
        Driver { user, passes, is_promoted: true, last: None, checks, times }
    }

    /// Leaves out promotion and what serves it, if the function is not promoted.
    pub fn promoted(self, is_promoted: bool) -> Driver<'t> {
        Driver { is_promoted, ..self }
    }

    /// Ends with this row.
    pub fn up_to(self, last: &Row) -> Driver<'t> {
        Driver { last: Some(last.name), ..self }
    }

    /// Runs the rows. `on_row` sees the function as it is after each, and at the start if it is not built.
    ///
    /// # Errors
    /// Fails if a row leaves an invalid function, which is a fault of this project.
    pub fn run(
        mut self,
        f: &mut Function,
        start: Start,
        context: &mut PassContext<'_>,
        mut on_row: impl FnMut(&'static Row, &Function),
    ) -> Result<Ran, StageError> {
        let mut ran = Ran { given_up: None, growth: Growth::None };
        context.scratch.analyses.forget();
        for (place, row) in self.rows(start) {
            if start.is_left_by(row) {
                // The function is as this row leaves it.
                self.checks.after(row, f, context.module)?;
            } else {
                let Run::Pass(pass) = row.run else { unreachable!("{} is no pass", row.name) };
                if !row.copies_effects() {
                    self.checks.before(f);
                }
                match row.timed(self.times.of_row(place), || pass(f, context)) {
                    Outcome::Kept if cfg!(debug_assertions) => context.scratch.analyses.check(f),
                    Outcome::Kept => {}
                    Outcome::Changed => context.scratch.analyses.forget(),
                    Outcome::Grown => {
                        context.scratch.analyses.forget();
                        ran.growth = ran.growth.max(row.growth);
                    }
                    Outcome::GivenUp => {
                        ran.given_up = Some(row);
                        return Ok(ran);
                    }
                }
                self.checks.after(row, f, context.module)?;
            }
            on_row(row, f);
        }
        Ok(ran)
    }

    /// The rows that run, with their places in the table. The first one has made what the function is at the start.
    fn rows(&self, start: Start) -> impl Iterator<Item = (usize, &'static Row)> + use<> {
        let first = TABLE.iter().position(|row| start.is_left_by(row)).unwrap_or(0);
        let last = TABLE.iter().position(|row| Some(row.name) == self.last);
        let (passes, is_promoted) = (self.passes, self.is_promoted);
        rows_of(self.user)
            .filter(move |&(place, row)| {
                place >= first && last.is_none_or(|last| place <= last) && row.is_of_ir()
            })
            .take_while(move |(_, row)| is_promoted || row.makes == Product::Slots)
            .filter(move |&(place, row)| {
                passes.runs(place) && (is_promoted || row.when != When::Promoted)
            })
    }
}

impl Start {
    /// Whether the row leaves what the function is at the start.
    fn is_left_by(self, row: &Row) -> bool {
        match self {
            Start::Bytecode => false,
            Start::Slots => (row.needs, row.makes) == (Product::Verified, Product::Slots),
            Start::Ssa => (row.needs, row.makes) == (Product::Slots, Product::Ssa),
        }
    }
}
