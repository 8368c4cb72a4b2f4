//! What is compiled, and when.

mod compilations;
pub(crate) mod making;
pub(crate) mod on_call;
pub(crate) mod tiers;
mod wishes;
