//! Steps of promotion, as an observer sees them: the scan of accesses, phi placement, and renaming.
//!
//! As for [`crate::graphs::observe`], the algorithms report what they do, and an observer that sees nothing costs
//! nothing.

use crate::graphs::ids::Slot;
use crate::graphs::observe::PlacementObserver;

/// A step of the scan or of renaming. Values are those of the function before promotion, and after those the phis in
/// the order of their blocks.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum ValueStep {
    /// The scan finds that a read returns the value of an earlier access of its block.
    Settled {
        /// The slot.
        slot: Slot,
        /// The result of the read.
        read: u32,
        /// The value to use in its place.
        value: u32,
    },
    /// A slot has this value before any block.
    Initial {
        /// The slot.
        slot: Slot,
        /// The value.
        value: u32,
    },
    /// Renaming comes to a block.
    Enter {
        /// The block.
        block: u32,
    },
    /// Renaming leaves a subtree of the dominator tree, so a slot has its value from before again.
    Restore {
        /// The slot.
        slot: Slot,
        /// The value; `u32::MAX` if the slot has none there, so that it is not read.
        value: u32,
    },
    /// A phi gives a slot a value.
    Phi {
        /// The slot.
        slot: Slot,
        /// The value of the phi.
        value: u32,
    },
    /// A read that comes first in its block returns what reaches the block.
    Read {
        /// The slot.
        slot: Slot,
        /// The result of the read.
        read: u32,
        /// The value to use in its place.
        value: u32,
    },
    /// The last write of the block gives a slot a value.
    Write {
        /// The slot.
        slot: Slot,
        /// The value.
        value: u32,
    },
    /// A phi at the end of an edge gets an operand.
    Operand {
        /// The block that the edge leads to.
        dst: u32,
        /// The slot.
        slot: Slot,
        /// The value.
        value: u32,
    },
}

/// Sees the steps of a promotion.
pub trait Observer: PlacementObserver {
    /// Takes a step of the scan or of renaming.
    fn value_step(&mut self, step: ValueStep);
}

/// Sees nothing.
impl Observer for () {
    fn value_step(&mut self, _: ValueStep) {}
}

/// Reports a step, unless nobody observes.
#[inline(always)]
pub(crate) fn report<O: Observer>(observer: &mut O, step: ValueStep) {
    if O::IS_ON {
        observer.value_step(step);
    }
}
