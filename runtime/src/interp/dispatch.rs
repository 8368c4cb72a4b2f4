//! How one instruction leads to the next, in two forms that are built from one definition of each handler.
//!
//! In the *tail* form a handler ends with a call of the next one, which an optimising compiler turns into a jump:
//! one jump for each instruction, from a place of its own, which processors predict well. Rust does not promise
//! this, and builds without optimisation or with debug assertions do not do it: such a program would overflow the
//! stack. In the *loop* form a handler returns to a loop, which calls the next one. That is slower, and safe in
//! every build. [`super::probe`] finds out, once in a process, which of them it is.
//!
//! In the tail form, the last number that an instruction has made also travels in a register, the accumulator: one
//! for integers, one for floats of 64 bits. An instruction that needs the number does not wait until it has gone through
//! memory, and a number that only the next instruction needs is not written at all. The loop form has no
//! accumulators; instructions that name one find the number in its cell.

use std::ptr;

use slotvm_bytecode::numeric::Numeric;
use slotvm_bytecode::{TrapCode, ValType};

use super::activation::Activation;
use super::operands::{Acc, Operand, To, ToAcc, ToCell, makes};
use super::regs::Regs;
use super::run::handler;
use super::slow::SlowPath;
use crate::steps::instr::Instr;
use crate::steps::state::State;

/// A form of dispatch.
pub(super) trait Dispatch: Sized {
    /// Where an operand is that is in an accumulator, if there are any, and else in a cell.
    type Acc<C: Operand>: Operand;
    /// Where a result goes that no cell needs.
    type ToAcc: To;

    /// Goes on with an instruction, with the frame, the memory and the accumulators.
    ///
    /// # Safety
    /// As [`Regs::new`].
    unsafe fn go(r: Regs<Self>) -> *const Instr;

    /// The same, where frame and memory are as they were.
    ///
    /// # Safety
    /// As [`Regs::new`].
    unsafe fn next(r: Regs<Self>) -> *const Instr;
}

/// The form whose handlers call each other.
#[derive(Debug)]
pub(super) enum Tail {}

/// The form whose handlers return to a loop.
#[derive(Debug)]
pub(super) enum Loop {}

impl Dispatch for Tail {
    type Acc<C: Operand> = Acc;
    type ToAcc = ToAcc;

    #[inline(always)]
    unsafe fn go(r: Regs<Tail>) -> *const Instr {
        // SAFETY: whoever made `r` has said by `Regs::new` that its instruction, frame, memory and state fit each other,
        // and `go` is asked for only after a handler has set them so.
        unsafe { handler(r.pc)(r.pc, r.fp, r.memory, r.bytes, r.state, r.acc, r.float_acc) }
    }

    #[inline(always)]
    unsafe fn next(r: Regs<Tail>) -> *const Instr {
        // SAFETY: `next` asks for what `go` asks for.
        unsafe { Tail::go(r) }
    }
}

impl Dispatch for Loop {
    type Acc<C: Operand> = C;
    type ToAcc = ToCell;

    #[inline(always)]
    unsafe fn go(r: Regs<Loop>) -> *const Instr {
        // SAFETY: the state is that of the interpreter, which runs, and nobody has a reference to it.
        unsafe {
            (*r.state).fp = r.fp;
            (*r.state).memory = r.memory;
            (*r.state).memory_bytes = r.bytes;
        }
        r.pc
    }

    #[inline(always)]
    unsafe fn next(r: Regs<Loop>) -> *const Instr {
        r.pc
    }
}

impl<D: Dispatch> Regs<D> {
    /// Goes on after the instruction, which takes so many slots.
    #[inline(always)]
    pub(super) fn next(mut self, slots: usize) -> *const Instr {
        self.pc = self.pc.wrapping_add(slots);
        // SAFETY: each instruction that does not end its function is followed by another one for the same frame.
        unsafe { D::next(self) }
    }

    /// Goes on at a distance from the instruction, in slots.
    #[inline(always)]
    pub(super) fn branch(mut self, distance: i32) -> *const Instr {
        self.pc = self.pc.wrapping_offset(distance as isize);
        // SAFETY: the translator has put the distance to an instruction of the function there.
        unsafe { D::next(self) }
    }

