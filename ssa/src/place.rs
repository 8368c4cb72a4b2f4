//! Phi placement for one slot at a time: live-in blocks, and the iterated dominance frontier of the
//! writing blocks pruned by them.
//!
//! A slot needs a phi where different writes meet and the slot is still read: at the blocks of the
//! iterated dominance frontier of its writing blocks (Cytron et al. 1991) where it is live on entry.
//! This is *pruned* SSA form; the blocks are the same as those of LLVM's `mem2reg`.
//!
//! Steps:
//! 1. The live-in blocks, backwards from the upward-exposed ones, stopping at writing blocks (LLVM's
//!    `ComputeLiveInBlocks`).
//! 2. The frontier as in LLVM's `IDFCalculator`, after Sreedhar and Gao, "A Linear Time Algorithm for
//!    Placing φ-Nodes" (1995): the writing blocks and the phis found are *roots*, taken from a queue by
//!    dominator-tree level, deepest first. From a root its subtree is walked, except for what was
//!    walked from a deeper root. An edge out of the subtree to a block that is no deeper than the root
//!    leads to a block of the root's frontier, which becomes a root if it is live.
//!
//! Deviations from `IDFCalculator`, none of which changes the result:
//! * The queue is a list for each level under a bitmap of levels, not a heap. Within a level the order
//!   is arbitrary: roots of one level have disjoint subtrees.
//! * The walk goes down to live blocks only. A live block that is neither a root nor the child of one
//!   has the same value on entry as at the end of its immediate dominator, which is then live too. So
//!   a path of live blocks leads from the closest root above to each block that matters, and the work
//!   is bounded by the live range (its blocks and their edges), not by the subtrees.
//! * The entry is no root: it strictly dominates all other blocks, so that its frontier is empty.
//!
//! Sets are stamps: a block's mark holds flags and the number of the slot that they are about, so
//! nothing is cleared between slots, or between functions.

use crate::cfg::{Cfg, ControlFlow};
use crate::dominators::DomTree;

const NONE: u32 = u32::MAX;

/// The slot is written in the block.
const WRITTEN: u32 = 1;
/// The slot is live on entry to the block.
const LIVE: u32 = 2;
/// The block needs a phi.
const PHI: u32 = 4;
/// The block was walked from a root.
const WALKED: u32 = 8;
/// The block is the immediate dominator of a live block, and so its list of children is valid.
const PARENT: u32 = 16;
/// The bits above the flags stamp them.
const STAMP: u32 = 32;

/// What the placement knows about a block.
#[derive(Copy, Clone, Debug, Default)]
struct BlockState {
    /// A stamp and flags; the flags are void if the stamp is not that of the slot at hand.
    mark: u32,
    idom: u32,
    level: u32,
    /// The live children in the dominator tree, as a list.
    first_child: u32,
    next_sibling: u32,
    /// The next root of the same level in the queue.
    next_root: u32,
}

/// Places phis in one graph, slot by slot, in memory that is reused.
#[derive(Clone, Debug, Default)]
pub struct PhiPlacer {
    blocks: Vec<BlockState>,
    stamp: u32,
    roots: LevelQueue,
    work: Vec<u32>,
}

impl PhiPlacer {
    /// Gets ready for a graph.
    ///
    /// All its blocks must be reachable, its entry must be block 0 and have no predecessors, and the
    /// blocks must be numbered in preorder of its dominator tree ([`DomTree::renumber`] makes it so).
    pub fn start(&mut self, cfg: &Cfg, tree: &DomTree) {
        let n = cfg.n_blocks();
        debug_assert!(tree.is_numbering(), "blocks are numbered in preorder of the dominator tree");
        debug_assert!(cfg.preds(0).is_empty(), "the entry has no predecessors");
        if self.blocks.len() < n {
            self.blocks.resize(n, BlockState::default());
        }
        let (idoms, levels) = (tree.idoms_by_number(), tree.levels_by_number());
        let mut max_level = 0;
        for ((state, &idom), &level) in self.blocks.iter_mut().zip(idoms).zip(levels) {
            state.idom = idom;
            state.level = level;
            max_level = max_level.max(level);
        }
        self.roots.set_levels(max_level as usize + 1);
    }

    /// Appends to `sites` the blocks that need a phi of a slot, in no particular order. Returns
    /// whether the slot is live on entry to the function, so that its initial value is used.
    ///
    /// `writes` are the blocks that write the slot, `reads` those that read it before they write it.
    pub fn place(
        &mut self,
        cfg: &Cfg,
        writes: impl IntoIterator<Item = u32>,
        reads: impl IntoIterator<Item = u32>,
        sites: &mut Vec<u32>,
    ) -> bool {
        self.next_stamp();
        for block in writes {
            // A second mention of the same block must not put it into the queue twice.
            if !self.has(block, WRITTEN) {
                self.set(block, WRITTEN);
                if block != 0 {
                    self.push_root(block);
                }
            }
        }
        self.find_live_in(cfg, reads);
        while let Some(root) = self.roots.pop(&self.blocks) {
            self.walk(cfg, root, sites);
        }
        self.has(0, LIVE)
    }

