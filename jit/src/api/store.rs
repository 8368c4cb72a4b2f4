//! A [`Store`] of the embedding API: a [`slotvm_runtime::Store`] with the embedder's data, and the
//! traits by which functions take one.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use slotvm_runtime::native::Data;
use slotvm_runtime::{
    self as rt, Error, InstanceId, ResourceLimiter, StoreConfig, TraceFn, UpdateDeadline,
};

use crate::api::engine::Engine;
use crate::api::module::Module;

/// Identifies a store, so that its handles are not used with another one.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StoreId(u64);

impl StoreId {
    /// The id of a store.
    #[inline]
    pub(crate) fn of(store: &rt::Store) -> StoreId {
        StoreId(store.id())
    }

    /// # Panics
    /// Panics if the store is another one.
    #[inline]
    #[track_caller]
    pub(crate) fn check(self, store: &rt::Store) {
        assert!(StoreId::of(store) == self, "object used with the wrong store");
    }
}

/// The data of the embedding API in a store of the runtime.
pub(crate) struct Embedding {
    engine: Engine,
    data: Data,
    /// The module of each instance: its native code must live as long as the store.
    pub(super) modules: Vec<Module>,
}

impl Embedding {
    #[inline]
    pub(crate) fn of(store: &rt::Store) -> &Embedding {
        store.data_as().expect("the store was made by this crate")
    }

    #[inline]
    pub(crate) fn of_mut(store: &mut rt::Store) -> &mut Embedding {
        store.data_as_mut().expect("the store was made by this crate")
    }

    /// The embedder's data among those of a store of the runtime.
    ///
    /// # Panics
    /// Panics if they are of another type.
    pub(crate) fn data_mut<T: 'static>(data: &mut (dyn Any + Send)) -> &mut T {
        let embedding: &mut Embedding =
            data.downcast_mut().expect("the store was made by this crate");
        embedding.user_data_mut()
    }

    /// The embedder's data.
    ///
    /// # Panics
    /// Panics if they are of another type.
    #[inline]
    fn user_data<T: 'static>(&self) -> &T {
        self.data.get().expect("contexts bear the type of the data")
    }

    /// The embedder's data.
    ///
    /// # Panics
    /// Panics if they are of another type.
    #[inline]
    fn user_data_mut<T: 'static>(&mut self) -> &mut T {
        self.data.get_mut().expect("contexts bear the type of the data")
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Keeps a module alive as long as the store has the instance, which is about to be made and may fail:
    /// then its number is that of the next one.
    pub(crate) fn keep_module(&mut self, instance: InstanceId, module: &Module) {
        self.modules.truncate(instance.number() as usize);
        self.modules.push(module.clone());
    }
}

/// Owns instances, and the memories, tables, globals and functions that they see, with data of the
/// embedder that host functions can reach. Nothing in a store is freed before the store is.
pub struct Store<T: 'static> {
    inner: rt::Store,
    data: PhantomData<T>,
}

impl<T: Send + 'static> Store<T> {
    /// Makes an empty store.
    pub fn new(engine: &Engine, data: T) -> Store<T> {
        let embedding = Embedding {
            engine: engine.clone(),
            data: Data::new(Box::new(data)),
            modules: Vec::new(),
        };
        let config = store_config(engine);
        let inner = match engine.native() {
            None => rt::Store::new(config, Box::new(embedding)),
            Some(native) => native.store(config, embedding),
        };
        Store { inner, data: PhantomData }
    }
}

