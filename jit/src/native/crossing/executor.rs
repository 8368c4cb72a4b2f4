//! Native code as the executor of a store: how a call from the host becomes an entry into native code, and a
//! trap an error.

use std::any::Any;
use std::sync::Arc;

use slotvm_bytecode::FuncType;
use slotvm_runtime::native::{NativeCallee, NativeCode};
use slotvm_runtime::{Error, Frame, InstanceId, Store, Trap};

use crate::code::pctable::TrapReason;
use crate::native::crossing::activation::{self, NativeTrap};
use crate::native::crossing::trampolines::Trampoline;
use slotvm_runtime::native::EntryTrampoline;

/// The data of a store that runs native code.
pub(crate) trait StoreData: Any + Send {
    /// The trampoline by which the host enters a function of the module of an instance, or a loop of one. The module pays
    /// for it.
    ///
    /// # Errors
    /// Fails if it exceeds the budget of the module, or there is no memory for code.
    fn entry(
        &self,
        instance: InstanceId,
        func: u32,
        is_loop: bool,
    ) -> Result<Arc<Trampoline>, Error>;

    /// The trampoline to host functions of a type that the module of an instance imports. The module pays for it.
    ///
    /// # Errors
    /// Fails if it exceeds the budget of the module, or there is no memory for code.
    fn to_host(&self, instance: InstanceId, ty: &FuncType) -> Result<Arc<Trampoline>, Error>;
}

/// The executor of stores whose engine makes native code, and whose data are a `D`.
///
/// # Safety
/// The contract of [`Executor`](slotvm_runtime::native::Executor), with a store of [`NativeEngine::store`] of a `D`.
///
/// [`NativeEngine::store`]: crate::native::ownership::engine::NativeEngine::store
pub(crate) unsafe fn execute<D: StoreData>(
    store: &mut Store,
    callee: &NativeCallee,
    cells: &mut [u64],
) -> Result<(), Error> {
    let entry = match callee.entry.or_else(|| store.entry_trampoline(callee.type_id)) {
        Some(entry) => entry,
        None => find_entry::<D>(store, callee)?,
    };
    store.enter_native();
    // SAFETY: the entry is that of the code's type, since only `find_entry` sets entries, and `State::install` hands over
    // those with code. The callee is
    // a guest function of the store, as the store has promised, whose code and context live as
    // long as the store; the cells fit, as it has promised, too, and it has set the limit of the stack. The
    // engine has installed the signal handlers, or else given the store what its code traps by.
    let result = unsafe { activation::enter(entry, callee.ctx, callee.code, cells.as_mut_ptr()) };
    result.map_err(|trap| error(store, trap))
}

/// The entry trampoline of a callee's type, which the store then remembers. The module of the function
/// pays for it.
#[cold]
fn find_entry<D: StoreData>(
    store: &mut Store,
    callee: &NativeCallee,
) -> Result<EntryTrampoline, Error> {
    let data: &D = store.data_as().expect("the engine has made the store with these data");
    let trampoline = data.entry(callee.instance, callee.func, callee.is_loop)?;
    let entry = trampoline.entry();
    // SAFETY: the trampoline is that of the callee's type, which has this number in the store. It lives as long
    // as its owner, which the store keeps.
    unsafe { store.set_entry_trampoline(callee.type_id, entry, trampoline) };
    Ok(entry)
}

/// Makes the code for calls of host functions of a type, for an instance that imports them.
pub(crate) fn host_code<D: StoreData>(
    store: &Store,
    instance: InstanceId,
    ty: &FuncType,
) -> Result<NativeCode, Error> {
    let data: &D = store.data_as().expect("the engine has made the store with these data");
    Ok(data.to_host(instance, ty)?.host_code())
}

/// Converts a trap of native code to an error of the host. If a host function has panicked, the panic resumes.
#[cold]
fn error(store: &mut Store, trap: NativeTrap) -> Error {
    error_of_trap(trap, || store.take_pending().expect("a host function left its error"))
}

/// The error that a trap of native code is, which is the pending one if the host failed.
#[cold]
pub(crate) fn error_of_trap(trap: NativeTrap, pending: impl FnOnce() -> Error) -> Error {
    let frames = trap.frames.into_iter().map(|frame| Frame {
        module: frame.module,
        func: frame.place.func,
        offset: frame.place.offset,
    });
    let mut error = match trap.reason {
        TrapReason::Guest(code) => Error::Trap(Trap::new(code, [])),
        TrapReason::HostError => pending(),
    };
    error.add_frames(frames, trap.n_frames_omitted);
    error
}
