//! The help of all commands.

use std::fs;
use std::path::Path;

use similar::TextDiff;

use crate::binary::vmrun;

const COMMANDS: [&str; 18] = [
    "run",
    "asm",
    "dis",
    "convert",
    "opt",
    "compile",
    "verify",
    "dump",
    "explain",
    "objdump",
    "ops",
    "settings",
    "completions",
    "test",
    "wast",
    "bench",
    "profile",
    "crosscheck",
];

/// Compares `vmrun --help` with the expected text.
#[test]
fn the_help_is_as_it_should_be() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/help.txt");
    let expected = fs::read_to_string(path).expect("the file is there");
    let help = vmrun(&["--help"]).output();
    if help != expected {
        let diff = TextDiff::from_lines(&expected, &help);
        panic!("{}", diff.unified_diff().header("vmrun/tests/it/help.txt", "vmrun --help"));
    }
}

#[test]
fn every_command_has_help_that_fits_a_terminal() {
    let summary = vmrun(&["--help"]).output();
    for command in COMMANDS {
        assert!(summary.contains(&format!("\n  {command} ")), "{command} is not in the summary");
        for args in [[command, "--help"], [command, "-h"], ["help", command]] {
            let help = vmrun(&args).output();
            assert!(help.contains(&format!("Usage: vmrun {command}")), "{args:?}: {help}");
            let longest = help.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(120), "{args:?}: {longest:?} columns\n{help}");
        }
    }
    let longest = summary.lines().map(|line| line.chars().count()).max();
    assert!(longest <= Some(100), "{longest:?} columns\n{summary}");
}

#[test]
fn the_version_is_that_of_the_package() {
    assert_eq!(vmrun(&["--version"]).output(), format!("vmrun {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(vmrun(&["-V"]).output(), format!("vmrun {}\n", env!("CARGO_PKG_VERSION")));
}