impl<T: 'static> Store<T> {
    /// The engine.
    pub fn engine(&self) -> &Engine {
        Embedding::of(&self.inner).engine()
    }

    /// The embedder's data.
    pub fn data(&self) -> &T {
        data(&self.inner)
    }

    /// The embedder's data.
    pub fn data_mut(&mut self) -> &mut T {
        data_mut(&mut self.inner)
    }

    /// Frees everything that the store owns, and returns the embedder's data.
    pub fn into_data(mut self) -> T {
        let embedding = Embedding::of_mut(&mut self.inner);
        let data = std::mem::replace(&mut embedding.data, Data::new(Box::new(())));
        *data.into_box().downcast().expect("contexts bear the type of the data")
    }

    /// Sets the fuel that is left. Each basic block of the bytecode costs its number of instructions
    /// when it is entered; bulk operations cost by their length besides. A program without enough fuel
    /// traps with [`OutOfFuel`](crate::TrapCode::OutOfFuel).
    ///
    /// # Errors
    /// Fails if the engine does not [consume fuel](crate::Config::consume_fuel).
    pub fn set_fuel(&mut self, fuel: u64) -> Result<(), Error> {
        self.inner.set_fuel(fuel)
    }

    /// The fuel that is left.
    ///
    /// # Errors
    /// Fails if the engine does not [consume fuel](crate::Config::consume_fuel).
    pub fn get_fuel(&self) -> Result<u64, Error> {
        get_fuel(&self.inner)
    }

    /// Lets guest code run until the epoch of the engine has been
    /// [incremented](crate::Engine::increment_epoch) this many more times. Has no effect without
    /// [`Config::epoch_interruption`](crate::Config::epoch_interruption).
    pub fn set_epoch_deadline(&mut self, ticks_beyond_current: u64) {
        set_epoch_deadline(&mut self.inner, ticks_beyond_current);
    }

    /// Lets guest code trap with [`Interrupted`](crate::TrapCode::Interrupted) when the epoch deadline is
    /// reached. This is the default.
    pub fn epoch_deadline_trap(&mut self) {
        self.inner.epoch_deadline_trap();
    }

    /// Lets a closure decide what happens when the epoch deadline is reached. It may give fuel, change what
    /// the store holds, and call guest code, which then traps when it reaches the deadline. If it fails, so
    /// does the call; if it panics, the panic resumes in the host.
    ///
    /// ```
    /// use slotvm::{Config, Engine, Instance, Module, Store, UpdateDeadline};
    ///
    /// let engine = Engine::new(Config::new().epoch_interruption(true))?;
    /// let module = Module::from_text(&engine, r#"
    ///     export "spin" func spin
    ///     func spin() { again: br again }"#)?;
    /// let mut store = Store::new(&engine, 0);
    /// store.epoch_deadline_callback(|mut context| {
    ///     *context.data_mut() += 1;
    ///     Ok(match *context.data() {
    ///         3 => UpdateDeadline::Interrupt,
    ///         _ => UpdateDeadline::Continue(0),
    ///     })
    /// });
    /// let instance = Instance::new(&mut store, &module, &[])?;
    /// let spin = instance.get_typed_func::<(), ()>(&store, "spin")?;
    /// spin.call(&mut store, ()).unwrap_err();
    /// assert_eq!(*store.data(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn epoch_deadline_callback(
        &mut self,
        mut callback: impl FnMut(StoreContextMut<'_, T>) -> Result<UpdateDeadline, Error>
        + Send
        + Sync
        + 'static,
    ) {
        self.inner.epoch_deadline_callback(move |store| callback(StoreContextMut::new(store)));
    }

    /// Sets how long a call from the host into guest code may take, instead of
    /// [`Config::timeout`](crate::Config::timeout).
    ///
    /// # Errors
    /// Fails if the code of the engine cannot be interrupted, since neither that nor
    /// [`Config::epoch_interruption`](crate::Config::epoch_interruption) is set.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        self.inner.set_timeout(timeout)
    }

    /// Lets a part of the embedder's data decide what memories, tables and instances the store makes and
    /// how far they grow, beside the [limits](crate::Config::limits) of the engine. What exists stays.
    ///
    /// ```
    /// use slotvm::{Engine, Module, Store, StoreLimits, StoreLimitsBuilder, Linker};
    ///
    /// let engine = Engine::default();
    /// let limits = StoreLimitsBuilder::new().memory_size(1 << 20).build();
    /// let mut store: Store<StoreLimits> = Store::new(&engine, limits);
    /// store.limiter(|limits| limits);
    ///
    /// let module = Module::from_text(&engine, "memory m 17")?;
    /// let error = Linker::new(&engine).instantiate(&mut store, &module).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "the store's limiter refused a memory of 1114112 bytes",
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn limiter(
        &mut self,
        mut limiter: impl (FnMut(&mut T) -> &mut dyn ResourceLimiter) + Send + Sync + 'static,
    ) {
        self.inner.set_limiter(move |data| limiter(Embedding::data_mut(data)));
    }

    /// Calls `visit` with each reference into the embedder's heap, see [`Caller::visit_roots`](crate::Caller::visit_roots).
    ///
    /// # Errors
    /// Does not fail: while the embedder has the store, no guest function waits.
    pub fn visit_roots(&mut self, mut visit: impl FnMut(&mut u64)) -> Result<(), Error> {
        self.inner.visit_roots(&mut visit)
    }

    /// Lets the interpreter call a function before each instruction, for tools. Native code does not.
    pub fn set_trace(&mut self, trace: Option<TraceFn>) {
        self.inner.set_trace(trace);
    }

    /// Lets the interpreter run as it does where the compiler has not optimised it. For tests.
    #[doc(hidden)]
    pub fn interpret_by_loop(&mut self) {
        self.inner.interpret_by_loop();
    }

    /// The store of the runtime, for tools that need more than the embedding API. Only this crate
    /// can change it: native code that runs in it relies on that.
    ///
    /// ```compile_fail,E0596
    /// # use slotvm::{Engine, Store};
    /// let mut store = Store::new(&Engine::default(), ());
    /// store.runtime().set_trace(None);
    /// ```
    /// ```compile_fail,E0599
    /// # use slotvm::{Engine, Store};
    /// let mut store = Store::new(&Engine::default(), ());
    /// std::mem::swap(store.runtime_mut(), Store::new(&Engine::default(), ()).runtime_mut());
    /// ```
    pub fn runtime(&self) -> &rt::Store {
        &self.inner
    }
}

