//! The collector: C. J. Cheney, "A nonrecursive list compacting algorithm", CACM 13 (1970).
//!
//! Copies all objects that roots reach from one space to another, which becomes larger if there is little room
//! left. Roots are wherever the program has values; slotvm visits them.

use std::collections::HashMap;
use std::ops::Range;

use slotvm::{Caller, Error, Val};

use crate::heap::{
    self, Heap, TextTable, failure, get_u32, parts, set_u32, set_u64, u32_at, u64_at,
};
use crate::value::Value;

/// The kind of what has moved; its new address follows.
const MOVED: u32 = 0;
/// The heap begins here. An address is never 0.
const START: u32 = 64;
const SPACE_BYTES_MIN: u32 = 4 << 20;
/// A space, of which there may be two at a time, and a third between them.
pub(crate) const SPACE_BYTES_MAX: u32 = 1 << 30;
const PAGE: u32 = 1 << 16;

#[derive(Debug)]
pub(crate) struct Space {
    pub(crate) range: Range<u32>,
    /// Whether each allocation that reaches the host collects, and what was left is overwritten, so that a test finds values
    /// that were not visited.
    pub(crate) is_stressed: bool,
    pub(crate) n_collections: u64,
}

impl Space {
    pub(crate) fn new(is_stressed: bool) -> Space {
        Space { range: START..START, is_stressed, n_collections: 0 }
    }
}

/// Frees what is not used any more, so that there is room for so many bytes.
pub(crate) fn collect(caller: &mut Caller<'_, Heap>, bytes: u32) -> Result<(), Error> {
    let is_stressed = caller.data().space.is_stressed;
    let mut size = caller.data().space.range.len() as u32;
    size = size.max(SPACE_BYTES_MIN);
    loop {
        let used = copy_all(caller, size)?;
        // Half of it is free at least, or the next collection comes too soon.
        let wanted = u64::from(used) * 2 + u64::from(bytes);
        if wanted <= u64::from(size) {
            break;
        }
        size = u32::try_from(wanted.next_power_of_two())
            .ok()
            .filter(|&size| size <= SPACE_BYTES_MAX)
            .ok_or_else(|| failure("out of memory"))?;
    }
    let exports = caller.data().exports();
    if is_stressed {
        let next = get_u32(caller, exports.next);
        exports.limit.set(&mut *caller, Val::I32((next + bytes) as i32))?;
    }
    Ok(())
}

/// Copies all that is used to a space of this size, and returns how much it is.
fn copy_all(caller: &mut Caller<'_, Heap>, size: u32) -> Result<u32, Error> {
    let exports = caller.data().exports();
    let old = caller.data().space.range.clone();
    // Before the old space if there is room, or else after it.
    let start = if old.start - START >= size { START } else { old.end };
    let end = start.checked_add(size).ok_or_else(|| failure("out of memory"))?;
    let missing = (u64::from(end)).saturating_sub(exports.memory.data_size(&*caller) as u64);
    if missing > 0 {
        let pages = missing.div_ceil(PAGE.into());
        exports.memory.grow(&mut *caller, pages)?;
    }
    // Roots cannot be visited while the memory is borrowed, so this takes two visits.
    let mut roots: HashMap<u64, u64> = HashMap::new();
    caller.visit_roots(|root| {
        if Value(*root).is_in_heap() {
            roots.insert(*root, 0);
        }
    })?;
    let (memory, heap) = parts(caller);
    let mut copy = Copy { memory, next: start };
    for (root, moved) in &mut roots {
        *moved = copy.value(*root);
    }
    copy.rest(start);
    let next = copy.next;
    let texts = std::mem::take(&mut heap.texts);
    heap.texts = moved_texts(texts, memory);
    if heap.space.is_stressed {
        memory[old.start as usize..old.end as usize].fill(0xff);
    }
    heap.space.range = start..end;
    heap.space.n_collections += 1;
    caller.visit_roots(|root| *root = roots.get(root).copied().unwrap_or(*root))?;
    exports.next.set(&mut *caller, Val::I32(next as i32))?;
    exports.limit.set(&mut *caller, Val::I32(end as i32))?;
    Ok(next - start)
}

/// The strings that have moved; the others are not used.
fn moved_texts(old: TextTable, memory: &[u8]) -> TextTable {
    let mut texts = TextTable::default();
    for address in old.addresses.into_iter().filter(|&address| address != 0) {
        if u32_at(memory, address) == MOVED {
            texts.insert(memory, u32_at(memory, address + 4));
        }
    }
    texts
}

struct Copy<'m> {
    memory: &'m mut [u8],
    next: u32,
}

/// The bytes of what begins with this word, and the values in it.
fn extent(word: u64) -> (u32, u32) {
    let (kind, number) = (word as u32, (word >> 32) as u32);
    match kind {
        heap::ARRAY | heap::MAP => (16, 1),
        heap::TEXT => (16 + number.next_multiple_of(8), 0),
        _ => (8 + 8 * number, number),
    }
}

impl Copy<'_> {
    /// The value, after what it names has moved.
    fn value(&mut self, bits: u64) -> u64 {
        if !Value(bits).is_in_heap() {
            return bits;
        }
        let address = Value(bits).address();
        let word = u64_at(self.memory, address);
        let moved =
            if word as u32 == MOVED { (word >> 32) as u32 } else { self.copy(address, word) };
        bits >> 32 << 32 | u64::from(moved)
    }

    fn copy(&mut self, address: u32, word: u64) -> u32 {
        let moved = self.next;
        let (bytes, _) = extent(word);
        let from = address as usize..(address + bytes) as usize;
        self.memory.copy_within(from, moved as usize);
        set_u32(self.memory, address, MOVED);
        set_u32(self.memory, address + 4, moved);
        self.next += bytes;
        moved
    }

    /// Copies what the copies name, from an address on.
    fn rest(&mut self, mut at: u32) {
        while at < self.next {
            let (bytes, n_values) = extent(u64_at(self.memory, at));
            for address in (at + 8..at + 8 + 8 * n_values).step_by(8) {
                let moved = self.value(u64_at(self.memory, address));
                set_u64(self.memory, address, moved);
            }
            at += bytes;
        }
    }
}
