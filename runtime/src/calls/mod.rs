//! Calls from the host, and what makes them.

pub(crate) mod entry;
