//! Compilation statistics of each function, in builds with and without native code.

use std::time::Duration;

use slotvm_ssa::construction::promote::PromotionReport;

use crate::compile::budget::Work;

/// Compilation statistics of a function.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FunctionInfo {
    /// Its number in the module's function index space.
    pub func: u32,
    /// Its name, or what stands in for one.
    pub name: String,
    /// Effort level of the function, and the cause if it is not the one asked for.
    pub work: Work,
    /// Sizes of its forms and of its code.
    pub sizes: Sizes,
    /// The time that all stages took to compile it, without placing the code.
    pub compile_time: Duration,
    /// The report of promotion, if the slot mode promotes and SSA form was not made without it.
    pub promotion: Option<PromotionReport>,
}

/// Sizes of a compiled function.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Basic blocks of the IR.
    pub n_blocks: usize,
    /// Instructions of the IR.
    pub n_insts: usize,
    /// Block parameters of the IR, the function's own left out.
    pub n_phis: usize,
    /// Instructions of the CLIF, before optimisation.
    pub n_clif_insts: usize,
    /// Parameters of CLIF blocks, before optimisation, the function's own left out.
    pub n_clif_params: usize,
    /// Machine code, constants included.
    pub code_bytes: usize,
    /// The native frame below the frame pointer.
    pub frame_bytes: u32,
    /// Bytes of these for slots and return areas. The rest holds spilled values, saved registers and arguments.
    pub slot_bytes: u32,
}
