//! The code that the commands of `vmrun` share.
//!
//! [`load`] reads programs, [`host`] has the functions that programs can call, [`entry`] the calls that run them.
//! [`backtrace`] explains a trap by its source, [`output`] writes what a command prints, [`table`] makes the tables of reports, [`progress`] shows how far a long
//! command is, and [`error`] maps failures to exit codes.

pub mod backtrace;
pub mod entry;
pub mod error;
pub mod host;
pub mod load;
pub mod output;
pub mod progress;
pub mod table;
