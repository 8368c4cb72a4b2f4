//! Tables of references.
//!
//! The null reference is the cell 0, so a table that starts or grows with null references takes zeroed
//! memory from the system as it is. It costs nothing until it is written, however large it is.

use std::alloc::{self, Layout};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use slotvm_bytecode::module::TableType;
use slotvm_bytecode::{TrapCode, VerifiedModule};

use crate::context::TableDef;
use crate::error::{Error, check_limit};
use crate::memory::linear::leaves_address_space;
use crate::pinned::Pinned;

/// A table: a growable array of references, each a cell.
pub struct Table {
    /// The elements, and room for more: cells that are 0.
    cells: Vec<u64>,
    len: u32,
    def: Pinned<TableDef>,
    ty: TableType,
    elems_max: u32,
    /// The module that alone can write it, if there is one, and its index there.
    owner: Option<(Arc<VerifiedModule>, u32)>,
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Table { len, ty, elems_max, .. } = self;
        let mut table = f.debug_struct("Table");
        table.field("len", len).field("ty", ty).field("elems_max", elems_max);
        table.finish_non_exhaustive()
    }
}

impl Table {
    /// Makes a table of copies of one reference. `elems_max` limits its growth beside its type.
    ///
    /// # Errors
    /// Fails if it would start with more than `elems_max` elements, or there is not enough memory.
    pub fn new(ty: TableType, init: u64, elems_max: u32) -> Result<Table, Error> {
        check_limit("table_elems_max", elems_max.into(), ty.min.into())?;
        let elems_max = elems_max.min(ty.max.unwrap_or(u32::MAX));
        let def = Pinned::new(TableDef { base: std::ptr::null_mut(), len: 0 });
        let mut table = Table { cells: Vec::new(), len: 0, def, ty, elems_max, owner: None };
        match table.grow(init, ty.min) {
            Some(_) => Ok(table),
            None => Err(Error::OutOfMemory { what: "a table", bytes: u64::from(ty.min) * 8 }),
        }
    }

    /// Returns the table as native code sees it. Valid while the table lives.
    pub fn def(&self) -> *mut TableDef {
        self.def.as_ptr()
    }

    /// Whether the code of the module that defines the table relies on its elements
    /// ([`VerifiedModule::is_constant_table`](slotvm_bytecode::VerifiedModule::is_constant_table)), so that a store refuses
    /// to change them.
    pub fn is_constant(&self) -> bool {
        self.owner.as_ref().is_some_and(|(module, table)| module.is_constant_table(*table))
    }

    /// Tells a table that only a module can write which one that is, once it has the elements that it begins with.
    pub(crate) fn set_owner(&mut self, module: Arc<VerifiedModule>, table: u32) {
        self.owner = Some((module, table));
    }

    /// Its type; the minimum is its present size.
    pub fn ty(&self) -> TableType {
        TableType { min: self.len(), ..self.ty }
    }

    /// The number of elements.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// An element.
    ///
    /// # Errors
    /// Fails if the table has no such element.
    pub fn get(&self, index: u32) -> Result<u64, TrapCode> {
        self.elems().get(index as usize).copied().ok_or(TrapCode::TableOutOfBounds)
    }

    /// Replaces an element. The value is a reference of the table's type.
    ///
    /// # Errors
    /// Fails if the table has no such element.
    pub(crate) fn set(&mut self, index: u32, value: u64) -> Result<(), TrapCode> {
        let elem = self.elems_mut().get_mut(index as usize);
        *elem.ok_or(TrapCode::TableOutOfBounds)? = value;
        Ok(())
    }

    /// Adds elements. Returns the old size, or `None` if there is no room.
    pub(crate) fn grow(&mut self, value: u64, n: u32) -> Option<u32> {
        let old = self.len;
        let new = old.checked_add(n).filter(|&new| new <= self.elems_max)?;
        if new as usize > self.cells.len() {
            // Twice as much as before, so that growing by one element after the other is linear.
            let usual = old.saturating_mul(2).clamp(new, self.elems_max);
            let mut cells = zeroed(usual).or_else(|| zeroed(new))?;
            if !leaves_address_space() {
                return None;
            }
            cells[..old as usize].copy_from_slice(self.elems());
            self.cells = cells;
        }
        self.len = new;
        if value != 0 {
            self.elems_mut()[old as usize..].fill(value);
        }
        let def = TableDef { base: self.cells.as_mut_ptr(), len: new.into() };
        // SAFETY: the definition lives as long as `self`, and native code, which reads it, does not run
        // while the table is borrowed.
        unsafe { self.def.as_ptr().write(def) };
        Some(old)
    }

    /// `table.fill`.
    pub(crate) fn fill(&mut self, dst: u32, value: u64, len: u32) -> Result<(), TrapCode> {
        self.slice_mut(dst, len)?.fill(value);
        Ok(())
    }

