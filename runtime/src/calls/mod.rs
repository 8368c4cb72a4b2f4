//! Calls from the host, and what makes them.

mod entry;
pub(crate) mod instantiate;
