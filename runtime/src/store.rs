//! The store: owns everything that a program runs in, and is the way in for calls from the host.
//!
//! All instances of a store see each other's memories, tables, globals and functions if they import
//! them; nothing is freed before the store is. Native code reaches the same data by raw pointers (see
//! [`crate::context`]); it runs only below [`Store::call`], which borrows the store exclusively.
//!
//! A handle is an index into the store that made it. Used with another store it names something else
//! or nothing (a panic), but never anything outside.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use slotvm_bytecode::module::{GlobalType, MemoryType, TableType};
use slotvm_bytecode::{FuncType, ValType, VerifiedModule};

use crate::context::{FuncRecord, HostCtx, MemoryDef, Shared, TableDef, VmCtx};
use crate::entry::Entry;
use crate::error::{Error, check_limit};
use crate::host::HostFn;
use crate::instance::{Instance, InstanceId};
use crate::interp;
use crate::libcalls::LIBCALLS;
use crate::limits::Limits;
use crate::memory::{Memory, MemoryPlan};
use crate::pinned::Pinned;
use crate::table::Table;
use crate::trap::Frame;

/// Runs a guest function. The cells hold the parameters and receive the results; there are as many as
/// the larger of the two numbers. [`Store::call`] has checked them, and undoes the effects on the
/// guest's stacks if the executor fails or panics.
pub type Executor = fn(&mut Store, FuncHandle, &mut [u64]) -> Result<(), Error>;

/// Gives the native code through which native code calls a host function of a type.
pub type HostTrampoline = Arc<dyn Fn(&FuncType) -> *const u8 + Send + Sync>;

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
    /// What runs guest functions.
    pub executor: Executor,
    /// Native code for calls of host functions, for an executor that runs native code.
    pub host_trampoline: Option<HostTrampoline>,
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
            executor: interp::execute,
            host_trampoline: None,
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
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// A function of a store. As a cell it is what a `funcref` holds; the null reference is 0.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FuncHandle(NonZeroU64);

impl FuncHandle {
    /// The function that a `funcref` refers to, or `None` for null.
    pub fn from_cell(cell: u64) -> Option<FuncHandle> {
        NonZeroU64::new(cell).map(FuncHandle)
    }

    /// The `funcref` to the function.
    pub fn cell(self) -> u64 {
        self.0.get()
    }

    /// The index of its record.
    pub fn index(self) -> usize {
        (self.0.get() - 1) as usize
    }
}

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident)*) => { $(
        $(#[$doc])*
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub(crate) u32);
    )* };
}

handles! {
    /// A memory of a store.
    MemoryHandle
    /// A table of a store.
    TableHandle
    /// A global of a store.
    GlobalHandle
}

/// Something that a module can import and an instance can export.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Extern {
    /// A function.
    Func(FuncHandle),
    /// A table.
    Table(TableHandle),
    /// A memory.
    Memory(MemoryHandle),
    /// A global.
    Global(GlobalHandle),
}

/// Whose function it is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum FuncTarget {
    /// A function of an instance, in the index space of its module.
    Guest {
        /// The instance.
        instance: InstanceId,
        /// The function.
        func: u32,
    },
    /// A function of the host.
    Host {
        /// The instance that imports it, if it was made for an import.
        instance: Option<InstanceId>,
    },
}

/// What runs when a function is called.
pub(crate) enum FuncKind {
    Guest {
        instance: InstanceId,
        func: u32,
    },
    Host {
        f: HostFn,
        instance: Option<InstanceId>,
        /// Only owned here; the record points to it.
        #[expect(dead_code, reason = "native code accesses it")]
        ctx: Pinned<HostCtx>,
    },
}

/// The part of a function that only the runtime needs.
pub(crate) struct FuncData {
    pub(crate) kind: FuncKind,
    /// The store's number of its type.
    pub(crate) ty: u32,
}

/// A global of a store.
#[derive(Copy, Clone)]
pub(crate) struct GlobalData {
    /// Where its value is: in the instance that defines it, or in `Store::host_globals`.
    pub(crate) cell: *mut u64,
    pub(crate) ty: GlobalType,
}

/// Why native code came back although it has not returned.
enum Pending {
    Error(Error),
    Panic(Box<dyn Any + Send>),
}

