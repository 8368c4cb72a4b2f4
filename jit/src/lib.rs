//! The embedding API of slotvm.

#[cfg(feature = "jit")]
mod abi;
