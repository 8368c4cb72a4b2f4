//! `vmrun compile`: makes native code of a whole program and writes it, with the program, for later runs.

use std::time::Duration;

use slotvm::{Cache, CacheConfig, Config, Engine, Tier};

use crate::cli::CompileArgs;
use crate::error::CliError;
use crate::load::{self, load_bytes};
use crate::progress::Progress;

pub(super) fn compile(args: &CompileArgs) -> Result<(), CliError> {
    let output = load::output(args.output.path.as_deref(), &args.program, "vmc")?;
    let progress = Progress::spinner("compiling");
    let bytes = load_bytes(&args.program)?;
    // Whoever can read the key of the user's cache can have any code run by this user.
    let key = *Cache::new(&CacheConfig::new())?.key();
    let mut config = Config::new();
    config.tier(Tier::Jit).parallel_compilation(true).code_key(Some(key));
    config.slots(args.code.slots).passes(args.code.passes.set).consume_fuel(args.fuel);
    // Whether there are limits is all that matters to the code.
    config.timeout(args.timeout.then_some(Duration::MAX));
    config.deterministic_stack(args.deterministic_stack.then_some(u64::MAX));
    let compiled = Engine::new(&config)?.precompile_module(&bytes);
    let compiled = compiled.map_err(|error| CliError::module(&args.program, error))?;
    drop(progress);
    load::write(&output, &compiled)
}
