//! The command line of slotvm, as a library for its tests and benchmarks.
//!
//! [`cli`] parses the arguments, [`commands`] executes them; [`load`] reads programs, [`host`] has the functions that
//! programs can call, [`entry`] the calls that run them, `wast` (feature `wat`) runs test scripts, [`profile`] counts
//! what they execute, [`table`] makes the tables of reports, [`error`] maps failures to exit codes.

pub mod backtrace;
pub mod bench;
pub mod cli;
pub mod commands;
pub mod entry;
pub mod error;
pub mod host;
pub mod load;
pub mod panics;
pub mod profile;
pub mod progress;
pub mod table;
pub mod tier_log;
pub mod trace;
pub mod wasi;
#[cfg(feature = "wat")]
pub mod wast;
