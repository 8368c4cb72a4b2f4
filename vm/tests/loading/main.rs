//! Memory used by the loaders, in relation to the size of their input. Each case runs in its own process,
//! since memory is measured per process.

mod bytecode;
mod dwarf;
mod modules;
mod texts;

use std::path::{Path, PathBuf};
use std::process::Command;

use slotvm_bytecode::load::{LoadOptions, load};
use slotvm_bytecode::module::Module;
use slotvm_bytecode::{decode, text, verify};

/// The variable that tells a process which case to run.
const CASE: &str = "SLOTVM_TEST_LOADING";

/// The most memory that loading may take in addition to that in proportion to the input, in bytes.
const BASE_BYTES_MAX: u64 = 8 << 20;

/// The most memory that loading may take for each byte of the input, in bytes.
const BYTES_PER_BYTE_MAX: u64 = 128;

/// The memory of a verified local, in bytes. A few bytes of input declare up to `MODULE_LOCALS_MAX` locals.
const BYTES_PER_LOCAL: u64 = 16;

/// The size of a case's input in bytes; with `SLOTVM_FULL=1` it is ten times as large.
const CASE_BYTES: usize = 200_000;

/// Loads and verifies an input, as far as possible. Returns the number of locals if it is accepted.
type Load = fn(&[u8]) -> Option<u64>;

/// The worst kind of input for one aspect of a loader.
struct Case {
    name: &'static str,
    /// Distinguishes cases of the same name.
    kind: &'static str,
    /// Makes an input of about the given size in bytes.
    make: Box<dyn Fn(usize) -> Vec<u8>>,
    load: Load,
}

impl Case {
    fn id(&self) -> String {
        format!("{}: {}", self.kind, self.name)
    }
}

fn verified(module: Module) -> Option<u64> {
    Some(n_locals(verify(module).ok()?.module()))
}

fn load_binary(bytes: &[u8]) -> Option<u64> {
    verified(decode(bytes).ok()?)
}

fn load_text(bytes: &[u8]) -> Option<u64> {
    verified(text::parse(str::from_utf8(bytes).unwrap()).ok()?)
}

fn load_wasm(bytes: &[u8]) -> Option<u64> {
    let options = LoadOptions { extension: Some("wasm"), ..LoadOptions::default() };
    Some(n_locals(load(bytes, options).ok()?.verify(false).ok()?.module()))
}

/// Makes functions, and the module's names, when they are asked for.
fn load_wasm_lazily(bytes: &[u8]) -> Option<u64> {
    let options = LoadOptions { extension: Some("wasm"), is_lazy: true, ..LoadOptions::default() };
    let module = load(bytes, options).ok()?.verify(false).ok()?;
    let funcs = (0..module.n_funcs()).filter_map(|func| module.body(func));
    let n_locals = funcs.map(|body| body.locals.len() as u64).sum();
    assert!(module.n_funcs() == 0 || !module.func_name(0).is_empty());
    Some(n_locals)
}

fn cases() -> impl Iterator<Item = Case> {
    let loads: [(&str, Load); 2] = [("wasm", load_wasm), ("lazy wasm", load_wasm_lazily)];
    let wasm = loads.into_iter().flat_map(|(kind, load)| {
        let cases = [dwarf::CASES, modules::CASES].into_iter().flatten();
        cases.map(move |&(name, make)| Case { name, kind, make: Box::new(make), load })
    });
    let binary = bytecode::CASES.iter().map(|&(name, make)| {
        let make = Box::new(move |n| bytecode::bytes(make, n));
        Case { name, kind: "bc", make, load: load_binary }
    });
    let texts = [texts::CASES, texts::REFUSED].into_iter().flatten().map(|&(name, make)| {
        let make = Box::new(move |n| make(n).into_bytes());
        Case { name, kind: "vasm", make, load: load_text }
    });
    wasm.chain(binary).chain(texts)
}

/// Returns the peak memory of the process in bytes.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    kib.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

fn n_locals(module: &Module) -> u64 {
    let n_params = |ty: u32| module.types[ty as usize].params.len() as u64;
    let n_declared = |runs: &[(u32, _)]| runs.iter().map(|&(n, _)| u64::from(n)).sum::<u64>();
    module.funcs.iter().map(|func| n_params(func.ty) + n_declared(&func.locals)).sum()
}

/// Loads the input of a case, which another process has made, and prints the memory that it took.
fn run(case: &Case, input: &Path) {
    let bytes = std::fs::read(input).unwrap();
    let before = peak_bytes();
    let loaded = (case.load)(&bytes);
    let cost = peak_bytes() - before;
    println!("cost {cost} {}", loaded.unwrap_or(0));
    println!("{}", if loaded.is_some() { "accepted" } else { "refused" });
}

/// Runs a case in its own process. Returns the output and the size of the input.
fn measure(case: &Case, input: &Path) -> Result<(String, u64), String> {
    let is_full = std::env::var("SLOTVM_FULL").as_deref() == Ok("1");
    let bytes = (case.make)(CASE_BYTES * if is_full { 10 } else { 1 });
    std::fs::write(input, &bytes).unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "memory_is_proportional_to_the_bytes", "--nocapture"])
        .env(CASE, case.id())
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&child.stdout).into_owned();
    match child.status.success() {
        true => Ok((out, bytes.len() as u64)),
        false => Err(format!("{}\n{}", child.status, String::from_utf8_lossy(&child.stderr))),
    }
}

#[test]
fn memory_is_proportional_to_the_bytes() {
    let input = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("loading");
    if let Ok(id) = std::env::var(CASE) {
        return run(&cases().find(|case| case.id() == id).unwrap(), &input);
    }
    let mut failures = Vec::new();
    for case in cases() {
        let id = case.id();
        let (out, given) = match measure(&case, &input) {
            Ok(measured) => measured,
            Err(error) => {
                failures.push(format!("{id}: {error}"));
                continue;
            }
        };
        let (_, told) = out.lines().find_map(|line| line.split_once("cost ")).unwrap();
        let (cost, n_locals) = told.split_once(' ').unwrap();
        let (cost, n_locals): (u64, u64) = (cost.parse().unwrap(), n_locals.parse().unwrap());
        let verdict = out.lines().find(|line| ["accepted", "refused"].contains(line)).unwrap();
        println!("{id:45} {verdict} {given:8} bytes take {cost:10}, {:3} a byte", cost / given);
        if cost > BASE_BYTES_MAX + BYTES_PER_BYTE_MAX * given + BYTES_PER_LOCAL * n_locals {
            failures.push(format!("{id}: {cost} bytes for {given}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
