//! Functions of a store, as handles: those that instances export and those of the host.

use slotvm_bytecode::FuncType;
use slotvm_runtime::{self as rt, FuncHandle};

use crate::api::store::{AsContext, StoreId};

/// A function of a store.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Func {
    store: StoreId,
    handle: FuncHandle,
}

impl Func {
    pub(crate) fn from_handle(store: &rt::Store, handle: FuncHandle) -> Func {
        Func { store: StoreId::of(store), handle }
    }

    /// The handle in the store.
    ///
    /// # Panics
    /// Panics if the store is another one.
    #[inline]
    #[track_caller]
    pub(crate) fn handle(&self, store: &rt::Store) -> FuncHandle {
        self.store.check(store);
        self.handle
    }

    /// The type.
    ///
    /// # Panics
    /// Panics if the function belongs to another store.
    pub fn ty(&self, store: impl AsContext) -> FuncType {
        let store = store.as_context().inner;
        store.func_type(self.handle(store)).clone()
    }
}
