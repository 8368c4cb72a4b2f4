//! `vmrun asm` and `vmrun convert`: assemble text or convert WebAssembly into a binary module.

use std::path::Path;

use slotvm_bytecode::{encode, verify};

use crate::error::CliError;
use crate::load::{self, load_module};

/// Writes the module of a source as a binary module, by default beside the source.
///
/// # Errors
/// Fails if the source cannot be loaded, the module does not verify, the output is the source, or it cannot be
/// written.
pub(super) fn write(source: &Path, output: Option<&Path>) -> Result<(), CliError> {
    let module = load_module(source)?;
    let bytes = encode(&module);
    // A binary that does not verify is useless, and the source is at hand to fix the error.
    verify(module).map_err(|error| CliError::module(source, error))?;
    load::write(&load::output(output, source, "bc")?, &bytes)
}
