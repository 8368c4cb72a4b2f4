//! Renaming: which value each read of a slot gives and each edge brings to the phis.
//!
//! The dominator-tree walk of Cytron et al. (1991) as one loop over the blocks, which are numbered in
//! preorder of the tree: the state of the slots is what it is at the end of the block's immediate
//! dominator, changed by the block's phis and writes. Changes are logged, and undone when the loop
//! leaves the subtree of the block that made them. Only the first change of a slot in a block is
//! logged, and none of a slot whose state is not read after it could have become wrong: one that is
//! local to its blocks, or is written in one block that dominates all reads.

use bumpalo::Bump;

use crate::accesses::{AccessLog, NONE};
use crate::faults::{Fault, planted};

/// The phis of all blocks, and the values they make.
#[derive(Debug)]
pub(crate) struct Phis<'a> {
    /// Where the phis of a block start; one more entry than blocks.
    starts: &'a [u32],
    slots: &'a [u32],
    /// The phis are numbered one after the other from here.
    first_value: u32,
}

impl<'a> Phis<'a> {
    /// Sorts phi sites by block; within a block they keep their order. The values of the phis are
    /// numbered from `first_value` in the order of blocks.
    pub(crate) fn sort(
        arena: &'a Bump,
        n_blocks: usize,
        sites: &[(u32, u32)],
        first_value: u32,
    ) -> Phis<'a> {
        let starts = arena.alloc_slice_fill_copy(n_blocks + 1, 0);
        for &(block, _) in sites {
            starts[block as usize] += 1;
        }
        let mut end = 0;
        for start in &mut *starts {
            end += *start;
            *start = end;
        }
        let slots = arena.alloc_slice_fill_copy(sites.len(), 0);
        for &(block, slot) in sites.iter().rev() {
            let start = &mut starts[block as usize];
            *start -= 1;
            slots[*start as usize] = slot;
        }
        Phis { starts, slots, first_value }
    }

    /// The slots of a block's phis.
    #[inline]
    pub(crate) fn slots(&self, block: u32) -> &[u32] {
        &self.slots[self.range(block)]
    }

    /// The number of a block's first phi, counted over all blocks, and that of the next block's.
    #[inline]
    pub(crate) fn range(&self, block: u32) -> std::ops::Range<usize> {
        self.starts[block as usize] as usize..self.starts[block as usize + 1] as usize
    }

    /// The slots of all phis, in the order of their values.
    pub(crate) fn all(&self) -> &[u32] {
        self.slots
    }
}

/// A slot during renaming.
#[derive(Copy, Clone, Debug)]
struct Current {
    value: u32,
    /// The block that changed it last; [`NONE`] if its changes need not be undone.
    block: u32,
}

/// A change to take back.
#[derive(Copy, Clone, Debug)]
struct Change {
    slot: u32,
    old: Current,
}

/// Memory of the renaming, to be reused from function to function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Renamer {
    slots: Vec<Current>,
    changes: Vec<Change>,
    /// The blocks on the way to the current one: end of the subtree, and changes before the block.
    open: Vec<(u32, u32)>,
}

impl Renamer {
    /// Starts with slots whose value is never asked for before it is written.
    pub(crate) fn start(&mut self, n_slots: usize) {
        self.slots.clear();
        self.slots.resize(n_slots, Current { value: NONE, block: NONE });
        self.changes.clear();
        self.open.clear();
    }

    /// Gives a slot an initial value.
    pub(crate) fn set_initial(&mut self, slot: u32, value: u32) {
        self.slots[slot as usize].value = value;
    }

    /// Says that changes of a slot must be undone.
    pub(crate) fn track(&mut self, slot: u32) {
        self.slots[slot as usize].block = 0;
    }

    /// The value of a slot.
    #[inline]
    pub(crate) fn value(&self, slot: u32) -> u32 {
        self.slots[slot as usize].value
    }

    /// Gives each logged read its value. `leave` is called at the end of each block, when [`value`]
    /// says what its edges bring to the phis of their targets.
    ///
    /// `ends` holds the end of each block's subtree. It may be empty if no slot is tracked.
    ///
    /// [`value`]: Renamer::value
    pub(crate) fn run(
        &mut self,
        n_blocks: usize,
        ends: &[u32],
        log: &mut AccessLog,
        phis: &Phis<'_>,
        mut leave: impl FnMut(&Renamer, u32),
    ) {
        for block in 0..n_blocks as u32 {
            if !ends.is_empty() {
                self.enter(block, ends[block as usize]);
            }
            let first = phis.first_value;
            for (i, &slot) in phis.range(block).zip(phis.slots(block)) {
                self.change(slot, first + i as u32, block);
            }
            let (reads, writes, replacements) = log.of_block(block);
            for read in reads {
                replacements[read.value as usize] = self.value(read.slot);
            }
            let forgets = planted(Fault::WriteForgotten)
                && writes.len() > 1
                && self.value(writes[writes.len() - 1].slot) != NONE;
            let writes = &writes[..writes.len() - usize::from(forgets)];
            // A written value may be what a logged read of this very block makes.
            for write in writes {
                self.change(write.slot, replacements[write.value as usize], block);
            }
            leave(self, block);
        }
    }

    /// Goes back to the state at the end of the block's immediate dominator.
    #[inline]
    fn enter(&mut self, block: u32, end: u32) {
        while let Some(&(open_end, n_changes)) = self.open.last()
            && open_end <= block
        {
            // The changes of one block, each of another slot.
            for change in self.changes.drain(n_changes as usize..) {
                if planted(Fault::UndoForgotten) && self.open.len() == 3 {
                    continue;
                }
                self.slots[change.slot as usize] = change.old;
            }
            self.open.pop();
        }
        self.open.push((end, self.changes.len() as u32));
    }

    #[inline]
    fn change(&mut self, slot: u32, value: u32, block: u32) {
        let current = &mut self.slots[slot as usize];
        if current.block < block {
            self.changes.push(Change { slot, old: *current });
            current.block = block;
        }
        current.value = value;
    }
}
