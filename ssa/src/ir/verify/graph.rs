//! Properties 1 to 8: blocks, edges and their numbering.

use slotvm_bytecode::Op;

use super::{Violation, require};
use crate::graphs::cfg::Cfg;
use crate::graphs::dominators::DomTree;
use crate::ir::Function;
use crate::ir::entity::{Block, Inst};
use crate::ir::irop::Opcode;

/// Checks properties 1 to 4, on which the others build.
pub(super) fn check_blocks(f: &Function) -> Result<(), Violation> {
    require!(f.n_blocks() > 0, OneBlock, "the function has no blocks");
    let mut is_placed = vec![false; f.n_insts()];
    for block in f.blocks() {
        let (last, others) = match f.insts(block).split_last() {
            Some((&last, others)) => (last, others),
            None => {
                require!(false, OneBlock, "{block} is empty");
                continue;
            }
        };
        for &inst in f.insts(block) {
            let again = std::mem::replace(&mut is_placed[inst.index()], true);
            require!(!again, LayoutOnce, "{inst} in {block} occurs twice");
        }
        let early = others.iter().find(|&&inst| f.opcode(inst).is_terminator());
        require!(early.is_none(), TerminatorLast, "{early:?} ends {block} before its end");
        require!(f.opcode(last).is_terminator(), TerminatorLast, "{last} does not end {block}");
        check_edges(f, block, last)?;
    }
    Ok(())
}

fn check_edges(f: &Function, block: Block, terminator: Inst) -> Result<(), Violation> {
    let start = f.blocks[block.index()].first_edge as usize;
    let end = f.blocks.get(block.index() + 1).map_or(f.edges.len(), |b| b.first_edge as usize);
    require!(
        start <= end && end <= f.edges.len() && (block != Function::ENTRY || start == 0),
        EdgesOfTerminator,
        "the out-edges of {block} are not a range of edges"
    );
    let n = end - start;
    let fits = match f.opcode(terminator) {
        Opcode::Op(Op::Br) => n == 1,
        Opcode::Op(Op::BrIf) => n == 2,
        Opcode::Op(Op::BrTable) => n >= 1,
        _ => n == 0,
    };
    let name = f.opcode(terminator).mnemonic();
    require!(fits, EdgesOfTerminator, "{block} ends with {name} and has {n} out-edges");
    for edge in f.succ_edges(block) {
        let (src, dst) = (f.edge_src(edge), f.edge_dst(edge));
        require!(src == block, EdgesOfTerminator, "{edge} leaves {block}, but its source is {src}");
        require!(
            dst.index() < f.n_blocks(),
            EdgesOfTerminator,
            "{edge} enters {dst}, which does not exist"
        );
    }
    Ok(())
}

/// Checks properties 5 to 8; returns the dominator tree.
pub(super) fn check_graph(f: &Function) -> Result<DomTree, Violation> {
    require!(
        f.pred_starts.len() == f.n_blocks() + 1,
        PredsAgree,
        "expected one predecessor list for each block"
    );
    let sorted = f.pred_starts.is_sorted() && f.pred_starts.last() == Some(&(f.n_edges() as u32));
    require!(
        sorted && f.pred_edges.len() == f.n_edges(),
        PredsAgree,
        "the predecessor lists do not match the edges"
    );
    for block in f.blocks() {
        let preds = f.pred_edges(block);
        require!(
            preds.is_sorted_by(|a, b| a < b),
            PredsAgree,
            "the predecessor list of {block} is not in ascending order"
        );
        let stranger = preds.iter().find(|e| e.index() >= f.n_edges() || f.edge_dst(**e) != block);
        require!(stranger.is_none(), PredsAgree, "{stranger:?} does not enter {block}");
    }
    // As many entries as edges, none twice in a list, each in the list of its block: all are there.
    require!(f.pred_edges(Function::ENTRY).is_empty(), EntryFirst, "an edge enters the entry");

    let succs = |block| f.succ_edges(block).map(|edge| f.edge_dst(edge).0);
    let cfg = Cfg::new(0, f.blocks().map(succs));
    let dom = DomTree::semi_nca(&cfg);
    for block in f.blocks() {
        let number = dom.number(block.0);
        require!(number.is_some(), AllReachable, "{block} is unreachable");
    }
    for block in f.blocks() {
        let number = dom.number(block.0).map(Block);
        require!(number == Some(block), DominatorPreorder, "{block} should be {number:?}");
    }
    Ok(dom)
}
