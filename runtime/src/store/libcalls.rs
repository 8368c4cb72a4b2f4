//! The functions of the runtime that native code calls. They do what the interpreter does, by the same
//! code, see [`crate::store::bulk`].

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Store;
use super::called_from::{CalledFrom, NativePlace};
use crate::context::VmCtx;
use crate::entities::InstanceId;
use crate::error::{Error, Stop};

/// The store and the instance that a context belongs to.
///
/// # Safety
/// As for [`Store::running`]; the context is that of an instance.
unsafe fn parts<'a>(ctx: *mut VmCtx) -> (&'a mut Store, InstanceId) {
    // SAFETY: the context is one of `Store::instantiate`, which native code passes on as it got it, so it lives
    // as long as the store and leads to what that shares.
    unsafe { (Store::running((*ctx).shared), InstanceId::from_number((*ctx).instance)) }
}

/// Returns the status of a bulk operation that [`super::noted`] has called.
fn bulk_status(store: &mut Store, work: impl FnOnce(&mut Store) -> Result<(), Stop>) -> u32 {
    // SAFETY: the store owns the structure, and native code waits for the operation.
    let (pc, fp) = unsafe {
        let shared = store.shared_ptr();
        ((*shared).call_pc, (*shared).call_fp)
    };
    store.calls.from = CalledFrom::Native(NativePlace::Call { pc, fp });
    status(store, work)
}

/// Returns the status of what has asked the host's callback, which decides at polls. It may fail or panic, as a host function
/// may.
fn status(store: &mut Store, work: impl FnOnce(&mut Store) -> Result<(), Stop>) -> u32 {
    let failure = match catch_unwind(AssertUnwindSafe(|| work(store))) {
        Ok(Ok(())) => return 0,
        Ok(Err(Stop::Trap(_))) => return 1,
        Ok(Err(Stop::Error(error))) => Ok(error),
        Err(panic) => Err(panic),
    };
    store.set_pending(failure);
    2
}

/// Leaves an error, or a panic, for the host, which is about to be given back control. For what native code
/// calls besides the runtime.
///
/// # Safety
/// Called by native code that runs in this context, which then returns to the host without doing anything
/// else.
pub unsafe fn leave_pending(ctx: *mut VmCtx, failure: std::thread::Result<Error>) {
    // SAFETY: native code that runs in the context is what calls, as this function demands.
    let (store, _) = unsafe { parts(ctx) };
    store.set_pending(failure);
}

/// Whether a call that waits for the code of function `func` is interrupted. If so, the error is pending, as
/// [`leave_pending`] would leave it, at the start of the function. Each wait has a `seen` of its own, `None` at
/// first.
///
/// # Safety
/// Called by native code that runs in a store, with the context of the function that it is about to enter and the frame
/// pointer of the code that waits, which the caller has called. If the call is interrupted, native code returns to the host
/// without doing anything else.
pub unsafe fn interrupts_wait(
    ctx: *mut VmCtx,
    func: u32,
    fp: usize,
    seen: &mut Option<u64>,
) -> bool {
    // SAFETY: native code is about to enter the function, with its context, as this function demands.
    let (store, instance) = unsafe { parts(ctx) };
    store.calls.from = CalledFrom::Native(NativePlace::CallerOf(fp));
    let failure = match catch_unwind(AssertUnwindSafe(|| store.check_wait(seen))) {
        Ok(Ok(())) => return false,
        Ok(Err(mut error)) => {
            error.add_frames([store.frame(instance, func, 0)], 0);
            Ok(error)
        }
        Err(panic) => Err(panic),
    };
    store.set_pending(failure);
    true
}

pub(super) unsafe extern "C" fn poll(ctx: *mut VmCtx, fp: usize) -> u32 {
    // SAFETY: `LIBCALLS` alone leads here, and native code calls what is there with its context.
    let (store, _) = unsafe { parts(ctx) };
    store.calls.from = CalledFrom::Native(NativePlace::CallerOf(fp));
    u32::from(status(store, |store| Ok(store.poll()?)) != 0)
}

/// The result of growing if the limiter has left an error.
const LIMITER_FAILED: u64 = 1 << 32;

/// Grows something. The limiter, which is the embedder's, may fail or panic, as a host function may.
fn grown(store: &mut Store, grow: impl FnOnce(&mut Store) -> Result<u32, Error>) -> u64 {
    let failure = match catch_unwind(AssertUnwindSafe(|| grow(store))) {
        Ok(Ok(old)) => return old.into(),
        Ok(Err(error)) => Ok(error),
        Err(panic) => Err(panic),
    };
    store.set_pending(failure);
    LIMITER_FAILED
}

