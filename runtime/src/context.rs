//! The memory that native code and the runtime share: `#[repr(C)]` structures with a stable layout.
//!
//! Native code receives a `*mut VmCtx` as its first argument and reaches everything else from it. The
//! offsets are public constants, so that the lowering names fields and not numbers. All pointers stay
//! valid while the store lives; the structures they point to never move, but the *contents* of
//! [`MemoryDef`] and [`TableDef`] change when memories and tables grow.

use std::mem::offset_of;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64};

use crate::exit::Exit;

/// The context of one instance, as native code sees it.
///
/// Right behind it, at [`offsets::VMCTX_BYTES`], are the cells of all globals of the index space, as
/// [`slotvm_bytecode::VerifiedModule::global_cell`] numbers them: the value of a global defined by the module, the address of
/// the first cell of an imported one.
#[repr(C)]
#[derive(Debug)]
pub struct VmCtx {
    /// The state that all instances of the store share.
    pub shared: *mut Shared,
    /// Interprets the function of the instance whose number is in [`Shared::selector`], as [`HostCtx::call`] calls a
    /// host function: the same trampolines lead to both.
    pub interpret: Option<Interpret>,
    /// Memory 0, or null if the module has none.
    pub memory: *mut MemoryDef,
    /// The first byte of memory 0 if it has guard pages: such a memory never moves, so code need not look at
    /// its definition, a load on which all others would wait.
    pub memory_base: *mut u8,
    /// The tables of the index space.
    pub tables: *const *mut TableDef,
    /// The store's number of each of the module's function types: equal types, equal numbers.
    pub type_ids: *const u32,
    /// The handle of each function of the index space, for `ref.func`; null where the code needs none.
    pub func_handles: *const u64,
    /// Copies of the records of the imported functions, for calls: those of the store move, these do not.
    pub imports: *const FuncRecord,
    /// The functions of the imports that are leaves, by their index; null if none is one.
    pub leaves: *const LeafFn,
    /// The targets of calls of each function that the module defines, in their order; null in a store that interprets
    /// everything. Functions that nothing calls by them may have null. If functions are compiled one by one, other threads
    /// write it while native code runs; where an entry led before, calls still lead to the function.
    pub entries: *const AtomicPtr<u8>,
    /// The way of calls of functions that have no native code yet.
    pub on_call: OnCall,
    /// The address in memory 0 of the lowest byte of the frame stack in use; the frame stack grows
    /// downwards. 0 if the module declares none.
    pub frame_sp: u32,
    /// The address in memory 0 of the first byte of the frame stack.
    pub frame_base: u32,
    /// The instance's number in its store.
    pub instance: u32,
}

impl VmCtx {
    /// The context of an empty instance.
    pub const EMPTY: VmCtx = VmCtx {
        shared: ptr::null_mut(),
        interpret: None,
        memory: ptr::null_mut(),
        memory_base: ptr::null_mut(),
        tables: ptr::null(),
        type_ids: ptr::null(),
        func_handles: ptr::null(),
        imports: ptr::null(),
        leaves: ptr::null(),
        entries: ptr::null(),
        on_call: OnCall::NONE,
        frame_sp: 0,
        frame_base: 0,
        instance: 0,
    };
}

/// The module of a function that native code makes or interprets when it is called. Only such code reads it.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct OnCall {
    /// Whoever makes the native code of the module.
    pub maker: *const core::ffi::c_void,
    /// The targets of stubs, for each function that the module defines, in their order. Other threads write it while native code
    /// runs.
    pub targets: *const AtomicPtr<u8>,
}

impl OnCall {
    /// Of a module whose functions have all their native code, or never have any.
    pub const NONE: OnCall = OnCall { maker: ptr::null(), targets: ptr::null() };
}

