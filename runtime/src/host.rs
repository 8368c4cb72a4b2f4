//! Host functions: closures of the embedder that guest code calls.

use std::sync::Arc;

use slotvm_bytecode::FuncType;

use crate::context::{FuncRecord, HostCtx};
use crate::entities::FuncHandle;
use crate::error::Error;
use crate::instance::InstanceId;
use crate::pinned::Pinned;
use crate::store::{FuncKind, Store};

/// What a host function does. It may call back into guest code by [`Store::call`].
pub type HostFn = Arc<dyn Fn(&mut HostCall<'_>) -> Result<(), Error> + Send + Sync>;

/// A call of a host function.
#[derive(Debug)]
pub struct HostCall<'a> {
    /// The store that the caller runs in. It must not be exchanged for another one.
    pub store: &'a mut Store,
    /// The instance that imports the function and thus calls it; `None` if the host calls it directly.
    pub instance: Option<InstanceId>,
    /// The parameters, then, in the same place, the results. There are as many cells as the larger of
    /// the two numbers.
    pub cells: &'a mut [u64],
}

impl Store {
    /// Makes a function of the host.
    ///
    /// # Errors
    /// If the store has too many functions, or there is no memory for native code.
    pub fn new_host_func(&mut self, ty: FuncType, f: HostFn) -> Result<FuncHandle, Error> {
        let ty = self.intern_type(&ty);
        self.new_host_record(ty, f, None)
    }

    /// Makes a record for a host function that is bound to the instance that imports it.
    pub(crate) fn bind_host_func(
        &mut self,
        func: FuncHandle,
        instance: InstanceId,
    ) -> Result<FuncHandle, Error> {
        let data = self.func_data(func);
        match &data.kind {
            FuncKind::Guest { .. } => Ok(func),
            FuncKind::Host { f, .. } => {
                let (ty, f) = (data.ty, f.clone());
                self.new_host_record(ty, f, Some(instance))
            }
        }
    }

    fn new_host_record(
        &mut self,
        ty: u32,
        f: HostFn,
        instance: Option<InstanceId>,
    ) -> Result<FuncHandle, Error> {
        let code = match &self.config.host_trampoline {
            Some(trampoline) => trampoline(self.type_of(ty))?,
            None => std::ptr::null(),
        };
        let handle = self.next_func_handle();
        let ctx = Pinned::new(HostCtx { shared: self.shared_ptr(), handle: handle.cell() });
        let record = FuncRecord { code, ctx: ctx.as_ptr().cast(), type_id: ty };
        self.push_func(record, FuncKind::Host { f, instance, ctx })
    }

    /// Calls a host function. The cells hold the parameters and receive the results.
    pub(crate) fn call_host(&mut self, func: FuncHandle, cells: &mut [u64]) -> Result<(), Error> {
        let data = self.func_data(func);
        let FuncKind::Host { f, instance, .. } = &data.kind else {
            unreachable!("the caller knows that it is a host function");
        };
        // A clone would do instead of the pointer, for half of the time that a call takes.
        let (f, instance, ty) = (Arc::as_ptr(f), *instance, data.ty);
        let id = self.id();
        // SAFETY: a store keeps its functions until it is dropped, which it is not while a call from the
        // host is active, as one is here: it would rather abort, see `Store::drop`.
        let f = unsafe { &*f };
        let result = f(&mut HostCall { store: self, instance, cells });
        self.check_identity(id);
        result?;
        let n_results = self.type_of(ty).results.len();
        self.check_cells(&self.type_of(ty).results, &mut cells[..n_results])
    }
}
