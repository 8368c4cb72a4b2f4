//! Handlers of vectors. A vector lies in two cells, and instructions name the first.

use slotvm_bytecode::vector::{self, VectorNumeric};
use slotvm_bytecode::{Op, TrapCode, ValType};

use super::memory::Address;
use super::operands::ToCell;
use crate::entities::{cells_of, value_of};
use crate::interp::dispatch::{Dispatch, Regs, handlers};
use crate::steps::code::Instr;
use crate::steps::state::State;

impl<D: Dispatch> Regs<D> {
    #[inline(always)]
    fn get_wide(&self, cell: u16) -> u128 {
        // SAFETY: the translator names the first of two cells of the frame.
        value_of(unsafe { *self.fp.wrapping_add(cell as usize).cast::<[u64; 2]>() })
    }

    #[inline(always)]
    fn set_wide(&self, cell: u16, value: u128) {
        // SAFETY: the translator names the first of two cells of the frame.
        unsafe { *self.fp.wrapping_add(cell as usize).cast::<[u64; 2]>() = cells_of(value) }
    }

    /// The 16 bytes in the two slots after an instruction.
    #[inline(always)]
    fn wide_data(&self) -> u128 {
        value_of([self.data(1), self.data(2)])
    }
}

/// The type of an operand of an operation, if it has so many.
const fn takes(op: Op, i: usize) -> Option<ValType> {
    match op.signature() {
        Some(signature) if i < signature.params.len() => Some(signature.params[i]),
        _ => None,
    }
}

/// The type of the result of an operation.
const fn makes(op: Op) -> ValType {
    match op.signature() {
        Some(signature) => signature.results[0],
        None => panic!("operations on vectors have signatures"),
    }
}

/// Reads an operand of a type.
#[inline(always)]
fn operand<D: Dispatch>(r: &Regs<D>, ty: Option<ValType>, cell: u16) -> u128 {
    match ty {
        Some(ValType::V128) => r.get_wide(cell),
        Some(_) => r.get(cell).into(),
        None => 0,
    }
}

handlers! {
    /// `a =` an operation on `b`, `x` and `y`. An instruction on lanes has the lane in `y`, a shuffle those of its
    /// result in two more slots.
    fn vector_op<N: VectorNumeric>(r) {
        let i = r.instr();
        let operands = [
            operand(&r, const { takes(N::OP, 0) }, i.b),
            operand(&r, const { takes(N::OP, 1) }, i.x()),
            operand(&r, const { takes(N::OP, 2) }, i.y()),
        ];
        let (imm, slots) = match N::OP {
            Op::I8x16Shuffle => (r.wide_data(), 3),
            _ => (i.y().into(), 1),
        };
        let value = N::eval(imm, operands);
        match const { makes(N::OP) } {
            ValType::V128 => r.set_wide(i.a, value),
            ValType::F64 => return r.finish_float::<ToCell>(slots, value as u64),
            ValType::F32 => r.set(i.a, value as u64),
            _ => return r.finish::<ToCell>(slots, value as u64),
        }
        r.next(slots)
    }

    /// `a = b`.
    fn copy_wide(r) {
        r.set_wide(r.instr().a, r.get_wide(r.instr().b));
        r.next(1)
    }

    /// `a =` the next two slots.
    fn wide_const(r) {
        r.set_wide(r.instr().a, r.wide_data());
        r.next(3)
    }

    /// `a = x` if `b` is not zero, else `y`.
    fn select_wide(r) {
        let i = r.instr();
        let (x, y) = (r.get_wide(i.x()), r.get_wide(i.y()));
        r.set_wide(i.a, if r.get(i.b) as u32 != 0 { x } else { y });
        r.next(1)
    }

    /// `a = b` with canonical bits in place of each NaN of 32 bits.
    fn canonical_f32x4(r) {
        r.set_wide(r.instr().a, vector::canonical_nans(Op::F32x4Add, r.get_wide(r.instr().b)));
        r.next(1)
    }

    /// `a = b` with canonical bits in place of each NaN of 64 bits.
    fn canonical_f64x2(r) {
        r.set_wide(r.instr().a, vector::canonical_nans(Op::F64x2Add, r.get_wide(r.instr().b)));
        r.next(1)
    }

    /// `a = ` memory at an address.
    fn load_wide<A: Address>(r) {
        match r.load(A::get(&r)) {
            Some(bytes) => {
                r.set_wide(r.instr().a, u128::from_le_bytes(bytes));
                r.next(A::SLOTS)
            }
            None => r.trap(TrapCode::MemoryOutOfBounds),
        }
    }

    /// Memory at an address `= a`.
    fn store_wide<A: Address>(r) {
        if r.store(A::get(&r), r.get_wide(r.instr().a).to_le_bytes()) {
            r.next(A::SLOTS)
        } else {
            r.trap(TrapCode::MemoryOutOfBounds)
        }
    }
}
