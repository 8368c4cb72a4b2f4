//! What is compiled, and when.

mod at_once;
mod callers;
mod compilations;
pub(crate) mod exits;
mod history;
pub(crate) mod making;
pub(crate) mod on_call;
mod payback;
pub(crate) mod tiers;
mod versions;
mod wishes;
