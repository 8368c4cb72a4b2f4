//! `vmrun opt`: optimises bytecode by way of SSA form.

use slotvm_bytecode::{encode, verify};
use slotvm_ssa::optimize::optimize_with;

use crate::cli::OptArgs;
use crate::error::{CliError, note};
use crate::load::{self, load};
use crate::progress::Progress;

pub(super) fn opt(args: &OptArgs) -> Result<(), CliError> {
    let progress = Progress::spinner("optimising");
    let module = load(&args.program)?.module;
    let optimized = optimize_with(&module, args.passes.set)
        .map_err(|error| CliError::module(&args.program, error))?;
    drop(progress);
    for (func, reason) in &optimized.left {
        note(format_args!("function `{}` is unchanged: {reason}", module.func_name(*func)));
    }
    let bytes = encode(&optimized.module);
    // The verifier enforces the limits of modules.
    verify(optimized.module).map_err(|error| CliError::module(&args.program, error))?;
    load::write(&args.output, &bytes)
}
