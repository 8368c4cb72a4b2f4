//! Typing of the opcodes without a signature in the opcode table. Their types depend on an immediate, on the
//! operand stack or on the function.
//!
//! [`apply`] is the only definition of what such an instruction pops and pushes. The verifier, the builder,
//! the construction of the IR and the IR verifier run it, each on its own [`OperandStack`]. It runs in their
//! inner loops, so all of it is generic and inlined.
//!
//! The order is that of a stack machine: look up the entities of the immediate, pop operands, the topmost
//! first, then push results. The implementation of the stack decides which cases are errors.

mod verified;

use std::ops::Deref;

pub use verified::{VerifiedStack, apply_verified};

use crate::inst::Imm;
use crate::op::Op;
use crate::types::{FuncType, ValType};

/// An operand stack for typing instructions, and the entities that their immediates name.
pub trait OperandStack {
    /// An operand whose type the instruction does not fix.
    type Operand: Copy;
    /// A function type.
    type Type: Deref<Target = FuncType>;
    /// A typing error.
    type Error;

    /// Pops an operand of this type.
    fn pop(&mut self, ty: ValType) -> Result<(), Self::Error>;
    /// Pops an operand of any type.
    fn pop_any(&mut self) -> Result<Self::Operand, Self::Error>;
    /// Pops a reference of any type.
    fn pop_ref(&mut self) -> Result<(), Self::Error>;
    /// The type of an operand.
    fn type_of(&self, operand: Self::Operand) -> ValType;
    /// Pushes an operand of this type.
    fn push(&mut self, ty: ValType) -> Result<(), Self::Error>;
    /// Pushes a popped operand again, as the same value.
    fn push_again(&mut self, operand: Self::Operand) -> Result<(), Self::Error> {
        self.push(self.type_of(operand))
    }
    /// Pushes the address of a local of this type.
    fn push_address(&mut self, local: u32, ty: ValType) -> Result<(), Self::Error> {
        let _ = (local, ty);
        self.push(ValType::I32)
    }
    /// Pops operands of these types, the deepest first.
    fn pop_all(&mut self, types: &[ValType]) -> Result<(), Self::Error> {
        types.iter().rev().try_for_each(|&ty| self.pop(ty))
    }
    /// Pushes operands of these types, the deepest first.
    fn push_all(&mut self, types: &[ValType]) -> Result<(), Self::Error> {
        types.iter().try_for_each(|&ty| self.push(ty))
    }

    /// Notes that the instruction consumes an operand of any type.
    fn consume(&mut self, operand: Self::Operand) {
        let _ = operand;
    }
    /// Notes the operands of any type that the instruction moves, the topmost first.
    fn moves(&mut self, operands: &[Self::Operand]) {
        let _ = operands;
    }

    /// The type of a local.
    fn local(&mut self, local: u32) -> Result<ValType, Self::Error>;
    /// The type of a global.
    fn global(&mut self, global: u32) -> Result<ValType, Self::Error>;
    /// The type of a global that must be mutable.
    fn mutable_global(&mut self, global: u32) -> Result<ValType, Self::Error>;
    /// The type of the elements of a table.
    fn elements(&mut self, table: u32) -> Result<ValType, Self::Error>;
    /// Checks that a table holds references to functions, as indirect calls need.
    fn callable(&mut self, table: u32) -> Result<(), Self::Error>;
    /// The reference type in an immediate.
    fn ref_type(&mut self, imm: Imm) -> Result<ValType, Self::Error>;
    /// The type of a function.
    fn func_type(&mut self, func: u32) -> Result<Self::Type, Self::Error>;
    /// A function type by its index.
    fn type_at(&mut self, index: u32) -> Result<Self::Type, Self::Error>;

    /// Branches to a label, whose operand stack this must be.
    fn branch(&mut self, label: u32) -> Result<(), Self::Error>;
    /// Branches to a label with the topmost `n` operands, and drops some below them.
    fn branch_keeping(&mut self, label: u32, n: u32) -> Result<(), Self::Error>;
    /// Branches to one of the labels of a `br_table` with this immediate.
    fn branch_table(&mut self, imm: Imm) -> Result<(), Self::Error>;
    /// Continues after a conditional branch that is not taken.
    fn falls_through(&mut self) {}
    /// Leaves the function with its results on top.
    fn leave(&mut self) -> Result<(), Self::Error>;
    /// Leaves the function by a tail call with the same results, with the parameters on top.
    fn tail_call(&mut self, callee: &FuncType) -> Result<(), Self::Error>;
    /// Ends the code that can be reached from here.
    fn stop(&mut self) {}
}

