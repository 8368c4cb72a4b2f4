//! How the interpreter starts: the handler of an instruction is called, and leads to the next one by itself or returns it.

use std::mem::transmute;

use crate::steps::instr::Instr;
use crate::steps::state::{Handler, State};

/// The handler of an instruction.
///
/// # Safety
/// The address is that of an instruction, not of data.
#[inline(always)]
pub(super) unsafe fn handler(pc: *const Instr) -> Handler {
    // SAFETY: an instruction starts with the address of a handler, which the translator has put there, and the caller
    // has none of the slots of data.
    unsafe { transmute::<*const (), Handler>((*pc).handler()) }
}

/// Runs from the instruction, frame and memory that the state names until a handler leaves.
///
/// # Safety
/// As [`Regs::new`](super::regs::Regs::new), for what the state names. The instruction names no accumulator.
pub(super) unsafe fn run(state: *mut State) {
    // SAFETY: `Activation::run` has let the state name the code, frame and memory of the function that it has entered,
    // and handlers that return leave theirs there.
    unsafe {
        let mut pc = (*state).pc;
        while !pc.is_null() {
            let State { fp, memory, memory_bytes, .. } = *state;
            pc = handler(pc)(pc, fp, memory, memory_bytes, state, 0, 0.0);
        }
    }
}
