//! A host function's view of its caller.

use std::marker::PhantomData;

use slotvm_runtime::{self as rt, Error, InstanceId};

use crate::api::engine::Engine;
use crate::api::externs::{Extern, Memory};
use crate::api::store::{self, AsContext, AsContextMut, StoreContext, StoreContextMut};

/// The store in which a host function runs, and the instance that called it.
#[derive(Debug)]
pub struct Caller<'a, T: 'static> {
    store: &'a mut rt::Store,
    instance: Option<InstanceId>,
    data: PhantomData<&'a mut T>,
}

impl<'a, T: 'static> Caller<'a, T> {
    #[inline]
    pub(crate) fn new(store: &'a mut rt::Store, instance: Option<InstanceId>) -> Caller<'a, T> {
        Caller { store, instance, data: PhantomData }
    }

    /// The embedder's data.
    #[inline]
    pub fn data(&self) -> &T {
        store::data(self.store)
    }

    /// The embedder's data.
    #[inline]
    pub fn data_mut(&mut self) -> &mut T {
        store::data_mut(self.store)
    }

    /// The engine of the store.
    pub fn engine(&self) -> &Engine {
        store::Embedding::of(self.store).engine()
    }

    /// Returns the export of the calling instance with a name. `None` also if the host itself is the caller.
    pub fn get_export(&self, name: &str) -> Option<Extern> {
        let export = self.store.export(self.instance?, name)?;
        Some(Extern::new(self.store, export))
    }

    /// The memory of the calling instance, exported or not. `None` also if the host itself is the caller.
    pub fn memory(&self) -> Option<Memory> {
        let memory = self.store.instance_memory(self.instance?)?;
        Some(Memory::from_handle(self.store, memory))
    }

    /// Checks for interruption, as guest code does at the head of a loop. Functions that wait or work for long should
    /// call it regularly, and pass the error on.
    ///
    /// # Errors
    /// Fails with [`Interrupted`](crate::TrapCode::Interrupted) if the store is out of time, or its epoch deadline has
    /// passed and no [callback](crate::Store::epoch_deadline_callback) extends it; or with the error of that callback.
    pub fn check_interrupt(&mut self) -> Result<(), Error> {
        self.store.check_interrupt()
    }

    /// The fuel that is left. What the calling block costs has been charged.
    ///
    /// # Errors
    /// Fails if the engine does not [consume fuel](crate::Config::consume_fuel).
    pub fn get_fuel(&self) -> Result<u64, Error> {
        store::get_fuel(self.store)
    }

    /// Sets the fuel that is left.
    ///
    /// # Errors
    /// Fails if the engine does not [consume fuel](crate::Config::consume_fuel).
    pub fn set_fuel(&mut self, fuel: u64) -> Result<(), Error> {
        self.store.set_fuel(fuel)
    }
}

impl<T: 'static> AsContext for Caller<'_, T> {
    type Data = T;

    fn as_context(&self) -> StoreContext<'_, T> {
        StoreContext::new(self.store)
    }
}

impl<T: 'static> AsContextMut for Caller<'_, T> {
    fn as_context_mut(&mut self) -> StoreContextMut<'_, T> {
        StoreContextMut::new(self.store)
    }
}
