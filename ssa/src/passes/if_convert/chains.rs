//! Chains from loads to the addresses of loads.
//!
//! Two marks for each value: whether it depends on a load, and whether the address of a load depends on it, through pure
//! operations and phis. Each direction scans the function [`ROUNDS`] times, so that marks pass a back edge, and
//! what would take longer is not marked. Writes and calls end a chain.

use slotvm_bytecode::Effect;

use crate::ir::edit::Editor;
use crate::ir::entity::{Block, Inst, Value};
use crate::ir::irop::Opcode;

/// The number of scans in each direction: docs/decisions.md, "Constants of the tiers".
const ROUNDS: usize = 2;

/// The marks of the values of a function.
pub(super) struct Chains {
    from_load: Vec<bool>,
    to_address: Vec<bool>,
}

impl Chains {
    /// Scans a function.
    pub(super) fn scan(editor: &mut Editor<'_>) -> Chains {
        let n = editor.func().n_values();
        let mut chains = Chains { from_load: vec![false; n], to_address: vec![false; n] };
        for _ in 0..ROUNDS {
            for i in 0..editor.order().len() {
                chains.scan_forwards(editor, editor.order()[i]);
            }
            for i in (0..editor.order().len()).rev() {
                chains.scan_backwards(editor, editor.order()[i]);
            }
        }
        chains
    }

    /// Whether a value depends on a load.
    pub(super) fn is_from_load(&self, value: Value) -> bool {
        self.from_load.get(value.index()).is_some_and(|&is| is)
    }

    /// Whether the address of a load depends on a value.
    pub(super) fn is_to_address(&self, value: Value) -> bool {
        self.to_address.get(value.index()).is_some_and(|&is| is)
    }

    fn scan_forwards(&mut self, editor: &mut Editor<'_>, block: Block) {
        for i in 0..editor.insts(block).len() {
            let inst = editor.insts(block)[i];
            let mut depends = is_load(editor, inst);
            if is_pure(editor, inst) {
                for i in 0..editor.func().operands(inst).len() {
                    let operand = editor.func().operands(inst)[i];
                    depends |= self.is_from_load(editor.resolve(operand));
                }
            }
            if depends {
                editor.func().results(inst).for_each(|value| mark(&mut self.from_load, value));
            }
        }
        for edge in editor.out_edges(block) {
            for i in 0..editor.args(edge).len() {
                let (param, arg) = (editor.params(editor.dst(edge))[i], editor.args(edge)[i]);
                if self.is_from_load(editor.resolve(arg)) {
                    mark(&mut self.from_load, param);
                }
            }
        }
    }

    fn scan_backwards(&mut self, editor: &mut Editor<'_>, block: Block) {
        for edge in editor.out_edges(block) {
            for i in 0..editor.args(edge).len() {
                let (param, arg) = (editor.params(editor.dst(edge))[i], editor.args(edge)[i]);
                if self.is_to_address(param) {
                    mark(&mut self.to_address, editor.resolve(arg));
                }
            }
        }
        for i in (0..editor.insts(block).len()).rev() {
            let inst = editor.insts(block)[i];
            let mut results = editor.func().results(inst);
            let passes_on = is_pure(editor, inst) && results.any(|value| self.is_to_address(value));
            if !passes_on && !is_load(editor, inst) {
                continue;
            }
            // All operands of a load are parts of its address.
            for i in 0..editor.func().operands(inst).len() {
                let operand = editor.func().operands(inst)[i];
                mark(&mut self.to_address, editor.resolve(operand));
            }
        }
    }
}

fn is_load(editor: &Editor<'_>, inst: Inst) -> bool {
    match editor.func().opcode(inst) {
        Opcode::Op(op) => op.effect() == Effect::Read && op.access().is_some(),
        Opcode::Ir(_) => false,
    }
}

fn is_pure(editor: &Editor<'_>, inst: Inst) -> bool {
    editor.func().opcode(inst).effect() == Effect::Pure
}

fn mark(marks: &mut [bool], value: Value) {
    if let Some(is_marked) = marks.get_mut(value.index()) {
        *is_marked = true;
    }
}
