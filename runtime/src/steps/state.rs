//! The state of the interpreter that its handlers see.

use std::ptr;
use std::sync::atomic::AtomicPtr;

use super::instr::Instr;
use super::stack::Frame;
use super::target::CallTarget;
use crate::context::{Shared, VmCtx};

/// Code that executes an instruction.
///
/// The arguments are the instruction, the first cell of the frame, the first byte and the number of bytes of memory
/// 0, the state of the interpreter, and the accumulators of integers and floats. The result is the instruction to go on with, or null to leave the
/// interpreter. Only `interp::dispatch` calls handlers.
pub(crate) type Handler =
    unsafe fn(*const Instr, *mut u64, *mut u8, usize, *mut State, u64, f64) -> *const Instr;

/// Cells beside the frame that code of very large frames computes in.
pub(crate) const SCRATCH_CELLS: usize = 8;

/// The state of the interpreter while it runs: the part that handlers read and write by themselves. What they
/// read often travels in registers instead, see [`Handler`].
#[repr(C)]
#[derive(Debug)]
pub(crate) struct State {
    /// The place for the next frame that waits, and the end of such places.
    pub(crate) frames: *mut Frame,
    pub(crate) frames_end: *mut Frame,
    /// The end of the cells of all frames.
    pub(crate) cells_end: *mut u64,
    /// The active function.
    pub(crate) active: *const CallTarget,
    /// The targets of calls of the functions that its module defines.
    pub(crate) targets: *const AtomicPtr<CallTarget>,
    /// Its instance: context, globals, and number.
    pub(crate) ctx: *mut VmCtx,
    pub(crate) globals: *mut u64,
    pub(crate) shared: *mut Shared,
    pub(crate) instance: u32,

    /// Where to go on: the arguments of the next handler, wherever they are not passed on in registers.
    pub(crate) pc: *const Instr,
    pub(crate) fp: *mut u64,
    pub(crate) memory: *mut u8,
    pub(crate) memory_bytes: usize,

    /// The frame of a function whose cells are too many to be named by 16 bits, while its code computes in
    /// `scratch`.
    pub(crate) far: *mut u64,
    pub(crate) scratch: [u64; SCRATCH_CELLS],
    /// Where the interpreter goes on after native code was left.
    pub(crate) landing: Landing,
}

/// A place in the code of a function, and what is in registers there.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Landing {
    pub(crate) pc: *const Instr,
    /// The accumulators.
    pub(crate) int: u64,
    pub(crate) float: f64,
    /// Whether the code computes in scratch cells.
    pub(crate) is_far: bool,
}

impl Landing {
    /// No place.
    const NONE: Landing = Landing { pc: ptr::null(), int: 0, float: 0.0, is_far: false };
}

impl State {
    /// A state that leads nowhere.
    pub(crate) const EMPTY: State = State {
        frames: ptr::null_mut(),
        frames_end: ptr::null_mut(),
        cells_end: ptr::null_mut(),
        active: ptr::null(),
        targets: ptr::null(),
        ctx: ptr::null_mut(),
        globals: ptr::null_mut(),
        shared: ptr::null_mut(),
        instance: 0,
        pc: ptr::null(),
        fp: ptr::null_mut(),
        memory: ptr::null_mut(),
        memory_bytes: 0,
        far: ptr::null_mut(),
        scratch: [0; SCRATCH_CELLS],
        landing: Landing::NONE,
    };
}