/// Applies the effect of an instruction without a fixed signature to the operand stack.
///
/// # Errors
/// Fails with the first error that the stack reports.
///
/// # Panics
/// Panics if the opcode has a fixed signature, see [`Op::signature`].
#[inline(always)]
pub fn apply<S: OperandStack>(stack: &mut S, op: Op, imm: Imm) -> Result<(), S::Error> {
    use ValType::I32;
    match op {
        Op::Drop => {
            let a = stack.pop_any()?;
            stack.moves(&[a]);
            stack.consume(a);
        }
        Op::Dup => {
            let a = stack.pop_any()?;
            stack.moves(&[a]);
            stack.push_again(a)?;
            stack.push_again(a)?;
        }
        Op::Swap => {
            let (b, a) = (stack.pop_any()?, stack.pop_any()?);
            stack.moves(&[b, a]);
            stack.push_again(b)?;
            stack.push_again(a)?;
        }
        Op::Over => {
            let (b, a) = (stack.pop_any()?, stack.pop_any()?);
            stack.moves(&[b, a]);
            stack.push_again(a)?;
            stack.push_again(b)?;
            stack.push_again(a)?;
        }
        Op::Rot => {
            let (c, b, a) = (stack.pop_any()?, stack.pop_any()?, stack.pop_any()?);
            stack.moves(&[c, b, a]);
            stack.push_again(b)?;
            stack.push_again(c)?;
            stack.push_again(a)?;
        }
        Op::Select => {
            stack.pop(I32)?;
            let b = stack.pop_any()?;
            stack.consume(b);
            let ty = stack.type_of(b);
            stack.pop(ty)?;
            stack.moves(&[b]);
            stack.push(ty)?;
        }
        Op::LocalGet => {
            let ty = stack.local(imm.low())?;
            stack.push(ty)?;
        }
        Op::LocalSet => {
            let ty = stack.local(imm.low())?;
            stack.pop(ty)?;
        }
        Op::LocalTee => {
            let ty = stack.local(imm.low())?;
            stack.pop(ty)?;
            stack.push(ty)?;
        }
        Op::LocalAddr => {
            let ty = stack.local(imm.low())?;
            stack.push_address(imm.low(), ty)?;
        }
        Op::GlobalGet => {
            let ty = stack.global(imm.low())?;
            stack.push(ty)?;
        }
        Op::GlobalSet => {
            let ty = stack.mutable_global(imm.low())?;
            stack.pop(ty)?;
        }
        Op::RefNull => {
            let ty = stack.ref_type(imm)?;
            stack.push(ty)?;
        }
        Op::RefIsNull => {
            stack.pop_ref()?;
            stack.push(I32)?;
        }
        Op::TableGet => {
            let elem = stack.elements(imm.low())?;
            stack.pop(I32)?;
            stack.push(elem)?;
        }
        Op::TableSet => {
            let elem = stack.elements(imm.low())?;
            stack.pop_all(&[I32, elem])?;
        }
        Op::TableGrow => {
            let elem = stack.elements(imm.low())?;
            stack.pop_all(&[elem, I32])?;
            stack.push(I32)?;
        }
        Op::TableFill => {
            let elem = stack.elements(imm.low())?;
            stack.pop_all(&[I32, elem, I32])?;
        }
        Op::Call => {
            let ty = stack.func_type(imm.low())?;
            stack.pop_all(&ty.params)?;
            stack.push_all(&ty.results)?;
        }
        Op::CallIndirect => {
            let ty = indirect_callee(stack, imm)?;
            stack.pop_all(&ty.params)?;
            stack.push_all(&ty.results)?;
        }
        Op::Unreachable | Op::Trap => stack.stop(),
        Op::Br => {
            stack.branch(imm.low())?;
            stack.stop();
        }
        Op::BrKeep => {
            stack.branch_keeping(imm.low(), imm.high())?;
            stack.stop();
        }
        Op::BrIf => {
            stack.pop(I32)?;
            stack.branch(imm.low())?;
            stack.falls_through();
        }
        Op::BrTable => {
            stack.pop(I32)?;
            stack.branch_table(imm)?;
            stack.stop();
        }
        Op::Return => {
            stack.leave()?;
            stack.stop();
        }
        Op::ReturnCall => {
            let ty = stack.func_type(imm.low())?;
            stack.tail_call(&ty)?;
            stack.stop();
        }
        Op::ReturnCallIndirect => {
            let ty = indirect_callee(stack, imm)?;
            stack.tail_call(&ty)?;
            stack.stop();
        }
        _ => unreachable!("{op:?} has a fixed signature"),
    }
    Ok(())
}

/// Pops the index of an indirect call and returns the type of the callee.
#[inline(always)]
fn indirect_callee<S: OperandStack>(stack: &mut S, imm: Imm) -> Result<S::Type, S::Error> {
    stack.callable(imm.high())?;
    stack.pop(ValType::I32)?;
    stack.type_at(imm.low())
}
