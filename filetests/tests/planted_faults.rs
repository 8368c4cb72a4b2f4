//! The comparison of engines bites: each fault that is planted in promotion or lowering is found by
//! few generated modules. Needs the feature `planted-faults`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use slotvm_filetests::generate::case_of_seed;
use slotvm_filetests::seeds::try_check;
use slotvm_ssa::faults::{Fault, plant};

/// A fault must be found by so many modules.
const MODULES_MAX: u64 = 2_000;

/// The number of modules until one finds a fault, and what it says.
fn hunt(fault: Fault) -> Option<(u64, String)> {
    plant(Some(fault));
    let find = |seed| Some((seed + 1, try_check(&case_of_seed(seed)).err()?));
    let found = (0..MODULES_MAX).find_map(find);
    plant(None);
    found
}

#[test]
fn planted_faults_are_found() {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    let work = || {
        while let Some(&fault) = Fault::ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
            let what = hunt(fault);
            found.lock().expect("no thread panics").push((fault, what));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, |n| n.get()) {
            scope.spawn(work);
        }
    });
    let mut found = found.into_inner().expect("no thread panics");
    found.sort_by_key(|&(fault, _)| fault as usize);
    let mut not_found = Vec::new();
    for (fault, what) in found {
        match what {
            Some((n, how)) => {
                let how = how.lines().next().unwrap_or_default();
                println!("{n:5} modules: {} {how}", fault.description());
            }
            None => not_found.push(fault),
        }
    }
    assert!(not_found.is_empty(), "{MODULES_MAX} modules do not find {not_found:?}");
}

#[test]
fn without_a_fault_nothing_is_found() {
    plant(None);
    for seed in 0..20 {
        try_check(&case_of_seed(seed)).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}
