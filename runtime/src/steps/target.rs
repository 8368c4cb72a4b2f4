//! The targets of calls: where a call of a function goes on, and what its frame takes.
//!
//! A function that is interpreted is the target of its calls until native code takes its place. Then its target is another,
//! which knows the one before: frames may be running its code, and its loops are counted.

use std::ptr;

use slotvm_bytecode::{FuncType, n_cells};

use super::code::FuncCode;
use super::instr::Instr;
use crate::context::EntryTrampoline;

/// The cells that the parameters or the results of a function take, whichever are more.
pub(crate) fn n_call_cells(ty: &FuncType) -> usize {
    n_cells(&ty.params).max(n_cells(&ty.results))
}

/// The target of the calls of a function.
#[derive(Debug)]
pub(crate) struct CallTarget {
    /// The first instruction.
    pub(crate) start: *const Instr,
    /// Bytes of stack that a call needs to be entered at once; `usize::MAX` if it takes more than a frame.
    pub(crate) entry_bytes: usize,
    /// Cells of the parameters, and of all locals.
    pub(crate) n_params: u32,
    pub(crate) n_locals: u32,
    /// Cells of its frame: locals and operand stack.
    pub(crate) n_cells: u32,
    /// Cells of its results.
    pub(crate) n_results: u32,
    /// Cells of its parameters or its results, whichever are more.
    pub(crate) n_call_cells: u32,
    /// The function.
    pub(crate) func: u32,
    /// Cells that a call takes from the deterministic call stack.
    pub(crate) call_cells: u32,
    /// Bytes of its frame in the frame stack.
    pub(crate) frame_bytes: u32,
    pub(crate) code: TargetCode,
}

/// The code of a function that is called.
#[derive(Debug)]
pub(crate) enum TargetCode {
    Interpreted(FuncCode),
    Native(NativeCode),
}

/// Native code in the place of a function. Its target has one instruction, which calls that with the cells of the frame.
#[derive(Debug)]
pub(crate) struct NativeCode {
    pub(crate) address: *const u8,
    /// The entry to it, if it is known.
    pub(crate) entry: Option<EntryTrampoline>,
    /// The target of calls before, or null if the function was never called. It lives as long as this one.
    pub(super) before: *const CallTarget,
}

// SAFETY: the addresses in it are those of instructions that it owns or that are never freed, of functions of this program,
// of native code, which may run in any thread, and of a target that is as free to be sent.
unsafe impl Send for CallTarget {}
// SAFETY: nothing is written once it was made, but what threads share: `offsets`, `places`, counts, and the first words of
// instructions and slots of data, which are atomics.
unsafe impl Sync for CallTarget {}

impl CallTarget {
    /// The target of calls of a function of a type that is native code. `start` is the instruction that calls that.
    pub(super) fn native_code(
        ty: &FuncType,
        func: u32,
        start: *const Instr,
        address: *const u8,
        entry: Option<EntryTrampoline>,
    ) -> CallTarget {
        let (n_params, n_cells) = (n_cells(&ty.params) as u32, n_call_cells(ty) as u32);
        CallTarget {
            start,
            func,
            n_params,
            n_locals: n_params,
            n_cells,
            n_results: slotvm_bytecode::n_cells(&ty.results) as u32,
            n_call_cells: n_cells,
            entry_bytes: n_cells as usize * size_of::<u64>(),
            // Native code takes by itself what a call takes.
            call_cells: 0,
            frame_bytes: 0,
            code: TargetCode::Native(NativeCode { address, entry, before: ptr::null() }),
        }
    }

    /// The target of calls that is interpreted, this or one before, if there is any.
    pub(crate) fn interpreted(&self) -> Option<&CallTarget> {
        match &self.code {
            TargetCode::Interpreted(_) => Some(self),
            // SAFETY: what was a target once stays alive as long as its successors (`ModuleCode::replace`).
            TargetCode::Native(code) => unsafe { code.before.as_ref() }?.interpreted(),
        }
    }

    /// The code that instructions of a target belong to.
    ///
    /// # Safety
    /// The target is one that is interpreted.
    #[inline(always)]
    pub(crate) unsafe fn interpreted_unchecked(&self) -> &FuncCode {
        match &self.code {
            TargetCode::Interpreted(code) => code,
            // SAFETY: so says the caller.
            TargetCode::Native(_) => unsafe { std::hint::unreachable_unchecked() },
        }
    }

    /// The code that an instruction is executed of.
    ///
    /// # Panics
    /// Panics if the target is native code, which has no instructions but the one that calls it.
    pub(crate) fn running(&self) -> &FuncCode {
        match &self.code {
            TargetCode::Interpreted(code) => code,
            TargetCode::Native(_) => unreachable!("native code has no instructions"),
        }
    }

    /// The target of calls before this one, or null.
    pub(super) fn before(&self) -> *const CallTarget {
        match &self.code {
            TargetCode::Interpreted(_) => ptr::null(),
            TargetCode::Native(code) => code.before,
        }
    }

    /// The address of native code, or null.
    pub(crate) fn native(&self) -> *const u8 {
        match &self.code {
            TargetCode::Interpreted(_) => ptr::null(),
            TargetCode::Native(code) => code.address,
        }
    }
}
