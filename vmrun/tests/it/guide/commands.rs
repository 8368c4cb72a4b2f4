//! Runs a command of the guide as a reader would in the root of the repository.
//!
//! `cargo run --release --bin vmrun --` is the binary of the tests. Files below `target/` go to the test's folder.
//! Other commands of Cargo name a test or an example, which must exist.

use std::fs;

use super::chapters::{Chapter, Command};
use crate::binary::{Folder, root, vmrun_with_input};

const CARGO_RUN: &str = "cargo run --release --bin vmrun --";

/// Runs a command, which must succeed, and compares its output.
pub(super) fn check(chapter: &Chapter, command: &Command, folder: &Folder) {
    let place = format!("{}: {}", chapter.name, command.line);
    let line = command.line.replace(CARGO_RUN, "vmrun");
    let cargo = line.strip_prefix("cargo ").or(line.strip_prefix("BLESS=1 cargo "));
    if let Some(rest) = cargo {
        return check_target(&place, rest);
    }
    if let Some(example) = line.strip_prefix("target/release/examples/") {
        let name = example.split(' ').next().expect("a split has a part");
        return assert!(exists(PACKAGES, &format!("examples/{name}")), "{place}: no such example");
    }
    let words = line.strip_prefix("vmrun ").unwrap_or_else(|| panic!("{place}: no known command"));
    let path = |word: &str| match word.strip_prefix("target/") {
        Some(name) => folder.path(name).display().to_string(),
        None => word.to_owned(),
    };
    let (mut args, mut input, mut output) = (vec![], String::new(), None);
    let mut words = words.split_whitespace();
    while let Some(word) = words.next() {
        let mut file = || path(words.next().unwrap_or_else(|| panic!("{place}: no file")));
        match word {
            "<" => input = fs::read_to_string(root().join(file())).expect("the file can be read"),
            ">" => output = Some(file()),
            word => args.push(path(word.trim_matches('\''))),
        }
    }
    let ran = vmrun_with_input(&args, &input);
    assert_eq!(ran.code, 0, "{place}: {ran:?}");
    let printed = ran.stdout.replace(&format!("{}/", folder.path("").display()), "target/");
    if let Some(expected) = &command.output {
        assert!(matches(expected, &printed), "{place}\nexpected:\n{expected}\nprinted:\n{printed}");
    }
    if let Some(path) = output {
        fs::write(path, ran.stdout).expect("the file can be written");
    }
}

/// Whether an output is the expected one, in which a line `...` stands for any lines.
fn matches(expected: &str, printed: &str) -> bool {
    let printed: Vec<&str> = printed.trim_end().lines().map(str::trim_end).collect();
    let parts: Vec<Vec<&str>> = expected
        .lines()
        .map(str::trim_end)
        .collect::<Vec<_>>()
        .split(|line| *line == "...")
        .map(<[&str]>::to_vec)
        .collect();
    let [first, rest @ ..] = &parts[..] else { return printed.is_empty() };
    if rest.is_empty() {
        return *first == printed;
    }
    let mut at = first.len();
    if !printed.starts_with(first) {
        return false;
    }
    let (last, middle) = rest.split_last().expect("it is not empty");
    for part in middle {
        let found = (at..printed.len()).find(|start| printed[*start..].starts_with(part));
        let Some(found) = found else { return false };
        at = found + part.len();
    }
    printed[at..].ends_with(last)
}

/// The folders of packages with tests and examples.
const PACKAGES: &[&str] = &["vm", "runtime", "ssa", "jit", "wasi", "vmrun", "filetests"];

/// Whether one of the packages has the target, as a file or a folder.
fn exists(packages: &[&str], target: &str) -> bool {
    let files = [format!("{target}.rs"), format!("{target}/main.rs")];
    packages.iter().any(|package| {
        let base = root().join(package);
        files.iter().any(|file| base.join(file).exists())
    })
}

/// The test or example that a command of Cargo names must be a file of the package.
fn check_target(place: &str, line: &str) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let after = |option: &str| {
        words.iter().position(|word| *word == option).and_then(|at| words.get(at + 1)).copied()
    };
    let packages = match after("-p") {
        Some("slotvm") => &["jit"],
        Some("slotvm-bytecode") => &["vm"],
        Some("slotvm-filetests") => &["filetests"],
        Some("vmrun") => &["vmrun"],
        Some(package) => panic!("{place}: unknown package {package}"),
        None => PACKAGES,
    };
    let target = match (after("--test"), after("--example")) {
        (Some(name), _) => format!("tests/{name}"),
        (_, Some(name)) => format!("examples/{name}"),
        _ => panic!("{place}: no test and no example"),
    };
    assert!(exists(packages, &target), "{place}: there is no {target}");
}
