//! Tools around the IR: a tutorial, LLVM IR, and what tests share.

#[cfg(feature = "ir")]
pub mod llvm;
#[cfg(all(test, feature = "ir"))]
pub(crate) mod samples;
#[cfg(test)]
pub(crate) mod testing;
pub mod tutorial;
