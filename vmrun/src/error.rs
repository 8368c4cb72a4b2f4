//! What can go wrong on the command line, and the exit code of each.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use slotvm::UnknownImportError;
use slotvm_bytecode::printable::Lines;
use slotvm_bytecode::text::ParseError;

/// The exit code of a program that traps, as if `abort` had been called.
pub const EXIT_TRAP: u8 = 134;
/// The exit code of wrong usage.
pub const EXIT_USAGE: u8 = 2;
/// The exit code of any other failure.
pub const EXIT_FAILURE: u8 = 1;
/// The exit code of a program whose output no one reads any more, as if `SIGPIPE` had ended it.
pub const EXIT_CLOSED: u8 = 141;

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
    Output(io::Error),
    /// The reader of the output has gone away.
    #[error("the output is closed")]
    Closed,
    /// A command failed after it has said why; this sums it up.
    #[error("{0}")]
    Failed(String),
    /// A command failed after it has said all there is to say.
    #[error("failed")]
    Reported,
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
            CliError::Program(error) if UnknownImportError::of(error).is_some() => EXIT_TRAP,
            CliError::Closed => EXIT_CLOSED,
            _ => EXIT_FAILURE,
        }
    }

    /// Says on standard error what has failed, unless no one has to be told.
    pub fn report(&self) {
        match self {
            CliError::Closed | CliError::Reported => {}
            // It comes as a report of several lines, with its own heading.
            CliError::Text(error) => note(error),
            error => note(format_args!("error: {error}")),
        }
    }
}

/// Writes a line to standard error, without what would control a terminal: it may hold text of a module. If no
/// one reads it there is no one to tell, so this cannot fail.
pub fn note(line: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{}", Lines(&line.to_string()));
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> CliError {
        match error.kind() {
            io::ErrorKind::BrokenPipe => CliError::Closed,
            _ => CliError::Output(error),
        }
    }
}

impl From<slotvm::Error> for CliError {
    fn from(error: slotvm::Error) -> CliError {
        match error {
            // A host function could not write what the program printed.
            slotvm::Error::Host(error) => match error.downcast::<io::Error>() {
                Ok(error) => CliError::from(*error),
                Err(error) => CliError::Program(Box::new(slotvm::Error::Host(error))),
            },
            error => CliError::Program(Box::new(error)),
        }
    }
}
