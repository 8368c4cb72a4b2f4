//! Block sealing, and the edges that leave loops.

use slotvm_ssa::graphs::ids::Loop;
use slotvm_ssa::graphs::loops::LoopForest;
use slotvm_ssa::ir::Function;
use slotvm_ssa::ir::entity::{Block, Edge};
use slotvm_ssa::ir::graph::control_flow;

/// Detects when all predecessors of a block are filled.
pub(super) struct Sealing {
    /// Number of in-edges whose sources are not filled yet, by block.
    open_edges: Vec<u32>,
}

impl Sealing {
    pub(super) fn new(func: &Function) -> Sealing {
        let n_preds = |block| func.pred_edges(block).len() as u32;
        Sealing { open_edges: func.blocks().map(n_preds).collect() }
    }

    /// Records that a block is filled, and seals the successors whose last unfilled predecessor it was.
    pub(super) fn filled(&mut self, func: &Function, block: Block, mut seal: impl FnMut(Block)) {
        for edge in func.succ_edges(block) {
            let succ = func.edge_dst(edge);
            let open = &mut self.open_edges[succ.index()];
            *open -= 1;
            if *open == 0 {
                seal(succ);
            }
        }
    }
}

/// Maximum number of loops examined around a branch. If both targets lie outside this many loops, their
/// order matters little; the limit keeps deep nests from costing quadratic time.
pub(super) const LOOPS_LOOKED_AT_MAX: usize = 16;

/// The loops of a function.
pub(crate) fn find_loops(func: &Function) -> LoopForest {
    LoopForest::new(&control_flow(func))
}

/// Whether edge `a` is to come before edge `b` of a block, since it leaves more loops. An edge that goes back to the head
/// of a loop comes first: the head has been visited, and where the edge has moves of its own, these then stand beside the
/// branch.
pub(super) fn comes_first(func: &Function, loops: &LoopForest, a: Edge, b: Edge) -> bool {
    // Blocks are numbered so that only what closes a loop leads back.
    let is_back = |edge: Edge| func.edge_dst(edge) <= func.edge_src(edge);
    match (is_back(a), is_back(b)) {
        (false, false) => leaves_more_loops(func, loops, a, b),
        (is_a, is_b) => is_a && !is_b,
    }
}

fn leaves_more_loops(func: &Function, loops: &LoopForest, a: Edge, b: Edge) -> bool {
    let (to_a, to_b) = (func.edge_dst(a).0, func.edge_dst(b).0);
    let around = |&inner: &Loop| loops.parent(inner);
    let innermost = loops.innermost(func.edge_src(a).0);
    let mut looked_at = std::iter::successors(innermost, around).take(LOOPS_LOOKED_AT_MAX);
    // The innermost loop that has at least one of the targets decides.
    let one_inside = |&it: &Loop| loops.contains(it, to_a) || loops.contains(it, to_b);
    looked_at.find(one_inside).is_some_and(|it| !loops.contains(it, to_a))
}

#[cfg(test)]
mod tests {
    use slotvm_bytecode::{text, verify};
    use slotvm_ssa::construction::build::{BuildOptions, BuildScratch, build};

    use super::*;

    fn function(source: &str) -> Function {
        let module = verify(text::parse(source).unwrap()).unwrap();
        build(&module, 0, &BuildOptions::default(), &mut BuildScratch::default())
    }

    const NEST: &str = "
        func f(n: i32) {
        outer:
          local.get n br_if out
        inner:
          local.get n br_if out
          local.get n br_if inner
          local.get n br_if outer
          br inner
        out:
          return
        }";

    #[test]
    fn dominators_come_first_and_blocks_are_sealed_when_their_predecessors_are_filled() {
        let func = function(NEST);
        let order: Vec<Block> = find_loops(&func).reverse_postorder().map(Block).collect();
        assert_eq!(order.len(), func.n_blocks());
        assert_eq!(order[0], Function::ENTRY);
        let mut filled = vec![false; func.n_blocks()];
        let mut sealed = Vec::new();
        let mut sealing = Sealing::new(&func);
        for &block in &order {
            let is_new = block == Function::ENTRY
                || func.pred_edges(block).iter().any(|&e| filled[func.edge_src(e).index()]);
            assert!(is_new, "{block} is reached by no block before");
            filled[block.index()] = true;
            sealing.filled(&func, block, |block| {
                assert!(func.pred_edges(block).iter().all(|&e| filled[func.edge_src(e).index()]));
                sealed.push(block);
            });
        }
        sealed.sort_unstable();
        assert_eq!(sealed, func.blocks().skip(1).collect::<Vec<_>>());
    }

    #[test]
    fn the_edge_that_leaves_more_loops_is_known() {
        let func = function(NEST);
        let loops = find_loops(&func);
        assert_eq!(loops.n_loops(), 2);
        let mut n_differences = 0;
        for block in func.blocks() {
            let edges: Vec<Edge> = func.succ_edges(block).collect();
            let [a, b] = edges[..] else { continue };
            let depth_left = |edge| {
                let inside = |&it: &Loop| loops.contains(it, func.edge_dst(edge).0);
                let innermost = loops.innermost(block.0);
                std::iter::successors(innermost, |&n| loops.parent(n)).position(|n| inside(&n))
            };
            // `None`, all loops left, must count as more than any number.
            let (of_a, of_b) = (depth_left(a), depth_left(b));
            let (of_a, of_b) = (of_a.unwrap_or(usize::MAX), of_b.unwrap_or(usize::MAX));
            assert_eq!(leaves_more_loops(&func, &loops, a, b), of_a > of_b, "{block}");
            assert_eq!(leaves_more_loops(&func, &loops, b, a), of_b > of_a, "{block}");
            n_differences += usize::from(of_a != of_b);
        }
        assert!(n_differences >= 3);
    }

    #[test]
    fn deep_nests_are_cut_off() {
        let depth = 4 * LOOPS_LOOKED_AT_MAX;
        let mut source = String::from("func f(n: i32) {\n");
        for i in 0..depth {
            source += &format!("h{i}: local.get n br_if a\n");
        }
        source += "local.get n br_if b\n";
        for i in (0..depth).rev() {
            source += &format!("local.get n br_if h{i}\n");
        }
        source += "a: return b: unreachable }";
        let func = function(&source);
        let loops = find_loops(&func);
        assert_eq!(loops.n_loops(), depth);
        for block in func.blocks() {
            if let [a, b] = func.succ_edges(block).collect::<Vec<_>>()[..] {
                let both = leaves_more_loops(&func, &loops, a, b)
                    && leaves_more_loops(&func, &loops, b, a);
                assert!(!both, "{block}");
            }
        }
    }
}
