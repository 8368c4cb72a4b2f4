//! Functions as text, after any row that leaves our IR, and other views of them.

mod graphs;
mod phis;

use slotvm_bytecode::VerifiedModule;

use super::{
    Driver, PassContext, PassScratch, PassSet, Row, StageError, Start, TABLE, Times, User, When,
    row,
};
use crate::construction::build::{BuildOptions, BuildScratch, build, is_buildable};
use crate::construction::promote::report;
use crate::ir::Function;
use crate::ir::graph::{Drawing, print_cfg, print_dom};
use crate::ir::irop::Opcode;
use crate::ir::print::print;
use crate::ir::verify::Form;
use crate::passes::inline::ExitPlan;
use crate::tools::llvm;

/// A view of a function that is not a row of the table.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// The control-flow graph of the slot form.
    Cfg,
    /// The dominator tree of the slot form.
    Dom,
    /// The loops of the slot form.
    Loops,
    /// The dominance frontiers of the slot form.
    Frontiers,
    /// The slots that are live on entry to each block of the slot form, and at its end.
    Liveness,
    /// The places of phis for each slot of the slot form, and the joins without one, with the reasons.
    Phis,
    /// The outcome of promotion for each local.
    Promotion,
}

impl View {
    /// All views.
    pub const ALL: &'static [View] = &[
        View::Cfg,
        View::Dom,
        View::Loops,
        View::Frontiers,
        View::Liveness,
        View::Phis,
        View::Promotion,
    ];

    /// The name in commands and tests.
    pub const fn name(self) -> &'static str {
        match self {
            View::Cfg => "cfg",
            View::Dom => "dom",
            View::Loops => "loops",
            View::Frontiers => "frontiers",
            View::Liveness => "liveness",
            View::Phis => "phis",
            View::Promotion => "promotion",
        }
    }

    /// A line for `vmrun help`.
    pub const fn summary(self) -> &'static str {
        match self {
            View::Cfg => "The control-flow graph",
            View::Dom => "The dominator tree",
            View::Loops => "The loops, irreducible ones marked",
            View::Frontiers => "The dominance frontier of each block",
            View::Liveness => "The slots that are live on entry to each block, and at its end",
            View::Phis => {
                "The places of phis for each slot, and the joins without one, with the reasons"
            }
            View::Promotion => "The way in which each local is promoted, or why it is not",
        }
    }
}

/// The format in which functions are written.
#[derive(Debug, Default)]
pub enum Style<'a, 'm> {
    /// Text that [`mod@crate::ir::parse`] reads; graphs as lists.
    #[default]
    Text,
    /// LLVM IR; graphs as lists.
    Llvm(&'a mut llvm::Printer<'m>),
}

/// A function that cannot be shown.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ShowError {
    /// Neither a row that leaves our IR nor a view.
    #[error("unknown stage {name:?}; expected {}", names().join(", "))]
    UnknownStage {
        /// The name that was given.
        name: String,
    },
    /// See [`is_buildable`].
    #[error("the function is too large for the IR")]
    TooLarge,
    /// A view would be longer than [`ITEMS_MAX`].
    #[error("too long to show: more than {ITEMS_MAX} {items}")]
    TooLong {
        /// The things of which there are too many.
        items: &'static str,
    },
    /// Neither a row that leaves our IR nor a view of a graph.
    #[error("stage {name} is no graph; expected {}", graph_names().join(", "))]
    NoGraph {
        /// The name that was given.
        name: String,
    },
    /// Promotion has given up, so the function stays in slot form.
    #[error("the function is too large for promotion, so it stays in slot form")]
    NotPromoted,
    /// A stage has a fault.
    #[error(transparent)]
    Stage(#[from] StageError),
}

/// The maximum number of blocks, slots or reasons that the text of a view lists.
pub const ITEMS_MAX: usize = 1 << 22;

/// The names that [`draw_with()`] takes: the control-flow graph after each row, and the dominator tree.
pub fn graph_names() -> Vec<&'static str> {
    let is_graph = |name: &&str| {
        let view = View::ALL.iter().find(|view| view.name() == *name);
        view.is_none_or(|view| matches!(view, View::Cfg | View::Dom))
    };
    names().into_iter().filter(is_graph).collect()
}

/// The names that [`show()`] takes.
pub fn names() -> Vec<&'static str> {
    let rows = TABLE.iter().filter(|row| row.is_of_ir()).map(|row| row.name);
    View::ALL.iter().map(|view| view.name()).chain(rows).collect()
}

/// A function that the module defines, as text after the row or in the view with a name. All stages are checked.
///
/// # Errors
/// See [`ShowError`].
pub fn show(
    module: &VerifiedModule,
    func: u32,
    name: &str,
    style: &mut Style<'_, '_>,
) -> Result<String, ShowError> {
    show_with(module, func, name, PassSet::all(), style)
}

/// Does the same as [`show()`], with these passes only.
///
/// # Errors
/// See [`ShowError`].
pub fn show_with(
    module: &VerifiedModule,
    func: u32,
    name: &str,
    passes: PassSet,
    style: &mut Style<'_, '_>,
) -> Result<String, ShowError> {
    if !names().contains(&name) {
        return Err(ShowError::UnknownStage { name: name.to_owned() });
    }
    shown(&named_slot_form(module, func)?, module, name, passes, style)
}

