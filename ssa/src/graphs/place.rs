//! Phi placement: live-in blocks, and the iterated dominance frontier of the writing blocks pruned by
//! them, for 64 slots at a time.
//!
//! A slot needs a phi where different writes meet and the slot is still read: at the blocks of the
//! iterated dominance frontier of its writing blocks (Cytron et al. 1991) where it is live on entry.
//! This is *pruned* SSA form; the blocks are the same as those of LLVM's `mem2reg`.
//!
//! Steps, each for the 64 slots of a group at once, which are the bits of words:
//! 1. The live-in blocks, backwards from the upward-exposed ones, stopping at writing blocks (LLVM's
//!    `ComputeLiveInBlocks`). The block with the greatest number goes first, so that what is live in a
//!    block has come together when it is looked at.
//! 2. The frontier as in LLVM's `IDFCalculator`, after Sreedhar and Gao, "A Linear Time Algorithm for
//!    Placing φ-Nodes" (1995): the writing blocks and the phis found are *roots*, taken from a queue by
//!    dominator-tree level, deepest first. From a root its subtree is walked, except for what was
//!    walked from a deeper root. An edge out of the subtree to a block that is no deeper than the root
//!    leads to a block of the root's frontier, which becomes a root if the slot is live there.
//!
//! Only bits that are new at a block continue from it. So a group never takes more steps than its slots
//! would take one by one, and as many as a single slot if they behave the same.
//!
//! Deviations from `IDFCalculator`, none of which changes the result:
//! * The queue is a list for each level under a bitmap of levels, not a heap. Within a level the order
//!   is arbitrary: roots of one level have disjoint subtrees.
//! * The walk goes down to live blocks only. A live block that is neither a root nor the child of one
//!   has the same value on entry as at the end of its immediate dominator, which is then live too. So
//!   a path of live blocks leads from the closest root above to each block that matters, and the work
//!   is bounded by the live range (its blocks and their edges), not by the subtrees.
//! * The walk does not go down where no edge leads out of the subtree to the level of the root or
//!   above. Roots that come later are no deeper, so they need not go there either.
//! * So the entry is no root unless an edge leads back to it: then it is in its own frontier, where
//!   writes meet the initial value.
//!
//! Nothing is cleared between groups or functions: a block's words carry the number of the group that
//! they are about as a stamp, and count as zero in any other group.

use crate::graphs::cfg::ControlFlow;
use crate::graphs::dominators::DomTree;
use crate::graphs::levels::find_leads_to;
use crate::graphs::observe::{
    EdgeOutcome, NotEnqueued, PlacementObserver, PlacementStep, Skip, report,
};
use crate::graphs::queue::{Bitmap, LevelQueue};
use crate::graphs::search::NONE;
use crate::graphs::steps::step;

/// The state of a block during placement, in one cache line. Words have a bit for each slot.
#[derive(Copy, Clone, Debug, Default)]
#[repr(align(64))]
struct BlockState {
    /// The slots that are live on entry.
    live: u64,
    /// The slots that the block writes.
    written: u64,
    /// The slots that need a phi.
    phis: u64,
    /// The slots for which the block was walked from a root.
    walked: u64,
    /// First the slots that are live on entry, which the predecessors have not received yet; then
    /// the slots for which the block is a root in the queue.
    pending: u64,
    /// The group that the words and `first_child` are about.
    stamp: u32,
    level: u32,
    /// The smallest level that an edge leads to from the subtree, other than from a block to its own
    /// children in the tree.
    leads_to: u32,
    /// The children in the dominator tree where some slot of the group is live, as a list.
    first_child: u32,
    next_sibling: u32,
    /// The next root of the same level in the queue.
    next_root: u32,
}

/// Places phis in one graph, for one group of slots after the other, in memory that is reused.
#[derive(Clone, Debug, Default)]
pub struct PhiPlacer {
    blocks: Vec<BlockState>,
    stamp: u32,
    /// The blocks that write slots of the group.
    written: Vec<u32>,
    /// The blocks with pending live slots.
    live_work: Bitmap,
    roots: LevelQueue,
    /// Blocks to walk, each with the slots.
    walk_work: Vec<(u32, u64)>,
    /// The blocks that need phis.
    sites: Vec<u32>,
    /// `BlockState::leads_to` of each block.
    leads_to: Vec<u32>,
}

impl PhiPlacer {
    /// The number of slots that a group may have.
    pub const GROUP_SLOTS_MAX: usize = 64;

