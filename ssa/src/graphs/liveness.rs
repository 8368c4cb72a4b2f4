//! Liveness: where the value that a slot has on entry to a block may still be read.
//!
//! A slot is *live* on entry to a block if a path leads from there to a read of it and meets no write
//! before. There are two ways to compute it, which agree:
//!
//! * [`LiveBlocks`], one slot at a time: backwards from the blocks where the slot is upward exposed,
//!   stopping at blocks that write it. This is `ComputeLiveInBlocks` of LLVM's
//!   `PromoteMemoryToRegister`. It takes as many steps as the live range has blocks and edges into
//!   them, and nothing for the rest of the function. Choose it if most slots live briefly.
//! * [`Liveness`], all slots at once as bit vectors: the dataflow of every textbook (Aho, Sethi and
//!   Ullman 1986, section 10.6). It needs a bit for each slot in each block. Choose it to look up any
//!   slot in any block, or if most slots live long.
//!
//! [`crate::graphs::place`] has a third way, 64 slots at a time over their live ranges, which the placement of
//! phis builds on.
//!
//! Liveness looks forwards from a block and does not ask whether the block can be reached, so
//! unreachable blocks may have live slots too. They change nothing about the others.

use std::collections::VecDeque;
use std::fmt;

use crate::graphs::cfg::ControlFlow;
use crate::graphs::ids::Slot;
use crate::graphs::observe::{PlacementObserver, PlacementStep, report};
use crate::graphs::search::Search;
use crate::graphs::slot_blocks::SlotBlocks;
use crate::graphs::stamps::StampSet;
use crate::graphs::steps::step;

/// The maximum number of words of 64 slots in a [`Liveness`]: 256 MiB of them in each of its two tables.
pub const LIVENESS_WORDS_MAX: usize = 1 << 25;

/// The blocks where one slot is live on entry, in memory that is reused from slot to slot.
#[derive(Clone, Debug, Default)]
pub struct LiveBlocks {
    live: StampSet,
    written: StampSet,
    blocks: Vec<u32>,
}

impl LiveBlocks {
    /// Makes these the live-in blocks of a slot that some blocks write, and some read before they
    /// write it.
    pub fn compute(&mut self, cfg: &impl ControlFlow, writes: &[u32], reads: &[u32]) {
        self.compute_observed(cfg, writes, reads, &mut ());
    }

    /// Does the same as [`LiveBlocks::compute`] while an observer of the placement of phis sees the blocks.
    pub(crate) fn compute_observed(
        &mut self,
        cfg: &impl ControlFlow,
        writes: &[u32],
        reads: &[u32],
        observer: &mut impl PlacementObserver,
    ) {
        let n = cfg.n_blocks();
        self.live.start(n);
        self.written.start(n);
        self.blocks.clear();
        for &block in writes {
            self.written.insert(block);
        }
        self.blocks.extend(reads.iter().filter(|&&block| self.live.insert(block)));
        // The list of live blocks is also the list of blocks to go back from.
        let mut next = 0;
        while let Some(&block) = self.blocks.get(next) {
            next += 1;
            report(observer, 1, PlacementStep::Live { block });
            for &pred in cfg.preds(block) {
                step();
                if !self.written.contains(pred) && self.live.insert(pred) {
                    self.blocks.push(pred);
                }
            }
        }
    }

    /// The blocks, each once, in no particular order.
    pub fn blocks(&self) -> &[u32] {
        &self.blocks
    }

    /// Whether the slot is live on entry to a block.
    #[inline]
    pub fn contains(&self, block: u32) -> bool {
        self.live.contains(block)
    }
}

/// The slots that are live on entry to each block.
#[derive(Clone, Debug, Default)]
pub struct Liveness {
    words_per_block: usize,
    /// A row of bits for each block.
    live: Vec<u64>,
    /// Bit sets of the slots that each block writes.
    written: Vec<u64>,
}

/// A dataflow that would need more memory than the limit.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct LivenessTooLarge {
    /// The words that it would need.
    pub n_words: usize,
}