pub(super) unsafe extern "C" fn memory_grow(ctx: *mut VmCtx, pages: u32) -> u64 {
    // SAFETY: `LIBCALLS` alone leads here, and native code calls what is there with its context.
    let (store, instance) = unsafe { parts(ctx) };
    grown(store, |store| store.memory_grow_of(instance, pages))
}

/// The entry of [`Libcalls`](crate::context::Libcalls) of this name.
///
/// # Safety
/// The bytes may be written.
pub unsafe extern "C" fn set_bytes(dst: *mut u8, byte: u32, len: usize) {
    // SAFETY: the caller says so.
    unsafe { dst.write_bytes(byte as u8, len) };
}

/// The entry of [`Libcalls`](crate::context::Libcalls) of this name.
///
/// # Safety
/// The bytes at `src` may be read, those at `dst` written.
pub unsafe extern "C" fn move_bytes(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the caller says so.
    unsafe { dst.copy_from(src, len) };
}

pub(super) unsafe extern "C" fn memory_fill(ctx: *mut VmCtx, dst: u32, byte: u32, len: u32) -> u32 {
    // SAFETY: `LIBCALLS` alone leads here, and native code calls what is there with its context.
    let (store, instance) = unsafe { parts(ctx) };
    bulk_status(store, |store| store.guest_memory_fill(instance, [dst, byte, len]))
}

pub(super) unsafe extern "C" fn memory_copy(ctx: *mut VmCtx, dst: u32, src: u32, len: u32) -> u32 {
    // SAFETY: `LIBCALLS` alone leads here, and native code calls what is there with its context.
    let (store, instance) = unsafe { parts(ctx) };
    bulk_status(store, |store| store.guest_memory_copy(instance, [dst, src, len]))
}

pub(super) unsafe extern "C" fn memory_init(
    ctx: *mut VmCtx,
    segment: u32,
    dst: u32,
    src: u32,
    len: u32,
) -> u32 {
    // SAFETY: `LIBCALLS` alone leads here, and native code calls what is there with its context.
    let (store, instance) = unsafe { parts(ctx) };
    bulk_status(store, |store| store.guest_memory_init(instance, segment, [dst, src, len]))
}

pub(super) unsafe extern "C" fn data_drop(ctx: *mut VmCtx, segment: u32) {
    // SAFETY: `LIBCALLS` alone leads here, and native code calls what is there with its context.
    let (store, instance) = unsafe { parts(ctx) };
    store.data_drop(instance, segment);
}

pub(super) unsafe extern "C" fn table_grow(ctx: *mut VmCtx, table: u32, value: u64, n: u32) -> u64 {
    // SAFETY: `LIBCALLS` alone leads here, and native code calls what is there with its context.
    let (store, instance) = unsafe { parts(ctx) };
    grown(store, |store| store.guest_table_grow(instance, table, value, n))
}

pub(super) unsafe extern "C" fn table_fill(
    ctx: *mut VmCtx,
    table: u32,
    dst: u32,
    value: u64,
    len: u32,
) -> u32 {
    // SAFETY: `LIBCALLS` alone leads here, and native code calls what is there with its context.
    let (store, instance) = unsafe { parts(ctx) };
    bulk_status(store, |store| store.guest_table_fill(instance, table, value, [dst, len]))
}

pub(super) unsafe extern "C" fn table_copy(
    ctx: *mut VmCtx,
    tables: u64,
    dst: u32,
    src: u32,
    len: u32,
) -> u32 {
    // SAFETY: `LIBCALLS` alone leads here, and native code calls what is there with its context.
    let (store, instance) = unsafe { parts(ctx) };
    let tables = [tables as u32, (tables >> 32) as u32];
    bulk_status(store, |store| store.guest_table_copy(instance, tables, [dst, src, len]))
}

pub(super) unsafe extern "C" fn table_init(
    ctx: *mut VmCtx,
    segment_table: u64,
    dst: u32,
    src: u32,
    len: u32,
) -> u32 {
    // SAFETY: `LIBCALLS` alone leads here, and native code calls what is there with its context.
    let (store, instance) = unsafe { parts(ctx) };
    let (segment, table) = (segment_table as u32, (segment_table >> 32) as u32);
    bulk_status(store, |store| store.guest_table_init(instance, segment, table, [dst, src, len]))
}

pub(super) unsafe extern "C" fn elem_drop(ctx: *mut VmCtx, segment: u32) {
    // SAFETY: `LIBCALLS` alone leads here, and native code calls what is there with its context.
    let (store, instance) = unsafe { parts(ctx) };
    store.elem_drop(instance, segment);
}

#[cfg(test)]
mod tests {
    use std::ptr;
    use std::sync::Arc;
    use std::sync::atomic::AtomicPtr;

    use slotvm_bytecode::{FuncType, ValType, text, verify};

