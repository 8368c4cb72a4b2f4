//! Tests of WASI preview 1 from the program's side. A program that only forwards calls is called with good,
//! bad and impossible arguments, in the interpreter and as native code.
//!
//! The expected error numbers are repeated here from the specification, so that the crate is not compared
//! with itself.

mod addresses;
mod args;
mod clocks;
mod descriptors;
mod directories;
mod endings;
mod errnos;
mod escape;
mod files;
mod guest;
mod opening;
mod paths;
mod poll;
mod random_calls;
mod rights;
mod streams;