/// The control-flow graph of a function after a row, with these passes only, or the dominator tree, to be drawn.
///
/// # Errors
/// See [`ShowError`].
pub fn draw_with(
    module: &VerifiedModule,
    func: u32,
    name: &str,
    passes: PassSet,
) -> Result<Drawing, ShowError> {
    if !graph_names().contains(&name) {
        return Err(ShowError::NoGraph { name: name.to_owned() });
    }
    let f = named_slot_form(module, func)?;
    match View::ALL.iter().find(|view| view.name() == name) {
        Some(View::Dom) => Ok(Drawing::of_dom(&f)),
        Some(_) => Ok(Drawing::of_cfg(&f)),
        None => Ok(Drawing::of_cfg(&shown_after(name, passes, f, module)?)),
    }
}

fn named_slot_form(module: &VerifiedModule, func: u32) -> Result<Function, ShowError> {
    if !is_buildable(module, func) {
        return Err(ShowError::TooLarge);
    }
    let mut f = build(module, func, &BuildOptions::default(), &mut BuildScratch::default());
    f.take_names(module);
    Ok(f)
}

fn row_of_ir(name: &str) -> Result<&'static Row, ShowError> {
    let unknown = || ShowError::UnknownStage { name: name.to_owned() };
    TABLE.iter().find(|row| row.name == name && row.is_of_ir()).ok_or_else(unknown)
}

/// Does the same as [`show()`], from the slot form or SSA form of the function.
///
/// # Errors
/// See [`ShowError`].
pub fn show_from(
    f: &Function,
    module: &VerifiedModule,
    name: &str,
    style: &mut Style<'_, '_>,
) -> Result<String, ShowError> {
    shown(f, module, name, PassSet::all(), style)
}

fn shown(
    f: &Function,
    module: &VerifiedModule,
    name: &str,
    passes: PassSet,
    style: &mut Style<'_, '_>,
) -> Result<String, ShowError> {
    match View::ALL.iter().find(|view| view.name() == name) {
        Some(View::Cfg) => return Ok(print_cfg(f)),
        Some(View::Dom) => return Ok(print_dom(f)),
        Some(View::Loops) => return graphs::print_loops(f),
        Some(View::Frontiers) => return graphs::print_frontiers(f),
        Some(View::Liveness) => return graphs::print_liveness(f),
        Some(View::Phis) => return phis::print_phis(f, module),
        Some(View::Promotion) => {
            let (mut f, mut scratch) = (f.clone(), PassScratch::default());
            let mut context = PassContext::new(module, f.func, &mut scratch);
            let passes = PassSet::all().without(|row| row.when != When::Promoted);
            let (mut times, last) = (Times::default(), row("ssa").expect("the table has it"));
            let driver = Driver::new(User::Jit, passes, true, &mut times).up_to(last);
            driver.run(&mut f, Start::Slots, &mut context, |_, _| {})?;
            let report = context.promoted.expect("the row was run");
            return Ok(report::print(&f, module, &report, &scratch.promote));
        }
        None => {}
    }
    let f = shown_after(name, passes, f.clone(), module)?;
    Ok(match style {
        Style::Llvm(printer) => printer.define(&f),
        Style::Text => print(&f),
    })
}

/// A function after the row with a name.
fn shown_after(
    name: &str,
    passes: PassSet,
    f: Function,
    module: &VerifiedModule,
) -> Result<Function, ShowError> {
    let row = row_of_ir(name)?;
    let f = after_with(row, passes, f, module)?;
    match row.makes.form() == Some(Form::Ssa) && has_unpromoted_accesses(&f) {
        true => Err(ShowError::NotPromoted),
        false => Ok(f),
    }
}

/// Whether a function reads or writes a slot that promotion was to remove.
fn has_unpromoted_accesses(f: &Function) -> bool {
    let mut insts = f.blocks().flat_map(|block| f.insts(block));
    insts.any(|&inst| match f.opcode(inst) {
        Opcode::Ir(op) if op.is_slot_access() => f.slots[f.imm(inst).low() as usize].kept.is_none(),
        _ => false,
    })
}

/// A function after a row that leaves our IR, from its slot form, or from its SSA form if no row reads slots any more.
/// The rows before are those of the JIT if it runs the row, and otherwise those of another user. All are checked.
/// Functions that are inlined charge nothing and cannot be interrupted, as with the default [`BuildOptions`].
///
/// # Errors
/// Fails if a stage leaves an invalid function.
pub fn after(last: &Row, f: Function, module: &VerifiedModule) -> Result<Function, StageError> {
    after_with(last, PassSet::all(), f, module)
}

/// Does the same as [`after`], with these passes only. If the row is not among them, the function is as it would reach
/// the row. If promotion gives up, the function stays in slot form, and no row after it runs.
///
/// # Errors
/// Fails if a stage leaves an invalid function.
pub fn after_with(
    last: &Row,
    passes: PassSet,
    f: Function,
    module: &VerifiedModule,
) -> Result<Function, StageError> {
    each_row(last, passes, f, module, None, |_, _| {})
}

/// Does the same as [`after_with`] with a function that was built with the exits of a plan, if there is one, and calls `on_row`
/// with the function as it is after each row that runs.
///
/// # Errors
/// Fails if a stage leaves an invalid function.
pub fn each_row(
    last: &Row,
    passes: PassSet,
    mut f: Function,
    module: &VerifiedModule,
    plan: Option<&ExitPlan>,
    on_row: impl FnMut(&'static Row, &Function),
) -> Result<Function, StageError> {
    let user = if last.is_used_by(User::Jit) { User::Jit } else { User::Opt };
    let (mut times, mut scratch) = (Times::default(), PassScratch::default());
    let mut context = PassContext::new(module, f.func, &mut scratch).with_exits(plan);
    let driver = Driver::new(user, passes, true, &mut times).up_to(last);
    driver.run(&mut f, Start::Slots, &mut context, on_row)?;
    Ok(f)
}

#[cfg(test)]
mod tests;
