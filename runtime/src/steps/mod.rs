//! What the interpreter keeps in a store: prepared code, stacks, and who sees each instruction.

pub(crate) mod prepare;
pub(crate) mod stack;
pub(crate) mod trace;
