//! Renaming: the value of each read of a slot, and the phi operands on each edge.
//!
//! A walk over the dominator tree in preorder, as in Cytron et al. (1991), is one loop over the blocks
//! here, since they are numbered in that order. A slot's value in a block follows from its value at the
//! end of the block's immediate dominator, changed by the block's phis and writes. Two schemes keep
//! these values, with the same result ([`Renaming`]):
//! * *Undo*: changes are logged, and undone when the loop leaves the subtree of the block that made
//!   them. This is the stack of Cytron et al., with one log for all slots.
//! * *Chains*: each definition links to the one that it replaced, and a lookup goes back to one that
//!   dominates the place (Rastello and Bouchez Tichadou (eds.), "SSA-based Compiler Design" (2022),
//!   section 3.1.3, `updateReachingDef`). What does not dominate a place will not dominate any later
//!   one, so it is removed from the chain, and the whole is linear. An operand of a phi is used at the
//!   end of the predecessor that brings it, so it is asked for there; drafts of the book, and texts that
//!   follow them, ask in the block of the phi, where the definition need not dominate.
//!
//! Only the first change of a slot in a block is logged or linked, and none of a slot whose state is
//! not read after it could have become wrong: one that is local to its blocks, or is written in one
//! block that dominates all reads.

use bumpalo::Bump;

use crate::construction::accesses::{Access, AccessLog, NONE};
use crate::construction::observe::{Observer, ValueStep, report};
use crate::graphs::ids::Slot;
use crate::graphs::steps::step;

/// The way in which renaming keeps the values that reach a block. Both schemes give the same result.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Renaming {
    /// A log of changes, undone on leaving a subtree of the dominator tree.
    #[default]
    Undo,
    /// Chains of reaching definitions, shortened when they are asked for.
    Chains,
}

impl Renaming {
    /// Both schemes.
    pub const ALL: [Renaming; 2] = [Renaming::Undo, Renaming::Chains];
}

/// The phis of all blocks, and the values they make.
#[derive(Debug)]
pub(crate) struct Phis<'a> {
    /// Start of the phis of each block; one more entry than blocks.
    starts: &'a [u32],
    slots: &'a [Slot],
    /// The phis are numbered one after the other from here.
    first_value: u32,
}

impl<'a> Phis<'a> {
    /// Sorts phi sites by block; within a block they keep their order. The values of the phis are
    /// numbered from `first_value` in the order of blocks.
    pub(crate) fn sort(
        arena: &'a Bump,
        n_blocks: usize,
        sites: &[(u32, Slot)],
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
        let slots = arena.alloc_slice_fill_copy(sites.len(), Slot(0));
        for &(block, slot) in sites.iter().rev() {
            let start = &mut starts[block as usize];
            *start -= 1;
            slots[*start as usize] = slot;
        }
        Phis { starts, slots, first_value }
    }

    /// The slots of a block's phis.
    #[inline]
    pub(crate) fn slots(&self, block: u32) -> &[Slot] {
        &self.slots[self.range(block)]
    }

    /// The number of a block's first phi, counted over all blocks, and that of the next block's.
    #[inline]
    pub(crate) fn range(&self, block: u32) -> std::ops::Range<usize> {
        self.starts[block as usize] as usize..self.starts[block as usize + 1] as usize
    }

    /// The value of the first phi.
    pub(crate) fn first_value(&self) -> u32 {
        self.first_value
    }

    /// The slots of all phis, in the order of their values.
    #[cfg(feature = "ir")]
    pub(crate) fn all(&self) -> &[Slot] {
        self.slots
    }
}

/// The destination of phi operands during renaming.
pub(crate) trait PhiOperands {
    /// Fills in the phi operands on the out-edges of a block. `value` returns the value of a slot at the
    /// end of the block, for a phi of the block that an edge leads to.
    fn fill(&mut self, block: u32, value: impl FnMut(u32, Slot) -> u32);
}

/// A slot during renaming.
#[derive(Copy, Clone, Debug)]
struct Current {
    value: u32,
    /// The block that changed it last; [`NONE`] if its former value is not needed.
    block: u32,
}

/// A change to take back.
#[derive(Copy, Clone, Debug)]
struct Change {
    slot: Slot,
    old: Current,
}

/// A link of a chain: a definition that another one replaced, and the one that it had replaced itself.
#[derive(Copy, Clone, Debug)]
struct Link {
    old: Current,
    next: u32,
}

/// Memory of the renaming, to be reused from function to function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Renamer {
    slots: Vec<Current>,
    changes: Vec<Change>,
    /// The blocks on the way to the current one: end of the subtree, and changes before the block.
    open: Vec<(u32, u32)>,
    /// The first link of each slot's chain.
    heads: Vec<u32>,
    links: Vec<Link>,
}

impl Renamer {
    /// Starts with slots whose value is never asked for before it is written.
    pub(crate) fn start(&mut self, n_slots: usize) {
        self.slots.clear();
        self.slots.resize(n_slots, Current { value: NONE, block: NONE });
    }

    /// Sets the initial value of a slot.
    pub(crate) fn set_initial(&mut self, slot: Slot, value: u32) {
        self.slots[slot.index()].value = value;
    }

    /// Keeps the values of a slot from before changes, which will be needed.
    pub(crate) fn track(&mut self, slot: Slot) {
        self.slots[slot.index()].block = 0;
    }

