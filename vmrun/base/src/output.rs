//! Output of commands: text and JSON without characters that control a terminal.

use std::fs;
use std::io::{Write, stdout};
use std::path::Path;

use slotvm_bytecode::printable::{Lines, Printable};

use crate::error::CliError;
use crate::load;

/// Writes a command's output, without characters that control a terminal, since it may contain text of a
/// module. It is not a failure if the reader has gone away (`vmrun ops | head`).
///
/// Names are escaped where they are printed, by the rules of that format, so that disassembled text can be
/// assembled again. So names in `text` contain no control characters.
///
/// # Errors
/// Fails if the output cannot be written.
pub fn print(text: &str) -> Result<(), CliError> {
    let text = Lines(text).to_string();
    match stdout().lock().write_all(text.as_bytes()).map_err(CliError::from) {
        Err(CliError::Closed) => Ok(()),
        result => result,
    }
}

/// Writes a report as JSON. Strings in it have no characters that control a terminal.
///
/// # Errors
/// Fails if the output cannot be written.
pub fn print_json(report: &impl serde::Serialize) -> Result<(), CliError> {
    let json = serde_json::to_string_pretty(report).expect("the report is plain data");
    print(&escaped_json(&json))
}

/// JSON whose unprintable characters are escapes, so that it has the same meaning.
fn escaped_json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len() + 1);
    for c in json.chars() {
        if c == '\n' || Printable(c.encode_utf8(&mut [0; 4])).to_string().starts_with(c) {
            escaped.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            escaped.push_str(&format!("\\u{unit:04x}"));
        }
    }
    escaped.push('\n');
    escaped
}

/// Writes text to a file, or to standard output if its name is `-`.
///
/// # Errors
/// Fails if the file or the output cannot be written.
pub fn write_text(path: &Path, text: &str) -> Result<(), CliError> {
    if load::is_standard(path) {
        print(text)
    } else {
        fs::write(path, text).map_err(CliError::file(path))
    }
}