impl fmt::Display for LivenessTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n_words = self.n_words;
        write!(
            f,
            "liveness takes {n_words} words, more than {LIVENESS_WORDS_MAX} (LIVENESS_WORDS_MAX)"
        )
    }
}

impl std::error::Error for LivenessTooLarge {}

impl Liveness {
    /// The liveness of all slots.
    ///
    /// The blocks are visited in postorder of the graph, and again when a successor has changed. A
    /// block changes at most once for each slot, and in most functions twice.
    ///
    /// # Errors
    /// Fails if the bits for all blocks and slots take more than [`LIVENESS_WORDS_MAX`] words.
    pub fn new(cfg: &impl ControlFlow, slots: &SlotBlocks) -> Result<Liveness, LivenessTooLarge> {
        let n = cfg.n_blocks();
        let words_per_block = slots.n_slots().div_ceil(64);
        let n_words = n.saturating_mul(words_per_block);
        if n_words > LIVENESS_WORDS_MAX {
            return Err(LivenessTooLarge { n_words });
        }
        let mut liveness =
            Liveness { words_per_block, live: vec![0; n_words], written: vec![0; n_words] };
        for slot in slots.slots() {
            for &block in slots.writes(slot) {
                let place = liveness.place(block, slot);
                liveness.written[place] |= 1 << (slot.0 % 64);
            }
            for &block in slots.reads(slot) {
                let place = liveness.place(block, slot);
                liveness.live[place] |= 1 << (slot.0 % 64);
            }
        }
        liveness.iterate(cfg);
        Ok(liveness)
    }

    /// Processes the blocks in the queue until it is empty.
    fn iterate(&mut self, cfg: &impl ControlFlow) {
        let mut due: VecDeque<u32> = backward_order(cfg).into();
        let mut is_due = vec![true; cfg.n_blocks()];
        while let Some(block) = due.pop_front() {
            is_due[block as usize] = false;
            if self.update(cfg, block) {
                for &pred in cfg.preds(block) {
                    if !std::mem::replace(&mut is_due[pred as usize], true) {
                        due.push_back(pred);
                    }
                }
            }
        }
    }

    /// Adds what is live on entry to a block's successors and not written in the block. Returns
    /// whether anything was new.
    fn update(&mut self, cfg: &impl ControlFlow, block: u32) -> bool {
        let mut changed = false;
        let row = block as usize * self.words_per_block;
        for &succ in cfg.succs(block) {
            let succ_row = succ as usize * self.words_per_block;
            for word in 0..self.words_per_block {
                let old = self.live[row + word];
                let new = old | self.live[succ_row + word] & !self.written[row + word];
                self.live[row + word] = new;
                changed |= new != old;
            }
        }
        changed
    }

    #[inline]
    fn place(&self, block: u32, slot: Slot) -> usize {
        block as usize * self.words_per_block + slot.index() / 64
    }

    /// Whether a slot is live on entry to a block.
    #[inline]
    pub fn is_live_in(&self, block: u32, slot: Slot) -> bool {
        self.live[self.place(block, slot)] >> (slot.0 % 64) & 1 == 1
    }

    /// Whether a slot is live at the end of a block: on entry to one of its successors.
    pub fn is_live_out(&self, cfg: &impl ControlFlow, block: u32, slot: Slot) -> bool {
        cfg.succs(block).iter().any(|&succ| self.is_live_in(succ, slot))
    }

    /// The words of a block: bit `i` of word `w` says whether slot `64 w + i` is live on entry.
    pub fn words(&self, block: u32) -> &[u64] {
        let row = block as usize * self.words_per_block;
        &self.live[row..row + self.words_per_block]
    }
}

