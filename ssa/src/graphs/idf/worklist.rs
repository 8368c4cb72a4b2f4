//! Cytron's worklist: the iterated dominance frontier from the sets.

use crate::graphs::frontier::Frontiers;
use crate::graphs::observe::{EdgeOutcome, NotEnqueued, PlacementObserver, PlacementStep, report};
use crate::graphs::stamps::StampSet;

/// Memory of the worklist, to be reused from slot to slot.
///
/// The algorithm of Cytron et al. (1991), figure 11. A block that gets a phi goes on the worklist like
/// a block that writes, unless it has been on it. Both tests are needed: a block that has its phi must
/// not get another one, and one that only has a phi must go on the list once.
#[derive(Clone, Debug, Default)]
pub(super) struct Worklist {
    has_phi: StampSet,
    was_listed: StampSet,
    work: Vec<u32>,
}

impl Worklist {
    /// Finds the blocks that need phis of a slot that some blocks write, among those that `needs`
    /// allows, and passes each on once.
    pub(super) fn place(
        &mut self,
        frontiers: &Frontiers,
        n_blocks: usize,
        writes: &[u32],
        needs: impl Fn(u32) -> bool,
        mut found: impl FnMut(u32),
        observer: &mut impl PlacementObserver,
    ) {
        self.has_phi.start(n_blocks);
        self.was_listed.start(n_blocks);
        for &block in writes {
            report(observer, 1, PlacementStep::Write { block });
            self.list(block, observer);
        }
        while let Some(block) = self.work.pop() {
            report(observer, 1, PlacementStep::Dequeue { block });
            for &meeting in frontiers.of(block) {
                let outcome = if !needs(meeting) {
                    EdgeOutcome::NotLive
                } else if !self.has_phi.insert(meeting) {
                    EdgeOutcome::HasPhi
                } else {
                    EdgeOutcome::Phi
                };
                report(observer, 1, PlacementStep::Edge { src: block, dst: meeting, outcome });
                if outcome == EdgeOutcome::Phi {
                    found(meeting);
                    self.list(meeting, observer);
                }
            }
        }
    }

    /// Puts a block on the list, unless it has been on it.
    fn list(&mut self, block: u32, observer: &mut impl PlacementObserver) {
        if self.was_listed.insert(block) {
            report(observer, 1, PlacementStep::Enqueue { block });
            self.work.push(block);
        } else {
            let reason = NotEnqueued::Again;
            report(observer, 1, PlacementStep::NotEnqueued { block, reason });
        }
    }
}