    /// `table.copy`, inside one table.
    pub(crate) fn copy_within(&mut self, dst: u32, src: u32, len: u32) -> Result<(), TrapCode> {
        self.slice(dst, len)?;
        self.slice(src, len)?;
        self.elems_mut().copy_within(src as usize..src as usize + len as usize, dst as usize);
        Ok(())
    }

    /// Copies references from elsewhere, `table.init` for one.
    pub(crate) fn write(&mut self, dst: u32, from: &[u64]) -> Result<(), TrapCode> {
        let len = u32::try_from(from.len()).map_err(|_| TrapCode::TableOutOfBounds)?;
        self.slice_mut(dst, len)?.copy_from_slice(from);
        Ok(())
    }

    /// Some of the elements.
    pub(crate) fn slice(&self, start: u32, len: u32) -> Result<&[u64], TrapCode> {
        let start = start as usize;
        self.elems().get(start..start + len as usize).ok_or(TrapCode::TableOutOfBounds)
    }

    fn slice_mut(&mut self, start: u32, len: u32) -> Result<&mut [u64], TrapCode> {
        let start = start as usize;
        self.elems_mut().get_mut(start..start + len as usize).ok_or(TrapCode::TableOutOfBounds)
    }

    fn elems(&self) -> &[u64] {
        &self.cells[..self.len as usize]
    }

    pub(crate) fn elems_mut(&mut self) -> &mut [u64] {
        &mut self.cells[..self.len as usize]
    }
}

/// Cells that are 0, or `None` if there is not enough memory. Untouched, they take no memory if they are
/// many.
fn zeroed(n: u32) -> Option<Vec<u64>> {
    let n = n as usize;
    if n == 0 {
        return Some(Vec::new());
    }
    let layout = Layout::array::<u64>(n).ok()?;
    // SAFETY: the layout is not empty.
    let cells = NonNull::new(unsafe { alloc::alloc_zeroed(layout) })?.cast::<u64>();
    // SAFETY: the global allocator gave the cells, with the layout of `n` cells, and all are initialised.
    Some(unsafe { Vec::from_raw_parts(cells.as_ptr(), n, n) })
}

#[cfg(test)]
mod tests {
    use slotvm_bytecode::ValType;

    use super::*;

    fn table(min: u32, max: Option<u32>) -> Table {
        let ty = TableType { elem: ValType::ExternRef, min, max };
        Table::new(ty, 7, 10).expect("there is memory")
    }

    /// The table as native code sees it.
    fn seen(table: &Table) -> Vec<u64> {
        // SAFETY: the definition is that of a table that lives.
        unsafe {
            let TableDef { base, len } = &*table.def();
            (0..*len as usize).map(|i| *base.add(i)).collect()
        }
    }

    #[test]
    fn native_code_sees_what_the_host_sees() {
        let mut table = table(2, None);
        assert_eq!(seen(&table), [7, 7]);
        assert_eq!(table.grow(8, 3), Some(2));
        table.set(1, 9).unwrap();
        assert_eq!(seen(&table), [7, 9, 8, 8, 8]);
        assert_eq!((table.get(1), table.len()), (Ok(9), 5));
        assert_eq!(table.grow(1, 6), None);
        assert_eq!(table.ty(), TableType { elem: ValType::ExternRef, min: 5, max: None });
    }

    #[test]
    fn nothing_happens_past_the_end() {
        let mut table = table(3, Some(4));
        let out = TrapCode::TableOutOfBounds;
        assert_eq!(table.get(3), Err(out));
        assert_eq!(table.set(3, 1), Err(out));
        assert_eq!(table.fill(2, 1, 2), Err(out));
        assert_eq!(table.copy_within(2, 0, 2), Err(out));
        assert_eq!(table.copy_within(0, 2, 2), Err(out));
        assert_eq!(table.write(2, &[1, 2]), Err(out));
        assert_eq!(table.fill(u32::MAX, 1, u32::MAX), Err(out));
        assert_eq!(seen(&table), [7, 7, 7]);
        assert_eq!(table.grow(0, 2), None);
        assert_eq!(table.grow(0, 1), Some(3));
    }

    #[test]
    fn growth_keeps_what_is_there() {
        let ty = TableType { elem: ValType::ExternRef, min: 0, max: None };
        let mut table = Table::new(ty, 0, 1_000).unwrap();
        let mut expected = Vec::new();
        for i in 0..44 {
            let value = u64::from(i % 3);
            assert_eq!(table.grow(value, i), Some(expected.len() as u32));
            expected.resize(expected.len() + i as usize, value);
            assert_eq!(seen(&table), expected);
        }
        assert_eq!(table.grow(0, 55), None);
        assert_eq!(table.grow(5, 54), Some(946));
        assert_eq!((table.len(), table.get(946), table.get(999)), (1_000, Ok(5), Ok(5)));
    }

    #[test]
    fn an_empty_table() {
        let mut table = table(0, Some(0));
        assert!(table.is_empty());
        assert_eq!(seen(&table), []);
        assert_eq!(table.grow(0, 0), Some(0));
        assert_eq!(table.fill(0, 0, 0), Ok(()));
    }
}
