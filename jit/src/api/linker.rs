//! Imports by name.

mod observe;
mod unknown;

use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;

use slotvm_bytecode::FuncType;
use slotvm_bytecode::module::{Import, ImportKind};
use slotvm_runtime::{self as rt, Error, LinkError};

use crate::api::caller::Caller;
use crate::api::engine::Engine;
use crate::api::externs::Extern;
use crate::api::host_func::{HostFunc, IntoFunc};
use crate::api::instance::Instance;
use crate::api::leaf::LeafFunc;
use crate::api::module::Module;
use crate::api::store::{AsContext, AsContextMut};
use crate::api::val::Val;

pub use observe::HostCallObserver;
pub use unknown::UnknownImportError;

/// Provides the imports of modules, by name. Functions of the host belong to no store, so that a linker
/// serves many.
pub struct Linker<T: 'static> {
    engine: Engine,
    /// Definitions by module name, then by name.
    definitions: HashMap<String, HashMap<String, Definition>>,
    allow_shadowing: bool,
    data: PhantomData<fn() -> T>,
}

#[derive(Clone)]
enum Definition {
    Host(HostFunc),
    Extern(Extern),
}

impl<T: 'static> Clone for Linker<T> {
    fn clone(&self) -> Linker<T> {
        Linker {
            engine: self.engine.clone(),
            definitions: self.definitions.clone(),
            allow_shadowing: self.allow_shadowing,
            data: PhantomData,
        }
    }
}

impl<T: 'static> fmt::Debug for Linker<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self
            .definitions
            .iter()
            .flat_map(|(module, names)| names.keys().map(move |name| format!("{module}.{name}")));
        let mut names: Vec<_> = names.collect();
        names.sort();
        f.debug_struct("Linker").field("names", &names).finish_non_exhaustive()
    }
}

