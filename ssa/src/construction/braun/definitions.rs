//! Known values of variables at the ends of blocks.

use std::hash::{BuildHasher, RandomState};

/// The block of an entry that is free.
const FREE: u32 = u32::MAX;
/// The initial number of entries of a table, as a power of two.
const ENTRIES_MIN_LOG2: u32 = 6;

#[derive(Copy, Clone, Debug)]
struct Entry {
    block: u32,
    variable: u32,
    value: u32,
}

const NO_ENTRY: Entry = Entry { block: FREE, variable: 0, value: 0 };

/// A hash table from variables and blocks to values, with linear probing.
///
/// The hash function is drawn at random from a universal family (multiply and shift, Dietzfelbinger et
/// al. 1997), so that no input can be constructed to be slow. Nothing depends on the order of entries.
#[derive(Clone, Debug)]
pub(super) struct Definitions {
    /// The entries in use are a prefix, whose length is a power of two: a small function after a large
    /// one uses little memory.
    entries: Vec<Entry>,
    /// The right shift that turns a hash into an index.
    shift: u32,
    len: usize,
    /// Odd factors.
    factors: (u64, u64),
}

impl Default for Definitions {
    fn default() -> Definitions {
        let random = RandomState::new();
        let factors = (random.hash_one(0) | 1, random.hash_one(1) | 1);
        Definitions { entries: Vec::new(), shift: 64 - ENTRIES_MIN_LOG2, len: 0, factors }
    }
}

impl Definitions {
    /// Removes all entries.
    pub(super) fn clear(&mut self) {
        self.len = 0;
        self.set_size_log2(ENTRIES_MIN_LOG2);
    }

    /// The number of pairs that have a value.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the value of a variable at the end of a block, if it is known.
    #[inline]
    pub(super) fn get(&self, variable: u32, block: u32) -> Option<u32> {
        let entry = self.entries[self.find(variable, block)];
        (entry.block != FREE).then_some(entry.value)
    }

    /// Sets the value of a variable at the end of a block.
    #[inline]
    pub(super) fn insert(&mut self, variable: u32, block: u32, value: u32) {
        let index = self.find(variable, block);
        let is_new = self.entries[index].block == FREE;
        self.entries[index] = Entry { block, variable, value };
        if is_new {
            self.len += 1;
            if self.len * 8 > self.size() * 5 {
                self.grow();
            }
        }
    }

    fn size(&self) -> usize {
        1 << (64 - self.shift)
    }

    /// The entry of a pair, or the free one where it belongs.
    #[inline]
    fn find(&self, variable: u32, block: u32) -> usize {
        let (a, b) = self.factors;
        let hash = a.wrapping_mul(variable.into()).wrapping_add(b.wrapping_mul(block.into()));
        let mut index = (hash >> self.shift) as usize;
        loop {
            let entry = &self.entries[index];
            if (entry.block == block && entry.variable == variable) || entry.block == FREE {
                return index;
            }
            index = (index + 1) & (self.size() - 1);
        }
    }

    #[cold]
    fn grow(&mut self) {
        let old = self.entries[..self.size()].to_vec();
        self.set_size_log2(64 - self.shift + 1);
        for entry in old.into_iter().filter(|entry| entry.block != FREE) {
            let index = self.find(entry.variable, entry.block);
            self.entries[index] = entry;
        }
    }

    /// Resizes the table and empties it.
    fn set_size_log2(&mut self, size_log2: u32) {
        self.shift = 64 - size_log2;
        let size = self.size();
        if self.entries.len() < size {
            self.entries.resize(size, NO_ENTRY);
        }
        self.entries[..size].fill(NO_ENTRY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stay_when_the_table_grows_and_go_when_it_is_cleared() {
        let mut table = Definitions::default();
        for round in 0..2 {
            table.clear();
            for block in 0..200 {
                for variable in 0..5 {
                    assert_eq!(table.get(variable, block), None);
                    table.insert(variable, block, round);
                    table.insert(variable, block, 10 * block + variable + round);
                }
            }
            assert_eq!(table.len(), 1_000);
            for block in 0..200 {
                for variable in 0..5 {
                    assert_eq!(table.get(variable, block), Some(10 * block + variable + round));
                }
                assert_eq!(table.get(5, block), None);
            }
        }
    }
}
