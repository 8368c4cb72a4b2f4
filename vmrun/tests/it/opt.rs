//! `vmrun opt`: programs behave the same before and after.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use crate::binary::{Folder, vmrun};
use crate::program_outputs::check;
use crate::{kernels, programs};

const ENGINES: [&str; 3] = ["", "--interp", "--jit"];

/// Optimises a program twice, and runs each result.
fn check_optimized(name: &str, program: &Path, args: &str, expected: &Path) -> Result<(), String> {
    let folder = Folder::new(&format!("opt_{name}"));
    let (once, twice) = (folder.path("once.bc"), folder.path("twice.bc"));
    for (from, to) in [(program, &once), (&once, &twice)] {
        vmrun(&[OsStr::new("opt"), from.as_os_str(), OsStr::new("-o"), to.as_os_str()]).output();
        check(to, args, expected, &ENGINES)?;
    }
    Ok(())
}

#[test]
fn every_program_prints_the_same() {
    programs::check_all(|program| {
        let path = &program.path;
        let expected = path.with_extension("expected");
        check_optimized(&program.name, &path.with_extension("bc"), "", &expected)
    });
}

#[test]
fn every_kernel_prints_the_same() {
    kernels::check_all(|kernel| {
        let size = format!("-- {}", kernel.size("default-size")?);
        check_optimized(&kernel.name, &kernel.path, &size, &kernel.beside("expected"))
    });
}

#[test]
fn text_is_taken_as_well_and_lines_and_names_stay() {
    let folder = Folder::new("opt_text");
    let source = "func divide(dividend: i32, divisor: i32) -> i32 {
  local quotient: i32
  local.get divisor
  br_if divides
  unreachable
divides:
  local.get dividend
  local.get divisor
  i32.div_s
  local.set quotient
  local.get quotient
  local.get quotient
  i32.mul
  return
}
export \"divide\" func divide
";
    let program = folder.write("divide.vasm", source);
    let output = folder.path("divide.bc");
    let (program, output) = (program.to_str().expect("UTF-8"), output.to_str().expect("UTF-8"));
    assert_eq!(vmrun(&["opt", program, "--output", output]).output(), "");
    for engine in [&["run", output][..], &["run", "--jit", output]] {
        let invoke = |values: &[&str]| vmrun(&[engine, &["--invoke", "divide"], values].concat());
        assert_eq!(invoke(&["21", "7"]).output(), "9\n");
        for (values, line) in [(["1", "0"], "line 5"), (["-2147483648", "-1"], "line 9")] {
            let error = invoke(&values).error(134);
            assert!(error.contains(line) && error.contains("divide"), "{error}");
        }
    }
    let text = vmrun(&["dis", output]).output();
    for name in ["dividend", "divisor", "divides"] {
        assert!(text.contains(name), "{text}");
    }
    assert!(!text.contains("quotient"), "it only passed a value on: {text}");
}

#[test]
fn it_fails_as_other_commands_do() {
    let error = vmrun(&["opt", "programs/fib_rec.bc"]).error(2);
    assert!(error.contains("--output <FILE>"), "{error}");
    let error = vmrun(&["opt", "programs/fib_rec.bc", "-o", "no/such/folder.bc"]).error(1);
    assert_eq!(error, "error: no/such/folder.bc: No such file or directory (os error 2)\n");
    let folder = Folder::new("opt_fails");
    let output = folder.path("out.bc");
    let output = output.to_str().expect("UTF-8");
    let bad = folder.write("bad.vasm", "func f() { drop }");
    let error = vmrun(&["opt", bad.to_str().expect("UTF-8"), "-o", output]).error(1);
    assert!(error.contains("bad.vasm"), "{error}");
    assert!(fs::metadata(output).is_err(), "nothing is written");
}
