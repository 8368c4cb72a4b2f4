//! Engines agree on generated modules as users build and configure them.
//!
//! `.ci/run` runs this in the release profile, without debug assertions and with passes that are not verified, on modules of
//! new seeds. `SLOTVM_SEED=N` is the seed of the first module, and `SLOTVM_GENERATED=200000` runs that many.

use std::sync::Mutex;

use slotvm_filetests::check::{Pairs, check_configurations, last_configuration};
use slotvm_filetests::generate::{Case, bytes_of_seed, generate, generate_hot};
use slotvm_filetests::seeds;

/// Number of seeds that every run of the tests checks.
const SEEDS_USUAL: u64 = 300;
/// One module of so many is as short as those that all engines run.
const SHORT_EVERY: u64 = 4;
/// Release builds verify the passes of one module of so many.
const VERIFIED_EVERY: u64 = 20;
/// Seeds after which configurations have had all pairs of options.
const SEEDS_OF_ALL_PAIRS: u64 = 2_500;

/// Limit of the checks for shrinking a case.
const SHRINK_CHECKS_MAX: usize = 1_000;

/// Makes the case of a seed from bytes.
fn case(seed: u64, bytes: &[u8]) -> Case {
    if seed.is_multiple_of(SHORT_EVERY) { generate(bytes) } else { generate_hot(bytes) }
}

/// Checks a case in the configurations of a seed; a panic counts as a failure.
fn check(seed: u64, case: &Case) -> Result<Pairs, String> {
    let verifies = cfg!(debug_assertions) || seed.is_multiple_of(VERIFIED_EVERY);
    match seeds::quietly(|| check_configurations(case, seed, verifies)) {
        Ok(checked) => checked.map_err(|difference| difference.to_string()),
        Err(panic) => Err(format!("panic in {}: {panic}", last_configuration())),
    }
}

/// Checks the module of a seed, and makes a module that fails small.
fn check_seed(seed: u64) -> Result<Pairs, String> {
    let bytes = bytes_of_seed(seed);
    check(seed, &case(seed, &bytes)).map_err(|error| {
        let is_wrong = |bytes: &[u8]| check(seed, &case(seed, bytes)).is_err();
        let small = case(seed, &seeds::shrink(&bytes, SHRINK_CHECKS_MAX, is_wrong));
        let of_small = check(seed, &small).err();
        let of_small = of_small.unwrap_or_else(|| "it does not fail each time".to_owned());
        seeds::print(&small, &format!("{error}\nmade smaller:\n{of_small}"))
    })
}

#[test]
fn engines_agree_in_configurations_of_users() {
    let (first, n) = (seeds::seed_or(0), seeds::count_or(SEEDS_USUAL));
    println!("{n} modules from seed {first} on");
    let all = Mutex::new(Pairs::default());
    let add = |pairs| all.lock().expect("no thread panics").add(pairs);
    let checked = seeds::on_all_cores(first..first + n, |seed| check_seed(seed).map(add));
    if let Err(report) = checked {
        panic!(
            "{report}\nRepeat it with {}=SEED {}=1",
            seeds::SEED_VARIABLE,
            seeds::COUNT_VARIABLE
        );
    }
    let n_missing = all.into_inner().expect("no thread panics").n_missing();
    assert!(n < SEEDS_OF_ALL_PAIRS || n_missing == 0, "{n_missing} pairs of options never met");
}