    /// Prepares for a graph.
    ///
    /// All its blocks must be reachable, its entry must be block 0, and the blocks must be numbered in
    /// preorder of its dominator tree ([`DomTree::renumber`] makes it so). The tree is that of this
    /// graph or of the one it was before it was renumbered.
    pub fn start(&mut self, cfg: &impl ControlFlow, tree: &DomTree) {
        let n = cfg.n_blocks();
        debug_assert!(
            cfg.entry() == 0 && n == tree.n_reachable(),
            "blocks are numbered in preorder"
        );
        if self.blocks.len() < n {
            self.blocks.resize(n, BlockState::default());
            self.live_work.resize(n);
        }
        let (idoms, levels) = (tree.idoms_by_number(), tree.levels_by_number());
        find_leads_to(cfg, idoms, levels, &mut self.leads_to);
        let mut max_level = 0;
        for ((state, &level), &leads_to) in self.blocks.iter_mut().zip(levels).zip(&self.leads_to) {
            state.level = level;
            state.leads_to = leads_to;
            max_level = max_level.max(level);
        }
        self.roots.resize(max_level as usize + 1);
    }

    /// Starts a group of slots.
    pub fn start_group(&mut self) {
        self.sites.clear();
        self.stamp = self.stamp.wrapping_add(1);
        if self.stamp == 0 {
            for state in &mut self.blocks {
                state.stamp = 0;
            }
            self.stamp = 1;
        }
    }

    /// Records that a block writes the slot with this number in the group.
    #[inline]
    pub fn add_write(&mut self, block: u32, slot: u32) {
        let state = self.state(block);
        let is_first = state.written == 0;
        state.written |= 1 << slot;
        if is_first {
            self.written.push(block);
        }
    }

    /// Records that a block reads the slot with this number in the group before it writes it.
    #[inline]
    pub fn add_read(&mut self, block: u32, slot: u32) {
        self.add_live(block, 1 << slot);
    }

    /// Places the phis of the group: where different writes meet and the slot is live. Returns the
    /// slots that are live on entry to the function, so that their initial value is used.
    pub fn place(&mut self, cfg: &impl ControlFlow, tree: &DomTree) -> u64 {
        self.place_observed(cfg, tree, &mut ())
    }

    /// Does the same as [`PhiPlacer::place`] while an observer sees the steps.
    pub fn place_observed(
        &mut self,
        cfg: &impl ControlFlow,
        tree: &DomTree,
        observer: &mut impl PlacementObserver,
    ) -> u64 {
        self.find_live_in(cfg, tree.idoms_by_number(), observer);
        self.find_frontiers(cfg, observer);
        self.state(0).live
    }

    /// Walks from the writing blocks and from all phis found.
    fn find_frontiers(&mut self, cfg: &impl ControlFlow, observer: &mut impl PlacementObserver) {
        while let Some(block) = self.written.pop() {
            let slots = self.blocks[block as usize].written;
            report(observer, slots, PlacementStep::Write { block });
            self.push_root(block, slots, observer);
        }
        while let Some(root) = self.roots.pop(|root| self.blocks[root as usize].next_root) {
            self.walk(cfg, root, observer);
        }
    }

    /// The blocks that need phis, in no particular order, each with the slots of the group.
    pub fn sites(&self) -> impl Iterator<Item = (u32, u64)> {
        self.sites.iter().map(|&block| (block, self.blocks[block as usize].phis))
    }

    /// A block's state, its words being those of the group.
    #[inline]
    fn state(&mut self, block: u32) -> &mut BlockState {
        let state = &mut self.blocks[block as usize];
        if state.stamp != self.stamp {
            state.stamp = self.stamp;
            (state.live, state.written, state.phis) = (0, 0, 0);
            (state.walked, state.pending) = (0, 0);
            state.first_child = NONE;
        }
        state
    }

    /// Marks slots as live on entry to a block, perhaps for the first time.
    #[inline]
    pub(crate) fn add_live(&mut self, block: u32, slots: u64) {
        let state = self.state(block);
        let new = slots & !state.live;
        if new != 0 {
            let is_queued = state.pending != 0;
            state.pending |= new;
            if !is_queued {
                self.live_work.insert(block as usize);
            }
        }
    }

    /// Finds the live-in blocks of each slot, and lists each block that has live slots with its
    /// immediate dominator.
    fn find_live_in(
        &mut self,
        cfg: &impl ControlFlow,
        idoms: &[u32],
        observer: &mut impl PlacementObserver,
    ) {
        while let Some(block) = self.live_work.pop_last() {
            let block = block as u32;
            let state = &mut self.blocks[block as usize];
            let new = std::mem::take(&mut state.pending);
            let is_first = state.live == 0;
            state.live |= new;
            report(observer, new, PlacementStep::Live { block });
            if is_first && block != 0 {
                let parent = self.state(idoms[block as usize]);
                let next_sibling = std::mem::replace(&mut parent.first_child, block);
                self.blocks[block as usize].next_sibling = next_sibling;
            }
            for &pred in cfg.preds(block) {
                step();
                let written = self.state(pred).written;
                self.add_live(pred, new & !written);
            }
        }
    }

