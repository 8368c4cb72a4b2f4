//! The interpreter's state in a store: prepared code, stacks, and the observer of instructions.

pub(crate) mod prepare;
pub(crate) mod stack;
pub(crate) mod trace;
