//! `vmrun crosscheck` finds each fault that is planted in a pass, names the pass, and reduces the program.
//!
//! Needs the copy of the sources that `filetests/examples/plant.rs` makes, and there the feature `planted`.

use std::path::Path;
use std::process::{Command, Output};

use slotvm_bytecode::{Module, text};
use slotvm_filetests::planted::{FAULTS, FoundBy};
use slotvm_ssa::pipeline::{User, row};

/// Instructions of a reduced program.
const INSTS_MAX: usize = 20;

/// Fuel of a reduced program that runs without the fault.
const SOUND_FUEL: &str = "100000";

/// Compares the engines, with a fault.
fn crosscheck(fault: Option<usize>, args: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut command = Command::new(env!("CARGO_BIN_EXE_vmrun"));
    command.arg("crosscheck").args(args).current_dir(root).env_remove("SLOTVM_FAULT");
    if let Some(fault) = fault {
        command.env("SLOTVM_FAULT", fault.to_string());
    }
    command.output().expect("the binary starts")
}

fn n_insts(module: &Module) -> usize {
    let count = |code: &[u8]| {
        let mut reader = slotvm_bytecode::CodeReader::new(code, 0);
        std::iter::from_fn(|| {
            (!reader.is_at_end()).then(|| reader.read().expect("it was assembled"))
        })
        .count()
    };
    module.funcs.iter().map(|func| count(&func.code)).sum()
}

/// The name by which a fault in a pass is found. A pass that native code does not have runs in the planted row.
fn row_of(pass: &'static str) -> &'static str {
    let is_native = row(pass).is_some_and(|row| row.is_used_by(User::Jit));
    if is_native { pass } else { "planted" }
}

fn check(fault: usize, pass: &'static str, args: &[&str]) {
    let description = FAULTS[fault].description;
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("reduced.vasm");
    let file = path.to_str().expect("the path is UTF-8");
    let sound = crosscheck(None, args);
    assert!(sound.status.success(), "{description}: {sound:?}");

    let output = crosscheck(Some(fault), &[&["-o", file], args].concat());
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{description}\n{report}");
    assert_eq!(output.status.code(), Some(1), "{description}: {output:?}");
    assert!(report.contains(&format!("\npass: {}\n", row_of(pass))), "{report}");
    assert!(report.contains("\nfunction: "), "{report}");

    let text = std::fs::read_to_string(&path).expect("the reduced program is written");
    let module = text::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    println!("{text}");
    let n = n_insts(&module);
    assert!(n < INSTS_MAX, "{n} instructions\n{text}");
    let options = args.iter().position(|arg| arg.starts_with('-')).unwrap_or(args.len());
    let again = [&[file, "-o", file], &args[options..]].concat();
    assert_eq!(crosscheck(Some(fault), &again).status.code(), Some(1), "{text}");
    std::fs::write(&path, &text).expect("the file can be written");
    // Without the fault, what is left of a loop may not end.
    let limited = [&["--fuel", SOUND_FUEL], &again[..]].concat();
    assert_eq!(crosscheck(None, &limited).status.code(), Some(0), "{text}");
}

#[test]
fn faults_in_passes_are_found_and_reduced() {
    let mut n_faults = 0;
    for (i, fault) in FAULTS.iter().enumerate() {
        if let FoundBy::Crosscheck { pass, args } = fault.found_by {
            check(i, pass, args);
            n_faults += 1;
        }
    }
    assert!(n_faults > 0);
}

/// A pass that leaves an invalid function is named without running the program.
#[test]
fn invalid_functions_are_found_and_reduced() {
    let is_of = |found_by| found_by == FoundBy::Row("simplify");
    let fault = FAULTS.iter().position(|fault| is_of(fault.found_by)).expect("it is listed");
    check(fault, "simplify", &["programs/fib_iter.bc", "--", "5"]);
}
