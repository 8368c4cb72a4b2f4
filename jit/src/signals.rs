//! Hardware traps of native code, as signals.
//!
//! Native code signals a trap by an instruction that faults: an access to a guard page, an undefined
//! instruction, a division that the processor refuses. The handler acts only if the thread is inside
//! an [`Activation`] and the faulting instruction stands in the trap table of our code. Then it records
//! where the trap happened and makes the thread continue at the trap handler of the entry trampoline.
//! Everything else goes to whoever handled the signal before.
//!
//! The handlers are installed once for the process, when code is first placed. They run on the
//! thread's signal stack if it has one, take no locks and allocate nothing.

use std::mem;
use std::ptr;
use std::sync::Once;

use crate::activation::{self, Activation};
use crate::registry;

const SIGNALS: [libc::c_int; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE];

/// What handled each of [`SIGNALS`] before. Written once, before our handler is in place.
// SAFETY: all bits zero is the default action.
static mut PREVIOUS: [libc::sigaction; 4] = unsafe { mem::zeroed() };

/// Installs the handlers, once.
///
/// # Panics
/// If the system refuses to install a signal handler.
pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        for (i, signal) in SIGNALS.into_iter().enumerate() {
            // SAFETY: `PREVIOUS` is written here only, by one thread, and read by the handler only.
            // The handler has the signature that SA_SIGINFO demands. SA_NODEFER lets a fault in the
            // handler itself reach the previous handlers instead of blocking.
            unsafe {
                let previous = &raw mut PREVIOUS[i];
                // Another thread may fault as soon as the handler is there, so read the old one first.
                let mut failed = libc::sigaction(signal, ptr::null(), previous) != 0;
                let mut action: libc::sigaction = mem::zeroed();
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
                action.sa_sigaction = handler as *const () as usize;
                libc::sigemptyset(&mut action.sa_mask);
                failed |= libc::sigaction(signal, &action, ptr::null_mut()) != 0;
                assert!(
                    !failed,
                    "cannot handle signal {signal}: {}",
                    std::io::Error::last_os_error()
                );
            }
        }
    });
}

/// The handler of all four signals.
extern "C" fn handler(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the system calls the handler with a machine context; the thread is interrupted at its
    // pc, so code that the pc lies in is alive, and so is its innermost activation.
    let ours = unsafe { handle_trap(context.cast()) };
    if !ours {
        // SAFETY: the arguments are those of the signal.
        unsafe { forward(signal, info, context) }
    }
}

/// Makes a thread that trapped in native code continue in its entry trampoline. Returns whether it did.
///
/// # Safety
/// `context` is the machine context of the interrupted thread.
unsafe fn handle_trap(context: *mut libc::ucontext_t) -> bool {
    // SAFETY: the thread's innermost activation is on its stack while it is not null.
    let Some(activation) = (unsafe { activation::current().as_mut() }) else { return false };
    // SAFETY: the caller's promise.
    let (pc, fp) = unsafe { arch::pc_and_fp(context) };
    // SAFETY: the thread executes the code at `pc`.
    let Some(table) = (unsafe { registry::read().lookup(pc) }) else { return false };
    if table.trap_at(pc).is_none() {
        return false;
    }
    // SAFETY: the trampoline stored where to continue before it called the code that trapped, whose
    // frames are still there.
    unsafe {
        activation.record_trap(pc, fp);
        arch::continue_in(context, activation);
    }
    true
}

/// Passes a signal on to what handled it before.
///
/// # Safety
/// The arguments are those of a signal that is being handled.
unsafe fn forward(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let index = SIGNALS.iter().position(|&s| s == signal);
    // SAFETY: written before the handler was installed, and not since.
    let Some(previous) = index.map(|i| unsafe { PREVIOUS[i] }) else { return };
    let address = previous.sa_sigaction;
    if address == libc::SIG_DFL || address == libc::SIG_IGN {
        // The instruction is executed again when the handler returns, and faults again. A signal that
        // somebody sent is sent once more.
        // SAFETY: reinstalling an action that was valid; raising a signal has no preconditions.
        unsafe {
            libc::sigaction(signal, &previous, ptr::null_mut());
            if (*info).si_code <= 0 {
                libc::raise(signal);
            }
        }
    } else if previous.sa_flags & libc::SA_SIGINFO != 0 {
        type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
        // SAFETY: a handler installed with SA_SIGINFO has this signature.
        let handler = unsafe { mem::transmute::<usize, Handler>(address) };
        handler(signal, info, context);
    } else {
        // SAFETY: a handler installed without SA_SIGINFO has this signature.
        let handler = unsafe { mem::transmute::<usize, extern "C" fn(libc::c_int)>(address) };
        handler(signal);
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod arch {
    use super::Activation;

    /// # Safety
    /// `context` is a machine context.
    pub(super) unsafe fn pc_and_fp(context: *const libc::ucontext_t) -> (usize, usize) {
        // SAFETY: the caller's promise.
        let registers = unsafe { &(*context).uc_mcontext.gregs };
        (registers[libc::REG_RIP as usize] as usize, registers[libc::REG_RBP as usize] as usize)
    }

    /// # Safety
    /// `context` is a machine context; the activation's trampoline is waiting in its call.
    pub(super) unsafe fn continue_in(context: *mut libc::ucontext_t, activation: &Activation) {
        // SAFETY: the caller's promise.
        let registers = unsafe { &mut (*context).uc_mcontext.gregs };
        registers[libc::REG_RIP as usize] = activation.handler_pc as i64;
        registers[libc::REG_RSP as usize] = activation.handler_sp as i64;
        registers[libc::REG_RBP as usize] = activation.handler_fp as i64;
        // The payload of an exception, which our trampolines do not look at.
        registers[libc::REG_RAX as usize] = 0;
        registers[libc::REG_RDX as usize] = 0;
    }
}

#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
mod arch {
    use super::Activation;

    /// # Safety
    /// `context` is a machine context.
    pub(super) unsafe fn pc_and_fp(context: *const libc::ucontext_t) -> (usize, usize) {
        // SAFETY: the caller's promise.
        let registers = unsafe { &(*context).uc_mcontext };
        (registers.pc as usize, registers.regs[29] as usize)
    }

    /// # Safety
    /// `context` is a machine context; the activation's trampoline is waiting in its call.
    pub(super) unsafe fn continue_in(context: *mut libc::ucontext_t, activation: &Activation) {
        // SAFETY: the caller's promise.
        let registers = unsafe { &mut (*context).uc_mcontext };
        registers.pc = activation.handler_pc as u64;
        registers.sp = activation.handler_sp as u64;
        registers.regs[29] = activation.handler_fp as u64;
        // The payload of an exception, which our trampolines do not look at.
        registers.regs[0] = 0;
        registers.regs[1] = 0;
    }
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
compile_error!(
    "native code runs on Linux on x86-64 and aarch64; without the feature `jit` the engine interprets"
);
