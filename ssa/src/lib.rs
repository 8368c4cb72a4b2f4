//! What a function is as a graph.
//!
//! New to SSA form? The [`tutorial`] carries one function through all stages.
//!
//! The story of the crate, in the order in which data flows:
//!
//! * [`build`] makes the slot form of a function of verified bytecode: a graph of blocks in which
//!   locals, and operands that survive their block, are slots. [`ir`] is the data structure, with ids
//!   of [`entity`] and the operations of [`irop`].
//! * [`promote`] turns it into SSA form: slots become values, and phis (block parameters) stand where
//!   different writes meet.
//! * [`passes`] improve SSA form, by way of an [`edit::Editor`]. [`pipeline`] is the table of all stages and passes.
//! * [`destruct`] turns SSA form back into slot form: values that phis connect share slots. [`mod@write`]
//!   makes bytecode of it, and [`mod@optimize`] goes the whole way from bytecode to bytecode.
//! * After each stage and pass, [`mod@verify`] can check a numbered list of properties, and in tests [`eval`] runs the
//!   function, in either form. [`mod@print`] writes it as text and [`parse`] reads it back; [`llvm`] writes
//!   it for LLVM's tools.
//!
//! The algorithms on graphs ([`mod@cfg`], [`dominators`], [`frontier`], [`liveness`], [`idf`], [`place`],
//! [`loops`], [`certificate`]) work on any [`cfg::ControlFlow`] and do not know the IR; the crate's
//! `examples` run them on graphs of others. [`construct`](mod@construct) does for any representation
//! what promotion does for the IR; [`braun`] does not even ask for a graph. What knows the IR is behind
//! the feature `ir`, which is on by default.
#![forbid(unsafe_code)]
mod accesses;
pub mod braun;
#[cfg(feature = "ir")]
pub mod build;
pub mod certificate;
pub mod cfg;
pub mod construct;
#[cfg(feature = "ir")]
pub mod destruct;
pub mod dominators;
#[cfg(feature = "ir")]
pub mod edit;
#[cfg(feature = "ir")]
pub mod entity;
#[cfg(feature = "ir")]
pub mod eval;
#[cfg(feature = "ir")]
mod fold;
pub mod frontier;
#[cfg(feature = "ir")]
pub mod graph;
pub mod idf;
#[cfg(feature = "ir")]
pub mod ir;
#[cfg(feature = "ir")]
pub mod irop;
pub mod liveness;
#[cfg(feature = "ir")]
pub mod llvm;
pub mod loops;
mod on_the_fly;
#[cfg(feature = "ir")]
pub mod optimize;
#[cfg(feature = "ir")]
pub mod parse;
#[cfg(feature = "ir")]
pub mod passes;
#[cfg(feature = "ir")]
pub mod pipeline;
pub mod place;
#[cfg(feature = "ir")]
pub mod print;
#[cfg(feature = "ir")]
pub mod promote;
mod rename;
mod rows;
#[cfg(all(test, feature = "ir"))]
mod samples;
mod search;
mod sites;
pub mod slot_blocks;
mod stamps;
mod steps;
#[cfg(test)]
mod testing;
pub mod tutorial;
#[cfg(feature = "ir")]
pub mod verify;
#[cfg(feature = "ir")]
pub mod work;
#[cfg(feature = "ir")]
pub mod write;
