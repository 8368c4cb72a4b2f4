//! Simplification of the control-flow graph: fewer blocks and fewer branches, with the same effects on each path.
//!
//! Relies on SSA form as [`crate::ir`] and [`mod@crate::ir::verify`] describe it, and guarantees it. It does, in this
//! order:
//! 1. `branches`: a branch whose edges all enter one block with the same operands becomes `br`.
//! 2. `forward`: an edge that enters a block with nothing but `br` enters the target of that block.
//! 3. `thread`: an edge that carries a constant which decides the branch of the block that it enters skips that
//!    block. Naive code for `&&`, `||` and comparisons that are kept as 0 or 1 is full of them.
//! 4. `merge`: a block and its only successor become one block if no other edge enters the successor.
//!
//! Blocks that nothing reaches any more go. Instructions with ordered effects are neither copied nor moved past each
//! other: only the blocks around them change, and a block with effects is never skipped. So charges of fuel and polls
//! keep their order and their sums on every path.
//!
//! Loop headers are never skipped, and a block that several edges pass on their way back to a header stays, so that
//! a loop keeps its one back edge. Linear in the function: an edge is forwarded by at most `HOPS_MAX` blocks, the
//! number of edges that skip a branch is at most [`THREADED_PER_EDGE_MAX`] times that of edges, each with
//! at most [`EDGE_OPERANDS_MAX`] more operands and [`COPIES_MAX`] copied instructions.
//!
//! LLVM's `SimplifyCFG` and `JumpThreading` do the same and more. What is left out: values of a skipped block that
//! other blocks use would need new phis, so such blocks are not skipped.

mod forward;
mod thread;
mod uses;

use slotvm_bytecode::Op;

use crate::ir::Function;
use crate::ir::edit::Editor;
use crate::ir::irop::Opcode;
use crate::passes::simplify::only_target;

/// The maximum number of edges that skip a branch, for each edge of the function.
pub const THREADED_PER_EDGE_MAX: usize = 4;
/// The maximum number of instructions that are copied for an edge that skips a branch.
pub const COPIES_MAX: usize = 4;
/// The maximum number of operands of an edge that enters another block, unless it had more before.
pub const EDGE_OPERANDS_MAX: usize = 8;

/// Statistics of the simplification.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct CfgReport {
    /// Branches that became `br`.
    pub n_branches: usize,
    /// Edges that skip a block with nothing but `br`.
    pub n_forwarded: usize,
    /// Edges that skip a block whose branch they decide.
    pub n_threaded: usize,
    /// Blocks that were merged into their predecessor.
    pub n_merged: usize,
    /// Parameters that became the operand of the only edge that enters their block.
    pub n_params: usize,
}

/// Simplifies the control-flow graph of a function in SSA form.
pub fn simplify_cfg(f: &mut Function) -> CfgReport {
    let mut editor = Editor::new(f);
    let report = run(&mut editor);
    editor.finish();
    report
}

/// Simplifies the control-flow graph of a function that is being edited.
pub(crate) fn run(editor: &mut Editor<'_>) -> CfgReport {
    let mut report = CfgReport::default();
    branches(editor, &mut report);
    forward::forward(editor, &mut report);
    thread::thread(editor, &mut report);
    merge(editor, &mut report);
    report
}

/// Turns branches into `br` if all their edges are the same.
fn branches(editor: &mut Editor<'_>, report: &mut CfgReport) {
    for i in 0..editor.order().len() {
        let block = editor.order()[i];
        let terminator = editor.terminator(block);
        let Opcode::Op(Op::BrIf | Op::BrTable) = editor.func().opcode(terminator) else { continue };
        if let Some(edge) = only_target(editor, block) {
            editor.keep_edge(block, edge);
            report.n_branches += 1;
        }
    }
}

/// Removes blocks that nothing reaches, merges chains of blocks, and removes parameters of blocks that one edge
/// enters.
pub(super) fn merge(editor: &mut Editor<'_>, report: &mut CfgReport) {
    // Edges from blocks that nothing reaches would keep others from being merged.
    editor.remove_unreachable();
    for i in 0..editor.order().len() {
        let block = editor.order()[i];
        while let Some(edge) = editor.only_out_edge(block) {
            let succ = editor.dst(edge);
            if succ == block || editor.n_in_edges(succ) != 1 {
                break;
            }
            editor.merge_successor(block);
            report.n_merged += 1;
        }
    }
    for i in 0..editor.order().len() {
        let block = editor.order()[i];
        if block == Function::ENTRY
            || editor.params(block).is_empty()
            || editor.n_in_edges(block) != 1
        {
            continue;
        }
        let edge = editor.in_edges(block)[0];
        for i in 0..editor.params(block).len() {
            let (param, arg) = (editor.params(block)[i], editor.args(edge)[i]);
            editor.replace_value(param, arg);
        }
        report.n_params += editor.params(block).len();
        editor.retain_params(block, &vec![false; editor.params(block).len()]);
    }
}

/// Whether an edge with `n_before` operands may enter another block with `n_after` parameters instead.
fn has_room(n_before: usize, n_after: usize) -> bool {
    n_after <= n_before.max(EDGE_OPERANDS_MAX)
}

#[cfg(test)]
mod tests;
