//! `vmrun test`: runs file tests.

use slotvm_filetests::runner;

use super::print;
use crate::cli::TestArgs;
use crate::error::CliError;

pub(super) fn test(args: &TestArgs) -> Result<(), CliError> {
    let mut cases = Vec::new();
    for path in &args.paths {
        if !path.exists() {
            return Err(CliError::Usage(format!("there is no {}", path.display())));
        }
        cases.extend(runner::find(path).map_err(CliError::file(path))?);
    }
    let mut n_failed = 0;
    for case in &cases {
        if let Err(message) = runner::run(case, args.bless) {
            n_failed += 1;
            eprintln!("{}: {message}\n", case.display());
        }
    }
    print(&format!("{} passed, {n_failed} failed\n", cases.len() - n_failed))?;
    match n_failed {
        0 if cases.is_empty() => Err(CliError::Failed("there are no cases".into())),
        0 => Ok(()),
        n => Err(CliError::Failed(format!("{n} cases failed"))),
    }
}
