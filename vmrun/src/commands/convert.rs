//! `vmrun convert`: converts WebAssembly into a binary module.

use std::fs;

use slotvm_bytecode::{encode, verify};

use crate::cli::ConvertArgs;
use crate::error::CliError;
use crate::load::load_module;

pub(super) fn convert(args: &ConvertArgs) -> Result<(), CliError> {
    let module = load_module(&args.source)?;
    let bytes = encode(&module);
    // The verifier enforces the limits of modules.
    verify(module).map_err(|error| CliError::module(&args.source, error))?;
    let output = args.output.clone().unwrap_or_else(|| args.source.with_extension("bc"));
    if output == args.source {
        let message = format!("{} would be overwritten; name another --output", output.display());
        return Err(CliError::Usage(message));
    }
    fs::write(&output, bytes).map_err(CliError::file(&output))
}