    /// Finds the dominance frontier of a root, as far as it is not the frontier of deeper roots.
    fn walk(&mut self, cfg: &impl ControlFlow, root: u32, observer: &mut impl PlacementObserver) {
        let state = &mut self.blocks[root as usize];
        let root_level = state.level;
        let slots = std::mem::take(&mut state.pending);
        state.walked |= slots;
        report(observer, slots, PlacementStep::Dequeue { block: root });
        self.walk_work.push((root, slots));
        while let Some((block, slots)) = self.walk_work.pop() {
            report(observer, slots, PlacementStep::Visit { block });
            for &succ in cfg.succs(block) {
                step();
                let state = self.blocks[succ as usize];
                report_edge(observer, (block, succ), slots, &state, root_level, self.stamp);
                // A deeper successor is strictly dominated by the root.
                if state.level > root_level || state.stamp != self.stamp {
                    continue;
                }
                let new = slots & state.live & !state.phis;
                if new != 0 {
                    if state.phis == 0 {
                        self.sites.push(succ);
                    }
                    self.blocks[succ as usize].phis |= new;
                    self.push_root(succ, new & !state.written, observer);
                    let step =
                        PlacementStep::NotEnqueued { block: succ, reason: NotEnqueued::Again };
                    report(observer, new & state.written, step);
                }
            }
            let mut child = self.blocks[block as usize].first_child;
            while child != NONE {
                step();
                let state = &mut self.blocks[child as usize];
                let new = slots & state.live & !state.walked;
                report_child(observer, child, slots, state, root_level);
                if new != 0 && state.leads_to <= root_level {
                    state.walked |= new;
                    self.walk_work.push((child, new));
                }
                child = state.next_sibling;
            }
        }
    }

    /// Puts a block into the queue as a root for some slots.
    fn push_root(&mut self, block: u32, slots: u64, observer: &mut impl PlacementObserver) {
        let BlockState { level, leads_to, pending, .. } = self.blocks[block as usize];
        if slots == 0 || leads_to > level {
            let reason = NotEnqueued::NoFrontier;
            report(observer, slots, PlacementStep::NotEnqueued { block, reason });
            return;
        }
        report(observer, slots, PlacementStep::Enqueue { block });
        self.blocks[block as usize].pending |= slots;
        if pending == 0 {
            self.blocks[block as usize].next_root = self.roots.push(level, block);
        }
    }
}

/// Reports what an edge is to each of the slots for which it is looked at.
#[inline(always)]
fn report_edge<O: PlacementObserver>(
    observer: &mut O,
    (src, dst): (u32, u32),
    slots: u64,
    state: &BlockState,
    root_level: u32,
    stamp: u32,
) {
    if !O::IS_ON {
        return;
    }
    let mut edge =
        |slots, outcome| report(observer, slots, PlacementStep::Edge { src, dst, outcome });
    if state.level > root_level {
        return edge(slots, EdgeOutcome::Deeper);
    }
    let (live, phis) = if state.stamp == stamp { (state.live, state.phis) } else { (0, 0) };
    edge(slots & !live, EdgeOutcome::NotLive);
    edge(slots & live & phis, EdgeOutcome::HasPhi);
    edge(slots & live & !phis, EdgeOutcome::Phi);
}

/// Reports why the walk does not go down to a child for some of the slots.
#[inline(always)]
fn report_child<O: PlacementObserver>(
    observer: &mut O,
    block: u32,
    slots: u64,
    state: &BlockState,
    root_level: u32,
) {
    let mut skip = |slots, reason| report(observer, slots, PlacementStep::Skip { block, reason });
    let live = slots & state.live;
    if state.leads_to > root_level {
        skip(live, Skip::NoFrontier);
    } else {
        skip(live & state.walked, Skip::Walked);
    }
}

