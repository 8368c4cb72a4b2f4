//! Errors of the command line, and their exit codes.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anstream::{AutoStream, ColorChoice};
use slotvm::UnknownImportError;
use slotvm_bytecode::printable::Lines;
use slotvm_bytecode::text::ParseError;
#[cfg(feature = "explain")]
use slotvm_views::ViewError;

/// The exit code of a program that traps, as if `abort` had been called.
pub const EXIT_TRAP: u8 = 134;
/// The exit code of wrong usage.
pub const EXIT_USAGE: u8 = 2;
/// The exit code of any other failure.
pub const EXIT_FAILURE: u8 = 1;
/// The exit code after Ctrl-C, as if `SIGINT` had ended the process.
pub const EXIT_INTERRUPTED: u8 = 130;
/// The exit code after the reader of the output has gone away, as if `SIGPIPE` had ended the process.
pub const EXIT_CLOSED: u8 = 141;

/// A failure of a command.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The arguments do not fit the program.
    #[error("{0}")]
    Usage(String),
    /// The command needs a feature that this build does not have.
    #[error("this vmrun was built without {what}; build it with `--features {feature}`")]
    NotBuilt {
        /// The missing thing.
        what: &'static str,
        /// The feature of the package `vmrun`.
        feature: &'static str,
    },
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Text that does not assemble; the message shows the place.
    #[error("{0}")]
    Text(Box<ParseError>),
    /// A module that does not decode or verify.
    #[error("{}: {message}", path.display())]
    Module {
        /// The file.
        path: PathBuf,
        /// The error message.
        message: String,
    },
    /// The program stopped with a trap or an error of a host function.
    #[error("{0}")]
    Program(Box<slotvm::Error>),
    /// The program stopped with a trap; the message has its backtrace.
    #[error("{0}")]
    Trap(String),
    /// Output cannot be written.
    #[error("cannot write: {0}")]
    Output(io::Error),
    /// The reader of the output has gone away.
    #[error("the output is closed")]
    Closed,
    /// A command failed and has reported the reasons; this is the summary.
    #[error("{0}")]
    Failed(String),
    /// A command failed and has reported everything.
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

    /// The exit code for this error.
    pub fn exit_code(&self) -> u8 {
        match self {
            CliError::Usage(_) => EXIT_USAGE,
            CliError::Trap(_) => EXIT_TRAP,
            CliError::Program(error) if error.trap_code().is_some() => EXIT_TRAP,
            CliError::Program(error) if UnknownImportError::of(error).is_some() => EXIT_TRAP,
            CliError::Closed => EXIT_CLOSED,
            _ => EXIT_FAILURE,
        }
    }

    /// Reports the error on standard error, unless it has been reported or the output is closed.
    pub fn report(&self) {
        match self {
            CliError::Closed | CliError::Reported => {}
            // A parse error is a report of several lines with its own heading.
            CliError::Text(error) => match error.to_string().strip_prefix(HEADING) {
                Some(rest) => note_error(rest),
                None => note(error),
            },
            error => note_error(&format!(": {error}")),
        }
    }
}

/// The word that errors start with.
const HEADING: &str = "error";

/// Writes a line like [`note`] after the word "error", which has a colour where errors have.
fn note_error(rest: &str) {
    let stderr = io::stderr();
    let (start, end) = match AutoStream::choice(&stderr) {
        ColorChoice::Never => ("", ""),
        _ => ("\u{1b}[1;31m", "\u{1b}[0m"),
    };
    let _ = writeln!(stderr.lock(), "{start}{HEADING}{end}{}", Lines(rest));
}

/// Writes a line to standard error, without characters that control a terminal, since it may contain text of
/// a module. Failures are ignored: there is nowhere to report them.
pub fn note(line: impl Display) {
    // In one piece: a thread of the compiler may write while the process ends.
    let line = format!("{}\n", Lines(&line.to_string()));
    let _ = io::stderr().write_all(line.as_bytes());
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> CliError {
        match error.kind() {
            io::ErrorKind::BrokenPipe => CliError::Closed,
            _ => CliError::Output(error),
        }
    }
}

#[cfg(feature = "explain")]
impl From<ViewError> for CliError {
    fn from(error: ViewError) -> CliError {
        match error {
            ViewError::NotThere(what) => CliError::Usage(what),
            ViewError::Failed(reason) => CliError::Failed(reason),
            ViewError::Compiler(error) => CliError::from(*error),
        }
    }
}

impl From<slotvm::Error> for CliError {
    fn from(error: slotvm::Error) -> CliError {
        match error {
            // A host function could not write what the program printed.
            slotvm::Error::Host(error) if error.is::<io::Error>() => {
                let error = error.into_inner().downcast::<io::Error>();
                CliError::from(*error.expect("it is one"))
            }
            error => CliError::Program(Box::new(error)),
        }
    }
}
