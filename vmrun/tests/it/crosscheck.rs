//! `vmrun crosscheck`: engines agree on programs of all kinds, and wrong usage is reported.
//!
//! Differences need a fault in the sources: `tests/planted_crosscheck.rs`.

use std::ffi::OsStr;
use std::fs;

use crate::binary::{Folder, vmrun, vmrun_with_input};
use crate::programs;

/// The number of points at which the engines agreed.
fn points(args: &[impl AsRef<OsStr>], input: &str) -> usize {
    let args: Vec<&OsStr> = args.iter().map(AsRef::as_ref).collect();
    let output = vmrun_with_input(&[&[OsStr::new("crosscheck")], &args[..]].concat(), input);
    let output = output.output();
    let words: Vec<&str> = output.split_whitespace().collect();
    let place = words.windows(2).position(|pair| pair == ["interpreter", "at"]);
    let count = place.and_then(|at| words[at + 2].parse().ok());
    count.unwrap_or_else(|| panic!("the engines agree: {output}"))
}

#[test]
fn engines_agree_on_every_program() {
    programs::check_all(|program| {
        let path = program.path.with_extension("bc");
        let ran = vmrun(&[OsStr::new("crosscheck"), path.as_os_str()]);
        let is_equal = ran.code == 0 && ran.stdout.contains("agrees with the interpreter");
        if is_equal { Ok(()) } else { Err(format!("{ran:?}")) }
    });
}

#[test]
fn engines_agree_in_every_slot_mode_with_and_without_fuel() {
    for mode in slotvm::SlotMode::ALL {
        let args = ["programs/json.bc", "--slots", mode.name(), "--", "2"];
        assert!(points(&args, "") > 10, "{mode}");
        let args = ["programs/json.bc", "--slots", mode.name(), "--fuel", "1000", "--", "2"];
        assert!(points(&args, "") >= 2, "{mode}");
    }
    assert!(points(&["programs/json.bc", "--passes", "none", "--", "2"], "") > 10);
}

#[test]
fn calls_by_name_have_two_points() {
    assert_eq!(points(&["programs/divmod.bc", "--invoke", "gcd", "240", "46"], ""), 2);
}

/// The interpreter alone reads the input; native code gets what it answered.
#[test]
fn wasi_programs_get_the_same_answers() {
    let input = "one two three two\n".repeat(50);
    assert!(points(&["programs/wasm/wasi/words.O2.wasm", "--", "5"], &input) > 3);
    let folder = Folder::new("crosscheck_wasi");
    let work = folder.path("work");
    fs::create_dir(&work).expect("the folder can be made");
    let dir = format!("{}::/work", work.display());
    // It makes and removes files, and runs once only.
    assert!(points(&["programs/wasm/wasi/files.O2.wasm", "--dir", &dir], "") > 3);
}

#[test]
fn traps_and_exhausted_stacks_are_equal() {
    let folder = Folder::new("crosscheck_traps");
    let divides = "memory m 1
func f(a: i32) -> i32 {
  i32.const 8  local.get a  i32.store 0
  i32.const 7  local.get a  i32.div_s  call g  return
}
func g(a: i32) -> i32 { local.get a  i32.const 100000  i32.mul  i32.load 0  return }
func recurses(a: i32) -> i32 { local.get a  call recurses  i32.const 1  i32.add  return }
export \"f\" func f
export \"recurses\" func recurses
";
    let path = folder.write("f.vasm", divides);
    let path = path.to_str().expect("the path is UTF-8");
    for args in [["f", "0"], ["f", "1"], ["f", "7"], ["recurses", "0"]] {
        assert_eq!(points(&[path, "--invoke", args[0], args[1]], ""), 2, "{args:?}");
    }
}

#[test]
fn start_functions_and_imports_of_unknown_functions_are_compared() {
    let folder = Folder::new("crosscheck_start");
    let source = "import \"env\" \"print_i32\" func print(i32)
import \"other\" \"unknown\" func unknown(i32) -> i64
global g: mut i32 = i32.const 1
func begin() { i32.const 5  call print  i32.const 9  global.set g  return }
func main() -> i32 { i32.const 3  call unknown  i32.wrap_i64  return }
start begin
export \"main\" func main
";
    let path = folder.write("start.vasm", source);
    let path = path.to_str().expect("the path is UTF-8");
    assert_eq!(points(&[path, "--unknown-imports", "zero"], ""), 4);
    assert_eq!(points(&[path, "--unknown-imports", "trap"], ""), 4);
    let error = vmrun(&["crosscheck", path]).error(1);
    assert!(error.contains("unknown"), "{error}");
}

#[test]
fn wrong_usage_is_an_error() {
    let error = vmrun(&["crosscheck"]).error(2);
    assert!(error.contains("<PROGRAM>"), "{error}");
    let error = vmrun(&["crosscheck", "programs/no_such.bc"]).error(1);
    assert!(error.contains("programs/no_such.bc"), "{error}");
    let error = vmrun(&["crosscheck", "programs/divmod.bc", "--invoke", "lcm"]).error(2);
    assert!(error.contains("exports no function `lcm`") && error.contains("`gcd`"), "{error}");
    let error = vmrun(&["crosscheck", "programs/divmod.bc", "--invoke", "gcd", "1"]).error(2);
    assert!(error.contains("expected 2 values, found 1"), "{error}");
    let error = vmrun(&["crosscheck", "programs/fib_rec.bc", "--slots", "stack"]).error(2);
    assert!(error.contains("memory-forwarded"), "{error}");
    let error = vmrun(&["crosscheck", "programs/fib_rec.bc", "--passes", "+all"]).error(2);
    assert!(error.contains("unknown pass \"+all\""), "{error}");
}