    /// Marks the blocks where the slot is live on entry, and lists each with its immediate dominator.
    fn find_live_in(&mut self, cfg: &Cfg, reads: impl IntoIterator<Item = u32>) {
        self.work.extend(reads);
        while let Some(block) = self.work.pop() {
            if self.has(block, LIVE) {
                continue;
            }
            self.set(block, LIVE);
            let idom = self.blocks[block as usize].idom;
            let parent = self.blocks[idom as usize];
            let siblings = if self.has(idom, PARENT) { parent.first_child } else { NONE };
            self.set(idom, PARENT);
            self.blocks[idom as usize].first_child = block;
            self.blocks[block as usize].next_sibling = siblings;
            for &pred in cfg.preds(block) {
                if !self.has(pred, LIVE | WRITTEN) {
                    self.work.push(pred);
                }
            }
        }
    }

    /// Finds the dominance frontier of a root, as far as it is not the frontier of deeper roots.
    fn walk(&mut self, cfg: &Cfg, root: u32, sites: &mut Vec<u32>) {
        let root_level = self.blocks[root as usize].level;
        self.set(root, WALKED);
        self.work.push(root);
        while let Some(block) = self.work.pop() {
            for &succ in cfg.succs(block) {
                let BlockState { level, .. } = self.blocks[succ as usize];
                let flags = self.flags(succ);
                // A deeper successor is strictly dominated by the root.
                if level > root_level || flags & (LIVE | PHI) != LIVE {
                    continue;
                }
                self.set(succ, PHI);
                sites.push(succ);
                if flags & WRITTEN == 0 {
                    self.push_root(succ);
                }
            }
            if !self.has(block, PARENT) {
                continue;
            }
            let mut child = self.blocks[block as usize].first_child;
            while child != NONE {
                if !self.has(child, WALKED) {
                    self.set(child, WALKED);
                    self.work.push(child);
                }
                child = self.blocks[child as usize].next_sibling;
            }
        }
    }

    fn push_root(&mut self, block: u32) {
        let BlockState { level, .. } = self.blocks[block as usize];
        self.blocks[block as usize].next_root = self.roots.push(level, block);
    }

    /// Makes all flags void.
    fn next_stamp(&mut self) {
        self.stamp = self.stamp.wrapping_add(STAMP);
        if self.stamp == 0 {
            for state in &mut self.blocks {
                state.mark = 0;
            }
            self.stamp = STAMP;
        }
    }

    #[inline]
    fn flags(&self, block: u32) -> u32 {
        let flags = self.blocks[block as usize].mark ^ self.stamp;
        if flags < STAMP { flags } else { 0 }
    }

    #[inline]
    fn has(&self, block: u32, any_of: u32) -> bool {
        self.flags(block) & any_of != 0
    }

    #[inline]
    fn set(&mut self, block: u32, flag: u32) {
        self.blocks[block as usize].mark = self.stamp | self.flags(block) | flag;
    }
}

/// Roots by level, deepest first: a list for each level, and which levels have one as a bitmap with
/// two layers of summary above, so that a jump over empty levels costs three steps.
#[derive(Clone, Debug, Default)]
struct LevelQueue {
    /// The last root pushed, by level.
    heads: Vec<u32>,
    /// Bit `i` of a layer says whether word `i` of the layer below is not zero; of the lowest,
    /// whether level `i` has roots.
    layers: [Vec<u64>; 3],
}

impl LevelQueue {
    /// Makes room for so many levels. The queue must be empty.
    fn set_levels(&mut self, n: usize) {
        if self.heads.len() < n {
            self.heads.resize(n, NONE);
            for (layer, words) in self.layers.iter_mut().enumerate() {
                words.resize((n >> (6 * (layer + 1))) + 1, 0);
            }
        }
    }

    /// Puts a root at the head of its level's list; returns the next one in the list.
    fn push(&mut self, level: u32, root: u32) -> u32 {
        let next = std::mem::replace(&mut self.heads[level as usize], root);
        if next == NONE {
            let mut bit = level as usize;
            for words in &mut self.layers {
                let word = &mut words[bit >> 6];
                let was_empty = *word == 0;
                *word |= 1 << (bit & 63);
                if !was_empty {
                    break;
                }
                bit >>= 6;
            }
        }
        next
    }

