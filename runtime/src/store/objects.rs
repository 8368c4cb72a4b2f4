//! Memories, tables, globals and host objects: the host makes them, reads and writes them.
//!
//! What the host writes into guest state is checked, so that guest code never sees an invalid reference.

use std::any::Any;

use slotvm_bytecode::ValType;
use slotvm_bytecode::module::{GlobalType, MemoryType, TableType};

use super::Store;
use crate::context::{MemoryDef, MemorySpan, TableDef};
use crate::entities::{GlobalData, GlobalHandle, MemoryHandle, TableHandle, cells_of, value_of};
use crate::error::{Error, check_limit};
use crate::memory::linear::{Memory, MemoryPlan};
use crate::memory::table::Table;
use crate::pinned::Pinned;

/// Memories, tables, globals and references to the host, which instances share.
#[derive(Default)]
pub(crate) struct Objects {
    pub(crate) memories: Vec<Memory>,
    /// The view of the signal handler, in step with `memories`.
    pub(crate) memory_spans: Vec<MemorySpan>,
    pub(crate) tables: Vec<Table>,
    /// Bytes of all memories.
    pub(crate) memory_bytes_total: u64,
    /// Elements of all tables.
    pub(crate) table_elems_total: u64,
    pub(crate) globals: Vec<GlobalData>,
    /// The cells of globals that no instance defines.
    pub(crate) host_globals: Vec<Pinned<[u64; 2]>>,
    pub(crate) externs: Vec<Box<dyn Any + Send>>,
}

impl Store {
    // Memories.

    /// Makes a memory that instances can import.
    ///
    /// # Errors
    /// Fails if it exceeds a limit, the limiter refuses, or there is not enough memory.
    pub fn new_memory(&mut self, ty: MemoryType, plan: MemoryPlan) -> Result<MemoryHandle, Error> {
        self.check_room(&[ty], &[])?;
        let memory = Memory::new(ty, plan, self.config.limits.memory_pages_max)?;
        self.add_memory(memory)
    }

    pub(crate) fn push_memory(&mut self, memory: Memory) -> MemoryHandle {
        let handle = MemoryHandle(self.objects.memories.len() as u32);
        self.objects
            .memory_spans
            .push(MemorySpan { def: memory.def(), bytes: memory.plan().span_bytes() });
        self.objects.memories.push(memory);
        // SAFETY: the store owns the structure, and native code does not run at the moment.
        let shared = unsafe { &mut *self.shared_ptr() };
        (shared.memories, shared.n_memories) =
            (self.objects.memory_spans.as_ptr(), self.objects.memory_spans.len());
        handle
    }

    /// A memory.
    pub fn memory(&self, memory: MemoryHandle) -> &Memory {
        &self.objects.memories[memory.0 as usize]
    }

    /// The contents of a memory, to be written.
    pub fn memory_data_mut(&mut self, memory: MemoryHandle) -> &mut [u8] {
        self.objects.memories[memory.0 as usize].data_mut()
    }

    /// The bytes of a memory, to be written, together with the embedder's data.
    pub fn memory_and_data_mut(
        &mut self,
        memory: MemoryHandle,
    ) -> (&mut [u8], &mut (dyn Any + Send)) {
        (self.objects.memories[memory.0 as usize].data_mut(), self.data.any_mut())
    }

    pub(crate) fn memory_def(&self, memory: MemoryHandle) -> *mut MemoryDef {
        self.memory(memory).def()
    }

    // Tables.

    /// Makes a table that instances can import.
    ///
    /// # Errors
    /// Fails if it exceeds a limit, the limiter refuses, there is not enough memory, or `init` is no reference.
    pub fn new_table(&mut self, ty: TableType, init: u64) -> Result<TableHandle, Error> {
        self.check_cells(&[ty.elem], &mut [init])?;
        self.check_room(&[], &[ty])?;
        self.add_table(ty, init)
    }

    /// A table.
    pub fn table(&self, table: TableHandle) -> &Table {
        &self.objects.tables[table.0 as usize]
    }

    /// Replaces an element of a table.
    ///
    /// # Errors
    /// Fails if the table has no such element or [is constant](Table::is_constant), or the value is no reference.
    pub fn table_set(&mut self, table: TableHandle, index: u32, value: u64) -> Result<(), Error> {
        self.check_changes(table)?;
        self.check_cells(&[self.table(table).ty().elem], &mut [value])?;
        let table = &mut self.objects.tables[table.0 as usize];
        let result = table.set(index, value);
        result.map_err(|_| Error::Usage(format!("index {index} is out of bounds of the table")))
    }

