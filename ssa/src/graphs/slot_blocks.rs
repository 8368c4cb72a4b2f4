//! The blocks that write and read slots, as input of placement and liveness.

use crate::graphs::rows::Rows;

/// Blocks that write each slot, and blocks that read it before they write it.
///
/// A block that only reads a slot after writing it does not count as reading: such a read is
/// settled inside the block. Lists keep the order in which they were given; a block that occurs twice
/// in one does no harm.
#[derive(Clone, Debug, Default)]
pub struct SlotBlocks {
    writes: Rows,
    reads: Rows,
}

impl SlotBlocks {
    /// Sorts writes and upward-exposed reads, each a block and a slot, by slot.
    ///
    /// # Panics
    /// If a slot is not below `n_slots`.
    pub fn new<I, J>(n_slots: usize, writes: I, reads: J) -> SlotBlocks
    where
        I: IntoIterator<Item = (u32, u32)>,
        I::IntoIter: Clone,
        J: IntoIterator<Item = (u32, u32)>,
        J::IntoIter: Clone,
    {
        let mut slots = SlotBlocks::default();
        slots.rebuild(n_slots, writes, reads);
        slots
    }

    /// Replaces the lists by others, in the memory of the old ones.
    ///
    /// # Panics
    /// If a slot is not below `n_slots`.
    pub fn rebuild<I, J>(&mut self, n_slots: usize, writes: I, reads: J)
    where
        I: IntoIterator<Item = (u32, u32)>,
        I::IntoIter: Clone,
        J: IntoIterator<Item = (u32, u32)>,
        J::IntoIter: Clone,
    {
        sort(&mut self.writes, n_slots, writes.into_iter());
        sort(&mut self.reads, n_slots, reads.into_iter());
    }

    /// The number of slots; their numbers are below it.
    pub fn n_slots(&self) -> usize {
        self.writes.n_rows()
    }

    /// The blocks that write a slot.
    #[inline]
    pub fn writes(&self, slot: u32) -> &[u32] {
        self.writes.row(slot)
    }

    /// The blocks that read a slot before they write it: those where it is *upward exposed*.
    #[inline]
    pub fn reads(&self, slot: u32) -> &[u32] {
        self.reads.row(slot)
    }
}

/// Makes the rows of pairs of item and row.
fn sort(rows: &mut Rows, n_rows: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) {
    rows.start(n_rows);
    pairs.clone().for_each(|(_, row)| rows.count(row));
    rows.start_filling();
    pairs.for_each(|(item, row)| rows.put(row, item));
    rows.finish();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_order_and_duplicates() {
        let mut slots = SlotBlocks::new(3, [(7, 2), (5, 0), (4, 2), (7, 2)], [(1, 0)]);
        assert_eq!(slots.n_slots(), 3);
        assert_eq!(slots.writes(0), [5]);
        assert_eq!(slots.writes(1), []);
        assert_eq!(slots.writes(2), [7, 4, 7]);
        assert_eq!((slots.reads(0), slots.reads(2)), (&[1][..], &[][..]));
        slots.rebuild(1, [], [(3, 0), (2, 0)]);
        assert_eq!((slots.n_slots(), slots.writes(0)), (1, &[][..]));
        assert_eq!(slots.reads(0), [3, 2]);
    }

    #[test]
    #[should_panic]
    fn a_slot_out_of_range_is_refused() {
        SlotBlocks::new(2, [(0, 2)], []);
    }
}
