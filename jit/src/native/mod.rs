//! Native code at run time: what engines and modules have of it, how the host enters it, and how it traps.
//!
//! In a build without the feature `jit`, `no_native` stands for `engine` and `module`.

#[cfg(feature = "jit")]
pub(crate) mod activation;
#[cfg(feature = "jit")]
mod compilations;
#[cfg(all(test, feature = "jit"))]
mod contain_tests;
#[cfg(feature = "jit")]
mod eager;
#[cfg(feature = "jit")]
pub(crate) mod engine;
#[cfg(feature = "jit")]
mod enter;
#[cfg(feature = "jit")]
pub(crate) mod executor;
#[cfg(feature = "jit")]
pub(crate) mod keeping;
#[cfg(feature = "jit")]
pub(crate) mod kept;
#[cfg(feature = "jit")]
mod lazy;
#[cfg(feature = "jit")]
pub(crate) mod module;
#[cfg(feature = "jit")]
mod module_trampolines;
#[cfg(not(feature = "jit"))]
pub(crate) mod no_native;
#[cfg(feature = "jit")]
mod parts;
#[cfg(feature = "jit")]
pub(crate) mod raise;
#[cfg(feature = "jit")]
mod saving;
#[cfg(feature = "jit")]
pub(crate) mod signals;
#[cfg(feature = "jit")]
pub(crate) mod stack;
#[cfg(feature = "jit")]
mod stubs;
#[cfg(all(test, feature = "jit"))]
mod tests;
#[cfg(feature = "jit")]
mod tiers;
#[cfg(feature = "jit")]
pub(crate) mod trampoline;
#[cfg(feature = "jit")]
pub(crate) mod trampolines;
#[cfg(feature = "jit")]
mod workers;

#[cfg(not(feature = "jit"))]
pub(crate) use no_native::{self as engine, self as keeping, self as module};
