//! Families of control-flow graphs with slot accesses, of any size: the shapes that tell SSA
//! constructions apart. The same plan always gives the same graph.
//!
//! A block has 1 to 8 accesses, every third a write, about as what a C compiler emits without
//! optimisation. A slot is accessed in a part of the blocks only, a window in the order of the code:
//! the [density](Plan::density) is the part of all blocks that it covers, and so of the slots that are
//! live at a block at most. All values written are new, and a slot that would be read before it is
//! written is written at the entry, so that no construction can fold a phi that another has.

use slotvm_ssa::graphs::cfg::{Cfg, ControlFlow};
use slotvm_ssa::graphs::dominators::DomTree;
use slotvm_ssa::graphs::place::PhiPlacer;

use crate::slot_graph::{Access, SlotGraph, Written};

/// Accesses of a block, at most.
const BLOCK_ACCESSES_MAX: u64 = 8;
/// Number of accesses for each write.
const ACCESSES_PER_WRITE: u64 = 3;
/// Random structured code nests so deep.
const NESTING_MAX: usize = 12;

/// A shape of graphs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Family {
    /// Loops, each in the last.
    Nest,
    /// A chain each of whose blocks may also go back to the one before it.
    Ladder,
    /// `if`s without `else`, one after the other.
    IfChain,
    /// Tests one after the other, each with an arm that goes to the common end.
    ElseIfChain,
    /// A switch whose targets meet again; it goes to every eighth twice.
    Switch,
    /// Nested `if`s with and without `else`, loops that test at the top or at the bottom, and exits
    /// from their middle.
    Structured,
    /// A chain with jumps to blocks nearby, forth and back: most loops have several entries.
    LocallyIrreducible,
    /// A chain with jumps to anywhere.
    GloballyIrreducible,
}

impl Family {
    /// All families.
    pub const ALL: [Family; 8] = [
        Family::Nest,
        Family::Ladder,
        Family::IfChain,
        Family::ElseIfChain,
        Family::Switch,
        Family::Structured,
        Family::LocallyIrreducible,
        Family::GloballyIrreducible,
    ];

    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Nest => "nest",
            Family::Ladder => "ladder",
            Family::IfChain => "if-chain",
            Family::ElseIfChain => "else-if-chain",
            Family::Switch => "switch",
            Family::Structured => "structured",
            Family::LocallyIrreducible => "irreducible-local",
            Family::GloballyIrreducible => "irreducible-global",
        }
    }

    /// Whether its graphs have loops with several entries.
    pub const fn is_irreducible(self) -> bool {
        matches!(self, Family::LocallyIrreducible | Family::GloballyIrreducible)
    }

    /// The successor lists of about `n` blocks. No edge goes to block 0, and all can be reached.
    fn succs(self, n: u32, rng: &mut Rng) -> Vec<Vec<u32>> {
        match self {
            Family::Nest => nest(n / 2),
            Family::Ladder => chain(n, |b| (b > 1).then(|| b - 1)),
            Family::IfChain => chain(n | 1, |b| (b % 2 == 0 && b + 2 < n | 1).then_some(b + 2)),
            Family::ElseIfChain => else_if_chain(n / 2),
            Family::Switch => switch(n),
            Family::Structured => Structured::default().generate(n as usize, rng),
            Family::LocallyIrreducible => chain(n, |b| {
                let near = u64::from(b) + rng.below(17);
                (rng.below(2) == 0)
                    .then(|| near.saturating_sub(8).clamp(1, u64::from(n) - 1) as u32)
            }),
            Family::GloballyIrreducible => {
                chain(n, |_| (rng.below(2) == 0).then(|| 1 + rng.below(u64::from(n) - 1) as u32))
            }
        }
    }
}

