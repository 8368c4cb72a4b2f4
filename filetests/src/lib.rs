//! Code that tests of several crates share. The file tests are in `cases/`, run by the crate `slotvm-cases`.
//!
//! * [`mod@generate`] makes random modules that verify, from [`choices`]; [`mod@check`] compares all
//!   engines on one; [`mod@slot_accesses`] finds slot accesses that promotion has left.
//! * [`large`] makes functions of any size; [`packages`] fetches real modules; [`opt`] runs LLVM's
//!   optimiser.
//! * [`users`] runs many modules in the configurations and the build that users have.
//! * [`allocator`] counts memory. [`planted`] makes a copy of the sources with faults, which tests must find.

pub mod allocator;
pub mod bombs;
pub mod campaign;
pub mod check;
pub mod choices;
pub mod generate;
pub mod large;
pub mod opt;
pub mod packages;
pub mod planted;
pub mod seeds;
pub mod slot_accesses;
pub mod users;
