//! Tests of the runtime by programs in text form, run by the interpreter.

mod bulk;
mod calls;
mod forms;
mod frames;
mod fuel;
mod host;
mod linking;
mod model;
mod ops;
mod pairs;
mod support;
mod traps;
mod vectors;
