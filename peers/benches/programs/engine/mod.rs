//! The engines, each with what it provides to programs: its own implementation of WASI, and the host
//! functions of the kernels.

#[macro_use]
mod common;
mod ours;
mod wasmi;
mod wasmtime;

use std::fs;
use std::time::Duration;

use slotvm::SlotMode;
use tempfile::TempDir;
use vmrun::bench::clock::thread_cpu_time;

use crate::program::{Outcome, Run, Wasi};

/// Error message.
pub(crate) type Failure = String;

/// An engine with a configuration.
pub(crate) trait Engine {
    /// Its name, and that of what is special about its configuration.
    fn name(&self) -> &'static str;

    /// Makes of the bytes of a module what can be run, all of it at once.
    fn compile(&self, wasm: &[u8]) -> Result<Box<dyn Compiled>, Failure>;
}

/// A module that can be run.
pub(crate) trait Compiled {
    /// Prepares a run with everything outside of the guest: a store with what the host has.
    fn prepare(&self, run: &Run) -> Result<Box<dyn Prepared>, Failure>;
}

/// A program about to run.
pub(crate) trait Prepared {
    /// Makes an instance and calls it.
    fn go(&mut self) -> Result<i32, Failure>;

    /// Returns the output.
    fn printed(self: Box<Self>) -> Vec<u8>;
}

/// All of them, `ssa` first.
pub(crate) fn all() -> Vec<Box<dyn Engine>> {
    let mut engines: Vec<Box<dyn Engine>> = vec![
        Box::new(ours::Ours::jit(SlotMode::Ssa)),
        Box::new(wasmtime::Wasmtime::new()),
        Box::new(wasmi::Wasmi::new()),
        Box::new(ours::Ours::interpreter()),
    ];
    let others = SlotMode::ALL.into_iter().filter(|&mode| mode != SlotMode::Ssa);
    engines.extend(others.map(|mode| Box::new(ours::Ours::jit(mode)) as Box<dyn Engine>));
    engines
}

/// Runs a program `n` times, each time as a new instance, and returns the outcome of each run, which
/// must be the same, and the CPU time that all of them took.
pub(crate) fn run(
    module: &dyn Compiled,
    run: &Run,
    n: u32,
) -> Result<(Outcome, Duration), Failure> {
    let mut taken = Duration::ZERO;
    let mut first: Option<Outcome> = None;
    for _ in 0..n {
        let mut prepared = module.prepare(run)?;
        let before = thread_cpu_time();
        let exit = prepared.go()?;
        taken += thread_cpu_time() - before;
        let outcome = Outcome { printed: prepared.printed(), exit };
        match &first {
            Some(first) if *first != outcome => return Err("runs are not the same".to_owned()),
            Some(_) => {}
            None => first = Some(outcome),
        }
    }
    Ok((first.ok_or("there was no run")?, taken))
}

/// Copies of the directories that a program may use, each below a directory of the host that goes away with
/// what is returned.
fn directories(wasi: &Wasi) -> Result<Option<TempDir>, Failure> {
    if wasi.dirs.is_empty() {
        return Ok(None);
    }
    let place = TempDir::new().map_err(|error| error.to_string())?;
    for (name, files) in &wasi.dirs {
        let dir = place.path().join(name);
        fs::create_dir(&dir).map_err(|error| error.to_string())?;
        for (name, contents) in files {
            fs::write(dir.join(name), contents).map_err(|error| error.to_string())?;
        }
    }
    Ok(Some(place))
}
