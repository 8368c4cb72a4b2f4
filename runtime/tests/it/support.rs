//! Shared code of the tests.

use std::sync::Arc;

use slotvm_bytecode::{FuncType, TrapCode, ValType, VerifiedModule, n_cells, text, verify};
use slotvm_runtime::{
    Error, Extern, FuncHandle, HostCall, HostFn, InstanceId, Store, StoreConfig, Trap,
};

/// A verified module from its text.
pub(crate) fn module(source: &str) -> Arc<VerifiedModule> {
    let module = text::parse(source).unwrap_or_else(|error| panic!("{error}"));
    Arc::new(verify(module).unwrap_or_else(|error| panic!("{error}")))
}

/// A store with one instance.
pub(crate) struct Program {
    pub(crate) store: Store,
    pub(crate) instance: InstanceId,
}

impl Program {
    /// An instance of a module without imports in a store with the default configuration.
    pub(crate) fn new(source: &str) -> Program {
        Program::with(StoreConfig::default(), source)
    }

    /// An instance of a module without imports.
    pub(crate) fn with(config: StoreConfig, source: &str) -> Program {
        Program::with_imports(config, source, |_| Vec::new())
            .expect("the module can be instantiated")
    }

    /// An instance of a module with imports.
    pub(crate) fn with_imports(
        config: StoreConfig,
        source: &str,
        imports: impl FnOnce(&mut Store) -> Vec<Extern>,
    ) -> Result<Program, Error> {
        let mut store = Store::new(config, Box::new(()));
        let imports = imports(&mut store);
        let instance = store.instantiate(module(source), &imports)?;
        Ok(Program { store, instance })
    }

    /// The function with a name, of the names section.
    pub(crate) fn func(&self, name: &str) -> FuncHandle {
        func(&self.store, self.instance, name)
    }

    /// Calls a function.
    pub(crate) fn call(&mut self, name: &str, args: &[u64]) -> Result<Vec<u64>, Error> {
        let func = self.func(name);
        call(&mut self.store, func, args)
    }

    /// Calls a function that traps.
    pub(crate) fn trap(&mut self, name: &str, args: &[u64]) -> Trap {
        match self.call(name, args) {
            Err(Error::Trap(trap)) => trap,
            other => panic!("expected a trap, got {other:?}"),
        }
    }

    /// Asserts that a function traps in a function at a source line.
    #[track_caller]
    pub(crate) fn expect_trap(
        &mut self,
        name: &str,
        args: &[u64],
        code: TrapCode,
        at: (&str, u32),
    ) {
        let trap = self.trap(name, args);
        let place = &trap.frames()[0];
        assert_eq!((place.func, place.offset), (trap.func, trap.offset));
        let found = (trap.code, place.func_name(), place.line());
        assert_eq!(found, (code, at.0.to_owned(), Some(at.1)), "{trap}");
    }
}

/// The function of an instance with a name, of the names section.
pub(crate) fn func(store: &Store, instance: InstanceId, name: &str) -> FuncHandle {
    let module = store.module(instance);
    let index = (0..module.n_funcs()).find(|&f| module.func_name(f) == name);
    store.instance_func(instance, index.unwrap_or_else(|| panic!("no function {name}")))
}

/// Calls a function of a store.
pub(crate) fn call(store: &mut Store, func: FuncHandle, args: &[u64]) -> Result<Vec<u64>, Error> {
    let n_results = n_cells(&store.func_type(func).results);
    let mut cells = args.to_vec();
    cells.resize(args.len().max(n_results), 0);
    store.call(func, &mut cells)?;
    cells.truncate(n_results);
    Ok(cells)
}

/// A host function.
pub(crate) fn host_func(
    store: &mut Store,
    params: &[ValType],
    results: &[ValType],
    f: impl Fn(&mut HostCall<'_>) -> Result<(), Error> + Send + Sync + 'static,
) -> Extern {
    let ty = FuncType::new(params, results);
    Extern::Func(store.new_host_func(ty, HostFn::new(f)).expect("the store has room"))
}

/// The configuration with an amount of fuel.
pub(crate) fn fuel(fuel: u64) -> StoreConfig {
    StoreConfig { fuel: Some(fuel), ..StoreConfig::default() }
}

/// The configuration with a deterministic stack of this many cells.
pub(crate) fn stack_cells(cells: u64) -> StoreConfig {
    StoreConfig { stack_cells: Some(cells), ..StoreConfig::default() }
}

/// An `i32` as a cell.
pub(crate) fn i32(value: i32) -> u64 {
    u64::from(value as u32)
}
