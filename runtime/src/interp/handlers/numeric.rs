//! Handlers of numbers: arithmetic, comparisons that branch, constants and moves.

use slotvm_bytecode::Op;
use slotvm_bytecode::numeric::{self, Numeric, ops};

use crate::interp::dispatch::{Dispatch, handlers};
use crate::interp::operands::{Operand, Shift, To};
use crate::interp::regs::Regs;
use crate::steps::instr::Instr;
use crate::steps::state::State;

/// Whether a branch is taken if its comparison holds.
pub(in crate::interp) trait Taken {
    const IF: bool;
}

pub(in crate::interp) enum IfTrue {}
pub(in crate::interp) enum IfFalse {}

impl Taken for IfTrue {
    const IF: bool = true;
}

impl Taken for IfFalse {
    const IF: bool = false;
}

handlers! {
    /// `a = op left`.
    fn unary<N: Numeric, L: Operand, T: To>(r) {
        let result = N::eval(L::get::<N, D>(&r), 0);
        r.finish_op::<N, T>(1, result)
    }

    /// `a = left op right`.
    fn binary<N: Numeric, L: Operand, R: Operand, T: To>(r) {
        let result = N::eval(L::get::<N, D>(&r), R::get::<N, D>(&r));
        r.finish_op::<N, T>(L::SLOTS.max(R::SLOTS), result)
    }

    /// Branches by `c` if `left op right` is `T`; an operation that does not trap.
    fn branch_if<N: Numeric, L: Operand, R: Operand, T: Taken>(r) {
        let result = N::eval(L::get::<N, D>(&r), R::get::<N, D>(&r));
        let holds = result.is_ok_and(|value| value as u32 != 0);
        if holds == T::IF { r.branch(r.instr().c as i32) } else { r.next(1) }
    }

    /// `a = b + (x << y)`, of 32 bits.
    fn add_scaled<X: Operand, T: To>(r) {
        let shift = r.instr().y();
        let scaled = (X::get::<ops::I32Shl, D>(&r) as u32).wrapping_shl(shift.into());
        let value = (r.get(r.instr().b) as u32).wrapping_add(scaled);
        r.finish::<T>(1, value.into())
    }

    /// `a = c + (left << S)`, of 32 bits.
    fn add_scaled_const<S: Shift, L: Operand, T: To>(r) {
        let scaled = (L::get::<ops::I32Shl, D>(&r) as u32) << S::BITS;
        let value = r.instr().c.wrapping_add(scaled);
        r.finish::<T>(1, value.into())
    }

    /// `a = b + x * y`. Only the bits of a NaN could tell in which order the sum was written.
    fn mul_add<X: Operand, T: To>(r) {
        let i = r.instr();
        let (b, x) = (f64::from_bits(r.get(i.b)), f64::from_bits(X::get::<ops::F64Mul, D>(&r)));
        let product = x * f64::from_bits(r.get(i.y()));
        r.finish_float::<T>(1, (b + product).to_bits())
    }

    /// Adds the data in the next slot to `a`, then branches by `c` if `a op right`; all of 32 bits.
    fn count_branch<N: Numeric, R: Operand>(r) {
        let value = u64::from((r.get(r.instr().a) as u32).wrapping_add(r.data(1) as u32));
        r.set(r.instr().a, value);
        r.acc = value;
        let holds = N::eval(value, R::get::<N, D>(&r)).is_ok_and(|value| value != 0);
        if holds { r.branch(r.instr().c as i32) } else { r.next(2) }
    }

    /// `a = b` with the canonical bits, if it is a NaN of 32 bits.
    fn canonical_f32(r) {
        r.set(r.instr().a, numeric::canonical_nan(Op::F32Add, r.get(r.instr().b)));
        r.next(1)
    }

    /// `a = b` with the canonical bits, if it is a NaN of 64 bits.
    fn canonical_f64(r) {
        r.set(r.instr().a, numeric::canonical_nan(Op::F64Add, r.get(r.instr().b)));
        r.next(1)
    }

    /// `a = c`, sign-extended.
    fn short_const(r) {
        r.set(r.instr().a, r.instr().c as i32 as u64);
        r.next(1)
    }

    /// `a = c`, zero-extended.
    fn short_const_u(r) {
        r.set(r.instr().a, r.instr().c.into());
        r.next(1)
    }

    /// `a =` the next slot.
    fn long_const(r) {
        r.set(r.instr().a, r.data(1));
        r.next(2)
    }

    /// `a = b`.
    fn copy(r) {
        r.set(r.instr().a, r.get(r.instr().b));
        r.next(1)
    }

    /// `a = b`, then `x = y`.
    fn copy_two(r) {
        let i = r.instr();
        r.set(i.a, r.get(i.b));
        r.set(i.x(), r.get(i.y()));
        r.next(1)
    }

    /// `a = x` if the condition is not zero, else `y`.
    fn select<L: Operand, T: To>(r) {
        let i = r.instr();
        let condition = L::get::<ops::I32Eqz, D>(&r) as u32;
        let (x, y) = (r.get(i.x()), r.get(i.y()));
        r.finish::<T>(1, if condition != 0 { x } else { y })
    }

    /// Exchanges `a` and `b`.
    fn swap(r) {
        let (a, b) = (r.get(r.instr().a), r.get(r.instr().b));
        r.set(r.instr().a, b);
        r.set(r.instr().b, a);
        r.next(1)
    }
}
