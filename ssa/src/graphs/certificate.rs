//! Certification of dominator trees: a check in near-linear time that computes no dominators.
//!
//! A tree of the reachable blocks with the entry as root is the dominator tree exactly if it has two
//! properties (Georgiadis and Tarjan, "Dominator Tree Certification and Divergent Spanning Trees", 2015,
//! section 2):
//! * *Parent property:* for each edge, the parent of its target is an ancestor of its source, the source
//!   itself included. Then all ancestors of a block dominate it.
//! * *Sibling property:* no block dominates a sibling. Then no other block does.
//!
//! The first is checked once for each edge. So is the second if the graph has no cycle: a block is
//! dominated by its parent alone if an edge comes from the parent, or if edges come from below two
//! different siblings. With cycles that is not enough: two blocks that only lead to each other would
//! justify each other. So each loop is cut open as in Ramalingam, "On Loops, Dominators, and Dominance
//! Frontiers" (2002), section 4: edges inside a loop that lead to its header are left out, and whatever
//! edge enters the loop from outside, at any block of it, counts as one into the header. This changes
//! no dominators: the loop is strongly connected, so from wherever it is entered it leads to the header;
//! and no other block of the loop dominates the header, since the depth-first search has entered the
//! loop there. What remains has no cycle.
//!
//! An edge may enter many loops at once. Only the smallest and the greatest source of a loop matter, in
//! a preorder of the tree: all sources are below one child of the parent if these two are. Both are found
//! by going through the edges in the order of sources, and up the loops that have no source yet.
//!
//! It relies on the loops being right ([`crate::graphs::loops`], which knows nothing of dominators). When to
//! choose it: as a test of whatever makes dominator trees or keeps them up to date, of this crate or
//! another, on graphs too large for the definition.

use std::fmt;

use crate::graphs::cfg::ControlFlow;
use crate::graphs::ids::Loop;
use crate::graphs::loops::LoopForest;
use crate::graphs::search::NONE;
use crate::graphs::steps::step;

/// The reason why a tree is not the dominator tree of a graph.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Refutation {
    /// A reachable block other than the entry has no immediate dominator, or the entry or an
    /// unreachable block has one.
    Reachability {
        /// The block.
        block: u32,
    },
    /// The entry is not above this block.
    NotInTree {
        /// The block.
        block: u32,
    },
    /// An edge bypasses the target's immediate dominator: parent property.
    NotADominator {
        /// The source of the edge.
        src: u32,
        /// The target of the edge.
        dst: u32,
    },
    /// Another block is a closer dominator than the given one (violates the sibling property).
    NotTheClosest {
        /// The block.
        block: u32,
        /// The other one.
        dominator: u32,
    },
}

impl fmt::Display for Refutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refutation::Reachability { block } => {
                write!(
                    f,
                    "expected an immediate dominator of block {block} if and only if it is reachable and not the entry"
                )
            }
            Refutation::NotInTree { block } => {
                write!(f, "block {block} is not in the tree below the entry")
            }
            Refutation::NotADominator { src, dst } => {
                write!(f, "the edge from {src} to {dst} bypasses the immediate dominator of {dst}")
            }
            Refutation::NotTheClosest { block, dominator } => {
                write!(f, "block {dominator} is a closer dominator of {block} than the one given")
            }
        }
    }
}

impl std::error::Error for Refutation {}

/// Checks that blocks have these immediate dominators: none for the entry and for unreachable blocks.
///
/// # Errors
/// Returns the first violation found if they have others.
///
/// # Panics
/// Panics if an immediate dominator is not the number of a block.
pub fn certify(
    cfg: &impl ControlFlow,
    idom: impl Fn(u32) -> Option<u32>,
) -> Result<(), Refutation> {
    let idoms: Vec<u32> =
        (0..cfg.n_blocks() as u32).map(|block| idom(block).unwrap_or(NONE)).collect();
    let tree = Tree::new(cfg, &idoms)?;
    tree.check_parents(cfg)?;
    let sources = Sources::new(cfg, &tree);
    tree.check_siblings(cfg, &sources)
}

