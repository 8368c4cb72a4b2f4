//! Data of the interpreter in a store: code, stacks, and its state while it runs.

pub(crate) mod blocks;
pub(crate) mod callees;
pub(crate) mod code;
pub(crate) mod instr;
pub(crate) mod module_code;
pub(crate) mod stack;
pub(crate) mod state;
pub(crate) mod target;
pub(crate) mod trace;
