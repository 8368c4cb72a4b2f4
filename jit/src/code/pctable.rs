//! Maps addresses in native code to places in the bytecode.
//!
//! A [`PcTable`] describes the code of one unit (a module, or a trampoline): where it can trap and why,
//! and where its calls return to, each with the place in the bytecode. Offsets count from the start of
//! the unit. Reading allocates nothing, so that the signal handler can ask whether a pc may trap.
//!
//! [`Tables`] holds the tables of an address range: one for the range or, where functions are added while
//! others in the range run, one for each page.

use std::collections::HashMap;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use slotvm_bytecode::{TrapCode, VerifiedModule};
use slotvm_ssa::ir::ALL_ROOT_CELLS;

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
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PlaceId(pub(crate) u32);

impl PlaceId {
    /// Placeholder for code that does not come from bytecode.
    pub(crate) const NONE: PlaceId = PlaceId(u32::MAX);
}

/// The reason why native code stops.
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
    /// The reason of the trap.
    pub(crate) reason: TrapReason,
    /// The bytecode instruction it was compiled from.
    pub(crate) place: PlaceId,
}

/// A call.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallSite {
    /// The return offset.
    pub(crate) offset: u32,
    /// The bytecode instruction it was compiled from.
    pub(crate) place: PlaceId,
}

/// A call at which references into the embedder's heap wait.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct RootSite {
    /// The return offset.
    pub(crate) offset: u32,
    /// The cells that hold references, as the immediate of a safepoint says
    /// ([`slotvm_ssa::passes::roots`]).
    pub(crate) list: u32,
    /// The number of root cells of the function.
    pub(crate) n_cells: u32,
    /// The bytes by which they lie below the frame pointer.
    pub(crate) below: u32,
}

impl RootSite {
    /// The site in code that has so many bytes before the site's own.
    pub(crate) fn moved(&self, bytes: u32) -> RootSite {
        RootSite { offset: self.offset + bytes, ..*self }
    }

    /// The addresses of the references in a frame.
    pub(crate) fn addresses(&self, fp: usize) -> impl Iterator<Item = usize> + use<> {
        let RootSite { list, n_cells, below, .. } = *self;
        let is_listed = move |&cell: &u32| list == ALL_ROOT_CELLS || list >> cell & 1 == 1;
        let address = move |cell| fp - below as usize + cell as usize * size_of::<u64>();
        (0..n_cells).filter(is_listed).map(address)
    }
}

impl Place {
    /// The place in a list that has so many before the first one of its own list.
    pub(crate) fn moved(&self, n_places: u32) -> Place {
        Place { inlined_at: self.inlined_at.moved(n_places), ..*self }
    }
}

impl PlaceId {
    fn moved(self, n_places: u32) -> PlaceId {
        if self == PlaceId::NONE { self } else { PlaceId(self.0 + n_places) }
    }
}

impl TrapSite {
    /// The site in code that has so many bytes, and places, before the site's own.
    pub(crate) fn moved(&self, bytes: u32, n_places: u32) -> TrapSite {
        let (offset, place) = (self.offset + bytes, self.place.moved(n_places));
        TrapSite { offset, place, ..*self }
    }
}

impl CallSite {
    /// The site in code that has so many bytes, and places, before the site's own.
    pub(crate) fn moved(&self, bytes: u32, n_places: u32) -> CallSite {
        CallSite { offset: self.offset + bytes, place: self.place.moved(n_places) }
    }
}

/// The traps, calls and places of the code of a unit.
#[derive(Debug, Default)]
pub(crate) struct PcTable {
    /// The address of the code.
    pub(crate) base: usize,
    /// The module that the places belong to; none for trampolines.
    pub(crate) module: Option<Arc<VerifiedModule>>,
    /// Trap sites in ascending order of offset.
    pub(crate) traps: Vec<TrapSite>,
    /// Call sites in ascending order of offset.
    pub(crate) calls: Vec<CallSite>,
    pub(crate) places: Vec<Place>,
    /// The calls at which references wait, in ascending order of offset.
    pub(crate) roots: Vec<RootSite>,
}

/// The tables of a range of code.
#[derive(Debug)]
pub(crate) enum Tables {
    /// One table for the whole range.
    Unit(PcTable),
    /// One table for each page that contains code.
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
    /// Created by [`Box::into_raw`]; each table is entered at all pages of its code.
    pages: Box<[AtomicPtr<PcTable>]>,
}

impl PageTables {
    /// Creates empty tables for this many bytes from the start of a page.
    pub(crate) fn new(base: usize, bytes: usize, page_bytes: usize) -> PageTables {
        let none = || AtomicPtr::new(ptr::null_mut());
        let pages = std::iter::repeat_with(none).take(bytes.div_ceil(page_bytes)).collect();
        PageTables { base, page_bytes, pages }
    }

