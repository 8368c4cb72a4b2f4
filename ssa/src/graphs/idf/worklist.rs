//! Cytron's worklist: the iterated dominance frontier from the sets.

use crate::graphs::frontier::Frontiers;
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
    ) {
        self.has_phi.start(n_blocks);
        self.was_listed.start(n_blocks);
        self.work.extend(writes.iter().filter(|&&block| self.was_listed.insert(block)));
        while let Some(block) = self.work.pop() {
            for &meeting in frontiers.of(block) {
                if needs(meeting) && self.has_phi.insert(meeting) {
                    found(meeting);
                    if self.was_listed.insert(meeting) {
                        self.work.push(meeting);
                    }
                }
            }
        }
    }
}
