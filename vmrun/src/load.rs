//! Loads programs: all formats of the library, and WebAssembly text.

#[cfg(feature = "wat")]
use std::borrow::Cow;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use slotvm::Engine;
use slotvm_bytecode::load::{self, LoadError, LoadOptions};
use slotvm_bytecode::{Module, VerifiedModule, encode};

use crate::error::CliError;

/// A loaded program and how long loading took.
#[derive(Debug)]
pub struct Loaded {
    /// The program.
    pub module: VerifiedModule,
    /// Time of decoding or assembling.
    pub load: Duration,
    /// Time of verification.
    pub verify: Duration,
}

/// Reads a module without verifying it.
///
/// # Errors
/// Fails if the file cannot be read, or is neither a binary module nor text that assembles.
pub fn load_module(path: &Path) -> Result<Module, CliError> {
    Ok(load_unverified(path, false)?.into_module())
}

fn load_unverified(path: &Path, is_lazy: bool) -> Result<load::Loaded, CliError> {
    let bytes = fs::read(path).map_err(CliError::file(path))?;
    if Engine::detect_precompiled(&bytes) {
        return Err(CliError::module(path, "a precompiled program, which can only be run"));
    }
    let extension = path.extension().and_then(|extension| extension.to_str());
    // Traps name the lines of the text, unless it has line directives of its own.
    let options = LoadOptions {
        extension,
        record_lines: true,
        is_parallel: true,
        is_lazy,
        ..LoadOptions::default()
    };
    let loaded = if extension == Some("wat") {
        let bytes = assemble_wat(path, &bytes)?;
        load::load(&bytes, LoadOptions { extension: Some("wasm"), ..options })
    } else {
        load::load(&bytes, options)
    };
    loaded.map_err(|error| match error {
        LoadError::Text(error) => {
            CliError::Text(Box::new(error.with_path(path.display().to_string())))
        }
        error => CliError::module(path, error),
    })
}

/// Assembles WebAssembly text, with its lines as DWARF.
#[cfg(feature = "wat")]
fn assemble_wat(path: &Path, text: &[u8]) -> Result<Vec<u8>, CliError> {
    let mut parser = wat::Parser::new();
    let bytes = parser.generate_dwarf(wat::GenerateDwarf::Lines).parse_bytes(Some(path), text);
    bytes.map(Cow::into_owned).map_err(|error| CliError::module(path, error))
}

#[cfg(not(feature = "wat"))]
fn assemble_wat(_: &Path, _: &[u8]) -> Result<Vec<u8>, CliError> {
    Err(CliError::NotBuilt { what: "WebAssembly text", feature: "wat" })
}

/// Reads a program in a binary form: what [`load_module`] makes of it, or a WebAssembly module as it is.
///
/// # Errors
/// Fails if the file cannot be read, or if it is text with errors.
pub fn load_bytes(path: &Path) -> Result<Vec<u8>, CliError> {
    let bytes = fs::read(path).map_err(CliError::file(path))?;
    let is_text = bytes.first().is_none_or(|&first| first != 0);
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("wat") => assemble_wat(path, &bytes),
        Some("bc" | "wasm") => Ok(bytes),
        _ if is_text => Ok(encode(&load_module(path)?)),
        _ => Ok(bytes),
    }
}

/// Reads and verifies a program.
///
/// # Errors
/// Fails like [`load_module`], and if the module does not verify.
pub fn load(path: &Path) -> Result<Loaded, CliError> {
    load_by(path, false)
}

/// Reads and verifies a program like [`load()`]. Its functions are translated when they are first called, if possible.
///
/// # Errors
/// Fails like [`load()`].
pub fn load_lazily(path: &Path) -> Result<Loaded, CliError> {
    load_by(path, true)
}

fn load_by(path: &Path, is_lazy: bool) -> Result<Loaded, CliError> {
    let start = Instant::now();
    let loaded = load_unverified(path, is_lazy)?;
    let load = start.elapsed();
    let start = Instant::now();
    let module = loaded.verify(true).map_err(|error| CliError::module(path, error))?;
    Ok(Loaded { module, load, verify: start.elapsed() })
}