    fn page(&self, pc: usize) -> Option<usize> {
        Some(pc.checked_sub(self.base)? / self.page_bytes)
    }

    /// Publishes the table of the code that starts at its base, before the code can run. The code takes up
    /// this many bytes.
    ///
    /// # Panics
    /// Panics if a page already has code or lies outside the range.
    pub(crate) fn insert(&self, table: PcTable, bytes: usize) {
        let first = self.page(table.base).expect("the code lies in the range");
        let n_pages = bytes.div_ceil(self.page_bytes);
        let table = Box::into_raw(Box::new(table));
        for page in &self.pages[first..first + n_pages] {
            let before = page.swap(table, Ordering::Release);
            assert!(before.is_null(), "a page has code of one function");
        }
    }

    pub(crate) fn at(&self, pc: usize) -> Option<&PcTable> {
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
                // SAFETY: a table is entered at consecutive pages, of which this was the last.
                drop(unsafe { Box::from_raw(table) });
            }
        }
        if !last.is_null() {
            // SAFETY: a table is entered at consecutive pages, and these were the last ones.
            drop(unsafe { Box::from_raw(last) });
        }
    }
}

impl PcTable {
    /// Returns the trap of the instruction at `pc`, if it can trap.
    pub(crate) fn trap_at(&self, pc: usize) -> Option<TrapSite> {
        let offset = pc.checked_sub(self.base)? as u32;
        let i = self.traps.binary_search_by_key(&offset, |site| site.offset).ok()?;
        Some(self.traps[i])
    }

    /// The call that returns to `pc`, if any.
    pub(crate) fn call_returning_to(&self, pc: usize) -> Option<CallSite> {
        let offset = pc.checked_sub(self.base)? as u32;
        let i = self.calls.binary_search_by_key(&offset, |site| site.offset).ok()?;
        Some(self.calls[i])
    }

    /// The references that wait at the call that returns to `pc`. A call without an entry is one at which none wait.
    pub(crate) fn roots_returning_to(&self, pc: usize) -> Option<RootSite> {
        let offset = pc.checked_sub(self.base)? as u32;
        let first = self.roots.partition_point(|site| site.offset < offset);
        self.roots.get(first).copied().filter(|site| site.offset == offset)
    }

    /// The calls of a part of the code at which references wait, as if it were alone.
    pub(crate) fn roots_of(&self, code: &Range<usize>) -> Vec<RootSite> {
        let (start, end) = ((code.start - self.base) as u32, (code.end - self.base) as u32);
        let first = self.roots.partition_point(|site| site.offset <= start);
        let sites = self.roots[first..].iter().take_while(|site| site.offset <= end);
        sites.map(|site| RootSite { offset: site.offset - start, ..*site }).collect()
    }

    /// The traps, calls and places of a part of the code, as if it were alone.
    pub(crate) fn part(&self, code: &Range<usize>) -> (Vec<TrapSite>, Vec<CallSite>, Vec<Place>) {
        let (start, end) = ((code.start - self.base) as u32, (code.end - self.base) as u32);
        let mut numbers: HashMap<PlaceId, PlaceId> = HashMap::new();
        let mut places: Vec<Place> = Vec::new();
        let mut number = |id: PlaceId| {
            // Those around come first.
            let mut chain = vec![id];
            while let Some(&inner) = chain.last()
                && inner != PlaceId::NONE
                && !numbers.contains_key(&inner)
            {
                chain.push(self.places[inner.0 as usize].inlined_at);
            }
            let known = |numbers: &HashMap<_, _>, id| match id {
                PlaceId::NONE => PlaceId::NONE,
                id => numbers[&id],
            };
            let mut outer = known(&numbers, chain.pop().expect("there is one at least"));
            for id in chain.into_iter().rev() {
                places.push(Place { inlined_at: outer, ..self.places[id.0 as usize] });
                outer = PlaceId(places.len() as u32 - 1);
                numbers.insert(id, outer);
            }
            outer
        };
        let first = self.traps.partition_point(|site| site.offset < start);
        let traps = self.traps[first..].iter().take_while(|site| site.offset < end);
        let traps: Vec<TrapSite> = traps
            .map(|site| TrapSite {
                offset: site.offset - start,
                place: number(site.place),
                ..*site
            })
            .collect();
        // Calls are at the address after them.
        let first = self.calls.partition_point(|site| site.offset <= start);
        let calls = self.calls[first..].iter().take_while(|site| site.offset <= end);
        let calls = calls
            .map(|site| CallSite { offset: site.offset - start, place: number(site.place) })
            .collect();
        (traps, calls, places)
    }

    /// A place and the call sites it was inlined at, innermost first.
    pub(crate) fn places(&self, innermost: PlaceId) -> impl Iterator<Item = Place> + '_ {
        let get = |id: PlaceId| self.places.get(id.0 as usize).copied();
        std::iter::successors(get(innermost), move |place| get(place.inlined_at))
    }
}
