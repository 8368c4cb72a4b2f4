//! The functions of the runtime that native code calls. They do what the interpreter does, by the same
//! code, see [`crate::bulk`].

use std::panic::{AssertUnwindSafe, catch_unwind};

use slotvm_bytecode::TrapCode;

use crate::context::{HostCtx, Libcalls, Shared, VmCtx};
use crate::error::Error;
use crate::instance::InstanceId;
use crate::store::{FuncHandle, Store};

/// The table that [`crate::context::Shared::libcalls`] points to.
pub(crate) static LIBCALLS: Libcalls = Libcalls {
    host_call,
    memory_grow,
    memory_fill,
    memory_copy,
    memory_init,
    data_drop,
    table_grow,
    table_fill,
    table_copy,
    table_init,
    elem_drop,
};

/// The store that native code runs in.
///
/// # Safety
/// Native code that [`Store::enter_native`] has announced is running, and no other reference to the
/// store is in use: those of its callers rest until it has returned.
unsafe fn store<'a>(shared: *mut Shared) -> &'a mut Store {
    // SAFETY: `enter_native` has stored the address, and the caller promises the rest.
    unsafe { &mut *(*shared).store.cast::<Store>() }
}

/// The store and the instance that a context belongs to.
///
/// # Safety
/// As for [`store`]; the context is that of an instance.
unsafe fn parts<'a>(ctx: *mut VmCtx) -> (&'a mut Store, InstanceId) {
    // SAFETY: native code passes the context that it was called with.
    unsafe { (store((*ctx).shared), InstanceId::from_number((*ctx).instance)) }
}

fn status(result: Result<(), TrapCode>) -> u32 {
    u32::from(result.is_err())
}

unsafe extern "C" fn host_call(ctx: *mut HostCtx, cells: *mut u64) -> u32 {
    // SAFETY: native code passes the context of the host function's record.
    let (store, handle) = unsafe { (store((*ctx).shared), (*ctx).handle) };
    let func = FuncHandle::from_cell(handle).expect("records have handles");
    let ty = store.func_type(func);
    let n_cells = ty.params.len().max(ty.results.len());
    // SAFETY: the trampoline of the function's type passes as many cells as it needs. With none the
    // pointer may be anything.
    let cells = match n_cells {
        0 => &mut [],
        _ => unsafe { std::slice::from_raw_parts_mut(cells, n_cells) },
    };
    let id = store.id();
    // A panic must not unwind through native frames; it goes on behind them. The store stays usable
    // after a panic of the host, as all that a host function can do to it is complete in itself.
    let result = catch_unwind(AssertUnwindSafe(|| store.call_host(func, cells)));
    store.check_identity(id);
    let failure: std::thread::Result<Error> = match result {
        Ok(Ok(())) => return 0,
        Ok(Err(error)) => Ok(error),
        Err(panic) => Err(panic),
    };
    store.set_pending(failure);
    1
}

unsafe extern "C" fn memory_grow(ctx: *mut VmCtx, pages: u32) -> u32 {
    // SAFETY: called by native code with its context.
    let (store, instance) = unsafe { parts(ctx) };
    store.memory_of(instance).grow(pages).unwrap_or(u32::MAX)
}

unsafe extern "C" fn memory_fill(ctx: *mut VmCtx, dst: u32, byte: u32, len: u32) -> u32 {
    // SAFETY: called by native code with its context.
    let (store, instance) = unsafe { parts(ctx) };
    status(store.memory_of(instance).fill(dst, byte as u8, len))
}

unsafe extern "C" fn memory_copy(ctx: *mut VmCtx, dst: u32, src: u32, len: u32) -> u32 {
    // SAFETY: called by native code with its context.
    let (store, instance) = unsafe { parts(ctx) };
    status(store.memory_of(instance).copy_within(dst, src, len))
}

unsafe extern "C" fn memory_init(
    ctx: *mut VmCtx,
    segment: u32,
    dst: u32,
    src: u32,
    len: u32,
) -> u32 {
    // SAFETY: called by native code with its context.
    let (store, instance) = unsafe { parts(ctx) };
    status(store.memory_init(instance, segment, [dst, src, len]))
}

unsafe extern "C" fn data_drop(ctx: *mut VmCtx, segment: u32) {
    // SAFETY: called by native code with its context.
    let (store, instance) = unsafe { parts(ctx) };
    store.data_drop(instance, segment);
}

unsafe extern "C" fn table_grow(ctx: *mut VmCtx, table: u32, value: u64, n: u32) -> u32 {
    // SAFETY: called by native code with its context.
    let (store, instance) = unsafe { parts(ctx) };
    store.table_grow_of(instance, table, value, n)
}

unsafe extern "C" fn table_fill(
    ctx: *mut VmCtx,
    table: u32,
    dst: u32,
    value: u64,
    len: u32,
) -> u32 {
    // SAFETY: called by native code with its context.
    let (store, instance) = unsafe { parts(ctx) };
    status(store.table_fill(instance, table, dst, value, len))
}

unsafe extern "C" fn table_copy(ctx: *mut VmCtx, tables: u64, dst: u32, src: u32, len: u32) -> u32 {
    // SAFETY: called by native code with its context.
    let (store, instance) = unsafe { parts(ctx) };
    let (dst_table, src_table) = (tables as u32, (tables >> 32) as u32);
    status(store.table_copy(instance, dst_table, src_table, [dst, src, len]))
}

unsafe extern "C" fn table_init(
    ctx: *mut VmCtx,
    segment_table: u64,
    dst: u32,
    src: u32,
    len: u32,
) -> u32 {
    // SAFETY: called by native code with its context.
    let (store, instance) = unsafe { parts(ctx) };
    let (segment, table) = (segment_table as u32, (segment_table >> 32) as u32);
    status(store.table_init(instance, segment, table, [dst, src, len]))
}

unsafe extern "C" fn elem_drop(ctx: *mut VmCtx, segment: u32) {
    // SAFETY: called by native code with its context.
    let (store, instance) = unsafe { parts(ctx) };
    store.elem_drop(instance, segment);
}
