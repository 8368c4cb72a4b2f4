//! Ways into code that is looked for when it is called: with the registers and the stack of the call, they ask a function of
//! ours for the address, and go on there as if nothing had been. If there is none, an error is pending, and the call ends
//! as if its caller had called [`raise`](crate::native::crossing::raise::raise).

use std::ptr;

use slotvm_runtime::native::{VmCtx, find_host_code, interpret};

use crate::native::crossing::activation;

/// Defines a way by the function that gives the address, or null. Its arguments are the context that the call passes, and,
/// of calls by a stub, the function's number and the address that the stub's head passes on
/// ([`crate::native::crossing::stubs`]), and its own frame pointer.
#[cfg(target_arch = "x86_64")]
macro_rules! enter {
    ($(#[$doc:meta])* $name:ident, $find:path) => {
        $(#[$doc])*
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name() {
            std::arch::naked_asm!(
                "push rbp",
                "mov rbp, rsp",
                "sub rsp, 176",
                "mov [rsp], rdi",
                "mov [rsp + 8], rsi",
                "mov [rsp + 16], rdx",
                "mov [rsp + 24], rcx",
                "mov [rsp + 32], r8",
                "mov [rsp + 40], r9",
                "movups [rsp + 48], xmm0",
                "movups [rsp + 64], xmm1",
                "movups [rsp + 80], xmm2",
                "movups [rsp + 96], xmm3",
                "movups [rsp + 112], xmm4",
                "movups [rsp + 128], xmm5",
                "movups [rsp + 144], xmm6",
                "movups [rsp + 160], xmm7",
                "mov rsi, r11",
                "mov rdx, r10",
                "mov rcx, rbp",
                "call {find}",
                "mov rdi, [rsp]",
                "mov rsi, [rsp + 8]",
                "mov rdx, [rsp + 16]",
                "mov rcx, [rsp + 24]",
                "mov r8, [rsp + 32]",
                "mov r9, [rsp + 40]",
                "movups xmm0, [rsp + 48]",
                "movups xmm1, [rsp + 64]",
                "movups xmm2, [rsp + 80]",
                "movups xmm3, [rsp + 96]",
                "movups xmm4, [rsp + 112]",
                "movups xmm5, [rsp + 128]",
                "movups xmm6, [rsp + 144]",
                "movups xmm7, [rsp + 160]",
                "mov rsp, rbp",
                "pop rbp",
                "test rax, rax",
                "jz 2f",
                "jmp rax",
                // As if the caller had called `raise`.
                "2:",
                "mov edi, {host_error}",
                "jmp {raise}",
                find = sym $find,
                host_error = const $crate::lower::traps::HOST_ERROR_NUMBER,
                raise = sym $crate::native::crossing::raise::raise,
            )
        }
    };
}

/// Defines a way by the function that gives the address, or null. Its arguments are the context that the call passes, and,
/// of calls by a stub, the function's number and the address that the stub's head passes on
/// ([`crate::native::crossing::stubs`]), and its own frame pointer.
#[cfg(target_arch = "aarch64")]
macro_rules! enter {
    ($(#[$doc:meta])* $name:ident, $find:path) => {
        $(#[$doc])*
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name() {
            std::arch::naked_asm!(
                "stp x29, x30, [sp, #-224]!",
                "mov x29, sp",
                "stp x0, x1, [sp, #16]",
                "stp x2, x3, [sp, #32]",
                "stp x4, x5, [sp, #48]",
                "stp x6, x7, [sp, #64]",
                "str x8, [sp, #80]",
                "stp q0, q1, [sp, #96]",
                "stp q2, q3, [sp, #128]",
                "stp q4, q5, [sp, #160]",
                "stp q6, q7, [sp, #192]",
                // Guest code has its context there: it keeps two registers for other things.
                "mov x0, x2",
                "mov x1, x16",
                "mov x2, x17",
                "mov x3, x29",
                "bl {find}",
                "mov x16, x0",
                "ldp x0, x1, [sp, #16]",
                "ldp x2, x3, [sp, #32]",
                "ldp x4, x5, [sp, #48]",
                "ldp x6, x7, [sp, #64]",
                "ldr x8, [sp, #80]",
                "ldp q0, q1, [sp, #96]",
                "ldp q2, q3, [sp, #128]",
                "ldp q4, q5, [sp, #160]",
                "ldp q6, q7, [sp, #192]",
                "ldp x29, x30, [sp], #224",
                "cbz x16, 2f",
                "br x16",
                // As if the caller had called `raise`.
                "2:",
                "mov w0, #{host_error}",
                "b {raise}",
                find = sym $find,
                host_error = const $crate::lower::traps::HOST_ERROR_NUMBER,
                raise = sym $crate::native::crossing::raise::raise,
            )
        }
    };
}

pub(crate) use enter;

enter! {
    /// The way into a host function, whose trampoline is made.
    enter_host, find_host_code
}

/// The function behind [`VmCtx::interpret`]: [`interpret`], for a trampoline with a frame pointer.
///
/// # Safety
/// Called by the trampoline of a function that is interpreted, with its frame pointer.
pub(crate) unsafe extern "C" fn enter_interpreter(
    ctx: *mut VmCtx,
    cells: *mut u64,
    fp: usize,
) -> u32 {
    // SAFETY: the frame pointer of a native function leads to that of its caller. Native code runs below an activation,
    // in which the entry trampoline has stored its own before it called: if the caller is that trampoline, the code that
    // it had entered has made a call in its own place. Context and cells are those that the trampoline passes.
    unsafe {
        let caller = ptr::with_exposed_provenance::<usize>(fp).read();
        let is_last = caller == (*activation::current()).handler_fp;
        interpret(ctx, cells, fp, is_last)
    }
}
