//! The iterated dominance frontier without the sets: walks down the dominator tree, deepest root first.
//!
//! The scheme of LLVM's `IDFCalculator`, which is that of Sreedhar and Gao, "A Linear Time Algorithm for
//! Placing φ-Nodes" (1995). Blocks that write the slot are roots, and so is each block that gets a phi.
//! Roots are taken deepest first. From a root its subtree of the dominator tree is walked, except for
//! what was walked from a deeper root: targets of edges from there that lie no deeper than this root
//! have been found from the deeper one. An edge that leads out of the subtree to a block no deeper
//! than the root leads into the root's frontier.
//!
//! Blocks have the numbers of the preorder of the tree here.

use super::queue::RootQueue;
use crate::graphs::cfg::ControlFlow;
use crate::graphs::liveness::LiveBlocks;
use crate::graphs::observe::{
    EdgeOutcome, NotEnqueued, PlacementObserver, PlacementStep, Skip, report,
};
use crate::graphs::search::NONE;
use crate::graphs::stamps::StampSet;
use crate::graphs::steps::step;

/// A graph numbered in preorder of its dominator tree, and the tree.
#[derive(Copy, Clone, Debug)]
pub(super) struct NumberedGraph<'a, C> {
    pub(super) cfg: &'a C,
    pub(super) idoms: &'a [u32],
    pub(super) levels: &'a [u32],
    /// One past the last block of the subtree.
    pub(super) ends: &'a [u32],
    /// The result of [`find_leads_to`].
    pub(super) leads_to: &'a [u32],
}

/// Finds for each block the smallest level that an edge leads to from its subtree, other than from a block to its own
/// children in the tree. The graph is numbered in preorder of its dominator tree.
///
/// If that is deeper than a block, then no edge leads from below to the block's level or above, so its
/// frontier is empty.
pub(crate) fn find_leads_to(
    cfg: &impl ControlFlow,
    idoms: &[u32],
    levels: &[u32],
    leads_to: &mut Vec<u32>,
) {
    leads_to.clear();
    leads_to.resize(cfg.n_blocks(), NONE);
    for block in (0..cfg.n_blocks()).rev() {
        let mut smallest = leads_to[block];
        for &succ in cfg.succs(block as u32) {
            step();
            if succ == 0 || idoms[succ as usize] != block as u32 {
                smallest = smallest.min(levels[succ as usize]);
            }
        }
        leads_to[block] = smallest;
        let above = &mut leads_to[idoms[block] as usize];
        *above = smallest.min(*above);
    }
}

/// Memory of the walks, to be reused from slot to slot.
#[derive(Clone, Debug, Default)]
pub(super) struct LevelWalk {
    has_phi: StampSet,
    was_walked: StampSet,
    is_root: StampSet,
    /// The blocks with children where the slot is live.
    has_children: StampSet,
    /// First of these children; then the next one of the same parent.
    first_child: Vec<u32>,
    next_sibling: Vec<u32>,
    work: Vec<u32>,
}

impl LevelWalk {
    /// Finds the blocks that need phis of a slot that some blocks write, and passes each on once. If
    /// `live` is given, phis where the slot is not live are left out.
    pub(super) fn place<C: ControlFlow>(
        &mut self,
        graph: &NumberedGraph<'_, C>,
        queue: &mut impl RootQueue,
        writes: &[u32],
        live: Option<&LiveBlocks>,
        mut found: impl FnMut(u32),
        observer: &mut impl PlacementObserver,
    ) {
        self.start(graph, live);
        for &block in writes {
            report(observer, 1, PlacementStep::Write { block });
            self.push_root(graph, queue, block, observer);
        }
        while let Some(root) = queue.pop() {
            report(observer, 1, PlacementStep::Dequeue { block: root });
            let root_level = graph.levels[root as usize];
            self.was_walked.insert(root);
            self.work.push(root);
            while let Some(block) = self.work.pop() {
                report(observer, 1, PlacementStep::Visit { block });
                for &succ in graph.cfg.succs(block) {
                    step();
                    let outcome = self.look_at(graph, succ, root_level, live);
                    report(observer, 1, PlacementStep::Edge { src: block, dst: succ, outcome });
                    if outcome == EdgeOutcome::Phi {
                        found(succ);
                        self.push_root(graph, queue, succ, observer);
                    }
                }
                match live {
                    Some(_) => self.push_live_children(graph, block, root_level, observer),
                    None => self.push_children(graph, block, root_level, observer),
                }
            }
        }
    }

