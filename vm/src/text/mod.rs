//! The text form, `.vasm`: the assembler [`parse`](fn@parse) and the disassembler [`print`](fn@print).
//!
//! `docs/text.md` specifies the grammar. The two are inverse: `parse(print(module)) == module` for every
//! module whose code consists of instructions, valid or not. The order of tables, unused entries, odd names,
//! source lines and the bits of NaNs survive the round trip. Neither verifies the module.
//!
//! The assembler, by file: `lexer` splits the text into tokens, and `cursor` reads them. `parse` parses items
//! and `body` functions, with `space` for names and `tables` for types and shapes. `link` resolves names and
//! encodes code. The disassembler: `print_module` writes items and `disasm` functions, with `name_table` for names.
//! Both use `literal` for numbers and strings, and `words` for reserved words.
//!
//! Guarantees: the assembler does not panic on any text, nor the disassembler on any module. Neither recurses
//! on its input. Both take linear time, and the text is linear in the size of the module.
//!
//! ```
//! use slotvm_bytecode::text;
//!
//! let module = text::parse("func square(x: i64) -> i64 { local.get x dup i64.mul return }")?;
//! assert_eq!(text::parse(&text::print(&module)?)?, module);
//! let error = text::parse("func f() { cal f }").unwrap_err();
//! assert_eq!((error.line(), error.column()), (1, 12));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod body;
mod cursor;
mod disasm;
mod error;
mod lexer;
mod link;
pub mod literal;
mod name_table;
mod parse;
mod pending;
mod print;
mod print_module;
mod space;
mod tables;
mod words;

pub use disasm::FuncPrinter;
pub use error::{Diagnostic, ParseError};
pub use print::{PrintError, PrintOptions, Printer};

use crate::module::Module;

/// Options of the assembler.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct ParseOptions {
    /// Whether functions without a `.line` directive get the line numbers of the text as source lines.
    pub record_lines: bool,
}

/// Whether an item can start with a word.
pub(crate) fn is_item(word: &str) -> bool {
    words::is_item(word)
}

/// Assembles a module. Does not verify it.
///
/// # Errors
/// Fails if the text is malformed or uses a name that it does not define.
pub fn parse(source: &str) -> Result<Module, ParseError> {
    parse_with(source, ParseOptions::default())
}

/// Assembles a module with options. Does not verify it.
///
/// # Errors
/// Fails if the text is malformed or uses a name that it does not define.
pub fn parse_with(source: &str, options: ParseOptions) -> Result<Module, ParseError> {
    parse::parse(source, options)
}

/// Disassembles a module to text that assembles to the same module.
///
/// # Errors
/// Fails if code does not consist of instructions.
pub fn print(module: &Module) -> Result<String, PrintError> {
    print_with(module, PrintOptions::default())
}

/// Disassembles a module with options.
///
/// # Errors
/// Fails if code does not consist of instructions.
pub fn print_with(module: &Module, options: PrintOptions) -> Result<String, PrintError> {
    Printer::new(module).module(options)
}
