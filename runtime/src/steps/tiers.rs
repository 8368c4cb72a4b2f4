//! The interface between the interpreter and a maker of native code while a program runs.
//!
//! The code of the interpreter counts calls of functions and rounds of loops. Where a count is due, it tells its
//! [`Tiers`], who may have native code made, now or later, in this or another thread, and then hand it over by
//! `TieredCode::install`. Calls of the function go to that code from then on, and loops go on in it.

use std::fmt;
use std::sync::Arc;

use super::code::ModuleCode;
use crate::context::Entry;
use crate::entities::InstanceId;

/// A part of a module that native code can be made of by itself.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// A function.
    Func(u32),
    /// The rest of a function from the start of a basic block on, by the block's number in
    /// [`Body::blocks`](slotvm_bytecode::verified::Body::blocks). The function has been entered before: it has taken what
    /// it takes from the call stack and from the frame stack.
    Loop(u32, u32),
}

impl Part {
    /// The function, in the index space of the module.
    pub fn func(self) -> u32 {
        match self {
            Part::Func(func) | Part::Loop(func, _) => func,
        }
    }
}

/// A call of an interpreted function that is to be made in the place of native code that was left for it.
#[derive(Copy, Clone, Debug)]
pub(crate) struct TailCall {
    pub(crate) instance: InstanceId,
    pub(crate) func: u32,
    /// The cell of the stack where its arguments start.
    pub(crate) args: usize,
}

/// Decides what is worth native code. See the module documentation.
///
/// # Safety
/// The code and the entry that [`Tiers::ready`] returns are as [`TieredCode::install`] demands.
pub unsafe trait Tiers: Send + Sync {
    /// The calls of a function, or rounds of a loop, after which [`Tiers::hot`] is told; at least 1. `n_insts` is the
    /// number of instructions of the function, or of those that the loop has, `n_all` that of the function.
    fn threshold(&self, part: Part, n_insts: u32, n_all: u32) -> u32;

    /// Native code of a function that is about to be called for the first time, if it is there already, so that the function
    /// need never be interpreted. It and the entry to it are as [`TieredCode::install`] takes them.
    fn ready(&self, func: u32) -> Option<(*const u8, Option<Entry>)>;

    /// Is told that the threshold was reached. Returns after how many more calls or rounds it is to be told again, unless
    /// native code is there by then.
    fn hot(&self, code: &TieredCode, part: Part, n_insts: u32) -> u32;
}

/// The interpreter's code of a module, to which native code can be added.
#[derive(Clone)]
pub struct TieredCode(pub(crate) Arc<ModuleCode>);

impl fmt::Debug for TieredCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TieredCode").finish_non_exhaustive()
    }
}
