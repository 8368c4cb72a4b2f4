//! Every program prints the expected output in every engine.
//!
//! The expected outputs were made by programs in other languages, from published algorithms, test
//! vectors and library functions, not by a slotvm engine.

use std::fs;
use std::path::Path;

use similar::TextDiff;

use crate::binary::{ENGINES, vmrun_line};
use crate::{kernels, passes, programs};

#[test]
fn every_program_in_every_engine() {
    programs::check_all(|program| {
        let path = &program.path;
        check(&path.with_extension("bc"), "", &path.with_extension("expected"), &ENGINES)
    });
}

#[test]
fn every_kernel_in_every_engine() {
    kernels::check_all(|kernel| {
        let size = format!("-- {}", kernel.size("default-size")?);
        check(&kernel.path, &size, &kernel.beside("expected"), &ENGINES)
    });
}

#[test]
fn every_program_by_parts_of_the_passes() {
    let engines: Vec<String> =
        passes::parts().iter().map(|part| format!("--jit --passes {part}")).collect();
    let engines: Vec<&str> = engines.iter().map(String::as_str).collect();
    programs::check_all(|program| {
        let path = &program.path;
        check(&path.with_extension("bc"), "", &path.with_extension("expected"), &engines)
    });
    kernels::check_all(|kernel| {
        let size = format!("-- {}", kernel.size("default-size")?);
        check(&kernel.path, &size, &kernel.beside("expected"), &engines)
    });
}

/// Checks the output of a program in these engines.
pub(crate) fn check(
    program: &Path,
    args: &str,
    expected: &Path,
    engines: &[&str],
) -> Result<(), String> {
    let expected = fs::read_to_string(expected).map_err(|error| error.to_string())?;
    engines.iter().try_for_each(|engine| check_engine(program, engine, args, &expected))
}

fn check_engine(program: &Path, engine: &str, args: &str, expected: &str) -> Result<(), String> {
    let ran = vmrun_line(program, &format!("{engine} {args}"));
    if ran.stdout != expected {
        let diff = TextDiff::from_lines(expected, &ran.stdout);
        let diff = diff.unified_diff().header("expected", "printed").to_string();
        return Err(format!("{engine}: wrong output\n{diff}{}", ran.stderr));
    }
    match (ran.code, ran.stderr.as_str()) {
        (0, "") => Ok(()),
        (code, stderr) => Err(format!("{engine}: exit code {code}\n{stderr}")),
    }
}