impl<T: fmt::Debug + 'static> fmt::Debug for Store<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("data", self.data()).field("inner", &self.inner).finish()
    }
}

fn store_config(engine: &Engine) -> StoreConfig {
    let config = engine.config();
    StoreConfig {
        fuel: config.consume_fuel.then_some(0),
        stack_cells: config.stack_cells_max,
        interruption: engine.interruption().cloned(),
        canonical_nans: config.canonical_nans,
        native_stack_bytes_max: config.native_stack_bytes_max,
        memory: config.memory_plan(),
        limits: config.limits.clone(),
    }
}

#[inline]
pub(crate) fn data<T: 'static>(store: &rt::Store) -> &T {
    Embedding::of(store).user_data()
}

#[inline]
pub(crate) fn data_mut<T: 'static>(store: &mut rt::Store) -> &mut T {
    Embedding::of_mut(store).user_data_mut()
}

pub(crate) fn get_fuel(store: &rt::Store) -> Result<u64, Error> {
    let none = || Error::Usage("fuel is not configured for the engine".to_owned());
    store.fuel().ok_or_else(none)
}

/// Does nothing without epochs, even if code polls for the time.
fn set_epoch_deadline(store: &mut rt::Store, ticks_beyond_current: u64) {
    if Embedding::of(store).engine.config().epoch_interruption {
        store.set_epoch_deadline(ticks_beyond_current);
    }
}

/// A store that is borrowed.
#[derive(Debug)]
pub struct StoreContext<'a, T: 'static> {
    pub(crate) inner: &'a rt::Store,
    data: PhantomData<&'a T>,
}

/// A store that is borrowed exclusively.
#[derive(Debug)]
pub struct StoreContextMut<'a, T: 'static> {
    pub(crate) inner: &'a mut rt::Store,
    data: PhantomData<&'a mut T>,
}

impl<'a, T: 'static> StoreContext<'a, T> {
    /// See [`Store::runtime`].
    pub fn runtime(&self) -> &'a rt::Store {
        self.inner
    }

    /// The caller knows that the store's data is a `T`.
    pub(crate) fn new(inner: &'a rt::Store) -> StoreContext<'a, T> {
        StoreContext { inner, data: PhantomData }
    }

    /// The engine of the store.
    pub fn engine(&self) -> &'a Engine {
        Embedding::of(self.inner).engine()
    }

    /// The embedder's data.
    pub fn data(&self) -> &'a T {
        data(self.inner)
    }

    /// The fuel that is left.
    ///
    /// # Errors
    /// Fails if the engine does not [consume fuel](crate::Config::consume_fuel).
    pub fn get_fuel(&self) -> Result<u64, Error> {
        get_fuel(self.inner)
    }
}

