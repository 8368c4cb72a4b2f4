//! The file tests, one test each.

use std::path::Path;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use slotvm_cases::runner;

fn main() -> ExitCode {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let paths = runner::find(&folder).expect("the folder of cases is there");
    assert!(!paths.is_empty(), "no cases found");
    let trial = |path: std::path::PathBuf| {
        let name = path.strip_prefix(&folder).unwrap_or(&path).display().to_string();
        Trial::test(name, move || runner::run(&path, false).map_err(Failed::from))
    };
    let trials = paths.into_iter().map(trial).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
