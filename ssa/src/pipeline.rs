//! The pipeline: all stages and passes from bytes to machine code, as one table.
//!
//! A [`Row`] has the name of a stage or pass, its input and output, its users, the way it runs and its `tracing` span.
//! Every list of stages is this table. Rows that leave a function of our IR are run by one loop, that of the [`Driver`],
//! whoever wants them: the JIT, [`mod@crate::optimize`], and [`show()`], which prints what a row leaves (`vmrun dump`,
//! `vmrun explain`, file tests). [`Times`] has a time for each row (`vmrun --time`, `vmrun bench`). Rows stand in the order
//! in which they run. [`ORDER`] says why some stand before others, and a test checks it, as that of Go's `passOrder` in
//! `cmd/compile/internal/ssa/compile.go` does.
//!
//! A pass is added by one row: its name, its form, its users, its attributes and its function. An optional row runs if a
//! [`PassSet`] has it. A row before the first function or after the last is a [`Stage`], which its user runs.
//!
//! [`Checks`] run the verifier of the IR after each row that leaves a function, and compare the order of effects
//! before and after; a violation names the row.

mod driver;
mod pass_set;
mod rows;
mod show;
mod times;

use tracing::Span;

pub use self::driver::{Driver, Outcome, Pass, PassContext, PassScratch, Ran, Start};
pub use self::pass_set::{ParsePassSetError, PassSet, optional_rows};
pub use self::rows::{ORDER, TABLE};
pub use self::show::{
    ITEMS_MAX, ShowError, Style, View, after, after_with, draw_with, each_row, graph_names, names,
    show, show_from, show_with,
};
pub use self::times::{ROWS_MAX, Times};
use crate::ir::Function;
use crate::ir::verify::effects::Effects;
use crate::ir::verify::{Context, Form, verify};

/// The input or output of a row.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Product {
    /// A file: `.bc`, `.vasm` or WebAssembly.
    Bytes,
    /// A module that need not be valid.
    Module,
    /// A module that the bytecode verifier has accepted.
    Verified,
    /// A function whose locals are slots.
    Slots,
    /// A function whose locals are values.
    Ssa,
    /// A function in Cranelift's IR.
    Clif,
    /// Machine code with its relocations.
    Asm,
    /// Machine code in executable memory.
    Code,
}

impl Product {
    /// The form of a function of our IR.
    pub const fn form(self) -> Option<Form> {
        match self {
            Product::Slots => Some(Form::Slots),
            Product::Ssa => Some(Form::Ssa),
            _ => None,
        }
    }
}

/// A user of the table.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum User {
    /// Bytes to machine code.
    Jit,
    /// Bytecode to bytecode: [`mod@crate::optimize`].
    Opt,
}

/// A row that is run by those who want it: it makes no function of our IR.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Decodes, assembles or imports a module.
    Load,
    /// Verifies a module.
    Verify,
    /// Writes bytecode: [`mod@crate::passes::write`].
    Write,
    /// Lowers to Cranelift's IR.
    Clif,
    /// Generates machine code.
    Asm,
    /// Places machine code into executable memory.
    Place,
}

/// The way in which a row runs.
#[derive(Copy, Clone, Debug)]
pub enum Run {
    /// Its user runs it.
    Stage(Stage),
    /// A [`Driver`] runs it by this function. It leaves a function of our IR.
    Pass(Pass),
}

/// How much larger than its bytecode a row may make a function.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Growth {
    /// No larger.
    None,
    /// By a share of it, or by a small number of instructions for each place.
    Bounded,
    /// To a multiple of it. Such a row is left out first if the function has become too large.
    Manifold,
}

/// The functions for which a row has something to do.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// All.
    Always,
    /// Those whose accesses are checked, not covered by guard pages.
    Checked,
    /// Those that are promoted, since the row prepares that.
    Promoted,
}

