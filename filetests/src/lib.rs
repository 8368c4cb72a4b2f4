//! File tests of slotvm, and what other tests of several crates share.
//!
//! * A file test is a [`case`]; [`runner`] runs it, [`stages`] shows a module at a stage, [`values`]
//!   reads and writes values.
//! * [`mod@generate`] makes random modules that verify, from [`choices`]; [`mod@check`] compares all
//!   engines on one; [`mod@slot_accesses`] finds what promotion has left in native code.
//! * [`large`] makes functions of any size; [`packages`] fetches real modules; [`opt`] runs LLVM's
//!   optimiser.

pub mod bombs;
pub mod campaign;
pub mod case;
pub mod check;
pub mod choices;
pub mod generate;
pub mod large;
pub mod opt;
pub mod packages;
pub mod runner;
pub mod seeds;
pub mod slot_accesses;
pub mod stages;
pub mod values;
