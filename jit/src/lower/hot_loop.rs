//! Marks the hottest loop of a function, so that its place in the machine code can be found.
//!
//! The hottest loop is the deepest one, among those the one with the fewest instructions, among those the first. The first
//! block of it in reverse postorder that has instructions which stay where they are gets a mark: a bit in the source
//! locations of these instructions.

use slotvm_bytecode::{Effect, Op};
use slotvm_ssa::graphs::ids::Loop;
use slotvm_ssa::graphs::loops::LoopForest;
use slotvm_ssa::ir::Function;
use slotvm_ssa::ir::entity::{Block, Loc};
use slotvm_ssa::ir::irop::Opcode;

/// The bit of a source location that marks it.
const MARK: u32 = 1 << 31;

/// Whether the bits of a source location have the mark.
pub(crate) fn is_marked(bits: u32) -> bool {
    bits & MARK != 0
}

/// The location in the bits of a source location.
pub(crate) fn loc_of(bits: u32) -> Loc {
    Loc(bits & !MARK)
}

/// Where the mark is to be, or is.
#[derive(Debug)]
pub(super) enum Marking {
    Nowhere,
    In(Loop),
    At(Block),
}

impl Marking {
    pub(super) fn new(func: &Function, loops: &LoopForest) -> Marking {
        // A location that has the bit would be one with a mark.
        debug_assert!(func.locs.len() < MARK as usize, "there is room for the mark");
        Marking::among(func, loops, |_| true)
    }

    /// The mark is to be in one of some loops, unless it has its place already.
    pub(super) fn restrict(
        &mut self,
        func: &Function,
        loops: &LoopForest,
        may_be_hot: impl Fn(Loop) -> bool,
    ) {
        if let Marking::In(hottest) = *self
            && !may_be_hot(hottest)
        {
            *self = Marking::among(func, loops, may_be_hot);
        }
    }

    fn among(func: &Function, loops: &LoopForest, may_be_hot: impl Fn(Loop) -> bool) -> Marking {
        if loops.n_loops() == 0 {
            return Marking::Nowhere;
        }
        let mut n_insts = vec![0; loops.n_loops()];
        for block in func.blocks() {
            if let Some(Loop(innermost)) = loops.innermost(block.0) {
                n_insts[innermost as usize] += func.insts(block).len();
            }
        }
        let coldness = |it: &Loop| (u32::MAX - loops.depth(*it), n_insts[it.0 as usize]);
        let hottest = loops.loops().filter(|&it| may_be_hot(it)).min_by_key(coldness);
        hottest.map_or(Marking::Nowhere, Marking::In)
    }

    /// The mark of an instruction of a block, or 0. Blocks come in reverse postorder.
    pub(super) fn mark(&mut self, loops: &LoopForest, block: Block, opcode: Opcode) -> u32 {
        let is_in = match *self {
            Marking::Nowhere => false,
            Marking::In(hottest) => loops.contains(hottest, block.0),
            Marking::At(marked) => marked == block,
        };
        let stays = matches!(opcode.effect(), Effect::Write | Effect::Call | Effect::Control)
            && opcode != Opcode::Op(Op::Br);
        if !is_in || !stays {
            return 0;
        }
        *self = Marking::At(block);
        MARK
    }
}
