//! The passes that are switched on.

use std::sync::Arc;

use slotvm_ssa::pipeline::PassSet;

/// A set of passes for each function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Passes {
    /// The passes of functions that have no set of their own.
    pub(crate) usual: PassSet,
    /// Sets of the first functions, by their numbers in the function index space.
    pub(crate) by_function: Arc<[PassSet]>,
}
