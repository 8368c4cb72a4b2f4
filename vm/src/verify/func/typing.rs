//! The verifier's [`OperandStack`], for instructions without a fixed signature. Their indices have been
//! checked.

use super::{Check, Checker, Operand};
use crate::inst::{Imm, labels};
use crate::module::GlobalType;
use crate::types::{FuncType, ValType};
use crate::typing::OperandStack;
use crate::verified::EscapeReason;
use crate::verify::error::{Rule, VerifyError};

impl<'m> OperandStack for Checker<'m, '_> {
    type Operand = Operand;
    type Type = &'m FuncType;
    type Error = VerifyError;

    #[inline]
    fn pop(&mut self, ty: ValType) -> Check {
        Checker::pop(self, ty)
    }

    #[inline]
    fn pop_any(&mut self) -> Check<Operand> {
        Checker::pop_any(self)
    }

    fn pop_ref(&mut self) -> Check {
        let operand = Checker::pop_any(self)?;
        if !operand.ty.is_ref() {
            let detail = format!("expected a reference, found {}", operand.ty);
            return Err(self.error(Rule::OperandType, detail));
        }
        Ok(())
    }

    #[inline]
    fn type_of(&self, operand: Operand) -> ValType {
        operand.ty
    }

    #[inline]
    fn push(&mut self, ty: ValType) -> Check {
        Checker::push(self, ty)
    }

    /// Stack shuffles move and copy tokens.
    #[inline]
    fn push_again(&mut self, operand: Operand) -> Check {
        self.push_operand(operand)
    }

    fn push_address(&mut self, local: u32, ty: ValType) -> Check {
        if self.module.frame_stack.is_none() {
            let detail = "the module has no frame stack".into();
            return Err(self.error(Rule::LocalAddr, detail));
        }
        // Each local has 8 bytes of the frame stack.
        if !ty.is_num() || ty.bytes() > 8 {
            let detail = format!("local {local} has type {ty}");
            return Err(self.error(Rule::LocalAddr, detail));
        }
        self.push_operand(Operand { ty: ValType::I32, token: local + 1 })
    }

    #[inline]
    fn consume(&mut self, operand: Operand) {
        self.escape(operand, EscapeReason::Consumed);
    }

    #[inline]
    fn moves(&mut self, operands: &[Operand]) {
        self.note_wide(operands);
    }

    #[inline]
    fn local(&mut self, local: u32) -> Check<ValType> {
        Ok(self.locals[local as usize])
    }

    #[inline]
    fn global(&mut self, global: u32) -> Check<ValType> {
        Ok(self.spaces.globals[global as usize].ty)
    }

    fn mutable_global(&mut self, global: u32) -> Check<ValType> {
        match self.spaces.globals[global as usize] {
            GlobalType { ty, mutable: true } => Ok(ty),
            _ => {
                let detail = format!("global {global} is immutable");
                Err(self.error(Rule::GlobalMutable, detail))
            }
        }
    }

    fn elements(&mut self, table: u32) -> Check<ValType> {
        Ok(self.spaces.tables[table as usize].elem)
    }

    fn callable(&mut self, table: u32) -> Check {
        let elem = self.spaces.tables[table as usize].elem;
        if elem != ValType::FuncRef {
            let detail = format!("table {table} has elements of type {elem}; expected funcref");
            return Err(self.error(Rule::CallTable, detail));
        }
        Ok(())
    }

    fn ref_type(&mut self, imm: Imm) -> Check<ValType> {
        Ok(imm.as_ref_type())
    }

    #[inline]
    fn func_type(&mut self, func: u32) -> Check<&'m FuncType> {
        Ok(&self.module.types[self.spaces.funcs[func as usize] as usize])
    }

    fn type_at(&mut self, index: u32) -> Check<&'m FuncType> {
        Ok(&self.module.types[index as usize])
    }

    #[inline]
    fn branch(&mut self, label: u32) -> Check {
        self.flow_to(label, self.def.labels[label as usize].shape)?;
        self.scratch.blocks.branch(label);
        Ok(())
    }

    fn branch_keeping(&mut self, label: u32, n: u32) -> Check {
        Checker::branch_keeping(self, label, n)
    }

    fn branch_table(&mut self, imm: Imm) -> Check {
        let def = self.def;
        labels(&def.code, imm).try_for_each(|label| self.branch(label))
    }

    #[inline]
    fn falls_through(&mut self) {
        self.scratch.blocks.falls_through();
    }

    fn leave(&mut self) -> Check {
        self.leave_with(&self.ty.results, "results")
    }

    fn tail_call(&mut self, callee: &FuncType) -> Check {
        if callee.results != self.ty.results {
            let detail = format!("the callee has type {callee}, the caller {}", self.ty);
            return Err(self.error(Rule::TailCallType, detail));
        }
        self.leave_with(&callee.params, "parameters")
    }
}
