//! The functions of the runtime that C functions call. Those that need an instance are never called: code
//! that does verifies in no module that [`Compiler`](super::Compiler) takes.

use slotvm_runtime::native::{Libcalls, VmCtx, move_bytes, set_bytes};

use super::context::Context;

/// The status of a bulk operation that is out of bounds.
const OUT_OF_BOUNDS: u32 = 1;
/// The result of a failed growth.
const NOT_GROWN: u64 = u32::MAX as u64;

pub(super) static LIBCALLS: Libcalls = Libcalls {
    poll,
    memory_grow,
    set_bytes,
    move_bytes,
    memory_fill,
    memory_copy,
    memory_init,
    data_drop: drop_segment,
    table_grow,
    table_fill,
    table_copy: table_init,
    table_init,
    elem_drop: drop_segment,
};

/// The first byte of a range of the memory of a context, if it lies inside.
///
/// # Safety
/// The pointer is to the first field of a [`Context`] whose function is running.
unsafe fn range(ctx: *mut VmCtx, start: u32, len: u32) -> Option<*mut u8> {
    // SAFETY: the functions of this file pass the context of the native code that calls them, which is the first
    // field of what its entry got from the embedder.
    let memory = unsafe { &(*ctx.cast::<Context>()).memory };
    let is_inside = u64::from(start) + u64::from(len) <= memory.bytes;
    is_inside.then(|| memory.base.wrapping_add(start as usize))
}

unsafe extern "C" fn memory_fill(ctx: *mut VmCtx, dst: u32, byte: u32, len: u32) -> u32 {
    // SAFETY: native code passes its context.
    let Some(dst) = (unsafe { range(ctx, dst, len) }) else { return OUT_OF_BOUNDS };
    if len > 0 {
        // SAFETY: `range` has found it inside the memory, and that this may be written is what the embedder
        // promised `Context::set_memory`.
        unsafe { dst.write_bytes(byte as u8, len as usize) };
    }
    0
}

unsafe extern "C" fn memory_copy(ctx: *mut VmCtx, dst: u32, src: u32, len: u32) -> u32 {
    // SAFETY: native code passes its context.
    let (dst, src) = unsafe { (range(ctx, dst, len), range(ctx, src, len)) };
    let (Some(dst), Some(src)) = (dst, src) else { return OUT_OF_BOUNDS };
    if len > 0 {
        // SAFETY: `range` has found both inside the memory, and that this may be read and written is what the
        // embedder promised `Context::set_memory`.
        unsafe { dst.copy_from(src, len as usize) };
    }
    0
}

/// The memory belongs to the embedder; only the embedder can enlarge it.
unsafe extern "C" fn memory_grow(_: *mut VmCtx, _: u32) -> u64 {
    NOT_GROWN
}

unsafe extern "C" fn poll(_: *mut VmCtx, _: usize) -> u32 {
    0
}

unsafe extern "C" fn memory_init(_: *mut VmCtx, _: u32, _: u32, _: u32, _: u32) -> u32 {
    OUT_OF_BOUNDS
}

unsafe extern "C" fn drop_segment(_: *mut VmCtx, _: u32) {}

unsafe extern "C" fn table_grow(_: *mut VmCtx, _: u32, _: u64, _: u32) -> u64 {
    NOT_GROWN
}

unsafe extern "C" fn table_fill(_: *mut VmCtx, _: u32, _: u32, _: u64, _: u32) -> u32 {
    OUT_OF_BOUNDS
}

unsafe extern "C" fn table_init(_: *mut VmCtx, _: u64, _: u32, _: u32, _: u32) -> u32 {
    OUT_OF_BOUNDS
}
