//! The checks of the fuzzing campaign: what must hold for any input of a target.
//!
//! Each file is a target with one `check(bytes)`, which says what kind of input it was, or what is wrong.
//! The targets of libFuzzer in `fuzz/` call these functions, and so does `tests/campaign`, which makes the
//! inputs itself: a second of them in every run of the tests, millions in `.ci/full`.

pub mod api;
pub mod bytecode;
pub mod cost;
pub mod engines;
pub mod text;
pub mod wasi;
pub mod wasm;

use std::sync::OnceLock;

/// The outcome of an input that broke no promise.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was refused by an error that names place and rule.
    Refused,
    /// It was loaded, but is not what the next stage takes.
    Loaded,
    /// It went through all stages.
    Accepted,
}

/// How much memory a thread uses, as its allocator counts.
#[derive(Copy, Clone, Debug)]
pub struct Meter {
    /// Starts to count.
    pub reset: fn(),
    /// The greatest number of bytes that the thread has had since then, beyond those that it had.
    pub peak: fn() -> u64,
}

static METER: OnceLock<Meter> = OnceLock::new();

/// Bytes that a loader may take for any input.
const LOADER_BYTES: u64 = 1 << 20;

/// Says how memory is counted. Without it, checks do not look at memory.
pub fn set_meter(meter: Meter) {
    // A second meter would be the same one.
    let _ = METER.set(meter);
}

/// Runs a loader, and checks that it takes 1 MiB and so many bytes for each byte of its input at most.
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
    let says = || format!("{what} takes {peak} bytes for {n_bytes}; at most {max} are allowed");
    ensure(peak <= max, says).map(|()| result)
}

/// Runs something, and counts the memory that it takes.
fn metered<R>(run: impl FnOnce() -> R) -> (R, u64) {
    let Some(meter) = METER.get() else { return (run(), 0) };
    (meter.reset)();
    let result = run();
    (result, (meter.peak)())
}

/// Fails with a message unless something holds.
fn ensure(holds: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(message()) }
}
