//! `--invoke`: values of all types, good and bad.

use std::path::PathBuf;

use crate::binary::{ENGINES, Folder, vmrun, vmrun_line};

const SOURCE: &str = "\
export \"same\" func same
export \"refs\" func refs
export \"pair\" func pair
export \"nothing\" func nothing
export \"mem\" memory mem
memory mem 1
func same(a: i32, b: i64, c: f32, d: f64) -> (i32, i64, f32, f64) {
  local.get a  local.get b  local.get c  local.get d  return
}
func refs(f: funcref, e: externref) -> (i32, i32, funcref) {
  local.get f  ref.is_null  local.get e  ref.is_null  ref.func refs  return
}
func pair(a: i64) -> (i64, i64) { local.get a  local.get a  i64.const 1  i64.add  return }
func nothing() { return }
";

fn program(test: &str) -> PathBuf {
    Folder::new(test).write("p.vasm", SOURCE)
}

#[test]
fn values_of_all_types() {
    let program = program("invoke_values");
    for (values, printed) in [
        ("0 0 0 0", "0\n0\n0.0\n0.0\n"),
        ("-1 -1 -1 -1.5", "-1\n-1\n-1.0\n-1.5\n"),
        ("4294967295 18446744073709551615 0.1 0.1", "-1\n-1\n0.1\n0.1\n"),
        ("0xffffffff -0x10 1e10 1e300", "-1\n-16\n10000000000.0\n1e300\n"),
        (
            "-2147483648 -9223372036854775808 inf -inf",
            "-2147483648\n-9223372036854775808\ninf\n-inf\n",
        ),
        ("1_000 1 -0.0 nan", "1000\n1\n-0.0\nnan\n"),
        ("1 1 nan:0x1 -nan", "1\n1\nnan:0x1\n-nan\n"),
    ] {
        for engine in ENGINES {
            let ran = vmrun_line(&program, &format!("--invoke same {values} {engine}"));
            assert_eq!(ran.output(), printed, "{values} {engine}");
        }
    }
    for values in ["-- -1 -2 -.5 -.25", "-1 -- -2 -.5 -.25", "-1 -2 -.5 -.25 --"] {
        let ran = vmrun_line(&program, &format!("--invoke same {values}"));
        assert_eq!(ran.output(), "-1\n-2\n-0.5\n-0.25\n", "{values}");
    }
    let ran = vmrun_line(&program, "--invoke same 1 2 .5 +.1e3");
    assert_eq!(ran.output(), "1\n2\n0.5\n100.0\n");
    for engine in ENGINES {
        let ran = vmrun_line(&program, &format!("{engine} --invoke refs null null"));
        assert_eq!(ran.output(), "1\n1\nfuncref\n", "{engine}");
        let ran = vmrun_line(&program, &format!("{engine} --invoke pair 41"));
        assert_eq!(ran.output(), "41\n42\n", "{engine}");
        assert_eq!(vmrun_line(&program, &format!("--invoke nothing {engine}")).output(), "");
    }
}

#[test]
fn bad_values_are_usage_errors_that_say_which() {
    let program = program("invoke_bad_values");
    let types = "(i32, i64, f32, f64) -> (i32, i64, f32, f64)";
    for (values, message) in [
        ("1 2 3", format!("`same` has type {types}: expected 4 values, found 3")),
        ("1 2 3 4 -- -5", format!("`same` has type {types}: expected 4 values, found 5")),
        ("1 2 3 4 5", format!("`same` has type {types}: expected 4 values, found 5")),
        ("x 2 3 4", "value 1 of `same`: invalid i32 `x`: malformed integer".into()),
        (
            "4294967296 2 3 4",
            "value 1 of `same`: invalid i32 `4294967296`: integer does not fit `i32`".into(),
        ),
        ("1 1.5 3 4", "value 2 of `same`: invalid i64 `1.5`: malformed integer".into()),
        (
            "1 2 1e99 4",
            "value 3 of `same`: invalid f32 `1e99`: the number is too large for `f32`".into(),
        ),
        ("1 2 .x 4", "value 3 of `same`: invalid f32 `0.x`: malformed float".into()),
        ("1 2 . 4", "value 3 of `same`: invalid f32 `.`: malformed float".into()),
        ("1 2 3 four", "value 4 of `same`: invalid f64 `four`: malformed float".into()),
    ] {
        let error = vmrun_line(&program, &format!("--invoke same {values}")).error(2);
        assert_eq!(error, format!("error: {message}\n"));
    }
    let error = vmrun_line(&program, "--invoke refs 1 null").error(2);
    assert_eq!(error, "error: value 1 of `refs`: invalid funcref `1`: expected `null`\n");
}

#[test]
fn unknown_functions_are_usage_errors_that_name_the_known_ones() {
    let program = program("invoke_unknown");
    let known = "`same`, `refs`, `pair`, `nothing`";
    for name in ["nope", "mem"] {
        let error = vmrun_line(&program, &format!("--invoke {name}")).error(2);
        assert_eq!(
            error,
            format!("error: the program exports no function `{name}`; it exports {known}\n")
        );
    }
    for option in ["invoke", "timeout", "fuel", "env", "passes"] {
        let error = vmrun_line(&program, &format!("--{option}")).error(2);
        assert!(error.contains(&format!("a value is required for '--{option} ")), "{error}");
    }
    let program = Folder::new("invoke_none").write("p.vasm", "func f() { return }");
    let error = vmrun_line(&program, "--invoke f").error(2);
    assert_eq!(error, "error: the program exports no function `f`; it exports none\n");
}

#[test]
fn programs_offer_their_kernels() {
    let fib = ["programs/fib_rec.bc", "--invoke", "fib", "20"];
    assert_eq!(vmrun(&fib).output(), "6765\n");
    let gcd = ["programs/divmod.bc", "--jit", "--invoke", "gcd", "240", "46"];
    assert_eq!(vmrun(&gcd).output(), "2\n-9\n47\n");
}
