//! Typing of code that a verifier has accepted: a module answers what immediates name, and nothing is an error.

use std::convert::Infallible;
use std::marker::PhantomData;

use super::{OperandStack, apply};
use crate::inst::Imm;
use crate::op::Op;
use crate::types::{FuncType, ValType};
use crate::verified::{Body, VerifiedModule};

/// The operand stack of a function of a verified module.
pub trait VerifiedStack<'m> {
    /// An operand whose type the instruction does not fix.
    type Operand: Copy;

    /// The module.
    fn module(&self) -> &'m VerifiedModule;
    /// The function.
    fn func(&self) -> u32;
    /// Its body.
    fn body(&self) -> &'m Body;

    /// Pops an operand of a type that the instruction fixes.
    fn pop(&mut self);
    /// Pops an operand of any type.
    fn pop_any(&mut self) -> Self::Operand;
    /// The type of an operand.
    fn type_of(&self, operand: Self::Operand) -> ValType;
    /// Pushes an operand of this type.
    fn push(&mut self, ty: ValType);
    /// Pushes a popped operand again, as the same value.
    fn push_again(&mut self, operand: Self::Operand) {
        self.push(self.type_of(operand));
    }
    /// Pushes the address of a local.
    fn push_address(&mut self, local: u32) {
        let _ = local;
        self.push(ValType::I32);
    }
    /// Leaves the function with so many operands: its results, or the parameters of a tail call.
    fn leave(&mut self, n_operands: usize) {
        let _ = n_operands;
    }
}

/// Applies the effect of an instruction without a fixed signature to the operand stack.
///
/// # Panics
/// Panics if the opcode has a fixed signature, see [`Op::signature`].
#[inline(always)]
pub fn apply_verified<'m>(stack: &mut impl VerifiedStack<'m>, op: Op, imm: Imm) {
    let Ok(()) = apply(&mut Verified(stack, PhantomData), op, imm);
}

/// A stack whose module answers.
struct Verified<'m, 's, S>(&'s mut S, PhantomData<&'m VerifiedModule>);

impl<'m, S: VerifiedStack<'m>> OperandStack for Verified<'m, '_, S> {
    type Operand = S::Operand;
    type Type = &'m FuncType;
    type Error = Infallible;

    fn pop(&mut self, _: ValType) -> Result<(), Infallible> {
        self.0.pop();
        Ok(())
    }

    fn pop_any(&mut self) -> Result<S::Operand, Infallible> {
        Ok(self.0.pop_any())
    }

    fn pop_ref(&mut self) -> Result<(), Infallible> {
        self.0.pop();
        Ok(())
    }

    fn type_of(&self, operand: S::Operand) -> ValType {
        self.0.type_of(operand)
    }

    fn push(&mut self, ty: ValType) -> Result<(), Infallible> {
        self.0.push(ty);
        Ok(())
    }

    fn push_again(&mut self, operand: S::Operand) -> Result<(), Infallible> {
        self.0.push_again(operand);
        Ok(())
    }

    fn push_address(&mut self, local: u32, _: ValType) -> Result<(), Infallible> {
        self.0.push_address(local);
        Ok(())
    }

    fn local(&mut self, local: u32) -> Result<ValType, Infallible> {
        Ok(self.0.body().locals[local as usize].ty)
    }

    fn global(&mut self, global: u32) -> Result<ValType, Infallible> {
        Ok(self.0.module().globals()[global as usize].ty)
    }

    fn mutable_global(&mut self, global: u32) -> Result<ValType, Infallible> {
        self.global(global)
    }

    fn elements(&mut self, table: u32) -> Result<ValType, Infallible> {
        Ok(self.0.module().tables()[table as usize].elem)
    }

    fn callable(&mut self, _: u32) -> Result<(), Infallible> {
        Ok(())
    }

    fn ref_type(&mut self, imm: Imm) -> Result<ValType, Infallible> {
        Ok(imm.as_ref_type())
    }

    fn func_type(&mut self, func: u32) -> Result<&'m FuncType, Infallible> {
        Ok(self.0.module().func_type(func))
    }

    fn type_at(&mut self, index: u32) -> Result<&'m FuncType, Infallible> {
        Ok(&self.0.module().module().types[index as usize])
    }

    // What a branch leaves to its label is there for the next block.

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
        let n_results = self.0.module().func_type(self.0.func()).results.len();
        self.0.leave(n_results);
        Ok(())
    }

    fn tail_call(&mut self, callee: &FuncType) -> Result<(), Infallible> {
        self.0.leave(callee.params.len());
        Ok(())
    }
}
