//! WASI preview 1, as programs see it: a program that does nothing but pass calls on is called with good, bad
//! and impossible arguments, in the interpreter and as native code.
//!
//! The error numbers that are expected stand here once more, from the specification, so that the crate
//! does not agree with itself alone.

mod addresses;
mod args;
mod clocks;
mod descriptors;
mod directories;
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