impl<T: 'static> Linker<T> {
    /// Makes an empty linker.
    pub fn new(engine: &Engine) -> Linker<T> {
        Linker {
            engine: engine.clone(),
            definitions: HashMap::new(),
            allow_shadowing: false,
            data: PhantomData,
        }
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Sets whether a later definition replaces an earlier one of the same name; it is an error otherwise.
    pub fn allow_shadowing(&mut self, allow: bool) -> &mut Linker<T> {
        self.allow_shadowing = allow;
        self
    }

    /// Provides a function of the host: a closure whose types determine the function's type.
    ///
    /// # Errors
    /// Fails if the name is taken.
    pub fn func_wrap<Params, Results>(
        &mut self,
        module: &str,
        name: &str,
        f: impl IntoFunc<T, Params, Results>,
    ) -> Result<&mut Linker<T>, Error> {
        self.insert(module, name, Definition::Host(f.into_func()))
    }

    /// Provides a function of the host of any type. The results are zero or null when the closure is
    /// called.
    ///
    /// # Errors
    /// Fails if the name is taken.
    pub fn func_new(
        &mut self,
        module: &str,
        name: &str,
        ty: FuncType,
        f: impl Fn(Caller<'_, T>, &[Val], &mut [Val]) -> Result<(), Error> + Send + Sync + 'static,
    ) -> Result<&mut Linker<T>, Error> {
        self.insert(module, name, Definition::Host(HostFunc::dynamic(ty, f)))
    }

    /// Provides a leaf function, for imports that are leaves and for others.
    ///
    /// # Errors
    /// Fails if the name is taken.
    pub fn func_wrap_leaf(
        &mut self,
        module: &str,
        name: &str,
        leaf: &LeafFunc,
    ) -> Result<&mut Linker<T>, Error> {
        self.insert(module, name, Definition::Host(leaf.host().clone()))
    }

    /// Provides an object of a store; the linker then serves that store only.
    ///
    /// # Errors
    /// Fails if the name is taken.
    ///
    /// # Panics
    /// Panics if it belongs to another store.
    pub fn define(
        &mut self,
        store: impl AsContext<Data = T>,
        module: &str,
        name: &str,
        item: impl Into<Extern>,
    ) -> Result<&mut Linker<T>, Error> {
        let item = item.into();
        item.entity(store.as_context().inner);
        self.insert(module, name, Definition::Extern(item))
    }

    /// Provides all exports of an instance, under the name of a module.
    ///
    /// # Errors
    /// Fails if a name is taken.
    ///
    /// # Panics
    /// Panics if the instance belongs to another store.
    pub fn instance(
        &mut self,
        store: impl AsContext<Data = T>,
        module: &str,
        instance: Instance,
    ) -> Result<&mut Linker<T>, Error> {
        for (name, item) in instance.exports(store) {
            self.insert(module, &name, Definition::Extern(item))?;
        }
        Ok(self)
    }

    fn insert(
        &mut self,
        module: &str,
        name: &str,
        definition: Definition,
    ) -> Result<&mut Linker<T>, Error> {
        let names = self.definitions.entry(module.to_owned()).or_default();
        let previous = names.insert(name.to_owned(), definition);
        match previous {
            Some(previous) if !self.allow_shadowing => {
                names.insert(name.to_owned(), previous);
                Err(Error::Usage(format!("`{module}` `{name}` is already defined")))
            }
            _ => Ok(self),
        }
    }

    /// Makes an instance and runs its start function.
    ///
    /// # Errors
    /// Fails if an import is missing or does not fit, a limit would be exceeded, a segment does not fit, or
    /// the start function fails.
    ///
    /// # Panics
    /// Panics if something that the linker provides belongs to another store.
    pub fn instantiate(
        &self,
        store: impl AsContextMut<Data = T>,
        module: &Module,
    ) -> Result<Instance, Error> {
        // Look all names up before the store gets functions.
        let definitions: Vec<&Definition> = self.definitions_for(module)?;
        instantiate(store, module, definitions.into_iter())
    }

    /// Looks up the imports of a module once for many instances.
    ///
    /// # Errors
    /// Fails if an import is missing.
    pub fn instantiate_pre(&self, module: &Module) -> Result<InstancePre<T>, Error> {
        let definitions = self.definitions_for(module)?.into_iter().cloned().collect();
        Ok(InstancePre { module: module.clone(), definitions, data: PhantomData })
    }

    /// Makes an instance that is added to another one: what a module imports from [`Instance::SELF`] are exports of that.
    pub(crate) fn instantiate_beside(
        &self,
        mut store: impl AsContextMut<Data = T>,
        extended: Instance,
        module: &Module,
    ) -> Result<Instance, Error> {
        let definition = |import: &Import| {
            if import.module != Instance::SELF {
                return self.definition(module, import).cloned();
            }
            let export = extended.get_export(&store, &import.name);
            let missing = || LinkError::missing(module.bytecode(), import);
            export.map(Definition::Extern).ok_or_else(missing)
        };
        let imports = &module.bytecode().module().imports;
        let definitions: Vec<Definition> =
            imports.iter().map(definition).collect::<Result<_, LinkError>>()?;
        instantiate(store.as_context_mut(), module, definitions.iter())
    }

    fn definitions_for(&self, module: &Module) -> Result<Vec<&Definition>, LinkError> {
        let imports = &module.bytecode().module().imports;
        imports.iter().map(|import| self.definition(module, import)).collect()
    }

    fn definition(&self, module: &Module, import: &Import) -> Result<&Definition, LinkError> {
        let definition = self.definitions.get(&import.module).and_then(|n| n.get(&import.name));
        definition.ok_or_else(|| LinkError::missing(module.bytecode(), import))
    }
}

impl Definition {
    /// The object in a store.
    fn entity(&self, store: &mut rt::Store) -> Result<rt::Extern, Error> {
        match self {
            Definition::Extern(item) => Ok(item.entity(store)),
            Definition::Host(host) => {
                let func = host.in_next_instance(store)?;
                Ok(rt::Extern::Func(func))
            }
        }
    }
}

fn instantiate<'a>(
    mut store: impl AsContextMut,
    module: &Module,
    definitions: impl Iterator<Item = &'a Definition> + Clone,
) -> Result<Instance, Error> {
    let store = store.as_context_mut().inner;
    let bytecode = module.bytecode().module();
    let types = bytecode.imports.iter().zip(definitions.clone());
    let types = types.filter_map(|(import, definition)| match (&import.kind, definition) {
        // What does not fit is refused below.
        (&ImportKind::Func(ty, _), Definition::Host(host)) => {
            (*host.ty() == bytecode.types[ty as usize]).then_some(ty)
        }
        _ => None,
    });
    module.prepare_imports(types)?;
    let imports: Vec<rt::Extern> =
        definitions.map(|definition| definition.entity(store)).collect::<Result<_, Error>>()?;
    Instance::from_entities(store, module, &imports)
}

/// A module whose imports were looked up: many instances can be made of it, in many stores and
/// threads. [`Linker::instantiate_pre`] makes it.
pub struct InstancePre<T: 'static> {
    module: Module,
    definitions: Vec<Definition>,
    data: PhantomData<fn() -> T>,
}

impl<T: 'static> InstancePre<T> {
    /// The module.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Makes an instance and runs its start function.
    ///
    /// # Errors
    /// Fails if an import does not fit, a limit would be exceeded, a segment does not fit, or the start
    /// function fails.
    ///
    /// # Panics
    /// Panics if something that the linker provided belongs to another store.
    pub fn instantiate(&self, store: impl AsContextMut<Data = T>) -> Result<Instance, Error> {
        instantiate(store, &self.module, self.definitions.iter())
    }
}

impl<T: 'static> Clone for InstancePre<T> {
    fn clone(&self) -> InstancePre<T> {
        let (module, definitions) = (self.module.clone(), self.definitions.clone());
        InstancePre { module, definitions, data: PhantomData }
    }
}

impl<T: 'static> fmt::Debug for InstancePre<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InstancePre").field("module", &self.module).finish_non_exhaustive()
    }
}

const fn assert_send_sync<T: Send + Sync>() {}
const _: () = assert_send_sync::<InstancePre<()>>();
const _: () = assert_send_sync::<Linker<()>>();
