//! Edges that skip blocks with nothing but `br`.

use super::{CfgReport, Uses, has_room};
use crate::ir::Function;
use crate::ir::edit::Editor;
use crate::ir::entity::{Block, Edge, Value};

/// The maximum number of blocks that an edge skips.
const HOPS_MAX: usize = 8;

/// Makes edges skip blocks that only pass their parameters on.
pub(super) fn forward(editor: &mut Editor<'_>, uses: &mut Option<Uses>, report: &mut CfgReport) {
    let mut args = Vec::new();
    let mut is_header = vec![false; editor.n_blocks()];
    for &block in editor.order() {
        for edge in editor.out_edges(block) {
            // In preorder of the dominator tree, an edge that goes back enters a loop header.
            is_header[editor.dst(edge).index()] |= editor.dst(edge) <= block;
        }
    }
    for i in 0..editor.order().len() {
        let block = editor.order()[i];
        for edge in editor.out_edges(block) {
            for _ in 0..HOPS_MAX {
                if is_header[editor.dst(edge).index()] {
                    break;
                }
                let Some(onward) = onward(editor, uses, edge) else { break };
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
fn onward(editor: &mut Editor<'_>, uses: &mut Option<Uses>, edge: Edge) -> Option<Edge> {
    let (src, block) = (editor.src(edge), editor.dst(edge));
    let onward = editor.only_out_edge(block).filter(|_| editor.insts(block).len() == 1)?;
    let target = editor.dst(onward);
    if block == Function::ENTRY || target == block {
        return None;
    }
    if editor.n_in_edges(block) == 1 {
        // The block is merged into its predecessor anyway if that has no other successor.
        if editor.only_out_edge(src).is_some() {
            return None;
        }
    } else {
        let is_latch = target <= block;
        let fits = has_room(editor.args(edge).len(), editor.args(onward).len());
        if is_latch || !fits {
            return None;
        }
    }
    (!are_used_elsewhere(editor, uses, block)).then_some(onward)
}

fn are_used_elsewhere(editor: &mut Editor<'_>, uses: &mut Option<Uses>, block: Block) -> bool {
    if editor.params(block).is_empty() {
        return false;
    }
    let uses = uses.get_or_insert_with(|| Uses::scan(editor));
    editor.params(block).iter().any(|&param| uses.is_used_elsewhere(param))
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
