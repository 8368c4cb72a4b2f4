//! Benchmarks of slotvm.