    use super::*;
    use crate::context::{HostCtx, Libcalls};
    use crate::native::{NativeCallee, NativeCode, NativeHooks, Natives, OnCall};
    use crate::{Extern, FuncHandle, HostFn, InterpreterCode, StoreConfig};

    const SOURCE: &str = "
        import \"env\" \"host\" func host(i64) -> i64
        memory 0 1 2
        table t funcref 3 5
        table u funcref 3
        data d \"abcdef\"
        elem e funcref [ref.func f], [ref.func f], [ref.null funcref]
        func f(a: i64) -> i64 { local.get a return }";

    /// A stand-in for native code, with the same rights.
    type Script = fn(*mut VmCtx, &Libcalls) -> u64;

    /// Lets a script run in the place of native code; the result is that of `f`.
    fn run(store: &mut Store, script: Script) -> Result<u64, Error> {
        let f = store.instance_func(InstanceId::from_number(0), 1);
        let mut cells = [script as usize as u64];
        store.call(f, &mut cells)?;
        Ok(cells[0])
    }

    /// An executor that runs the script whose address is the parameter.
    ///
    /// # Safety
    /// The parameter is the address of a script.
    unsafe fn execute(
        store: &mut Store,
        callee: &NativeCallee,
        cells: &mut [u64],
    ) -> Result<(), Error> {
        let ctx = callee.ctx;
        store.enter_native();
        // SAFETY: only `run` calls the function, with the address of a script. The context and what it
        // points to live as long as the store, which is not used until the script is done.
        unsafe {
            let script = std::mem::transmute::<usize, Script>(cells[0] as usize);
            cells[0] = script(ctx, &*(*(*ctx).shared).libcalls);
        }
        store.take_pending().map_or(Ok(()), Err)
    }

    fn store() -> Store {
        let hooks = NativeHooks {
            executor: execute,
            tiers: None,
            host_trampoline: Arc::new(|_| {
                Ok(NativeCode { address: std::ptr::null(), owner: Arc::new(()) })
            }),
            raise,
            walk: |_, _| unreachable!("no test asks for a backtrace"),
            roots: |_, _| unreachable!("no test has references"),
            poll: None,
        };
        // SAFETY: `run` gives the executor what it needs; no other code is run.
        let mut store = unsafe { Store::new_native(StoreConfig::default(), Box::new(0u64), hooks) };
        let ty = FuncType::new([ValType::I64], [ValType::I64]);
        let host = store.new_host_func(
            ty,
            HostFn::new(|call| {
                match call.cells[0] {
                    1 => return Err(Error::host("failed")),
                    2 => panic!("by the host"),
                    3 => {
                        // Native code again, below the one that called.
                        let inner: Script = |ctx, _| call_host(ctx, 40).1;
                        call.cells[0] = run(call.store, inner)? + 1;
                    }
                    n => call.cells[0] = n + 1,
                }
                Ok(())
            }),
        );
        let module = Arc::new(verify(text::parse(SOURCE).unwrap()).unwrap());
        // Of all functions of the module, none of which is called.
        static ENTRIES: [AtomicPtr<u8>; 3] = [const { AtomicPtr::new(ptr::dangling_mut()) }; 3];
        assert!(module.n_funcs() as usize <= ENTRIES.len());
        let natives = Natives {
            entries: ENTRIES.as_ptr(),
            on_call: OnCall::NONE,
            memory_span_bytes: 0,
            image: None,
            tiers: None,
        };
        let imports = [Extern::Func(host.unwrap())];
        // SAFETY: the executor runs scripts, and nothing reads the code.
        unsafe {
            let code = &InterpreterCode::default();
            store.instantiate_native(module, &imports, natives, code, || Ok(natives)).unwrap()
        };
        store
    }

    unsafe extern "C" fn raise(_: u32) -> ! {
        unreachable!("scripts do not trap")
    }

    /// Calls the imported host function as native code does: status and result.
    fn call_host(ctx: *mut VmCtx, n: u64) -> (u32, u64) {
        let mut cells = [n];
        // SAFETY: scripts get the context of an instance and the functions of the runtime.
        let status = unsafe {
            let handle = FuncHandle::from_cell(*(*ctx).func_handles).unwrap();
            let record = *(*(*ctx).shared).funcs.add(handle.index());
            let ctx: *mut HostCtx = record.ctx.cast();
            // No test asks for a backtrace.
            ((*ctx).call)(ctx, cells.as_mut_ptr(), 0)
        };
        (status, cells[0])
    }

