//! Faults in forms that are entered in loops, and panics of passes, are found in release builds by the comparison of
//! engines in configurations of users.
//!
//! Needs the copy of the sources that `examples/plant.rs` makes, and there the feature `planted`.

use slotvm_filetests::planted::{FAULTS, FoundBy};
use slotvm_filetests::users;
use slotvm_ssa::switches::switch_on;

/// The number of modules that must find a fault.
const MODULES_MAX: u64 = 500;

#[test]
fn planted_faults_are_found_in_configurations_of_users() {
    let mut n_faults = 0;
    for (number, fault) in FAULTS.iter().enumerate() {
        if fault.found_by != FoundBy::Configurations {
            continue;
        }
        n_faults += 1;
        let found = (0..MODULES_MAX).find_map(|seed| {
            switch_on(None);
            let case = users::case_of_seed(seed);
            switch_on(Some(number));
            Some((seed + 1, users::try_check(seed, &case).err()?))
        });
        switch_on(None);
        let Some((n, how)) = found else {
            panic!("{MODULES_MAX} modules do not find: {}", fault.description);
        };
        let how = how.lines().next().unwrap_or_default();
        println!("{n:5} modules: {} {how}", fault.description);
    }
    assert!(n_faults >= 3, "{n_faults} faults");
}

#[test]
fn without_a_fault_nothing_is_found() {
    switch_on(None);
    for seed in 0..100 {
        let checked = users::try_check(seed, &users::case_of_seed(seed));
        checked.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}
