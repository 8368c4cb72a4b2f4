//! A store that runs native code: for executors, and for what native code leaves when it fails.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::called_from::NativeEntry;
use super::funcs::Funcs;
use super::host::HostCallee;
use super::noted::LIBCALLS;
use super::{NativeCallee, NativeCode, NativeHooks, Pending, Store};
use crate::context::{EntryTrampoline, FuncRecord, HostCtx, VmCtx};
use crate::entities::{FuncHandle, InstanceId};
use crate::error::Error;
use crate::store::config::StoreConfig;

#[doc(hidden)]
/// Native code by the store's numbers of function types.
#[derive(Default)]
pub(super) struct NativeTypes {
    /// Entry of the executor to functions, where it is set.
    entry_trampolines: Vec<Option<EntryTrampoline>>,
    /// Native code for calls of host functions; null where it was not needed yet.
    host_codes: Vec<*const u8>,
    /// The owners of both.
    code_owners: Vec<Arc<dyn Any + Send + Sync>>,
}

impl Store {
    /// Makes an empty store that runs native code.
    ///
    /// # Safety
    /// As long as the store lives,
    /// * the executor runs what it is given, a guest function of the store: it enters the code
    ///   with the context by an entry for the type, and returns when that has been left, with
    ///   the cells as the function leaves them. It may rely on [`Store::instantiate_native`] and
    ///   [`Store::set_entry_trampoline`] having been called as they say;
    /// * what the host trampoline returns is native code, of the convention that [`FuncRecord`] describes, which
    ///   passes its context, the cells of its parameters and its frame pointer to
    ///   [`HostCtx::call`](crate::context::HostCtx::call);
    /// * `raise`, `walk` and `poll` do what their types say.
    pub unsafe fn new_native(
        config: StoreConfig,
        data: Box<dyn Any + Send>,
        hooks: NativeHooks,
    ) -> Store {
        Store::with_hooks(config, data, Some(hooks), &raw const LIBCALLS)
    }

    /// Returns the executor's entry to functions of a type, by the store's number of it, if
    /// [`Store::set_entry_trampoline`] has set one.
    #[inline]
    pub fn entry_trampoline(&self, type_id: u32) -> Option<EntryTrampoline> {
        self.natives.entry_trampolines.get(type_id as usize).copied().flatten()
    }

    /// Lets [`Store::entry_trampoline`] return this from now on. The store keeps the owner.
    ///
    /// # Safety
    /// It is an entry for functions of the type that has this number in this store, and lives as long as its
    /// owner.
    pub unsafe fn set_entry_trampoline(
        &mut self,
        type_id: u32,
        entry_trampoline: EntryTrampoline,
        owner: Arc<dyn Any + Send + Sync>,
    ) {
        set_at(&mut self.natives.entry_trampolines, type_id, Some(entry_trampoline), None);
        self.natives.code_owners.push(owner);
    }

    /// Native code through which native code calls host functions of a type; null without any.
    pub(crate) fn host_code(&mut self, type_id: u32) -> Result<*const u8, Error> {
        let Some(hooks) = &self.native else { return Ok(std::ptr::null()) };
        match self.natives.host_codes.get(type_id as usize) {
            Some(code) if !code.is_null() => Ok(*code),
            _ => match &hooks.tiers {
                Some(tiers) => Ok(tiers.host_stub as *const u8),
                None => {
                    let code = (hooks.host_trampoline)(self.types.get(type_id))?;
                    Ok(self.keep_host_code(type_id, code))
                }
            },
        }
    }

    fn keep_host_code(&mut self, type_id: u32, code: NativeCode) -> *const u8 {
        set_at(&mut self.natives.host_codes, type_id, code.address, std::ptr::null());
        self.natives.code_owners.push(code.owner);
        code.address
    }

