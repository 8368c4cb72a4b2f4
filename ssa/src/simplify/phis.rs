//! Trivial phis: all operands are one value, or the phi itself.
//!
//! Promotion places none, but a phi may become trivial once a branch goes one way. What is left after
//! folding is looked at once, in dominance order, which finds phis of phis; only those that a later block
//! makes trivial wait for the next round.

use super::Replacements;
use crate::draft::Draft;
use crate::entity::Value;

/// Replaces trivial phis by their operand, and removes them. Returns their number.
pub(super) fn remove(draft: &mut Draft, replacements: &mut Replacements) -> usize {
    let mut in_edges = vec![Vec::new(); draft.blocks.len()];
    for (src, block) in draft.blocks.iter().enumerate() {
        for (i, edge) in block.edges.iter().enumerate() {
            in_edges[edge.dst as usize].push((src, i));
        }
    }
    let mut n_removed = 0;
    for (block, in_edges) in in_edges.iter().enumerate().skip(1) {
        let mut kept = vec![true; draft.blocks[block].params.len()];
        for (i, is_kept) in kept.iter_mut().enumerate() {
            let phi = draft.blocks[block].params[i];
            let operands = in_edges.iter();
            let operands = operands.map(|&(src, edge)| draft.blocks[src].edges[edge].args[i]);
            if let Some(value) = only(operands, phi, replacements) {
                replacements.replace(phi, value);
                *is_kept = false;
                n_removed += 1;
            }
        }
        if kept.contains(&false) {
            remove_at(&mut draft.blocks[block].params, &kept);
            for &(src, edge) in in_edges {
                remove_at(&mut draft.blocks[src].edges[edge].args, &kept);
            }
        }
    }
    n_removed
}

/// The only value among the operands of a phi but itself.
fn only(
    operands: impl Iterator<Item = Value>,
    phi: Value,
    replacements: &mut Replacements,
) -> Option<Value> {
    let mut found = None;
    for operand in operands {
        let operand = replacements.find(operand);
        if operand != phi && *found.get_or_insert(operand) != operand {
            return None;
        }
    }
    found
}

/// Keeps the entries that are marked.
pub(super) fn remove_at(values: &mut Vec<Value>, kept: &[bool]) {
    let mut kept = kept.iter();
    values.retain(|_| *kept.next().expect("there is a mark for each value"));
}
