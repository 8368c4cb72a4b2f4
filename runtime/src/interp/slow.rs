//! Work that handlers leave to others: calls that need more than a frame, and everything that concerns the store.
//!
//! Each function here does what the handler of the same name leaves to it, and returns the instruction to go on with.

use std::ptr;

use slotvm_bytecode::{CodeReader, TrapCode};

use super::activation::Activation;
use super::vector;
use crate::entities::FuncHandle;
use crate::error::Stop;
use crate::steps::callees::note;
use crate::steps::instr::{Instr, StackOp};
use crate::steps::state::State;
use crate::steps::trace::TraceEvent;

/// Work that a handler leaves to others, with its state, instruction and frame. See
/// [`Regs::leave_to`](super::regs::Regs::leave_to).
pub(super) type SlowPath = unsafe fn(*mut State, *const Instr, *mut u64) -> *const Instr;

/// Defines functions of type [`SlowPath`]; the body returns the instruction to go on with or why the activation ends.
macro_rules! slow_paths {
    ($(
        $(#[$attribute:meta])*
        fn $name:ident($activation:ident, $instr:ident) $body:block
    )*) => {$(
        $(#[$attribute])*
        ///
        /// # Safety
        /// The arguments are those of a handler.
        #[cold]
        #[inline(never)]
        pub(super) unsafe fn $name(
            state: *mut State,
            pc: *const Instr,
            fp: *mut u64,
        ) -> *const Instr {
            // SAFETY: the state of a handler is that of an activation, to which the handler has no reference.
            let $activation = unsafe { Activation::of(state) };
            // SAFETY: the instruction of a handler lives as long as the store.
            let $instr = unsafe { &*pc };
            ($activation.state.pc, $activation.state.fp) = (pc, fp);
            let result: Result<*const Instr, Stop> = $body;
            result.unwrap_or_else(|stop| {
                $activation.stop(stop);
                ptr::null()
            })
        }
    )*};
}

/// The instruction after one that takes so many slots.
fn after(instr: &Instr, slots: usize) -> *const Instr {
    ptr::from_ref(instr).wrapping_add(slots)
}

/// The slot of data after an instruction.
fn slot(instr: &Instr) -> &Instr {
    // SAFETY: the translator has put a slot after each instruction whose handler or slow path reads it. It lives as long.
    unsafe { &*after(instr, 1) }
}

slow_paths! {
    /// Lets the host interrupt the program.
    fn poll(activation, instr) {
        activation.poll().map(|()| after(instr, 1))
    }

    /// Executes a stack operation.
    fn stack_op(activation, instr) {
        let op = activation.active().running().stack_ops[instr.c as usize];
        let done = match op {
            StackOp::Service(op, imm) => activation.serve(op, imm, instr.ab() as usize),
            op => {
                global_op(activation, op, instr.ab() as usize);
                Ok(())
            }
        };
        done.map(|()| after(instr, 1))
    }

    /// Counts what is done often.
    fn count(activation, instr) {
        activation.count(instr)
    }

    /// Calls native code in the place of the active function.
    fn native(activation, _instr) {
        activation.run_native()
    }

    /// Shows an instruction to the observer.
    fn trace(activation, instr) {
        show(activation, instr);
        Ok(after(instr, 1))
    }

    /// Calls a function that the module defines.
    fn call(activation, instr) {
        let instance = activation.instance();
        let func = activation.module().module().n_imported_funcs() + instr.c;
        activation.call_guest(instance, func, instr.ab(), after(instr, 1))
    }

    /// Calls an imported function.
    fn call_import(activation, instr) {
        let func = activation.store.instance(activation.instance()).func_handle(instr.c);
        activation.call(func, instr.ab(), after(instr, 1))
    }

    /// Calls a function of a table.
    fn call_indirect(activation, instr) {
        match callee(activation, instr) {
            Ok(func) => {
                note(slot(instr), activation.defined(func));
                activation.call(func, instr.ab(), after(instr, 2))
            }
            Err(code) => Err(code.into()),
        }
    }

    /// Calls a function that the module defines in place of the active one.
    fn return_call(activation, instr) {
        let instance = activation.instance();
        let func = activation.module().module().n_imported_funcs() + instr.c;
        activation.return_call_guest(instance, func, instr.ab())
    }

    /// Calls an imported function in place of the active one.
    fn return_call_import(activation, instr) {
        let func = activation.store.instance(activation.instance()).func_handle(instr.c);
        activation.return_call(func, instr.ab())
    }

    /// Calls a function of a table in place of the active one.
    fn return_call_indirect(activation, instr) {
        match callee(activation, instr) {
            Ok(func) => activation.return_call(func, instr.ab()),
            Err(code) => Err(code.into()),
        }
    }

    /// Gives back what entering the active function has taken beyond its frame.
    fn release(activation, instr) {
        activation.release();
        Ok(after(instr, 1))
    }

    /// Goes on after the call of the active function.
    fn leave(activation, _instr) {
        Ok(activation.leave())
    }
}

/// The function that an indirect call means.
fn callee(activation: &Activation<'_>, instr: &Instr) -> Result<FuncHandle, TrapCode> {
    let (ty, place) = (slot(instr).c, slot(instr).ab());
    let index =
        activation.store.interp.stack.cells[activation.index(activation.state.fp) + place as usize];
    let store = &activation.store;
    let table = store.table_of(activation.instance(), instr.c);
    let cell = store.table(table).get(index as u32)?;
    let func = FuncHandle::from_cell(cell).ok_or(TrapCode::IndirectCallToNull)?;
    let wanted = store.instance(activation.instance()).type_id(ty);
    match store.func_record(func).type_id == wanted {
        true => Ok(func),
        false => Err(TrapCode::BadSignature),
    }
}

/// Reads or writes a global that is a vector, with the top of the operand stack below a cell.
fn global_op(activation: &mut Activation<'_>, op: StackOp, sp: usize) {
    let start = activation.index(activation.state.fp);
    let n_cells = activation.active().n_cells as usize;
    let instance = activation.instance();
    match op {
        StackOp::GlobalGet(cell) => {
            let value = activation.store.guest_parts(instance).globals.get_wide(cell);
            let cells = &mut activation.store.interp.stack.cells[start..start + n_cells];
            vector::Operands { cells, sp }.push_wide(value);
        }
        StackOp::GlobalSet(cell) => {
            let cells = &mut activation.store.interp.stack.cells[start..start + n_cells];
            let value = vector::Operands { cells, sp }.pop_wide();
            activation.store.guest_parts(instance).globals.set_wide(cell, value);
        }
        _ => unreachable!("{op:?} does not concern the store"),
    }
}

/// Executes the operation on vectors at an instruction, with memory 0. Returns whether its access is in bounds.
///
/// # Safety
/// The arguments are those of a handler.
#[inline(never)]
pub(super) unsafe fn vector_op(
    state: *mut State,
    pc: *const Instr,
    fp: *mut u64,
    (memory, bytes): (*mut u8, usize),
) -> bool {
    // SAFETY: the handler `vector` passes what it got: the state names the active function, whose instruction and
    // frame these are, and nobody else accesses the frame or the memory while the interpreter runs.
    let (code, instr, cells, memory) = unsafe {
        let active = &*(*state).active;
        let cells = std::slice::from_raw_parts_mut(fp, active.n_cells as usize);
        let memory = std::slice::from_raw_parts_mut(memory, bytes);
        (active.interpreted_unchecked(), &*pc, cells, memory)
    };
    let op = code.stack_ops[instr.c as usize];
    let mut operands = vector::Operands { cells, sp: instr.ab() as usize };
    vector::execute(op, memory, code.options.canonical_nans, &mut operands).is_ok()
}

/// Shows the instruction at a place to the observer; it is the one that `instr` was made for.
fn show(activation: &mut Activation<'_>, instr: &Instr) {
    let Some(hook) = activation.trace.clone() else { return };
    let module = activation.module().module().clone();
    let active = activation.active();
    let (func, n_locals) = (active.func, active.n_locals as usize);
    let offset = activation.module().offset(active, instr);
    let bytes = &module.func(func).expect("a function of the module").code;
    let inst = CodeReader::new(bytes, offset).read().expect("verified code decodes");
    activation.count_frames();
    let start = activation.index(activation.state.fp);
    let stack = &activation.store.interp.stack.cells[start + n_locals..start + instr.ab() as usize];
    hook(&TraceEvent {
        instance: activation.instance(),
        module: module.completed(),
        // The host's call is one of the frames.
        depth: activation.store.interp.stack.frames.len() - 1,
        func,
        offset,
        inst,
        stack,
    });
}
