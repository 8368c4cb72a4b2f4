//! `vmrun test`: runs file tests.

use std::fs;

use slotvm_cases::runner;

use crate::cli::TestArgs;
use crate::error::{CliError, note};
use crate::output::{print, print_json};
use crate::progress::Progress;

pub(super) fn test(args: &TestArgs) -> Result<(), CliError> {
    let mut cases = Vec::new();
    for path in &args.paths {
        fs::metadata(path).map_err(CliError::file(path))?;
        cases.extend(runner::find(path).map_err(CliError::file(path))?);
    }
    let mut n_failed = 0;
    let progress = Progress::steps(cases.len(), "testing");
    for case in &cases {
        if let Err(message) = runner::run(case, args.bless) {
            n_failed += 1;
            progress.above(|| note(format_args!("{}: {message}\n", case.display())));
        }
        progress.step();
    }
    drop(progress);
    let n_passed = cases.len() - n_failed;
    match args.json.is_asked {
        true => print_json(&serde_json::json!({ "passed": n_passed, "failed": n_failed }))?,
        false => print(&format!("{n_passed} passed, {n_failed} failed\n"))?,
    }
    match n_failed {
        0 if cases.is_empty() => Err(CliError::Failed("no file tests found".into())),
        0 => Ok(()),
        _ => Err(CliError::Reported),
    }
}
