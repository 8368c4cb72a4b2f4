//! Tests of the runtime by programs in text form, run by the interpreter.

mod support;
mod traps;
