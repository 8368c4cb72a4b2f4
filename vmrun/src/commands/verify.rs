//! `vmrun verify`: loads and verifies modules.

use crate::cli::VerifyArgs;
use crate::error::CliError;
use crate::load::load;
use crate::progress::Progress;

pub(super) fn verify(args: &VerifyArgs) -> Result<(), CliError> {
    let mut n_bad = 0;
    let progress = Progress::steps(args.programs.len(), "verifying");
    for path in &args.programs {
        if let Err(error) = load(path) {
            progress.above(|| error.report());
            n_bad += 1;
        }
        progress.step();
    }
    drop(progress);
    match n_bad {
        0 => Ok(()),
        _ if args.programs.len() == 1 => Err(CliError::Reported),
        n => Err(CliError::Failed(format!("bad modules: {n} of {}", args.programs.len()))),
    }
}
