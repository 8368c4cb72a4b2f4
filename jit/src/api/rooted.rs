//! References into the embedder's heap, as the host has them: handles, which are visited like all others.

use slotvm_runtime::{self as rt, RootHandle, RootMark};

use crate::api::store::{AsContext, AsContextMut, StoreContext, StoreContextMut, StoreId};

/// A handle of a reference into the embedder's heap: of a value of type `ref` that is not null.
///
/// The bits of a reference mean nothing to slotvm. A collector of the embedder visits and updates them wherever they are
/// ([`Store::visit_roots`](crate::Store::visit_roots)), which may be whenever guest code calls. So host functions get
/// handles, which are visited like everything else, and ask for the bits when they need them.
///
/// A handle that is made during a call of a host function ends with that call: parameters, results of functions that it
/// calls, and what it reads from globals and tables. All others end with the [`RootScope`] in which they are made, or with
/// the store.
///
/// ```
/// use slotvm::{Engine, Module, Rooted, Linker, Store};
///
/// // A heap whose objects are numbers. Whenever one is made, all move.
/// #[derive(Default)]
/// struct Heap {
///     objects: Vec<i64>,
/// }
///
/// let engine = Engine::default();
/// let mut linker: Linker<Heap> = Linker::new(&engine);
/// linker.func_wrap("heap", "alloc", |mut caller: slotvm::Caller<'_, Heap>, value: i64| {
///     let old = std::mem::take(&mut caller.data_mut().objects);
///     let mut new = vec![value];
///     // Bits are the object's place plus one.
///     caller.visit_roots(|root| {
///         new.push(old[*root as usize - 1]);
///         *root = new.len() as u64;
///     })?;
///     caller.data_mut().objects = new;
///     Ok::<_, slotvm::Error>(Some(Rooted::new(&mut caller, 1)))
/// })?;
/// linker.func_wrap("heap", "value", |caller: slotvm::Caller<'_, Heap>, object: Option<Rooted>| {
///     let place = object.expect("it is not null").bits(&caller);
///     caller.data().objects[place as usize - 1]
/// })?;
/// let module = Module::from_text(&engine, r#"
///     import "heap" "alloc" func alloc(i64) -> ref
///     import "heap" "value" func value(ref) -> i64
///     export "run" func run
///     func run() -> i64 {
///       local a: ref
///       i64.const 20  call alloc  local.set a
///       i64.const 22  call alloc  call value  local.get a  call value  i64.add  return
///     }"#)?;
/// let mut store = Store::new(&engine, Heap::default());
/// let instance = linker.instantiate(&mut store, &module)?;
/// let run = instance.get_typed_func::<(), i64>(&store, "run")?;
/// assert_eq!(run.call(&mut store, ())?, 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rooted {
    store: StoreId,
    handle: RootHandle,
}

impl Rooted {
    /// Makes a handle of a reference with these bits, which are not 0.
    ///
    /// # Panics
    /// Panics if the bits are 0, which is null.
    pub fn new(mut store: impl AsContextMut, bits: u64) -> Rooted {
        assert!(bits != 0, "a handle is not null");
        Rooted::of_bits(store.as_context_mut().inner, bits)
    }

    /// The handle of a reference that guest code has; null has none.
    pub(crate) fn from_cell(cell: u64, store: &rt::Store) -> Option<Rooted> {
        (cell != 0).then(|| Rooted::of_bits(store, cell))
    }

    fn of_bits(store: &rt::Store, bits: u64) -> Rooted {
        Rooted { store: StoreId::of(store), handle: store.new_root(bits) }
    }

    /// The bits of the reference, which are those of the object until guest code is called or roots are visited.
    ///
    /// # Panics
    /// Panics if the handle has ended, or is one of another store.
    pub fn bits(&self, store: impl AsContext) -> u64 {
        self.cell(store.as_context().inner)
    }

    /// # Panics
    /// Panics as [`Rooted::bits`] does.
    #[track_caller]
    pub(crate) fn cell(&self, store: &rt::Store) -> u64 {
        self.store.check(store);
        store
            .root(self.handle)
            .expect("a handle is not used after the call or scope that it was made in")
    }
}

/// A store in which the [handles](Rooted) end with this scope that are made by it.
///
/// ```
/// use slotvm::{AsContextMut, Engine, RootScope, Rooted, Store};
///
/// let mut store = Store::new(&Engine::default(), ());
/// let outer = Rooted::new(&mut store, 1);
/// {
///     let mut scope = RootScope::new(&mut store);
///     let inner = Rooted::new(&mut scope, 2);
///     assert_eq!(inner.bits(&scope), 2);
/// }
/// assert_eq!(outer.bits(&store), 1);
/// ```
#[derive(Debug)]
pub struct RootScope<C: AsContextMut> {
    store: C,
    mark: RootMark,
}

impl<C: AsContextMut> RootScope<C> {
    /// Begins a scope.
    pub fn new(mut store: C) -> RootScope<C> {
        let mark = store.as_context_mut().inner.root_mark();
        RootScope { store, mark }
    }
}

impl<C: AsContextMut> Drop for RootScope<C> {
    fn drop(&mut self) {
        self.store.as_context_mut().inner.end_roots(self.mark);
    }
}

impl<C: AsContextMut> AsContext for RootScope<C> {
    type Data = C::Data;

    fn as_context(&self) -> StoreContext<'_, C::Data> {
        self.store.as_context()
    }
}

impl<C: AsContextMut> AsContextMut for RootScope<C> {
    fn as_context_mut(&mut self) -> StoreContextMut<'_, C::Data> {
        self.store.as_context_mut()
    }
}
