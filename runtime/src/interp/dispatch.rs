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

use std::marker::PhantomData;
use std::mem::transmute;
use std::ptr;

use slotvm_bytecode::TrapCode;

use super::activation::Activation;
use super::handlers::operands::{Acc, Operand, To, ToAcc, ToCell};
use super::outside::Outside;
use crate::steps::code::{Handler, Instr};
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

/// # Safety
/// The address is that of an instruction, not of data.
#[inline(always)]
unsafe fn handler(pc: *const Instr) -> Handler {
    // SAFETY: an instruction starts with the address of a handler, which the translator has put there, and the caller
    // has none of the slots of data.
    unsafe { transmute::<*const (), Handler>((*pc).handler) }
}

/// Runs from the instruction, frame and memory that the state names until a handler leaves.
///
/// # Safety
/// As [`Regs::new`], for what the state names. The instruction names no accumulator.
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

impl<D: Dispatch> Regs<D> {
    /// Takes the arguments of a handler.
    ///
    /// # Safety
    /// * `pc` is an instruction that the translator has made for this handler, of a function that lives.
    /// * `fp` is a frame of that function: as many cells as its code names, which nobody else accesses while the
    ///   interpreter runs. For code that computes in scratch cells, it is these.
    /// * `memory` and `bytes` are memory 0 of the active instance.
    /// * `state` is the state of a running interpreter, at the start of an [`Activation`].
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

    /// The data in a slot after the instruction.
    #[inline(always)]
    pub(super) fn data(&self, slot: usize) -> u64 {
        // SAFETY: the translator has put as many slots after an instruction as its handler reads.
        unsafe { (*self.pc.wrapping_add(slot)).handler.addr() as u64 }
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

    /// Traps at the instruction.
    #[inline(always)]
    pub(super) fn trap(self, code: TrapCode) -> *const Instr {
        // SAFETY: the state is that of an activation, as `new` was promised.
        unsafe { trap(self.state, self.pc, code) }
    }

    /// Lets something be done that is not for handlers to do by themselves. What it leaves in the state is where to
    /// go on; null for its result leaves the interpreter. The accumulators are lost.
    #[inline(always)]
    pub(super) fn leave_to(mut self, work: Outside) -> *const Instr {
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
