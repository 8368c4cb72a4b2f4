//! Graphs for the tests: all small ones, random ones, and the families that break implementations.

use crate::graphs::cfg::{Cfg, ControlFlow};
use crate::graphs::dominators::DomTree;
use crate::graphs::ids::Slot;
use crate::graphs::slot_blocks::SlotBlocks;

/// A small random number generator (SplitMix64), so that failures repeat.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: u32) -> u32 {
        (self.next() % u64::from(n)) as u32
    }

    /// True once in `n` times.
    pub(crate) fn one_in(&mut self, n: u32) -> bool {
        self.below(n) == 0
    }
}

/// All graphs of `n` blocks without duplicate edges. The entry is block 0; blocks may be unreachable.
pub(crate) fn all_graphs(n: u32) -> impl Iterator<Item = Cfg> {
    (0..1u64 << (n * n)).map(move |bits| graph_of_bits(n, bits))
}

/// The graph of `n` blocks in which bit `i * n + j` says whether there is an edge from `i` to `j`.
pub(crate) fn graph_of_bits(n: u32, bits: u64) -> Cfg {
    let succs = |i: u32| (0..n).filter(move |j| bits >> (i * n + j) & 1 == 1);
    Cfg::new(0, (0..n).map(succs))
}

/// A random graph of `n` blocks, entered at a random block: sparse or dense, with duplicate edges,
/// self loops, edges into the entry and unreachable blocks.
pub(crate) fn random_graph(rng: &mut Rng, n: u32) -> Cfg {
    let max_degree = 1 + rng.below(3);
    let lists: Vec<Vec<u32>> =
        (0..n).map(|_| (0..rng.below(max_degree + 1)).map(|_| rng.below(n)).collect()).collect();
    Cfg::new(rng.below(n), lists)
}

/// All graphs of `n` blocks whose entry is block 0 and has no predecessors, numbered in preorder of
/// their dominator trees; unreachable blocks are cut off.
pub(crate) fn all_numbered_graphs(n: u32) -> impl Iterator<Item = (Cfg, DomTree)> {
    (0..1u64 << (n * (n - 1))).map(move |bits| {
        let has = move |i: u32, j: u32| bits >> (i * (n - 1) + j - 1) & 1 == 1;
        let cfg = Cfg::new(0, (0..n).map(|i| (1..n).filter(move |&j| has(i, j))));
        DomTree::semi_nca(&cfg).renumber(&cfg)
    })
}

/// A random graph of `n` blocks whose entry is block 0 and has no predecessors, numbered in preorder
/// of its dominator tree, all of whose blocks are reachable. It may have duplicate edges.
pub(crate) fn random_numbered_graph(rng: &mut Rng, n: u32) -> (Cfg, DomTree) {
    let mut lists = vec![vec![]; n as usize];
    for block in 1..n {
        lists[rng.below(block) as usize].push(block);
    }
    for _ in 0..rng.below(2 * n) {
        if n > 1 {
            lists[rng.below(n) as usize].push(1 + rng.below(n - 1));
        }
    }
    let cfg = Cfg::new(0, lists);
    DomTree::semi_nca(&cfg).renumber(&cfg)
}

/// A set of blocks as bits.
pub(crate) type Bits = u64;

/// The blocks that can be reached from `from` without entering `without`.
pub(crate) fn reachable(cfg: &impl ControlFlow, from: u32, without: Bits) -> Bits {
    let mut seen = 0;
    let mut work = vec![from];
    while let Some(block) = work.pop() {
        if (seen | without) >> block & 1 == 0 {
            seen |= 1 << block;
            work.extend(cfg.succs(block));
        }
    }
    seen
}

/// The blocks where a slot is live on entry, by the definition: a path leads from the block to a read
/// and meets no write before.
pub(crate) fn live_in(cfg: &impl ControlFlow, writes: Bits, reads: Bits) -> Bits {
    let n = cfg.n_blocks() as u32;
    let reads_first = |block: u32| {
        // Paths go on after a block unless it writes.
        let mut seen = 0;
        let mut work = vec![block];
        while let Some(block) = work.pop() {
            if seen >> block & 1 == 0 {
                seen |= 1 << block;
                if writes >> block & 1 == 0 {
                    work.extend(cfg.succs(block));
                }
            }
        }
        seen & reads != 0
    };
    (0..n).filter(|&block| reads_first(block)).fold(0, |set, block| set | 1 << block)
}

/// The blocks at which paths from two of the `starts` converge, by the definition: two nonempty paths
/// that share no block but the last one, the convergence, which may also be the start of one.
///
/// By Menger's theorem there are two such paths unless one block lies on all paths from the starts.
pub(crate) fn convergence(cfg: &impl ControlFlow, starts: Bits) -> Bits {
    let n = cfg.n_blocks() as u32;
    let converge = |end: &u32| (0..n).all(|cut| starts_of_paths(cfg, *end, cut) & starts != 0);
    (0..n).filter(converge).fold(0, |set, block| set | 1 << block)
}

