//! The WASI context of `vmrun`: arguments, standard streams, and what `--dir` and `--env` name.

use std::path::Path;

use slotvm::Module;
use slotvm_wasi::{MODULE, WasiCtx};

use crate::cli::GuestArgs;
use crate::error::CliError;

/// Whether a module imports anything from WASI.
pub fn is_imported_by(module: &Module) -> bool {
    module.imports().any(|import| import.module() == MODULE)
}

/// The WASI context of a program. Its first argument is the name of its file. It reads the
/// standard input of this process; its output is discarded unless it inherits the standard output and error too.
///
/// # Errors
/// Fails if a directory cannot be opened, or an environment variable is not set.
pub fn context(
    program: &Path,
    guest: &GuestArgs,
    inherits_output: bool,
) -> Result<WasiCtx, CliError> {
    let mut builder = WasiCtx::builder();
    let name = program.file_name().unwrap_or_default();
    builder.arg(name.to_string_lossy()).args(&guest.args).inherit_stdin();
    if inherits_output {
        builder.inherit_stdout().inherit_stderr();
    }
    for variable in &guest.env {
        match variable.split_once('=') {
            Some((name, value)) => builder.env(name, value),
            None => builder.env(variable, inherited(variable)?),
        };
    }
    for dir in &guest.dir {
        let (host, guest) = dir.split_once("::").unwrap_or((dir, dir));
        builder.preopened_dir(host, guest).map_err(CliError::file(Path::new(host)))?;
    }
    Ok(builder.build())
}

/// An environment variable of this process.
fn inherited(name: &str) -> Result<String, CliError> {
    std::env::var(name)
        .map_err(|error| CliError::Usage(format!("environment variable `{name}`: {error}")))
}
