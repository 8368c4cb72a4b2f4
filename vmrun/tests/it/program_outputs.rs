//! Every program prints what is expected, in every engine.
//!
//! The expected outputs were made by programs in other languages, from published algorithms, test
//! vectors and library functions, not by an engine of ours.

use std::fs;

use similar::TextDiff;

use crate::binary::{ENGINES, vmrun_line};
use crate::programs::{Program, check_all};

#[test]
fn every_program_in_every_engine() {
    check_all(|program| ENGINES.iter().try_for_each(|engine| check(program, engine)));
}

fn check(program: &Program, engine: &str) -> Result<(), String> {
    let expected = fs::read_to_string(program.path.with_extension("expected"))
        .map_err(|error| error.to_string())?;
    let ran = vmrun_line(&program.path.with_extension("bc"), engine);
    if ran.stdout != expected {
        let diff = TextDiff::from_lines(&expected, &ran.stdout);
        let diff = diff.unified_diff().header("expected", "printed").to_string();
        return Err(format!("{engine}: wrong output\n{diff}{}", ran.stderr));
    }
    match (ran.code, ran.stderr.as_str()) {
        (0, "") => Ok(()),
        (code, stderr) => Err(format!("{engine}: exit code {code}\n{stderr}")),
    }
}
