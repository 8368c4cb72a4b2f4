//! The instructions that the interpreter runs, of equal size, which name cells of the frame.
//!
//! An instruction starts with the address of the code that executes it, its handler. Its operands are up to
//! three cells and a constant; what they mean is the handler's affair. By convention `a` is the cell that an
//! instruction writes, where it writes one. Some instructions have a second slot after the first, for a constant
//! that does not fit; a slot that holds data has no handler.
//!
//! All threads that run a module share its instructions. Two kinds of words are written while they run: the handler of the
//! first instruction of a block, once that block has run ([`super::blocks`]), and the functions that an indirect call has
//! called ([`super::callees`]).

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use slotvm_bytecode::{Imm, Op, VectorAccess};

/// An instruction, or a slot of data after one.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Instr {
    /// The address of a [`Handler`](super::state::Handler), or 64 bits of data.
    handler: AtomicPtr<()>,
    pub(crate) a: u16,
    pub(crate) b: u16,
    pub(crate) c: u32,
}

impl Instr {
    pub(crate) fn new(handler: *const (), a: u16, b: u16, c: u32) -> Instr {
        Instr { handler: AtomicPtr::new(handler.cast_mut()), a, b, c }
    }

    /// Returns a slot of data.
    pub(crate) fn of_data(data: u64) -> Instr {
        Instr::of_data_and(data, 0, 0)
    }

    /// Returns a slot of data with other numbers beside it: [`Instr::ab`] and `c`.
    pub(crate) fn of_data_and(data: u64, ab: u32, c: u32) -> Instr {
        Instr::new(ptr::without_provenance(data as usize), ab as u16, (ab >> 16) as u16, c)
    }

    /// The address of a [`Handler`](super::state::Handler), if it is an instruction.
    #[inline(always)]
    pub(crate) fn handler(&self) -> *const () {
        // Whoever reads the handler that was there before does no harm: it does what the other does, and more.
        self.handler.load(Ordering::Relaxed)
    }

    /// The data, if it is a slot of data.
    #[inline(always)]
    pub(crate) fn data(&self) -> u64 {
        self.handler().addr() as u64
    }

    /// Lets another handler execute it. Threads may run it meanwhile.
    pub(crate) fn set_handler(&self, handler: *const ()) {
        self.handler.store(handler.cast_mut(), Ordering::Relaxed);
    }

    /// Writes data, if it is a slot of data. Threads may read it meanwhile.
    pub(crate) fn set_data(&self, data: u64) {
        self.set_handler(ptr::without_provenance(data as usize));
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
