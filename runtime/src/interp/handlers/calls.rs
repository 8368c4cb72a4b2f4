//! Handlers of calls and returns. The arguments of a call lie where the callee's frame starts.
//!
//! Here is what calls of functions of the same instance need, most of the time. The rest is done outside of the
//! handlers: the first call of a function, which translates it, stacks that must grow or must not, frames in the frame
//! stack, other instances and the host.

use std::ptr;
use std::sync::atomic::Ordering;

use crate::context::FuncRecord;
use crate::interp::dispatch::{Dispatch, handlers};
use crate::interp::regs::Regs;
use crate::interp::slow::{self, SlowPath};
use crate::steps::callees::{Callees, note};
use crate::steps::instr::Instr;
use crate::steps::stack::Frame;
use crate::steps::state::State;
use crate::steps::target::CallTarget;

/// The target of calls of a function of the active instance, or null if it was never called.
#[inline(always)]
fn target<D: Dispatch>(r: &Regs<D>, defined: u32) -> *const CallTarget {
    // SAFETY: the list is that of the active module, and verified code names functions that it defines.
    unsafe { (*(*r.state).targets.wrapping_add(defined as usize)).load(Ordering::Acquire) }
}

/// Enters a function whose caller waits, if nothing out of the ordinary is necessary.
#[inline(always)]
fn enter<D: Dispatch>(
    r: Regs<D>,
    callee: *const CallTarget,
    slots: usize,
    outside: SlowPath,
) -> *const Instr {
    if callee.is_null() {
        return r.leave_to(outside);
    }
    let args = r.instr().ab();
    let fp = r.fp.wrapping_add(args as usize);
    // SAFETY: the callee is a target of the active instance, which is never freed while a store lives. The state is
    // that of the running interpreter. Where there are as many bytes as `entry_bytes`, the frame fits the stack, and
    // between the two ends of frames is room for one.
    unsafe {
        let state = r.state;
        let CallTarget { entry_bytes, n_params, n_locals, .. } = *callee;
        let top = (*state).frames;
        if (*state).cells_end.addr() - fp.addr() < entry_bytes || top == (*state).frames_end {
            return r.leave_to(outside);
        }
        let ret = r.pc.wrapping_add(slots);
        *top = Frame { ret, func: (*state).active, args, instance: (*state).instance };
        (*state).frames = top.wrapping_add(1);
        (*state).active = callee;
        for cell in n_params..n_locals {
            *fp.wrapping_add(cell as usize) = 0;
        }
        r.go((*callee).start, fp)
    }
}

/// Enters a function in place of the active one, if nothing out of the ordinary is necessary.
#[inline(always)]
fn enter_instead<D: Dispatch>(
    r: Regs<D>,
    callee: *const CallTarget,
    outside: SlowPath,
) -> *const Instr {
    if callee.is_null() {
        return r.leave_to(outside);
    }
    let args = r.fp.wrapping_add(r.instr().ab() as usize);
    // SAFETY: the callee is a target of the active instance, which is never freed while a store lives. The state is that of
    // the running interpreter. Where there are as many bytes as `entry_bytes`, the callee's frame fits the stack in
    // place of the active one, and the arguments are as many as the callee has parameters.
    unsafe {
        let state = r.state;
        let CallTarget { entry_bytes, n_params, n_locals, .. } = *callee;
        if (*state).cells_end.addr() - r.fp.addr() < entry_bytes {
            return r.leave_to(outside);
        }
        (*state).active = callee;
        r.fp.copy_from(args, n_params as usize);
        for cell in n_params..n_locals {
            *r.fp.wrapping_add(cell as usize) = 0;
        }
        r.go((*callee).start, r.fp)
    }
}

