//! The arguments of a handler.

use std::marker::PhantomData;

use crate::steps::instr::Instr;
use crate::steps::state::State;

/// The arguments of a handler. The methods are sound by promises of the translator and the verifier.
pub(super) struct Regs<D> {
    pub(super) pc: *const Instr,
    pub(super) fp: *mut u64,
    pub(super) memory: *mut u8,
    pub(super) bytes: usize,
    pub(super) state: *mut State,
    pub(super) acc: u64,
    pub(super) float_acc: f64,
    pub(super) form: PhantomData<D>,
}

impl<D> Copy for Regs<D> {}

impl<D> Clone for Regs<D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D> Regs<D> {
    /// Takes the arguments of a handler.
    ///
    /// # Safety
    /// * `pc` is an instruction that the translator has made for this handler, of a function that lives.
    /// * `fp` is a frame of that function: as many cells as its code names, which nobody else accesses while the
    ///   interpreter runs. For code that computes in scratch cells, it is these.
    /// * `memory` and `bytes` are memory 0 of the active instance.
    /// * `state` is the state of a running interpreter, at the start of an [`Activation`](super::activation::Activation).
    #[inline(always)]
    pub(super) unsafe fn new(
        (pc, fp, memory, bytes, state): (*const Instr, *mut u64, *mut u8, usize, *mut State),
        acc: u64,
        float_acc: f64,
    ) -> Regs<D> {
        Regs { pc, fp, memory, bytes, state, acc, float_acc, form: PhantomData }
    }

    /// The instruction.
    #[inline(always)]
    pub(super) fn instr(&self) -> &Instr {
        // SAFETY: `new` was promised that it is one.
        unsafe { &*self.pc }
    }

    /// A slot after the instruction.
    #[inline(always)]
    pub(super) fn slot(&self, slot: usize) -> &Instr {
        // SAFETY: the translator has put as many slots after an instruction as its handler reads.
        unsafe { &*self.pc.wrapping_add(slot) }
    }

    /// The data in a slot after the instruction.
    #[inline(always)]
    pub(super) fn data(&self, slot: usize) -> u64 {
        self.slot(slot).data()
    }

    #[inline(always)]
    pub(super) fn get(&self, cell: u16) -> u64 {
        // SAFETY: the translator names cells of the frame.
        unsafe { *self.fp.wrapping_add(cell as usize) }
    }

    #[inline(always)]
    pub(super) fn set(&self, cell: u16, value: u64) {
        // SAFETY: the translator names cells of the frame.
        unsafe { *self.fp.wrapping_add(cell as usize) = value }
    }

    /// Reads memory at an address.
    #[inline(always)]
    pub(super) fn load<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        let end = address + N as u64;
        if end > self.bytes as u64 {
            return None;
        }
        // SAFETY: the bytes lie in the memory, as was just checked.
        Some(unsafe { *self.memory.wrapping_add(address as usize).cast() })
    }

    /// Writes memory at an address. Returns whether that lies in it.
    #[inline(always)]
    pub(super) fn store<const N: usize>(&self, address: u64, value: [u8; N]) -> bool {
        let end = address + N as u64;
        if end > self.bytes as u64 {
            return false;
        }
        // SAFETY: the bytes lie in the memory, as was just checked.
        unsafe { *self.memory.wrapping_add(address as usize).cast() = value };
        true
    }
}
