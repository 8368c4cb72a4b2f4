//! Algorithms on control-flow graphs of any representation.
//!
//! They work on any [`cfg::ControlFlow`] and do not know the IR: dominators and their frontiers, loops, liveness of
//! slots, iterated dominance frontiers and the placement of phis, and the proof that a dominator tree is right.

pub mod certificate;
pub mod cfg;
pub mod dominators;
pub mod frontier;
pub mod idf;
pub mod ids;
pub(crate) mod levels;
pub mod liveness;
pub mod loops;
pub mod observe;
pub mod place;
pub(crate) mod queue;
pub(crate) mod rows;
pub(crate) mod search;
pub mod slot_blocks;
pub(crate) mod stamps;
pub(crate) mod steps;
