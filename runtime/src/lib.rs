//! What a slotvm program runs in.
pub mod context;
