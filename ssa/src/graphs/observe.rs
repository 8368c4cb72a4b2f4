//! Steps of phi placement, as an observer sees them.
//!
//! The placements of [`crate::graphs::idf`] and [`crate::graphs::place`] report what they do while they do it, so that
//! a film of a placement shows the algorithm that runs, not a second one. The observer `()` sees nothing, and code for
//! it is that of a placement without observer: whatever makes a step asks [`PlacementObserver::IS_ON`] first, which is
//! a constant.
//!
//! Several slots may take a step together, as [`Placement::Words`](crate::graphs::idf::Placement::Words) does it: a
//! step comes with the set of slots of the group that take it.

use crate::graphs::ids::Slot;

/// A step of phi placement. Blocks are those of the graph that was given to the placement.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum PlacementStep {
    /// The slot is live on entry to a block.
    Live {
        /// The block.
        block: u32,
    },
    /// A block writes the slot, so phis may be needed in its frontier.
    Write {
        /// The block.
        block: u32,
    },
    /// A block that writes the slot or has a phi joins the queue.
    Enqueue {
        /// The block.
        block: u32,
    },
    /// A block that writes the slot or has a phi does not join the queue.
    NotEnqueued {
        /// The block.
        block: u32,
        /// The reason.
        reason: NotEnqueued,
    },
    /// A block leaves the queue: its frontier is looked for next.
    Dequeue {
        /// The block.
        block: u32,
    },
    /// The walk below the block that left the queue comes to a block that it dominates.
    Visit {
        /// The block.
        block: u32,
    },
    /// The walk does not go down to a child in the dominator tree.
    Skip {
        /// The child.
        block: u32,
        /// The reason.
        reason: Skip,
    },
    /// An edge is looked at, or an entry of a dominance frontier.
    Edge {
        /// The block that it leaves.
        src: u32,
        /// The block that it leads to.
        dst: u32,
        /// Whether it leads to a new phi, or why not.
        outcome: EdgeOutcome,
    },
}

/// The reason why a block does not join the queue.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum NotEnqueued {
    /// It has been in the queue.
    Again,
    /// No edge leads from below it to its level or above, so its frontier is empty.
    NoFrontier,
}

/// The reason why a walk leaves out a child in the dominator tree.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Skip {
    /// It was walked from a deeper root.
    Walked,
    /// No edge leads from below it to the level of the root or above.
    NoFrontier,
}

/// The outcome of looking at an edge or at an entry of a frontier.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum EdgeOutcome {
    /// The block gets a phi.
    Phi,
    /// The block is deeper than the root, which strictly dominates it.
    Deeper,
    /// The slot is not live on entry to the block.
    NotLive,
    /// The block has its phi.
    HasPhi,
}

/// Sees the steps of a phi placement.
pub trait PlacementObserver {
    /// Whether it wants to see anything.
    const IS_ON: bool = true;

    /// Begins the placement of some slots, which are numbered by their position from here on.
    fn place(&mut self, slots: &[Slot]);

    /// Takes a step. Bit `i` of `slots` is set if slot `i` of the list takes it.
    fn placement_step(&mut self, slots: u64, step: PlacementStep);
}

/// Sees nothing.
impl PlacementObserver for () {
    const IS_ON: bool = false;

    fn place(&mut self, _: &[Slot]) {}

    fn placement_step(&mut self, _: u64, _: PlacementStep) {}
}

/// Reports a step of some slots, unless there are none, or nobody observes.
#[inline(always)]
pub(crate) fn report<O: PlacementObserver>(observer: &mut O, slots: u64, step: PlacementStep) {
    if O::IS_ON && slots != 0 {
        observer.placement_step(slots, step);
    }
}

/// An observer of a placement in a renumbered graph, which sees the numbers from before.
pub(crate) struct Renumbered<'a, O> {
    pub(crate) observer: &'a mut O,
    /// The former number of each block.
    pub(crate) blocks: &'a [u32],
}

impl<O: PlacementObserver> PlacementObserver for Renumbered<'_, O> {
    const IS_ON: bool = O::IS_ON;

    fn place(&mut self, slots: &[Slot]) {
        self.observer.place(slots);
    }

    fn placement_step(&mut self, slots: u64, mut step: PlacementStep) {
        use PlacementStep::{Dequeue, Edge, Enqueue, Live, NotEnqueued, Skip, Visit, Write};
        match &mut step {
            Live { block }
            | Write { block }
            | Enqueue { block }
            | NotEnqueued { block, .. }
            | Dequeue { block }
            | Visit { block }
            | Skip { block, .. } => *block = self.blocks[*block as usize],
            Edge { src, dst, .. } => {
                *src = self.blocks[*src as usize];
                *dst = self.blocks[*dst as usize];
            }
        }
        self.observer.placement_step(slots, step);
    }
}
