//! Uses of values outside of the block that defines them.

use crate::ir::edit::Editor;
use crate::ir::entity::{Block, Value};

/// The values that are used in blocks other than the one that defines them.
pub(super) struct Uses {
    elsewhere: Vec<bool>,
}

impl Uses {
    /// Scans the function. Operands of an edge are used in the block that it leaves.
    pub(super) fn scan(editor: &mut Editor<'_>) -> Uses {
        let mut homes = vec![Block(u32::MAX); editor.func().n_values()];
        for &block in editor.order() {
            editor.params(block).iter().for_each(|param| homes[param.index()] = block);
            for &inst in editor.insts(block) {
                editor.func().results(inst).for_each(|result| homes[result.index()] = block);
            }
        }
        let mut elsewhere = vec![false; homes.len()];
        let mut operands: Vec<Value> = Vec::new();
        for i in 0..editor.order().len() {
            let block = editor.order()[i];
            operands.clear();
            for &inst in editor.insts(block) {
                operands.extend(editor.func().operands(inst));
            }
            for edge in editor.out_edges(block) {
                operands.extend(editor.args(edge));
            }
            for &operand in &operands {
                let value = editor.resolve(operand);
                elsewhere[value.index()] |= homes[value.index()] != block;
            }
        }
        Uses { elsewhere }
    }

    /// Whether a value is used in other blocks. Values made since the scan are not.
    pub(super) fn is_used_elsewhere(&self, value: Value) -> bool {
        self.elsewhere.get(value.index()).is_some_and(|&is_used| is_used)
    }

    /// Notes a use in another block.
    pub(super) fn note(&mut self, value: Value) {
        if let Some(is_used) = self.elsewhere.get_mut(value.index()) {
            *is_used = true;
        }
    }
}
