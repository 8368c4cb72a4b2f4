//! How a store works.

use std::fmt;
use std::sync::Arc;

use slotvm_bytecode::FuncType;

use crate::context::{Poll, Raise};
use crate::entities::FuncHandle;
use crate::error::Error;
use crate::interp;
use crate::interrupt::Interruption;
use crate::limits::Limits;
use crate::memory::MemoryPlan;
use crate::store::Store;

/// Runs a guest function. The cells hold the parameters and receive the results; there are as many as
/// the larger of the two numbers. [`Store::call`] has checked them, and undoes the effects on the
/// guest's stacks if the executor fails or panics.
pub type Executor = fn(&mut Store, FuncHandle, &mut [u64]) -> Result<(), Error>;

/// Gives the native code through which native code calls a host function of a type, or says why there
/// is none.
pub type HostTrampoline = Arc<dyn Fn(&FuncType) -> Result<*const u8, Error> + Send + Sync>;

/// How a store works.
#[derive(Clone)]
pub struct StoreConfig {
    /// The fuel to start with, or `None` to charge none. At most `i64::MAX`.
    pub fuel: Option<u64>,
    /// The cells of the deterministic call stack, or `None` for a stack whose depth is not promised. At
    /// most `i64::MAX`.
    pub stack_cells: Option<u64>,
    /// Whether the results of floating-point arithmetic that are NaN get the canonical bits.
    pub canonical_nans: bool,
    /// Bytes of the host's stack that native frames may use, for an executor that runs native code.
    pub native_stack_bytes_max: usize,
    /// The address space of each memory; `None` chooses by [`MemoryPlan::for_module`].
    pub memory: Option<MemoryPlan>,
    /// What can interrupt guest code; with `None` it does not poll, and nothing can.
    pub interruption: Option<Interruption>,
    /// What runs guest functions.
    pub executor: Executor,
    /// Native code for calls of host functions, for an executor that runs native code.
    pub host_trampoline: Option<HostTrampoline>,
    /// How native code traps where it raises no signal to do so.
    pub raise: Option<Raise>,
    /// What native code calls when a poll is due, if it polls.
    pub poll: Option<Poll>,
    /// What may not be exceeded.
    pub limits: Limits,
}

impl Default for StoreConfig {
    fn default() -> StoreConfig {
        StoreConfig {
            fuel: None,
            stack_cells: None,
            canonical_nans: false,
            native_stack_bytes_max: 1 << 20,
            memory: None,
            interruption: None,
            executor: interp::execute,
            host_trampoline: None,
            raise: None,
            poll: None,
            limits: Limits::default(),
        }
    }
}

impl fmt::Debug for StoreConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreConfig")
            .field("fuel", &self.fuel)
            .field("stack_cells", &self.stack_cells)
            .field("canonical_nans", &self.canonical_nans)
            .field("native_stack_bytes_max", &self.native_stack_bytes_max)
            .field("memory", &self.memory)
            .field("interruption", &self.interruption)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
