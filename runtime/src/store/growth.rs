//! Making and growing memories and tables: the only way in which a store gets more of them.
//!
//! Whatever asks, a module, guest code or the host, comes through here, so that the totals of
//! [`crate::Limits`] hold and the [`ResourceLimiter`] of the store, if it has one, is asked.

use std::any::Any;

use slotvm_bytecode::module::{MemoryType, PAGE_BYTES, TableType};

use crate::entities::{MemoryHandle, TableHandle};
use crate::error::{Error, check_limit};
use crate::memory::limiter::ResourceLimiter;
use crate::memory::linear::Memory;
use crate::memory::table::Table;
use crate::store::Store;

/// The object that grows.
#[derive(Copy, Clone)]
enum Kind {
    Memory,
    Table,
}

/// A memory or a table that is made or grows, in bytes or elements.
#[derive(Copy, Clone)]
struct Request {
    kind: Kind,
    current: u64,
    desired: u64,
    maximum: Option<u64>,
}

impl Request {
    fn memory(current: u32, more: u32, ty: MemoryType) -> Request {
        let current = u64::from(current) * PAGE_BYTES;
        let desired = current + u64::from(more) * PAGE_BYTES;
        let maximum = ty.max.map(|max| u64::from(max) * PAGE_BYTES);
        Request { kind: Kind::Memory, current, desired, maximum }
    }

    fn table(current: u32, more: u32, ty: TableType) -> Request {
        let (current, maximum) = (u64::from(current), ty.max.map(u64::from));
        Request { kind: Kind::Table, current, desired: current + u64::from(more), maximum }
    }

    /// The request as the limiter takes it.
    fn parts(self) -> (usize, usize, Option<usize>) {
        (self.current as usize, self.desired as usize, self.maximum.map(|max| max as usize))
    }

    /// Fails if it is too much for the type, or exceeds the store's limit for one object.
    fn check(self, name: &'static str, max: u64) -> Result<(), Error> {
        check_limit("of the type", self.maximum.unwrap_or(u64::MAX), self.desired)?;
        check_limit(name, max, self.desired)
    }
}

impl Store {
    /// Lets a part of the embedder's data decide about what the store takes from now on. What exists
    /// stays.
    pub fn set_limiter(
        &mut self,
        find: impl (FnMut(&mut (dyn Any + Send)) -> &mut dyn ResourceLimiter) + Send + Sync + 'static,
    ) {
        self.limiter = Some(Box::new(find));
    }

    fn find_limiter(&mut self) -> Option<&mut dyn ResourceLimiter> {
        let (find, data) = self.limiter_and_data();
        Some(find.as_mut()?(data))
    }

    /// Checks that there may be one more instance.
    pub(crate) fn check_instances(&mut self) -> Result<(), Error> {
        let wanted = self.instances.len() as u64 + 1;
        check_limit("instances_max", self.config.limits.instances_max.into(), wanted)?;
        let Some(limiter) = self.find_limiter() else { return Ok(()) };
        check_limit("ResourceLimiter::instances", limiter.instances() as u64, wanted)
    }

    /// Checks that there may be memories and tables of these types besides those that there are. The
    /// limiter is not asked yet for their sizes.
    pub(crate) fn check_room(
        &mut self,
        memories: &[MemoryType],
        tables: &[TableType],
    ) -> Result<(), Error> {
        let n_memories = (self.objects.memories.len() + memories.len()) as u64;
        let n_tables = (self.objects.tables.len() + tables.len()) as u64;
        let limits = &self.config.limits;
        check_limit("memories_max", limits.memories_max.into(), n_memories)?;
        check_limit("tables_max", limits.tables_max.into(), n_tables)?;
        for ty in memories {
            check_limit("memory_pages_max", limits.memory_pages_max.into(), ty.min.into())?;
        }
        for ty in tables {
            check_limit("table_elems_max", limits.table_elems_max.into(), ty.min.into())?;
        }
        self.check_memory_bytes(memories.iter().map(|ty| u64::from(ty.min) * PAGE_BYTES).sum())?;
        self.check_table_elems(tables.iter().map(|ty| u64::from(ty.min)).sum())?;
        let Some(limiter) = self.find_limiter() else { return Ok(()) };
        if !memories.is_empty() {
            check_limit("ResourceLimiter::memories", limiter.memories() as u64, n_memories)?;
        }
        if !tables.is_empty() {
            check_limit("ResourceLimiter::tables", limiter.tables() as u64, n_tables)?;
        }
        Ok(())
    }

    /// Checks that all memories together may grow by this number of bytes.
    fn check_memory_bytes(&self, more: u64) -> Result<(), Error> {
        let max = self.config.limits.memory_bytes_total_max;
        check_limit("memory_bytes_total_max", max, self.objects.memory_bytes_total + more)
    }

    /// Checks that all tables together may grow by this number of elements.
    fn check_table_elems(&self, more: u64) -> Result<(), Error> {
        let max = self.config.limits.table_elems_total_max;
        check_limit("table_elems_total_max", max, self.objects.table_elems_total + more)
    }

