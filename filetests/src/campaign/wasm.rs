//! Fuzz target: bytes as a WebAssembly module, with its names and its DWARF.

use slotvm_bytecode::limits;
use slotvm_bytecode::wasm::{Error, import, import_in_parallel};

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
    match imported {
        Ok(module) => {
            // The verifier is linear in the imported module, which is linear in the input.
            let n_bytes = slotvm_bytecode::encode(&module).len().max(bytes.len());
            bytecode::check_valid_module(module, n_bytes)
        }
        Err(error) => check_error(&error, bytes.len()).map(|()| Verdict::Refused),
    }
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
