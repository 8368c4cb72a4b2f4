//! What a function is as a graph.
//!
//! The algorithms on graphs ([`cfg`], [`dominators`], [`place`]) work on any [`cfg::ControlFlow`]. The
//! IR and the passes on it need the feature `ir`, which is on by default.
#![forbid(unsafe_code)]
#[cfg(feature = "ir")]
mod accesses;
#[cfg(feature = "ir")]
pub mod build;
pub mod cfg;
pub mod dominators;
#[cfg(feature = "ir")]
pub mod entity;
#[cfg(feature = "ir")]
pub mod ir;
#[cfg(feature = "ir")]
pub mod irop;
#[cfg(feature = "ir")]
mod literal;
pub mod place;
#[cfg(feature = "ir")]
pub mod print;
#[cfg(feature = "ir")]
pub mod promote;
#[cfg(feature = "ir")]
mod rename;
#[cfg(test)]
mod testing;
#[cfg(feature = "ir")]
pub mod verify;
