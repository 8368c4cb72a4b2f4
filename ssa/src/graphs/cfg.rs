//! Control-flow graphs: the trait that the algorithms of this crate require, and a compact graph that
//! implements it.
//!
//! Blocks are `u32` numbers. A graph may have unreachable blocks, edges into its entry, self loops and
//! duplicate edges (a switch with equal targets); each algorithm states how it treats them.

use crate::graphs::rows::Rows;

/// A control-flow graph, as the algorithms of this crate see it.
///
/// A compiler with its own IR implements this for its functions, and then can use all algorithms that
/// do not know the IR of this crate: dominators, loops, frontiers, liveness, phi sites. They look at
/// lists often, so a list should be stored and not made at each call. If predecessors are not stored, make
/// a [`Cfg`] from the successors. Blocks may have any numbers, and so may the entry. The examples
/// `own_graph` and `petgraph` of the crate each show an implementation.
///
/// Successor and predecessor lists must agree: an edge that occurs `k` times in the one occurs `k`
/// times in the other. The order of a successor list decides the order of the depth-first search, and
/// so the numbering of blocks, but no result that theory calls unique.
pub trait ControlFlow {
    /// The number of blocks; their numbers are below it.
    fn n_blocks(&self) -> usize;

    /// The block at which execution starts.
    fn entry(&self) -> u32;

    /// The targets of the edges that leave a block.
    fn succs(&self, block: u32) -> &[u32];

    /// The sources of the edges that enter a block.
    fn preds(&self, block: u32) -> &[u32];
}

/// A graph in compressed sparse rows: all successor lists one after the other in one vector, all
/// predecessor lists in another.
///
/// The edges of a graph are numbered by source block, then by place in its successor list, so the
/// position of a target in the vector of targets is the number of its edge. A predecessor list is in
/// the order of edge numbers.
#[derive(Clone, Debug, Default)]
pub struct Cfg {
    entry: u32,
    /// Start of a block's list in `succs`; one more entry than blocks.
    succ_starts: Vec<u32>,
    succs: Vec<u32>,
    preds: Rows,
}

impl Cfg {
    /// Builds the graph whose blocks have these successor lists.
    ///
    /// # Panics
    /// Panics if the entry or a successor is not the number of a block.
    pub fn new<L>(entry: u32, succ_lists: impl IntoIterator<Item = L>) -> Cfg
    where
        L: IntoIterator<Item = u32>,
    {
        let mut cfg = Cfg::default();
        cfg.rebuild(entry, succ_lists);
        cfg
    }

    /// Replaces the graph by another one, in the memory of the old one.
    ///
    /// # Panics
    /// Panics if the entry or a successor is not the number of a block.
    pub fn rebuild<L>(&mut self, entry: u32, succ_lists: impl IntoIterator<Item = L>)
    where
        L: IntoIterator<Item = u32>,
    {
        self.entry = entry;
        self.succ_starts.clear();
        self.succs.clear();
        self.succ_starts.push(0);
        for list in succ_lists {
            self.succs.extend(list);
            self.succ_starts.push(self.succs.len() as u32);
        }
        assert!((entry as usize) < self.n_blocks(), "the entry is a block");
        self.collect_preds();
    }

    /// Replaces the graph by one given as compressed sparse rows: the starts of the successor lists, the
    /// successors, the starts of the predecessor lists (one more entry than blocks), the predecessors.
    /// The entry is block 0.
    #[cfg(feature = "ir")]
    pub(crate) fn rebuild_from_rows(
        &mut self,
        succ_starts: impl Iterator<Item = u32>,
        succs: impl Iterator<Item = u32>,
        pred_starts: &[u32],
        preds: impl Iterator<Item = u32>,
    ) {
        self.entry = 0;
        self.succs.clear();
        self.succs.extend(succs);
        self.succ_starts.clear();
        self.succ_starts.extend(succ_starts);
        self.succ_starts.push(self.succs.len() as u32);
        self.preds.copy_from(pred_starts, preds);
    }

    /// Makes the predecessor lists by a counting sort of the edges by target.
    fn collect_preds(&mut self) {
        let n = self.n_blocks();
        self.preds.start(n);
        self.succs.iter().for_each(|&target| self.preds.count(target));
        self.preds.start_filling();
        for block in 0..n {
            let edges = self.succ_starts[block] as usize..self.succ_starts[block + 1] as usize;
            for &target in &self.succs[edges] {
                self.preds.put(target, block as u32);
            }
        }
        self.preds.finish();
    }

    /// The number of edges.
    pub fn n_edges(&self) -> usize {
        self.succs.len()
    }
}

impl ControlFlow for Cfg {
    #[inline]
    fn n_blocks(&self) -> usize {
        self.succ_starts.len().saturating_sub(1)
    }

    #[inline]
    fn entry(&self) -> u32 {
        self.entry
    }

    #[inline]
    fn succs(&self, block: u32) -> &[u32] {
        let block = block as usize;
        &self.succs[self.succ_starts[block] as usize..self.succ_starts[block + 1] as usize]
    }

    #[inline]
    fn preds(&self, block: u32) -> &[u32] {
        self.preds.row(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_order_and_duplicates() {
        let cfg = Cfg::new(1, [vec![2, 2, 0], vec![0], vec![1, 2]]);
        assert_eq!((cfg.n_blocks(), cfg.n_edges(), cfg.entry()), (3, 6, 1));
        assert_eq!(cfg.succs(0), [2, 2, 0]);
        assert_eq!(cfg.preds(0), [0, 1]);
        assert_eq!(cfg.preds(1), [2]);
        assert_eq!(cfg.preds(2), [0, 0, 2]);
    }

    #[test]
    fn rebuilding_forgets_the_old_graph() {
        let mut cfg = Cfg::new(0, [vec![1, 1], vec![0]]);
        cfg.rebuild(0, [[]]);
        assert_eq!((cfg.n_blocks(), cfg.n_edges()), (1, 0));
        assert_eq!(cfg.preds(0), []);
    }

    #[test]
    #[should_panic]
    fn a_target_out_of_range_is_refused() {
        Cfg::new(0, [vec![1]]);
    }
}
