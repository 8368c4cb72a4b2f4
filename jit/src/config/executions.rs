//! The executions of a run, as data that decides on exits of native code, in place of what an interpreter has seen.

use std::collections::BTreeMap;

/// The executions of a module in a run. Functions that were not called are missing. For tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Executions {
    /// The functions, by their numbers in the module's function index space.
    pub functions: BTreeMap<u32, FunctionExecutions>,
}

/// The executions of a function in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionExecutions {
    /// The number of executions of each block of the bytecode, by the code offset of its start. Nothing is known of blocks
    /// that are missing.
    pub blocks: BTreeMap<u32, u64>,
    /// The functions of the module that an indirect call has called, by the code offset of the call. Calls of which others are
    /// not known are missing.
    pub callees: BTreeMap<u32, Vec<u32>>,
}