/// The state of a store, as native code of all instances sees it.
#[repr(C)]
#[derive(Debug)]
pub struct Shared {
    /// Fuel left. Never negative; `i64::MAX` is more than any program uses.
    pub fuel: i64,
    /// Cells left on the deterministic call stack. Never negative.
    pub stack_cells: i64,
    /// Frames of guest code must stay above this address of the host's stack. 0 while no call from the host is
    /// active.
    pub stack_limit: usize,
    /// The thread on whose stack the limit lies, by its number; 0 while there is no limit.
    pub stack_thread: usize,
    /// The epoch that the host counts; null if the code of the store does not poll. Other threads write
    /// this and the following while native code runs.
    pub epoch: *const AtomicU64,
    /// The epoch at which a poll is due.
    pub poll_at: *const AtomicU64,
    /// Records of all functions of the store. A handle is the distance in bytes from here to the end of the
    /// record; handle 0 is null.
    pub funcs: *const FuncRecord,
    /// Functions of the runtime that native code calls.
    pub libcalls: *const Libcalls,
    /// The target of native code that traps by a call.
    pub raise: Option<Raise>,
    /// The function that native code calls when the epoch has reached `poll_at`.
    pub poll: Option<Poll>,
    /// The function that native code calls and that has none, by its number among those that its module defines.
    /// Native code writes it, and goes on to [`VmCtx::interpret`]. In the other direction, the number of the loop that goes
    /// on in native code.
    pub selector: u32,
    /// The exit that native code is being left at, or null. Native code writes it, right before it is left.
    pub exit: *const Exit,
    /// The function that was called where native code is left after an indirect call: a cell of its handle. Native code writes
    /// it as it writes the exit.
    pub exit_callee: u64,
    /// Where native code has called a bulk operation: the return address and the frame pointer of the function that calls.
    pub call_pc: usize,
    /// See `call_pc`.
    pub call_fp: usize,
    /// The store, for the runtime's own functions. Set by `Store::enter_native`.
    pub store: *mut core::ffi::c_void,
    /// The address space of the memories of the store.
    pub memories: *const MemorySpan,
    /// Their number.
    pub n_memories: usize,
    /// Room for [`EXIT_CELLS_MAX`](crate::exit::EXIT_CELLS_MAX) cells: the values of the frame that an exit leaves, and the results of a call that keeps all
    /// registers, until its caller has read them, which it does at once. Null until the store has an instance whose code may do
    /// either.
    pub exit_cells: *mut u64,
}

impl Shared {
    /// State of an empty store whose code does not poll: no fuel, no stack, and no functions.
    pub const EMPTY: Shared = Shared {
        fuel: 0,
        stack_cells: 0,
        stack_limit: 0,
        stack_thread: 0,
        epoch: ptr::null(),
        poll_at: ptr::null(),
        funcs: ptr::null(),
        libcalls: ptr::null(),
        raise: None,
        poll: None,
        selector: 0,
        exit: ptr::null(),
        exit_callee: 0,
        call_pc: 0,
        call_fp: 0,
        store: ptr::null_mut(),
        memories: ptr::null(),
        n_memories: 0,
        exit_cells: ptr::null_mut(),
    };

    /// Whether an access of this address faults because a memory of the store ends before it. An access
    /// that starts inside the memory has the first address beyond it.
    ///
    /// Takes no lock and allocates nothing, so a signal handler may ask.
    ///
    /// # Safety
    /// The store lives, and the thread is running its native code.
    pub unsafe fn is_behind_a_memory(&self, address: usize) -> bool {
        if self.n_memories == 0 {
            return false;
        }
        // SAFETY: there are as many as that, and only the host changes the list, while no native code
        // runs.
        let memories = unsafe { std::slice::from_raw_parts(self.memories, self.n_memories) };
        memories.iter().any(|span| {
            // SAFETY: the definition lives as long as the store, and native code does not write it.
            let def = unsafe { &*span.def };
            let offset = (address as u64).checked_sub(def.base.addr() as u64);
            offset.is_some_and(|offset| (def.bytes..span.bytes).contains(&offset))
        })
    }
}

/// The address space of a memory.
#[derive(Copy, Clone, Debug)]
pub struct MemorySpan {
    /// The memory.
    pub def: *const MemoryDef,
    /// The bytes from its first one on that belong to it, accessible or not.
    pub bytes: u64,
}

/// A linear memory.
#[repr(C)]
#[derive(Debug)]
pub struct MemoryDef {
    /// Its first byte. Never changes for a memory with guard pages.
    pub base: *mut u8,
    /// Its size in bytes.
    pub bytes: u64,
}