/// The tree to check.
struct Tree<'a> {
    idoms: &'a [u32],
    /// The reachable blocks in a preorder.
    preorder: Vec<u32>,
    /// The place of a block in it; [`NONE`] if it is unreachable.
    numbers: Vec<u32>,
    /// One past the last number below a block.
    ends: Vec<u32>,
    /// Start of the children of each block; one more entry than blocks.
    starts: Vec<u32>,
    /// The children of each block in the order of their numbers.
    children: Vec<u32>,
}

impl Tree<'_> {
    /// Makes the tree, and checks that it consists of the reachable blocks.
    fn new<'a>(cfg: &impl ControlFlow, idoms: &'a [u32]) -> Result<Tree<'a>, Refutation> {
        let n = cfg.n_blocks();
        let is_reachable = flood(cfg);
        let has_parent = |block: &u32| idoms[*block as usize] != NONE;
        let blocks = 0..n as u32;
        let is_wrong = |&block: &u32| {
            has_parent(&block) != (is_reachable[block as usize] && block != cfg.entry())
        };
        if let Some(block) = blocks.clone().find(is_wrong) {
            return Err(Refutation::Reachability { block });
        }
        let mut starts = vec![0; n + 2];
        for &idom in idoms.iter().filter(|&&idom| idom != NONE) {
            starts[idom as usize + 2] += 1;
        }
        for block in 2..n + 2 {
            starts[block] += starts[block - 1];
        }
        let mut children = vec![0; starts[n + 1] as usize];
        for block in blocks.clone().filter(has_parent) {
            let place = &mut starts[idoms[block as usize] as usize + 1];
            children[*place as usize] = block;
            *place += 1;
        }
        starts.pop();

        let (mut preorder, mut numbers) = (vec![], vec![NONE; n]);
        let mut work = vec![cfg.entry()];
        while let Some(block) = work.pop() {
            numbers[block as usize] = preorder.len() as u32;
            preorder.push(block);
            let row = starts[block as usize] as usize..starts[block as usize + 1] as usize;
            work.extend(children[row].iter().rev());
        }
        let is_missing =
            |&block: &u32| is_reachable[block as usize] && numbers[block as usize] == NONE;
        if let Some(block) = blocks.clone().find(is_missing) {
            return Err(Refutation::NotInTree { block });
        }
        let mut ends = vec![0; n];
        for &block in preorder.iter().rev() {
            let end = &mut ends[block as usize];
            *end = (*end).max(numbers[block as usize] + 1);
            let end = *end;
            if block != cfg.entry() {
                let above: &mut u32 = &mut ends[idoms[block as usize] as usize];
                *above = end.max(*above);
            }
        }
        Ok(Tree { idoms, preorder, numbers, ends, starts, children })
    }

    /// The number of a block; `None` if it is unreachable.
    fn number(&self, block: u32) -> Option<u32> {
        let number = self.numbers[block as usize];
        (number != NONE).then_some(number)
    }

    /// Whether a number is that of a block or one below it.
    fn is_below(&self, number: u32, block: u32) -> bool {
        self.numbers[block as usize] <= number && number < self.ends[block as usize]
    }

    fn check_parents(&self, cfg: &impl ControlFlow) -> Result<(), Refutation> {
        for &src in &self.preorder {
            for &dst in cfg.succs(src) {
                let idom = self.idoms[dst as usize];
                if idom != NONE && !self.is_below(self.numbers[src as usize], idom) {
                    return Err(Refutation::NotADominator { src, dst });
                }
            }
        }
        Ok(())
    }

    /// Checks that no child of a block's parent dominates the block.
    fn check_siblings(&self, cfg: &impl ControlFlow, sources: &Sources) -> Result<(), Refutation> {
        for &block in &self.preorder[1..] {
            let (least, greatest) = sources.of(cfg, self, block);
            let parent = self.idoms[block as usize] as usize;
            if least == self.numbers[parent] {
                continue;
            }
            let siblings =
                &self.children[self.starts[parent] as usize..self.starts[parent + 1] as usize];
            let after = siblings.partition_point(|&child| self.numbers[child as usize] <= least);
            let dominator = siblings[after - 1];
            if self.is_below(greatest, dominator) {
                return Err(Refutation::NotTheClosest { block, dominator });
            }
        }
        Ok(())
    }
}

