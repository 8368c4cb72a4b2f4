//! The owners of native code: the engine, and modules with what was kept of them.

pub(crate) mod code_table;
pub(crate) mod eager;
pub(crate) mod engine;
mod file;
pub(crate) mod keeping;
pub(crate) mod kept;
pub(crate) mod module_trampolines;
pub(crate) mod resources;
pub(crate) mod saving;
