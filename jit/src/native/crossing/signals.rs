//! Hardware traps of native code, as signals.
//!
//! Native code signals a trap by an instruction that faults: an access to a guard page, an undefined
//! instruction, a division that the processor refuses. The handler takes a signal for a trap only if
//! all of this holds:
//!
//! 1. The system made it because of the instruction that the thread is at; no process sent it.
//! 2. The thread is inside an [`Activation`], and the instruction stands in the trap table of our code.
//! 3. The signal is one by which the instruction can trap for the reason that the table gives.
//! 4. If an access faulted, the address lies beyond the end of a memory of the store that is running,
//!    and in the address space of this memory. (For an address that the processor cannot even
//!    translate, which guest code cannot form, x86-64 gives address 0: it lies in no memory.)
//!
//! Then it records where the trap happened and makes the thread continue at the trap handler of the
//! entry trampoline. Everything else goes to whoever handled the signal before: faults of the host, of
//! pages that the host has protected, and faults by which native code would turn out to be wrong.
//! Without such a handler the process dies by the signal.
//!
//! The handlers are installed once for the process, when code is first placed. They run on the
//! thread's signal stack if it has one, take no locks and allocate nothing.

use std::mem;
use std::ptr;
use std::sync::Once;

use slotvm_bytecode::TrapCode;

use crate::code::pctable::TrapReason;
use crate::code::registry;
use crate::native::crossing::activation::{self, Activation};

const SIGNALS: [libc::c_int; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE];

/// The previous handlers of [`SIGNALS`]. Written once, before our handler is in place.
// SAFETY: all bits zero is the default action.
static mut PREVIOUS: [libc::sigaction; 4] = unsafe { mem::zeroed() };

/// Installs the handlers, once.
///
/// # Panics
/// Panics if the system refuses to install a signal handler.
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
    let ours = unsafe { handle_trap(signal, &*info, context.cast()) };
    if !ours {
        // SAFETY: the arguments are those of the signal.
        unsafe { forward(signal, info, context) }
    }
}

/// Makes a thread that trapped in native code continue in its entry trampoline. Returns whether it did.
///
/// # Safety
/// `context` is the machine context of the thread that the signal has interrupted.
unsafe fn handle_trap(
    signal: libc::c_int,
    info: &libc::siginfo_t,
    context: *mut libc::ucontext_t,
) -> bool {
    if was_sent(info) {
        return false;
    }
    // SAFETY: the thread's innermost activation is on its stack while it is not null.
    let Some(activation) = (unsafe { activation::current().as_mut() }) else { return false };
    // SAFETY: `handler` passes the machine context that the system gave it.
    let (pc, fp) = unsafe { arch::pc_and_fp(context) };
    // SAFETY: the thread executes the code at `pc`.
    let table = unsafe { registry::read().lookup(pc) };
    let Some(site) = table.and_then(|table| table.trap_at(pc)) else { return false };
    let is_trap = match signal {
        // SAFETY: the thread executes the code at `pc`.
        libc::SIGILL => unsafe { arch::is_trap_instruction(pc) },
        libc::SIGFPE => is_by_division(site.reason),
        // SAFETY: the system fills in the address for these signals; the code that runs is that of the
        // activation's store.
        libc::SIGSEGV | libc::SIGBUS => unsafe {
            is_by_access(site.reason)
                && (*activation.shared()).is_behind_a_memory(info.si_addr().addr())
        },
        _ => false,
    };
    if !is_trap {
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

/// Whether a signal was sent by a process, a timer or the like, and not made for an instruction.
fn was_sent(info: &libc::siginfo_t) -> bool {
    info.si_code <= 0
}

/// Whether a division can trap for this reason by itself.
fn is_by_division(reason: TrapReason) -> bool {
    use TrapCode::{IntegerDivisionByZero, IntegerOverflow};
    matches!(reason, TrapReason::Guest(IntegerDivisionByZero | IntegerOverflow))
}

/// Whether a load or store can trap for this reason by itself.
fn is_by_access(reason: TrapReason) -> bool {
    reason == TrapReason::Guest(TrapCode::MemoryOutOfBounds)
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
        // SAFETY: `handler` passes the information that the system gave it.
        let was_sent = was_sent(unsafe { &*info });
        if was_sent && address == libc::SIG_IGN {
            return;
        }
        // The instruction is executed again when the handler returns, and faults again, which kills the
        // process: nothing ignores a fault. A signal that a process sent is sent once more.
        // SAFETY: all bits zero is the default action; raising a signal has no preconditions.
        unsafe {
            libc::sigaction(signal, &mem::zeroed(), ptr::null_mut());
            if was_sent {
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
    use super::{Activation, ptr};

    /// Whether the instruction is `ud2`, which is used to trap.
    ///
    /// # Safety
    /// The thread is executing the instruction, and it is of our code.
    pub(super) unsafe fn is_trap_instruction(pc: usize) -> bool {
        // SAFETY: no instruction of a trap table is shorter than two bytes, and code can be read.
        unsafe { ptr::with_exposed_provenance::<[u8; 2]>(pc).read() == [0x0f, 0x0b] }
    }

    /// # Safety
    /// `context` is a machine context.
    pub(super) unsafe fn pc_and_fp(context: *const libc::ucontext_t) -> (usize, usize) {
        // SAFETY: `handle_trap` passes the machine context of the interrupted thread, which the signal frame holds.
        let registers = unsafe { &(*context).uc_mcontext.gregs };
        (registers[libc::REG_RIP as usize] as usize, registers[libc::REG_RBP as usize] as usize)
    }

    /// # Safety
    /// `context` is a machine context; the activation's trampoline is waiting in its call.
    pub(super) unsafe fn continue_in(context: *mut libc::ucontext_t, activation: &Activation) {
        // SAFETY: `handle_trap` passes the machine context of the interrupted thread, which the signal frame holds
        // and the system takes up when the handler returns.
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
    use super::{Activation, ptr};

    /// Whether the instruction is a `udf`, which is there to trap.
    ///
    /// # Safety
    /// The thread is executing the instruction, and it is of our code.
    pub(super) unsafe fn is_trap_instruction(pc: usize) -> bool {
        // SAFETY: instructions are aligned words, and code can be read.
        let instruction = unsafe { ptr::with_exposed_provenance::<u32>(pc).read() };
        // The lower half is an immediate.
        instruction >> 16 == 0
    }

    /// # Safety
    /// `context` is a machine context.
    pub(super) unsafe fn pc_and_fp(context: *const libc::ucontext_t) -> (usize, usize) {
        // SAFETY: `handle_trap` passes the machine context of the interrupted thread, which the signal frame holds.
        let registers = unsafe { &(*context).uc_mcontext };
        (registers.pc as usize, registers.regs[29] as usize)
    }

    /// # Safety
    /// `context` is a machine context; the activation's trampoline is waiting in its call.
    pub(super) unsafe fn continue_in(context: *mut libc::ucontext_t, activation: &Activation) {
        // SAFETY: `handle_trap` passes the machine context of the interrupted thread, which the signal frame holds
        // and the system takes up when the handler returns.
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
