//! Backtraces of traps and of errors of host functions, with the files of the source.
//!
//! Modules may name the files of their source; WebAssembly does with DWARF. Without names of files, an assembler text
//! is its own source.

use std::path::Path;

use slotvm::{Backtrace, Frame};
use slotvm_bytecode::printable::Printable;

use crate::load::{is_standard, read};
use slotvm_views::names::demangled;

/// The message of an error, and a line for each frame, `at name (offset 0x000c, file.c:12)`.
pub fn text(message: &str, backtrace: &Backtrace, program: &Path) -> String {
    if backtrace.frames().is_empty() {
        return message.to_owned();
    }
    let mut without_file = backtrace.frames().iter().filter(|frame| frame.file().is_none());
    let is_looked_for = without_file.any(|frame| frame.line().is_some());
    let text = if is_looked_for { text_of_lines(program) } else { None };
    format!("{message}\n{}", backtrace.display_with(|frame| frame_text(frame, text.as_deref())))
}

/// The text of a frame. `text` is the file of lines of which the module knows none.
fn frame_text(frame: &Frame, text: Option<&str>) -> String {
    let module = frame.module_name().map_or(String::new(), |name| format!("{}!", Printable(name)));
    let name = frame.func_name();
    let place = match (frame.place(), frame.file().or(text)) {
        (Some(place), Some(file)) => format!(", {}:{place}", Printable(file)),
        (Some(place), None) => format!(", line {place}"),
        (None, _) => String::new(),
    };
    format!("{module}{} (offset {:#06x}{place})", Printable(&demangled(&name)), frame.offset)
}

/// The name of an assembler text, which is the file of all lines unless it names the lines of another source.
fn text_of_lines(program: &Path) -> Option<String> {
    let bytes = read(program).ok()?;
    let text = str::from_utf8(&bytes).ok()?;
    let is_wat = program.extension().is_some_and(|extension| extension == "wat");
    let is_own = !text.starts_with('\0') && !is_wat && !is_standard(program);
    (is_own && !text.contains(".line")).then(|| program.display().to_string())
}
