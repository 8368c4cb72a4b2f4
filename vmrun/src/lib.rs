//! The command line of slotvm, as a library for its tests and benchmarks.
//!
//! [`cli`] parses the arguments, [`commands`] executes them: with what they share from `vmrun-base`, re-exported here,
//! with [`profile`], which counts what programs execute, with [`mod@bench`], and with `wast` (feature `wat`), which runs
//! test scripts. The packages below `vmrun/` compile beside each other.

pub mod commands;
pub mod panics;
pub mod profile;
pub mod tier_log;
pub mod trace;
#[cfg(feature = "wat")]
pub mod wast;

pub use vmrun_base::{backtrace, entry, error, host, load, output, progress, table};
pub use vmrun_bench as bench;
pub use vmrun_cli as cli;