    /// Goes on at an instruction with another frame.
    ///
    /// # Safety
    /// As [`Regs::new`], for these.
    #[inline(always)]
    pub(super) unsafe fn go(mut self, pc: *const Instr, fp: *mut u64) -> *const Instr {
        (self.pc, self.fp) = (pc, fp);
        // SAFETY: the caller, a handler of calls or of what follows them, has an instruction for this frame.
        unsafe { D::go(self) }
    }

    /// Goes on with a result, which is no float.
    #[inline(always)]
    pub(super) fn finish<T: To>(mut self, slots: usize, value: u64) -> *const Instr {
        if T::IS_WRITTEN {
            self.set(self.instr().a, value);
        }
        self.acc = value;
        self.next(slots)
    }

    /// Goes on with a result that is a float of 64 bits.
    #[inline(always)]
    pub(super) fn finish_float<T: To>(mut self, slots: usize, value: u64) -> *const Instr {
        if T::IS_WRITTEN {
            self.set(self.instr().a, value);
        }
        self.float_acc = f64::from_bits(value);
        self.next(slots)
    }

    /// Goes on with the result of an operation `N`.
    #[inline(always)]
    pub(super) fn finish_op<N: Numeric, T: To>(
        self,
        slots: usize,
        result: Result<u64, TrapCode>,
    ) -> *const Instr {
        match result {
            Ok(value) => match const { makes(N::OP) } {
                ValType::F64 => self.finish_float::<T>(slots, value),
                ValType::F32 => {
                    self.set(self.instr().a, value);
                    self.next(slots)
                }
                _ => self.finish::<T>(slots, value),
            },
            Err(code) => self.trap(code),
        }
    }

    /// Traps at the instruction.
    #[inline(always)]
    pub(super) fn trap(self, code: TrapCode) -> *const Instr {
        // SAFETY: the state is that of an activation, as `new` was promised.
        unsafe { trap(self.state, self.pc, code) }
    }

    /// Lets something be done that is not for handlers to do by themselves. What it leaves in the state is where to
    /// go on; null for its result leaves the interpreter. The accumulators are lost.
    #[inline(always)]
    pub(super) fn leave_to(mut self, work: SlowPath) -> *const Instr {
        // SAFETY: the arguments are those of a handler, which is what `work` asks for; and it leaves such in the
        // state.
        unsafe {
            let pc = work(self.state, self.pc, self.fp);
            if pc.is_null() {
                return pc;
            }
            let State { fp, memory, memory_bytes, .. } = *self.state;
            (self.memory, self.bytes) = (memory, memory_bytes);
            (self.acc, self.float_acc) = (0, 0.0);
            self.go(pc, fp)
        }
    }
}

/// Ends the activation with a trap.
///
/// # Safety
/// The state is that of an activation, and `pc` is an instruction of its active function.
#[cold]
#[inline(never)]
unsafe fn trap(state: *mut State, pc: *const Instr, code: TrapCode) -> *const Instr {
    // SAFETY: the state is that of an activation, as `Regs::new` was told, and the handler holds no reference.
    let activation = unsafe { Activation::of(state) };
    activation.state.pc = pc;
    activation.stop(code.into());
    ptr::null()
}

/// Defines handlers in both forms. A handler gets its arguments as [`Regs`].
macro_rules! handlers {
    ($(
        $(#[$attribute:meta])*
        fn $name:ident $(<$($generic:ident: $bound:path),+>)? ($r:ident) $body:block
    )*) => {$(
        $(#[$attribute])*
        ///
        /// # Safety
        /// As [`Regs::new`].
        pub(in crate::interp) unsafe fn $name<$($($generic: $bound,)+)? D: Dispatch>(
            pc: *const Instr,
            fp: *mut u64,
            memory: *mut u8,
            bytes: usize,
            state: *mut State,
            acc: u64,
            float_acc: f64,
        ) -> *const Instr {
            // SAFETY: handlers are called by `Dispatch` and `run` alone, with an instruction that names them and the rest
            // as they got it or as an activation has set it.
            #[allow(unused_mut, reason = "few handlers change the accumulators by themselves")]
            let mut $r = unsafe { Regs::<D>::new((pc, fp, memory, bytes, state), acc, float_acc) };
            $body
        }
    )*};
}
pub(super) use handlers;
