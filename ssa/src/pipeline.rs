//! The pipeline: all stages and passes from bytes to machine code, as one table.
//!
//! A [`Row`] has the name of a stage or pass, its input and output, its users, the way it runs and its `tracing` span.
//! Every list of stages is this table. Passes in SSA form are run row by row ([`run_passes`]). A stage, and a pass in
//! slot form, is called by the driver of its user, which asks the table whether it is switched on and gives it the
//! row's span and time. [`show()`] prints what a row leaves (`vmrun dump`, file tests), [`Times`] has a time for each
//! row (`vmrun --time`, `vmrun bench`). Rows stand in the order in which they run. [`ORDER`] says why some stand before
//! others, and a test checks it, as that of Go's `passOrder` in `cmd/compile/internal/ssa/compile.go` does.
//!
//! A pass in SSA form is added by one row: its name, its users and its function, which [edits](crate::ir::edit) a
//! function. An optional row runs if a [`PassSet`] has it. A stage or a pass in slot form needs a driver besides: a
//! variant of [`Stage`], and its call in the crates that match it.
//!
//! [`Checks`] run the verifier of the IR after each row that leaves a function, and compare the order of effects
//! before and after; a violation names the row.

mod pass_set;
mod rows;
mod show;
mod times;

use tracing::Span;

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

/// A row that a driver knows how to run.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Decodes, assembles or imports a module.
    Load,
    /// Verifies a module.
    Verify,
    /// Builds the slot form: [`mod@crate::construction::build`].
    Slots,
    /// Makes indirect calls direct: [`mod@crate::passes::devirtualise`].
    Devirtualise,
    /// Inlines calls: [`mod@crate::passes::inline`].
    Inline,
    /// Rotates loops: [`mod@crate::passes::rotate`].
    Rotate,
    /// Decides which slots stay in memory: [`mod@crate::passes::pressure`].
    Pressure,
    /// Promotes slots: [`mod@crate::construction::promote`], or [`crate::construction::build::build_ssa`] in one step
    /// from bytecode.
    Ssa,
    /// Takes a function out of SSA form: [`mod@crate::passes::destruct`].
    Destruct,
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
    /// The driver of its user runs it.
    Stage(Stage),
    /// This function runs it, and leaves a function in SSA form.
    Pass(fn(&mut Function)),
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

    /// Whether a user runs the row.
    pub fn is_used_by(&self, user: User) -> bool {
        self.users.contains(&user)
    }
}

/// The rows that a user runs, with their places in the table.
pub fn rows_of(user: User) -> impl DoubleEndedIterator<Item = (usize, &'static Row)> {
    TABLE.iter().enumerate().filter(move |(_, row)| row.is_used_by(user))
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

/// Runs the passes of a user that are switched on, on a function in SSA form.
///
/// # Errors
/// Fails if checks are on and a pass leaves an invalid function.
pub fn run_passes(
    user: User,
    passes: PassSet,
    f: &mut Function,
    context: &impl Context,
    checks: &mut Checks,
    times: &mut Times,
) -> Result<(), StageError> {
    for (place, row) in rows_of(user).filter(|&(place, _)| passes.runs(place)) {
        if let Run::Pass(pass) = row.run {
            run_pass(row, pass, f, context, checks, times.of_row(place))?;
        }
    }
    Ok(())
}

fn run_pass(
    row: &Row,
    pass: fn(&mut Function),
    f: &mut Function,
    context: &impl Context,
    checks: &mut Checks,
    time: &mut std::time::Duration,
) -> Result<(), StageError> {
    checks.before(f);
    row.timed(time, || pass(f));
    checks.after(row, f, context)
}

#[cfg(test)]
mod tests;
