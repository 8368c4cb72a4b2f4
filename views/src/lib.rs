//! Functions as people see them.
//!
//! [`names`] has names as their source wrote them, [`drawing`] draws graphs of blocks, `disassembly` takes native code
//! apart, and `explain` shows a function in every stage on one page. The last two need the feature `pages`.
//!
//! A crate of its own, because it is a third of what `vmrun` takes to compile and can be compiled beside the rest.

#[cfg(feature = "pages")]
pub mod disassembly;
pub mod drawing;
#[cfg(feature = "pages")]
pub mod explain;
pub mod names;

/// Why a view cannot be made.
#[cfg(feature = "pages")]
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// The function has no instruction at the offset.
    #[error("{0}")]
    NotThere(String),
    /// The function cannot be shown.
    #[error("{0}")]
    Failed(String),
    /// The function cannot be compiled.
    #[error("{0}")]
    Compiler(Box<slotvm::Error>),
}

#[cfg(feature = "pages")]
impl From<slotvm::Error> for ViewError {
    fn from(error: slotvm::Error) -> ViewError {
        ViewError::Compiler(Box::new(error))
    }
}
