//! The checks of the fuzzing campaign: properties that hold for all inputs of a target.
//!
//! Each file is a target with one `check(bytes)`, which returns the kind of input, or the error found.
//! The libFuzzer targets in `fuzz/` call these functions. So does `tests/campaign`, which generates inputs
//! itself: for a second in every run of the tests, millions in `.ci/full`.

pub mod api;
pub mod bytecode;
pub mod cost;
pub mod engines;
pub mod roots;
pub mod text;
pub mod wasi;
pub mod wasm;

use std::sync::OnceLock;

/// The outcome of an input that broke no promise.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Refused by an error that names place and rule.
    Refused,
    /// Loaded, but refused by the next stage.
    Loaded,
    /// Accepted by all stages.
    Accepted,
}

/// A meter of a thread's memory, which the allocator counts.
#[derive(Copy, Clone, Debug)]
pub struct Meter {
    /// Starts counting.
    pub reset: fn(),
    /// The peak of the thread's memory since then, in bytes beyond those that it had before.
    pub peak: fn() -> u64,
}

static METER: OnceLock<Meter> = OnceLock::new();

/// Limit of the memory of a loader for any input, in bytes.
const LOADER_BYTES: u64 = 1 << 20;

/// Sets the meter of memory. Without it, checks ignore memory.
pub fn set_meter(meter: Meter) {
    // A process has only one meter, so a second call changes nothing.
    let _ = METER.set(meter);
}

/// Runs a loader, and checks that it takes at most 1 MiB plus a number of bytes for each byte of its input.
///
/// # Errors
/// Fails if it takes more.
fn measured<R>(
    what: &str,
    n_bytes: usize,
    bytes_per_byte: u64,
    load: impl FnOnce() -> R,
) -> Result<R, String> {
    let (result, peak) = metered(load);
    let max = LOADER_BYTES + bytes_per_byte * n_bytes as u64;
    let says = || {
        format!("{what} takes {peak} bytes of memory for {n_bytes} bytes; expected at most {max}")
    };
    ensure(peak <= max, says).map(|()| result)
}

/// Runs a closure, and counts the memory that it takes.
fn metered<R>(run: impl FnOnce() -> R) -> (R, u64) {
    let Some(meter) = METER.get() else { return (run(), 0) };
    (meter.reset)();
    let result = run();
    (result, (meter.peak)())
}

/// Fails with a message unless a condition holds.
fn ensure(holds: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(message()) }
}
