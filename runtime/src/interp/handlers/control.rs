//! Handlers of branches, fuel and polls, of what is left to the store, and of frames with very many cells.

use std::sync::atomic::Ordering;

use slotvm_bytecode::TrapCode;
use slotvm_bytecode::numeric::ops::I32Eqz;

use crate::interp::operands::Operand;

use crate::interp::dispatch::{Dispatch, handlers};
use crate::interp::regs::Regs;
use crate::interp::slow;
use crate::steps::instr::Instr;
use crate::steps::state::{Landing, State};

handlers! {
    /// Branches by `c`.
    fn br(r) {
        r.branch(r.instr().c as i32)
    }

    /// Branches by the distance in the slot whose number after this one is `a`, at most `c`.
    fn br_table<L: Operand>(r) {
        let index = (L::get::<I32Eqz, D>(&r) as u32).min(r.instr().c);
        let distance = r.data(1 + index as usize);
        r.branch(distance as i32)
    }

    /// Moves as many cells as `a` and `b` say from `c` on, to the cell in the next slot.
    fn move_cells(r) {
        let from = r.fp.wrapping_add(r.instr().c as usize);
        let to = r.fp.wrapping_add(r.data(1) as usize);
        // SAFETY: the translator names cells of the frame.
        unsafe { to.copy_from(from, r.instr().ab() as usize) };
        r.next(2)
    }

    /// Traps.
    fn unreachable(r) {
        r.trap(TrapCode::Unreachable)
    }

    /// Traps with the number that the bytecode names.
    fn custom_trap(r) {
        r.trap(TrapCode::Custom)
    }

    /// Charges `c` for a block.
    fn fuel(r) {
        // SAFETY: what all instances share lives as long as the store. Nobody has a reference to its fuel while
        // the interpreter runs.
        let fuel = unsafe { &mut (*(*r.state).shared).fuel };
        let cost = i64::from(r.instr().c);
        if *fuel < cost {
            return r.trap(TrapCode::OutOfFuel);
        }
        *fuel -= cost;
        r.next(1)
    }

    /// Lets the host interrupt the program.
    fn poll(r) {
        // SAFETY: the words live as long as the store, and only code of a store that has them polls.
        let is_due = unsafe {
            let shared = (*r.state).shared;
            (*(*shared).epoch).load(Ordering::Relaxed) >= (*(*shared).poll_at).load(Ordering::Relaxed)
        };
        if is_due { r.leave_to(slow::poll) } else { r.next(1) }
    }

    /// Counts down the count `c` of the function.
    fn count(r) {
        // SAFETY: the state is that of the running interpreter, which executes code of its own. HandlerCode that counts has as
        // many counts as it names.
        let left = unsafe {
            let code = (*(*r.state).active).interpreted_unchecked();
            &(*code.counts.as_ptr().add(r.instr().c as usize)).left
        };
        let n = left.load(Ordering::Relaxed).wrapping_sub(1);
        left.store(n, Ordering::Relaxed);
        // Another thread may have counted the last one.
        if n as i32 <= 0 { r.leave_to(slow::count) } else { r.next(1) }
    }

    /// Notes that a block runs for the first time, of which this is the first instruction, and executes that.
    fn first(r) {
        // SAFETY: the state is that of the running interpreter, which executes this instruction of its active function. The
        // handler that is there then is for the same instruction, and takes what this one got.
        unsafe {
            note_block(r.state, r.pc);
            let (pc, fp) = (r.pc, r.fp);
            r.go(pc, fp)
        }
    }

    /// Calls native code in the place of the function.
    fn native(r) {
        r.leave_to(slow::native)
    }

    /// Goes on where native code was left.
    fn land(r) {
        // SAFETY: the state is that of the running interpreter, to which nobody has a reference. `Activation::land` has put a
        // place of the active function there, and what code of it reads besides its frame.
        unsafe {
            let Landing { pc, int, float, is_far } = (*r.state).landing;
            (r.acc, r.float_acc) = (int, float);
            if !is_far {
                return r.go(pc, r.fp);
            }
            (*r.state).far = r.fp;
            r.go(pc, (&raw mut (*r.state).scratch).cast())
        }
    }

    /// Executes the stack operation `c`; `a` and `b` are the cell above the top of the operand stack.
    fn stack_op(r) {
        r.leave_to(slow::stack_op)
    }

    /// Executes the stack operation `c`, which concerns no more than the frame and memory 0; `a` and `b` are as for
    /// `stack_op`.
    fn vector(r) {
        // SAFETY: the arguments are those of this handler.
        match unsafe { slow::vector_op(r.state, r.pc, r.fp, (r.memory, r.bytes)) } {
            true => r.next(1),
            false => r.trap(TrapCode::MemoryOutOfBounds),
        }
    }

    /// Shows the instruction that follows to the observer; `a` and `b` are the cell above the top of the
    /// operand stack.
    fn trace(r) {
        r.leave_to(slow::trace)
    }

    /// Computes in scratch cells from now on.
    fn far_begin(r) {
        // SAFETY: the state is that of the running interpreter, to which nobody has a reference. HandlerCode after this names
        // no cell but those of `scratch`.
        unsafe {
            (*r.state).far = r.fp;
            r.go(r.pc.wrapping_add(1), (&raw mut (*r.state).scratch).cast())
        }
    }

    /// Computes in cells of the frame again.
    fn far_end(r) {
        // SAFETY: `far_begin` has put the frame there, and code after this names its cells.
        unsafe { r.go(r.pc.wrapping_add(1), (*r.state).far) }
    }

    /// `a =` the cell `c` of the frame.
    fn far_get(r) {
        // SAFETY: `far_begin` has put the frame there, and the translator names its cells.
        let value = unsafe { *(*r.state).far.wrapping_add(r.instr().c as usize) };
        r.set(r.instr().a, value);
        r.next(1)
    }

    /// The cell `c` of the frame is set to `a`.
    fn far_set(r) {
        let value = r.get(r.instr().a);
        // SAFETY: `far_begin` has put the frame there, and the translator names its cells.
        unsafe { *(*r.state).far.wrapping_add(r.instr().c as usize) = value };
        r.next(1)
    }
}

/// Notes that a block runs whose first instruction is given.
///
/// # Safety
/// The state is that of the running interpreter, and the instruction one of its active function.
#[cold]
#[inline(never)]
unsafe fn note_block(state: *mut State, pc: *const Instr) {
    // SAFETY: so says the caller; what is active is interpreted, and lives as long as the store.
    let code = unsafe { (*(*state).active).interpreted_unchecked() };
    code.blocks.note(&code.instrs, code.slot(pc));
}
