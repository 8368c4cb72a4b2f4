//! The limits of a store, each with its name. Those of a module are in [`slotvm_bytecode::limits`].

/// Frames that the backtrace of a trap lists.
pub const TRACE_FRAMES_MAX: usize = 100;

/// Address space that memories and tables leave to others where it is limited: Rust's heap, for one,
/// ends the process when it gets no more.
pub const SPARE_ADDRESS_SPACE_BYTES: u64 = 16 << 20;

pub use slotvm_bytecode::cost::{PIECE_BYTES_MAX, PIECE_ELEMS_MAX};

/// Bytes of data segments from which on it pays to map them instead of copying them.
pub const IMAGE_DATA_BYTES_MIN: u64 = 4096;

/// Bytes that segments may span to be mapped even if there is less than half as much data.
pub const IMAGE_SPARSE_BYTES_MAX: u64 = 1 << 20;

/// The limits of a store. Exceeding one fails with an [`crate::Error::Limit`] that names it, or, where
/// guest code can see it, what the instruction does in this case: growing returns -1, a call traps with
/// `StackOverflow`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Instances.
    pub instances_max: u32,
    /// Functions, those of all instances and host functions.
    pub funcs_max: u32,
    /// Linear memories.
    pub memories_max: u32,
    /// Pages of one memory.
    pub memory_pages_max: u32,
    /// Bytes of all memories.
    pub memory_bytes_total_max: u64,
    /// Tables.
    pub tables_max: u32,
    /// Elements of one table.
    pub table_elems_max: u32,
    /// Elements of all tables. Each takes 8 bytes once it was written.
    pub table_elems_total_max: u64,
    /// Globals.
    pub globals_max: u32,
    /// Host objects that guest code holds references to.
    pub externs_max: u32,
    /// Calls from the host into guest code that are active at a time, that is, host functions that call
    /// back. Each has frames on the host's stack, which may end before.
    pub host_calls_max: u32,
    /// Guest frames of the interpreter. Does not apply where the stack is deterministic.
    pub interp_frames_max: u32,
    /// Cells of the frames of the interpreter. Does not apply where the stack is deterministic.
    pub interp_cells_max: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            instances_max: 10_000,
            funcs_max: 10_000_000,
            memories_max: 10_000,
            memory_pages_max: 65_536,
            memory_bytes_total_max: 1 << 36,
            tables_max: 100_000,
            table_elems_max: 10_000_000,
            table_elems_total_max: 50_000_000,
            globals_max: 10_000_000,
            externs_max: 10_000_000,
            host_calls_max: 100,
            interp_frames_max: 400_000,
            interp_cells_max: 4_000_000,
        }
    }
}
