//! Dominator trees.
//!
//! Block `a` dominates block `b` if every path from the entry to `b` goes through `a`. The dominators
//! of a reachable block form a chain, so dominance is a tree: the parent of a block is its *immediate
//! dominator*, the closest dominator other than itself.
//!
//! [`DomTree::semi_nca`] is the algorithm "Semi-NCA" of Georgiadis, Tarjan and Werneck, "Finding
//! Dominators in Practice" (2006), as used by LLVM: semidominators as in Lengauer and Tarjan (1979),
//! by path compression over the depth-first tree; then the immediate dominator of a block is the
//! nearest common ancestor of its semidominator and its parent in the tree built so far. Finding that
//! ancestor by walking upwards is quadratic on some graphs (a long chain that ends in a wide switch
//! whose targets are also entered from above). So the walk has a budget, and beyond it uses jump
//! pointers (Myers 1983), which make it logarithmic. The whole is O(m log n) on any graph, without
//! recursion.
//!
//! [`DomTree::cooper_harvey_kennedy`] is the iteration of Cooper, Harvey and Kennedy, "A Simple, Fast
//! Dominance Algorithm" (2001): a page of code, and quadratic on ladders and else-if chains. It is here
//! for comparison and cross-checks.
//!
//! The tree is numbered in preorder, the children of a block in reverse postorder of the graph. Two
//! properties make it worthwhile to renumber a graph this way:
//! * The blocks that a block dominates are a range, so dominance is two comparisons.
//! * It is a topological order of the edges that do not go back in the depth-first search (the child of
//!   the idom that dominates the source of such an edge comes before the target), so every block except
//!   the entry has a predecessor with a smaller number.
//!
//! Unreachable blocks have no number and are in no relation; edges from them are ignored.

use crate::graphs::cfg::{Cfg, ControlFlow};
use crate::graphs::search::{NONE, Search};
use crate::graphs::steps::step;

/// The dominator tree of a graph.
#[derive(Clone, Debug, Default)]
pub struct DomTree {
    /// The reachable blocks in preorder of the tree.
    preorder: Vec<u32>,
    /// Position in `preorder`, by block; [`NONE`] if unreachable.
    numbers: Vec<u32>,
    /// Number of the immediate dominator, by number; 0 for the entry.
    idoms: Vec<u32>,
    /// Distance from the root, by number.
    levels: Vec<u32>,
    /// One past the last number of the subtree, by number.
    ends: Vec<u32>,
}

/// Memory of the computation, to be reused from graph to graph.
#[derive(Clone, Debug, Default)]
pub struct DomScratch {
    search: Search,
    /// Ancestor by path compression.
    ancestors: Vec<u32>,
    /// Smallest semidominator on the compressed path.
    labels: Vec<u32>,
    semis: Vec<u32>,
    idoms: Vec<u32>,
    path: Vec<u32>,
    jumps: Vec<u32>,
    depths: Vec<u32>,
}

impl DomTree {
    /// The dominator tree of a graph, by Semi-NCA.
    pub fn semi_nca(cfg: &impl ControlFlow) -> DomTree {
        let mut tree = DomTree::default();
        tree.compute(cfg, &mut DomScratch::default());
        tree
    }

    /// Makes this the dominator tree of a graph, by Semi-NCA, in existing memory.
    pub fn compute(&mut self, cfg: &impl ControlFlow, scratch: &mut DomScratch) {
        scratch.search.run(cfg, &mut self.numbers);
        scratch.find_semidominators(cfg, &self.numbers);
        scratch.find_idoms();
        self.number_in_preorder(scratch);
    }