/// The least and the greatest source, by number in the tree, of the edges that enter a block of the
/// graph without cycles.
struct Sources {
    loops: LoopForest,
    /// The least source of each loop.
    least: Vec<u32>,
    greatest: Vec<u32>,
}

impl Sources {
    fn new(cfg: &impl ControlFlow, tree: &Tree<'_>) -> Sources {
        let loops = LoopForest::new(cfg);
        let upwards = tree.preorder.iter().copied();
        let least = first_sources(cfg, tree, &loops, upwards.clone());
        let greatest = first_sources(cfg, tree, &loops, upwards.rev());
        Sources { loops, least, greatest }
    }

    fn of(&self, cfg: &impl ControlFlow, tree: &Tree<'_>, block: u32) -> (u32, u32) {
        match self.loops.innermost(block) {
            Some(innermost) if self.loops.header(innermost) == block => {
                (self.least[innermost.index()], self.greatest[innermost.index()])
            }
            _ => {
                let numbers = || cfg.preds(block).iter().filter_map(|&pred| tree.number(pred));
                let (least, greatest) = (numbers().min(), numbers().max());
                let reached = "a reachable block that is not the entry has an edge";
                (least.expect(reached), greatest.expect(reached))
            }
        }
    }
}

/// Returns for each loop, by number in the tree, the first block in an order of all blocks from which an edge enters
/// the loop. A loop around the entry may have none.
fn first_sources(
    cfg: &impl ControlFlow,
    tree: &Tree<'_>,
    loops: &LoopForest,
    order: impl Iterator<Item = u32>,
) -> Vec<u32> {
    let n_loops = loops.n_loops() as u32;
    let number = |found: Option<Loop>| found.map_or(n_loops, |it| it.0);
    let mut sources = vec![NONE; n_loops as usize];
    // Union-find: from a loop to the innermost one around it, or itself, that has no source yet;
    // `n_loops` stands outside of all.
    let mut without: Vec<u32> = (0..=n_loops).collect();
    for src in order {
        for &dst in cfg.succs(src) {
            let mut entered = find(&mut without, number(loops.innermost(dst)));
            while entered != n_loops && !loops.contains(Loop(entered), src) {
                step();
                sources[entered as usize] = tree.numbers[src as usize];
                without[entered as usize] = number(loops.parent(Loop(entered)));
                entered = find(&mut without, entered);
            }
        }
    }
    sources
}

/// The representative of a set; halves the path to it.
fn find(links: &mut [u32], mut element: u32) -> u32 {
    while links[element as usize] != element {
        step();
        let above = links[links[element as usize] as usize];
        links[element as usize] = above;
        element = above;
    }
    element
}