    /// Makes the native code for calls of a host function, if there is none of its type, and lets later calls go there.
    fn find_host_code(&mut self, callee: &HostCallee) -> Result<*const u8, Error> {
        let hooks = self.native.as_ref().expect("the store runs native code");
        let code = match self.natives.host_codes.get(callee.ty as usize) {
            Some(&code) if !code.is_null() => code,
            _ => {
                let ty = self.types.get(callee.ty);
                let code = match (&hooks.tiers, callee.instance) {
                    (Some(tiers), Some(instance)) => (tiers.host_code)(self, instance, ty)?,
                    _ => (hooks.host_trampoline)(ty)?,
                };
                self.keep_host_code(callee.ty, code)
            }
        };
        callee.entry.store(code.cast_mut(), Ordering::Relaxed);
        Ok(code)
    }

    /// A guest function with its native code, unless the interpreter is to run it.
    #[inline]
    pub(crate) fn native_callee(
        &self,
        handle: FuncHandle,
        instance: InstanceId,
        func: u32,
    ) -> Option<NativeCallee> {
        let hooks = self.native.as_ref()?;
        let record = self.funcs.record(handle);
        let code = match hooks.tiers {
            Some(_) => self.instance(instance).code().native(func),
            // SAFETY: it is a record of the store.
            None => unsafe { Funcs::code(&record) },
        };
        let FuncRecord { ctx, type_id, .. } = record;
        let (entry, is_loop) = (None, false);
        let callee = NativeCallee { ctx, code, entry, type_id, instance, func, is_loop };
        (!code.is_null()).then_some(callee)
    }

    /// Enters native code.
    ///
    /// # Safety
    /// The store runs native code. The callee is a function or a loop of one of its instances, its type that of the code,
    /// and the cells are what [`Store::call`] would make of them. The parameter of a loop is the address of a frame of the
    /// function, all of whose cells can be read.
    #[inline]
    pub(crate) unsafe fn run_native(
        &mut self,
        callee: &NativeCallee,
        cells: &mut [u64],
    ) -> Result<(), Error> {
        let executor = self.native.as_ref().expect("the store runs native code").executor;
        let shared = self.shared_ptr();
        // SAFETY: the store owns the structure, and native code does not run at the moment.
        let outer = unsafe { (*shared).store };
        let entry = NativeEntry::new(self);
        self.calls.native_entry = &raw const entry;
        // SAFETY: this is the caller that it is for, with what it was given.
        let result = unsafe { executor(self, callee, cells) };
        entry.end(self);
        // SAFETY: the store owns the structure, and the code that was entered has been left.
        unsafe { (*shared).store = outer };
        result
    }

    /// The context of an instance. Valid while the store lives.
    pub fn instance_ctx(&self, instance: InstanceId) -> *mut VmCtx {
        self.instance(instance).ctx()
    }

    /// Leaves word of why native code is about to trap.
    #[cold]
    pub(crate) fn set_pending(&mut self, result: std::thread::Result<Error>) {
        self.calls.pending = Some(match result {
            Ok(error) => Pending::Error(error),
            Err(panic) => Pending::Panic(panic),
        });
    }

    /// The error of the host function because of which native code came back, if that is the reason. If
    /// the host function has panicked, the panic resumes.
    pub fn take_pending(&mut self) -> Option<Error> {
        match self.calls.pending.take()? {
            Pending::Error(error) => Some(error),
            Pending::Panic(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// Returns the native code for calls of a host function, to go on in it; null after an error, which is then pending in the
/// store.
///
/// # Safety
/// Called by native code, with the context of the host function that it is about to call.
pub unsafe fn find_host_code(ctx: *mut HostCtx) -> *const u8 {
    // SAFETY: native code passes the context of the host function's record, the first field of a callee, which the store
    // keeps until it is dropped. Nothing of it but the entry, which is atomic, is ever written.
    let (store, callee) = unsafe { (Store::running((*ctx).shared), &*ctx.cast::<HostCallee>()) };
    let failure = match catch_unwind(AssertUnwindSafe(|| store.find_host_code(callee))) {
        Ok(Ok(code)) => return code,
        Ok(Err(error)) => Ok(error),
        Err(panic) => Err(panic),
    };
    store.set_pending(failure);
    std::ptr::null()
}

/// Sets an element of a list that has `none` where nothing was set.
fn set_at<T: Copy>(list: &mut Vec<T>, index: u32, value: T, none: T) {
    let index = index as usize;
    if list.len() <= index {
        list.resize(index + 1, none);
    }
    list[index] = value;
}
