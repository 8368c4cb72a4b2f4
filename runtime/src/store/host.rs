//! Host functions: closures of the embedder that guest code calls.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicPtr;

use super::Store;
use super::called_from::{CalledFrom, NativePlace};
use crate::context::{HostCtx, LeafFn};
use crate::entities::InstanceId;
use crate::error::Error;

type Closure = dyn Fn(&mut HostCall<'_>) -> Result<(), Error> + Send + Sync;

/// A host function. It may call back into guest code by [`Store::call`].
#[derive(Clone)]
pub struct HostFn {
    pub(super) f: Arc<Closure>,
    /// Calls the closure from native code. It is made for the closure's type, which may therefore become a
    /// part of it: a second call would be half of what a short host function costs.
    pub(super) native: unsafe extern "C" fn(*mut HostCtx, *mut u64, usize) -> u32,
    /// The C function that native code may call instead.
    pub(super) leaf: Option<LeafFn>,
}

impl HostFn {
    /// A function of the host that does what a closure does.
    pub fn new<F>(f: F) -> HostFn
    where
        F: Fn(&mut HostCall<'_>) -> Result<(), Error> + Send + Sync + 'static,
    {
        HostFn { f: Arc::new(f), native: host_call::<F>, leaf: None }
    }

    /// The same function, which imports that are leaves accept: native code calls `leaf` instead of the closure.
    ///
    /// # Safety
    /// In every store that it is made a function of by [`Store::new_trusted_host_func`], `leaf.code` is a function of the C
    /// convention whose parameters are a pointer and those of the type, and whose result is that of the type. Called with
    /// `leaf.data` first, on any thread and with any parameters, it does what the closure does, as long as the store lives:
    /// it returns, and neither calls guest code nor touches the store. It takes at most
    /// [`LEAF_STACK_BYTES_MAX`](crate::limits::LEAF_STACK_BYTES_MAX) bytes of stack.
    #[doc(hidden)]
    #[must_use]
    pub unsafe fn with_leaf(self, leaf: LeafFn) -> HostFn {
        HostFn { leaf: Some(leaf), ..self }
    }

    /// Whether imports that are leaves accept it.
    pub fn is_leaf(&self) -> bool {
        self.leaf.is_some()
    }

    /// Calls it, in the place of a function that was made around it.
    ///
    /// # Errors
    /// Fails if the closure does.
    pub fn call(&self, call: &mut HostCall<'_>) -> Result<(), Error> {
        (self.f)(call)
    }
}

impl fmt::Debug for HostFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostFn").finish_non_exhaustive()
    }
}

/// A call of a host function.
#[derive(Debug)]
pub struct HostCall<'a> {
    /// The store that the caller runs in. Whoever puts another one in its place ends the process, at the
    /// latest when the function returns: guest code that is active still has addresses of this one.
    pub store: &'a mut Store,
    /// The instance that imports the function and thus calls it; `None` if the host calls it directly.
    pub instance: Option<InstanceId>,
    /// The parameters, then, in the same place, the results. There are as many cells as
    /// those or these take; a vector takes two, the lower half first.
    pub cells: &'a mut [u64],
}

/// A host function that was given to a store. Native code sees only the context, which therefore comes
/// first.
#[repr(C)]
pub(crate) struct HostCallee {
    pub(super) ctx: HostCtx,
    /// The closure in `f`.
    pub(super) closure: *const (),
    pub(super) f: HostFn,
    /// The store's number of its type.
    pub(super) ty: u32,
    /// The instance that imports it, if it was made for an import.
    pub(crate) instance: Option<InstanceId>,
    /// The cells that its parameters or its results take.
    pub(crate) n_cells: usize,
    /// The cell of its record with the native code for calls of it, or null in a store that interprets everything.
    pub(super) entry: AtomicPtr<u8>,
}

/// The function behind [`HostCtx::call`] for closures of a type.
///
/// # Safety
/// Called by the trampoline of a host function that was made of such a closure, with its context, cells and frame
/// pointer.
unsafe extern "C" fn host_call<F>(ctx: *mut HostCtx, cells: *mut u64, fp: usize) -> u32
where
    F: Fn(&mut HostCall<'_>) -> Result<(), Error>,
{
    // SAFETY: native code passes the context of the host function's record, the first field of a callee.
    // A store keeps its functions until it is dropped, which it is not while native code runs: it would
    // rather abort, see `Store::drop`. Nobody writes to the callee.
    let (store, callee) = unsafe { (Store::running((*ctx).shared), &*ctx.cast::<HostCallee>()) };
    // SAFETY: `HostFn::new` has put this function beside the closure, with its type for `F`, and
    // `new_host_record` both into the callee, which keeps the closure.
    let f = unsafe { &*callee.closure.cast::<F>() };
    let cells = match callee.n_cells {
        // The pointer may be anything.
        0 => &mut [],
        // SAFETY: the trampoline of the function's type passes as many cells as it needs.
        n => unsafe { std::slice::from_raw_parts_mut(cells, n) },
    };
    // A panic must not unwind through native frames; it resumes beyond them. The store stays usable
    // after a panic of the host, as all that a host function can do to it is complete in itself.
    let id = store.id();
    store.calls.from = CalledFrom::Native(NativePlace::CallerOf(fp));
    let instance = callee.instance;
    let call = || f(&mut HostCall { store: &mut *store, instance, cells });
    let result = catch_unwind(AssertUnwindSafe(call));
    store.check_identity(id);
    // Only an error is moved: it is large, and so short a call would notice.
    match result {
        Ok(Ok(())) => return 0,
        Ok(Err(error)) => store.set_pending(Ok(error)),
        Err(panic) => store.set_pending(Err(panic)),
    }
    1
}
