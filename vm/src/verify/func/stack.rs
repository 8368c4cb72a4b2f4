//! The operand stack during the check of a function: pushes, pops, shuffles, and its size in cells.

use super::{Check, Checker, Operand};
use crate::limits;
use crate::types::ValType;
use crate::verified::{EscapeReason, WideOperands};
use crate::verify::error::Rule;

impl Checker<'_, '_> {
    #[inline]
    pub(super) fn depth(&self) -> usize {
        self.shapes.depths[self.base.0 as usize] as usize + self.scratch.top.len()
    }

    #[inline]
    pub(super) fn push(&mut self, ty: ValType) -> Check {
        self.push_operand(Operand { ty, token: 0 })
    }

    #[inline]
    pub(super) fn push_operand(&mut self, operand: Operand) -> Check {
        self.scratch.top.push(operand);
        self.has_refs |= operand.ty == ValType::Ref;
        self.n_wide += operand.ty.cells() - 1;
        self.grown()
    }

    #[inline]
    pub(super) fn grown(&mut self) -> Check {
        let depth = self.depth();
        if self.n_wide > 0 {
            self.stack_cells_max = self.stack_cells_max.max(depth + self.n_wide);
        }
        if depth > self.stack_max {
            self.stack_max = depth;
            if depth > limits::STACK_OPERANDS_MAX {
                let max = limits::STACK_OPERANDS_MAX;
                let detail = format!("{depth} operands exceed STACK_OPERANDS_MAX = {max}");
                return Err(self.error(Rule::Limit, detail));
            }
        }
        Ok(())
    }

    #[inline]
    pub(super) fn pop_any(&mut self) -> Check<Operand> {
        if let Some(operand) = self.scratch.top.pop() {
            self.n_wide -= operand.ty.cells() - 1;
            return Ok(operand);
        }
        let Some(entry) = self.base.0.checked_sub(1) else {
            return Err(self.error(Rule::StackUnderflow, "the operand stack is empty".into()));
        };
        let entry = self.module.shapes[entry as usize];
        self.base = entry.parent;
        self.n_wide -= entry.ty.cells() - 1;
        Ok(Operand { ty: entry.ty, token: 0 })
    }

    #[inline]
    pub(super) fn pop_expecting(&mut self, ty: ValType) -> Check<Operand> {
        let operand = self.pop_any()?;
        if operand.ty != ty {
            let detail = format!("expected an operand of type {ty}, found {}", operand.ty);
            return Err(self.error(Rule::OperandType, detail));
        }
        Ok(operand)
    }

    /// Pops an operand that the instruction consumes as a plain value.
    #[inline]
    pub(super) fn pop(&mut self, ty: ValType) -> Check {
        let operand = self.pop_expecting(ty)?;
        self.escape(operand, EscapeReason::Consumed);
        Ok(())
    }

    #[inline]
    pub(super) fn escape(&mut self, operand: Operand, reason: EscapeReason) {
        if let Some(local) = operand.token.checked_sub(1) {
            self.scratch.escapes[local as usize].get_or_insert((self.offset, reason));
        }
    }

    pub(super) fn pop_all(&mut self, types: &[ValType]) -> Check {
        types.iter().rev().try_for_each(|&ty| self.pop(ty))
    }

    pub(super) fn push_all(&mut self, types: &[ValType]) -> Check {
        types.iter().try_for_each(|&ty| self.push(ty))
    }

    /// Records the operands of the instruction that take two cells, from its operands, topmost first. For a
    /// `select`, these are its values.
    #[inline]
    pub(super) fn note_wide(&mut self, operands: &[Operand]) {
        let bit = |(i, operand): (usize, &Operand)| ((operand.ty.cells() - 1) << i) as u8;
        let wide = operands.iter().enumerate().map(bit).fold(0, |all, bit| all | bit);
        if wide != 0 {
            self.wide.push(WideOperands { offset: self.offset, operands: wide });
        }
    }
}
