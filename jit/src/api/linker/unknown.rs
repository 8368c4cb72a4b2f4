//! Stand-ins for imported functions that the linker does not define.

use slotvm_bytecode::FuncType;
use slotvm_bytecode::module::{ImportCall, ImportKind};
use slotvm_bytecode::printable::Printable;
use slotvm_runtime::Error;

use super::{Definition, Linker};
use crate::api::host_func::HostFunc;
use crate::api::module::Module;

/// Error of a program that called an imported function which the linker does not define. The host's call fails
/// with it, as an [`Error::Host`], after [`Linker::define_unknown_imports_as_traps`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the program called its import `{}` `{}`, which is not defined",
    Printable(module),
    Printable(name)
)]
pub struct UnknownImportError {
    /// The module that the import names.
    pub module: String,
    /// The name of the import there.
    pub name: String,
}

impl UnknownImportError {
    /// The call that an error is, if it is one.
    pub fn of(error: &Error) -> Option<&UnknownImportError> {
        match error {
            Error::Host(error) => error.downcast_ref(),
            _ => None,
        }
    }
}

impl<T: 'static> Linker<T> {
    /// Provides the functions that a module imports and that this linker lacks. Whoever calls one fails with an
    /// [`UnknownImportError`]. Memories, tables, globals and leaf functions are not made up.
    pub fn define_unknown_imports_as_traps(&mut self, module: &Module) {
        self.define_unknown(module, |module, name, ty| {
            let error = UnknownImportError { module: module.to_owned(), name: name.to_owned() };
            HostFunc::dynamic::<T>(ty, move |_, _, _| Err(Error::host(error.clone())))
        });
    }

    /// Provides the functions that a module imports and that this linker lacks. They do nothing, and return zeros
    /// and null. Memories, tables, globals and leaf functions are not made up.
    pub fn define_unknown_imports_as_default_values(&mut self, module: &Module) {
        self.define_unknown(module, |_, _, ty| HostFunc::dynamic::<T>(ty, |_, _, _| Ok(())));
    }

    fn define_unknown(&mut self, module: &Module, make: impl Fn(&str, &str, FuncType) -> HostFunc) {
        let bytecode = module.bytecode().module();
        for import in &bytecode.imports {
            let ImportKind::Func(ty, call) = import.kind else { continue };
            if call == ImportCall::Leaf {
                continue;
            }
            let names = self.definitions.entry(import.module.clone()).or_default();
            names.entry(import.name.clone()).or_insert_with(|| {
                let ty = bytecode.types[ty as usize].clone();
                Definition::Host(make(&import.module, &import.name, ty))
            });
        }
    }
}
