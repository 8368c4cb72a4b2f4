//! The error of a function that is not compiled.

use slotvm_bytecode::VerifiedModule;
use slotvm_bytecode::printable::Printable;

use crate::code::error::CodeError;
use crate::compile::failure::{CompileFailure, Fails, Refusal};

/// Error of a function that cannot be compiled.
#[derive(Clone, Debug, thiserror::Error)]
#[error("function {} cannot be compiled: {reason}", Printable(name))]
pub(crate) struct CompileError {
    /// The function, in the module's index space.
    pub(crate) func: u32,
    /// Its name.
    pub(crate) name: String,
    /// The kind of reason.
    pub(crate) failure: CompileFailure,
    /// The reason in words.
    pub(crate) reason: String,
}

impl CompileError {
    pub(super) fn new(func: u32, name: impl Into<String>, refusal: Refusal) -> CompileError {
        let Refusal { failure, reason } = refusal;
        CompileError { func, name: name.into(), failure, reason }
    }

    /// The error of a function whose code is not placed, or which no thread compiles.
    pub(crate) fn of_code(module: &VerifiedModule, func: u32, error: &CodeError) -> CompileError {
        let refusal = error.failure().because(error);
        CompileError::new(func, module.func_name(func), refusal)
    }
}
