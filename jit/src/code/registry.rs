//! The registry of native code: a list of address ranges that a signal handler may read.
//!
//! Finds the [`PcTable`] of the code that a program counter lies in, by binary search. Reading
//! takes no lock and allocates nothing, so it is allowed in a signal handler, while other threads add
//! and remove ranges. The table that [`Reader::lookup`] returns lives as long as its code. A lookup for
//! code that a thread is executing may rely on that, since code is owned by what executes it.
//!
//! The list is sorted by address and immutable: adding or removing a range replaces it by a copy. That
//! copies 24 bytes for each unit of code, of which the system allows some ten thousands.
//! A lock serialises writers. The first writer that finds no active reader frees the replaced lists;
//! in a process that was forked while another thread was reading, none is ever freed.

use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard};

use crate::code::pctable::{PcTable, Tables};

/// A range of addresses, and the tables of the code that lies there.
#[derive(Copy, Clone)]
struct Unit {
    start: usize,
    end: usize,
    tables: *const Tables,
}

/// Units in ascending order; they do not overlap.
struct List(Vec<Unit>);

/// The current list; null before the first unit is registered.
static CURRENT: AtomicPtr<List> = AtomicPtr::new(ptr::null_mut());

/// Number of [`Reader`]s.
static N_READERS: AtomicUsize = AtomicUsize::new(0);

/// Replaced lists that a reader may still use.
static REPLACED: Mutex<Replaced> = Mutex::new(Replaced(Vec::new()));

struct Replaced(Vec<*mut List>);

// SAFETY: the lists are only read, by any thread, until one thread frees them.
unsafe impl Send for Replaced {}

/// A registered range; dropping it removes the range.
#[derive(Debug)]
pub(crate) struct Registration {
    start: usize,
}

/// Adds the range of some code. The caller keeps `tables` alive until the registration is dropped.
pub(crate) fn register(range: Range<usize>, tables: *const Tables) -> Registration {
    debug_assert!(range.start <= range.end);
    let unit = Unit { start: range.start, end: range.end, tables };
    replace(|units| {
        let index = units.partition_point(|other| other.start < unit.start);
        units.insert(index, unit);
    });
    Registration { start: range.start }
}

impl Drop for Registration {
    fn drop(&mut self) {
        replace(|units| {
            let index = units.binary_search_by_key(&self.start, |unit| unit.start);
            units.remove(index.expect("the range is registered"));
        });
    }
}

/// Replaces the list by a changed copy.
fn replace(change: impl FnOnce(&mut Vec<Unit>)) {
    let mut replaced: MutexGuard<'_, Replaced> =
        REPLACED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let old = CURRENT.load(SeqCst);
    // SAFETY: lists are only freed after they were replaced, below, by the holder of the lock.
    let units = unsafe { old.as_ref() }.map_or(&[][..], |list| &list.0);
    let mut changed = Vec::with_capacity(units.len() + 1);
    changed.extend_from_slice(units);
    change(&mut changed);
    CURRENT.store(Box::into_raw(Box::new(List(changed))), SeqCst);
    if !old.is_null() {
        replaced.0.push(old);
    }
    // Readers count themselves before they fetch the list. So those that are counted later than here
    // get the new one, and those that were counted before are done.
    if N_READERS.load(SeqCst) == 0 {
        for list in replaced.0.drain(..) {
            // SAFETY: made by `Box::into_raw`, taken out of `CURRENT` and, as was just argued, out of
            // use; the lock holder alone knows it.
            drop(unsafe { Box::from_raw(list) });
        }
    }
}

/// Number of registered ranges.
#[cfg(test)]
pub(crate) fn n_ranges() -> usize {
    let reader = read();
    // SAFETY: the reader was counted before it fetched the list, which is therefore not freed.
    unsafe { reader.0.as_ref() }.map_or(0, |list| list.0.len())
}

/// Reads the list as it is now.
pub(crate) fn read() -> Reader {
    N_READERS.fetch_add(1, SeqCst);
    Reader(CURRENT.load(SeqCst))
}

/// Access to a list that is not freed while this exists.
#[derive(Debug)]
pub(crate) struct Reader(*const List);

impl Drop for Reader {
    fn drop(&mut self) {
        N_READERS.fetch_sub(1, SeqCst);
    }
}

impl Reader {
    /// The table of the code that `pc` lies in, or `None` if that is not our code.
    ///
    /// # Safety
    /// If `pc` lies in our code, that code stays alive for as long as the result is used, for instance
    /// because the calling thread is executing it.
    pub(crate) unsafe fn lookup<'a>(&self, pc: usize) -> Option<&'a PcTable> {
        // SAFETY: the reader was counted before it fetched the list, which is therefore not freed.
        let List(units) = unsafe { self.0.as_ref() }?;
        let n_before = units.partition_point(|unit| unit.start <= pc);
        let unit = units[..n_before].last().filter(|unit| pc < unit.end)?;
        // SAFETY: the tables live as long as their registration, which lives as long as the code.
        unsafe { &*unit.tables }.at(pc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Tables {
        Tables::Unit(PcTable::default())
    }

    fn address(tables: &Tables) -> Option<*const PcTable> {
        tables.at(0).map(ptr::from_ref)
    }

    fn owner(pc: usize) -> Option<*const PcTable> {
        // SAFETY: the tests' tables live to the end of the tests.
        unsafe { read().lookup(pc) }.map(ptr::from_ref)
    }

    #[test]
    fn ranges_are_found_until_they_are_dropped() {
        // Addresses that no code has, so that other tests do not matter.
        let tables: Vec<Tables> = (0..300).map(|_| table()).collect();
        let range = |i: usize| (i + 1) * 16..(i + 1) * 16 + 8;
        // In no order of addresses.
        let mut registrations: Vec<_> =
            (0..300).map(|n| n * 7 % 300).map(|i| (i, register(range(i), &tables[i]))).collect();
        for (i, table) in tables.iter().enumerate() {
            assert_eq!(owner(range(i).start - 1), None);
            assert_eq!(owner(range(i).start), address(table));
            assert_eq!(owner(range(i).end - 1), address(table));
            assert_eq!(owner(range(i).end), None);
        }
        let (i, registration) = registrations.remove(7);
        drop(registration);
        assert_eq!(owner(range(i).start), None);
        assert_eq!(owner(range(i - 1).start), address(&tables[i - 1]));
        registrations.push((i, register(range(i), &tables[9])));
        assert_eq!(owner(range(i).start), address(&tables[9]));
        drop(registrations);
        assert_eq!(owner(range(0).start), None);
    }

    #[test]
    fn readers_keep_the_list_that_they_have() {
        // Addresses that neither code nor the other test has.
        let table = table();
        let range = |i: usize| 0x10000 + i * 16..0x10008 + i * 16;
        let first = register(range(0), &table);
        let reader = read();
        drop(first);
        let others: Vec<_> = (1..100).map(|i| register(range(i), &table)).collect();
        // SAFETY: the table lives to the end of the test.
        let found = |reader: &Reader, i| unsafe { reader.lookup(range(i).start) }.is_some();
        assert!(found(&reader, 0) && !found(&reader, 1));
        drop(reader);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for i in 0..10_000 {
                        assert!(owner(range(1 + i % 99).start).is_some());
                    }
                });
            }
            for _ in 0..1000 {
                assert!(owner(range(100).start).is_none());
                drop(register(range(100), &table));
            }
        });
        drop(others);
        // What was replaced is freed sooner or later.
        while !REPLACED.lock().unwrap().0.is_empty() {
            drop(register(range(0), &table));
        }
    }
}
