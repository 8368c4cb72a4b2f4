//! Construction of slot form and of SSA form.
//!
//! [`mod@build`] makes slot form of bytecode, and [`promote`] SSA form of slot form. [`mod@construct`] does for any
//! representation what promotion does for the IR; [`braun`] needs no graph.

pub(crate) mod accesses;
pub mod braun;
#[cfg(feature = "ir")]
pub mod build;
pub mod construct;
pub mod observe;
mod on_the_fly;
mod options;
#[cfg(feature = "ir")]
pub mod promote;
pub(crate) mod rename;
pub(crate) mod sites;
