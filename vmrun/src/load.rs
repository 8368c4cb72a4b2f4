//! Loading programs: `.bc`, `.vasm` and WebAssembly, told apart by their first bytes and endings.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use slotvm_bytecode::text::{self, ParseOptions};
use slotvm_bytecode::{Module, VerifiedModule, decode, verify_in_parallel, wasm};

use crate::error::CliError;

/// A loaded program and how long loading took.
#[derive(Debug)]
pub struct Loaded {
    /// The program.
    pub module: VerifiedModule,
    /// Decoding or assembling.
    pub load: Duration,
    /// Verifying.
    pub verify: Duration,
}

/// Reads a module that need not verify.
///
/// # Errors
/// If the file cannot be read, or is neither a binary module nor text that assembles.
pub fn load_module(path: &Path) -> Result<Module, CliError> {
    let bytes = fs::read(path).map_err(CliError::file(path))?;
    let is_called = |ending: &str| path.extension().is_some_and(|e| e == ending);
    if is_called("wat") {
        // Traps then name the lines of the text.
        let bytes = wat::Parser::new()
            .generate_dwarf(wat::GenerateDwarf::Lines)
            .parse_bytes(Some(path), &bytes)
            .map_err(|error| CliError::module(path, error))?
            .into_owned();
        return wasm::import_in_parallel(&bytes).map_err(|error| CliError::module(path, error));
    }
    if bytes.starts_with(wasm::MAGIC) || is_called("wasm") {
        return wasm::import_in_parallel(&bytes).map_err(|error| CliError::module(path, error));
    }
    // A file that is called binary gets the decoder's error, whatever is left of it.
    if bytes.first() == Some(&0) || is_called("bc") {
        return decode(&bytes).map_err(|error| CliError::module(path, error));
    }
    let Ok(source) = String::from_utf8(bytes) else {
        return Err(CliError::module(path, "neither a binary module nor UTF-8 text"));
    };
    // Traps then name the lines of the text, unless it says its own.
    let options = ParseOptions { record_lines: true };
    text::parse_with(&source, options)
        .map_err(|error| CliError::Text(Box::new(error.with_path(path.display().to_string()))))
}

/// Reads and verifies a program.
///
/// # Errors
/// As [`load_module`], and if the module does not verify.
pub fn load(path: &Path) -> Result<Loaded, CliError> {
    let start = Instant::now();
    let module = load_module(path)?;
    let load = start.elapsed();
    let start = Instant::now();
    let module = verify_in_parallel(module).map_err(|error| CliError::module(path, error))?;
    Ok(Loaded { module, load, verify: start.elapsed() })
}
