//! The embedding API, with wasmtime's names: engines, modules, stores, and what is in them.

pub(crate) mod c_value;
mod call;
pub(crate) mod caller;
pub(crate) mod engine;
#[cfg(feature = "jit")]
mod entries;
mod extend;
pub(crate) mod externs;
pub(crate) mod func;
pub(crate) mod host_func;
pub(crate) mod instance;
pub(crate) mod leaf;
pub(crate) mod linker;
pub(crate) mod module;
pub(crate) mod pipeline;
mod precompiled;
pub(crate) mod rooted;
pub(crate) mod store;
pub(crate) mod typed;
pub(crate) mod types;
pub(crate) mod val;
