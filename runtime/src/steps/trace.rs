//! A hook that sees each instruction before it is executed.

use std::sync::Arc;

use slotvm_bytecode::{Inst, VerifiedModule};

use crate::entities::InstanceId;

/// An instruction that is about to be executed.
#[derive(Copy, Clone, Debug)]
pub struct TraceEvent<'a> {
    /// The instance whose code it is.
    pub instance: InstanceId,
    /// Its module, with the code of all functions.
    pub module: &'a VerifiedModule,
    /// The number of guest frames below the active one.
    pub depth: usize,
    /// The active function.
    pub func: u32,
    /// The code offset of the instruction.
    pub offset: u32,
    /// The instruction.
    pub inst: Inst,
    /// The cells of the operand stack, the top last. The address of a promotable local shows as 0.
    pub stack: &'a [u64],
}

/// The function that is called for each instruction.
pub type TraceFn = Arc<dyn Fn(&TraceEvent<'_>) + Send + Sync>;
