//! slotvm beside other engines of WebAssembly: wasmtime, which compiles with the same Cranelift but
//! shares nothing before it, and wasmi, which interprets.
//!
//! [`check`] makes a random module of bytes (`program`), gives it whatever it imports (`host`), runs it
//! in all engines (`engine`) and compares what can be seen from outside: results, traps, memories,
//! globals, tables, and the arguments of host functions. [`stats`] has what benchmarks make of times.
//!
//! The crate is no member of the workspace, as the other engines take minutes to build.

mod check;
mod engine;
mod host;
mod program;
pub mod stats;
mod survey;
mod value;

pub use check::{Difference, Facts, check, check_program};
pub use engine::End;
pub use program::{Call, Program};
pub use survey::{Survey, bytes_of_seed, check_seeds};
pub use value::Value;
