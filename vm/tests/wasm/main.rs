//! Import of WebAssembly: the translation of each construct, the errors of rejected modules, and robustness
//! against any input.

mod broken;
mod control;
mod extremes;
mod hints;
mod lazy;
mod lines;
mod names;
mod parallel;
mod proposals;
mod segments;

use std::sync::Arc;

use slotvm_bytecode::load::{LoadOptions, load};
use slotvm_bytecode::wasm::{self, Error};
use slotvm_bytecode::{Module, VerifiedModule, decode, encode, text, verify};

/// Assembles a binary.
fn binary(wat: &str) -> Vec<u8> {
    wat::parse_str(wat).unwrap_or_else(|error| panic!("{error}\n{wat}"))
}

/// Loads and verifies a binary. Its functions are made when they are asked for.
fn load_lazily(bytes: &[u8]) -> Result<Arc<VerifiedModule>, String> {
    let options = LoadOptions { is_lazy: true, ..LoadOptions::default() };
    let loaded = load(bytes, options).map_err(|error| error.to_string())?;
    Ok(Arc::new(loaded.verify(false).map_err(|error| error.to_string())?))
}

/// Imports a text. Checks that the result verifies, that it is the same if functions are made later, and that it
/// survives the binary and the text form.
fn import(wat: &str) -> Module {
    let module = wasm::import(&binary(wat)).unwrap_or_else(|error| panic!("{error}\n{wat}"));
    let lazy = load_lazily(&binary(wat)).unwrap_or_else(|error| panic!("{error}\n{wat}"));
    assert_eq!(lazy.completed().module(), &module, "{wat}");
    let source = text::print(&module).expect("the code decodes");
    assert_eq!(text::parse(&source).as_ref(), Ok(&module), "{source}");
    assert_eq!(decode(&encode(&module)).as_ref(), Ok(&module), "{source}");
    verify(module.clone()).unwrap_or_else(|error| panic!("{error}\n{source}"));
    module
}

/// Returns the error with which a text is rejected.
fn refuse(wat: &str) -> Error {
    let error = wasm::import(&binary(wat)).expect_err(wat);
    assert_eq!(load_lazily(&binary(wat)).expect_err(wat), error.to_string());
    error
}

/// Returns the trimmed lines of a module's text, separated by `; `.
fn flat(module: &Module) -> String {
    let source = text::print(module).expect("the code decodes");
    let lines = source.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("; ")
}
