//! All engines agree on generated modules.
//!
//! `SLOTVM_GENERATED=10000` runs that many seeds. `cargo test --test generated_engines -- --nocapture`
//! shows the statistics.

use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use slotvm_filetests::generate::generate;
use slotvm_filetests::seeds;

/// Number of seeds that every run of the tests checks.
const SEEDS_USUAL: u64 = 2_500;
/// Number of inputs that proptest generates in every run of the tests.
const INPUTS_USUAL: u32 = 100;

#[test]
fn engines_agree_on_the_modules_of_seeds() {
    let n = seeds::count_or(SEEDS_USUAL);
    let first = seeds::seed_or(0);
    let survey = seeds::check_seeds(first..first + n).unwrap_or_else(|report| panic!("{report}"));
    println!("{survey}");
    assert_eq!(survey.n as u64, n);
    // The modules have the intended properties.
    if n >= SEEDS_USUAL {
        for (what, count) in [
            ("irreducible", survey.n_irreducible),
            ("recursive", survey.n_recursive),
            ("trapping", survey.n_trapping),
        ] {
            assert!(count * 4 >= survey.n, "too few modules are {what}: {survey}");
        }
    }
}

/// Proptest shrinks failing inputs.
#[test]
fn engines_agree_on_the_modules_of_any_bytes() {
    let config = Config { cases: INPUTS_USUAL, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let checked = runner.run(&vec(any::<u8>(), 0..3_000), |bytes| {
        let failed = |error| TestCaseError::fail(error);
        seeds::try_check(&generate(&bytes)).map(drop).map_err(failed)
    });
    if let Err(proptest::test_runner::TestError::Fail(_, bytes)) = checked {
        panic!("{}", seeds::describe(&generate(&bytes)));
    }
    checked.expect("nothing is rejected");
}
