//! The reasons why code could not be made or placed, but for functions.

/// The reason why code could not be placed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CodeError {
    /// The code exceeds what tables and direct calls can address.
    #[error("native code of the module exceeds 2 GiB")]
    TooLarge,
    /// Cranelift rejects a trampoline.
    #[error("cannot compile a trampoline: {0}")]
    Trampoline(String),
    /// A trampoline has more parameters and results than Cranelift can pass.
    #[error("cannot compile a trampoline: its function type is too large for the code generator")]
    WideTrampoline,
    /// Cranelift panics.
    #[error("{0}; this is a bug in slotvm")]
    Panic(String),
    /// Compiling needs more stack than this thread has left, and the system starts no thread.
    #[error("cannot start a thread to compile on: {0}")]
    Thread(String),
    /// The system has no memory for code.
    #[error("cannot allocate memory for native code: {0}")]
    Memory(String),
}

impl From<cranelift_module::ModuleError> for CodeError {
    fn from(error: cranelift_module::ModuleError) -> CodeError {
        CodeError::Memory(error.to_string())
    }
}
