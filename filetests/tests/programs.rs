//! The programs of the repository print what is expected, in every engine.
//!
//! The expected outputs were made by programs in other languages, from published algorithms, test
//! vectors and library functions, not by an engine of ours.

use similar::TextDiff;
use slotvm_filetests::programs::{self, Program};

/// Panics with all failures, not just the first.
fn check_all(check: impl Fn(&Program) -> Result<(), String>) {
    let programs = programs::all();
    assert!(programs.len() >= 40, "only {} programs found", programs.len());
    let failures: Vec<String> = programs
        .iter()
        .filter_map(|program| Some(format!("{}: {}", program.name, check(program).err()?)))
        .collect();
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

/// Compares what a program printed with what was expected.
fn compare(program: &Program, output: &[u8], exit_code: i32) -> Result<(), String> {
    let output = String::from_utf8_lossy(output);
    if output != program.expected {
        let diff = TextDiff::from_lines(program.expected.as_str(), &output);
        return Err(format!("wrong output\n{}", diff.unified_diff().header("expected", "printed")));
    }
    if exit_code != 0 { Err(format!("exit code {exit_code}")) } else { Ok(()) }
}

#[test]
fn interpreter() {
    check_all(|program| {
        let module = program.verified();
        let size = programs::default_size(module.module()).ok_or("no default size")?;
        let (output, exit_code) =
            programs::interpret(&module, size).map_err(|error| error.to_string())?;
        compare(program, &output, exit_code)
    });
}

#[test]
fn every_program_says_what_it_shows_and_how_to_measure_it() {
    check_all(|program| {
        let header: Vec<&str> =
            program.source.lines().take_while(|line| line.starts_with(';')).collect();
        if !header.iter().any(|line| line.starts_with("; Shows: ")) {
            return Err("the comment at the top does not say what it shows".into());
        }
        if !header.iter().any(|line| line.starts_with("; bench-size: ")) {
            return Err("the comment at the top has no bench-size".into());
        }
        let default = programs::default_size(&program.module()).ok_or("no default size")?;
        match program.bench_size() {
            Some(size) if size >= default => Ok(()),
            size => Err(format!("bench-size {size:?} is less than the default size {default}")),
        }
    });
}
