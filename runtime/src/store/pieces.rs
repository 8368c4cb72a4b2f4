//! Bulk operations as guest code does them: in pieces, between which a program that can be interrupted
//! polls. The effects of earlier pieces remain if one is interrupted.
//!
//! The bounds of the whole are checked first, so that an operation that does not fit does nothing. Memories
//! and tables do not shrink; but whoever is asked at a poll may drop a segment, so each piece is checked as
//! an operation of its own.

use slotvm_bytecode::TrapCode;

use crate::entities::InstanceId;
use crate::error::{Error, Stop};
use crate::limits::{PIECE_BYTES_MAX, PIECE_ELEMS_MAX};
use crate::store::Store;

impl Store {
    /// Calls `each` with the offset and the length of each piece, and polls between two of them.
    /// `backwards` begins with the last one.
    fn in_pieces(
        &mut self,
        len: u32,
        piece_max: u32,
        backwards: bool,
        mut each: impl FnMut(&mut Store, u32, u32) -> Result<(), TrapCode>,
    ) -> Result<(), Stop> {
        if len <= piece_max || self.interrupts.is_none() {
            return Ok(each(self, 0, len)?);
        }
        let mut done = 0;
        while done < len {
            if done > 0 && self.interrupts.as_ref().is_some_and(|i| i.is_due()) {
                self.poll_inside()?;
            }
            let n = (len - done).min(piece_max);
            each(self, if backwards { len - done - n } else { done }, n)?;
            done += n;
        }
        Ok(())
    }

    /// `memory.fill`.
    pub(crate) fn guest_memory_fill(
        &mut self,
        instance: InstanceId,
        [dst, byte, len]: [u32; 3],
    ) -> Result<(), Stop> {
        self.memory_of(instance).slice(dst.into(), len.into())?;
        self.in_pieces(len, PIECE_BYTES_MAX, false, |store, at, n| {
            store.memory_of(instance).fill(dst + at, byte as u8, n)
        })
    }

    /// `memory.copy`: destination, source, length.
    pub(crate) fn guest_memory_copy(
        &mut self,
        instance: InstanceId,
        [dst, src, len]: [u32; 3],
    ) -> Result<(), Stop> {
        let memory = self.memory_of(instance);
        memory.slice(dst.into(), len.into())?;
        memory.slice(src.into(), len.into())?;
        self.in_pieces(len, PIECE_BYTES_MAX, dst > src, |store, at, n| {
            store.memory_of(instance).copy_within(dst + at, src + at, n)
        })
    }

    /// `memory.init`: destination, source, length.
    pub(crate) fn guest_memory_init(
        &mut self,
        instance: InstanceId,
        segment: u32,
        [dst, src, len]: [u32; 3],
    ) -> Result<(), Stop> {
        self.memory_of(instance).slice(dst.into(), len.into())?;
        let total = match self.instance(instance).datas_dropped[segment as usize] {
            true => 0,
            false => self.module(instance).module().datas[segment as usize].bytes.len(),
        };
        check_source(src, len, total, TrapCode::MemoryOutOfBounds)?;
        self.in_pieces(len, PIECE_BYTES_MAX, false, |store, at, n| {
            store.memory_init(instance, segment, [dst + at, src + at, n])
        })
    }

    /// `table.grow`: returns the old size, or `u32::MAX`. The table grows at once; what it grows by is filled
    /// in pieces.
    pub(crate) fn guest_table_grow(
        &mut self,
        instance: InstanceId,
        table: u32,
        value: u64,
        n: u32,
    ) -> Result<u32, Error> {
        let old = self.table_grow_of(instance, table, 0, n)?;
        if old == u32::MAX || value == 0 {
            return Ok(old);
        }
        match self.guest_table_fill(instance, table, value, [old, n]) {
            Ok(()) => Ok(old),
            Err(Stop::Trap(code)) => unreachable!("the table has grown: {code}"),
            Err(Stop::Error(error)) => Err(error),
        }
    }

    /// `table.fill`: destination, length.
    pub(crate) fn guest_table_fill(
        &mut self,
        instance: InstanceId,
        table: u32,
        value: u64,
        [dst, len]: [u32; 2],
    ) -> Result<(), Stop> {
        let handle = self.table_of(instance, table);
        self.table(handle).slice(dst, len)?;
        self.in_pieces(len, PIECE_ELEMS_MAX, false, |store, at, n| {
            store.table_fill(instance, table, dst + at, value, n)
        })
    }

    /// `table.copy`: destination, source, length.
    pub(crate) fn guest_table_copy(
        &mut self,
        instance: InstanceId,
        [dst_table, src_table]: [u32; 2],
        [dst, src, len]: [u32; 3],
    ) -> Result<(), Stop> {
        self.table(self.table_of(instance, dst_table)).slice(dst, len)?;
        self.table(self.table_of(instance, src_table)).slice(src, len)?;
        self.in_pieces(len, PIECE_ELEMS_MAX, dst > src, |store, at, n| {
            store.table_copy(instance, dst_table, src_table, [dst + at, src + at, n])
        })
    }

    /// `table.init`: destination, source, length.
    pub(crate) fn guest_table_init(
        &mut self,
        instance: InstanceId,
        segment: u32,
        table: u32,
        [dst, src, len]: [u32; 3],
    ) -> Result<(), Stop> {
        self.table(self.table_of(instance, table)).slice(dst, len)?;
        let total = self.instance(instance).elems[segment as usize].len();
        check_source(src, len, total, TrapCode::TableOutOfBounds)?;
        self.in_pieces(len, PIECE_ELEMS_MAX, false, |store, at, n| {
            store.table_init(instance, segment, table, [dst + at, src + at, n])
        })
    }
}

/// Traps if a part of a segment of `total` items does not lie inside it.
fn check_source(src: u32, len: u32, total: usize, code: TrapCode) -> Result<(), TrapCode> {
    let end = u64::from(src) + u64::from(len);
    if end > total as u64 { Err(code) } else { Ok(()) }
}
