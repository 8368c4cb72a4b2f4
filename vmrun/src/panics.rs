//! One line for a panic of the compiler. The library catches it, and the program goes on.

use std::panic::{PanicHookInfo, set_hook, take_hook};

use slotvm::{CompileSubject, compiling};

use crate::error::note;

/// Sets the process's panic hook. Panics that nobody catches are reported as before.
pub fn report_in_a_line() {
    let usual = take_hook();
    set_hook(Box::new(move |info: &PanicHookInfo<'_>| match compiling() {
        Some(subject) => note(line(subject, info.payload_as_str().unwrap_or("no message"))),
        None => usual(info),
    }));
}

fn line(subject: CompileSubject, message: &str) -> String {
    format!(
        "internal error: compiling {subject} panicked: {message}; this is a bug in slotvm, please report it"
    )
}
