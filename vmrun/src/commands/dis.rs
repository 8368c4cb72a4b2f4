//! `vmrun dis`: disassembles a module into text.

use slotvm_bytecode::text::{self, PrintOptions};

use crate::cli::DisArgs;
use crate::error::CliError;
use crate::load::{self, load_module};
use crate::output::print;

pub(super) fn dis(args: &DisArgs) -> Result<(), CliError> {
    let module = load_module(&args.program)?;
    let options = PrintOptions { offsets: args.offsets };
    let text = text::print_with(&module, options)
        .map_err(|error| CliError::module(&args.program, error))?;
    match args.output.path.as_deref().filter(|output| !load::is_standard(output)) {
        Some(output) => load::write(output, text.as_bytes()),
        None => print(&text),
    }
}
