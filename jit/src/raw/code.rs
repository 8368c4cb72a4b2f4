//! Compiled functions, by name and by number.

use std::fmt;
use std::sync::Arc;

use slotvm_bytecode::module::EntityKind;
use slotvm_bytecode::{FuncType, VerifiedModule};
use slotvm_runtime::Error;

use super::input::Input;
use super::native::NativeCode;
use super::signature::CFunction;
use super::usage;
use crate::api::engine::Engine;

/// The C functions of a module. The pointers that it returns are valid until it is dropped; what they point to
/// can run on many threads at once, each with a [`Context`](super::Context) of its own.
pub struct Code {
    module: Arc<VerifiedModule>,
    native: NativeCode,
}

impl Code {
    pub(super) fn new(engine: &Engine, input: Input) -> Result<Code, Error> {
        let native = engine.native().expect("a compiler has an engine that makes native code");
        let module = input.module.clone();
        Ok(Code { native: NativeCode::compile(native, input)?, module })
    }

    /// An exported function. To call it is sound while this exists, with a context that nothing else uses
    /// meanwhile, whose [memory](super::Context::set_memory) is there, and, if the module uses
    /// [host addresses](super#host-addresses), with parameters for which it accesses what is there.
    ///
    /// # Errors
    /// Fails if there is no such function, it is an import, or of another type.
    pub fn get<F: CFunction>(&self, name: &str) -> Result<F, Error> {
        let export = self.module.module().export(name);
        let export = export.filter(|export| export.kind == EntityKind::Func);
        let found = export.and_then(|export| Some((export.index, self.pointer(export.index)?)));
        let (func, pointer) =
            found.ok_or_else(|| usage(format!("no exported C function {name:?}")))?;
        let (ty, asked) = (self.module.func_type(func), F::ty_of());
        if *ty != asked {
            return Err(usage(format!("function {name:?} has type {ty}, not {asked}")));
        }
        // SAFETY: the function has the signature for its type.
        Ok(unsafe { F::from_pointer(pointer) })
    }

    /// A function by its number in the module, which imported functions start; `None` if it is one of those
    /// or there is none. Its signature is that for [its type](Code::func_type).
    pub fn pointer(&self, func: u32) -> Option<*const u8> {
        let index = func.checked_sub(self.module.n_imported_funcs())?;
        (func < self.module.n_funcs()).then(|| self.native.entry(index as usize))
    }

    /// The type of a function by its number, if there is one.
    pub fn func_type(&self, func: u32) -> Option<&FuncType> {
        (func < self.module.n_funcs()).then(|| self.module.func_type(func))
    }

    /// The bytecode.
    pub fn verified(&self) -> &Arc<VerifiedModule> {
        &self.module
    }

    /// The bytes of memory that the code takes.
    pub fn code_bytes(&self) -> usize {
        self.native.bytes()
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code").field("bytes", &self.code_bytes()).finish_non_exhaustive()
    }
}

const fn assert_send_sync<T: Send + Sync>() {}
const _: () = assert_send_sync::<Code>();