/// The numbers of the bits that are set, in ascending order.
pub(crate) fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros() as usize;
        // The lowest bit goes; of zero nothing is left.
        word &= word.wrapping_sub(1);
        (bit < 64).then_some(bit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs::cfg::Cfg;
    use crate::graphs::steps::within;
    use crate::tools::testing::{
        Bits, Rng, all_numbered_graphs, blocks, convergence, families, live_in,
        random_numbered_graph, size,
    };

    /// Checks the phis of a group of slots against the definition: a block needs one if paths from
    /// two writes converge there, the initial value being written at the entry, and the slot is live.
    fn check(placer: &mut PhiPlacer, cfg: &Cfg, tree: &DomTree, slots: &[(Bits, Bits)]) {
        placer.start_group();
        for (slot, &(writes, reads)) in (0..).zip(slots) {
            blocks(writes).for_each(|block| placer.add_write(block, slot));
            blocks(reads).for_each(|block| placer.add_read(block, slot));
        }
        let live_at_entry = placer.place(cfg, tree);
        let sites: Vec<(u32, u64)> = placer.sites().collect();
        for (slot, &(writes, reads)) in slots.iter().enumerate() {
            let mut found = 0;
            for (block, _) in sites.iter().filter(|(_, phis)| phis >> slot & 1 == 1) {
                assert_eq!(found >> block & 1, 0, "no site occurs twice");
                found |= 1 << block;
            }
            let live = live_in(cfg, writes, reads);
            let expected = convergence(cfg, writes | 1) & live;
            assert_eq!(found, expected, "writes {writes:b} reads {reads:b} in {cfg:?}");
            assert_eq!(live_at_entry >> slot & 1, live & 1);
        }
    }

    #[test]
    fn phis_match_the_definition_for_all_slots_of_all_small_graphs() {
        let mut placer = PhiPlacer::default();
        for n in 1..=4 {
            for (cfg, tree) in all_numbered_graphs(n) {
                placer.start(&cfg, &tree);
                let n = cfg.n_blocks();
                let sets: Vec<(Bits, Bits)> =
                    (0..1u64 << (2 * n)).map(|sets| (sets >> n, sets & ((1 << n) - 1))).collect();
                for group in sets.chunks(PhiPlacer::GROUP_SLOTS_MAX) {
                    check(&mut placer, &cfg, &tree, group);
                }
            }
        }
    }

    #[test]
    fn phis_match_the_definition_on_all_graphs_of_five_blocks() {
        let mut placer = PhiPlacer::default();
        let mut rng = Rng(5);
        for (cfg, tree) in all_numbered_graphs(5).filter(|(cfg, _)| cfg.n_blocks() == 5) {
            placer.start(&cfg, &tree);
            let sets = rng.next();
            check(&mut placer, &cfg, &tree, &[(sets & 31, sets >> 8 & 31)]);
        }
    }

    #[test]
    fn phis_match_the_definition_on_random_graphs() {
        let mut placer = PhiPlacer::default();
        let mut rng = Rng(6);
        for _ in 0..50_000 {
            let n = 1 + rng.below(12);
            let (cfg, tree) = random_numbered_graph(&mut rng, n);
            placer.start(&cfg, &tree);
            let all = (1 << n) - 1;
            let slots: Vec<(Bits, Bits)> = (0..rng.below(5))
                .flat_map(|_| {
                    let writes = rng.next() & rng.next() & all;
                    let reads = rng.next() & rng.next() & all;
                    // With reads everywhere liveness prunes nothing: all of the frontier has phis.
                    [(writes, reads), (writes, all)]
                })
                .collect();
            check(&mut placer, &cfg, &tree, &slots);
        }
    }

    #[test]
    fn stamps_wrap_around() {
        let mut rng = Rng(7);
        let mut placer = PhiPlacer { stamp: u32::MAX - 40, ..PhiPlacer::default() };
        for _ in 0..100 {
            let (cfg, tree) = random_numbered_graph(&mut rng, 9);
            placer.start(&cfg, &tree);
            check(&mut placer, &cfg, &tree, &[(rng.next() & 511, rng.next() & 511)]);
        }
        assert!(placer.stamp < 100);
    }

    #[test]
    fn work_follows_the_live_range_and_not_the_function() {
        for (name, cfg) in families(200_000) {
            let tree = DomTree::semi_nca(&cfg);
            let (cfg, tree) = tree.renumber(&cfg);
            let n = cfg.n_blocks() as u32;
            let mut placer = PhiPlacer::default();
            // Written in one block and in one right below, read there: as many slots as blocks.
            within(5 * size(&cfg), name, || {
                placer.start(&cfg, &tree);
                for block in (1..n).filter(|&b| cfg.preds(b).len() == 1) {
                    let above = tree.idoms_by_number()[block as usize];
                    placer.start_group();
                    placer.add_write(above, 0);
                    placer.add_write(block, 0);
                    placer.add_read(block, 0);
                    placer.place(&cfg, &tree);
                    assert_eq!(placer.sites().next(), None, "{name}");
                }
            });
        }
    }
}