impl<'a, T: 'static> StoreContextMut<'a, T> {
    /// The caller knows that the store's data is a `T`.
    pub(crate) fn new(inner: &'a mut rt::Store) -> StoreContextMut<'a, T> {
        StoreContextMut { inner, data: PhantomData }
    }

    /// The engine of the store.
    pub fn engine(&self) -> &Engine {
        Embedding::of(self.inner).engine()
    }

    /// The fuel that is left.
    ///
    /// # Errors
    /// Fails if the engine does not [consume fuel](crate::Config::consume_fuel).
    pub fn get_fuel(&self) -> Result<u64, Error> {
        get_fuel(self.inner)
    }

    /// Sets the fuel that is left.
    ///
    /// # Errors
    /// Fails if the engine does not [consume fuel](crate::Config::consume_fuel).
    pub fn set_fuel(&mut self, fuel: u64) -> Result<(), Error> {
        self.inner.set_fuel(fuel)
    }

    /// The embedder's data.
    pub fn data(&self) -> &T {
        data(self.inner)
    }

    /// The embedder's data.
    pub fn data_mut(&mut self) -> &mut T {
        data_mut(self.inner)
    }

    /// Calls `visit` with each reference into the embedder's heap, see [`Caller::visit_roots`](crate::Caller::visit_roots).
    ///
    /// # Errors
    /// Fails as that does.
    pub fn visit_roots(&mut self, mut visit: impl FnMut(&mut u64)) -> Result<(), Error> {
        self.inner.visit_roots(&mut visit)
    }

    /// Sets the epoch deadline, see [`Store::set_epoch_deadline`]. The result of an epoch callback is applied
    /// afterwards.
    pub fn set_epoch_deadline(&mut self, ticks_beyond_current: u64) {
        set_epoch_deadline(self.inner, ticks_beyond_current);
    }
}

/// Access to a store: a [`Store`], a [`Caller`](crate::Caller), or a reference to one.
pub trait AsContext {
    /// The embedder's data.
    type Data: 'static;

    /// Borrows the store.
    fn as_context(&self) -> StoreContext<'_, Self::Data>;
}

/// Mutable access to a store.
pub trait AsContextMut: AsContext {
    /// Borrows the store exclusively.
    fn as_context_mut(&mut self) -> StoreContextMut<'_, Self::Data>;
}

impl<T: 'static> AsContext for Store<T> {
    type Data = T;

    #[inline]
    fn as_context(&self) -> StoreContext<'_, T> {
        StoreContext::new(&self.inner)
    }
}

impl<T: 'static> AsContextMut for Store<T> {
    #[inline]
    fn as_context_mut(&mut self) -> StoreContextMut<'_, T> {
        StoreContextMut::new(&mut self.inner)
    }
}

impl<T: 'static> AsContext for StoreContext<'_, T> {
    type Data = T;

    fn as_context(&self) -> StoreContext<'_, T> {
        StoreContext::new(self.inner)
    }
}

impl<T: 'static> AsContext for StoreContextMut<'_, T> {
    type Data = T;

    fn as_context(&self) -> StoreContext<'_, T> {
        StoreContext::new(self.inner)
    }
}

impl<T: 'static> AsContextMut for StoreContextMut<'_, T> {
    fn as_context_mut(&mut self) -> StoreContextMut<'_, T> {
        StoreContextMut::new(self.inner)
    }
}

impl<C: AsContext> AsContext for &C {
    type Data = C::Data;

    #[inline]
    fn as_context(&self) -> StoreContext<'_, C::Data> {
        C::as_context(self)
    }
}

impl<C: AsContext> AsContext for &mut C {
    type Data = C::Data;

    #[inline]
    fn as_context(&self) -> StoreContext<'_, C::Data> {
        C::as_context(self)
    }
}

impl<C: AsContextMut> AsContextMut for &mut C {
    #[inline]
    fn as_context_mut(&mut self) -> StoreContextMut<'_, C::Data> {
        C::as_context_mut(self)
    }
}

impl<'a, C: AsContext> From<&'a C> for StoreContext<'a, C::Data> {
    fn from(store: &'a C) -> StoreContext<'a, C::Data> {
        C::as_context(store)
    }
}

impl<'a, C: AsContext> From<&'a mut C> for StoreContext<'a, C::Data> {
    fn from(store: &'a mut C) -> StoreContext<'a, C::Data> {
        C::as_context(store)
    }
}

impl<'a, C: AsContextMut> From<&'a mut C> for StoreContextMut<'a, C::Data> {
    fn from(store: &'a mut C) -> StoreContextMut<'a, C::Data> {
        C::as_context_mut(store)
    }
}
