//! Machine code in memory: its placement, its tables, and who is told about it.

pub(crate) mod debugger;
pub(crate) mod pctable;
pub(crate) mod profiling;
pub(crate) mod registry;
pub(crate) mod unit;
mod unwind;