/// A stage or pass.
#[derive(Copy, Clone, Debug)]
pub struct Row {
    /// The name in spans, timings, reports, commands and tests.
    pub name: &'static str,
    /// A line for `vmrun help`.
    pub summary: &'static str,
    /// The input of the row.
    pub needs: Product,
    /// The output of the row.
    pub makes: Product,
    /// The users that run it.
    pub users: &'static [User],
    /// Whether it can be switched off, see [`PassSet`]. What it needs and makes is then the same.
    pub is_optional: bool,
    /// How much larger it makes functions.
    pub growth: Growth,
    /// Whether it adds effects of its own, so that the order of effects is not compared.
    pub adds_effects: bool,
    /// The functions for which it has something to do.
    pub when: When,
    /// The way in which it runs.
    pub run: Run,
    /// Makes its span: at level debug for a module, at level trace for a function.
    pub span: fn() -> Span,
}

impl Row {
    /// Whether the row leaves a function of our IR.
    pub fn is_of_ir(&self) -> bool {
        self.makes.form().is_some()
    }

    /// Whether effects may stand in several places after it, so that their order is not compared.
    fn copies_effects(&self) -> bool {
        self.needs == Product::Verified
            || self.adds_effects
            || self.needs == Product::Slots && self.growth != Growth::None
    }

    /// Whether a user runs the row.
    pub fn is_used_by(&self, user: User) -> bool {
        self.users.contains(&user)
    }
}

/// The rows that a user runs, with their places in the table.
pub fn rows_of(user: User) -> impl DoubleEndedIterator<Item = (usize, &'static Row)> {
    // An optimiser that knows the table unrolls loops over it, with the function of each row at its turn, for minutes.
    let table: &[Row] = std::hint::black_box(TABLE);
    table.iter().enumerate().filter(move |(_, row)| row.is_used_by(user))
}

/// The row of a stage, with its place in the table.
///
/// # Panics
/// Panics if the table has no such stage.
pub fn stage(stage: Stage) -> (usize, &'static Row) {
    let is = |row: &Row| matches!(row.run, Run::Stage(other) if other == stage);
    let found = TABLE.iter().enumerate().find(|(_, row)| is(row));
    found.expect("the table has all stages")
}

/// The row with a name.
pub fn row(name: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.name == name)
}

/// A stage or pass that left an invalid function: a fault of this project.
#[derive(Clone, Debug, thiserror::Error)]
#[error("stage {stage} left an invalid function: {reason}")]
pub struct StageError {
    /// The name of its row.
    pub stage: &'static str,
    /// The rule that does not hold, and where.
    pub reason: String,
}

impl StageError {
    /// The error of a stage whose output is refused by a verifier other than that of the IR.
    pub fn of(which: Stage, reason: impl ToString) -> StageError {
        StageError { stage: stage(which).1.name, reason: reason.to_string() }
    }
}

/// Verification after each row.
#[derive(Debug, Default)]
pub struct Checks {
    is_on: bool,
    /// The effects before the row that runs.
    before: Option<Effects>,
}

impl Checks {
    /// Checks that run or do nothing.
    pub fn new(is_on: bool) -> Checks {
        Checks { is_on, before: None }
    }

    /// Notes the function that a row starts from.
    pub fn before(&mut self, f: &Function) {
        self.before = self.is_on.then(|| Effects::of(f));
    }

    /// Checks the function that a row leaves. Effects are compared if [`Checks::before`] was called since the last
    /// check.
    ///
    /// # Errors
    /// Fails if it is invalid, with the name of the row.
    pub fn after(
        &mut self,
        row: &Row,
        f: &Function,
        context: &impl Context,
    ) -> Result<(), StageError> {
        let before = self.before.take();
        let Some(form) = row.makes.form().filter(|_| self.is_on) else { return Ok(()) };
        let order = |()| before.map_or(Ok(()), |before| before.check(f));
        let stage = row.name;
        verify(f, form, context)
            .and_then(order)
            .map_err(|violation| StageError { stage, reason: violation.to_string() })
    }
}

#[cfg(test)]
mod tests;
