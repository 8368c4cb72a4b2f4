//! Instances: modules that are linked and ready to run.

use slotvm_runtime::{self as rt, Error, InstanceId};

use crate::api::externs::{Extern, Global, Memory, Table};
use crate::api::func::Func;
use crate::api::module::Module;
use crate::api::store::{AsContext, AsContextMut, Embedding, StoreId};
use crate::api::typed::{TypedFunc, Values};

/// An instance of a store.
///
/// All methods panic if the store is another one.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Instance {
    store: StoreId,
    id: InstanceId,
}

impl Instance {
    /// The name of the module from which a module that [extends](Instance::extend) an instance imports what that has.
    pub const SELF: &str = "self";

    /// Makes an instance from the module's imports, in their order, and runs its start function.
    /// [`Linker::instantiate`](crate::Linker::instantiate) finds the imports by name.
    ///
    /// # Errors
    /// Fails if an import does not fit, a limit would be exceeded, a segment does not fit, or the start
    /// function fails.
    ///
    /// # Panics
    /// Panics if an import belongs to another store.
    pub fn new(
        mut store: impl AsContextMut,
        module: &Module,
        imports: &[Extern],
    ) -> Result<Instance, Error> {
        let store = store.as_context_mut().inner;
        let imports: Vec<_> = imports.iter().map(|import| import.entity(store)).collect();
        Instance::from_entities(store, module, &imports)
    }

    pub(crate) fn from_entities(
        store: &mut rt::Store,
        module: &Module,
        imports: &[rt::Extern],
    ) -> Result<Instance, Error> {
        let next = store.next_instance();
        let embedding = Embedding::of_mut(store);
        if !embedding.engine().same(module.engine()) {
            let message = "the module and the store belong to different engines";
            return Err(Error::Usage(message.to_owned()));
        }
        embedding.keep_module(next, module);
        let id = module.instantiate(store, imports)?;
        Ok(Instance { store: StoreId::of(store), id })
    }

    #[track_caller]
    pub(crate) fn id(&self, store: &rt::Store) -> InstanceId {
        self.store.check(store);
        self.id
    }

    /// Returns the export with a name.
    pub fn get_export(&self, store: impl AsContext, name: &str) -> Option<Extern> {
        let store = store.as_context().inner;
        let export = store.export(self.id(store), name)?;
        Some(Extern::new(store, export))
    }

    /// Returns all exports, in the order of the module, and then those that were [added](Instance::extend), in the order of
    /// their names. What has the name of an export that was added is left out.
    pub fn exports(&self, store: impl AsContext) -> Vec<(String, Extern)> {
        let store = store.as_context().inner;
        let exports = store.exports(self.id(store)).into_iter();
        exports.map(|(name, export)| (name, Extern::new(store, export))).collect()
    }

    /// The function that it exports under a name.
    pub fn get_func(&self, store: impl AsContext, name: &str) -> Option<Func> {
        self.get_export(store, name)?.into_func()
    }

    /// The function that it exports under a name, with its type made known to Rust.
    ///
    /// # Errors
    /// Fails if there is none, or it is of another type.
    pub fn get_typed_func<P: Values, R: Values>(
        &self,
        store: impl AsContext,
        name: &str,
    ) -> Result<TypedFunc<P, R>, Error> {
        let func = self.get_func(&store, name);
        let none = || Error::Usage(format!("the instance exports no function `{name}`"));
        func.ok_or_else(none)?.typed(store)
    }

    /// The memory that it exports under a name.
    pub fn get_memory(&self, store: impl AsContext, name: &str) -> Option<Memory> {
        self.get_export(store, name)?.into_memory()
    }

    /// The table that it exports under a name.
    pub fn get_table(&self, store: impl AsContext, name: &str) -> Option<Table> {
        self.get_export(store, name)?.into_table()
    }

    /// The global that it exports under a name.
    pub fn get_global(&self, store: impl AsContext, name: &str) -> Option<Global> {
        self.get_export(store, name)?.into_global()
    }

    /// A function by its index in the module, exported or not, for tools.
    ///
    /// # Panics
    /// Panics if the module has no such function.
    pub fn func_at(&self, store: impl AsContext, index: u32) -> Func {
        let store = store.as_context().inner;
        Func::from_handle(store, store.instance_func(self.id(store), index))
    }

    /// A global by its index in the module, exported or not, for hosts that fill the inline caches of guest code. The number of
    /// a [`GlobalId`](crate::builder::GlobalId) is its index.
    ///
    /// # Panics
    /// Panics if the module has no such global.
    pub fn global_at(&self, store: impl AsContext, index: u32) -> Global {
        let store = store.as_context().inner;
        Global::from_handle(store, store.instance_globals(self.id(store))[index as usize])
    }

    /// The instance in the store of the runtime, for tools that look deeper than this API does.
    pub fn runtime_id(&self) -> InstanceId {
        self.id
    }
}
