//! `vmrun profile`: which blocks a program executes, and on which paths of calls.
//!
//! The interpreter tells of each instruction ([`collect`]), so all figures are exact and the same on each machine: an
//! instruction has the weight 1, whatever time it takes. The functions that indirect calls have called are counted, too.
//! The SSA form that native code is made of and Cranelift's IR have other blocks; they are counted by native code itself
//! ([`slotvm::Config::count_blocks`]). [`listing`] prints counts beside the text of each form, and [`folded`] paths of calls
//! for tools that draw flame graphs.
//!
//! [`Profile`] is also what `--json` writes; its fields are the schema. Fields may be added without a new
//! [`SCHEMA_VERSION`], so that readers should ignore unknown ones.

pub mod collect;
pub mod folded;
pub mod listing;
#[cfg(feature = "explain")]
pub mod native;
#[cfg(feature = "explain")]
pub mod reading;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// [`Profile::schema`].
pub const SCHEMA: &str = "slotvm-profile";
/// [`Profile::version`].
pub const SCHEMA_VERSION: u32 = 1;

/// The instructions that a program has executed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Profile {
    /// The name of the schema, [`SCHEMA`].
    pub schema: Cow<'static, str>,
    /// The version of the schema, [`SCHEMA_VERSION`].
    pub version: u32,
    /// The number of executed instructions.
    pub instructions: u64,
    /// The functions that executed any, in the order of their numbers.
    pub functions: Vec<FunctionProfile>,
}

/// The part of a function in it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct FunctionProfile {
    /// Its number in the module's function index space.
    pub func: u32,
    /// Its name, or what stands in for one.
    pub name: String,
    /// The number of executed instructions, without those of functions that it calls.
    pub instructions: u64,
    /// All its blocks, in the order of the bytecode.
    pub blocks: Vec<BlockProfile>,
    /// Its executed `call_indirect`s, in the order of the bytecode. Files of earlier builds have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallProfile>,
}

/// The part of a block of the bytecode.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct BlockProfile {
    /// The code offset of its first instruction.
    pub offset: u32,
    /// The number of executions of its first instruction.
    pub count: u64,
    /// The number of instructions executed in it.
    pub instructions: u64,
}

/// The part of an indirect call that is no tail call.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct CallProfile {
    /// The code offset of the call.
    pub offset: u32,
    /// The number of executions, with calls of host functions and those that trap.
    pub count: u64,
    /// The functions of the module that it has called, the most frequent first; at most
    /// [`PROFILED_CALLEES_MAX`](collect::PROFILED_CALLEES_MAX).
    pub callees: Vec<CalleeProfile>,
}

impl CallProfile {
    /// The number of calls of functions that are not listed: host functions, functions past the limit, and calls that trap.
    pub fn n_others(&self) -> u64 {
        let listed =
            self.callees.iter().fold(0_u64, |sum, callee| sum.saturating_add(callee.count));
        self.count.saturating_sub(listed)
    }
}

/// A function that an indirect call has called.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct CalleeProfile {
    /// Its number in the module's function index space.
    pub func: u32,
    /// The number of calls.
    pub count: u64,
}