    /// Takes in a memory for which there is room.
    ///
    /// # Errors
    /// Fails if the limiter refuses.
    pub(crate) fn add_memory(&mut self, memory: Memory) -> Result<MemoryHandle, Error> {
        // The limiter is asked about an existing memory: it hears of it once, even if there was a second
        // try to make it. The memory costs nothing until it is written to.
        let ty = memory.ty();
        if !self.may_grow(Request::memory(0, ty.min, ty))? {
            return Err(Error::Refused { what: "a memory", wanted: memory.bytes(), unit: "bytes" });
        }
        self.objects.memory_bytes_total += memory.bytes();
        Ok(self.push_memory(memory))
    }

    /// Makes a table for which there is room.
    ///
    /// # Errors
    /// Fails if there is not enough memory, or the limiter refuses.
    pub(crate) fn add_table(&mut self, ty: TableType, init: u64) -> Result<TableHandle, Error> {
        if !self.may_grow(Request::table(0, ty.min, ty))? {
            let wanted = ty.min.into();
            return Err(Error::Refused { what: "a table", wanted, unit: "elements" });
        }
        let table = Table::new(ty, init, self.config.limits.table_elems_max)?;
        let handle = TableHandle(self.objects.tables.len() as u32);
        self.objects.table_elems_total += u64::from(table.len());
        self.objects.tables.push(table);
        Ok(handle)
    }

    /// Whether the limiter allows something.
    ///
    /// # Errors
    /// Fails if it fails.
    fn may_grow(&mut self, request: Request) -> Result<bool, Error> {
        let (current, desired, maximum) = request.parts();
        let Some(limiter) = self.find_limiter() else { return Ok(true) };
        match request.kind {
            Kind::Memory => limiter.memory_growing(current, desired, maximum),
            Kind::Table => limiter.table_growing(current, desired, maximum),
        }
    }

    /// Lets something grow if the limiter allows it, which hears of a failure. Returns whether it has grown.
    ///
    /// # Errors
    /// Fails if the limiter fails.
    fn grow(
        &mut self,
        request: Request,
        try_grow: impl FnOnce(&mut Store) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        if !self.may_grow(request)? {
            return Ok(false);
        }
        let Err(error) = try_grow(self) else { return Ok(true) };
        let Some(limiter) = self.find_limiter() else { return Ok(false) };
        match request.kind {
            Kind::Memory => limiter.memory_grow_failed(error)?,
            Kind::Table => limiter.table_grow_failed(error)?,
        }
        Ok(false)
    }

    /// Adds pages to a memory. Returns the old size in pages, or `None` if there is no room or the limiter
    /// refuses.
    ///
    /// # Errors
    /// Fails if the limiter fails.
    pub fn memory_grow(&mut self, memory: MemoryHandle, pages: u32) -> Result<Option<u32>, Error> {
        let (old, ty) = (self.memory(memory).pages(), self.memory(memory).ty());
        if pages == 0 {
            return Ok(Some(old));
        }
        let request = Request::memory(old, pages, ty);
        let grows = self.grow(request, |store| store.try_memory_grow(memory, pages, request))?;
        Ok(grows.then_some(old))
    }

    fn try_memory_grow(
        &mut self,
        memory: MemoryHandle,
        pages: u32,
        request: Request,
    ) -> Result<(), Error> {
        let bytes = u64::from(pages) * PAGE_BYTES;
        let max = u64::from(self.config.limits.memory_pages_max) * PAGE_BYTES;
        request.check("memory_pages_max in bytes", max)?;
        self.check_memory_bytes(bytes)?;
        let none = Error::OutOfMemory { what: "a linear memory that grows", bytes };
        self.objects.memories[memory.0 as usize].grow(pages).ok_or(none)?;
        self.objects.memory_bytes_total += bytes;
        Ok(())
    }

    /// Adds copies of a reference to a table, which is of the table's type. Returns the old size, or
    /// `None` if there is no room or the limiter refuses.
    ///
    /// # Errors
    /// Fails if the limiter fails.
    pub(crate) fn table_grow_by(
        &mut self,
        table: TableHandle,
        value: u64,
        n: u32,
    ) -> Result<Option<u32>, Error> {
        let (old, ty) = (self.table(table).len(), self.table(table).ty());
        if n == 0 {
            return Ok(Some(old));
        }
        let request = Request::table(old, n, ty);
        let grows = self.grow(request, |store| store.try_table_grow(table, value, n, request))?;
        Ok(grows.then_some(old))
    }

    fn try_table_grow(
        &mut self,
        table: TableHandle,
        value: u64,
        n: u32,
        request: Request,
    ) -> Result<(), Error> {
        request.check("table_elems_max", self.config.limits.table_elems_max.into())?;
        self.check_table_elems(n.into())?;
        let none = Error::OutOfMemory { what: "a table that grows", bytes: u64::from(n) * 8 };
        self.objects.tables[table.0 as usize].grow(value, n).ok_or(none)?;
        self.objects.table_elems_total += u64::from(n);
        Ok(())
    }
}
