//! Removal of what nothing uses: marks what effects depend on, and sweeps the rest. So phis that only
//! use each other go as well.

use slotvm_bytecode::Effect;

use super::phis::remove_at;
use crate::draft::Draft;
use crate::entity::{Inst, Value};
use crate::ir::Function;

/// What gives a value.
#[derive(Copy, Clone)]
enum Def {
    Inst(Inst),
    /// A parameter of a block, by its place there.
    Param(u32, u32),
}

/// Removes pure instructions and phis that nothing uses. Returns their number.
pub(super) fn remove(f: &Function, draft: &mut Draft) -> usize {
    let is_used = mark(f, draft);
    let is_pure = |inst: Inst| f.opcode(inst).effect() == Effect::Pure;
    let mut n_removed = 0;
    let mut kept_params = Vec::with_capacity(draft.blocks.len());
    for (i, block) in draft.blocks.iter_mut().enumerate() {
        let n_insts = block.insts.len();
        block.insts.retain(|&inst| {
            !is_pure(inst) || f.results(inst).any(|result| is_used[result.index()])
        });
        n_removed += n_insts - block.insts.len();
        let is_kept = |param: &Value| i == Function::ENTRY.index() || is_used[param.index()];
        let kept: Vec<bool> = block.params.iter().map(is_kept).collect();
        n_removed += kept.iter().filter(|&&kept| !kept).count();
        remove_at(&mut block.params, &kept);
        kept_params.push(kept);
    }
    for edge in draft.blocks.iter_mut().flat_map(|block| &mut block.edges) {
        remove_at(&mut edge.args, &kept_params[edge.dst as usize]);
    }
    n_removed
}

/// The values that effects depend on.
fn mark(f: &Function, draft: &Draft) -> Vec<bool> {
    let mut defs = vec![None; f.n_values()];
    let mut in_edges = vec![Vec::new(); draft.blocks.len()];
    let mut work: Vec<Value> = Vec::new();
    for (block, number) in draft.blocks.iter().zip(0..) {
        for (&param, i) in block.params.iter().zip(0..) {
            defs[param.index()] = Some(Def::Param(number, i));
        }
        for &inst in &block.insts {
            f.results(inst).for_each(|result| defs[result.index()] = Some(Def::Inst(inst)));
            if f.opcode(inst).effect() != Effect::Pure {
                work.extend(f.operands(inst));
            }
        }
        for edge in &block.edges {
            in_edges[edge.dst as usize].push(edge);
        }
    }
    let mut is_used = vec![false; f.n_values()];
    while let Some(value) = work.pop() {
        if std::mem::replace(&mut is_used[value.index()], true) {
            continue;
        }
        match defs[value.index()].expect("a value that is used has a definition") {
            Def::Inst(inst) => work.extend(f.operands(inst)),
            Def::Param(block, i) => {
                work.extend(in_edges[block as usize].iter().map(|edge| edge.args[i as usize]));
            }
        }
    }
    is_used
}
