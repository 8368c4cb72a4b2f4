//! From places in native code back to the bytecode.
//!
//! A [`PcTable`] describes the code of one unit (a module, or a trampoline): where it can trap and why,
//! and where its calls return to, each with the place in the bytecode. Offsets count from the start of
//! the unit. Reading allocates nothing, so that the signal handler can ask whether a pc may trap.
//!
//! [`Tables`] are those of a range of addresses: one, or, where functions are placed one after the other
//! while others of the range run, one for each page.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use slotvm_bytecode::{TrapCode, VerifiedModule};

/// A place in the bytecode of a module.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The function, in the module's index space.
    pub(crate) func: u32,
    /// The code offset.
    pub(crate) offset: u32,
    /// The place of the call that the function was inlined at, or [`PlaceId::NONE`].
    pub(crate) inlined_at: PlaceId,
}

/// An entry of a unit's list of places.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlaceId(pub(crate) u32);

impl PlaceId {
    /// No place: code that belongs to no bytecode.
    pub(crate) const NONE: PlaceId = PlaceId(u32::MAX);
}

/// Why native code stops.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum TrapReason {
    /// The guest traps.
    Guest(TrapCode),
    /// A host function failed; its error is pending in the store.
    HostError,
}

/// An instruction that can trap.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrapSite {
    /// The offset of the instruction.
    pub(crate) offset: u32,
    /// Why it traps.
    pub(crate) reason: TrapReason,
    /// The bytecode that it was made from.
    pub(crate) place: PlaceId,
}

/// A call.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallSite {
    /// The offset that it returns to.
    pub(crate) offset: u32,
    /// The bytecode that it was made from.
    pub(crate) place: PlaceId,
}

/// What there is to know about the code of a unit.
#[derive(Debug, Default)]
pub(crate) struct PcTable {
    /// The address of the code.
    pub(crate) base: usize,
    /// The module that the places belong to; trampolines have none.
    pub(crate) module: Option<Arc<VerifiedModule>>,
    /// In ascending order of offset.
    pub(crate) traps: Vec<TrapSite>,
    /// In ascending order of offset.
    pub(crate) calls: Vec<CallSite>,
    pub(crate) places: Vec<Place>,
}

/// The tables of a range of code.
#[derive(Debug)]
pub(crate) enum Tables {
    /// One for all of it.
    Unit(PcTable),
    /// One for each page in which there is code.
    Pages(PageTables),
}

impl Tables {
    /// The table of the code at `pc`, which lies in the range.
    pub(crate) fn at(&self, pc: usize) -> Option<&PcTable> {
        match self {
            Tables::Unit(table) => Some(table),
            Tables::Pages(pages) => pages.at(pc),
        }
    }
}

/// Tables of the pages of a range of code. No page has code of two functions.
#[derive(Debug)]
pub(crate) struct PageTables {
    base: usize,
    page_bytes: usize,
    /// Made by [`Box::into_raw`], each for the first page of its code, and found at all of them.
    pages: Box<[AtomicPtr<PcTable>]>,
}

impl PageTables {
    /// Tables for so many bytes from the start of a page, which have no code yet.
    pub(crate) fn new(base: usize, bytes: usize, page_bytes: usize) -> PageTables {
        let none = || AtomicPtr::new(ptr::null_mut());
        let pages = std::iter::repeat_with(none).take(bytes.div_ceil(page_bytes)).collect();
        PageTables { base, page_bytes, pages }
    }

    fn page(&self, pc: usize) -> Option<usize> {
        Some(pc.checked_sub(self.base)? / self.page_bytes)
    }

    /// Makes the table of code that starts at its base known, before the code can run. It takes up so many
    /// bytes.
    ///
    /// # Panics
    /// If a page has code already, or is none of these.
    pub(crate) fn insert(&self, table: PcTable, bytes: usize) {
        let first = self.page(table.base).expect("the code lies in the range");
        let n_pages = bytes.div_ceil(self.page_bytes);
        let table = Box::into_raw(Box::new(table));
        for page in &self.pages[first..first + n_pages] {
            let before = page.swap(table, Ordering::Release);
            assert!(before.is_null(), "a page has code of one function");
        }
    }

    fn at(&self, pc: usize) -> Option<&PcTable> {
        let table = self.pages.get(self.page(pc)?)?.load(Ordering::Acquire);
        // SAFETY: the table was made by `Box::into_raw` and lives as long as `self`.
        unsafe { table.as_ref() }
    }
}

impl Drop for PageTables {
    fn drop(&mut self) {
        let mut last = ptr::null_mut();
        for page in &mut self.pages {
            let table = std::mem::replace(&mut last, *page.get_mut());
            if table != last && !table.is_null() {
                // SAFETY: a table is found at pages in a row, of which this was the last.
                drop(unsafe { Box::from_raw(table) });
            }
        }
        if !last.is_null() {
            // SAFETY: a table is found at pages in a row, and these were the last ones.
            drop(unsafe { Box::from_raw(last) });
        }
    }
}

impl PcTable {
    /// What the instruction at `pc` traps for, if it can trap.
    pub(crate) fn trap_at(&self, pc: usize) -> Option<TrapSite> {
        let offset = pc.checked_sub(self.base)? as u32;
        let i = self.traps.binary_search_by_key(&offset, |site| site.offset).ok()?;
        Some(self.traps[i])
    }

    /// The call that returns to `pc`, if one does.
    pub(crate) fn call_returning_to(&self, pc: usize) -> Option<CallSite> {
        let offset = pc.checked_sub(self.base)? as u32;
        let i = self.calls.binary_search_by_key(&offset, |site| site.offset).ok()?;
        Some(self.calls[i])
    }

    /// A place and those that it is inlined at, innermost first.
    pub(crate) fn places(&self, innermost: PlaceId) -> impl Iterator<Item = Place> + '_ {
        let get = |id: PlaceId| self.places.get(id.0 as usize).copied();
        std::iter::successors(get(innermost), move |place| get(place.inlined_at))
    }
}
