//! File tests of slotvm.