/// The blocks from which a nonempty path leads to `end` that does not go through `cut`. The cut may be
/// `end` itself: then no path starts there.
fn starts_of_paths(cfg: &impl ControlFlow, end: u32, cut: u32) -> Bits {
    let mut seen = 0;
    let mut work = cfg.preds(end).to_vec();
    while let Some(block) = work.pop() {
        if block != cut && seen >> block & 1 == 0 {
            seen |= 1 << block;
            work.extend(cfg.preds(block));
        }
    }
    seen
}

/// The size of a graph: blocks and edges.
pub(crate) fn size(cfg: &impl ControlFlow) -> usize {
    (0..cfg.n_blocks() as u32).map(|block| 1 + cfg.succs(block).len()).sum()
}

/// The graph families of the benches, each of about `n` blocks.
pub(crate) fn families(n: u32) -> Vec<(&'static str, Cfg)> {
    vec![
        ("chain", chain(n)),
        ("nest", nest(n / 2)),
        ("ladder", ladder(n)),
        ("else-if chain", else_if_chain(n / 2)),
        ("switch", switch(n)),
        ("switch below a chain", switch_below_chain(n / 2)),
        ("irreducible", irreducible(n)),
    ]
}

/// Blocks one after the other.
pub(crate) fn chain(n: u32) -> Cfg {
    Cfg::new(0, (0..n).map(|b| (b + 1 < n).then_some(b + 1)))
}

/// `n` loops, each in the last: headers 1 to `n`, each with a latch on the way out.
pub(crate) fn nest(n: u32) -> Cfg {
    let header = |b: u32| vec![b + 1];
    let latch = |k: u32| if k == 1 { vec![1, 2 * n + 1] } else { vec![k, 2 * n + 2 - k] };
    let lists = std::iter::once(vec![1])
        .chain((1..=n).map(header))
        .chain((1..=n).rev().map(latch))
        .chain([vec![]]);
    Cfg::new(0, lists)
}

/// A ladder: a chain each of whose blocks may also go back to the one before it.
pub(crate) fn ladder(n: u32) -> Cfg {
    Cfg::new(
        0,
        (0..n).map(|b| {
            let down = (b + 1 < n).then_some(b + 1);
            let up = (b > 1).then(|| b - 1);
            down.into_iter().chain(up)
        }),
    )
}

/// `n` tests one after the other, each with an arm that goes to the common end.
pub(crate) fn else_if_chain(n: u32) -> Cfg {
    let end = 2 * n + 1;
    let lists = (0..n)
        .map(|b| vec![n + 1 + b, b + 1])
        .chain([vec![end]])
        .chain((0..n).map(|_| vec![end]))
        .chain([vec![]]);
    Cfg::new(0, lists)
}

/// A switch with `n` targets that meet again, each target twice.
pub(crate) fn switch(n: u32) -> Cfg {
    let lists = std::iter::once((1..=n).chain(1..=n).collect())
        .chain((1..=n).map(|_| vec![n + 1]))
        .chain([vec![]]);
    Cfg::new(0, lists)
}

/// A chain of `n` blocks that ends in a switch of `n` targets, which the entry also goes to: quadratic
/// for Semi-NCA without jumps.
pub(crate) fn switch_below_chain(n: u32) -> Cfg {
    let targets = || n + 1..2 * n + 1;
    let lists = std::iter::once(std::iter::once(1).chain(targets()).collect())
        .chain((1..n).map(|b| vec![b + 1]))
        .chain([targets().collect()])
        .chain(targets().map(|_| vec![]));
    Cfg::new(0, lists)
}

/// A random graph with local and far jumps, most of its loops entered in several places.
pub(crate) fn irreducible(n: u32) -> Cfg {
    let mut rng = Rng(u64::from(n));
    let lists: Vec<Vec<u32>> = (0..n)
        .map(|b| {
            let next = (b + 1).min(n - 1).max(1);
            let far =
                if rng.one_in(4) { 1 + rng.below(n - 1) } else { 1 + (b + rng.below(9)) % (n - 1) };
            vec![next, far]
        })
        .collect();
    Cfg::new(0, lists)
}

/// The blocks of a set.
pub(crate) fn blocks(set: Bits) -> impl Iterator<Item = u32> + Clone {
    (0..64).filter(move |block| set >> block & 1 == 1)
}

/// The lists of slots that are given as sets of writing and of reading blocks.
pub(crate) fn slot_blocks(slots: &[(Bits, Bits)]) -> SlotBlocks {
    let pairs = |set: fn(&(Bits, Bits)) -> Bits| {
        let of_slot = move |(slot, sets)| blocks(set(sets)).map(move |block| (block, slot));
        (0..).map(Slot).zip(slots).flat_map(of_slot)
    };
    SlotBlocks::new(slots.len(), pairs(|sets| sets.0), pairs(|sets| sets.1))
}

/// Whether tests go through all cases where otherwise they take some of them.
pub(crate) fn is_full() -> bool {
    std::env::var_os("SLOTVM_FULL").is_some_and(|value| value == "1")
}
