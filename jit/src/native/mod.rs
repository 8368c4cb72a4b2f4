//! Native code at run time, in three rooms, each above the next:
//!
//! * `scheduling` decides what is compiled, and when: all at once, when it is called, or when it is hot;
//! * `ownership` holds what was compiled, finds what was kept, and keeps what is new;
//! * `crossing` is where host, interpreter and native code call each other, and where traps come back.
//!
//! `module` is what the API has of them. In a build without the feature `jit`, `no_native` stands for it.

#[cfg(all(test, feature = "jit"))]
mod contain_tests;
#[cfg(feature = "jit")]
pub(crate) mod crossing;
#[cfg(feature = "jit")]
pub(crate) mod module;
#[cfg(not(feature = "jit"))]
pub(crate) mod no_native;
#[cfg(feature = "jit")]
pub(crate) mod ownership;
#[cfg(feature = "jit")]
mod scheduling;
#[cfg(all(test, feature = "jit"))]
mod tests;

#[cfg(not(feature = "jit"))]
pub(crate) use no_native::{self as module, ownership};
