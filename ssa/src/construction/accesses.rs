//! The accesses of a function's slots: one scan over all reads and writes.
//!
//! The scan goes through the blocks in order and, inside each, through the accesses in order. It
//! settles what a block settles by itself: a read after another access of the same slot in the same
//! block returns the value of that access. The rest is logged, at most one read and one write for each
//! slot and block:
//! * the read that comes before any write in its block (the slot is *upward exposed* there),
//! * the last write of the block.
//!
//! So the log is also the list of upward-exposed and of writing blocks of all slots, made without sets:
//! the state of a slot carries the number of the block that touched it last as a stamp.
//!
//! Values are numbers of the caller's choice. Blocks must be numbered in preorder of the
//! dominator tree ([`crate::graphs::dominators`]) for what comes after; the scan only needs each number once.

use crate::construction::observe::{Observer, ValueStep, report};
use crate::graphs::ids::Slot;

/// No block, no access, no value.
pub(crate) const NONE: u32 = u32::MAX;

/// A logged read or write.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Access {
    pub(crate) slot: Slot,
    /// The value that the read defines or that is written. A written value is settled as far as its
    /// block settles it: it may be the value of a logged read of the same block.
    pub(crate) value: u32,
}

/// The state of a slot during the scan.
#[derive(Copy, Clone, Debug)]
struct SlotState {
    /// The block of the last access, and the slot's value after it.
    block: u32,
    value: u32,
    /// The block of the last write, and the write in the log.
    written_in: u32,
    write: u32,
    n_writing_blocks: u32,
    n_reading_blocks: u32,
    /// The smallest and greatest block that is upward exposed.
    reads_from: u32,
    reads_to: u32,
    n_reads: u32,
    n_writes: u32,
}

impl SlotState {
    const NEW: SlotState = SlotState {
        block: NONE,
        value: NONE,
        written_in: NONE,
        write: NONE,
        n_writing_blocks: 0,
        n_reading_blocks: 0,
        reads_from: NONE,
        reads_to: 0,
        n_reads: 0,
        n_writes: 0,
    };
}

/// The classification of a slot by the scan alone.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The slot is never read.
    Dead,
    /// One block has all accesses, and no read depends on a write in another one.
    SingleBlock,
    /// No read depends on a write in another block.
    Local,
    /// The slot is read but never written.
    Unwritten,
    /// The slot is written in one block only, and every upward-exposed block has a number in this range.
    OneWriter { block: u32, reads: (u32, u32) },
    /// None of these.
    Many,
}

/// The scan and its log.
#[derive(Clone, Debug, Default)]
pub(crate) struct AccessLog {
    slots: Vec<SlotState>,
    reads: Vec<Access>,
    writes: Vec<Access>,
    /// Start of the reads and writes of each block; one more entry than blocks once the scan has ended.
    starts: Vec<(u32, u32)>,
    /// The value to use in place of a value: for a settled read, the value that it returns; for
    /// any other value, itself.
    pub(crate) replacements: Vec<u32>,
    block: u32,
}

impl AccessLog {
    /// Starts the scan of a function with `n_slots` slots and `n_values` values.
    pub(crate) fn start(&mut self, n_slots: usize, n_values: usize) {
        self.slots.clear();
        self.slots.resize(n_slots, SlotState::NEW);
        self.reads.clear();
        self.writes.clear();
        self.starts.clear();
        self.replacements.clear();
        self.replacements.extend(0..n_values as u32);
    }

    /// Starts the next block, to which the following accesses belong.
    #[inline]
    pub(crate) fn start_block(&mut self) {
        self.block = self.starts.len() as u32;
        self.starts.push((self.reads.len() as u32, self.writes.len() as u32));
    }

    /// Ends the scan.
    pub(crate) fn finish(&mut self) {
        self.starts.push((self.reads.len() as u32, self.writes.len() as u32));
    }

    /// Records a read of a slot, which defines a value.
    #[inline]
    pub(crate) fn read(&mut self, slot: Slot, value: u32, observer: &mut impl Observer) {
        let state = &mut self.slots[slot.index()];
        state.n_reads += 1;
        if state.block == self.block {
            self.replacements[value as usize] = state.value;
            report(observer, ValueStep::Settled { slot, read: value, value: state.value });
            return;
        }
        state.block = self.block;
        state.value = value;
        state.reads_from = state.reads_from.min(self.block);
        state.reads_to = self.block;
        state.n_reading_blocks += 1;
        self.reads.push(Access { slot, value });
    }

