//! Analyses of a function's control flow, made when somebody asks and kept as long as blocks and edges stay.
//!
//! They belong to the function that rows of the table go through; [`Driver`](crate::pipeline::Driver) forgets them after each row
//! that says it has changed blocks or edges. Where debug assertions are on, it checks what the others claim. Memory is
//! that of the functions before.

use crate::graphs::cfg::{Cfg, ControlFlow};
use crate::graphs::dominators::{DomScratch, DomTree};
use crate::graphs::loops::{LoopForest, LoopScratch};
use crate::ir::Function;
use crate::ir::entity::Block;
use crate::ir::graph::rebuild_control_flow;

/// See the module documentation.
#[derive(Debug, Default)]
pub struct Analyses {
    graph: Kept<Cfg>,
    loops: Kept<LoopForest>,
    tree: Kept<DomTree>,
    loop_scratch: LoopScratch,
    dom_scratch: DomScratch,
}

/// A result, and whether it is that of the function as it is.
#[derive(Debug, Default)]
struct Kept<T> {
    result: T,
    is_known: bool,
}

impl<T> Kept<T> {
    /// The result, which `make` makes in the memory of another one if it is not known.
    fn get(&mut self, make: impl FnOnce(&mut T)) -> &T {
        if !self.is_known {
            make(&mut self.result);
            self.is_known = true;
        }
        &self.result
    }
}

impl Analyses {
    /// The graph of the blocks.
    pub fn graph(&mut self, f: &Function) -> &Cfg {
        self.graph.get(|graph| rebuild_control_flow(f, graph))
    }

    /// The loops, with the graph that they are of.
    pub fn loops(&mut self, f: &Function) -> (&LoopForest, &Cfg) {
        let graph = self.graph.get(|graph| rebuild_control_flow(f, graph));
        (self.loops.get(|loops| loops.compute(graph, &mut self.loop_scratch)), graph)
    }

    /// The dominator tree.
    pub fn tree(&mut self, f: &Function) -> &DomTree {
        let graph = self.graph.get(|graph| rebuild_control_flow(f, graph));
        self.tree.get(|tree| tree.compute_numbered(graph, &mut self.dom_scratch))
    }

    /// The loops, which are not kept.
    pub fn take_loops(&mut self, f: &Function) -> LoopForest {
        self.loops(f);
        self.loops.is_known = false;
        std::mem::take(&mut self.loops.result)
    }

    /// Forgets what is known: blocks or edges have changed, or the function is another one.
    pub fn forget(&mut self) {
        (self.graph.is_known, self.loops.is_known, self.tree.is_known) = (false, false, false);
    }

    /// Checks that what is known is known of this function.
    ///
    /// # Panics
    /// Panics if the graph is that of other blocks or edges.
    pub fn check(&self, f: &Function) {
        if self.graph.is_known {
            let known = &self.graph.result;
            let is_same = |block: Block| {
                let succs = f.succ_edges(block).map(|edge| f.edge_dst(edge).0);
                succs.eq(known.succs(block.0).iter().copied())
            };
            let is_same = known.n_blocks() == f.n_blocks() && f.blocks().all(is_same);
            assert!(is_same, "the blocks or edges of {} have changed", f.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs::dominators::DomTree;
    use crate::tools::samples::{module, slot_form};

    const SOURCE: &str = "func f(n: i32) { a: local.get n br_if a b: local.get n br_if b return }
        func g() { return }";

    #[test]
    fn analyses_are_those_of_the_function_until_they_are_forgotten() {
        let module = module(SOURCE);
        let [f, g] = [0, 1].map(|func| slot_form(&module, func, &Default::default()));
        let mut analyses = Analyses::default();
        for function in [&f, &g, &f] {
            let n_loops = analyses.loops(function).0.n_loops();
            assert_eq!(n_loops, if function.func == 0 { 2 } else { 0 });
            let n_blocks = analyses.graph(function).n_blocks();
            assert_eq!(n_blocks, function.n_blocks());
            let expected = DomTree::semi_nca(analyses.graph(function));
            assert_eq!(analyses.tree(function).idoms_by_number(), expected.idoms_by_number());
            analyses.check(function);
            assert_eq!(analyses.take_loops(function).n_loops(), n_loops);
            assert_eq!(analyses.loops(function).0.n_loops(), n_loops);
            analyses.forget();
        }
    }

    #[test]
    #[should_panic(expected = "the blocks or edges of g have changed")]
    fn what_is_known_of_another_function_is_found() {
        let module = module(SOURCE);
        let [f, g] = [0, 1].map(|func| slot_form(&module, func, &Default::default()));
        let mut analyses = Analyses::default();
        analyses.graph(&f);
        analyses.check(&g);
    }
}
