//! Fuzz target: bytes as a WebAssembly module, with its names and its DWARF.

use std::sync::Arc;

use slotvm_bytecode::load::{LoadOptions, load};
use slotvm_bytecode::wasm::{Error, import, import_in_parallel};
use slotvm_bytecode::{Module, limits};

use super::{Verdict, bytecode, ensure, measured};

/// Limit of the memory for the import, in bytes for each byte of the input.
pub const IMPORT_BYTES_PER_BYTE: u64 = 512;
/// Inputs from this length on are also imported in parallel; shorter ones would not start threads.
pub const PARALLEL_BYTES_MIN: usize = 128 << 10;

/// Checks the import.
///
/// # Errors
/// Returns the promise that the input broke.
pub fn check(bytes: &[u8]) -> Result<Verdict, String> {
    let imported = measured("importing", bytes.len(), IMPORT_BYTES_PER_BYTE, || import(bytes))?;
    if bytes.len() >= PARALLEL_BYTES_MIN {
        let same = match (&imported, &import_in_parallel(bytes)) {
            (Ok(expected), Ok(found)) => expected == found,
            // If there are several errors, it may report another one.
            (Err(_), Err(_)) => true,
            _ => false,
        };
        ensure(same, || "importing in several threads makes another module".to_owned())?;
    }
    check_proof(bytes, &imported)?;
    match imported {
        Ok(module) => {
            // The verifier is linear in the imported module, which is linear in the input.
            let n_bytes = slotvm_bytecode::encode(&module).len().max(bytes.len());
            bytecode::check_valid_module(module, n_bytes)
        }
        Err(error) => check_error(&error, bytes.len()).map(|()| Verdict::Refused),
    }
}

/// Checks what the import hands over to the verifier, which builds with debug assertions compare with what it finds, and
/// functions that are translated later.
fn check_proof(bytes: &[u8], imported: &Result<Module, Error>) -> Result<(), String> {
    let verified = |is_lazy| {
        let options = LoadOptions { extension: Some("wasm"), is_lazy, ..LoadOptions::default() };
        let loaded = load(bytes, options).map_err(|error| error.to_string())?;
        loaded.verify(false).map(Arc::new).map_err(|error| error.to_string())
    };
    let (at_once, lazy) = (verified(false), verified(true));
    let same = match (imported, &at_once, &lazy) {
        (Ok(module), Ok(at_once), Ok(lazy)) => {
            at_once.module() == module && lazy.completed().module() == module
        }
        (Err(error), Err(at_once), Err(lazy)) => {
            [at_once, lazy].into_iter().all(|found| *found == error.to_string())
        }
        // It exceeds a limit of the verifier.
        (Ok(_), Err(at_once), Err(lazy)) => at_once == lazy,
        _ => false,
    };
    ensure(same, || "functions that are translated later differ, or their errors".to_owned())
}

fn check_error(error: &Error, n_bytes: usize) -> Result<(), String> {
    let (offset, says) = match error {
        Error::Invalid { offset, message } => (*offset, !message.is_empty()),
        Error::Unsupported { proposals, offset, message } => {
            (*offset, !proposals.is_empty() && !message.is_empty())
        }
        Error::Limit(name) => (0, limits::ALL.iter().any(|(limit, ..)| limit == name)),
        Error::Build(error) => (0, error.func.is_some() || error.to_string().contains("_MAX")),
        _ => (0, true),
    };
    ensure(says && offset <= n_bytes as u64, || format!("the error lacks a place: {error}"))
}