/// All blocks, the reachable ones first, in postorder.
fn backward_order(cfg: &impl ControlFlow) -> Vec<u32> {
    let mut search = Search::default();
    let mut numbers = vec![];
    search.run(cfg, &mut numbers);
    let reachable = search.postorder.iter().map(|&v| search.vertices[v as usize]);
    let is_unreachable = |block: &u32| numbers[*block as usize] == crate::graphs::search::NONE;
    reachable.chain((0..cfg.n_blocks() as u32).filter(is_unreachable)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs::cfg::Cfg;
    use crate::tools::testing::{
        Bits, Rng, all_graphs, families, live_in, random_graph, slot_blocks,
    };

    /// Checks both ways against the definition, for slots given as sets of writing and reading blocks.
    fn check(cfg: &Cfg, slots: &[(Bits, Bits)], one: &mut LiveBlocks) {
        let lists = slot_blocks(slots);
        let all = Liveness::new(cfg, &lists).expect("small");
        for (slot, &(writes, reads)) in (0..).map(Slot).zip(slots) {
            let expected = live_in(cfg, writes, reads);
            one.compute(cfg, lists.writes(slot), lists.reads(slot));
            let listed = one.blocks().iter().fold(0, |set: Bits, &block| {
                assert_eq!(set >> block & 1, 0, "no block occurs twice");
                set | 1 << block
            });
            assert_eq!(listed, expected, "writes {writes:b} reads {reads:b} in {cfg:?}");
            for block in 0..cfg.n_blocks() as u32 {
                let is_live = expected >> block & 1 == 1;
                assert_eq!(one.contains(block), is_live);
                assert_eq!(all.is_live_in(block, slot), is_live);
                assert_eq!(all.words(block)[slot.index() / 64] >> (slot.0 % 64) & 1 == 1, is_live);
                let is_out = cfg.succs(block).iter().any(|succ| expected >> succ & 1 == 1);
                assert_eq!(all.is_live_out(cfg, block, slot), is_out);
            }
        }
    }

    #[test]
    fn both_ways_match_the_definition_for_all_slots_of_all_small_graphs() {
        let mut one = LiveBlocks::default();
        for n in 1..=3 {
            let all_slots: Vec<(Bits, Bits)> =
                (0..1u64 << (2 * n)).map(|sets| (sets >> n, sets & ((1 << n) - 1))).collect();
            for cfg in all_graphs(n) {
                check(&cfg, &all_slots, &mut one);
            }
        }
    }

    #[test]
    fn both_ways_match_the_definition_on_random_graphs() {
        let mut rng = Rng(41);
        let mut one = LiveBlocks::default();
        for round in 0..5_000 {
            let n = 1 + rng.below(14);
            let cfg = random_graph(&mut rng, n);
            // Now and then more slots than a word has bits.
            let n_slots = if round % 100 == 0 { 150 } else { 3 };
            let all = (1 << n) - 1;
            let slots: Vec<(Bits, Bits)> = (0..n_slots)
                .map(|_| (rng.next() & rng.next() & all, rng.next() & rng.next() & all))
                .collect();
            check(&cfg, &slots, &mut one);
        }
    }

    #[test]
    fn the_ways_agree_on_large_families() {
        for (name, cfg) in families(2_000) {
            let mut rng = Rng(42);
            let n = cfg.n_blocks() as u32;
            let mut pairs = |count| {
                (0..count).map(|_| (rng.below(n), Slot(rng.below(100)))).collect::<Vec<_>>()
            };
            let (writes, reads) = (pairs(400), pairs(400));
            let slots = SlotBlocks::new(100, writes, reads);
            let all = Liveness::new(&cfg, &slots).expect("small");
            let mut one = LiveBlocks::default();
            for slot in slots.slots() {
                one.compute(&cfg, slots.writes(slot), slots.reads(slot));
                for block in 0..n {
                    assert_eq!(one.contains(block), all.is_live_in(block, slot), "{name}");
                }
            }
        }
    }

    #[test]
    fn too_many_bits_are_refused_by_name() {
        let cfg = crate::tools::testing::chain(1 << 16);
        let n_slots = 64 * 600;
        let error = Liveness::new(&cfg, &SlotBlocks::new(n_slots, [], [])).expect_err("too many");
        assert_eq!(error, LivenessTooLarge { n_words: 600 << 16 });
        assert_eq!(
            error.to_string(),
            "liveness takes 39321600 words, more than 33554432 (LIVENESS_WORDS_MAX)"
        );
    }
}
