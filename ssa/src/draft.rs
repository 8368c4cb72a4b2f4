//! A function taken apart, to be edited: a list of blocks, each with lists of its own.
//!
//! The tables of a [`Function`] are made for reading. A pass that removes blocks, splits edges or
//! inserts instructions takes the function apart, edits the lists, and puts it together again. That
//! drops the blocks that cannot be reached any more, and numbers the others as [`crate::ir`] promises.
//! Instructions and values keep their ids; those that occur in no block stay in the tables.

use crate::cfg::Cfg;
use crate::dominators::DomTree;
use crate::entity::{Block, Inst, Value};
use crate::ir::Function;

/// The blocks of a function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    /// Block 0 is the entry.
    pub(crate) blocks: Vec<DraftBlock>,
}

/// A block.
#[derive(Clone, Debug, Default)]
pub(crate) struct DraftBlock {
    pub(crate) params: Vec<Value>,
    /// The last one is the terminator.
    pub(crate) insts: Vec<Inst>,
    /// The out-edges, in the order of the terminator's targets.
    pub(crate) edges: Vec<DraftEdge>,
    pub(crate) label: Option<u32>,
    pub(crate) offset: u32,
}

/// An edge.
#[derive(Clone, Debug, Default)]
pub(crate) struct DraftEdge {
    /// The block that it enters, by its place in the draft.
    pub(crate) dst: u32,
    /// One operand for each parameter of that block.
    pub(crate) args: Vec<Value>,
}

impl Draft {
    /// Takes a function apart.
    pub(crate) fn of(f: &Function) -> Draft {
        let edge = |e| DraftEdge { dst: f.edge_dst(e).0, args: f.edge_args(e).to_vec() };
        let block = |b: Block| DraftBlock {
            params: f.params(b).to_vec(),
            insts: f.insts(b).to_vec(),
            edges: f.succ_edges(b).map(edge).collect(),
            label: f.label(b),
            offset: f.block_offset(b),
        };
        Draft { blocks: f.blocks().map(block).collect() }
    }

    /// Replaces the blocks of a function by those of the draft.
    pub(crate) fn put_into(self, f: &mut Function) {
        let succs = |block: &DraftBlock| block.edges.iter().map(|edge| edge.dst).collect();
        let lists: Vec<Vec<u32>> = self.blocks.iter().map(succs).collect();
        let tree = DomTree::semi_nca(&Cfg::new(Function::ENTRY.0, lists));
        f.blocks.clear();
        f.layout.clear();
        f.block_params.clear();
        f.edges.clear();
        f.edge_args.clear();
        for &place in tree.preorder() {
            let DraftBlock { params, insts, edges, label, offset } = &self.blocks[place as usize];
            let block = f.start_block(*label, *offset);
            f.block_params.extend_from_slice(params);
            f.blocks[block.index()].params.1 = f.block_params.len() as u32;
            f.layout.extend_from_slice(insts);
            for DraftEdge { dst, args } in edges {
                let number =
                    tree.number(*dst).expect("what follows a reachable block is reachable");
                f.append_edge(Block(number));
                f.edge_args.extend_from_slice(args);
            }
            f.end_block();
        }
        f.compute_preds();
    }
}
