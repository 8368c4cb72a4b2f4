//! How a store works.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use slotvm_bytecode::FuncType;

use crate::context::{Poll, Raise};
use crate::entities::FuncHandle;
use crate::error::Error;
use crate::limits::Limits;
use crate::memory::linear::MemoryPlan;
use crate::store::Store;
use crate::store::interrupt::Interruption;

/// Runs a guest function. The cells hold the parameters and receive the results; there are as many as
/// the larger of the two numbers. [`Store::call`] undoes the effects on the guest's stacks if the executor
/// fails or panics.
///
/// # Safety
/// Only [`Store::call_unchecked`] calls it, with a guest function of the store and cells that fit its type.
pub type Executor = unsafe fn(&mut Store, FuncHandle, &mut [u64]) -> Result<(), Error>;

/// Returns the native code through which native code calls a host function of a type.
pub type HostTrampoline = Arc<dyn Fn(&FuncType) -> Result<NativeCode, Error> + Send + Sync>;

/// The address of native code, and what keeps the code where it is. A store that uses the address keeps the
/// owner as long as it lives.
#[derive(Clone)]
pub struct NativeCode {
    /// Where the code starts.
    pub address: *const u8,
    /// Frees the code when it is dropped.
    pub owner: Arc<dyn Any + Send + Sync>,
}

impl fmt::Debug for NativeCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeCode").field("address", &self.address).finish_non_exhaustive()
    }
}

/// How a store runs native code. [`Store::new_native`] takes it, and says what it has to be.
#[derive(Clone)]
pub struct NativeHooks {
    /// Runs guest functions.
    pub executor: Executor,
    /// Native code for calls of host functions.
    pub host_trampoline: HostTrampoline,
    /// How native code traps where it raises no signal to do so.
    pub raise: Raise,
    /// What native code calls when a poll is due, if it polls.
    pub poll: Option<Poll>,
}

impl fmt::Debug for NativeHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeHooks").finish_non_exhaustive()
    }
}

/// How a store works. Nothing in it is trusted: whatever the values are, no guest code gets more than
/// its own.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    /// The fuel to start with, or `None` to charge none. At most `i64::MAX`.
    pub fuel: Option<u64>,
    /// The cells of the deterministic call stack, or `None` for a stack whose depth is not promised. At
    /// most `i64::MAX`.
    pub stack_cells: Option<u64>,
    /// Whether the results of floating-point arithmetic that are NaN get the canonical bits.
    pub canonical_nans: bool,
    /// Bytes of the host's stack that a call from the host may use, with all calls that host functions make
    /// below it. A thread with less stack gives less.
    pub native_stack_bytes_max: usize,
    /// The address space of each memory; `None` chooses by [`MemoryPlan::for_module`].
    pub memory: Option<MemoryPlan>,
    /// What can interrupt guest code; with `None` it does not poll, and nothing can.
    pub interruption: Option<Interruption>,
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
            limits: Limits::default(),
        }
    }
}