/// Marks the blocks that can be reached.
fn flood(cfg: &impl ControlFlow) -> Vec<bool> {
    let mut is_reachable = vec![false; cfg.n_blocks()];
    is_reachable[cfg.entry() as usize] = true;
    let mut work = vec![cfg.entry()];
    while let Some(block) = work.pop() {
        for &succ in cfg.succs(block) {
            if !std::mem::replace(&mut is_reachable[succ as usize], true) {
                work.push(succ);
            }
        }
    }
    is_reachable
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs::cfg::Cfg;
    use crate::graphs::dominators::DomTree;
    use crate::graphs::steps::within;
    use crate::tools::testing::{
        Rng, all_graphs, families, graph_of_bits, random_graph, reachable, size,
    };

    /// The immediate dominators by the definition: the strict dominator that all others dominate.
    fn idoms(cfg: &Cfg) -> Vec<Option<u32>> {
        let n = cfg.n_blocks() as u32;
        let live = reachable(cfg, cfg.entry(), 0);
        let without: Vec<u64> = (0..n).map(|b| reachable(cfg, cfg.entry(), 1 << b)).collect();
        let dominates = |a: u32, b: u32| a == b || (live & !without[a as usize]) >> b & 1 == 1;
        let idom = |b: u32| {
            let strict = || (0..n).filter(move |&a| a != b && live >> a & 1 == 1);
            let dominators: Vec<u32> = strict().filter(|&a| dominates(a, b)).collect();
            dominators.iter().copied().find(|&a| dominators.iter().all(|&d| dominates(d, a)))
        };
        (0..n).map(|b| if live >> b & 1 == 1 { idom(b) } else { None }).collect()
    }

    fn is_certified(cfg: &Cfg, idoms: &[Option<u32>]) -> bool {
        certify(cfg, |block| idoms[block as usize]).is_ok()
    }

    #[test]
    fn exactly_the_dominator_tree_is_certified_on_all_small_graphs() {
        let check = |cfg: &Cfg| {
            let n = cfg.n_blocks() as u32;
            let right = idoms(cfg);
            // Each block has any block or none as its parent.
            for choice in 0..(n + 1).pow(n) {
                let parent = |block: u32| Some(choice / (n + 1).pow(block) % (n + 1));
                let tree: Vec<Option<u32>> =
                    (0..n).map(|block| parent(block).filter(|&parent| parent < n)).collect();
                assert_eq!(is_certified(cfg, &tree), tree == right, "{tree:?} of {cfg:?}");
            }
        };
        (1..=3).flat_map(all_graphs).for_each(|cfg| check(&cfg));
        let mut rng = Rng(71);
        (0..300).for_each(|_| check(&graph_of_bits(4, rng.next())));
    }

    #[test]
    fn dominator_trees_of_random_graphs_are_certified_and_no_others() {
        let mut rng = Rng(72);
        let mut n_refuted = 0;
        for _ in 0..5_000 {
            let n = 2 + rng.below(13);
            let cfg = random_graph(&mut rng, n);
            let mut tree = idoms(&cfg);
            assert_eq!(certify(&cfg, |block| tree[block as usize]), Ok(()), "{cfg:?}");
            let block = rng.below(n) as usize;
            let parent = Some(rng.below(n));
            let is_same = std::mem::replace(&mut tree[block], parent) == parent;
            assert_eq!(is_certified(&cfg, &tree), is_same, "{tree:?} of {cfg:?}");
            n_refuted += u32::from(!is_same);
        }
        assert!(n_refuted > 4_000, "{n_refuted}");
    }

    #[test]
    fn refutations_say_what_is_wrong() {
        // Two blocks that lead to each other, entered from one side only.
        let cfg = Cfg::new(0, [vec![1], vec![2], vec![1, 3], vec![], vec![1]]);
        let refute = |idoms: [Option<u32>; 5]| {
            certify(&cfg, |block| idoms[block as usize]).expect_err("wrong").to_string()
        };
        assert_eq!(
            refute([None, Some(0), Some(0), Some(2), None]),
            "block 1 is a closer dominator of 2 than the one given"
        );
        assert_eq!(
            refute([None, Some(2), Some(1), Some(2), None]),
            "block 1 is not in the tree below the entry"
        );
        assert_eq!(
            refute([None, Some(0), Some(1), Some(2), Some(1)]),
            "expected an immediate dominator of block 4 if and only if it is reachable and not the entry"
        );
        assert_eq!(
            refute([None, Some(3), Some(0), Some(0), None]),
            "the edge from 0 to 1 bypasses the immediate dominator of 1"
        );
    }

    #[test]
    fn trees_of_large_families_are_certified_in_near_linear_steps() {
        for (name, cfg) in families(200_000) {
            let tree = DomTree::semi_nca(&cfg);
            let certified =
                within(8 * size(&cfg), name, || certify(&cfg, |block| tree.idom(block)));
            assert_eq!(certified, Ok(()), "{name}");
        }
        for (name, cfg) in families(2_000) {
            let tree = DomTree::cooper_harvey_kennedy(&cfg);
            assert_eq!(certify(&cfg, |block| tree.idom(block)), Ok(()), "{name}");
        }
    }
}
