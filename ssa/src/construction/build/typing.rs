//! Operand counts and result types of instructions without a fixed signature, by
//! [`slotvm_bytecode::typing`]. The code has been verified, so types of operands are not checked.

use std::convert::Infallible;

use slotvm_bytecode::typing::{self, OperandStack};
use slotvm_bytecode::{FuncType, Imm, Op, ValType};

use super::Builder;
use super::slots::Slots;

impl<S: Slots> Builder<'_, S> {
    /// The number of operands of an instruction, and the types of its results.
    pub(super) fn types(&mut self, op: Op, imm: Imm) -> (usize, Vec<ValType>) {
        let mut results = std::mem::take(&mut self.result_types);
        results.clear();
        let mut counted = Counted { builder: self, n_operands: 0, results };
        let Ok(()) = typing::apply(&mut counted, op, imm);
        (counted.n_operands, counted.results)
    }
}

/// Counts operands.
struct Counted<'b, 'a, S> {
    builder: &'b mut Builder<'a, S>,
    n_operands: usize,
    results: Vec<ValType>,
}

impl<'a, S: Slots> OperandStack for Counted<'_, 'a, S> {
    type Operand = ValType;
    type Type = &'a FuncType;
    type Error = Infallible;

    fn pop(&mut self, _: ValType) -> Result<(), Infallible> {
        self.n_operands += 1;
        Ok(())
    }

    /// Only a `select` asks for the type of an operand. It has three, all of which it reads.
    fn pop_any(&mut self) -> Result<ValType, Infallible> {
        self.builder.touch(3);
        let operands = self.builder.stack.operands();
        let value = operands[operands.len() - 1 - self.n_operands].value;
        self.n_operands += 1;
        Ok(self.builder.slots.value_type(&self.builder.f, value))
    }

    fn pop_ref(&mut self) -> Result<(), Infallible> {
        self.n_operands += 1;
        Ok(())
    }

    fn type_of(&self, operand: ValType) -> ValType {
        operand
    }

    fn push(&mut self, ty: ValType) -> Result<(), Infallible> {
        self.results.push(ty);
        Ok(())
    }

    fn pop_all(&mut self, types: &[ValType]) -> Result<(), Infallible> {
        self.n_operands += types.len();
        Ok(())
    }

    fn push_all(&mut self, types: &[ValType]) -> Result<(), Infallible> {
        self.results.extend_from_slice(types);
        Ok(())
    }

    fn local(&mut self, local: u32) -> Result<ValType, Infallible> {
        Ok(self.builder.body.locals[local as usize].ty)
    }

    fn global(&mut self, global: u32) -> Result<ValType, Infallible> {
        Ok(self.builder.module.globals()[global as usize].ty)
    }

    fn mutable_global(&mut self, global: u32) -> Result<ValType, Infallible> {
        self.global(global)
    }

    fn elements(&mut self, table: u32) -> Result<ValType, Infallible> {
        Ok(self.builder.module.tables()[table as usize].elem)
    }

    fn callable(&mut self, _: u32) -> Result<(), Infallible> {
        Ok(())
    }

    fn ref_type(&mut self, imm: Imm) -> Result<ValType, Infallible> {
        Ok(imm.as_ref_type())
    }

    fn func_type(&mut self, func: u32) -> Result<&'a FuncType, Infallible> {
        Ok(self.builder.module.func_type(func))
    }

    fn type_at(&mut self, index: u32) -> Result<&'a FuncType, Infallible> {
        Ok(&self.builder.module.module().types[index as usize])
    }

    // In the IR, the values passed to a label are not operands of the branch.

    fn branch(&mut self, _: u32) -> Result<(), Infallible> {
        Ok(())
    }

    fn branch_keeping(&mut self, _: u32, _: u32) -> Result<(), Infallible> {
        Ok(())
    }

    fn branch_table(&mut self, _: Imm) -> Result<(), Infallible> {
        Ok(())
    }

    fn leave(&mut self) -> Result<(), Infallible> {
        self.n_operands += self.builder.f.ty.results.len();
        Ok(())
    }

    fn tail_call(&mut self, callee: &FuncType) -> Result<(), Infallible> {
        self.n_operands += callee.params.len();
        Ok(())
    }
}
