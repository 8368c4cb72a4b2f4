//! A panic of the compiler is one line of the command line, and the program goes on.
//!
//! Needs the copy of the sources that `filetests/examples/plant.rs` makes, and there the feature `planted`. In builds with
//! debug assertions such panics are not caught, so this is for release builds.

use std::path::Path;
use std::process::{Command, Output};

use slotvm_filetests::planted::{FAULTS, FoundBy};

fn vmrun(fault: Option<usize>, args: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut command = Command::new(env!("CARGO_BIN_EXE_vmrun"));
    command.args(args).current_dir(root).env_remove("SLOTVM_FAULT").env("RUST_BACKTRACE", "1");
    if let Some(fault) = fault {
        command.env("SLOTVM_FAULT", fault.to_string());
    }
    command.output().expect("the binary starts")
}

#[test]
fn a_panic_of_the_compiler_is_a_line_and_the_program_goes_on() {
    let panics = |fault: &slotvm_filetests::planted::Fault| {
        fault.found_by == FoundBy::Configurations && fault.description.contains("panics")
    };
    let fault = FAULTS.iter().position(panics).expect("a pass panics");
    let program = ["programs/json.bc", "300"];
    let (sound, faulty) = (vmrun(None, &program), vmrun(Some(fault), &program));
    assert_eq!((faulty.status.code(), &faulty.stdout), (sound.status.code(), &sound.stdout));
    let stderr = String::from_utf8_lossy(&faulty.stderr).into_owned();
    println!("{stderr}");
    assert!(!stderr.is_empty(), "nothing panicked");
    for line in stderr.lines() {
        assert!(line.starts_with("internal error: compiling function f"), "{stderr}");
        assert!(
            line.ends_with("panicked: planted; this is a bug in slotvm, please report it"),
            "{stderr}"
        );
    }
    // Code that is compiled at once is an error, and not a panic.
    let eager = vmrun(Some(fault), &["programs/json.bc", "300", "--jit"]);
    let stderr = String::from_utf8_lossy(&eager.stderr).into_owned();
    assert_eq!(eager.status.code(), Some(1), "{stderr}");
    assert!(stderr.lines().last().is_some_and(|line| line.starts_with("error: ")), "{stderr}");
}
