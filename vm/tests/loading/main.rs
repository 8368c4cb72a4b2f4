//! What loaders take of memory for the bytes that they are given. Each case runs in a process of its own, since
//! memory belongs to a process.

mod dwarf;
mod modules;

use std::process::Command;

use slotvm_bytecode::{verify, wasm};

/// Names the case that the process is there for.
const CASE: &str = "SLOTVM_TEST_LOADING";

/// What loading may take, whatever the bytes are.
const BASE_BYTES_MAX: u64 = 8 << 20;

/// What loading may take for each byte.
const BYTES_PER_BYTE_MAX: u64 = 128;

/// Input of the worst kind for one thing that a loader does.
struct Case {
    name: &'static str,
    /// Makes an input of about so many bytes.
    make: fn(usize) -> Vec<u8>,
    load: fn(&[u8]),
}

/// The bytes that a case gets.
const CASE_BYTES: usize = 200_000;

fn import(bytes: &[u8]) {
    if let Ok(module) = wasm::import(bytes) {
        let _ = verify(module);
    }
}

/// The most memory that the process has had at a time, in bytes.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    kib.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

fn cases() -> impl Iterator<Item = Case> {
    [dwarf::CASES, modules::CASES].into_iter().flatten().map(|&(name, make)| Case {
        name,
        make,
        load: import,
    })
}

/// Loads what a case says, and tells what that takes.
fn run(case: &Case) {
    let bytes = (case.make)(CASE_BYTES);
    let before = peak_bytes();
    (case.load)(&bytes);
    println!("cost {} {}", bytes.len(), peak_bytes() - before);
}

#[test]
fn memory_is_proportional_to_the_bytes() {
    if let Ok(name) = std::env::var(CASE) {
        return run(&cases().find(|case| case.name == name).unwrap());
    }
    let mut failures = Vec::new();
    for case in cases() {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "memory_is_proportional_to_the_bytes", "--nocapture"])
            .env(CASE, case.name)
            .output()
            .unwrap();
        let out = String::from_utf8_lossy(&child.stdout);
        let told = out.lines().find_map(|line| line.split_once("cost "));
        let Some((_, told)) = told.filter(|_| child.status.success()) else {
            let err = String::from_utf8_lossy(&child.stderr);
            failures.push(format!("{}: {}\n{err}", case.name, child.status));
            continue;
        };
        let (given, cost) = told.split_once(' ').unwrap();
        let (given, cost): (u64, u64) = (given.parse().unwrap(), cost.parse().unwrap());
        println!("{:40} {given:9} bytes take {cost:11}, {} times as many", case.name, cost / given);
        if cost > BASE_BYTES_MAX + BYTES_PER_BYTE_MAX * given {
            failures.push(format!("{}: {cost} bytes", case.name));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