/// Parameters of a graph.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Plan {
    /// Its shape.
    pub family: Family,
    /// Approximate number of blocks; at least 8.
    pub n_blocks: u32,
    /// The number of its slots.
    pub n_slots: u32,
    /// The part of the blocks in which a slot is accessed, up to 1.
    pub density: f64,
}

/// The graph of a plan, numbered in dominator-tree preorder.
pub fn generate(plan: Plan) -> SlotGraph {
    let mut rng = Rng(u64::from(plan.n_blocks));
    let cfg = Cfg::new(0, plan.family.succs(plan.n_blocks.max(8), &mut rng));
    let windows = Windows::new(cfg.n_blocks(), plan);
    let lists: Vec<Vec<Access>> = (0..cfg.n_blocks())
        .map(|block| {
            let n_accesses = 1 + rng.below(BLOCK_ACCESSES_MAX);
            let mut access = || {
                let slot = windows.pick(block, &mut rng);
                match rng.below(ACCESSES_PER_WRITE) {
                    0 => Access::Write { slot, value: Written::New },
                    _ => Access::Read { slot },
                }
            };
            (0..n_accesses).map(|_| access()).collect()
        })
        .collect();
    let name = format!("{}_{}_{}", plan.family.name(), plan.n_blocks, plan.n_slots);
    initialised(&SlotGraph::new(name, plan.n_slots, cfg, lists).numbered())
}

/// Windows in which slots are accessed: the first one at the start, the last one at the end.
struct Windows {
    /// The first block of each slot's window, ascending.
    starts: Vec<usize>,
    width: usize,
}

impl Windows {
    fn new(n_blocks: usize, plan: Plan) -> Windows {
        let width = ((n_blocks as f64 * plan.density) as usize).clamp(1, n_blocks);
        let n_gaps = (plan.n_slots as usize - 1).max(1);
        let starts = (0..plan.n_slots as usize).map(|slot| slot * (n_blocks - width) / n_gaps);
        Windows { starts: starts.collect(), width }
    }

    /// A slot whose window has the block; if there is none, the one before.
    fn pick(&self, block: usize, rng: &mut Rng) -> u32 {
        let first = self.starts.partition_point(|start| start + self.width <= block);
        let end = self.starts.partition_point(|&start| start <= block);
        let first = first.min(end - 1);
        first as u32 + rng.below((end - first) as u64) as u32
    }
}

/// The same graph with a write at the entry of each slot that would be read before it is written. It
/// must be numbered in dominator-tree preorder.
pub fn initialised(graph: &SlotGraph) -> SlotGraph {
    let mut exposed = Vec::new();
    let mut last_write = vec![u32::MAX; graph.n_slots as usize];
    let mut last_read = last_write.clone();
    for block in 0..graph.n_blocks() as u32 {
        for access in graph.accesses(block) {
            let slot = access.slot();
            let is_write = matches!(access, Access::Write { .. });
            let last = if is_write { &mut last_write } else { &mut last_read };
            if std::mem::replace(&mut last[slot as usize], block) != block
                && (is_write || last_write[slot as usize] != block)
            {
                exposed.push((slot, block, is_write));
            }
        }
    }
    exposed.sort_unstable();
    let tree = DomTree::semi_nca(&graph.cfg);
    let mut placer = PhiPlacer::default();
    placer.start(&graph.cfg, &tree);
    let group_slots = PhiPlacer::GROUP_SLOTS_MAX as u32;
    let mut live = Vec::new();
    for group in exposed.chunk_by(|a, b| a.0 / group_slots == b.0 / group_slots) {
        placer.start_group();
        for &(slot, block, is_write) in group {
            match is_write {
                true => placer.add_write(block, slot % group_slots),
                false => placer.add_read(block, slot % group_slots),
            }
        }
        let first = group[0].0 / group_slots * group_slots;
        let word = placer.place(&graph.cfg, &tree);
        live.extend((0..group_slots).filter(|i| word >> i & 1 == 1).map(|i| first + i));
    }
    let writes = live.into_iter().map(|slot| Access::Write { slot, value: Written::New });
    let mut writes = Some(writes);
    let lists = (0..graph.n_blocks() as u32).map(|block| {
        writes.take().into_iter().flatten().chain(graph.accesses(block).iter().copied())
    });
    SlotGraph::new(graph.name.clone(), graph.n_slots, graph.cfg.clone(), lists)
}

