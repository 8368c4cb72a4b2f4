//! Each planted fault is found: by the check that the list names, with few generated modules.
//!
//! Needs the copy of the sources that `examples/plant.rs` makes, and there the feature `planted`.

use std::fmt::Display;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use slotvm::{Config, Engine, MemoryPlan, Module, Tier};
use slotvm_bytecode::verify;
use slotvm_filetests::generate::{Case, case_of_seed};
use slotvm_filetests::planted::{FAULTS, FoundBy};
use slotvm_filetests::seeds::{quietly, try_check};
use slotvm_ssa::optimize::optimize;
use slotvm_ssa::switches::switch_on;

/// The number of modules that must find a fault.
const MODULES_MAX: u64 = 8_000;

/// The number of modules until one finds a fault, and its message.
fn hunt(fault: usize) -> Option<(u64, String)> {
    let found = match FAULTS[fault].found_by {
        // `vmrun/tests/planted_crosscheck.rs` and `planted_configurations.rs` look for them.
        FoundBy::Crosscheck { .. } | FoundBy::Configurations => return Some((0, String::new())),
        FoundBy::Engines => try_all(fault, |case| try_check(case).err()),
        FoundBy::Row(row) => try_all(fault, |case| {
            let says = format!("stage {row} left an invalid function");
            stage_errors(case).into_iter().find(|error| error.contains(&says))
        }),
    };
    switch_on(None);
    found
}

fn try_all(fault: usize, find: impl Fn(&Case) -> Option<String>) -> Option<(u64, String)> {
    (0..MODULES_MAX).find_map(|seed| {
        switch_on(None);
        let case = case_of_seed(seed);
        switch_on(Some(fault));
        Some((seed + 1, find(&case)?))
    })
}

/// The errors of the pipeline's users for a module.
fn stage_errors(case: &Case) -> Vec<String> {
    let mut config = Config::new();
    config.tier(Tier::Jit).parallel_compilation(false).verify_passes(true);
    // Without guard pages, so that all passes run.
    config.memory(Some(MemoryPlan::CHECKED));
    let engine = Engine::new(&config).expect("the host has native code");
    let module = verify(case.module.clone()).expect("cases verify");
    let text = |error: &dyn Display| error.to_string();
    let optimised = quietly(|| optimize(&module).err().map(|error| text(&error)));
    let module = std::sync::Arc::new(module);
    let compiled =
        quietly(|| Module::from_verified(&engine, module).err().map(|error| text(&error)));
    [optimised, compiled].into_iter().filter_map(|error| error.unwrap_or_else(Some)).collect()
}

#[test]
fn planted_faults_are_found() {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    let work = || {
        loop {
            let fault = next.fetch_add(1, Ordering::Relaxed);
            if fault >= FAULTS.len() {
                break;
            }
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
    found.sort_by_key(|&(fault, _)| fault);
    let mut not_found = Vec::new();
    for (fault, what) in found {
        let description = FAULTS[fault].description;
        match what {
            Some((n, how)) => {
                println!("{n:5} modules: {description} {}", how.lines().next().unwrap_or_default());
            }
            None => not_found.push(description),
        }
    }
    assert!(not_found.is_empty(), "{MODULES_MAX} modules do not find {not_found:#?}");
}

#[test]
fn without_a_fault_nothing_is_found() {
    switch_on(None);
    for seed in 0..20 {
        let case = case_of_seed(seed);
        try_check(&case).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(stage_errors(&case), [""; 0], "seed {seed}");
    }
}
