//! Handlers of vectors. A vector lies in two cells, and instructions name the first.

use slotvm_bytecode::vector::{self, VectorNumeric};
use slotvm_bytecode::{Op, TrapCode, ValType};

use super::memory::Address;
use crate::entities::{cells_of, value_of};
use crate::interp::dispatch::{Dispatch, handlers};
use crate::interp::regs::Regs;
use crate::steps::instr::Instr;
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

/// The two cells from one on.
///
/// # Safety
/// They are cells of the frame at `fp`.
#[inline(always)]
unsafe fn wide(fp: *mut u64, cell: u16) -> u128 {
    // SAFETY: the caller names cells of the frame.
    value_of(unsafe { *fp.wrapping_add(cell as usize).cast::<[u64; 2]>() })
}

/// Executes an operation. It is not a part of its handler, since a compiler keeps lanes in memory in some builds, and
/// then does not make a jump of the handler's last call.
///
/// # Safety
/// `pc` is an instruction that the translator has made for [`vector_op`] of the operation, and `fp` a frame of its function.
#[inline(never)]
unsafe fn execute<N: VectorNumeric>(fp: *mut u64, pc: *const Instr) {
    // SAFETY: the caller has an instruction, after which the translator has put as many slots as the operation reads, and
    // a frame with the cells that it names.
    unsafe {
        let i = &*pc;
        let operand = |ty: Option<ValType>, cell: u16| match ty {
            Some(ValType::V128) => wide(fp, cell),
            Some(_) => (*fp.wrapping_add(cell as usize)).into(),
            None => 0,
        };
        let operands = [
            operand(const { takes(N::OP, 0) }, i.b),
            operand(const { takes(N::OP, 1) }, i.x()),
            operand(const { takes(N::OP, 2) }, i.y()),
        ];
        let imm = match N::OP {
            Op::I8x16Shuffle => {
                let half = |slot: usize| (*pc.wrapping_add(slot)).data();
                value_of([half(1), half(2)])
            }
            _ => i.y().into(),
        };
        let value = N::eval(imm, operands);
        let result = fp.wrapping_add(i.a as usize);
        match const { makes(N::OP) } {
            ValType::V128 => *result.cast::<[u64; 2]>() = cells_of(value),
            _ => *result = value as u64,
        }
    }
}

/// `a = b` with the canonical NaN in place of each NaN that an operation may make; apart from its handler as [`execute`].
///
/// # Safety
/// As [`execute`], for handlers of canonical NaNs.
#[inline(never)]
unsafe fn make_canonical(fp: *mut u64, pc: *const Instr, op: Op) {
    // SAFETY: the caller has an instruction and a frame with the cells that it names.
    unsafe {
        let value = vector::canonical_nans(op, wide(fp, (*pc).b));
        *fp.wrapping_add((*pc).a as usize).cast::<[u64; 2]>() = cells_of(value);
    }
}

handlers! {
    /// `a =` an operation on `b`, `x` and `y`. An instruction on lanes has the lane in `y`, a shuffle those of its
    /// result in two more slots.
    fn vector_op<N: VectorNumeric>(r) {
        // SAFETY: the handler has an instruction of its own, and the frame.
        unsafe { execute::<N>(r.fp, r.pc) };
        r.next(if matches!(N::OP, Op::I8x16Shuffle) { 3 } else { 1 })
    }

    /// `a = b` with canonical bits in place of each NaN of 32 bits.
    fn canonical_f32x4(r) {
        // SAFETY: the handler has an instruction of its own, and the frame.
        unsafe { make_canonical(r.fp, r.pc, Op::F32x4Add) };
        r.next(1)
    }

    /// `a = b` with canonical bits in place of each NaN of 64 bits.
    fn canonical_f64x2(r) {
        // SAFETY: the handler has an instruction of its own, and the frame.
        unsafe { make_canonical(r.fp, r.pc, Op::F64x2Add) };
        r.next(1)
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
