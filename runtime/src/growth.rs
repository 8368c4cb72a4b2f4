//! Making and growing memories and tables: the only way in which a store gets more of them.
//!
//! Whatever asks, a module, guest code or the host, comes through here, so that the totals of
//! [`crate::Limits`] hold.

use slotvm_bytecode::module::{MemoryType, PAGE_BYTES, TableType};

use crate::entities::{MemoryHandle, TableHandle};
use crate::error::{Error, check_limit};
use crate::memory::{Memory, MemoryPlan};
use crate::store::Store;
use crate::table::Table;

impl Store {
    /// Checks that there may be memories and tables of these types besides those that there are.
    pub(crate) fn check_room(
        &self,
        memories: &[MemoryType],
        tables: &[TableType],
    ) -> Result<(), Error> {
        let limits = &self.config.limits;
        let wanted = (self.memories.len() + memories.len()) as u64;
        check_limit("memories_max", limits.memories_max.into(), wanted)?;
        let wanted = (self.tables.len() + tables.len()) as u64;
        check_limit("tables_max", limits.tables_max.into(), wanted)?;
        for ty in memories {
            check_limit("memory_pages_max", limits.memory_pages_max.into(), ty.min.into())?;
        }
        for ty in tables {
            check_limit("table_elems_max", limits.table_elems_max.into(), ty.min.into())?;
        }
        let bytes: u64 = memories.iter().map(|ty| u64::from(ty.min) * PAGE_BYTES).sum();
        let wanted = self.memory_bytes_total + bytes;
        check_limit("memory_bytes_total_max", limits.memory_bytes_total_max, wanted)?;
        let elems: u64 = tables.iter().map(|ty| u64::from(ty.min)).sum();
        let wanted = self.table_elems_total + elems;
        check_limit("table_elems_total_max", limits.table_elems_total_max, wanted)
    }

    /// Makes a memory for which there is room.
    ///
    /// # Errors
    /// If the system gives no memory, or less address space than `span_bytes`.
    pub(crate) fn add_memory(
        &mut self,
        ty: MemoryType,
        plan: MemoryPlan,
        span_bytes: u64,
    ) -> Result<MemoryHandle, Error> {
        let memory = Memory::new(ty, plan, self.config.limits.memory_pages_max)?;
        check_span(&memory, span_bytes)?;
        self.memory_bytes_total += memory.bytes();
        Ok(self.push_memory(memory))
    }

    /// Makes a table for which there is room.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub(crate) fn add_table(&mut self, ty: TableType, init: u64) -> Result<TableHandle, Error> {
        let table = Table::new(ty, init, self.config.limits.table_elems_max)?;
        let handle = TableHandle(self.tables.len() as u32);
        self.table_elems_total += u64::from(table.len());
        self.tables.push(table);
        Ok(handle)
    }

    /// Adds pages to a memory. Gives the old size in pages, or `None` if there is no room.
    pub fn memory_grow(&mut self, memory: MemoryHandle, pages: u32) -> Option<u32> {
        let total = self.memory_bytes_total + u64::from(pages) * PAGE_BYTES;
        if total > self.config.limits.memory_bytes_total_max {
            return None;
        }
        let old = self.memories[memory.0 as usize].grow(pages)?;
        self.memory_bytes_total = total;
        Some(old)
    }

    /// Adds copies of a reference to a table, which is of the table's type. Gives the old size, or
    /// `None` if there is no room.
    pub(crate) fn table_grow_by(&mut self, table: TableHandle, value: u64, n: u32) -> Option<u32> {
        let total = self.table_elems_total + u64::from(n);
        if total > self.config.limits.table_elems_total_max {
            return None;
        }
        let old = self.tables[table.0 as usize].grow(value, n)?;
        self.table_elems_total = total;
        Some(old)
    }
}

/// Fails if a memory has less address space than code relies on.
pub(crate) fn check_span(memory: &Memory, needed: u64) -> Result<(), Error> {
    let found = memory.plan().span_bytes();
    if needed > found { Err(Error::AddressSpace { needed, found }) } else { Ok(()) }
}
