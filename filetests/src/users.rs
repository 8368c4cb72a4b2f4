//! Generated modules in configurations that users choose, in the build that they have: many in parallel, with a report of
//! one that fails, made small.

use std::ops::Range;
use std::sync::Mutex;

use crate::check::{Met, check_configurations, last_configuration};
use crate::generate::{Case, bytes_of_seed, generate, generate_hot};
use crate::seeds::{COUNT_VARIABLE, SEED_VARIABLE, on_all_cores, print, quietly, shrink};

/// One module of so many is as short as those that all engines run.
const SHORT_EVERY: u64 = 4;
/// Release builds verify the passes of one module of so many; debug builds those of all.
const VERIFIED_EVERY: u64 = 20;
/// Limit of the checks for making a case smaller.
const SHRINK_CHECKS_MAX: usize = 1_000;

/// Makes the case of a seed from bytes.
fn case(seed: u64, bytes: &[u8]) -> Case {
    if seed.is_multiple_of(SHORT_EVERY) { generate(bytes) } else { generate_hot(bytes) }
}

/// The case of a seed.
pub fn case_of_seed(seed: u64) -> Case {
    case(seed, &bytes_of_seed(seed))
}

/// Checks a case in the configurations of a seed; a panic counts as a failure.
///
/// # Errors
/// Returns what is wrong.
pub fn try_check(seed: u64, case: &Case) -> Result<Met, String> {
    let verifies = cfg!(debug_assertions) || seed.is_multiple_of(VERIFIED_EVERY);
    match quietly(|| check_configurations(case, seed, verifies)) {
        Ok(checked) => checked.map_err(|difference| difference.to_string()),
        Err(panic) => Err(format!("panic in {}: {panic}", last_configuration())),
    }
}

/// Checks the modules of seeds on all cores. Returns what their configurations had in sum.
///
/// # Errors
/// Returns the report of a case that fails, made smaller.
pub fn check_seeds(seeds: Range<u64>) -> Result<Met, String> {
    let all = Mutex::new(Met::default());
    on_all_cores(seeds, |seed| {
        let met = try_check(seed, &case_of_seed(seed)).map_err(|error| report(seed, &error))?;
        all.lock().expect("no thread panics").add(met);
        Ok(())
    })?;
    Ok(all.into_inner().expect("no thread panics"))
}

fn report(seed: u64, error: &str) -> String {
    let is_wrong = |bytes: &[u8]| try_check(seed, &case(seed, bytes)).is_err();
    let small = case(seed, &shrink(&bytes_of_seed(seed), SHRINK_CHECKS_MAX, is_wrong));
    let of_small = try_check(seed, &small).err();
    let of_small = of_small.unwrap_or_else(|| "the small one does not fail each time".to_owned());
    let again = format!("run it again with {SEED_VARIABLE}={seed} {COUNT_VARIABLE}=1");
    print(&small, &format!("{error}\n{again}\nmade smaller:\n{of_small}"))
}