    /// Makes this the dominator tree of a graph whose blocks are already numbered in a preorder of the
    /// tree, all of them reachable, the entry being block 0.
    ///
    /// One pass is enough if also every edge that does not go to a greater number goes to a
    /// dominator, as is so in reducible graphs with siblings in reverse postorder. Then the immediate
    /// dominator of a block `b` is the closest ancestor of block `b - 1`, itself included, that is not
    /// greater than the smallest predecessor of `b`:
    /// * If the smallest predecessor is not the immediate dominator itself, it lies below one of its
    ///   children `c`. Since `c` does not dominate `b`, another predecessor smaller than `b` lies
    ///   below a later child, and so block `b - 1` lies below a later child: its ancestors below the
    ///   immediate dominator are all greater than the smallest predecessor.
    /// * Whether the condition held can be seen afterwards. If each edge that does not go to a
    ///   greater number goes to an ancestor in the tree found, the parent of each block is an
    ///   ancestor of all its predecessors, and so a dominator; and the immediate dominator was among
    ///   the candidates, being an ancestor of block `b - 1` by the numbering.
    ///
    /// Other graphs go through [`compute`](DomTree::compute).
    pub fn compute_numbered(&mut self, cfg: &impl ControlFlow, scratch: &mut DomScratch) {
        if !self.find_numbered(cfg) {
            self.compute(cfg, scratch);
            self.adopt_numbering(scratch);
        }
        debug_assert!(self.is_numbering_of(cfg), "blocks are numbered in preorder");
    }

    /// Makes the one pass. Returns whether the tree is right.
    fn find_numbered(&mut self, cfg: &impl ControlFlow) -> bool {
        let n = cfg.n_blocks() as u32;
        debug_assert_eq!(cfg.entry(), 0, "the entry is block 0");
        self.preorder.clear();
        self.preorder.extend(0..n);
        self.numbers.clear();
        self.numbers.extend(0..n);
        for table in [&mut self.idoms, &mut self.levels, &mut self.ends] {
            table.clear();
            table.resize(n as usize, 0);
        }
        let mut goes_back = false;
        for block in 1..n {
            let mut smallest = block;
            for &pred in cfg.preds(block) {
                smallest = smallest.min(pred);
                goes_back |= pred >= block;
            }
            if smallest == block {
                return false;
            }
            let mut ancestor = block - 1;
            while ancestor > smallest {
                step();
                self.ends[ancestor as usize] = block;
                ancestor = self.idoms[ancestor as usize];
            }
            self.idoms[block as usize] = ancestor;
            self.levels[block as usize] = self.levels[ancestor as usize] + 1;
        }
        let mut last = n - 1;
        while last != 0 {
            self.ends[last as usize] = n;
            last = self.idoms[last as usize];
        }
        self.ends[0] = n;
        let is_above = |block, pred: &u32| *pred < block || *pred < self.ends[block as usize];
        !goes_back || (1..n).all(|block| cfg.preds(block).iter().all(|pred| is_above(block, pred)))
    }

    /// Replaces the preorder by the order of the graph's own numbers.
    fn adopt_numbering(&mut self, scratch: &mut DomScratch) {
        if self.preorder.iter().zip(0..).all(|(&block, number)| block == number) {
            return;
        }
        let DomScratch { semis: idoms, labels: levels, ancestors: ends, .. } = scratch;
        for table in [&mut *idoms, &mut *levels, &mut *ends] {
            table.clear();
        }
        for (block, &number) in self.numbers.iter().enumerate() {
            let i = number as usize;
            idoms.push(self.preorder[self.idoms[i] as usize]);
            levels.push(self.levels[i]);
            ends.push(block as u32 + self.ends[i] - number);
        }
        std::mem::swap(&mut self.idoms, idoms);
        std::mem::swap(&mut self.levels, levels);
        std::mem::swap(&mut self.ends, ends);
        for (number, block) in self.preorder.iter_mut().enumerate() {
            *block = number as u32;
            self.numbers[number] = number as u32;
        }
    }

