//! Errors of loading, linking, instantiating and running: one enum, with the errors of the stages as sources.

use std::fmt;
use std::io;
use std::path::PathBuf;

use slotvm_bytecode::load::LoadError;
use slotvm_bytecode::printable::Printable;
use slotvm_bytecode::{DecodeError, TrapCode, VerifyError, text};

use crate::backtrace::{Backtrace, Frame};
use crate::trap::Trap;

/// Error of loading a module, or of an operation of a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file of a module cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The bytes are not a module in the binary form.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The text of a module has an error.
    #[error(transparent)]
    Parse(#[from] text::ParseError),
    /// The bytes are of WebAssembly, but cannot be imported.
    #[cfg(feature = "wasm")]
    #[error(transparent)]
    Wasm(#[from] slotvm_bytecode::wasm::Error),
    /// The bytes are neither a binary module nor text.
    #[error("neither a binary module nor UTF-8 text")]
    UnknownFormat,
    /// The module breaks a rule.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// Native code cannot be made: a function is too large, the machine is not supported, or the system gives no
    /// memory for it.
    #[error(transparent)]
    Compile(Box<dyn std::error::Error + Send + Sync>),
    /// A precompiled module is not used: it was changed, is for another engine, or is none.
    #[error(transparent)]
    Precompiled(Box<dyn std::error::Error + Send + Sync>),
    /// A directory cannot be a cache of native code.
    #[error("cannot use {} as a cache: {source}", directory.display())]
    Cache {
        /// Which directory.
        directory: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Guest code trapped.
    #[error(transparent)]
    Trap(#[from] Trap),
    /// An active segment does not fit its memory or table when an instance is made.
    #[error("{kind} segment {index}: {code}")]
    Segment {
        /// [`TrapCode::MemoryOutOfBounds`] or [`TrapCode::TableOutOfBounds`].
        code: TrapCode,
        /// `data` or `element`.
        kind: &'static str,
        /// Which segment.
        index: u32,
    },
    /// The system gives no thread to watch the time of calls.
    #[error("no thread to watch the time of calls: {0}")]
    Thread(#[source] io::Error),
    /// A host function failed.
    #[error(transparent)]
    Host(HostError),
    /// The imports of a module do not fit it.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A limit of the store would be exceeded.
    #[error("limit {name} ({max}) exceeded: {wanted} wanted")]
    Limit {
        /// The name of the limit.
        name: &'static str,
        /// Its value.
        max: u64,
        /// The requested amount.
        wanted: u64,
    },
    /// The [`crate::ResourceLimiter`] of the store does not let something be made.
    #[error("the store's limiter refused {what} of {wanted} {unit}")]
    Refused {
        /// The kind of object.
        what: &'static str,
        /// Its size.
        wanted: u64,
        /// The unit of the limit.
        unit: &'static str,
    },
    /// The operating system did not give memory.
    #[error("cannot allocate {bytes} bytes for {what}")]
    OutOfMemory {
        /// The purpose of the memory.
        what: &'static str,
        /// The number of bytes.
        bytes: u64,
    },
    /// A memory has less address space than native code relies on, because the system gave no more or
    /// because another engine made it, and so has the code that was to take its place
    /// ([`crate::Store::instantiate_native`]). Code that checks each access, see
    /// [`crate::MemoryPlan::CHECKED`], can use any memory.
    #[error(
        "native code relies on {needed} bytes of address space for memory 0, which has {found}"
    )]
    AddressSpace {
        /// Bytes that the code relies on.
        needed: u64,
        /// Bytes that there are.
        found: u64,
    },
    /// The embedder asked for something that makes no sense, such as a call with too few cells.
    #[error("{0}")]
    Usage(String),
}

/// Error of linking a module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The number of imports given is not the number that the module takes.
    #[error("expected {expected} imports, found {found}")]
    Count {
        /// Imports of the module.
        expected: usize,
        /// Imports given.
        found: usize,
    },
    /// Nobody provides an import.
    #[error(
        "import `{}` `{}`: nothing has this name, expected {expected}",
        Printable(module),
        Printable(name)
    )]
    Missing {
        /// The module that the import names.
        module: String,
        /// The name of the import there.
        name: String,
        /// The type that the importing module expects.
        expected: String,
    },
    /// An import is of another kind or type.
    #[error(
        "import `{}` `{}`: expected {expected}, found {found}",
        Printable(module),
        Printable(name)
    )]
    Type {
        /// The module that the import names.
        module: String,
        /// The name of the import there.
        name: String,
        /// The type that the importing module expects.
        expected: String,
        /// The type of the given object.
        found: String,
    },
}

