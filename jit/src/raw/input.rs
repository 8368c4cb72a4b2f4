//! Input of the compiler of C functions.

use std::collections::HashMap;
use std::sync::Arc;

use slotvm_bytecode::{Access, VerifiedModule};
use slotvm_ssa::ir::Function;

/// The implementation of an imported function.
#[derive(Copy, Clone, Debug)]
pub(super) enum Import {
    /// The address of a C function.
    Function(usize),
    /// A load or store at a host address.
    Access(Access),
}

/// A module that has passed all checks.
pub(super) struct Input {
    pub(super) module: Arc<VerifiedModule>,
    /// The imported functions.
    pub(super) imports: Vec<Import>,
    /// Slot forms that take the place of bytecode, by function.
    pub(super) functions: HashMap<u32, Function>,
}
