//! Which native code belongs to us: a table of address ranges that a signal handler may read.
//!
//! Computes the [`PcTable`] of the code that a program counter lies in. Reading takes no lock and
//! allocates nothing, so it is allowed in a signal handler, while other threads add and remove ranges.
//! The table that [`lookup`] gives is alive as long as its code is; whoever asks about the pc of code
//! that a thread is executing may rely on it, since code is owned by what executes it.
//!
//! Ranges lie in slots of chunks that are never freed. A slot is empty while its `start` is 0; writers
//! take turns by a lock, write `start` last when they fill a slot and first when they empty it.

use std::ops::Range;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::SeqCst};

use crate::pctable::PcTable;

const CHUNK_SLOTS: usize = 128;

#[derive(Debug)]
struct Slot {
    start: AtomicUsize,
    end: AtomicUsize,
    table: AtomicPtr<PcTable>,
}

struct Chunk {
    slots: [Slot; CHUNK_SLOTS],
    next: AtomicPtr<Chunk>,
}

static FIRST: Chunk = Chunk::new();

/// Slots that were used and are empty again, and how many have ever been used.
struct Free {
    slots: Vec<&'static Slot>,
    last: &'static Chunk,
    n_used_of_last: usize,
}

static FREE: Mutex<Free> = Mutex::new(Free { slots: Vec::new(), last: &FIRST, n_used_of_last: 0 });

impl Chunk {
    const fn new() -> Chunk {
        Chunk { slots: [const { Slot::new() }; CHUNK_SLOTS], next: AtomicPtr::new(ptr::null_mut()) }
    }
}

impl Slot {
    const fn new() -> Slot {
        Slot {
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            table: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// The table, if the slot holds the range that `pc` lies in.
    fn table_of(&self, pc: usize) -> Option<*const PcTable> {
        let start = self.start.load(SeqCst);
        if start == 0 || pc < start {
            return None;
        }
        let (end, table) = (self.end.load(SeqCst), self.table.load(SeqCst));
        // A range that was replaced meanwhile is not one that anybody executes.
        (self.start.load(SeqCst) == start && pc < end).then_some(table.cast_const())
    }
}

/// A registered range; dropping it removes the range.
#[derive(Debug)]
pub(crate) struct Registration(&'static Slot);

/// Adds the range of some code. The caller keeps `table` alive until the registration is dropped.
pub(crate) fn register(range: Range<usize>, table: *const PcTable) -> Registration {
    debug_assert!(range.start != 0 && range.start <= range.end);
    let mut free = FREE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let slot = match free.slots.pop() {
        Some(slot) => slot,
        None => free.next_unused(),
    };
    slot.end.store(range.end, SeqCst);
    slot.table.store(table.cast_mut(), SeqCst);
    slot.start.store(range.start, SeqCst);
    Registration(slot)
}

impl Free {
    fn next_unused(&mut self) -> &'static Slot {
        if self.n_used_of_last == CHUNK_SLOTS {
            let chunk: &'static Chunk = Box::leak(Box::new(Chunk::new()));
            self.last.next.store(ptr::from_ref(chunk).cast_mut(), SeqCst);
            (self.last, self.n_used_of_last) = (chunk, 0);
        }
        self.n_used_of_last += 1;
        &self.last.slots[self.n_used_of_last - 1]
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.0.start.store(0, SeqCst);
        FREE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).slots.push(self.0);
    }
}

/// The table of the code that `pc` lies in, or `None` if that is not our code.
///
/// # Safety
/// If `pc` lies in our code, that code stays alive for as long as the result is used, for instance
/// because the calling thread is executing it.
pub(crate) unsafe fn lookup<'a>(pc: usize) -> Option<&'a PcTable> {
    let mut chunk = &FIRST;
    loop {
        if let Some(table) = chunk.slots.iter().find_map(|slot| slot.table_of(pc)) {
            // SAFETY: the table lives as long as its registration, which lives as long as the code.
            return Some(unsafe { &*table });
        }
        // SAFETY: chunks are never freed.
        chunk = unsafe { chunk.next.load(SeqCst).as_ref() }?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(pc: usize) -> Option<*const PcTable> {
        // SAFETY: the tests' tables live to the end of the tests.
        unsafe { lookup(pc) }.map(ptr::from_ref)
    }

    #[test]
    fn ranges_are_found_until_they_are_dropped() {
        // Addresses that no code has, so that other tests do not matter.
        let tables: Vec<PcTable> = (0..300).map(|_| PcTable::default()).collect();
        let range = |i: usize| (i + 1) * 16..(i + 1) * 16 + 8;
        let mut registrations: Vec<_> =
            tables.iter().enumerate().map(|(i, table)| Some(register(range(i), table))).collect();
        for (i, table) in tables.iter().enumerate() {
            assert_eq!(owner(range(i).start), Some(ptr::from_ref(table)));
            assert_eq!(owner(range(i).end - 1), Some(ptr::from_ref(table)));
            assert_eq!(owner(range(i).end), None);
        }
        registrations[7] = None;
        assert_eq!(owner(range(7).start), None);
        registrations[7] = Some(register(range(7), &tables[9]));
        assert_eq!(owner(range(7).start), Some(ptr::from_ref(&tables[9])));
        drop(registrations);
        assert_eq!(owner(range(0).start), None);
    }
}
