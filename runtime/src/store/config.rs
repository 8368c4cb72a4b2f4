//! Configuration of a store.

use crate::limits::Limits;
use crate::memory::linear::MemoryPlan;
use crate::store::interrupt::Interruption;

/// Configuration of a store. Nothing in it is trusted: whatever the values are, no guest code reaches more than its
/// own state.
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
    /// below it. A thread with less stack allows less.
    pub native_stack_bytes_max: usize,
    /// The address space of each memory; `None` chooses by [`MemoryPlan::for_module`].
    pub memory: Option<MemoryPlan>,
    /// Event that can interrupt guest code. With `None` code does not poll, and nothing interrupts it.
    pub interruption: Option<Interruption>,
    /// The limits.
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
