//! Tests of the embedding API by programs in text form. What a test says holds in the interpreter and
//! in native code in all slot modes.

mod api;
#[cfg(feature = "jit")]
mod backtraces;
mod deadline;
mod host;
mod hostile;
mod interrupt;
mod limiter;
mod limits;
mod linking;
mod support;
mod traps;
mod values;
