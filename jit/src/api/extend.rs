//! Instances that grow while they run.

use slotvm_runtime::Error;

use crate::api::instance::Instance;
use crate::api::linker::Linker;
use crate::api::module::Module;
use crate::api::store::AsContextMut;

impl Instance {
    /// Adds a module to the instance, which may be running: a line of a REPL, what `eval` was given, a function that is
    /// compiled when it is first called.
    ///
    /// The functions, types, tables and globals of the module are new ones beside those of the instance. What it imports from
    /// [`Instance::SELF`] is what the instance exports, everything else comes from the linker. When its start function has
    /// returned, what the module exports is what the instance exports, for the host and for the extensions to come; a name
    /// that there was already means the newer thing from then on, and those who have imported the older one keep that.
    /// Returns the part of the instance that was added: it has the exports of the module alone.
    ///
    /// A call from what was there to what was added goes through a table or a reference. A call in the other direction is one
    /// of an imported function. Both cost the same: the address and the instance of the function are read from memory.
    ///
    /// Nothing that code, another thread or a handler of signals may read is moved, so host functions may extend the instance
    /// that has called them. What was added counts as an instance ([`Limits::instances_max`](crate::Limits::instances_max)), and
    /// is freed with the store.
    ///
    /// ```
    /// use slotvm::{Engine, Instance, Linker, Module, Store};
    ///
    /// let engine = Engine::default();
    /// let mut store = Store::new(&engine, ());
    /// let linker = Linker::new(&engine);
    /// let first = r#"
    ///     export "x" global x
    ///     global x: mut i64 = i64.const 20"#;
    /// let instance = linker.instantiate(&mut store, &Module::from_text(&engine, first)?)?;
    /// let lines = [
    ///     r#"import "self" "x" global x: mut i64
    ///        export "twice" func twice
    ///        func twice() -> i64 { global.get x  i64.const 2  i64.mul  return }"#,
    ///     r#"import "self" "x" global x: mut i64
    ///        import "self" "twice" func twice() -> i64
    ///        export "line" func line
    ///        func line() -> i64 { i64.const 21  global.set x  call twice  return }"#,
    /// ];
    /// for line in lines {
    ///     instance.extend(&mut store, &Module::from_text(&engine, line)?, &linker)?;
    /// }
    /// let line = instance.get_typed_func::<(), i64>(&store, "line")?;
    /// assert_eq!(line.call(&mut store, ())?, 42);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Linker::instantiate`]; the instance then exports what it did before.
    ///
    /// # Panics
    /// Panics if the instance, or something that the linker provides, belongs to another store.
    pub fn extend<T: 'static>(
        &self,
        mut store: impl AsContextMut<Data = T>,
        module: &Module,
        linker: &Linker<T>,
    ) -> Result<Instance, Error> {
        let extended = self.id(store.as_context().inner);
        let added = linker.instantiate_beside(&mut store, *self, module)?;
        let inner = store.as_context_mut().inner;
        let part = added.id(inner);
        inner.extend_exports(extended, part);
        Ok(added)
    }
}
