//! The text form, `.vasm`: the assembler [`parse`] and the disassembler.
//!
//! `docs/text.md` is its reference.

mod body;
mod cursor;
mod error;
mod lexer;
mod link;
mod literal;
mod parse;
mod tables;
mod words;

pub use error::{Diagnostic, ParseError};

use crate::module::Module;

/// How a text is assembled.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct ParseOptions {
    /// Whether functions without a `.line` directive get the lines of the text itself as their source
    /// lines.
    pub record_lines: bool,
}

/// Assembles a module. It is not verified.
///
/// # Errors
/// If the text is malformed or uses a name that it does not define.
pub fn parse(source: &str) -> Result<Module, ParseError> {
    parse_with(source, ParseOptions::default())
}

/// Assembles a module with options. It is not verified.
///
/// # Errors
/// If the text is malformed or uses a name that it does not define.
pub fn parse_with(source: &str, options: ParseOptions) -> Result<Module, ParseError> {
    parse::parse(source, options)
}

#[cfg(test)]
mod tests;
