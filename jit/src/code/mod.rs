//! Machine code in memory: placement, tables, and registration with debuggers and profilers.

pub(crate) mod debug_code;
pub(crate) mod debugger;
pub(crate) mod dwarf;
pub(crate) mod error;
pub(crate) mod machine_code;
mod mapping;
pub(crate) mod memory;
pub(crate) mod pctable;
pub(crate) mod profiling;
pub(crate) mod registry;
pub(crate) mod unit;
mod unwind;