/// A table.
#[repr(C)]
#[derive(Debug)]
pub struct TableDef {
    /// Its first element, a cell.
    pub base: *mut u64,
    /// The number of its elements.
    pub len: u64,
}

/// A function of a store, as `call_indirect` and calls of imported functions see it. It never changes, but the cell of its
/// entry does: others write there when the function is compiled, or when the code for calls of a host function is made
/// ([`find_host_code`](crate::native::find_host_code)).
///
/// In that cell is the address of native code of the `tail` calling convention that takes `ctx`, a return-area pointer if
/// the results do not fit registers, and the parameters.
///
/// Its size is a power of two, so that the number of a record comes from a handle by a shift.
#[repr(C, align(32))]
#[derive(Copy, Clone, Debug)]
pub struct FuncRecord {
    /// The cell with its native entry point; null in a store that interprets everything.
    pub entry: *const AtomicPtr<u8>,
    /// Its first argument: the `VmCtx` of the instance that defines it, or the [`HostCtx`] of a host
    /// function.
    pub ctx: *mut VmCtx,
    /// The store's number of its type.
    pub type_id: u32,
    /// Its number among the functions that its module defines; [`u32::MAX`] for a host function.
    pub defined: u32,
}

/// A C function that native code calls as it is. Its parameters are `data` and those of the import.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct LeafFn {
    /// Its address.
    pub code: *const u8,
    /// Its first argument.
    pub data: *mut core::ffi::c_void,
}

impl LeafFn {
    /// Of an import that is no leaf.
    pub(crate) const NONE: LeafFn = LeafFn { code: ptr::null(), data: ptr::null_mut() };
}

// SAFETY: it is two addresses, and nothing here reads what is there. `HostFn::with_leaf` demands that the function can be
// called with them on any thread.
unsafe impl Send for LeafFn {}
// SAFETY: threads that share it can only copy the addresses, as those do that it is sent to.
unsafe impl Sync for LeafFn {}

/// The first argument of a host function's native trampoline. It starts as [`VmCtx`] does, so that the trampoline
/// also serves functions that are interpreted.
#[repr(C)]
#[derive(Debug)]
pub struct HostCtx {
    /// The state that all instances of the store share.
    pub shared: *mut Shared,
    /// Calls the function. `cells` holds the parameters and receives the results, and `fp` is the frame pointer of the
    /// trampoline that calls. Returns 0, or 1 if the function failed; its error is then pending in the store.
    pub call: unsafe extern "C" fn(ctx: *mut HostCtx, cells: *mut u64, fp: usize) -> u32,
}

/// Interprets a function. `cells` holds the parameters and receives the results, and `fp` is the frame pointer of the
/// trampoline that calls. Returns 0, or 1 if the function failed; its error is then pending in the store.
pub type Interpret = unsafe extern "C" fn(ctx: *mut VmCtx, cells: *mut u64, fp: usize) -> u32;

/// Entry from the host to native code of a function type: reads the parameters from the cells, calls `code` with
/// `ctx`, and writes the results to the cells. Returns 1, or 0 if the code trapped. The maker of the code defines
/// what `activation` points to.
pub type EntryTrampoline = unsafe extern "C" fn(
    ctx: *mut VmCtx,
    code: *const u8,
    cells: *mut u64,
    activation: *mut core::ffi::c_void,
) -> u32;

/// Ends the native code that calls it: the trap, or the pending error, that `code` stands for happens
/// where it was called. The executor of the store decides what the codes are.
pub type Raise = unsafe extern "C" fn(code: u32) -> !;

/// Native code that calls [`Libcalls::poll`], and ends the native code that calls it if that fails. Beyond
/// what the C convention promises it keeps all registers, so Rust code cannot be one.
pub type Poll = unsafe extern "C" fn(ctx: *mut VmCtx);

