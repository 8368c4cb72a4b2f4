//! A host function's view of its caller.

use std::marker::PhantomData;

use slotvm_runtime::{self as rt, Backtrace, Error, InstanceId};

use crate::api::engine::Engine;
use crate::api::externs::{Extern, Global, Memory};
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

    /// A global of the calling instance by its index in the module, exported or not, for hosts that fill the inline caches of
    /// guest code. `None` if there is none, or the host itself is the caller.
    ///
    /// ```
    /// use slotvm::{Caller, Engine, Linker, Module, Store, Val};
    ///
    /// let engine = Engine::default();
    /// let mut linker = Linker::new(&engine);
    /// linker.func_wrap("env", "fill", |mut caller: Caller<'_, ()>, cell: i32| {
    ///     let cell = caller.global_at(cell as u32).expect("guest code names its own");
    ///     cell.set(&mut caller, Val::I64(42))
    /// })?;
    /// let module = Module::from_text(&engine, r#"
    ///     import "env" "fill" cold func fill(i32)
    ///     global cell: mut i64 = i64.const 0
    ///     export "get" func get
    ///     func get() -> i64 {
    ///         global.get cell  i64.eqz  br_if miss
    ///       hit:
    ///         global.get cell  return
    ///       miss:
    ///         i32.const 0  call fill  br hit
    ///     }"#)?;
    /// let mut store = Store::new(&engine, ());
    /// let instance = linker.instantiate(&mut store, &module)?;
    /// assert_eq!(instance.get_typed_func::<(), i64>(&store, "get")?.call(&mut store, ())?, 42);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn global_at(&self, index: u32) -> Option<Global> {
        let globals = self.store.instance_globals(self.instance?);
        Some(Global::from_handle(self.store, *globals.get(index as usize)?))
    }

    /// The guest frames that are active, innermost first: the first is the caller, at its call. Where host functions have
    /// called back, the frames below them are listed, too. They are the same whether code is interpreted or native.
    ///
    /// ```
    /// use slotvm::{Caller, Engine, Linker, Module, Store};
    ///
    /// let engine = Engine::default();
    /// let mut linker = Linker::new(&engine);
    /// linker.func_wrap("env", "where", |mut caller: Caller<'_, String>| {
    ///     *caller.data_mut() = caller.backtrace().to_string();
    /// })?;
    /// let module = Module::from_text(&engine, r#"
    ///     import "env" "where" func where()
    ///     export "outer" func outer
    ///     func outer() { call inner return }
    ///     func inner() { nop call where return }"#)?;
    /// let mut store = Store::new(&engine, String::new());
    /// let instance = linker.instantiate(&mut store, &module)?;
    /// instance.get_typed_func::<(), ()>(&store, "outer")?.call(&mut store, ())?;
    /// let expected = "    at inner (offset 0x0001)\n    at outer (offset 0x0000)";
    /// assert_eq!(store.data(), expected);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn backtrace(&self) -> Backtrace {
        self.store.backtrace()
    }

    /// Calls `visit` with the bits of each reference into the embedder's heap that is not null, wherever it is: in handles
    /// ([`Rooted`](crate::Rooted)), globals, tables, and in the frames of all guest functions that wait for the host function
    /// that runs. What it writes is the reference from then on.
    ///
    /// Each reference that will be used is visited, and all that are visited are references of this time: what was visited
    /// before, or has come to be since. A reference that will not be used may be among them. Several may be to one object.
    ///
    /// # Errors
    /// Fails, before anything is visited, in the [callback](crate::Store::epoch_deadline_callback) of a poll inside of an
    /// operation, and in what that calls: while memory is filled or copied, or while a call waits for its code, references may
    /// not move. The callback can go on and ask again at the next poll.
    pub fn visit_roots(&mut self, mut visit: impl FnMut(&mut u64)) -> Result<(), Error> {
        self.store.visit_roots(&mut visit)
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
