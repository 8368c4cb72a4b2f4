//! The blocks of a function that is put together anew.
//!
//! A pass that copies or joins blocks lists their contents, in any order and under any numbers. The tables of
//! instructions and values are the function's. [`Blocks::finish`] puts the blocks that are reachable into the function,
//! in the order and with the numbers that [`crate::ir`] promises. Takes time linear in the lists, except for the
//! dominator tree.

use std::ops::Range;

use crate::graphs::cfg::Cfg;
use crate::graphs::dominators::DomTree;
use crate::ir::Function;
use crate::ir::entity::{Block, Inst, Value};

/// The lists of a block. One that was never opened is empty, and nothing may lead to it.
#[derive(Clone, Debug, Default)]
struct Lists {
    insts: Range<usize>,
    params: Range<usize>,
    edges: Range<usize>,
    label: Option<u32>,
    offset: u32,
}

/// See the module documentation.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    lists: Vec<Lists>,
    insts: Vec<Inst>,
    params: Vec<Value>,
    /// The target of each edge, and its operands.
    edges: Vec<(u32, Range<usize>)>,
    args: Vec<Value>,
}

impl Blocks {
    /// So many blocks that are not opened yet.
    pub(crate) fn new(n: usize) -> Blocks {
        Blocks { lists: vec![Lists::default(); n], ..Blocks::default() }
    }

    /// The same, with room for so many instructions and edges.
    pub(crate) fn with_room(n: usize, n_insts: usize, n_edges: usize) -> Blocks {
        Blocks {
            insts: Vec::with_capacity(n_insts),
            edges: Vec::with_capacity(n_edges),
            ..Blocks::new(n)
        }
    }

    /// As many blocks as a function has, of the same parameters and origins, and with room for what they contain.
    pub(crate) fn like(f: &Function) -> Blocks {
        let mut blocks = Blocks::with_room(f.n_blocks(), f.layout.len(), f.edges.len());
        for block in f.blocks() {
            blocks.set_params(block.0, f.params(block).iter().copied());
            blocks.set_origin(block.0, f.label(block), f.block_offset(block));
        }
        blocks
    }

    /// Adds a block that is not opened yet.
    pub(crate) fn add(&mut self) -> u32 {
        self.lists.push(Lists::default());
        self.lists.len() as u32 - 1
    }

    /// Sets the parameters of a block.
    pub(crate) fn set_params(&mut self, block: u32, params: impl IntoIterator<Item = Value>) {
        let first = self.params.len();
        self.params.extend(params);
        self.lists[block as usize].params = first..self.params.len();
    }

    /// Sets the bytecode label and the code offset of a block.
    pub(crate) fn set_origin(&mut self, block: u32, label: Option<u32>, offset: u32) {
        let lists = &mut self.lists[block as usize];
        (lists.label, lists.offset) = (label, offset);
    }

    /// Starts a block: the instructions and edges that are pushed until [`Blocks::close`] are its own.
    pub(crate) fn open(&mut self, block: u32) {
        let lists = &mut self.lists[block as usize];
        lists.insts = self.insts.len()..self.insts.len();
        lists.edges = self.edges.len()..self.edges.len();
    }

    /// Appends an instruction to the block that is open.
    pub(crate) fn push(&mut self, inst: Inst) {
        self.insts.push(inst);
    }

    /// Appends instructions to the block that is open.
    pub(crate) fn push_all(&mut self, insts: &[Inst]) {
        self.insts.extend_from_slice(insts);
    }

    /// Appends an out-edge with its operands to the block that is open.
    pub(crate) fn push_edge(&mut self, target: u32, args: impl IntoIterator<Item = Value>) {
        let first = self.args.len();
        self.args.extend(args);
        self.edges.push((target, first..self.args.len()));
    }

    /// Ends the block that is open, after its terminator.
    pub(crate) fn close(&mut self, block: u32) {
        let lists = &mut self.lists[block as usize];
        (lists.insts.end, lists.edges.end) = (self.insts.len(), self.edges.len());
    }

    /// All operands of edges.
    pub(crate) fn args_mut(&mut self) -> &mut [Value] {
        &mut self.args
    }

    /// Replaces the blocks of a function by those that can be reached from the entry.
    pub(crate) fn finish(self, f: &mut Function, entry: u32) {
        let succs = |lists: &Lists| self.edges[lists.edges.clone()].iter().map(|edge| edge.0);
        let tree = DomTree::semi_nca(&Cfg::new(entry, self.lists.iter().map(succs)));
        let Function { layout, blocks, block_params, edges, edge_args, .. } = f;
        layout.clear();
        blocks.clear();
        block_params.clear();
        edges.clear();
        edge_args.clear();
        layout.reserve(self.insts.len());
        blocks.reserve(tree.n_reachable());
        block_params.reserve(self.params.len());
        edges.reserve(self.edges.len());
        edge_args.reserve(self.args.len());
        for &block in tree.preorder() {
            let Lists { insts, params, edges, label, offset } = self.lists[block as usize].clone();
            let block = f.start_block(label, offset);
            f.block_params.extend_from_slice(&self.params[params]);
            f.blocks[block.index()].params.1 = f.block_params.len() as u32;
            f.layout.extend_from_slice(&self.insts[insts]);
            for (target, args) in &self.edges[edges] {
                let target =
                    tree.number(*target).expect("a reachable block leads to reachable ones");
                f.append_edge(Block(target));
                f.edge_args.extend_from_slice(&self.args[args.clone()]);
            }
            f.end_block();
        }
        f.compute_preds();
    }
}
