//! Engines agree on generated modules as users build and configure them.
//!
//! `.ci/run` runs this in the release profile, without debug assertions and with passes that are not verified, on modules
//! of new seeds. `SLOTVM_SEED=N` is the seed of the first module, and `SLOTVM_GENERATED=200000` runs that many.

use slotvm_filetests::{seeds, users};

/// Number of seeds that every run of the tests checks.
const SEEDS_USUAL: u64 = 300;
/// Seeds after which configurations have had all pairs of options.
const SEEDS_OF_ALL_PAIRS: u64 = 2_500;

/// At most one of so many modules may have a function or loop that exceeds its budget.
const REFUSED_PART: u64 = 500;

#[test]
fn engines_agree_in_configurations_of_users() {
    let (first, n) = (seeds::seed_or(0), seeds::count_or(SEEDS_USUAL));
    println!("{n} modules from seed {first} on");
    let met = users::check_seeds(first..first + n).unwrap_or_else(|report| panic!("{report}"));
    let (n_missing, n_refused) = (met.n_missing(), met.n_refused());
    println!("{n_refused} functions or loops were refused for the budget");
    assert!(n_refused <= 1 + n / REFUSED_PART, "the budget refuses {n_refused}");
    assert!(n < SEEDS_OF_ALL_PAIRS || n_missing == 0, "{n_missing} pairs of options never met");
}
