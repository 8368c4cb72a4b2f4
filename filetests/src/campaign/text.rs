//! Fuzz target: text as a module, assembled, printed and assembled again, encoded and verified.

use slotvm_bytecode::text::{ParseError, parse, print};
use slotvm_bytecode::{decode, encode};

use super::{Verdict, bytecode, ensure, measured};

/// Limit of the memory for assembling, in bytes for each byte of the text.
pub const PARSE_BYTES_PER_BYTE: u64 = 512;

/// Checks the assembler and the disassembler. Invalid UTF-8 is replaced.
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
    let again =
        parse(&printed).map_err(|error| format!("the printed text does not assemble: {error}"))?;
    ensure(again == module, || format!("the printed text is another module:\n{printed}"))?;
    let encoded = encode(&module);
    // A module that exceeds the limits of the binary form has no binary form.
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
        ensure(names_all, || format!("the error lacks a place: {diagnostic:?}"))?;
    }
    ensure(!error.diagnostics().is_empty(), || "the error has no diagnostics".to_owned())?;
    let report = error.to_string();
    let place = format!("<text>:{}:{}", error.line(), error.column());
    ensure(report.contains(&place), || format!("the report does not name {place}:\n{report}"))
}