/// See the module documentation.
pub struct Store {
    id: u64,
    pub(crate) config: StoreConfig,
    data: Box<dyn Any + Send>,
    shared: Pinned<Shared>,

    types: Vec<FuncType>,
    type_ids: HashMap<FuncType, u32>,
    /// What native code sees of the functions, in step with `funcs`.
    records: Vec<FuncRecord>,
    funcs: Vec<FuncData>,
    pub(crate) memories: Vec<Memory>,
    pub(crate) tables: Vec<Table>,
    pub(crate) globals: Vec<GlobalData>,
    /// The cells of globals that no instance defines.
    host_globals: Vec<Pinned<u64>>,
    externs: Vec<Box<dyn Any + Send>>,
    pub(crate) instances: Vec<Instance>,
    /// Prepared code, by the address of its module, which it keeps alive.
    pub(crate) codes: HashMap<*const VerifiedModule, Arc<interp::ModuleCode>>,

    /// Calls from the host that are active.
    pub(crate) n_host_calls: u32,
    /// Instances that have a frame stack.
    pub(crate) framed: Vec<InstanceId>,
    /// Frame pointers of the instances of `framed`, once for each active call from the host but the
    /// outermost.
    pub(crate) saved_frame_sps: Vec<u32>,
    pending: Option<Pending>,
    pub(crate) interp: interp::Stack,
    pub(crate) trace: Option<interp::trace::TraceFn>,
}