    /// Whether this is the dominator tree of a graph, and the blocks have the numbers of its preorder.
    fn is_numbering_of(&self, cfg: &impl ControlFlow) -> bool {
        let tree = DomTree::semi_nca(cfg);
        self.is_numbering()
            && tree.n_reachable() == cfg.n_blocks()
            && (0..cfg.n_blocks() as u32).all(|block| {
                tree.idom(block) == self.idom(block)
                    && self.idom(block).is_none_or(|idom| self.dominates(idom, block))
            })
    }

    /// A graph renumbered in preorder of its dominator tree (which must be this one), without the
    /// unreachable blocks, and its dominator tree.
    pub fn renumber(&self, cfg: &impl ControlFlow) -> (Cfg, DomTree) {
        let mut renumbered = Cfg::default();
        self.renumber_into(cfg, &mut renumbered);
        let numbers: Vec<u32> = (0..self.n_reachable() as u32).collect();
        let tree = DomTree { preorder: numbers.clone(), numbers, ..self.clone() };
        (renumbered, tree)
    }

    /// Makes `renumbered` that graph, in existing memory.
    pub(crate) fn renumber_into(&self, cfg: &impl ControlFlow, renumbered: &mut Cfg) {
        let succs = |&block: &u32| cfg.succs(block).iter().map(|&succ| self.numbers[succ as usize]);
        renumbered.rebuild(0, self.preorder.iter().map(succs));
    }

    /// Whether the blocks of the graph have the numbers of the preorder.
    pub fn is_numbering(&self) -> bool {
        self.preorder.len() == self.numbers.len()
            && self.preorder.iter().zip(0..).all(|(&block, number)| block == number)
    }

    /// The dominator tree of a graph, by the iteration of Cooper, Harvey and Kennedy.
    pub fn cooper_harvey_kennedy(cfg: &impl ControlFlow) -> DomTree {
        let mut tree = DomTree::default();
        let mut scratch = DomScratch::default();
        scratch.search.run(cfg, &mut tree.numbers);
        scratch.iterate_idoms(cfg);
        tree.number_in_preorder(&mut scratch);
        tree
    }

    /// Turns the immediate dominators by search number into the tree.
    fn number_in_preorder(&mut self, scratch: &mut DomScratch) {
        let n = scratch.search.vertices.len();
        let DomScratch { search, idoms, labels: sizes, semis: numbers, .. } = scratch;
        let Search { vertices, postorder, .. } = search;
        sizes.clear();
        sizes.resize(n, 1);
        // The search leaves a block before it leaves its dominators.
        for &v in &postorder[..n - 1] {
            sizes[idoms[v as usize] as usize] += sizes[v as usize];
        }
        for table in [&mut self.preorder, &mut self.idoms, &mut self.levels, &mut self.ends] {
            table.clear();
            table.resize(n, 0);
        }
        // Each block takes the next free number in the range of its parent, and turns its own size
        // into the next free number in its own range.
        numbers.clear();
        numbers.resize(n, 0);
        for &v in postorder.iter().rev() {
            let (v, parent) = (v as usize, idoms[v as usize] as usize);
            let mut number = 0;
            if v != 0 {
                number = numbers[parent];
                numbers[parent] += sizes[v];
            }
            let i = number as usize;
            self.preorder[i] = vertices[v];
            self.numbers[vertices[v] as usize] = number;
            self.ends[i] = number + sizes[v];
            if v != 0 {
                // The parent has its number in `preorder` already: find it by its block.
                let idom = self.numbers[vertices[parent] as usize];
                self.idoms[i] = idom;
                self.levels[i] = self.levels[idom as usize] + 1;
            }
            numbers[v] = number + 1;
        }
    }

    /// The number of reachable blocks.
    #[inline]
    pub fn n_reachable(&self) -> usize {
        self.preorder.len()
    }

    /// The reachable blocks in preorder of the tree, the children of a block in reverse postorder of
    /// the graph; the entry comes first.
    pub fn preorder(&self) -> &[u32] {
        &self.preorder
    }

