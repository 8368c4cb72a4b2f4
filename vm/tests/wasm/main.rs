//! The import of WebAssembly: what becomes of each construct, what is refused and how, and that no
//! input hurts it.

mod broken;
mod control;
mod extremes;
mod lines;
mod names;
mod parallel;
mod proposals;
mod segments;

use slotvm_bytecode::wasm::{self, Error};
use slotvm_bytecode::{Module, decode, encode, text, verify};

/// A binary from text.
fn binary(wat: &str) -> Vec<u8> {
    wat::parse_str(wat).unwrap_or_else(|error| panic!("{error}\n{wat}"))
}

/// What a text becomes. It verifies, and survives the binary and the text form.
fn import(wat: &str) -> Module {
    let module = wasm::import(&binary(wat)).unwrap_or_else(|error| panic!("{error}\n{wat}"));
    let source = text::print(&module).expect("code is code");
    assert_eq!(text::parse(&source).as_ref(), Ok(&module), "{source}");
    assert_eq!(decode(&encode(&module)).as_ref(), Ok(&module), "{source}");
    verify(module.clone()).unwrap_or_else(|error| panic!("{error}\n{source}"));
    module
}

/// Why a text is refused.
fn refuse(wat: &str) -> Error {
    wasm::import(&binary(wat)).expect_err(wat)
}

/// The lines of a module's text without the white space at their ends, separated by `; `.
fn flat(module: &Module) -> String {
    let source = text::print(module).expect("code is code");
    let lines = source.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("; ")
}