/// Goes on after the call of the active function, whose results lie where its frame starts.
#[inline(always)]
fn leave<D: Dispatch>(r: Regs<D>) -> *const Instr {
    // SAFETY: the state is that of the running interpreter. Below the frame of a function is one that waits for it;
    // where it was pushed, its code goes on at `ret`, with the frame that started `args` cells below.
    unsafe {
        let state = r.state;
        let top = (*state).frames.wrapping_sub(1);
        let Frame { ret, func, args, instance } = *top;
        if instance != (*state).instance {
            return r.leave_to(slow::leave);
        }
        (*state).frames = top;
        (*state).active = func;
        r.go(ret, r.fp.wrapping_sub(args as usize))
    }
}

/// The function of the active instance that an indirect call means, if its type is right: its number among those that the
/// module defines.
#[inline(always)]
fn callee<D: Dispatch>(r: &Regs<D>) -> Option<u32> {
    let (table, slot) = (r.instr().c, r.slot(1));
    // SAFETY: the translator names a cell of the frame. The context is that of the active instance. It leads to its tables and
    // types, which verified code names, and a handle in a table to the record of a function.
    unsafe {
        let index = *r.fp.wrapping_add(slot.ab() as usize) as u32;
        let ctx = (*r.state).ctx;
        let table = *(*ctx).tables.wrapping_add(table as usize);
        if u64::from(index) >= (*table).len {
            return None;
        }
        let cell = *(*table).base.wrapping_add(index as usize);
        if cell == 0 {
            return None;
        }
        let end = (*(*r.state).shared).funcs.wrapping_byte_add(cell as usize);
        let FuncRecord { ctx: defined_by, type_id, defined, .. } = *end.wrapping_sub(1);
        let is_right = type_id == *(*ctx).type_ids.wrapping_add(slot.c as usize);
        (is_right && ptr::eq(defined_by, ctx)).then_some(defined)
    }
}

handlers! {
    /// Calls the function `c` of those that the module defines; `a` and `b` are where its arguments start.
    fn call(r) {
        let callee = target(&r, r.instr().c);
        enter(r, callee, 1, slow::call)
    }

    /// Calls the imported function `c`; `a` and `b` are where its arguments start.
    fn call_import(r) {
        r.leave_to(slow::call_import)
    }

    /// Calls a function of table `c`; `a` and `b` are where its arguments start. The next slot has the functions that it has
    /// called, the cell of its index, and its type.
    fn call_indirect(r) {
        match callee(&r) {
            Some(defined) => {
                if !Callees::of_word(r.data(1)).covers(defined) {
                    note(r.slot(1), Some(defined));
                }
                let callee = target(&r, defined);
                enter(r, callee, 2, slow::call_indirect)
            }
            None => r.leave_to(slow::call_indirect),
        }
    }

    /// Calls the function `c` of those that the module defines, in place of the active one. `a` and `b` are where its
    /// arguments start.
    fn return_call(r) {
        let callee = target(&r, r.instr().c);
        enter_instead(r, callee, slow::return_call)
    }

    /// Calls the imported function `c` in place of the active one. `a` and `b` are where its arguments start.
    fn return_call_import(r) {
        r.leave_to(slow::return_call_import)
    }

    /// Calls a function of table `c` in place of the active one, as `call_indirect` does.
    fn return_call_indirect(r) {
        match callee(&r) {
            Some(defined) => {
                let callee = target(&r, defined);
                enter_instead(r, callee, slow::return_call_indirect)
            }
            None => r.leave_to(slow::return_call_indirect),
        }
    }

    /// Gives back what entering the function has taken beyond its frame.
    fn release(r) {
        r.leave_to(slow::release)
    }

    /// Returns; results lie where the frame starts.
    fn ret(r) {
        leave(r)
    }

    /// Returns the cell `b`.
    fn ret_cell(r) {
        r.set(0, r.get(r.instr().b));
        leave(r)
    }

    /// Returns `c`, sign-extended.
    fn ret_short(r) {
        r.set(0, r.instr().c as i32 as u64);
        leave(r)
    }

    /// Ends the activation: the function that the host has called has returned.
    fn exit(_r) {
        ptr::null()
    }
}
