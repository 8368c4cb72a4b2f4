//! Traps of native code by calls: no signal, no faulting instruction.
//!
//! Trampolines call [`raise`] for errors of host functions, and code of engines without
//! [signals](crate::Config::signals_based_traps) calls it where other code would fault. It records what the signal
//! handler would, with the place of the call, and continues where the handler would make the thread continue: at the
//! trap handler of the entry trampoline. The frames in between are left as they are; those of native code have
//! nothing to clean up, and the one of the runtime in between is [`raised`], which has not either.

use std::arch::{asm, naked_asm};

use crate::lower::traps::reason_of_number;
use crate::native::crossing::activation::{self, Activation};

/// The function behind [`Shared::raise`](slotvm_runtime::native::Shared::raise) in stores that run native code.
///
/// # Safety
/// Called by native code of the innermost activation of the thread, which keeps a frame pointer, with the
/// number of a trap.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn raise(code: u32) -> ! {
    // The return address is on the stack, and the caller's frame pointer still in its register.
    naked_asm!("mov rsi, [rsp]", "mov rdx, rbp", "jmp {}", sym raised)
}

/// The function behind [`Shared::raise`](slotvm_runtime::native::Shared::raise) in stores that run native code.
///
/// # Safety
/// Called by native code of the innermost activation of the thread, which keeps a frame pointer, with the
/// number of a trap.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn raise(code: u32) -> ! {
    // The return address and the caller's frame pointer are still in their registers.
    naked_asm!("mov x1, x30", "mov x2, x29", "b {}", sym raised)
}

/// [`raise`], with the return address and the frame pointer of the code that called it.
///
/// # Safety
/// As for [`raise`].
unsafe extern "C" fn raised(code: u32, pc: usize, fp: usize) -> ! {
    let reason = reason_of_number(code);
    // SAFETY: native code runs below an activation, whose frame is on the stack of the thread.
    let activation = unsafe { &mut *activation::current() };
    // SAFETY: pc and frame pointer are those of the code that called. The trampoline stored where to
    // continue before it called that code.
    unsafe {
        activation.record_raised(reason, pc, fp);
        continue_in(activation)
    }
}

/// Goes on at the trap handler of the activation's trampoline.
///
/// # Safety
/// The trampoline is waiting in its call. No frame below it has anything to clean up.
#[cfg(target_arch = "x86_64")]
unsafe fn continue_in(activation: &Activation) -> ! {
    // SAFETY: the trampoline relies on no register but these: what it called preserves none.
    unsafe {
        asm!(
            "mov rsp, {sp}",
            "mov rbp, {fp}",
            "jmp {pc}",
            sp = in(reg) activation.handler_sp,
            fp = in(reg) activation.handler_fp,
            pc = in(reg) activation.handler_pc,
            options(noreturn),
        )
    }
}

/// Goes on at the trap handler of the activation's trampoline.
///
/// # Safety
/// The trampoline is waiting in its call. No frame below it has anything to clean up.
#[cfg(target_arch = "aarch64")]
unsafe fn continue_in(activation: &Activation) -> ! {
    // SAFETY: the trampoline relies on no register but these: what it called preserves none.
    unsafe {
        asm!(
            "mov sp, {sp}",
            "mov x29, {fp}",
            "br {pc}",
            sp = in(reg) activation.handler_sp,
            fp = in(reg) activation.handler_fp,
            pc = in(reg) activation.handler_pc,
            options(noreturn),
        )
    }
}