    #[test]
    fn stores_that_run_native_code_make_no_instances_without_it() {
        let module = Arc::new(verify(text::parse("func f() { return }").unwrap()).unwrap());
        let error = store().instantiate(module, &[]).unwrap_err();
        let expected = "a store that runs native code makes no instances without it";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn host_calls_return_fail_panic_and_come_back() {
        let mut store = store();
        let call =
            |store: &mut Store, script: Script| run(store, script).map_err(|e| e.to_string());
        assert_eq!(call(&mut store, |ctx, _| call_host(ctx, 5).1), Ok(6));
        assert_eq!(call(&mut store, |ctx, _| call_host(ctx, 3).1), Ok(42));
        let failure: Script = |ctx, _| {
            assert_eq!(call_host(ctx, 1).0, 1);
            0
        };
        assert_eq!(call(&mut store, failure), Err("failed".to_owned()));
        let panic: Script = |ctx, _| {
            assert_eq!(call_host(ctx, 2).0, 1);
            0
        };
        let panic = catch_unwind(AssertUnwindSafe(|| run(&mut store, panic))).unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"by the host"));
        // Nothing is left of the failures.
        assert_eq!(call(&mut store, |ctx, _| call_host(ctx, 3).1), Ok(42));
        // SAFETY: the store owns the structure.
        assert!(unsafe { (*store.shared_ptr()).store.is_null() });
    }

    #[test]
    fn memory_functions() {
        let mut store = store();
        run(&mut store, |ctx, libcalls| {
            // SAFETY: scripts get the context of an instance and the functions of the runtime; memory 0 and
            // segment 0 exist.
            unsafe {
                let bytes = |at: usize| (*(*(*ctx).memory).base.add(at)) as char;
                assert_eq!((libcalls.memory_grow)(ctx, 1), 1);
                assert_eq!((*(*ctx).memory).bytes, 2 * 65536);
                assert_eq!((libcalls.memory_grow)(ctx, 1), u32::MAX.into());
                assert_eq!((libcalls.memory_init)(ctx, 0, 70_000, 1, 5), 0);
                assert_eq!((libcalls.memory_init)(ctx, 0, 70_000, 2, 5), 1);
                assert_eq!((bytes(70_000), bytes(70_004)), ('b', 'f'));
                assert_eq!((libcalls.memory_copy)(ctx, 70_001, 70_000, 3), 0);
                assert_eq!((libcalls.memory_copy)(ctx, u32::MAX, 0, 1), 1);
                assert_eq!((bytes(70_001), bytes(70_003)), ('b', 'd'));
                assert_eq!((libcalls.memory_fill)(ctx, 70_000, 0x141, 2), 0);
                assert_eq!((libcalls.memory_fill)(ctx, 2 * 65536, 0, 1), 1);
                assert_eq!((bytes(70_001), bytes(70_002)), ('A', 'c'));
                (libcalls.data_drop)(ctx, 0);
                assert_eq!((libcalls.memory_init)(ctx, 0, 0, 0, 1), 1);
                assert_eq!((libcalls.memory_init)(ctx, 0, 0, 0, 0), 0);
            }
            0
        })
        .unwrap();
    }

    #[test]
    fn table_functions() {
        let mut store = store();
        run(&mut store, |ctx, libcalls| {
            // SAFETY: scripts get the context of an instance and the functions of the runtime; tables 0 and 1
            // and segment 0 exist.
            unsafe {
                let elems = |table: usize| {
                    let def = &**(*ctx).tables.add(table);
                    std::slice::from_raw_parts(def.base, def.len as usize).to_vec()
                };
                let (f, t_from_u, u_from_t) = (*(*ctx).func_handles.add(1), 1 << 32, 1);
                assert_eq!((libcalls.table_grow)(ctx, 0, f, 2), 3);
                assert_eq!((libcalls.table_grow)(ctx, 0, f, 1), u32::MAX.into());
                assert_eq!(elems(0), [0, 0, 0, f, f]);
                assert_eq!((libcalls.table_copy)(ctx, u_from_t, 0, 2, 3), 0);
                assert_eq!((libcalls.table_copy)(ctx, u_from_t, 1, 2, 3), 1);
                assert_eq!(elems(1), [0, f, f]);
                assert_eq!((libcalls.table_fill)(ctx, 0, 4, 0, 1), 0);
                assert_eq!((libcalls.table_fill)(ctx, 0, 4, 0, 2), 1);
                assert_eq!((libcalls.table_copy)(ctx, t_from_u, 0, 0, 3), 0);
                assert_eq!(elems(0), [0, f, f, f, 0]);
                assert_eq!((libcalls.table_init)(ctx, 0, 2, 1, 2), 0);
                assert_eq!((libcalls.table_init)(ctx, 1 << 32, 2, 1, 2), 1);
                assert_eq!(elems(0), [0, f, f, 0, 0]);
                (libcalls.elem_drop)(ctx, 0);
                assert_eq!((libcalls.table_init)(ctx, 0, 0, 0, 1), 1);
            }
            0
        })
        .unwrap();
    }
}
