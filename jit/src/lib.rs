//! The embedding API of slotvm.
