//! Native code computes what the reference computes: each instruction on edge values, and programs
//! around the corners of the lowering, in all slot modes, with guard pages and with checks.
//!
//! A build without native code compares the interpreter with the definitions of instructions only.

mod engines;
mod numeric;
mod pairs;
mod programs;
mod vectors;
