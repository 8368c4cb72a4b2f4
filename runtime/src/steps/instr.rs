//! The instructions that the interpreter runs, of equal size, which name cells of the frame.
//!
//! An instruction starts with the address of the code that executes it, its handler. Its operands are up to
//! three cells and a constant; what they mean is the handler's affair. By convention `a` is the cell that an
//! instruction writes, where it writes one. Some instructions have a second slot after the first, for a constant
//! that does not fit; a slot that holds data has no handler.

use std::ptr;

use slotvm_bytecode::{Imm, Op, VectorAccess};

/// An instruction, or a slot of data after one.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub(crate) struct Instr {
    /// The address of a [`Handler`](super::state::Handler), or 64 bits of data.
    pub(crate) handler: *const (),
    pub(crate) a: u16,
    pub(crate) b: u16,
    pub(crate) c: u32,
}

impl Instr {
    /// Returns a slot of data.
    pub(crate) fn data(data: u64) -> Instr {
        Instr { handler: ptr::without_provenance(data as usize), a: 0, b: 0, c: 0 }
    }

    /// The lower half of `c`, for instructions that name four cells.
    #[inline(always)]
    pub(crate) fn x(&self) -> u16 {
        self.c as u16
    }

    /// The upper half of `c`.
    #[inline(always)]
    pub(crate) fn y(&self) -> u16 {
        (self.c >> 16) as u16
    }

    /// `a` and `b` as one number, for instructions of frames of any size.
    #[inline(always)]
    pub(crate) fn ab(&self) -> u32 {
        u32::from(self.a) | u32::from(self.b) << 16
    }
}

const _: () = assert!(size_of::<Instr>() == 16);

/// An operation on cells that lie on the operand stack: on vectors, tables, or a range of memory.
#[derive(Copy, Clone, Debug)]
pub(crate) enum StackOp {
    /// Pushes a vector.
    Const(u128),
    /// An instruction on vectors alone, with its immediate as [`slotvm_bytecode::vector::eval`] takes it.
    Vector(Op, u128),
    /// Loads 16 bytes.
    Load(Imm),
    /// Stores 16 bytes.
    Store(Imm),
    /// Loads or stores a part of a vector.
    Part(VectorAccess, Imm),
    /// Pushes both cells of a local, by the first.
    LocalGet(u32),
    /// Pops them.
    LocalSet(u32),
    /// Copies them from the top.
    LocalTee(u32),
    /// Pushes both cells of a global, by the first.
    GlobalGet(u32),
    /// Pops them.
    GlobalSet(u32),
    /// A stack shuffle, `drop` or `select`, and which of its operands take two cells: see
    /// [`slotvm_bytecode::verified::WideOperands`].
    Shuffle(Op, u8),
    /// An instruction that concerns the store.
    Service(Op, Imm),
}