impl Error {
    /// The error of whoever makes native code.
    pub fn compile(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::Compile(error.into())
    }

    /// The error of a precompiled module that is not used.
    pub fn precompiled(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::Precompiled(error.into())
    }

    /// The error of a host function.
    pub fn host(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::Host(HostError { source: error.into(), backtrace: Backtrace::default() })
    }

    /// The guest frames through which the error has come: for a trap, those that were active when it happened; for the error
    /// of a host function, those that were active when that was called. `None` for errors of other kinds, which have none.
    pub fn backtrace(&self) -> Option<&Backtrace> {
        match self {
            Error::Trap(trap) => Some(trap.backtrace()),
            Error::Host(error) => Some(&error.backtrace),
            _ => None,
        }
    }

    /// The trap that the error is, if it is one; a segment that does not fit counts as one.
    pub fn trap_code(&self) -> Option<TrapCode> {
        match self {
            Error::Trap(trap) => Some(trap.code),
            Error::Segment { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Appends the frames of the activation that the error passes through on its way out of a host function, see
    /// [`Error::backtrace`]. Executors call it when a host function has failed.
    pub fn add_frames(&mut self, frames: impl IntoIterator<Item = Frame>, n_omitted: u64) {
        match self {
            Error::Trap(trap) => trap.add_frames(frames, n_omitted),
            Error::Host(error) => error.backtrace.add_frames(frames, n_omitted),
            _ => {}
        }
    }
}

/// An error that a host function has returned, with the guest frames that were active when it was called.
///
/// Its `Display` writes the message of the host's own error, and its source is the source of that one. Its `Debug` writes the
/// backtrace, too.
pub struct HostError {
    source: Box<dyn std::error::Error + Send + Sync>,
    backtrace: Backtrace,
}

impl HostError {
    /// The guest frames that were active when the host function was called, innermost first. None where the host has called
    /// the function itself.
    pub fn backtrace(&self) -> &Backtrace {
        &self.backtrace
    }

    /// The host's own error, if it is of this type.
    pub fn downcast_ref<E: std::error::Error + 'static>(&self) -> Option<&E> {
        self.source.downcast_ref()
    }

    /// Whether the host's own error is of this type.
    pub fn is<E: std::error::Error + 'static>(&self) -> bool {
        self.source.is::<E>()
    }

    /// The host's own error.
    pub fn into_inner(self) -> Box<dyn std::error::Error + Send + Sync> {
        self.source
    }
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.source, f)
    }
}

impl fmt::Debug for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.source, f)?;
        if self.backtrace.frames().is_empty() { Ok(()) } else { write!(f, "\n{}", self.backtrace) }
    }
}

impl std::error::Error for HostError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.source()
    }
}

impl From<LoadError> for Error {
    fn from(error: LoadError) -> Error {
        match error {
            LoadError::Decode(error) => Error::Decode(error),
            LoadError::Text(error) => Error::Parse(error),
            #[cfg(feature = "wasm")]
            LoadError::Wasm(error) => Error::Wasm(error),
            _ => Error::UnknownFormat,
        }
    }
}

/// Reason for which an instruction does not complete.
pub(crate) enum Stop {
    /// A trap.
    Trap(TrapCode),
    /// Something else has failed; if it is a trap, it lacks the frames that are active.
    Error(Error),
}

impl From<TrapCode> for Stop {
    fn from(code: TrapCode) -> Stop {
        Stop::Trap(code)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Error(error)
    }
}

/// Fails with the limit's name if `wanted` is more than `max`.
pub(crate) fn check_limit(name: &'static str, max: u64, wanted: u64) -> Result<(), Error> {
    if wanted > max { Err(Error::Limit { name, max, wanted }) } else { Ok(()) }
}
