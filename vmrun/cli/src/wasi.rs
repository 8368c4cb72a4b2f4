//! The WASI context of `vmrun`: arguments, standard streams, and what `--dir` and `--env` name.

use std::env::VarError;
use std::path::Path;

use slotvm::Module;
use slotvm_wasi::{MODULE, WasiCtx};

use crate::{GuestArgs, Variable};
use vmrun_base::error::CliError;

/// Whether a module imports anything from WASI.
pub fn is_imported_by(module: &Module) -> bool {
    module.imports().any(|import| import.module() == MODULE)
}

/// The WASI context of a program. Its first argument is the name of its file, or that of `--argv0`. It reads the
/// standard input of this process; its output is discarded unless it inherits the standard output and error too.
///
/// # Errors
/// Fails if a directory cannot be opened, or an environment variable of this process is no text.
pub fn context(
    program: &Path,
    guest: &GuestArgs,
    inherits_output: bool,
) -> Result<WasiCtx, CliError> {
    let mut builder = WasiCtx::builder();
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    builder.arg(guest.argv0.as_deref().unwrap_or(&name)).args(&guest.args).inherit_stdin();
    if inherits_output {
        builder.inherit_stdout().inherit_stderr();
    }
    for (name, value) in variables(guest)? {
        builder.env(name, value);
    }
    for dir in &guest.dir {
        let (host, guest) = dir.split_once("::").unwrap_or((dir, dir));
        builder.preopened_dir(host, guest).map_err(CliError::file(Path::new(host)))?;
    }
    Ok(builder.build())
}

/// The environment variables of a program. The last one of a name holds.
///
/// # Errors
/// Fails if one has a value in this process that is no text.
fn variables(guest: &GuestArgs) -> Result<Vec<(&str, String)>, CliError> {
    let mut variables: Vec<(&str, String)> = Vec::new();
    for Variable { name, value } in &guest.env {
        let inherited = || std::env::var(name);
        let value = match value.clone().map_or_else(inherited, Ok) {
            Ok(value) => value,
            Err(VarError::NotPresent) => continue,
            Err(error) => {
                let message = format!("environment variable `{name}`: {error}");
                return Err(CliError::Usage(message));
            }
        };
        variables.retain(|(other, _)| other != name);
        variables.push((name, value));
    }
    Ok(variables)
}
