//! Removal of trivial phis: those whose operands are one value, or the phi itself.
//!
//! Promotion places none, but a phi may become trivial once a branch goes one way. What is left after
//! folding is looked at once, in dominance order, which finds phis of phis; only those that a later block
//! makes trivial wait for the next round.

use crate::ir::Function;
use crate::ir::edit::Editor;
use crate::ir::entity::{Block, Value};

/// Replaces trivial phis by their operand, and removes them. Returns their number.
pub(super) fn remove(editor: &mut Editor<'_>) -> usize {
    let mut n_removed = 0;
    let mut kept = Vec::new();
    for i in 0..editor.order().len() {
        let block = editor.order()[i];
        if block == Function::ENTRY {
            continue;
        }
        kept.clear();
        for i in 0..editor.params(block).len() {
            let phi = editor.params(block)[i];
            let only = only_operand(editor, block, i);
            if let Some(value) = only {
                editor.replace_value(phi, value);
                n_removed += 1;
            }
            kept.push(only.is_none());
        }
        editor.retain_params(block, &kept);
    }
    n_removed
}

/// The only value among the operands of a phi except itself.
fn only_operand(editor: &mut Editor<'_>, block: Block, i: usize) -> Option<Value> {
    let phi = editor.params(block)[i];
    let mut found = None;
    for j in 0..editor.in_edges(block).len() {
        let edge = editor.in_edges(block)[j];
        let operand = editor.resolve(editor.args(edge)[i]);
        if operand != phi && *found.get_or_insert(operand) != operand {
            return None;
        }
    }
    found
}
