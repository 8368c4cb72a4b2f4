//! The sides of branches that rarely run, by the hints of the bytecode. Their code stands after all other code.
//!
//! An edge is *rare* if a hint says that its branch mostly goes the other way. A block is cold if it is entered by rare
//! edges and from cold blocks only, so that a side which has branches and loops of its own is cold as a whole. A rare edge
//! into a block that other edges enter as well gets a block of its own, with the moves that it needs.
//!
//! A loop is left some time, however unlikely that is in each round. So an edge that leaves a loop is rare only if the loop
//! has another exit that is neither unlikely nor a trap, nor on a cold side.

use slotvm_bytecode::Op;
use slotvm_ssa::graphs::ids::Loop;
use slotvm_ssa::graphs::loops::LoopForest;
use slotvm_ssa::ir::Function;
use slotvm_ssa::ir::entity::{Block, Edge};
use slotvm_ssa::ir::irop::{IrOp, Opcode};

use super::order::LOOPS_LOOKED_AT_MAX;

/// The blocks and edges of a function that hints make cold.
pub(super) struct ColdSides {
    /// Whether each block is cold.
    blocks: Vec<bool>,
    /// The number of exits of each loop by which it is expected to be left.
    n_usual_exits: Vec<u32>,
}

impl ColdSides {
    /// Finds them in linear time.
    pub(super) fn find(func: &Function, loops: &LoopForest) -> ColdSides {
        // Blocks that are cold however loops are left.
        let blocks = cold_blocks(func, loops, |edge| {
            is_unlikely(func, edge) && loops_left(func, loops, edge).next().is_none()
        });
        let mut n_usual_exits = vec![0; loops.n_loops()];
        for block in func.blocks().filter(|block| !blocks[block.index()]) {
            for edge in func.succ_edges(block).filter(|&edge| !is_unlikely(func, edge)) {
                if !is_never_left(func, func.edge_dst(edge)) {
                    loops_left(func, loops, edge).for_each(|left| n_usual_exits[left.index()] += 1);
                }
            }
        }
        let mut sides = ColdSides { blocks, n_usual_exits };
        sides.blocks = cold_blocks(func, loops, |edge| sides.is_rare(func, loops, edge));
        sides
    }

    /// Whether a block is cold.
    pub(super) fn has(&self, block: Block) -> bool {
        self.blocks[block.index()]
    }

    /// The rare edge of a block that needs a block of its own, if there is one.
    pub(super) fn edge_aside(
        &self,
        func: &Function,
        loops: &LoopForest,
        block: Block,
    ) -> Option<Edge> {
        let edge = func.unlikely_edge(block)?;
        let is_covered = self.has(block) || self.has(func.edge_dst(edge));
        (!is_covered && self.is_rare(func, loops, edge)).then_some(edge)
    }

    fn is_rare(&self, func: &Function, loops: &LoopForest, edge: Edge) -> bool {
        is_unlikely(func, edge)
            && loops_left(func, loops, edge).all(|left| self.n_usual_exits[left.index()] > 0)
    }
}

/// The blocks that only rare edges and cold blocks lead to.
fn cold_blocks(func: &Function, loops: &LoopForest, is_rare: impl Fn(Edge) -> bool) -> Vec<bool> {
    let mut cold = vec![false; func.n_blocks()];
    // Blocks are numbered so that only what closes a loop leads back, and the sources of all other edges come before.
    for block in func.blocks().skip(1) {
        let is_cold = |&edge: &Edge| {
            let src = func.edge_src(edge);
            let is_back = src >= block;
            is_back && heads_loop(loops, block) || !is_back && cold[src.index()] || is_rare(edge)
        };
        cold[block.index()] = func.pred_edges(block).iter().all(is_cold);
    }
    cold
}

/// Whether a hint says that an edge is rarely taken.
fn is_unlikely(func: &Function, edge: Edge) -> bool {
    func.unlikely_edge(func.edge_src(edge)) == Some(edge)
}

/// Whether a block only traps, or leaves for a block that has never run.
pub(super) fn is_never_left(func: &Function, block: Block) -> bool {
    let opcode = func.opcode(func.terminator(block));
    matches!(opcode, Opcode::Op(Op::Unreachable | Op::Trap) | Opcode::Ir(IrOp::Exit))
}

/// Whether all edges back to a block come from a loop that only it enters.
fn heads_loop(loops: &LoopForest, block: Block) -> bool {
    let innermost = loops.innermost(block.0);
    innermost.is_some_and(|of| loops.header(of) == block.0 && !loops.is_irreducible(of))
}

/// The loops that an edge leaves, from the innermost one on. If it leaves very many, the outermost ones are left out.
fn loops_left<'a>(
    func: &'a Function,
    loops: &'a LoopForest,
    edge: Edge,
) -> impl Iterator<Item = Loop> + 'a {
    let dst = func.edge_dst(edge).0;
    let innermost = loops.innermost(func.edge_src(edge).0);
    let around = std::iter::successors(innermost, |&inner| loops.parent(inner));
    around.take(LOOPS_LOOKED_AT_MAX).take_while(move |&of| !loops.contains(of, dst))
}