    /// Records a write of a value to a slot.
    #[inline]
    pub(crate) fn write(&mut self, slot: Slot, value: u32) {
        let value = self.replacements[value as usize];
        let state = &mut self.slots[slot.index()];
        state.n_writes += 1;
        state.block = self.block;
        state.value = value;
        if state.written_in == self.block {
            self.writes[state.write as usize].value = value;
            return;
        }
        state.written_in = self.block;
        state.n_writing_blocks += 1;
        state.write = self.writes.len() as u32;
        self.writes.push(Access { slot, value });
    }

    /// The number of slots.
    pub(crate) fn n_slots(&self) -> usize {
        self.slots.len()
    }

    /// All slots, ascending.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> + use<> {
        (0..self.slots.len() as u32).map(Slot)
    }

    /// The number of blocks that were scanned.
    pub(crate) fn n_blocks(&self) -> usize {
        self.starts.len() - 1
    }

    /// The number of reads that were scanned.
    #[cfg(feature = "ir")]
    pub(crate) fn n_reads(&self) -> usize {
        self.slots.iter().map(|state| state.n_reads as usize).sum()
    }

    /// The numbers of reads and of writes of a slot that were scanned.
    #[cfg(feature = "ir")]
    pub(crate) fn n_accesses(&self, slot: Slot) -> (usize, usize) {
        let SlotState { n_reads, n_writes, .. } = self.slots[slot.index()];
        (n_reads as usize, n_writes as usize)
    }

    /// The classification of a slot, after the scan.
    pub(crate) fn reach(&self, slot: Slot) -> Reach {
        let state = &self.slots[slot.index()];
        if state.n_reads == 0 {
            Reach::Dead
        } else if state.n_reading_blocks == 0 {
            // Each block that reads it has written it before.
            if state.n_writing_blocks == 1 { Reach::SingleBlock } else { Reach::Local }
        } else {
            match state.n_writing_blocks {
                0 => Reach::Unwritten,
                1 => Reach::OneWriter {
                    block: state.written_in,
                    reads: (state.reads_from, state.reads_to),
                },
                _ => Reach::Many,
            }
        }
    }

    /// Whether a slot is written at all.
    pub(crate) fn is_written(&self, slot: Slot) -> bool {
        self.slots[slot.index()].n_writing_blocks > 0
    }

    /// The slots that the entry, block 0, writes before it reads them: their initial value is never
    /// seen.
    pub(crate) fn written_at_entry(&self) -> impl Iterator<Item = Slot> {
        let writes = &self.writes[..self.starts[1].1 as usize];
        let is_first = |slot: &Slot| self.slots[slot.index()].reads_from != 0;
        writes.iter().map(|write| write.slot).filter(is_first)
    }

    /// The number of logged reads and writes of a slot.
    pub(crate) fn n_logged(&self, slot: Slot) -> u32 {
        let state = &self.slots[slot.index()];
        state.n_reading_blocks + state.n_writing_blocks
    }

    /// Block and slot of each logged read.
    pub(crate) fn reads(&self) -> impl Iterator<Item = (u32, Slot)> + Clone {
        let start = |block: usize| self.starts[block].0 as usize;
        let of_block = move |block| &self.reads[start(block)..start(block + 1)];
        let slots = move |block| of_block(block).iter().map(move |read| (block as u32, read.slot));
        (0..self.n_blocks()).flat_map(slots)
    }

    /// Block and slot of each logged write.
    pub(crate) fn writes(&self) -> impl Iterator<Item = (u32, Slot)> + Clone {
        let start = |block: usize| self.starts[block].1 as usize;
        let of_block = move |block| &self.writes[start(block)..start(block + 1)];
        let slots =
            move |block| of_block(block).iter().map(move |write| (block as u32, write.slot));
        (0..self.n_blocks()).flat_map(slots)
    }

    /// The logged reads and writes of a block, and the replacements to fill in.
    #[inline]
    pub(crate) fn of_block(&mut self, block: u32) -> (&[Access], &[Access], &mut [u32]) {
        let (read, write) = self.starts[block as usize];
        let (read_end, write_end) = self.starts[block as usize + 1];
        (
            &self.reads[read as usize..read_end as usize],
            &self.writes[write as usize..write_end as usize],
            &mut self.replacements,
        )
    }
}
