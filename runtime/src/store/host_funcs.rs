//! The host functions of a store: making them, binding them to instances, calling them.

use std::sync::Arc;
use std::sync::atomic::AtomicPtr;

use slotvm_bytecode::{FuncType, TrapCode, n_cells};

use super::Store;
use super::funcs::FuncKind;
use super::host::{HostCall, HostCallee, HostFn};
use crate::context::{FuncRecord, HostCtx};
use crate::entities::{FuncHandle, InstanceId};
use crate::error::Error;
use crate::pinned::Pinned;
use crate::stack;

impl Store {
    /// Makes a function of the host.
    ///
    /// # Errors
    /// Fails if the store has too many functions, or there is no memory for native code.
    pub fn new_host_func(&mut self, ty: FuncType, f: HostFn) -> Result<FuncHandle, Error> {
        let id = self.intern_type(&ty);
        let checked = HostFn::new(move |call| {
            // The function may change what it is given, but not which cells and which store are checked.
            let HostCall { store, instance, cells } = call;
            (f.f)(&mut HostCall { store, instance: *instance, cells })?;
            let n_results = n_cells(&ty.results);
            store.check_cells(&ty.results, &mut cells[..n_results])
        });
        self.new_host_record(id, checked, None)
    }

    /// Makes a function of the host whose results need no check, for all callers or for the instance that
    /// imports it, which may be the [next](Store::next_instance) one.
    ///
    /// # Safety
    /// When the function returns without an error, the cells hold results of its type: cells of 32 bits
    /// are zero-extended, and references to functions are to functions of the store.
    ///
    /// # Errors
    /// Fails if the store has too many functions, or there is no memory for native code.
    #[doc(hidden)]
    pub unsafe fn new_trusted_host_func(
        &mut self,
        ty: &FuncType,
        f: HostFn,
        instance: Option<InstanceId>,
    ) -> Result<FuncHandle, Error> {
        let ty = self.intern_type(ty);
        self.new_host_record(ty, f, instance)
    }

    /// Whether imports that are leaves accept a function.
    pub(crate) fn is_leaf(&self, func: FuncHandle) -> bool {
        self.funcs.leaf(func).is_some()
    }

    /// Makes a record for a host function that is bound to the instance that imports it.
    pub(crate) fn bind_host_func(
        &mut self,
        func: FuncHandle,
        instance: InstanceId,
    ) -> Result<FuncHandle, Error> {
        match self.funcs.kind(func) {
            FuncKind::Guest { .. } => Ok(func),
            FuncKind::Host(callee) => {
                // SAFETY: it lives as long as the store, and nothing of it but the entry is ever written.
                let HostCallee { f, ty, instance: bound, .. } = unsafe { &*callee };
                if *bound == Some(instance) {
                    return Ok(func);
                }
                let (f, ty) = (f.clone(), *ty);
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
        let code = self.host_code(ty)?;
        let FuncType { params, results } = self.type_of(ty);
        let n_cells = n_cells(params).max(n_cells(results));
        let ctx = HostCtx { shared: self.shared_ptr(), call: f.native };
        self.count_funcs(1)?;
        let owner = Pinned::new(HostCallee {
            ctx,
            closure: Arc::as_ptr(&f.f).cast(),
            f,
            ty,
            instance,
            n_cells,
            entry: AtomicPtr::new(code.cast_mut()),
        });
        let callee = owner.as_ptr();
        self.funcs.host_callees.push(owner);
        // SAFETY: it was just made.
        let entry = unsafe { &raw const (*callee).entry };
        let record = FuncRecord { entry, ctx: callee.cast(), type_id: ty, defined: u32::MAX };
        // SAFETY: it is our own.
        Ok(unsafe { self.funcs.push(self.shared_ptr(), record, FuncKind::Host(callee)) })
    }

    /// Calls a host function. The cells hold the parameters and receive the results.
    pub(crate) fn call_host(&mut self, func: FuncHandle, cells: &mut [u64]) -> Result<(), Error> {
        let FuncKind::Host(callee) = self.funcs.kind_mut(func) else {
            unreachable!("the caller knows that it is a host function");
        };
        // SAFETY: a store keeps its functions until it is dropped, which it is not while a call from the
        // host is active, as one is here: it would rather abort, see `Store::drop`. Nobody writes to the
        // callee.
        let HostCallee { f, instance, .. } = unsafe { &*callee };
        let id = self.id();
        let result = (f.f)(&mut HostCall { store: self, instance: *instance, cells });
        self.check_identity(id);
        result
    }

    /// Traps if the call from the host that is active has used up its part of the host's stack.
    #[inline]
    pub(crate) fn check_host_stack(&self) -> Result<(), TrapCode> {
        // SAFETY: the store owns the structure, and native code does not run at the moment.
        let limit = unsafe { (*self.shared_ptr()).stack_limit };
        if stack::here() < limit { Err(TrapCode::StackOverflow) } else { Ok(()) }
    }
}
