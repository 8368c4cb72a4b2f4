//! `--passes`: the optional passes of each command.

use std::ffi::OsStr;
use std::fs;

use slotvm::PassSet;

use crate::binary::{Folder, vmrun};

/// Parts of the passes for long tests: none; with `SLOTVM_FULL=1` also each alone, and all but each.
pub(crate) fn parts() -> Vec<PassSet> {
    let is_full = std::env::var("SLOTVM_FULL").as_deref() == Ok("1");
    let parts = slotvm_filetests::check::parts().filter(|_| is_full);
    std::iter::once(PassSet::none()).chain(parts).collect()
}

/// `simplify` folds the product.
const SOURCE: &str = "func f() -> i32 { i32.const 6 i32.const 7 i32.mul return }
export \"f\" func f
";

#[test]
fn a_pass_that_is_off_leaves_programs_as_they_are() {
    let folder = Folder::new("passes");
    let program = folder.write("f.vasm", SOURCE);
    let output = folder.path("f.bc");
    let has_product = |passes: &str| {
        let args = [OsStr::new("opt"), program.as_os_str(), OsStr::new("-o"), output.as_os_str()];
        let passes = passes.split_whitespace().map(OsStr::new);
        assert_eq!(vmrun(&args.into_iter().chain(passes).collect::<Vec<_>>()).output(), "");
        let text = vmrun(&[OsStr::new("dis"), output.as_os_str()]).output();
        assert!(fs::metadata(&output).is_ok());
        text.contains("i32.mul")
    };
    for (passes, expected) in [
        ("", false),
        ("--passes all", false),
        ("--passes none", true),
        ("--passes -simplify", true),
        ("--passes none,simplify", false),
    ] {
        assert_eq!(has_product(passes), expected, "{passes}");
    }
}

#[test]
fn stages_are_shown_without_a_pass() {
    let folder = Folder::new("passes_dump");
    let program = folder.write("f.vasm", SOURCE);
    let dump = |passes: &str| {
        let args = [OsStr::new("dump"), program.as_os_str()];
        let line = format!("--stage simplify --passes {passes}");
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        vmrun(&args.into_iter().chain(words.iter().map(OsStr::new)).collect::<Vec<_>>()).output()
    };
    assert!(!dump("all").contains("i32.mul"));
    assert!(dump("-simplify").contains("i32.mul"));
}

#[test]
fn programs_run_with_any_passes() {
    for passes in ["all", "none", "-simplify"] {
        let run = ["run", "programs/fib_rec.bc", "--passes", passes, "--invoke", "fib", "20"];
        assert_eq!(vmrun(&run).output(), "6765\n", "{passes}");
    }
    let error = vmrun(&["programs/fib_rec.bc", "--passes", "none", "--trace"]).error(2);
    assert!(error.contains("cannot be used with"), "{error}");
}

#[test]
fn unknown_passes_are_errors_of_each_command() {
    let commands: [&[&str]; 5] = [
        &["run", "programs/fib_rec.bc"],
        &["opt", "programs/fib_rec.bc", "-o", "none.bc"],
        &["dump", "programs/fib_rec.bc", "--stage", "ssa"],
        &["bench", "programs/fib_rec.bc"],
        &["wast", "none.wast"],
    ];
    for command in commands {
        let error = vmrun(&[command, &["--passes", "none,no_such_pass"]].concat()).error(2);
        let expected = "unknown pass \"no_such_pass\"; expected all, none, or NAME or -NAME of ";
        assert!(error.contains(expected) && error.contains("simplify"), "{command:?}: {error}");
    }
}
