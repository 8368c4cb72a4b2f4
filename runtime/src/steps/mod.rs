//! Data of the interpreter in a store: code, stacks, and its state while it runs.

pub(crate) mod code;
pub(crate) mod stack;
pub(crate) mod state;
pub(crate) mod target;
pub(crate) mod tiers;
pub(crate) mod trace;