    /// Adds elements to a table. Returns the old size, or `None` if there is no room or the limiter
    /// refuses.
    ///
    /// # Errors
    /// Fails if the table [is constant](Table::is_constant), the value is no reference, or the limiter fails.
    pub fn table_grow(
        &mut self,
        table: TableHandle,
        value: u64,
        n: u32,
    ) -> Result<Option<u32>, Error> {
        self.check_changes(table)?;
        self.check_cells(&[self.table(table).ty().elem], &mut [value])?;
        self.table_grow_by(table, value, n)
    }

    /// Native code calls the functions of a constant table without looking.
    fn check_changes(&self, table: TableHandle) -> Result<(), Error> {
        if !self.table(table).is_constant() {
            return Ok(());
        }
        let rule = "the module that defines it neither exports nor writes it, so its code relies on its elements";
        Err(Error::Usage(format!("table {} of the store cannot be changed: {rule}", table.0)))
    }

    pub(crate) fn table_def(&self, table: TableHandle) -> *mut TableDef {
        self.table(table).def()
    }

    // Globals.

    /// Makes a global that instances can import. The value is its cell, or the two of a vector, the lower
    /// half first.
    ///
    /// # Errors
    /// Fails if there are too many, or the value is of another type.
    pub fn new_global(&mut self, ty: GlobalType, value: u128) -> Result<GlobalHandle, Error> {
        let mut value = cells_of(value);
        self.check_cells(&[ty.ty], &mut value)?;
        let cell = Pinned::new(value);
        let handle = self.push_global(GlobalData { cell: cell.as_ptr().cast(), ty })?;
        self.objects.host_globals.push(cell);
        Ok(handle)
    }

    pub(crate) fn push_global(&mut self, global: GlobalData) -> Result<GlobalHandle, Error> {
        let handle = GlobalHandle(self.objects.globals.len() as u32);
        let wanted = u64::from(handle.0) + 1;
        check_limit("globals_max", self.config.limits.globals_max.into(), wanted)?;
        self.objects.globals.push(global);
        Ok(handle)
    }

    /// The type of a global.
    pub fn global_type(&self, global: GlobalHandle) -> GlobalType {
        self.objects.globals[global.0 as usize].ty
    }

    /// The value of a global: its cell, or the two of a vector, the lower half first.
    pub fn global(&self, global: GlobalHandle) -> u128 {
        let GlobalData { cell, ty } = self.objects.globals[global.0 as usize];
        // SAFETY: the cells belong to an instance or to `host_globals`, which live as long as the store;
        // guest code does not run while the store is borrowed. Vectors have two.
        unsafe {
            match ty.ty {
                ValType::V128 => value_of([*cell, *cell.add(1)]),
                _ => (*cell).into(),
            }
        }
    }

    /// Sets the value of a mutable global, in the form of [`Store::global`].
    ///
    /// # Errors
    /// Fails if it is immutable, or the value is of another type.
    pub fn set_global(&mut self, global: GlobalHandle, value: u128) -> Result<(), Error> {
        let GlobalData { cell, ty } = self.objects.globals[global.0 as usize];
        if !ty.mutable {
            return Err(Error::Usage("the global is immutable".to_owned()));
        }
        let mut value = cells_of(value);
        self.check_cells(&[ty.ty], &mut value)?;
        // SAFETY: the cells belong to an instance or to `host_globals`, which live as long as the store;
        // guest code does not run while the store is borrowed. Vectors have two.
        unsafe {
            *cell = value[0];
            if ty.ty == ValType::V128 {
                *cell.add(1) = value[1];
            }
        }
        Ok(())
    }

    // Host objects.

    /// Stores a host object and returns the `externref` to it. It lives as long as the store.
    ///
    /// # Errors
    /// Fails if there are too many.
    pub fn new_extern(&mut self, object: Box<dyn Any + Send>) -> Result<u64, Error> {
        let wanted = self.objects.externs.len() as u64 + 1;
        check_limit("externs_max", self.config.limits.externs_max.into(), wanted)?;
        self.objects.externs.push(object);
        Ok(wanted)
    }

    /// The host object that an `externref` refers to; `None` for null.
    pub fn extern_object(&self, reference: u64) -> Option<&(dyn Any + Send)> {
        let index = usize::try_from(reference.checked_sub(1)?).ok()?;
        Some(&**self.objects.externs.get(index)?)
    }
}
