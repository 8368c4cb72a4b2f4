//! `vmrun compile`: makes native code of a whole program and writes it, with the program, for later runs.

use std::fs;

use slotvm::{Cache, CacheConfig, Config, Engine, Tier};

use crate::cli::CompileArgs;
use crate::error::CliError;
use crate::load::load_bytes;

pub(super) fn compile(args: &CompileArgs) -> Result<(), CliError> {
    let output = args.output.clone().unwrap_or_else(|| args.program.with_extension("vmc"));
    if output == args.program {
        let message = format!("{} would be overwritten; name another --output", output.display());
        return Err(CliError::Usage(message));
    }
    let bytes = load_bytes(&args.program)?;
    // Whoever can read the key of the user's cache can have any code run by this user.
    let key = *Cache::new(&CacheConfig::new())?.key();
    let mut config = Config::new();
    config.tier(Tier::Jit).parallel_compilation(true).code_key(Some(key));
    let compiled = Engine::new(&config)?.precompile_module(&bytes);
    let compiled = compiled.map_err(|error| CliError::module(&args.program, error))?;
    fs::write(&output, compiled).map_err(CliError::file(&output))
}
