//! Phi sites: the iterated dominance frontier of the blocks that write a slot, for any graph with
//! arbitrary block numbers.
//!
//! A slot needs a phi where two of its writes meet: at a block that paths from both reach without having
//! met before. The phi is a write itself and meets others later. Cytron et al. (1991) show
//! that the blocks where phis are needed are the *iterated dominance frontier* of the writing blocks:
//! the frontier of the writing blocks, of those and the blocks found so far, and so on. The initial
//! value of a slot counts as written before the entry, where no phi can be; an entry that a back edge
//! leads to gets a phi if a write comes back to it.
//!
//! [`Pruning`] determines the wanted sites, [`Placement`] the way to find them. All ways find the same
//! sites:
//!
//! | placement | method | steps for a slot | use |
//! |---|---|---|---|
//! | [`Frontiers`](Placement::Frontiers) | worklist over the sets of [`crate::graphs::frontier`] (Cytron et al. 1991) | entries of the sets that it meets | comparison |
//! | [`PriorityQueue`](Placement::PriorityQueue) | walks down the tree, deepest root first (LLVM's `IDFCalculator`) | blocks and edges below the roots, a logarithm for each root | one or two slots |
//! | [`LevelBuckets`](Placement::LevelBuckets) | the same with a list for each level in place of the heap | the same without the logarithm | comparison |
//! | [`Words`](Placement::Words) | the same for 64 slots at a time, [`crate::graphs::place`] | never more than those of its slots one by one | three slots or more |
//! | [`Auto`](Placement::Auto) | by the number of slots | | always |
//!
//! The threshold of [`Auto`](Placement::Auto) was measured on structured, nested, else-if and irreducible
//! graphs of 10 to 10,000 blocks, slots being touched in one place or all over the graph. Neither the
//! graph nor the live ranges change the number of slots from which words are faster: for one slot
//! the heap takes 0.76 of their time, for two 0.89, for three as long, for four 1.3 times, for eight 1.8
//! times and for 64 4.8 times as long (geometric means). Few roots wait at a time, so lists by level
//! gain something on the heap only where slots need many phis, and then a tenth.
//!
//! With [`Pruning::Full`] the last three walk only where the slot is live, so a slot costs as much as
//! its live range, and nothing in proportion to the function. Without it they walk where the tree goes.
//!
//! Unreachable blocks get no phis, and what they write or read does not count.

mod worklist;

use self::worklist::Worklist;
use crate::graphs::cfg::{Cfg, ControlFlow};
use crate::graphs::dominators::DomTree;
use crate::graphs::frontier::{FRONTIER_ENTRIES_MAX, Frontiers, FrontiersTooLarge};
use crate::graphs::ids::Slot;
use crate::graphs::levels::{LevelWalk, NumberedGraph, find_leads_to};
use crate::graphs::liveness::LiveBlocks;
use crate::graphs::observe::{PlacementObserver, Renumbered};
use crate::graphs::place::{PhiPlacer, bits};
use crate::graphs::queue::{Buckets, Heap, RootQueue};
use crate::graphs::slot_blocks::SlotBlocks;

/// The way in which phi sites are found.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Placement {
    /// The worklist of Cytron et al. over the sets of dominance frontiers. The sets may be too large.
    Frontiers,
    /// LLVM's scheme: roots in a heap by level and depth-first number, greatest first.
    PriorityQueue,
    /// LLVM's scheme with a list of roots for each level.
    LevelBuckets,
    /// Level buckets, for 64 slots at a time.
    Words,
    /// The priority queue for up to two slots, words for more: what is fastest by measurement.
    #[default]
    Auto,
}

impl Placement {
    /// All placements.
    pub const ALL: [Placement; 5] = [
        Placement::Frontiers,
        Placement::PriorityQueue,
        Placement::LevelBuckets,
        Placement::Words,
        Placement::Auto,
    ];
}

/// The number of slots from which words are faster than one slot at a time.
const WORDS_SLOTS_MIN: usize = 3;

/// The choice of phi sites.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Pruning {
    /// All: the *minimal* form of Cytron et al. (1991).
    None,
    /// Those of slots that some block reads before it writes them: the *semi-pruned* form of Briggs,
    /// Cooper, Harvey and Simpson, "Practical Improvements to the Construction and Destruction of
    /// Static Single Assignment Form" (1998).
    Semi,
    /// Those where the slot is live: the *pruned* form of Choi, Cytron and Ferrante, "Automatic
    /// Construction of Sparse Data Flow Evaluation Graphs" (1991).
    #[default]
    Full,
}

