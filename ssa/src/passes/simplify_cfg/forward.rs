//! Edges that skip blocks with nothing but `br`.

use super::{CfgReport, has_room};
use crate::ir::Function;
use crate::ir::edit::Editor;
use crate::ir::entity::{Edge, Value};

/// The maximum number of blocks that an edge skips.
const HOPS_MAX: usize = 8;

/// The edges that entered a block before any was changed.
#[derive(Copy, Clone, Default)]
struct Entries {
    n_edges: u32,
    /// Whether one goes back, so that the block is a loop header.
    goes_back: bool,
}

/// Makes edges skip blocks that only pass their parameters on.
pub(super) fn forward(editor: &mut Editor<'_>, report: &mut CfgReport) {
    let mut entries = vec![Entries::default(); editor.n_blocks()];
    for &block in editor.order() {
        for edge in editor.out_edges(block) {
            let dst = editor.dst(edge);
            let entries = &mut entries[dst.index()];
            entries.n_edges += 1;
            // Blocks are numbered in preorder of the dominator tree.
            entries.goes_back |= dst <= block;
        }
    }
    let mut args = Vec::new();
    for i in 0..editor.order().len() {
        let block = editor.order()[i];
        for edge in editor.out_edges(block) {
            for _ in 0..HOPS_MAX {
                let Some(onward) = onward(editor, &entries, edge) else { break };
                args.clear();
                for i in 0..editor.args(onward).len() {
                    let arg = editor.args(onward)[i];
                    args.push(passed_on(editor, edge, arg));
                }
                editor.redirect_edge(edge, editor.dst(onward), &args);
                report.n_forwarded += 1;
            }
        }
    }
}

/// The out-edge of the block that an edge enters, if the edge can skip the block.
fn onward(editor: &mut Editor<'_>, entries: &[Entries], edge: Edge) -> Option<Edge> {
    let (src, block) = (editor.src(edge), editor.dst(edge));
    let onward = editor.only_out_edge(block).filter(|_| editor.insts(block).len() == 1)?;
    let target = editor.dst(onward);
    if block == Function::ENTRY || target == block || entries[block.index()].goes_back {
        return None;
    }
    if !editor.params(block).is_empty() {
        // Where other edges enter the target, the block dominates nothing, so that nobody else uses its parameters.
        let Entries { n_edges, goes_back } = entries[target.index()];
        if n_edges < 2 || goes_back {
            return None;
        }
    }
    if editor.n_in_edges(block) == 1 {
        // The block is merged into its predecessor anyway if that has no other successor.
        return editor.only_out_edge(src).is_none().then_some(onward);
    }
    let is_latch = target <= block;
    let fits = has_room(editor.args(edge).len(), editor.args(onward).len());
    (!is_latch && fits).then_some(onward)
}

/// The value of an operand at the end of a block, if the block is entered by an edge: the operand of this edge if it
/// is a parameter.
pub(super) fn passed_on(editor: &mut Editor<'_>, edge: Edge, operand: Value) -> Value {
    let value = editor.resolve(operand);
    let params = editor.params(editor.dst(edge));
    match params.iter().position(|&param| param == value) {
        Some(i) => editor.args(edge)[i],
        None => value,
    }
}
