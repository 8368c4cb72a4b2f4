//! Dominance frontiers, as sets.
//!
//! Block `y` is in the *dominance frontier* of block `x` if `x` dominates a predecessor of `y` and does
//! not strictly dominate `y` itself (Cytron, Ferrante, Rosen, Wegman and Zadeck, "Efficiently Computing
//! Static Single Assignment Form and the Control Dependence Graph", 1991, section 4.2). What `x`
//! computes meets something else there for the first time. The header of a loop is in its own
//! frontier: it dominates the end of the loop and does not *strictly* dominate itself.
//!
//! [`Frontiers::compute`] goes through the joins as in Cooper, Harvey and Kennedy, "A Simple, Fast
//! Dominance Algorithm" (2001), figure 5: from each predecessor of a block up the dominator tree to the
//! block's immediate dominator, which is the first that strictly dominates the block. The walk from
//! one predecessor ends where the walk from another one passed, so the number of steps is that of edges
//! and entries.
//!
//! Deviations from the paper:
//! * The entry has no immediate dominator, so the walk from a predecessor of the entry ends after the
//!   entry itself.
//! * Blocks with one predecessor are not skipped. Nothing is gained: their walk has no step, unless it
//!   is the entry that has one predecessor, and then the entry is in frontiers although just one edge
//!   enters it.
//!
//! Unreachable blocks have empty frontiers and are in none; edges from them are ignored.
//!
//! Choose it to inspect frontiers, and for many queries on one small graph. The sets of n
//! nested loops have n² entries, so their number has a limit. Placement of phis does not need the sets:
//! see [`crate::graphs::idf`].

use std::fmt;

use crate::graphs::cfg::ControlFlow;
use crate::graphs::dominators::DomTree;
use crate::graphs::rows::Rows;
use crate::graphs::stamps::StampSet;

/// The maximum number of entries in the frontiers of a graph in [`Frontiers::new`]: 256 MiB of them.
pub const FRONTIER_ENTRIES_MAX: usize = 1 << 26;

/// The dominance frontiers of all blocks of a graph.
#[derive(Clone, Debug, Default)]
pub struct Frontiers {
    rows: Rows,
    /// The blocks whose frontiers already contain the current block.
    passed: StampSet,
}

/// Dominance frontiers with more entries than the limit.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct FrontiersTooLarge {
    /// The limit.
    pub entries_max: usize,
}

impl fmt::Display for FrontiersTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let max = self.entries_max;
        write!(f, "the dominance frontiers have more than {max} entries (FRONTIER_ENTRIES_MAX)")
    }
}

impl std::error::Error for FrontiersTooLarge {}

impl Frontiers {
    /// The frontiers of a graph with this dominator tree.
    ///
    /// # Errors
    /// Fails if they have more than [`FRONTIER_ENTRIES_MAX`] entries.
    pub fn new(cfg: &impl ControlFlow, tree: &DomTree) -> Result<Frontiers, FrontiersTooLarge> {
        let mut frontiers = Frontiers::default();
        frontiers.compute(cfg, tree, FRONTIER_ENTRIES_MAX)?;
        Ok(frontiers)
    }

    /// Makes these the frontiers of a graph with this dominator tree, in existing memory.
    ///
    /// # Errors
    /// Fails if they have more than `entries_max` entries. The content is then meaningless, and small.
    pub fn compute(
        &mut self,
        cfg: &impl ControlFlow,
        tree: &DomTree,
        entries_max: usize,
    ) -> Result<(), FrontiersTooLarge> {
        let n = cfg.n_blocks();
        let entries_max = entries_max.min(u32::MAX as usize);
        let Frontiers { rows, passed } = self;
        rows.start(n);
        let mut n_entries = 0;
        for block in 0..n as u32 {
            walk_up(cfg, tree, passed, block, |above| {
                rows.count(above);
                n_entries += 1;
            });
            // One block is in no more frontiers than there are blocks.
            if n_entries > entries_max {
                return Err(FrontiersTooLarge { entries_max });
            }
        }
        rows.start_filling();
        for block in 0..n as u32 {
            walk_up(cfg, tree, passed, block, |above| rows.put(above, block));
        }
        rows.finish();
        Ok(())
    }

    /// The dominance frontier of a block, in ascending order.
    #[inline]
    pub fn of(&self, block: u32) -> &[u32] {
        self.rows.row(block)
    }

    /// The number of entries of all sets.
    pub fn n_entries(&self) -> usize {
        self.rows.n_items()
    }
}

