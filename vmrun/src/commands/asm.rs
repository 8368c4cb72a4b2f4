//! `vmrun asm`: assembles text into a binary module.

use std::fs;

use slotvm_bytecode::{encode, verify};

use crate::cli::AsmArgs;
use crate::error::CliError;
use crate::load::load_module;

pub(super) fn asm(args: &AsmArgs) -> Result<(), CliError> {
    let module = load_module(&args.source)?;
    let bytes = encode(&module);
    // A binary that does not verify is useless, and the source is at hand to fix the error.
    verify(module).map_err(|error| CliError::module(&args.source, error))?;
    let output = args.output.clone().unwrap_or_else(|| args.source.with_extension("bc"));
    if output == args.source {
        let message = format!("{} would be overwritten; name another --output", output.display());
        return Err(CliError::Usage(message));
    }
    fs::write(&output, bytes).map_err(CliError::file(&output))
}
