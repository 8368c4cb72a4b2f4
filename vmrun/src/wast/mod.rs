//! Runs WebAssembly test scripts (`.wast`), such as the official suite.
//!
//! [`run`] executes the directives of a script in order in one store (`session`), with the module
//! `spectest` that the suite imports from (`spectest`). A directive passes, fails, or is refused because
//! it needs an unsupported proposal. Refusals never count as passed, nor does any directive that uses a
//! module that was refused.

mod session;
mod spectest;
mod values;

use slotvm::{CompileStats, Config};
use wast::Wast;
use wast::lexer::Lexer;
use wast::parser::{self, ParseBuffer};

use session::Session;

/// The outcome of the directives of a script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Number of directives that passed.
    pub n_passed: usize,
    /// Directives that failed.
    pub failed: Vec<Note>,
    /// Directives that need something unsupported.
    pub refused: Vec<Note>,
    /// The compilations of all modules.
    pub compilations: CompileStats,
}

/// A message about a directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Its line, counted from 1.
    pub line: usize,
    /// The reason of the failure, or the unsupported feature.
    pub message: String,
}

/// The reason why a directive does not pass.
#[derive(Debug)]
enum Reason {
    Failed(String),
    /// The script needs unsupported proposals.
    Refused(String),
}

impl Reason {
    fn failed(message: impl std::fmt::Display) -> Reason {
        Reason::Failed(message.to_string())
    }
}

/// Runs a script on an engine.
///
/// # Errors
/// Fails if the text is not a script. The error names the place.
pub fn run(source: &str, config: &Config) -> Result<Outcome, wast::Error> {
    let mut lexer = Lexer::new(source);
    // The suite has comments in right-to-left scripts.
    lexer.allow_confusing_unicode(true);
    let with_text = |mut error: wast::Error| {
        error.set_text(source);
        error
    };
    let buffer = ParseBuffer::new_with_lexer(lexer).map_err(with_text)?;
    let script: Wast<'_> = parser::parse(&buffer).map_err(with_text)?;
    let mut outcome = Outcome::default();
    let mut session = Session::new(config);
    for directive in script.directives {
        let span = directive.span();
        // Finding a line takes a look at all text before it.
        let note = |message| Note { line: span.linecol_in(source).0 + 1, message };
        match session.directive(directive) {
            Ok(()) => outcome.n_passed += 1,
            Err(Reason::Failed(message)) => outcome.failed.push(note(message)),
            Err(Reason::Refused(message)) => outcome.refused.push(note(message)),
        }
    }
    outcome.compilations = session.end();
    Ok(outcome)
}
