//! Import of WebAssembly: the translation of each construct, the errors of rejected modules, and robustness
//! against any input.

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

/// Assembles a binary.
fn binary(wat: &str) -> Vec<u8> {
    wat::parse_str(wat).unwrap_or_else(|error| panic!("{error}\n{wat}"))
}

/// Imports a text. Checks that the result verifies, and survives the binary and the text form.
fn import(wat: &str) -> Module {
    let module = wasm::import(&binary(wat)).unwrap_or_else(|error| panic!("{error}\n{wat}"));
    let source = text::print(&module).expect("the code decodes");
    assert_eq!(text::parse(&source).as_ref(), Ok(&module), "{source}");
    assert_eq!(decode(&encode(&module)).as_ref(), Ok(&module), "{source}");
    verify(module.clone()).unwrap_or_else(|error| panic!("{error}\n{source}"));
    module
}

/// Returns the error with which a text is rejected.
fn refuse(wat: &str) -> Error {
    wasm::import(&binary(wat)).expect_err(wat)
}

/// Returns the trimmed lines of a module's text, separated by `; `.
fn flat(module: &Module) -> String {
    let source = text::print(module).expect("the code decodes");
    let lines = source.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("; ")
}