    /// The number of each block's immediate dominator, by number; 0 for the entry.
    pub fn idoms_by_number(&self) -> &[u32] {
        &self.idoms
    }

    /// The distance of each block from the entry in the tree, by number.
    pub fn levels_by_number(&self) -> &[u32] {
        &self.levels
    }

    /// One past the last number that each block dominates, by number.
    pub fn ends_by_number(&self) -> &[u32] {
        &self.ends
    }

    /// The position of a block in the preorder; `None` if it is unreachable.
    #[inline]
    pub fn number(&self, block: u32) -> Option<u32> {
        let number = self.numbers[block as usize];
        (number != NONE).then_some(number)
    }

    /// The immediate dominator of a block; `None` for the entry and for unreachable blocks.
    pub fn idom(&self, block: u32) -> Option<u32> {
        let number = self.number(block)?;
        (number != 0).then(|| self.preorder[self.idoms[number as usize] as usize])
    }

    /// The distance of a block from the entry in the tree; `None` if it is unreachable.
    pub fn level(&self, block: u32) -> Option<u32> {
        self.number(block).map(|number| self.levels[number as usize])
    }

    /// One past the last number of the blocks that a block dominates, itself included: these have
    /// the numbers from its own to this one. `None` if the block is unreachable.
    pub fn subtree_end(&self, block: u32) -> Option<u32> {
        self.number(block).map(|number| self.ends[number as usize])
    }

    /// Whether `a` dominates `b`. A reachable block dominates itself; an unreachable one is in no
    /// relation.
    #[inline]
    pub fn dominates(&self, a: u32, b: u32) -> bool {
        match (self.number(a), self.number(b)) {
            (Some(a), Some(b)) => a <= b && b < self.ends[a as usize],
            _ => false,
        }
    }

    /// Whether `a` dominates `b` and is not `b`.
    #[inline]
    pub fn strictly_dominates(&self, a: u32, b: u32) -> bool {
        a != b && self.dominates(a, b)
    }
}

impl DomScratch {
    /// The semidominator of a block is the smallest search number from which a path leads to it whose
    /// inner blocks all have greater numbers than it.
    fn find_semidominators(&mut self, cfg: &impl ControlFlow, numbers: &[u32]) {
        let n = self.search.vertices.len() as u32;
        self.ancestors.clear();
        self.ancestors.extend_from_slice(&self.search.parents);
        self.labels.clear();
        self.labels.extend(0..n);
        self.semis.clear();
        self.semis.resize(n as usize, 0);
        for w in (1..n).rev() {
            let mut semi = self.search.parents[w as usize];
            for &pred in cfg.preds(self.search.vertices[w as usize]) {
                let v = numbers[pred as usize];
                if v != NONE {
                    semi = semi.min(self.eval(v, w));
                }
            }
            self.semis[w as usize] = semi;
            self.labels[w as usize] = semi;
        }
    }

    /// The smallest semidominator of `v` and its ancestors that are greater than `w`; `v` itself if
    /// it is not greater than `w`. Compresses the path.
    fn eval(&mut self, v: u32, w: u32) -> u32 {
        if self.ancestors[v as usize] <= w {
            return self.labels[v as usize];
        }
        let mut top = v;
        while self.ancestors[top as usize] > w {
            step();
            self.path.push(top);
            top = self.ancestors[top as usize];
        }
        let ancestor = self.ancestors[top as usize];
        let mut label = self.labels[top as usize];
        while let Some(u) = self.path.pop() {
            label = label.min(self.labels[u as usize]);
            self.labels[u as usize] = label;
            self.ancestors[u as usize] = ancestor;
        }
        label
    }