// SAFETY: the raw pointers in a store point to heap memory and mappings that the store itself owns, and
// to native code, which can run in any thread. `Shared::store` is only dereferenced below `Store::call`,
// which has set it. Host functions are `Send + Sync`, everything else that the embedder puts in is
// `Send`.
unsafe impl Send for Store {}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("config", &self.config)
            .field("n_funcs", &self.funcs.len())
            .field("n_instances", &self.instances.len())
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Makes an empty store. The data belong to the embedder.
    pub fn new(config: StoreConfig, data: Box<dyn Any + Send>) -> Store {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        let shared = Pinned::new(Shared {
            fuel: config.fuel.map_or(i64::MAX, clamp),
            stack_cells: config.stack_cells.map_or(i64::MAX, clamp),
            stack_limit: 0,
            funcs: std::ptr::null(),
            libcalls: &raw const LIBCALLS,
            store: std::ptr::null_mut(),
        });
        Store {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            config,
            data,
            shared,
            types: Vec::new(),
            type_ids: HashMap::new(),
            records: Vec::new(),
            funcs: Vec::new(),
            memories: Vec::new(),
            tables: Vec::new(),
            globals: Vec::new(),
            host_globals: Vec::new(),
            externs: Vec::new(),
            instances: Vec::new(),
            codes: HashMap::new(),
            n_host_calls: 0,
            framed: Vec::new(),
            saved_frame_sps: Vec::new(),
            pending: None,
            interp: interp::Stack::default(),
            trace: None,
        }
    }

    /// How the store works.
    pub fn config(&self) -> &StoreConfig {
        &self.config
    }

    /// The embedder's data.
    pub fn data(&self) -> &(dyn Any + Send) {
        &*self.data
    }

    /// The embedder's data.
    pub fn data_mut(&mut self) -> &mut (dyn Any + Send) {
        &mut *self.data
    }

    /// The fuel that is left, if fuel is configured.
    pub fn fuel(&self) -> Option<u64> {
        self.config.fuel?;
        // SAFETY: the store owns the structure; native code does not run while the store is borrowed.
        Some(unsafe { (*self.shared.as_ptr()).fuel } as u64)
    }

    /// Sets the fuel that is left, at most `i64::MAX`.
    ///
    /// # Errors
    /// If fuel is not configured.
    pub fn set_fuel(&mut self, fuel: u64) -> Result<(), Error> {
        if self.config.fuel.is_none() {
            return Err(Error::Usage("fuel is not configured for this store".to_owned()));
        }
        // SAFETY: as in `fuel`.
        unsafe { (*self.shared.as_ptr()).fuel = clamp(fuel) };
        Ok(())
    }

    /// Calls a function. The cells hold the parameters and receive the results; there are as many as
    /// the larger of the two numbers. `i32` and `f32` cells are zero-extended.
    ///
    /// Whatever happens, the stacks of the guest are afterwards as they were before.
    ///
    /// # Errors
    /// If the function fails, too many calls from the host are active, or the cells do not fit.
    pub fn call(&mut self, func: FuncHandle, cells: &mut [u64]) -> Result<(), Error> {
        let Some(data) = self.funcs.get(func.index()) else {
            return Err(Error::Usage(format!("the store has no function {}", func.cell())));
        };
        let is_host = matches!(data.kind, FuncKind::Host { .. });
        let ty = &self.types[data.ty as usize];
        let n_cells = ty.params.len().max(ty.results.len());
        if cells.len() != n_cells {
            let n = cells.len();
            return Err(Error::Usage(format!("a function {ty} takes {n_cells} cells, not {n}")));
        }
        self.check_cells(&ty.params, &mut cells[..ty.params.len()])?;
        let mut entry = Entry::new(self)?;
        let result = if is_host {
            entry.store.call_host(func, cells)
        } else {
            (entry.store.config.executor)(entry.store, func, cells)
        };
        entry.failed = result.is_err();
        result
    }

    /// Makes cells from the host fit for guest code: numbers of 32 bits are zero-extended.
    ///
    /// # Errors
    /// If one of them is no reference to a function of the store, where it should be.
    pub(crate) fn check_cells(&self, types: &[ValType], cells: &mut [u64]) -> Result<(), Error> {
        for (&ty, cell) in types.iter().zip(cells) {
            match ty {
                ValType::I32 | ValType::F32 => *cell = u64::from(*cell as u32),
                ValType::FuncRef if *cell > self.funcs.len() as u64 => {
                    return Err(Error::Usage(format!("the store has no function {cell}")));
                }
                _ => {}
            }
        }
        Ok(())
    }

    // Types and functions.

    /// The store's number of a function type: equal types have equal numbers.
    pub(crate) fn intern_type(&mut self, ty: &FuncType) -> u32 {
        if let Some(&id) = self.type_ids.get(ty) {
            return id;
        }
        let id = self.types.len() as u32;
        self.types.push(ty.clone());
        self.type_ids.insert(ty.clone(), id);
        id
    }

    pub(crate) fn type_of(&self, id: u32) -> &FuncType {
        &self.types[id as usize]
    }

    pub(crate) fn next_func_handle(&self) -> FuncHandle {
        FuncHandle(NonZeroU64::MIN.saturating_add(self.funcs.len() as u64))
    }

    pub(crate) fn push_func(
        &mut self,
        record: FuncRecord,
        kind: FuncKind,
    ) -> Result<FuncHandle, Error> {
        let wanted = self.funcs.len() as u64 + 1;
        check_limit("funcs_max", self.config.limits.funcs_max.into(), wanted)?;
        let handle = self.next_func_handle();
        self.records.push(record);
        self.funcs.push(FuncData { kind, ty: record.type_id });
        // SAFETY: the store owns the structure; native code reads the pointer anew at each use.
        unsafe { (*self.shared.as_ptr()).funcs = self.records.as_ptr() };
        Ok(handle)
    }

    pub(crate) fn func_data(&self, func: FuncHandle) -> &FuncData {
        &self.funcs[func.index()]
    }

    /// The number of functions, of all instances and of the host.
    pub fn n_funcs(&self) -> usize {
        self.funcs.len()
    }

    /// The type of a function.
    pub fn func_type(&self, func: FuncHandle) -> &FuncType {
        self.type_of(self.func_data(func).ty)
    }

    /// Whose function it is.
    pub fn func_target(&self, func: FuncHandle) -> FuncTarget {
        match self.func_data(func).kind {
            FuncKind::Guest { instance, func } => FuncTarget::Guest { instance, func },
            FuncKind::Host { instance, .. } => FuncTarget::Host { instance },
        }
    }

    /// What native code sees of a function.
    pub fn func_record(&self, func: FuncHandle) -> FuncRecord {
        self.records[func.index()]
    }

    // Memories.

    /// Makes a memory that instances can import.
    ///
    /// # Errors
    /// If it exceeds a limit or there is not enough memory.
    pub fn new_memory(&mut self, ty: MemoryType, plan: MemoryPlan) -> Result<MemoryHandle, Error> {
        let memory = Memory::new(ty, plan, self.config.limits.memory_pages_max)?;
        self.push_memory(memory)
    }

    pub(crate) fn push_memory(&mut self, memory: Memory) -> Result<MemoryHandle, Error> {
        let handle = MemoryHandle(self.memories.len() as u32);
        let wanted = u64::from(handle.0) + 1;
        check_limit("memories_max", self.config.limits.memories_max.into(), wanted)?;
        self.memories.push(memory);
        Ok(handle)
    }

    /// A memory.
    pub fn memory(&self, memory: MemoryHandle) -> &Memory {
        &self.memories[memory.0 as usize]
    }

    /// The contents of a memory, to be written.
    pub fn memory_data_mut(&mut self, memory: MemoryHandle) -> &mut [u8] {
        self.memories[memory.0 as usize].data_mut()
    }

    /// Adds pages to a memory. Gives the old size in pages, or `None` if there is no room.
    pub fn memory_grow(&mut self, memory: MemoryHandle, pages: u32) -> Option<u32> {
        self.memories[memory.0 as usize].grow(pages)
    }

    pub(crate) fn memory_def(&self, memory: MemoryHandle) -> *mut MemoryDef {
        self.memory(memory).def()
    }

    // Tables.

    /// Makes a table that instances can import.
    ///
    /// # Errors
    /// If it exceeds a limit, there is not enough memory, or `init` is no reference.
    pub fn new_table(&mut self, ty: TableType, init: u64) -> Result<TableHandle, Error> {
        self.check_cells(&[ty.elem], &mut [init])?;
        let table = Table::new(ty, init, self.config.limits.table_elems_max)?;
        self.push_table(table)
    }

    pub(crate) fn push_table(&mut self, table: Table) -> Result<TableHandle, Error> {
        let handle = TableHandle(self.tables.len() as u32);
        let wanted = u64::from(handle.0) + 1;
        check_limit("tables_max", self.config.limits.tables_max.into(), wanted)?;
        self.tables.push(table);
        Ok(handle)
    }

    /// A table.
    pub fn table(&self, table: TableHandle) -> &Table {
        &self.tables[table.0 as usize]
    }

    /// Replaces an element of a table.
    ///
    /// # Errors
    /// If the table has no such element, or the value is no reference.
    pub fn table_set(&mut self, table: TableHandle, index: u32, value: u64) -> Result<(), Error> {
        self.check_cells(&[self.table(table).ty().elem], &mut [value])?;
        let table = &mut self.tables[table.0 as usize];
        let result = table.set(index, value);
        result.map_err(|_| Error::Usage(format!("the table has no element {index}")))
    }

    /// Adds elements to a table. Gives the old size, or `None` if there is no room.
    ///
    /// # Errors
    /// If the value is no reference.
    pub fn table_grow(
        &mut self,
        table: TableHandle,
        value: u64,
        n: u32,
    ) -> Result<Option<u32>, Error> {
        self.check_cells(&[self.table(table).ty().elem], &mut [value])?;
        Ok(self.tables[table.0 as usize].grow(value, n))
    }

    pub(crate) fn table_def(&self, table: TableHandle) -> *mut TableDef {
        self.table(table).def()
    }

    // Globals.

    /// Makes a global that instances can import.
    ///
    /// # Errors
    /// If there are too many, or the value is of another type.
    pub fn new_global(&mut self, ty: GlobalType, value: u64) -> Result<GlobalHandle, Error> {
        let mut value = [value];
        self.check_cells(&[ty.ty], &mut value)?;
        let cell = Pinned::new(value[0]);
        let handle = self.push_global(GlobalData { cell: cell.as_ptr(), ty })?;
        self.host_globals.push(cell);
        Ok(handle)
    }

    pub(crate) fn push_global(&mut self, global: GlobalData) -> Result<GlobalHandle, Error> {
        let handle = GlobalHandle(self.globals.len() as u32);
        let wanted = u64::from(handle.0) + 1;
        check_limit("globals_max", self.config.limits.globals_max.into(), wanted)?;
        self.globals.push(global);
        Ok(handle)
    }

    /// The type of a global.
    pub fn global_type(&self, global: GlobalHandle) -> GlobalType {
        self.globals[global.0 as usize].ty
    }

    /// The value of a global.
    pub fn global(&self, global: GlobalHandle) -> u64 {
        // SAFETY: the cell belongs to an instance or to `host_globals`, which live as long as the store;
        // guest code does not run while the store is borrowed.
        unsafe { *self.globals[global.0 as usize].cell }
    }

    /// Sets the value of a mutable global.
    ///
    /// # Errors
    /// If it is immutable, or the value is of another type.
    pub fn set_global(&mut self, global: GlobalHandle, value: u64) -> Result<(), Error> {
        let GlobalData { cell, ty } = self.globals[global.0 as usize];
        if !ty.mutable {
            return Err(Error::Usage("the global is immutable".to_owned()));
        }
        let mut value = [value];
        self.check_cells(&[ty.ty], &mut value)?;
        // SAFETY: as in `global`.
        unsafe { *cell = value[0] };
        Ok(())
    }

    // Host objects.

    /// Takes a host object in and gives the `externref` to it. It lives as long as the store.
    ///
    /// # Errors
    /// If there are too many.
    pub fn new_extern(&mut self, object: Box<dyn Any + Send>) -> Result<u64, Error> {
        let wanted = self.externs.len() as u64 + 1;
        check_limit("externs_max", self.config.limits.externs_max.into(), wanted)?;
        self.externs.push(object);
        Ok(wanted)
    }

    /// The host object that an `externref` refers to; `None` for null.
    pub fn extern_object(&self, reference: u64) -> Option<&(dyn Any + Send)> {
        let index = usize::try_from(reference.checked_sub(1)?).ok()?;
        Some(&**self.externs.get(index)?)
    }

    // For executors that run native code.

    /// What all instances share. Valid while the store lives.
    pub fn shared_ptr(&self) -> *mut Shared {
        self.shared.as_ptr()
    }

    /// The context of an instance. Valid while the store lives.
    pub fn instance_ctx(&self, instance: InstanceId) -> *mut VmCtx {
        self.instance(instance).ctx()
    }

    /// To be called by an executor right before it enters native code: lets the runtime's functions find
    /// the store. [`Store::call`] undoes it, and restores the native stack limit.
    pub fn enter_native(&mut self) {
        let store = (&raw mut *self).cast();
        // SAFETY: the store owns the structure, and native code does not run at the moment.
        unsafe { (*self.shared.as_ptr()).store = store };
    }

    /// Leaves word of why native code is about to trap.
    pub(crate) fn set_pending(&mut self, result: std::thread::Result<Error>) {
        self.pending = Some(match result {
            Ok(error) => Pending::Error(error),
            Err(panic) => Pending::Panic(panic),
        });
    }

    /// The error of the host function because of which native code came back, if that is the reason. If
    /// the host function has panicked, the panic goes on.
    pub fn take_pending(&mut self) -> Option<Error> {
        match self.pending.take()? {
            Pending::Error(error) => Some(error),
            Pending::Panic(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// A frame of a backtrace.
    pub fn frame(&self, instance: InstanceId, func: u32, offset: u32) -> Frame {
        let module = self.instance(instance).module().clone();
        Frame { module, func, offset }
    }

    // The counters that native code changes, too.

    /// Takes fuel, if there is enough.
    pub(crate) fn take_fuel(&mut self, fuel: i64) -> bool {
        // SAFETY: as in `fuel`.
        take(unsafe { &mut (*self.shared.as_ptr()).fuel }, fuel)
    }

    /// Takes cells from the deterministic stack, if there are enough.
    pub(crate) fn take_stack_cells(&mut self, cells: i64) -> bool {
        // SAFETY: as in `fuel`.
        take(unsafe { &mut (*self.shared.as_ptr()).stack_cells }, cells)
    }

    /// Gives cells back to the deterministic stack.
    pub(crate) fn give_stack_cells(&mut self, cells: i64) {
        // SAFETY: as in `fuel`.
        unsafe { (*self.shared.as_ptr()).stack_cells += cells };
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Aborts if a host function has put another store in the place of this one: frames of guest code
    /// still hold addresses of the one that was here.
    pub(crate) fn check_identity(&self, id: u64) {
        if self.id != id {
            eprintln!("slotvm: a host function has exchanged the store that it was called in");
            std::process::abort();
        }
    }
}

/// An `i64` that is not negative.
fn clamp(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn take(counter: &mut i64, n: i64) -> bool {
    let enough = *counter >= n;
    if enough {
        *counter -= n;
    }
    enough
}