/// Finds the phi sites of all slots of a graph, in memory that is reused from graph to graph.
#[derive(Clone, Debug, Default)]
pub struct SitePlacer {
    /// The graph in preorder of its dominator tree, if its own numbers differ.
    numbered: Cfg,
    leads_to: Vec<u32>,
    frontiers: Frontiers,
    live: LiveBlocks,
    worklist: Worklist,
    walk: LevelWalk,
    heap: Heap,
    buckets: Buckets,
    words: PhiPlacer,
    /// The slots to place, and the blocks of the slot at hand by number in the tree.
    slots: Vec<Slot>,
    writes: Vec<u32>,
    reads: Vec<u32>,
    sites: Vec<(u32, Slot)>,
    live_at_entry: Vec<Slot>,
}

impl SitePlacer {
    /// Finds the sites of all slots in a graph with this dominator tree.
    ///
    /// # Errors
    /// Fails only with [`Placement::Frontiers`], if the sets have more than [`FRONTIER_ENTRIES_MAX`] entries.
    pub fn place(
        &mut self,
        cfg: &impl ControlFlow,
        tree: &DomTree,
        slots: &SlotBlocks,
        pruning: Pruning,
        placement: Placement,
    ) -> Result<(), FrontiersTooLarge> {
        self.place_observed(cfg, tree, slots, pruning, placement, &mut ())
    }

    /// Does the same as [`SitePlacer::place`] while an observer sees the steps.
    ///
    /// # Errors
    /// See [`SitePlacer::place`].
    pub fn place_observed(
        &mut self,
        cfg: &impl ControlFlow,
        tree: &DomTree,
        slots: &SlotBlocks,
        pruning: Pruning,
        placement: Placement,
        observer: &mut impl PlacementObserver,
    ) -> Result<(), FrontiersTooLarge> {
        self.sites.clear();
        self.live_at_entry.clear();
        self.slots.clear();
        let is_read =
            |slot: Slot| slots.reads(slot).iter().any(|&block| tree.number(block).is_some());
        let is_wanted = |&slot: &Slot| pruning == Pruning::None || is_read(slot);
        self.slots.extend(slots.slots().filter(is_wanted));
        let placement = match placement {
            Placement::Auto if self.slots.len() < WORDS_SLOTS_MIN => Placement::PriorityQueue,
            Placement::Auto => Placement::Words,
            placement => placement,
        };
        if placement == Placement::Frontiers {
            return self.place_by_frontiers(cfg, tree, slots, pruning, observer);
        }
        if tree.is_numbering() {
            self.place_numbered(cfg, tree, slots, pruning, placement, observer);
        } else {
            let mut numbered = std::mem::take(&mut self.numbered);
            tree.renumber_into(cfg, &mut numbered);
            let mut observer = Renumbered { observer, blocks: tree.preorder() };
            self.place_numbered(&numbered, tree, slots, pruning, placement, &mut observer);
            self.numbered = numbered;
        }
        Ok(())
    }

    /// The sites found, each a block and a slot. Their order is arbitrary, but those of one block are in
    /// the order of slots.
    pub fn sites(&self) -> &[(u32, Slot)] {
        &self.sites
    }

    /// Returns the slots that are live on entry to the function, whose initial value is used, in ascending order.
    /// Only [`Pruning::Full`] finds them; otherwise the list is empty.
    pub fn live_at_entry(&self) -> &[Slot] {
        &self.live_at_entry
    }

    /// Places slot by slot in the graph as it is.
    fn place_by_frontiers(
        &mut self,
        cfg: &impl ControlFlow,
        tree: &DomTree,
        slots: &SlotBlocks,
        pruning: Pruning,
        observer: &mut impl PlacementObserver,
    ) -> Result<(), FrontiersTooLarge> {
        self.frontiers.compute(cfg, tree, FRONTIER_ENTRIES_MAX)?;
        let is_full = pruning == Pruning::Full;
        for &slot in &self.slots {
            let writes = slots.writes(slot);
            observer.place(&[slot]);
            if is_full {
                self.live.compute_observed(cfg, writes, slots.reads(slot), observer);
                if self.live.contains(cfg.entry()) {
                    self.live_at_entry.push(slot);
                }
            }
            let SitePlacer { live, sites, .. } = self;
            self.worklist.place(
                &self.frontiers,
                cfg.n_blocks(),
                writes,
                |block| !is_full || live.contains(block),
                |block| sites.push((block, slot)),
                observer,
            );
        }
        Ok(())
    }

