//! What can go wrong on the command line, and the exit code of each.

use std::io;
use std::path::{Path, PathBuf};

use slotvm_bytecode::text::ParseError;

/// The exit code of a program that traps, as if `abort` had been called.
pub const EXIT_TRAP: u8 = 134;
/// The exit code of wrong usage.
pub const EXIT_USAGE: u8 = 2;
/// The exit code of any other failure.
pub const EXIT_FAILURE: u8 = 1;

/// A failure of a command.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The arguments do not fit the program.
    #[error("{0}")]
    Usage(String),
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Text that is no module; the message shows the place.
    #[error("{0}")]
    Text(Box<ParseError>),
    /// A module that does not decode or verify.
    #[error("{}: {message}", path.display())]
    Module {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// The program stopped with a trap or an error of a host function.
    #[error("{0}")]
    Program(Box<slotvm::Error>),
    /// Output cannot be written.
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
    /// A command failed after it has said why.
    #[error("{0}")]
    Failed(String),
}

impl CliError {
    /// A failure to read or write a file.
    pub fn file(path: &Path) -> impl FnOnce(io::Error) -> CliError + '_ {
        move |source| CliError::File { path: path.to_owned(), source }
    }

    /// A module that does not decode or verify.
    pub fn module(path: &Path, error: impl std::fmt::Display) -> CliError {
        CliError::Module { path: path.to_owned(), message: error.to_string() }
    }

    /// The exit code that tells of it.
    pub fn exit_code(&self) -> u8 {
        match self {
            CliError::Usage(_) => EXIT_USAGE,
            CliError::Program(error) if error.trap_code().is_some() => EXIT_TRAP,
            _ => EXIT_FAILURE,
        }
    }
}

impl From<slotvm::Error> for CliError {
    fn from(error: slotvm::Error) -> CliError {
        CliError::Program(Box::new(error))
    }
}