    /// Gives each logged read its value, and each edge the operands of the phis that it leads to.
    ///
    /// `ends` holds the end of each block's subtree. It may be empty if no slot is tracked.
    pub(crate) fn run(
        &mut self,
        renaming: Renaming,
        ends: &[u32],
        log: &mut AccessLog,
        phis: &Phis<'_>,
        operands: &mut impl PhiOperands,
        observer: &mut impl Observer,
    ) {
        let Renamer { slots, changes, open, heads, links } = self;
        report_initial(slots, observer);
        match renaming {
            Renaming::Undo => {
                changes.clear();
                open.clear();
                walk(Undo { ends, slots, changes, open }, log, phis, operands, observer);
            }
            Renaming::Chains => {
                heads.clear();
                heads.resize(slots.len(), NONE);
                links.clear();
                walk(Chains { ends, slots, heads, links }, log, phis, operands, observer);
            }
        }
    }
}

/// Reports the initial values that are used.
fn report_initial<O: Observer>(slots: &[Current], observer: &mut O) {
    if O::IS_ON {
        for (slot, current) in (0..).map(Slot).zip(slots) {
            if current.value != NONE {
                report(observer, ValueStep::Initial { slot, value: current.value });
            }
        }
    }
}

/// A way to keep the values of slots during the walk.
trait Scheme {
    /// Enters a block.
    fn enter(&mut self, block: u32, observer: &mut impl Observer);

    /// The value of a slot in the block.
    fn value(&mut self, slot: Slot, block: u32, observer: &mut impl Observer) -> u32;

    /// Changes the value of a slot in the block.
    fn change(&mut self, slot: Slot, value: u32, block: u32, observer: &mut impl Observer);
}

/// Goes through the blocks in preorder of the dominator tree.
fn walk(
    mut scheme: impl Scheme,
    log: &mut AccessLog,
    phis: &Phis<'_>,
    operands: &mut impl PhiOperands,
    observer: &mut impl Observer,
) {
    for block in 0..log.n_blocks() as u32 {
        scheme.enter(block, observer);
        report(observer, ValueStep::Enter { block });
        let first = phis.first_value;
        for (i, &slot) in phis.range(block).zip(phis.slots(block)) {
            let value = first + i as u32;
            scheme.change(slot, value, block, observer);
            report(observer, ValueStep::Phi { slot, value });
        }
        let (reads, writes, replacements) = log.of_block(block);
        for &Access { slot, value: read } in reads {
            let value = scheme.value(slot, block, observer);
            replacements[read as usize] = value;
            report(observer, ValueStep::Read { slot, read, value });
        }
        // A written value may be what a logged read of this very block makes.
        for write in writes {
            let (slot, value) = (write.slot, replacements[write.value as usize]);
            scheme.change(slot, value, block, observer);
            report(observer, ValueStep::Write { slot, value });
        }
        operands.fill(block, |dst, slot| {
            step();
            let value = scheme.value(slot, block, observer);
            report(observer, ValueStep::Operand { dst, slot, value });
            value
        });
    }
}

/// The values as they are in the current block, and how to go back to its dominators.
struct Undo<'r> {
    ends: &'r [u32],
    slots: &'r mut [Current],
    changes: &'r mut Vec<Change>,
    open: &'r mut Vec<(u32, u32)>,
}

impl Scheme for Undo<'_> {
    #[inline]
    fn enter(&mut self, block: u32, observer: &mut impl Observer) {
        if self.ends.is_empty() {
            return;
        }
        while let Some(&(open_end, n_changes)) = self.open.last()
            && open_end <= block
        {
            // The changes of one block, each of another slot.
            for change in self.changes.drain(n_changes as usize..) {
                step();
                let Change { slot, old } = change;
                self.slots[slot.index()] = old;
                report(observer, ValueStep::Restore { slot, value: old.value });
            }
            self.open.pop();
        }
        self.open.push((self.ends[block as usize], self.changes.len() as u32));
    }

    #[inline]
    fn value(&mut self, slot: Slot, _: u32, _: &mut impl Observer) -> u32 {
        self.slots[slot.index()].value
    }

    #[inline]
    fn change(&mut self, slot: Slot, value: u32, block: u32, _: &mut impl Observer) {
        let current = &mut self.slots[slot.index()];
        if current.block < block {
            self.changes.push(Change { slot, old: *current });
            current.block = block;
        }
        current.value = value;
    }
}

/// The values as of their last lookup, and those that they replaced. The initial value of a
/// slot, which counts as a definition in the entry, ends its chain.
struct Chains<'r> {
    ends: &'r [u32],
    slots: &'r mut [Current],
    heads: &'r mut [u32],
    links: &'r mut Vec<Link>,
}

impl Chains<'_> {
    /// Goes back to the definition that reaches a block: the last one in a dominator. Blocks are asked
    /// about in preorder, so a definition dominates one if the block's number is before the end of the
    /// subtree.
    #[inline]
    fn reach(&mut self, slot: Slot, block: u32, observer: &mut impl Observer) -> &mut Current {
        let current = &mut self.slots[slot.index()];
        while current.block != NONE && self.ends[current.block as usize] <= block {
            step();
            let link = self.links[self.heads[slot.index()] as usize];
            *current = link.old;
            self.heads[slot.index()] = link.next;
            report(observer, ValueStep::Restore { slot, value: current.value });
        }
        current
    }
}

impl Scheme for Chains<'_> {
    fn enter(&mut self, _: u32, _: &mut impl Observer) {}

    #[inline]
    fn value(&mut self, slot: Slot, block: u32, observer: &mut impl Observer) -> u32 {
        self.reach(slot, block, observer).value
    }

    #[inline]
    fn change(&mut self, slot: Slot, value: u32, block: u32, observer: &mut impl Observer) {
        let current = self.reach(slot, block, observer);
        let old = *current;
        current.value = value;
        if old.block < block {
            current.block = block;
            let next = std::mem::replace(&mut self.heads[slot.index()], self.links.len() as u32);
            self.links.push(Link { old, next });
        }
    }
}
