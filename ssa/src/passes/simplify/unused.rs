//! Removal of unused code: marks the values that effects depend on, and sweeps the rest. So phis that
//! only use each other are removed as well.

use slotvm_bytecode::Effect;

use crate::ir::Function;
use crate::ir::edit::Editor;
use crate::ir::entity::{Block, Inst, Value};

/// The definition of a value.
#[derive(Copy, Clone)]
enum Def {
    Inst(Inst),
    /// A parameter of a block, by its place there.
    Param(Block, u32),
}

/// Removes pure instructions and phis that nothing uses. Returns their number.
pub(super) fn remove(editor: &mut Editor<'_>) -> usize {
    let is_used = mark(editor);
    let mut n_removed = 0;
    let mut kept = Vec::new();
    for i in 0..editor.order().len() {
        let block = editor.order()[i];
        n_removed += editor.retain_insts(block, |f, inst| {
            !is_pure(f, inst) || f.results(inst).any(|result| is_used[result.index()])
        });
        if block != Function::ENTRY {
            kept.clear();
            kept.extend(editor.params(block).iter().map(|param| is_used[param.index()]));
            n_removed += kept.iter().filter(|&&kept| !kept).count();
            editor.retain_params(block, &kept);
        }
    }
    n_removed
}

fn is_pure(f: &Function, inst: Inst) -> bool {
    f.opcode(inst).effect() == Effect::Pure
}

/// The values that effects depend on.
fn mark(editor: &mut Editor<'_>) -> Vec<bool> {
    let mut defs = vec![None; editor.func().n_values()];
    let mut work: Vec<Value> = Vec::new();
    for &block in editor.order() {
        for (&param, i) in editor.params(block).iter().zip(0..) {
            defs[param.index()] = Some(Def::Param(block, i));
        }
        let f = editor.func();
        for &inst in editor.insts(block) {
            f.results(inst).for_each(|result| defs[result.index()] = Some(Def::Inst(inst)));
            if !is_pure(f, inst) {
                work.extend(f.operands(inst));
            }
        }
    }
    let mut is_used = vec![false; defs.len()];
    while let Some(value) = work.pop() {
        let value = editor.resolve(value);
        if std::mem::replace(&mut is_used[value.index()], true) {
            continue;
        }
        match defs[value.index()].expect("a value that is used has a definition") {
            Def::Inst(inst) => work.extend(editor.func().operands(inst)),
            Def::Param(block, i) => {
                for j in 0..editor.in_edges(block).len() {
                    let edge = editor.in_edges(block)[j];
                    work.push(editor.args(edge)[i as usize]);
                }
            }
        }
    }
    is_used
}
