//! The text form, `.vasm`: the assembler [`parse`] and the disassembler.
//!
//! `docs/text.md` is its reference.

mod body;
mod cursor;
mod disasm;
mod error;
mod lexer;
mod link;
mod literal;
mod name_table;
mod parse;
mod print;
mod space;
mod tables;
mod words;

pub use disasm::FuncPrinter;
pub use error::{Diagnostic, ParseError};
pub use print::{PrintError, PrintOptions, Printer};

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

/// Disassembles a module: the text assembles to the same module.
///
/// # Errors
/// If code is not made of instructions.
pub fn print(module: &Module) -> Result<String, PrintError> {
    print_with(module, PrintOptions::default())
}

/// Disassembles a module with options.
///
/// # Errors
/// If code is not made of instructions.
pub fn print_with(module: &Module, options: PrintOptions) -> Result<String, PrintError> {
    Printer::new(module).module(options)
}

#[cfg(test)]
mod tests;
