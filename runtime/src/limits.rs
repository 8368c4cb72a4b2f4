//! The limits of a store, each with its name. Those of a module are in [`slotvm_bytecode::limits`].

/// Frames that a backtrace lists.
pub const TRACE_FRAMES_MAX: usize = 100;

/// Bytes of stack that a leaf function may take: guest code that calls one leaves so many below the limit of its stack.
pub const LEAF_STACK_BYTES_MAX: usize = 64 << 10;

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

impl Limits {
    /// All limits: name and maximum.
    pub fn all(&self) -> [(&'static str, u64); 13] {
        let Limits {
            instances_max,
            funcs_max,
            memories_max,
            memory_pages_max,
            memory_bytes_total_max,
            tables_max,
            table_elems_max,
            table_elems_total_max,
            globals_max,
            externs_max,
            host_calls_max,
            interp_frames_max,
            interp_cells_max,
        } = *self;
        [
            ("instances_max", instances_max.into()),
            ("funcs_max", funcs_max.into()),
            ("memories_max", memories_max.into()),
            ("memory_pages_max", memory_pages_max.into()),
            ("memory_bytes_total_max", memory_bytes_total_max),
            ("tables_max", tables_max.into()),
            ("table_elems_max", table_elems_max.into()),
            ("table_elems_total_max", table_elems_total_max),
            ("globals_max", globals_max.into()),
            ("externs_max", externs_max.into()),
            ("host_calls_max", host_calls_max.into()),
            ("interp_frames_max", interp_frames_max.into()),
            ("interp_cells_max", interp_cells_max.into()),
        ]
    }
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