    /// Takes a root of the deepest level that has one.
    fn pop(&mut self, blocks: &[BlockState]) -> Option<u32> {
        let [levels, words, top] = &self.layers;
        // The topmost layer is one word up to 262,144 levels.
        let word = top.iter().rposition(|&word| word != 0)?;
        let word = word << 6 | top[word].ilog2() as usize;
        let word = word << 6 | words[word].ilog2() as usize;
        let level = word << 6 | levels[word].ilog2() as usize;

        let root = self.heads[level];
        let next = blocks[root as usize].next_root;
        self.heads[level] = next;
        if next == NONE {
            let mut bit = level;
            for words in &mut self.layers {
                let word = &mut words[bit >> 6];
                *word &= !(1 << (bit & 63));
                if *word != 0 {
                    break;
                }
                bit >>= 6;
            }
        }
        Some(root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{
        Bits, Rng, all_numbered_graphs, convergence, families, live_in, random_numbered_graph,
    };

    fn blocks(set: Bits) -> impl Iterator<Item = u32> {
        (0..64).filter(move |block| set >> block & 1 == 1)
    }

    /// Checks the phis of a slot against the definition: a block needs one if paths from two writes
    /// converge there, the initial value being written at the entry, and the slot is live.
    fn check(placer: &mut PhiPlacer, cfg: &Cfg, writes: Bits, reads: Bits) {
        let mut sites = vec![];
        let is_live_at_entry = placer.place(cfg, blocks(writes), blocks(reads), &mut sites);
        let found = sites.iter().fold(0, |set, block| set | 1 << block);
        assert_eq!(sites.len(), u64::count_ones(found) as usize, "no site occurs twice");
        let live = live_in(cfg, writes, reads);
        let expected = convergence(cfg, writes | 1) & live;
        assert_eq!(found, expected, "writes {writes:b} reads {reads:b} in {cfg:?}");
        assert_eq!(is_live_at_entry, live & 1 == 1);
    }

    /// The iterated dominance frontier is the set of convergences: with reads everywhere, liveness
    /// prunes nothing.
    fn check_minimal(placer: &mut PhiPlacer, cfg: &Cfg, writes: Bits) {
        check(placer, cfg, writes, (1 << cfg.n_blocks()) - 1);
    }

    #[test]
    fn phis_match_the_definition_for_all_slots_of_all_small_graphs() {
        let mut placer = PhiPlacer::default();
        for n in 1..=4 {
            for (cfg, tree) in all_numbered_graphs(n) {
                placer.start(&cfg, &tree);
                let n = cfg.n_blocks();
                for sets in 0..1u64 << (2 * n) {
                    check(&mut placer, &cfg, sets >> n, sets & ((1 << n) - 1));
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
            check(&mut placer, &cfg, sets & 31, sets >> 8 & 31);
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
            let writes = rng.next() & rng.next() & all;
            check(&mut placer, &cfg, writes, rng.next() & rng.next() & all);
            check_minimal(&mut placer, &cfg, writes);
        }
    }

    #[test]
    fn stamps_wrap_around() {
        let mut rng = Rng(7);
        let mut placer = PhiPlacer { stamp: 0u32.wrapping_sub(40 * STAMP), ..PhiPlacer::default() };
        for _ in 0..100 {
            let (cfg, tree) = random_numbered_graph(&mut rng, 9);
            placer.start(&cfg, &tree);
            check(&mut placer, &cfg, rng.next() & 511, rng.next() & 511);
        }
        assert!(placer.stamp < 100 * STAMP);
    }

    #[test]
    fn roots_come_deepest_first() {
        let mut rng = Rng(8);
        let mut queue = LevelQueue::default();
        let mut blocks: Vec<BlockState> = vec![];
        for n_levels in [1, 64, 65, 5_000, 600_000] {
            queue.set_levels(n_levels as usize);
            blocks.resize(1_000, BlockState::default());
            let mut levels = vec![];
            for root in 0..1_000 {
                let level = rng.below(n_levels);
                blocks[root as usize].level = level;
                blocks[root as usize].next_root = queue.push(level, root);
                levels.push(level);
                if rng.one_in(3) {
                    let popped = queue.pop(&blocks).map(|root| blocks[root as usize].level);
                    levels.sort_unstable();
                    assert_eq!(popped, levels.pop());
                }
            }
            levels.sort_unstable();
            while let Some(root) = queue.pop(&blocks) {
                assert_eq!(Some(blocks[root as usize].level), levels.pop());
            }
            assert!(levels.is_empty());
        }
    }

    #[test]
    fn work_follows_the_live_range_and_not_the_function() {
        for (name, cfg) in families(200_000) {
            let tree = DomTree::semi_nca(&cfg);
            let (cfg, tree) = tree.renumber(&cfg);
            let n = cfg.n_blocks() as u32;
            let mut placer = PhiPlacer::default();
            placer.start(&cfg, &tree);
            let start = std::time::Instant::now();
            let mut sites = vec![];
            // Written in one block and in one right below, read there: as many slots as blocks.
            for block in (1..n).filter(|&b| cfg.preds(b).len() == 1) {
                let above = tree.idoms_by_number()[block as usize];
                placer.place(&cfg, [above, block], [block], &mut sites);
            }
            assert!(sites.is_empty(), "{name}");
            assert!(start.elapsed().as_secs() < 5, "{name} took {:?}", start.elapsed());
        }
    }
}
