//! `vmrun verify`: loads and verifies.

use crate::cli::VerifyArgs;
use crate::error::CliError;
use crate::load::load;

pub(super) fn verify(args: &VerifyArgs) -> Result<(), CliError> {
    let mut n_bad = 0;
    for path in &args.programs {
        if let Err(error) = load(path) {
            eprintln!("error: {error}");
            n_bad += 1;
        }
    }
    match n_bad {
        0 => Ok(()),
        n => Err(CliError::Failed(format!("{n} of {} modules are bad", args.programs.len()))),
    }
}
