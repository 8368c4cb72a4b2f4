//! The blocks that write and read slots, as input of placement and liveness.

use crate::graphs::ids::Slot;
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
    /// Panics if a slot is not below `n_slots`.
    pub fn new<I, J>(n_slots: usize, writes: I, reads: J) -> SlotBlocks
    where
        I: IntoIterator<Item = (u32, Slot)>,
        I::IntoIter: Clone,
        J: IntoIterator<Item = (u32, Slot)>,
        J::IntoIter: Clone,
    {
        let mut slots = SlotBlocks::default();
        slots.rebuild(n_slots, writes, reads);
        slots
    }

    /// Replaces the lists by others, in the memory of the old ones.
    ///
    /// # Panics
    /// Panics if a slot is not below `n_slots`.
    pub fn rebuild<I, J>(&mut self, n_slots: usize, writes: I, reads: J)
    where
        I: IntoIterator<Item = (u32, Slot)>,
        I::IntoIter: Clone,
        J: IntoIterator<Item = (u32, Slot)>,
        J::IntoIter: Clone,
    {
        sort(&mut self.writes, n_slots, writes.into_iter());
        sort(&mut self.reads, n_slots, reads.into_iter());
    }

    /// The number of slots; their numbers are below it.
    pub fn n_slots(&self) -> usize {
        self.writes.n_rows()
    }

    /// All slots, ascending.
    pub fn slots(&self) -> impl Iterator<Item = Slot> + use<> {
        (0..self.n_slots() as u32).map(Slot)
    }

    /// The blocks that write a slot.
    #[inline]
    pub fn writes(&self, slot: Slot) -> &[u32] {
        self.writes.row(slot.0)
    }

    /// The blocks that read a slot before they write it: those where it is *upward exposed*.
    #[inline]
    pub fn reads(&self, slot: Slot) -> &[u32] {
        self.reads.row(slot.0)
    }
}

/// Makes rows of blocks, one for each slot.
fn sort(rows: &mut Rows, n_slots: usize, pairs: impl Iterator<Item = (u32, Slot)> + Clone) {
    rows.start(n_slots);
    pairs.clone().for_each(|(_, slot)| rows.count(slot.0));
    rows.start_filling();
    pairs.for_each(|(block, slot)| rows.put(slot.0, block));
    rows.finish();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_order_and_duplicates() {
        let [a, b, c] = [0, 1, 2].map(Slot);
        let mut slots = SlotBlocks::new(3, [(7, c), (5, a), (4, c), (7, c)], [(1, a)]);
        assert_eq!(slots.n_slots(), 3);
        assert_eq!(slots.writes(a), [5]);
        assert_eq!(slots.writes(b), []);
        assert_eq!(slots.writes(c), [7, 4, 7]);
        assert_eq!((slots.reads(a), slots.reads(c)), (&[1][..], &[][..]));
        slots.rebuild(1, [], [(3, a), (2, a)]);
        assert_eq!((slots.n_slots(), slots.writes(a)), (1, &[][..]));
        assert_eq!(slots.reads(a), [3, 2]);
    }

    #[test]
    #[should_panic]
    fn a_slot_out_of_range_is_refused() {
        SlotBlocks::new(2, [(0, Slot(2))], []);
    }
}
