//! Operand counts and result types of instructions without a fixed signature, by
//! [`slotvm_bytecode::typing`]. The code has been verified, so types of operands are not checked.

use slotvm_bytecode::typing::{VerifiedStack, apply_verified};
use slotvm_bytecode::verified::Body;
use slotvm_bytecode::{Imm, Op, ValType, VerifiedModule};

use super::Builder;
use super::slots::Slots;

impl<S: Slots> Builder<'_, S> {
    /// The number of operands of an instruction, and the types of its results. The values passed to a label are not
    /// operands of the branch.
    pub(super) fn types(&mut self, op: Op, imm: Imm) -> (usize, Vec<ValType>) {
        let mut results = std::mem::take(&mut self.result_types);
        results.clear();
        let mut counted = Counted { builder: self, n_operands: 0, results };
        apply_verified(&mut counted, op, imm);
        (counted.n_operands, counted.results)
    }
}

/// Counts operands.
struct Counted<'b, 'a, S> {
    builder: &'b mut Builder<'a, S>,
    n_operands: usize,
    results: Vec<ValType>,
}

impl<'a, S: Slots> VerifiedStack<'a> for Counted<'_, 'a, S> {
    type Operand = ValType;

    fn module(&self) -> &'a VerifiedModule {
        self.builder.module
    }

    fn func(&self) -> u32 {
        self.builder.f.func
    }

    fn body(&self) -> &'a Body {
        self.builder.body
    }

    fn pop(&mut self) {
        self.n_operands += 1;
    }

    /// Only a `select` asks for the type of an operand. It has three, all of which it reads.
    fn pop_any(&mut self) -> ValType {
        self.builder.touch(3);
        let operands = self.builder.stack.operands();
        let value = operands[operands.len() - 1 - self.n_operands].value;
        self.n_operands += 1;
        self.builder.slots.value_type(&self.builder.f, value)
    }

    fn type_of(&self, operand: ValType) -> ValType {
        operand
    }

    fn push(&mut self, ty: ValType) {
        self.results.push(ty);
    }

    fn leave(&mut self, n_operands: usize) {
        self.n_operands += n_operands;
    }
}
