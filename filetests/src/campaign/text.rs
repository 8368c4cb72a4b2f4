//! Any text as a module: assembled, printed and assembled again, encoded, verified.

use slotvm_bytecode::text::{ParseError, parse, print};
use slotvm_bytecode::{decode, encode};

use super::{Verdict, bytecode, ensure, measured};

/// Bytes of memory that assembling may take for each byte of the text.
pub const PARSE_BYTES_PER_BYTE: u64 = 512;

/// Checks the assembler and the disassembler. Bytes that are no UTF-8 are replaced.
///
/// # Errors
/// Returns the promise that the input broke.
pub fn check(bytes: &[u8]) -> Result<Verdict, String> {
    let source = String::from_utf8_lossy(bytes);
    let parsed = measured("assembling", source.len(), PARSE_BYTES_PER_BYTE, || parse(&source))?;
    let module = match parsed {
        Ok(module) => module,
        Err(error) => return check_error(&error, &source).map(|()| Verdict::Refused),
    };
    let printed = print(&module).map_err(|error| format!("it cannot be printed: {error}"))?;
    let again = parse(&printed).map_err(|error| format!("what is printed: {error}"))?;
    ensure(again == module, || format!("what is printed is another module:\n{printed}"))?;
    let encoded = encode(&module);
    // Of a module that the text declares beyond the limits of the binary form there is none.
    if let Ok(decoded) = decode(&encoded) {
        ensure(decoded == module, || "the binary form is another module".to_owned())?;
    }
    bytecode::check_module(module, source.len())
}

fn check_error(error: &ParseError, source: &str) -> Result<(), String> {
    let n_lines = source.bytes().filter(|&byte| byte == b'\n').count() + 1;
    for diagnostic in error.diagnostics() {
        let names_all = (1..=n_lines).contains(&diagnostic.line())
            && diagnostic.column() >= 1
            && !diagnostic.message().is_empty();
        ensure(names_all, || format!("the error names no place: {diagnostic:?}"))?;
    }
    ensure(!error.diagnostics().is_empty(), || "the error says nothing".to_owned())?;
    let report = error.to_string();
    let place = format!("<text>:{}:{}", error.line(), error.column());
    ensure(report.contains(&place), || format!("the report does not name {place}:\n{report}"))
}
