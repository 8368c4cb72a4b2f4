//! Simplification of SSA form: folds constants and branches on them, and removes unused code.
//!
//! Relies on SSA form as [`crate::ir`] and [`mod@crate::ir::verify`] describe it, and guarantees it. One round
//! does, in this order:
//! 1. `constants`: pure operations on constants become constants, and branches on constants go one way.
//! 2. `phis`: phis all of whose operands are one value become that value.
//! 3. `unused`: pure instructions and phis that no effect depends on are removed.
//!
//! Effects stay in their order: traps, charges of fuel, calls, writes and reads of state. An operation that
//! would trap is not computed, and neither is one whose result is a NaN with bits that the machine chooses.
//! A branch that goes one way may free phis, and these constants, so there is another round if an edge or
//! a phi was removed, but no more than [`SIMPLIFY_ROUNDS_MAX`]. Each round is linear, and what a later one would
//! find is left.

mod constants;
mod phis;
mod unused;

use crate::ir::Function;
use crate::ir::edit::Editor;
pub(crate) use constants::only_target;

/// The maximum number of rounds of a simplification.
pub const SIMPLIFY_ROUNDS_MAX: usize = 4;

/// Counts of what a simplification did.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct SimplificationReport {
    /// Instructions that became constants or one of their operands.
    pub n_folded: usize,
    /// Branches that go one way.
    pub n_branches: usize,
    /// Phis that became their operand.
    pub n_phis: usize,
    /// Instructions and phis that nothing used.
    pub n_unused: usize,
}

/// Simplifies a function in SSA form.
pub fn simplify(f: &mut Function) -> SimplificationReport {
    let mut editor = Editor::new(f);
    let report = run(&mut editor);
    editor.finish();
    report
}

/// Simplifies a function that is being edited.
pub(crate) fn run(editor: &mut Editor<'_>) -> SimplificationReport {
    let mut report = SimplificationReport::default();
    for _ in 0..SIMPLIFY_ROUNDS_MAX {
        let before = report;
        constants::fold(editor, &mut report);
        if report.n_branches > before.n_branches {
            // The blocks that cannot be reached any more are no predecessors.
            editor.remove_unreachable();
        }
        report.n_phis += phis::remove(editor);
        report.n_unused += unused::remove(editor);
        if (report.n_branches, report.n_phis) == (before.n_branches, before.n_phis) {
            break;
        }
    }
    report
}

#[cfg(test)]
mod tests;
