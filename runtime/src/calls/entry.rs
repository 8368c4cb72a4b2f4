//! Calls from the host, and what surrounds them.

use slotvm_bytecode::n_cells;

use crate::entities::FuncHandle;
use crate::error::{Error, check_limit};
use crate::interp;
use crate::steps::stack::Mark;
use crate::store::called_from::{CalledFrom, NativeEntry};
use crate::store::funcs::FuncKind;
use crate::store::{Calls, Store};
use crate::trap::Trap;

impl Store {
    /// Calls a function. The cells hold the parameters and receive the results; there are as many as
    /// those or these take. A vector takes two, the lower half first. `i32` and `f32` cells are zero-extended.
    ///
    /// Whatever happens, the stacks of the guest are afterwards as they were before.
    ///
    /// # Errors
    /// Fails if the function fails, too many calls from the host are active, or the cells do not fit.
    pub fn call(&mut self, func: FuncHandle, cells: &mut [u64]) -> Result<(), Error> {
        self.check_func(func)?;
        let ty = self.func_type(func);
        let n_params = n_cells(&ty.params);
        let n_cells = n_params.max(n_cells(&ty.results));
        if cells.len() != n_cells {
            let n = cells.len();
            return Err(Error::Usage(format!(
                "expected {n_cells} cells for a function {ty}, found {n}"
            )));
        }
        self.check_cells(&ty.params, &mut cells[..n_params])?;
        // SAFETY: all of it was just checked.
        unsafe { self.call_unchecked(func, cells) }
    }

    /// Calls a function as [`Store::call`] does, for callers that know that the cells fit.
    ///
    /// # Safety
    /// The function is of this store, and the cells are what [`Store::call`] would make of them: as many
    /// as the parameters or results take, cells of 32 bits zero-extended, and references to
    /// functions of this store.
    ///
    /// # Errors
    /// Fails if the function fails, or too many calls from the host are active.
    #[doc(hidden)]
    pub unsafe fn call_unchecked(
        &mut self,
        func: FuncHandle,
        cells: &mut [u64],
    ) -> Result<(), Error> {
        HostCall::check(self)?;
        let mut entry = HostCall::begin(self);
        let result = match entry.store.funcs.kind_mut(func) {
            FuncKind::Host(_) => match entry.store.check_host_stack() {
                Ok(()) => entry.store.call_host(func, cells),
                Err(code) => Err(Trap::new(code, []).into()),
            },
            FuncKind::Guest { instance, func: index } => {
                let store = &mut *entry.store;
                match store.native_callee(func, instance, index) {
                    None => interp::execute(store, instance, index, cells),
                    // SAFETY: the code is that of the function. That the cells fit is what the caller of this
                    // function promises.
                    Some(callee) => match unsafe { store.run_native(&callee, cells) } {
                        Ok(()) => Ok(()),
                        Err(error) => match store.interp.left.take() {
                            Some(left) => store.go_on_left(left, cells),
                            None => Err(error),
                        },
                    },
                }
            }
        };
        entry.failed = result.is_err();
        result
    }
}

/// A call from the host into the store. When it ends, by return, error or panic, the stacks of the
/// guest get back what the call has taken from them.
pub(crate) struct HostCall<'a> {
    pub(crate) store: &'a mut Store,
    /// Whether the guest's stacks are not as they were. Until the call has returned, this is assumed: so
    /// a panic counts as a failure.
    pub(crate) failed: bool,
    id: u64,
    outer_store: *mut core::ffi::c_void,
    stack_limit: usize,
    stack_thread: usize,
    stack_cells: i64,
    interp: Mark,
    from: CalledFrom,
    native_entry: *const NativeEntry,
    /// The number of frame pointers that were saved when the call began.
    n_saved: usize,
}

impl<'a> HostCall<'a> {
    /// Checks that there may be one more call, and starts its time if it is the outermost. Then
    /// [`HostCall::begin`] must follow: an entry in a `Result` would be copied with it, which costs as much as
    /// all the rest.
    #[inline]
    pub(crate) fn check(store: &mut Store) -> Result<(), Error> {
        let wanted = u64::from(store.calls.n_host_calls) + 1;
        check_limit("host_calls_max", store.config.limits.host_calls_max.into(), wanted)?;
        if store.calls.n_host_calls == 0
            && let Some(interrupts) = &mut store.interrupts
        {
            interrupts.arm()?;
        }
        Ok(())
    }

    /// Begins the call.
    #[inline]
    pub(crate) fn begin(store: &'a mut Store) -> HostCall<'a> {
        let n_saved = store.calls.saved_frame_sps.len();
        // Below the outermost call, frame pointers have their initial values.
        if store.calls.n_host_calls > 0 {
            let Store { calls: Calls { framed, saved_frame_sps, .. }, instances, .. } = &mut *store;
            saved_frame_sps.extend(framed.iter().map(|i| instances[i.index()].frame_sp()));
        }
        store.calls.n_host_calls += 1;
        let id = store.id();
        let interp = store.interp.stack.mark();
        let Calls { from, native_entry, .. } = store.calls;
        // SAFETY: the store owns the structure, and native code does not run at the moment: it has called the
        // host function that has the store, or is yet to be entered.
        let shared = unsafe { &mut *store.shared_ptr() };
        let outer_store = shared.store;
        let (stack_limit, stack_thread) = (shared.stack_limit, shared.stack_thread);
        let stack_cells = shared.stack_cells;
        shared.limit_stack(store.config.native_stack_bytes_max);
        HostCall {
            store,
            failed: true,
            id,
            outer_store,
            stack_limit,
            stack_thread,
            stack_cells,
            interp,
            from,
            native_entry,
            n_saved,
        }
    }
}

impl Drop for HostCall<'_> {
    fn drop(&mut self) {
        let HostCall { store, n_saved, .. } = self;
        store.check_identity(self.id);
        store.calls.n_host_calls -= 1;
        if store.calls.n_host_calls == 0
            && let Some(interrupts) = &mut store.interrupts
        {
            interrupts.disarm();
        }
        if self.failed {
            let outermost = store.calls.n_host_calls == 0;
            for (i, &instance) in store.calls.framed.iter().enumerate() {
                // Instances made during the call have no saved pointer, nor any frame.
                let saved = store.calls.saved_frame_sps.get(*n_saved + i).filter(|_| !outermost);
                let instance = &mut store.instances[instance.index()];
                let frame_sp = saved.copied().unwrap_or_else(|| instance.frame_sp_initial());
                instance.set_frame_sp(frame_sp);
            }
            store.interp.stack.reset(&self.interp);
            // A panic has not restored them.
            (store.calls.from, store.calls.native_entry) = (self.from, self.native_entry);
        }
        store.calls.saved_frame_sps.truncate(*n_saved);
        // SAFETY: the store owns the structure, and the native code that the call has entered has been left.
        let shared = unsafe { &mut *store.shared_ptr() };
        shared.store = self.outer_store;
        shared.stack_limit = self.stack_limit;
        shared.stack_thread = self.stack_thread;
        shared.stack_cells = self.stack_cells;
    }
}