/// Visits the blocks in whose frontier a block is: from its predecessors up the dominator tree, as far
/// as they do not strictly dominate it.
fn walk_up(
    cfg: &impl ControlFlow,
    tree: &DomTree,
    passed: &mut StampSet,
    block: u32,
    mut visit: impl FnMut(u32),
) {
    if tree.number(block).is_none() {
        return;
    }
    passed.start(cfg.n_blocks());
    let idom = tree.idom(block);
    for &pred in cfg.preds(block) {
        let mut above = tree.number(pred).map(|_| pred);
        while let Some(dominator) = above
            && above != idom
            && passed.insert(dominator)
        {
            visit(dominator);
            above = tree.idom(dominator);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs::cfg::Cfg;
    use crate::tools::testing::{Rng, all_graphs, families, nest, random_graph, reachable};

    /// Checks the sets against the definition, dominance being that of removed blocks.
    fn check(frontiers: &Frontiers, cfg: &Cfg) {
        let n = cfg.n_blocks() as u32;
        let live = reachable(cfg, cfg.entry(), 0);
        let without: Vec<u64> = (0..n).map(|b| reachable(cfg, cfg.entry(), 1 << b)).collect();
        let dominates =
            |x: u32, y: u32| live >> x & 1 == 1 && (live & !without[x as usize]) >> y & 1 == 1;
        let mut n_entries = 0;
        for x in 0..n {
            let is_in = |y: &u32| {
                let strictly = x != *y && dominates(x, *y);
                cfg.preds(*y).iter().any(|&pred| dominates(x, pred)) && !strictly
            };
            let expected: Vec<u32> = (0..n).filter(is_in).collect();
            assert_eq!(frontiers.of(x), expected, "{x} in {cfg:?}");
            n_entries += expected.len();
        }
        assert_eq!(frontiers.n_entries(), n_entries);
    }

    fn frontiers(cfg: &Cfg) -> Frontiers {
        Frontiers::new(cfg, &DomTree::semi_nca(cfg)).expect("few entries")
    }

    #[test]
    fn frontiers_match_the_definition_on_all_small_graphs() {
        for n in 1..=4 {
            for cfg in all_graphs(n) {
                check(&frontiers(&cfg), &cfg);
            }
        }
    }

    #[test]
    fn frontiers_match_the_definition_on_random_graphs() {
        let mut rng = Rng(31);
        let mut found = Frontiers::default();
        for _ in 0..10_000 {
            let n = 1 + rng.below(14);
            let cfg = random_graph(&mut rng, n);
            found.compute(&cfg, &DomTree::semi_nca(&cfg), 1_000).expect("few entries");
            check(&found, &cfg);
        }
    }

    /// A text continues the walk at the immediate dominator of the root, but the root has none.
    #[test]
    fn an_edge_into_the_entry_does_not_lead_beyond_the_root() {
        let found = frontiers(&Cfg::new(2, [vec![1], vec![2], vec![0, 1]]));
        assert_eq!((found.of(0), found.of(1), found.of(2)), (&[1][..], &[2][..], &[2][..]));
    }

    /// A text calls the frontier the blocks "just not dominated", another one tests dominance that is
    /// not strict: then loop headers would be missing.
    #[test]
    fn a_loop_header_is_in_its_own_frontier() {
        let found = frontiers(&Cfg::new(0, [vec![1], vec![2, 3], vec![1], vec![]]));
        assert_eq!((found.of(1), found.of(2)), (&[1][..], &[1][..]));
        assert_eq!((found.of(0), found.of(3)), (&[][..], &[][..]));
    }

    /// A textbook claims that a block with fewer than two predecessors is in no frontier.
    #[test]
    fn an_entry_with_one_predecessor_is_in_frontiers() {
        let found = frontiers(&Cfg::new(0, [vec![0, 1], vec![]]));
        assert_eq!((found.of(0), found.of(1)), (&[0][..], &[][..]));
    }

    /// A text's code looks up the dominators of unreachable predecessors, and stops with an error.
    #[test]
    fn unreachable_predecessors_are_in_no_frontier_and_have_none() {
        let found = frontiers(&Cfg::new(0, [vec![1, 2], vec![2], vec![], vec![2, 3, 4], vec![3]]));
        assert_eq!(found.of(1), [2]);
        assert_eq!((found.of(3), found.of(4)), (&[][..], &[][..]));
        assert_eq!(found.n_entries(), 1);
    }

    #[test]
    fn too_many_entries_are_refused_by_name() {
        let cfg = nest(500);
        let tree = DomTree::semi_nca(&cfg);
        let mut found = Frontiers::default();
        let error = found.compute(&cfg, &tree, 10_000).expect_err("a nest has many");
        assert_eq!(error, FrontiersTooLarge { entries_max: 10_000 });
        assert_eq!(
            error.to_string(),
            "the dominance frontiers have more than 10000 entries (FRONTIER_ENTRIES_MAX)"
        );
        // The limit itself is allowed, and memory that an error left behind is as good as new.
        found.compute(&cfg, &tree, FRONTIER_ENTRIES_MAX).expect("enough");
        let n_entries = found.n_entries();
        assert!(found.compute(&cfg, &tree, n_entries - 1).is_err());
        assert!(found.compute(&cfg, &tree, n_entries).is_ok());
    }

    #[test]
    fn frontiers_are_large_in_some_families_only() {
        for (name, cfg) in families(100_000) {
            let found = Frontiers::new(&cfg, &DomTree::semi_nca(&cfg));
            let n_entries = found.map_or(usize::MAX, |found| found.n_entries());
            let is_large = ["nest", "switch below a chain"].contains(&name);
            assert_eq!(n_entries > 400_000, is_large, "{name}");
        }
    }
}
