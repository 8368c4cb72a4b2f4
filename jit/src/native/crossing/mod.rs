//! Where host, interpreter and native code call each other, and where traps come back.

pub(crate) mod activation;
pub(crate) mod backtrace;
pub(crate) mod enter;
pub(crate) mod executor;
pub(crate) mod raise;
pub(crate) mod roots;
pub(crate) mod signals;
pub(crate) mod stubs;
pub(crate) mod trampoline;
pub(crate) mod trampolines;
