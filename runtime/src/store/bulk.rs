//! Operations on whole memories, tables and segments: what the interpreter and the functions that
//! native code calls share. Fuel is the caller's business. Bounds are checked before anything is
//! written.

use slotvm_bytecode::TrapCode;

use crate::entities::InstanceId;
use crate::entities::TableHandle;
use crate::error::Error;
use crate::memory::linear::Memory;
use crate::store::Store;

impl Store {
    /// Memory 0 of an instance that has one, as code that accesses it shows.
    pub(crate) fn memory_of(&mut self, instance: InstanceId) -> &mut Memory {
        let memory = self.instance(instance).memory.expect("verified code has a memory");
        &mut self.objects.memories[memory.0 as usize]
    }

    pub(crate) fn table_of(&self, instance: InstanceId, table: u32) -> TableHandle {
        self.instance(instance).tables[table as usize]
    }

    /// `memory.init`: destination, source, length.
    pub(crate) fn memory_init(
        &mut self,
        instance: InstanceId,
        segment: u32,
        [dst, src, len]: [u32; 3],
    ) -> Result<(), TrapCode> {
        let module = self.module(instance).clone();
        let dropped = self.instance(instance).datas_dropped[segment as usize];
        let bytes: &[u8] =
            if dropped { &[] } else { &module.module().datas[segment as usize].bytes };
        let src = src as usize;
        let bytes = bytes.get(src..src + len as usize).ok_or(TrapCode::MemoryOutOfBounds)?;
        self.memory_of(instance).write(dst.into(), bytes)
    }

    pub(crate) fn data_drop(&mut self, instance: InstanceId, segment: u32) {
        self.instances[instance.index()].datas_dropped[segment as usize] = true;
    }

    /// `memory.grow`: returns the old size in pages, or `u32::MAX`.
    pub(crate) fn memory_grow_of(
        &mut self,
        instance: InstanceId,
        pages: u32,
    ) -> Result<u32, Error> {
        let memory = self.instance(instance).memory.expect("verified code has a memory");
        Ok(self.memory_grow(memory, pages)?.unwrap_or(u32::MAX))
    }

    /// `table.grow`: returns the old size, or `u32::MAX`.
    pub(crate) fn table_grow_of(
        &mut self,
        instance: InstanceId,
        table: u32,
        value: u64,
        n: u32,
    ) -> Result<u32, Error> {
        let table = self.table_of(instance, table);
        Ok(self.table_grow_by(table, value, n)?.unwrap_or(u32::MAX))
    }

    /// `table.fill`.
    pub(crate) fn table_fill(
        &mut self,
        instance: InstanceId,
        table: u32,
        dst: u32,
        value: u64,
        len: u32,
    ) -> Result<(), TrapCode> {
        let table = self.table_of(instance, table);
        self.objects.tables[table.0 as usize].fill(dst, value, len)
    }

    /// `table.copy`: destination, source, length.
    pub(crate) fn table_copy(
        &mut self,
        instance: InstanceId,
        dst_table: u32,
        src_table: u32,
        [dst, src, len]: [u32; 3],
    ) -> Result<(), TrapCode> {
        let dst_table = self.table_of(instance, dst_table).0 as usize;
        let src_table = self.table_of(instance, src_table).0 as usize;
        match self.objects.tables.get_disjoint_mut([dst_table, src_table]) {
            Ok([to, from]) => to.write(dst, from.slice(src, len)?),
            // The same table under two indices, or one.
            Err(_) => self.objects.tables[dst_table].copy_within(dst, src, len),
        }
    }

    /// `table.init`: destination, source, length.
    pub(crate) fn table_init(
        &mut self,
        instance: InstanceId,
        segment: u32,
        table: u32,
        [dst, src, len]: [u32; 3],
    ) -> Result<(), TrapCode> {
        let table = self.table_of(instance, table).0 as usize;
        let elems = &self.instances[instance.index()].elems[segment as usize];
        let src = src as usize;
        let elems = elems.get(src..src + len as usize).ok_or(TrapCode::TableOutOfBounds)?;
        self.objects.tables[table].write(dst, elems)
    }

    pub(crate) fn elem_drop(&mut self, instance: InstanceId, segment: u32) {
        self.instances[instance.index()].elems[segment as usize] = Box::default();
    }
}
