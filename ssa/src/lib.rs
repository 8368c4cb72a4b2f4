//! What a function is as a graph.
#![forbid(unsafe_code)]
pub mod entity;
pub mod ir;
pub mod irop;