/// Functions of the runtime that native code calls, with the C calling convention.
///
/// Those that can fail return 0 for success. For 1, native code traps with the code that belongs to the
/// operation; bulk operations that were interrupted return 2, and their error is pending in the store. Lengths
/// and addresses are unsigned.
#[repr(C)]
#[derive(Debug)]
pub struct Libcalls {
    /// Function that polls when the epoch has reached [`Shared::poll_at`]. `fp` is the frame pointer of the native code that
    /// calls, which is the code of [`Shared::poll`]. Returns 0 to continue, or 1 with an error pending in the store.
    pub poll: unsafe extern "C" fn(ctx: *mut VmCtx, fp: usize) -> u32,
    /// `memory.grow`: returns the old size in pages, or `u32::MAX`. It is more than that if the limiter
    /// of the store failed; its error is then pending in the store.
    pub memory_grow: unsafe extern "C" fn(ctx: *mut VmCtx, pages: u32) -> u64,
    /// Sets bytes, all of which may be written, to one value.
    pub set_bytes: unsafe extern "C" fn(dst: *mut u8, byte: u32, len: usize),
    /// Copies bytes to a place that may be written and may overlap theirs.
    pub move_bytes: unsafe extern "C" fn(dst: *mut u8, src: *const u8, len: usize),
    /// `memory.fill`.
    pub memory_fill: unsafe extern "C" fn(ctx: *mut VmCtx, dst: u32, byte: u32, len: u32) -> u32,
    /// `memory.copy`.
    pub memory_copy: unsafe extern "C" fn(ctx: *mut VmCtx, dst: u32, src: u32, len: u32) -> u32,
    /// `memory.init` from a data segment.
    pub memory_init:
        unsafe extern "C" fn(ctx: *mut VmCtx, segment: u32, dst: u32, src: u32, len: u32) -> u32,
    /// `data.drop`.
    pub data_drop: unsafe extern "C" fn(ctx: *mut VmCtx, segment: u32),
    /// `table.grow`: returns the old size, or what `memory_grow` returns.
    pub table_grow: unsafe extern "C" fn(ctx: *mut VmCtx, table: u32, value: u64, n: u32) -> u64,
    /// `table.fill`.
    pub table_fill:
        unsafe extern "C" fn(ctx: *mut VmCtx, table: u32, dst: u32, value: u64, len: u32) -> u32,
    /// `table.copy`. `tables` is the destination table, and the source table in bits 32..64.
    pub table_copy:
        unsafe extern "C" fn(ctx: *mut VmCtx, tables: u64, dst: u32, src: u32, len: u32) -> u32,
    /// `table.init`. `segment_table` is the segment, and the table in bits 32..64.
    pub table_init: unsafe extern "C" fn(
        ctx: *mut VmCtx,
        segment_table: u64,
        dst: u32,
        src: u32,
        len: u32,
    ) -> u32,
    /// `elem.drop`.
    pub elem_drop: unsafe extern "C" fn(ctx: *mut VmCtx, segment: u32),
}