/// A chain of blocks; `other` is another target of a block, before the next one.
fn chain(n: u32, mut other: impl FnMut(u32) -> Option<u32>) -> Vec<Vec<u32>> {
    let next = |b: u32| (b + 1 < n).then_some(b + 1);
    (0..n).map(|b| other(b).into_iter().chain(next(b)).collect()).collect()
}

/// Headers 1 to `n`, each with a latch on the way out.
fn nest(n: u32) -> Vec<Vec<u32>> {
    let latches = (1..=n).rev().map(|header| vec![header, 2 * n + 2 - header]);
    let headers = (0..=n).map(|block| vec![block + 1]);
    headers.chain(latches).chain([vec![]]).collect()
}

fn else_if_chain(n: u32) -> Vec<Vec<u32>> {
    let end = 2 * n;
    let pairs = (0..n).flat_map(|i| [vec![2 * i + 1, 2 * i + 2], vec![end]]);
    pairs.chain([vec![]]).collect()
}

fn switch(n: u32) -> Vec<Vec<u32>> {
    let targets = (1..n - 1).flat_map(|b| std::iter::repeat_n(b, 1 + usize::from(b % 8 == 0)));
    let arms = (1..n - 1).map(|_| vec![n - 1]);
    std::iter::once(targets.collect()).chain(arms).chain([vec![]]).collect()
}

/// Random structured code being made.
#[derive(Default)]
struct Structured {
    succs: Vec<Vec<u32>>,
    /// The `if`s and loops that have not ended.
    open: Vec<Open>,
}

enum Open {
    /// After the test.
    Then { test: u32 },
    /// After the end of the first arm.
    Else { then_end: u32 },
    /// A loop that tests at the top (`while`) or at the bottom; exits from its middle.
    Loop { head: u32, is_while: bool, exits: Vec<u32> },
}

impl Structured {
    fn generate(mut self, n: usize, rng: &mut Rng) -> Vec<Vec<u32>> {
        let mut current = self.block();
        while self.succs.len() + self.open.len() < n {
            let opens =
                self.open.len() < NESTING_MAX && (self.open.is_empty() || rng.below(2) == 0);
            current = if opens { self.start(current, rng) } else { self.go_on(current, rng) };
        }
        while !self.open.is_empty() {
            current = self.end(current);
        }
        self.succs
    }

    /// A new block.
    fn block(&mut self) -> u32 {
        self.succs.push(Vec::new());
        self.succs.len() as u32 - 1
    }

    /// A new block after these.
    fn block_after(&mut self, sources: impl IntoIterator<Item = u32>) -> u32 {
        let block = self.block();
        for source in sources {
            self.succs[source as usize].push(block);
        }
        block
    }

    /// Starts an `if` or a loop; returns the block that code continues in, as the others do.
    fn start(&mut self, current: u32, rng: &mut Rng) -> u32 {
        let next = self.block_after([current]);
        let kind = rng.below(4);
        if kind < 2 {
            self.open.push(Open::Then { test: current });
            return next;
        }
        let is_while = kind == 2;
        self.open.push(Open::Loop { head: next, is_while, exits: Vec::new() });
        if is_while { self.block_after([next]) } else { next }
    }

    /// Goes on in the innermost one: with its other arm, an exit from its middle, or its end.
    fn go_on(&mut self, current: u32, rng: &mut Rng) -> u32 {
        match self.open.last_mut() {
            Some(Open::Then { test }) if rng.below(2) == 0 => {
                let test = *test;
                self.open.pop();
                self.open.push(Open::Else { then_end: current });
                self.block_after([test])
            }
            Some(Open::Loop { exits, .. }) if rng.below(4) == 0 => {
                exits.push(current);
                self.block_after([current])
            }
            _ => self.end(current),
        }
    }

