//! The table of the functions that native code calls.
//!
//! Bulk operations ask the host between two pieces, which may call guest code, and that the host again; backtraces then list
//! the frames below. So each of them notes in [`Shared`](crate::context::Shared) where it was called, and goes on in the
//! function of [`super::libcalls`] with its name. Registers and stack stay as the call has left them: that function returns to
//! native code.

use super::libcalls;
use crate::context::{Libcalls, VmCtx};

/// The table that [`crate::context::Shared::libcalls`] points to.
pub(crate) static LIBCALLS: Libcalls = Libcalls {
    poll: libcalls::poll,
    memory_grow: libcalls::memory_grow,
    set_bytes: libcalls::set_bytes,
    move_bytes: libcalls::move_bytes,
    memory_fill,
    memory_copy,
    memory_init,
    data_drop: libcalls::data_drop,
    table_grow: libcalls::table_grow,
    table_fill,
    table_copy,
    table_init,
    elem_drop: libcalls::elem_drop,
};

/// Defines these functions. They change no register but those that any function may change and that pass no argument.
macro_rules! noted {
    ($($name:ident($($ty:ty),*);)*) => { $(
        /// See the module documentation.
        ///
        /// # Safety
        /// Called by native code that keeps a frame pointer, with its context.
        #[cfg(target_arch = "x86_64")]
        #[unsafe(naked)]
        pub(super) unsafe extern "C" fn $name(_: *mut VmCtx, $(_: $ty),*) -> u32 {
            core::arch::naked_asm!(
                "mov r10, [rdi + {shared}]",
                "mov rax, [rsp]",
                "mov [r10 + {pc}], rax",
                "mov [r10 + {fp}], rbp",
                "jmp {function}",
                shared = const crate::context::offsets::VMCTX_SHARED,
                pc = const crate::context::offsets::SHARED_CALL_PC,
                fp = const crate::context::offsets::SHARED_CALL_FP,
                function = sym libcalls::$name,
            )
        }

        /// See the module documentation.
        ///
        /// # Safety
        /// Called by native code that keeps a frame pointer, with its context.
        #[cfg(target_arch = "aarch64")]
        #[unsafe(naked)]
        pub(super) unsafe extern "C" fn $name(_: *mut VmCtx, $(_: $ty),*) -> u32 {
            core::arch::naked_asm!(
                "ldr x16, [x0, #{shared}]",
                "str x30, [x16, #{pc}]",
                "str x29, [x16, #{fp}]",
                "b {function}",
                shared = const crate::context::offsets::VMCTX_SHARED,
                pc = const crate::context::offsets::SHARED_CALL_PC,
                fp = const crate::context::offsets::SHARED_CALL_FP,
                function = sym libcalls::$name,
            )
        }

        // There is no native code for other machines.
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        pub(super) use libcalls::$name;
    )* };
}

noted! {
    memory_fill(u32, u32, u32);
    memory_copy(u32, u32, u32);
    memory_init(u32, u32, u32, u32);
    table_fill(u32, u32, u64, u32);
    table_copy(u64, u32, u32, u32);
    table_init(u64, u32, u32, u32);
}