    /// Looks at an edge to a block, which may need a phi from here on.
    #[inline]
    fn look_at<C>(
        &mut self,
        graph: &NumberedGraph<'_, C>,
        block: u32,
        root_level: u32,
        live: Option<&LiveBlocks>,
    ) -> EdgeOutcome {
        if graph.levels[block as usize] > root_level {
            // The root strictly dominates it.
            EdgeOutcome::Deeper
        } else if live.is_some_and(|live| !live.contains(block)) {
            EdgeOutcome::NotLive
        } else if !self.has_phi.insert(block) {
            EdgeOutcome::HasPhi
        } else {
            EdgeOutcome::Phi
        }
    }

    fn start<C: ControlFlow>(&mut self, graph: &NumberedGraph<'_, C>, live: Option<&LiveBlocks>) {
        let n = graph.cfg.n_blocks();
        for set in [&mut self.has_phi, &mut self.was_walked, &mut self.is_root] {
            set.start(n);
        }
        let Some(live) = live else { return };
        self.has_children.start(n);
        if self.first_child.len() < n {
            self.first_child.resize(n, NONE);
            self.next_sibling.resize(n, NONE);
        }
        for &block in live.blocks().iter().filter(|&&block| block != 0) {
            let parent = graph.idoms[block as usize];
            let first = &mut self.first_child[parent as usize];
            let is_only = self.has_children.insert(parent);
            self.next_sibling[block as usize] = if is_only { NONE } else { *first };
            *first = block;
        }
    }

    /// Makes a block a root, unless it is one or its frontier is empty.
    fn push_root<C>(
        &mut self,
        graph: &NumberedGraph<'_, C>,
        queue: &mut impl RootQueue,
        block: u32,
        observer: &mut impl PlacementObserver,
    ) {
        let level = graph.levels[block as usize];
        let reason = if graph.leads_to[block as usize] > level {
            NotEnqueued::NoFrontier
        } else if !self.is_root.insert(block) {
            NotEnqueued::Again
        } else {
            report(observer, 1, PlacementStep::Enqueue { block });
            return queue.push(level, block);
        };
        report(observer, 1, PlacementStep::NotEnqueued { block, reason });
    }

    /// Goes down to the children where the slot is live.
    ///
    /// A live block that is neither a root nor the child of one has the same value on entry as at the
    /// end of its immediate dominator, which is then live too. So a path of live blocks leads from the
    /// closest root above to each block that matters.
    fn push_live_children<C>(
        &mut self,
        graph: &NumberedGraph<'_, C>,
        block: u32,
        root_level: u32,
        observer: &mut impl PlacementObserver,
    ) {
        if !self.has_children.contains(block) {
            return;
        }
        let mut child = self.first_child[block as usize];
        while child != NONE {
            self.push_child(graph, child, root_level, observer);
            child = self.next_sibling[child as usize];
        }
    }

    /// Goes down to all children: a child comes right after its parent or after the subtree of the
    /// child before.
    fn push_children<C>(
        &mut self,
        graph: &NumberedGraph<'_, C>,
        block: u32,
        root_level: u32,
        observer: &mut impl PlacementObserver,
    ) {
        let mut child = block + 1;
        while child < graph.ends[block as usize] {
            self.push_child(graph, child, root_level, observer);
            child = graph.ends[child as usize];
        }
    }

    /// Goes down to a child, unless it was walked, or no edge leads from its subtree to the level of
    /// the root or above.
    #[inline]
    fn push_child<C>(
        &mut self,
        graph: &NumberedGraph<'_, C>,
        child: u32,
        root_level: u32,
        observer: &mut impl PlacementObserver,
    ) {
        step();
        let reason = if graph.leads_to[child as usize] > root_level {
            Skip::NoFrontier
        } else if !self.was_walked.insert(child) {
            Skip::Walked
        } else {
            return self.work.push(child);
        };
        report(observer, 1, PlacementStep::Skip { block: child, reason });
    }
}