macro_rules! offsets {
    ($($(#[$doc:meta])* $name:ident = $ty:ident.$($field:ident).+;)*) => {
        /// Byte offsets of the fields, for the lowering.
        pub mod offsets {
            #![allow(missing_docs, reason = "each constant bears the name of its field")]
            use super::*;
            /// The cells of globals follow here.
            pub const VMCTX_BYTES: i32 = size_of::<VmCtx>() as i32;
            $($(#[$doc])* pub const $name: i32 = offset_of!($ty, $($field).+) as i32;)*
        }
    };
}

offsets! {
    VMCTX_SHARED = VmCtx.shared;
    VMCTX_MEMORY = VmCtx.memory;
    VMCTX_MEMORY_BASE = VmCtx.memory_base;
    VMCTX_TABLES = VmCtx.tables;
    VMCTX_TYPE_IDS = VmCtx.type_ids;
    VMCTX_FUNC_HANDLES = VmCtx.func_handles;
    VMCTX_IMPORTS = VmCtx.imports;
    VMCTX_LEAVES = VmCtx.leaves;
    VMCTX_ENTRIES = VmCtx.entries;
    VMCTX_ON_CALL_MAKER = VmCtx.on_call.maker;
    VMCTX_ON_CALL_TARGETS = VmCtx.on_call.targets;
    VMCTX_FRAME_SP = VmCtx.frame_sp;
    VMCTX_FRAME_BASE = VmCtx.frame_base;
    SHARED_FUEL = Shared.fuel;
    SHARED_STACK_CELLS = Shared.stack_cells;
    SHARED_STACK_LIMIT = Shared.stack_limit;
    SHARED_EPOCH = Shared.epoch;
    SHARED_POLL_AT = Shared.poll_at;
    SHARED_FUNCS = Shared.funcs;
    SHARED_LIBCALLS = Shared.libcalls;
    SHARED_RAISE = Shared.raise;
    SHARED_POLL = Shared.poll;
    SHARED_SELECTOR = Shared.selector;
    SHARED_EXIT = Shared.exit;
    SHARED_EXIT_CALLEE = Shared.exit_callee;
    SHARED_EXIT_CELLS = Shared.exit_cells;
    SHARED_CALL_PC = Shared.call_pc;
    SHARED_CALL_FP = Shared.call_fp;
    MEMORY_BASE = MemoryDef.base;
    MEMORY_BYTES = MemoryDef.bytes;
    TABLE_BASE = TableDef.base;
    TABLE_LEN = TableDef.len;
    FUNC_ENTRY = FuncRecord.entry;
    FUNC_CTX = FuncRecord.ctx;
    FUNC_TYPE_ID = FuncRecord.type_id;
    LEAF_CODE = LeafFn.code;
    LEAF_DATA = LeafFn.data;
    HOSTCTX_CALL = HostCtx.call;
    LIBCALL_POLL = Libcalls.poll;
    LIBCALL_MEMORY_GROW = Libcalls.memory_grow;
    LIBCALL_SET_BYTES = Libcalls.set_bytes;
    LIBCALL_MOVE_BYTES = Libcalls.move_bytes;
    LIBCALL_MEMORY_FILL = Libcalls.memory_fill;
    LIBCALL_MEMORY_COPY = Libcalls.memory_copy;
    LIBCALL_MEMORY_INIT = Libcalls.memory_init;
    LIBCALL_DATA_DROP = Libcalls.data_drop;
    LIBCALL_TABLE_GROW = Libcalls.table_grow;
    LIBCALL_TABLE_FILL = Libcalls.table_fill;
    LIBCALL_TABLE_COPY = Libcalls.table_copy;
    LIBCALL_TABLE_INIT = Libcalls.table_init;
    LIBCALL_ELEM_DROP = Libcalls.elem_drop;
}

const _: () = assert!(offset_of!(VmCtx, shared) == offset_of!(HostCtx, shared));
const _: () = assert!(offset_of!(VmCtx, interpret) == offset_of!(HostCtx, call));

#[cfg(test)]
mod tests {
    use slotvm_bytecode::module::MemoryType;

    use crate::{MemoryPlan, Store, StoreConfig};

    #[test]
    fn memories_end_where_accesses_fault() {
        let mut store = Store::new(StoreConfig::default(), Box::new(()));
        let shared = store.shared_ptr();
        // SAFETY: the store lives; its thread runs nothing else.
        let is_behind = |address: usize| unsafe { (*shared).is_behind_a_memory(address) };
        assert!(!is_behind(0));
        let plan = MemoryPlan { reservation_bytes: 4 << 16, guard_bytes: 1 << 16 };
        let ty = |min| MemoryType { min, max: Some(4) };
        let memories = [0, 1, 4].map(|min| store.new_memory(ty(min), plan).unwrap());
        let bases = memories.map(|memory| store.memory(memory).data().as_ptr().addr());
        for (base, pages) in bases.into_iter().zip([0, 1, 4]) {
            assert!(pages == 0 || !is_behind(base) && !is_behind(base + (pages << 16) - 1));
            assert!(is_behind(base + (pages << 16)));
            assert!(is_behind(base + (5 << 16) - 1));
        }
        assert_eq!(store.memory_grow(memories[1], 2).unwrap(), Some(1));
        assert!(!is_behind(bases[1] + (3 << 16) - 1) && is_behind(bases[1] + (3 << 16)));
        assert!(!is_behind(usize::MAX) && !is_behind(0));
        let checked = store.new_memory(ty(1), MemoryPlan::CHECKED).unwrap();
        let base = store.memory(checked).data().as_ptr().addr();
        assert!(!is_behind(base) && !is_behind(base + (1 << 16) - 1));
    }
}
