//! The order of blocks in the code, and the way each is left.

use slotvm_bytecode::Op;

use crate::ir::Function;
use crate::ir::entity::Block;
use crate::ir::irop::Opcode;

/// The blocks in the order of the code.
pub(super) struct Layout {
    pub(super) blocks: Vec<Block>,
    /// Whether some block branches to the block instead of running into it.
    is_branched_to: Vec<bool>,
}

/// The end of a block's code.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Leave {
    /// Leaves the function by its terminator.
    Inst,
    /// Runs into the next block.
    FallThrough,
    /// `br`.
    Br(Block),
    /// `br_if`, then `br` to another block unless that is the next one.
    BrIf {
        to: Block,
        other: Option<Block>,
        /// Whether it branches where the condition is not true.
        inverted: bool,
    },
    /// `br_table`.
    BrTable,
}

impl Leave {
    pub(super) fn is_inverted(self) -> bool {
        matches!(self, Leave::BrIf { inverted: true, .. })
    }
}

impl Layout {
    /// Puts the blocks into the order of the bytecode that they were made from. The block of a split
    /// edge comes after the block that the edge leaves if that ran on along it, and else at the end.
    pub(super) fn of(f: &Function) -> Layout {
        let mut blocks: Vec<Block> = f.blocks().collect();
        blocks.sort_by_key(|&block| {
            (block != Function::ENTRY, is_aside(f, block), f.block_offset(block), block)
        });
        let mut layout = Layout { blocks, is_branched_to: vec![false; f.n_blocks()] };
        for i in 0..layout.blocks.len() {
            let (block, next) = (layout.blocks[i], layout.blocks.get(i + 1).copied());
            match layout.leave(f, block, next) {
                Leave::Inst | Leave::FallThrough => {}
                Leave::Br(to) => layout.is_branched_to[to.index()] = true,
                Leave::BrIf { to, other, .. } => {
                    for to in [Some(to), other].into_iter().flatten() {
                        layout.is_branched_to[to.index()] = true;
                    }
                }
                Leave::BrTable => {
                    for edge in f.succ_edges(block) {
                        layout.is_branched_to[f.edge_dst(edge).index()] = true;
                    }
                }
            }
        }
        layout
    }

    /// Whether a block needs a label.
    pub(super) fn is_branched_to(&self, block: Block) -> bool {
        self.is_branched_to[block.index()]
    }

    /// The way a block is left that is followed by `next`.
    pub(super) fn leave(&self, f: &Function, block: Block, next: Option<Block>) -> Leave {
        let target = |i: usize| f.succ_edges(block).nth(i).map(|edge| f.edge_dst(edge));
        let first = target(0);
        match (f.opcode(f.terminator(block)), first) {
            (Opcode::Op(Op::Br), Some(_)) if first == next => Leave::FallThrough,
            (Opcode::Op(Op::Br), Some(to)) => Leave::Br(to),
            (Opcode::Op(Op::BrIf), Some(to)) => {
                let other = target(1).expect("a branch has two targets");
                if Some(other) == next {
                    Leave::BrIf { to, other: None, inverted: false }
                } else if first == next {
                    Leave::BrIf { to: other, other: None, inverted: true }
                } else {
                    Leave::BrIf { to, other: Some(other), inverted: false }
                }
            }
            (Opcode::Op(Op::BrTable), _) => Leave::BrTable,
            _ => Leave::Inst,
        }
    }
}

/// Whether a block is that of a split edge which the code before did not run along.
fn is_aside(f: &Function, block: Block) -> bool {
    let &[edge] = f.pred_edges(block) else { return false };
    let src = f.edge_src(edge);
    f.block_offset(src) == f.block_offset(block) && f.succ_edges(src).next_back() != Some(edge)
}