    fn end(&mut self, current: u32) -> u32 {
        match self.open.pop().expect("one is open") {
            Open::Then { test } => self.block_after([test, current]),
            Open::Else { then_end } => self.block_after([then_end, current]),
            Open::Loop { head, is_while, exits } => {
                self.succs[current as usize].push(head);
                let test = if is_while { head } else { current };
                self.block_after(exits.into_iter().chain([test]))
            }
        }
    }
}

/// A small random number generator (SplitMix64).
struct Rng(u64);

impl Rng {
    /// A number below `n`.
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(family: Family, n_slots: u32, density: f64) -> Plan {
        Plan { family, n_blocks: 1_000, n_slots, density }
    }

    #[test]
    fn graphs_have_about_the_size_asked_for_and_all_blocks_can_be_reached() {
        for family in Family::ALL {
            let succs = family.succs(1_000, &mut Rng(1));
            assert!(succs.iter().all(|list| !list.contains(&0)), "{}", family.name());
            let n_blocks = succs.len();
            let cfg = Cfg::new(0, succs);
            assert_eq!(DomTree::semi_nca(&cfg).n_reachable(), n_blocks, "{}", family.name());
            assert!((950..1_060).contains(&n_blocks), "{}: {n_blocks}", family.name());
        }
    }

    #[test]
    fn irreducible_families_are_what_they_are_called() {
        for family in Family::ALL {
            let cfg = generate(plan(family, 1, 1.0)).cfg;
            let tree = DomTree::semi_nca(&cfg);
            // In preorder of the tree, a graph is reducible if the edges that do not go to dominators
            // form no cycle.
            let mut n_preds: Vec<usize> = vec![0; cfg.n_blocks()];
            let forward = |b: u32| {
                let succs = cfg.succs(b).iter().copied();
                succs.filter(|&succ| !tree.dominates(succ, b)).collect::<Vec<u32>>()
            };
            let all = 0..cfg.n_blocks() as u32;
            all.flat_map(forward).for_each(|succ| n_preds[succ as usize] += 1);
            let mut work = vec![0];
            let mut n_sorted = 0;
            while let Some(block) = work.pop() {
                n_sorted += 1;
                for succ in forward(block) {
                    n_preds[succ as usize] -= 1;
                    if n_preds[succ as usize] == 0 {
                        work.push(succ);
                    }
                }
            }
            assert_eq!(n_sorted < cfg.n_blocks(), family.is_irreducible(), "{}", family.name());
        }
    }

    #[test]
    fn slots_keep_to_their_windows() {
        let mut graph = generate(plan(Family::IfChain, 10, 0.1));
        // But for the writes at the entry.
        graph = SlotGraph::new(
            graph.name.clone(),
            graph.n_slots,
            graph.cfg.clone(),
            (0..graph.n_blocks() as u32)
                .map(|b| graph.accesses(b).iter().copied().skip(usize::from(b == 0) * 99)),
        );
        for slot in 0..10 {
            let accesses = |b: &u32| graph.accesses(*b).iter().any(|a| a.slot() == slot);
            let blocks: Vec<u32> = (0..graph.n_blocks() as u32).filter(accesses).collect();
            assert!(blocks[blocks.len() - 1] - blocks[0] <= 100 && blocks.len() > 50, "{slot}");
        }
    }

    #[test]
    fn nothing_is_read_before_it_is_written() {
        for family in Family::ALL {
            for density in [0.1, 1.0] {
                let graph = generate(plan(family, 100, density));
                let again = initialised(&graph);
                assert_eq!(graph.all_accesses(), again.all_accesses(), "{}", family.name());
            }
        }
    }
}