    /// Places in a graph that has the numbers of the tree's preorder. The slots still have those that
    /// `tree` translates.
    fn place_numbered(
        &mut self,
        cfg: &impl ControlFlow,
        tree: &DomTree,
        slots: &SlotBlocks,
        pruning: Pruning,
        placement: Placement,
        observer: &mut impl PlacementObserver,
    ) {
        match placement {
            Placement::PriorityQueue => {
                let mut heap = std::mem::take(&mut self.heap);
                self.place_by_levels(cfg, tree, slots, pruning, &mut heap, observer);
                self.heap = heap;
            }
            Placement::LevelBuckets => {
                let mut buckets = std::mem::take(&mut self.buckets);
                self.place_by_levels(cfg, tree, slots, pruning, &mut buckets, observer);
                self.buckets = buckets;
            }
            _ => self.place_words(cfg, tree, slots, pruning, observer),
        }
    }

    fn place_by_levels(
        &mut self,
        cfg: &impl ControlFlow,
        tree: &DomTree,
        slots: &SlotBlocks,
        pruning: Pruning,
        queue: &mut impl RootQueue,
        observer: &mut impl PlacementObserver,
    ) {
        let (idoms, levels) = (tree.idoms_by_number(), tree.levels_by_number());
        find_leads_to(cfg, idoms, levels, &mut self.leads_to);
        queue.start(levels);
        let ends = tree.ends_by_number();
        let graph = NumberedGraph { cfg, idoms, levels, ends, leads_to: &self.leads_to };
        for &slot in &self.slots {
            observer.place(&[slot]);
            translate(tree, slots.writes(slot), &mut self.writes);
            let mut live = None;
            if pruning == Pruning::Full {
                translate(tree, slots.reads(slot), &mut self.reads);
                self.live.compute_observed(cfg, &self.writes, &self.reads, observer);
                if self.live.contains(0) {
                    self.live_at_entry.push(slot);
                }
                live = Some(&self.live);
            }
            let sites = &mut self.sites;
            let found = |number| sites.push((tree.preorder()[number as usize], slot));
            self.walk.place(&graph, queue, &self.writes, live, found, observer);
        }
    }

    fn place_words(
        &mut self,
        cfg: &impl ControlFlow,
        tree: &DomTree,
        slots: &SlotBlocks,
        pruning: Pruning,
        observer: &mut impl PlacementObserver,
    ) {
        self.words.start(cfg, tree);
        for group in self.slots.chunks(PhiPlacer::GROUP_SLOTS_MAX) {
            self.words.start_group();
            observer.place(group);
            for (bit, &slot) in (0..).zip(group) {
                for number in slots.writes(slot).iter().filter_map(|&block| tree.number(block)) {
                    self.words.add_write(number, bit);
                }
                for number in slots.reads(slot).iter().filter_map(|&block| tree.number(block)) {
                    self.words.add_read(number, bit);
                }
            }
            if pruning == Pruning::Full {
                let live = self.words.place_observed(cfg, tree, observer);
                self.live_at_entry.extend(bits(live).map(|bit| group[bit]));
            } else {
                let n = cfg.n_blocks() as u32;
                let all = u64::MAX >> (PhiPlacer::GROUP_SLOTS_MAX - group.len());
                (0..n).for_each(|number| self.words.add_live(number, all));
                self.words.place_observed(cfg, tree, observer);
            }
            for (number, word) in self.words.sites() {
                let block = tree.preorder()[number as usize];
                self.sites.extend(bits(word).map(|bit| (block, group[bit])));
            }
        }
    }
}

/// The numbers in a tree of those blocks that have one.
fn translate(tree: &DomTree, blocks: &[u32], numbers: &mut Vec<u32>) {
    numbers.clear();
    numbers.extend(blocks.iter().filter_map(|&block| tree.number(block)));
}

#[cfg(test)]
mod tests;