    /// The immediate dominator of `w` is the closest ancestor of its parent, in the tree built so far,
    /// that is not greater than its semidominator. Numbers decrease on the way up.
    fn find_idoms(&mut self) {
        let n = self.search.vertices.len();
        self.idoms.clear();
        self.idoms.reserve(n);
        self.idoms.push(0);
        let mut budget = 4 * n;
        for w in 1..n {
            let mut idom = self.search.parents[w];
            while idom > self.semis[w] {
                step();
                idom = self.idoms[idom as usize];
                budget = budget.saturating_sub(1);
            }
            self.idoms.push(idom);
            if budget == 0 {
                return self.find_idoms_by_jumps(w + 1);
            }
        }
    }

    /// Does the same from block `rest` on, in O(log n) for each block: every block also knows one far
    /// ancestor, chosen so that the distances on the way up are those of a skew binary number.
    fn find_idoms_by_jumps(&mut self, rest: usize) {
        let n = self.search.vertices.len();
        self.jumps.clear();
        self.depths.clear();
        self.jumps.push(0);
        self.depths.push(0);
        for w in 1..n {
            if w >= rest {
                let (semi, mut idom) = (self.semis[w], self.search.parents[w]);
                while idom > semi {
                    step();
                    let jump = self.jumps[idom as usize];
                    idom = if jump >= semi { jump } else { self.idoms[idom as usize] };
                }
                self.idoms.push(idom);
            }
            let idom = self.idoms[w];
            let near = self.jumps[idom as usize];
            let far = self.jumps[near as usize];
            let depth = |v: u32| self.depths[v as usize];
            let equal = depth(idom) - depth(near) == depth(near) - depth(far);
            self.depths.push(depth(idom) + 1);
            self.jumps.push(if equal { far } else { idom });
        }
    }

    /// The iteration of Cooper, Harvey and Kennedy, in reverse postorder until nothing changes.
    fn iterate_idoms(&mut self, cfg: &impl ControlFlow) {
        let DomScratch { search, idoms, labels: numbers, semis: found, .. } = self;
        iterate(cfg, search, numbers, found, u64::MAX);
        // From reverse postorder to the order in which the search finds blocks.
        let in_order = |number: u32| search.postorder[found.len() - 1 - number as usize];
        idoms.clear();
        idoms.resize(found.len(), 0);
        for (number, &idom) in (0..).zip(&*found) {
            idoms[in_order(number) as usize] = in_order(idom);
        }
    }
}

/// The iteration of Cooper, Harvey and Kennedy in a graph that was searched: `idoms` receives the immediate
/// dominators by number in reverse postorder, the entry being its own, and `numbers` these numbers by block.
/// Stops after `steps_max` steps up the tree; returns how many it took.
pub(crate) fn iterate(
    cfg: &impl ControlFlow,
    search: &Search,
    numbers: &mut Vec<u32>,
    idoms: &mut Vec<u32>,
    steps_max: u64,
) -> u64 {
    let order = || search.postorder.iter().rev().map(|&found| search.vertices[found as usize]);
    numbers.clear();
    numbers.resize(cfg.n_blocks(), NONE);
    for (number, block) in (0..).zip(order()) {
        numbers[block as usize] = number;
    }
    idoms.clear();
    idoms.resize(search.vertices.len(), NONE);
    idoms[0] = 0;
    let mut n_steps = 0;
    let mut has_changed = true;
    while std::mem::take(&mut has_changed) {
        for (number, block) in (0_usize..).zip(order()).skip(1) {
            let mut idom = NONE;
            for &pred in cfg.preds(block) {
                let mut other = numbers[pred as usize];
                if other == NONE || idoms[other as usize] == NONE {
                    continue;
                }
                if idom == NONE {
                    idom = other;
                }
                // To the nearest common ancestor in the tree found so far.
                while idom != other {
                    step();
                    n_steps += 1;
                    let deeper = if idom > other { &mut idom } else { &mut other };
                    *deeper = idoms[*deeper as usize];
                }
                if n_steps >= steps_max {
                    return steps_max;
                }
            }
            has_changed |= idoms[number] != idom;
            idoms[number] = idom;
        }
    }
    n_steps
}

#[cfg(test)]
mod tests;
