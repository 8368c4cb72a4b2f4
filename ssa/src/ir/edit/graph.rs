//! Edits of the control-flow graph: edges that enter other blocks, and blocks that become one.
//!
//! None of them moves an effect past another on any path that stays. Which paths stay is the pass's choice, and
//! [`crate::ir::verify::effects`] checks it.

use slotvm_bytecode::Op;

use super::{Editor, List};
use crate::ir::Function;
use crate::ir::entity::{Block, Edge, Inst, Value};
use crate::ir::irop::Opcode;

impl Editor<'_> {
    /// The instruction that ends a block.
    ///
    /// # Panics
    /// Panics if the block was merged into another.
    pub fn terminator(&self, block: Block) -> Inst {
        *self.insts(block).last().expect("a block has a terminator")
    }

    /// The only out-edge of a block that ends with `br`.
    pub fn only_out_edge(&self, block: Block) -> Option<Edge> {
        let &last = self.insts(block).last()?;
        let is_br = self.func().opcode(last) == Opcode::Op(Op::Br);
        self.out_edges(block).next().filter(|_| is_br)
    }

    /// The number of edges that enter a block. Those from blocks that have become unreachable count until
    /// [`Editor::remove_unreachable`]. The first call takes time linear in the edges.
    pub fn n_in_edges(&mut self, block: Block) -> u32 {
        if self.n_in_edges.is_empty() {
            let mut counts = vec![0; self.blocks.len()];
            for edge in self.order.iter().flat_map(|&block| self.out_edges(block)) {
                counts[self.dst(edge).index()] += 1;
            }
            self.n_in_edges = counts;
        }
        self.n_in_edges[block.index()]
    }

    /// Notes that an edge enters a block, or that it does so no more.
    pub(super) fn count_in_edge(&mut self, block: Block, enters: bool) {
        if let Some(count) = self.n_in_edges.get_mut(block.index()) {
            *count = if enters { *count + 1 } else { *count - 1 };
        }
    }

    /// Makes an edge enter a block, with operands for the parameters of that block.
    ///
    /// # Panics
    /// Panics if the block is the entry, or if there is not one operand for each parameter.
    pub fn redirect_edge(&mut self, edge: Edge, dst: Block, args: &[Value]) {
        assert_ne!(dst, Function::ENTRY, "{edge} may not enter the entry");
        assert_eq!(args.len(), self.params(dst).len(), "{dst} has an operand for each parameter");
        let before = self.dst(edge);
        if before != dst {
            self.count_in_edge(before, false);
            self.count_in_edge(dst, true);
            self.in_edges = None;
            self.changed_graph = true;
        }
        self.edges[edge.index()].dst = dst;
        let list = self.edges[edge.index()].args;
        if args.len() > list.len as usize {
            let start = self.f.edge_args.len() as u32;
            self.f.edge_args.extend_from_slice(args);
            self.edges[edge.index()].args = List { start, len: args.len() as u32 };
        } else {
            let start = list.start as usize;
            self.f.edge_args[start..start + args.len()].copy_from_slice(args);
            self.edges[edge.index()].args.len = args.len() as u32;
        }
        self.changed_lists = true;
    }

    /// Merges the only successor of a block into the block: the operands of the edge stand for its parameters, and
    /// its instructions and out-edges follow those of the block. It has neither instructions nor edges afterwards,
    /// and goes with the next [`Editor::remove_unreachable`]. Merging a chain of blocks from its start takes time
    /// linear in their instructions.
    ///
    /// # Panics
    /// Panics unless the block has one out-edge, which is the only one that enters the successor.
    pub fn merge_successor(&mut self, block: Block) {
        let edge = self.only_out_edge(block).expect("the block has one out-edge");
        let succ = self.dst(edge);
        assert!(succ != block && self.n_in_edges(succ) == 1, "{succ} has one predecessor");
        for i in 0..self.params(succ).len() {
            let (param, arg) = (self.params(succ)[i], self.args(edge)[i]);
            self.replace_value(param, arg);
        }
        let mut insts = self.blocks[block.index()].insts;
        insts.len -= 1;
        let end = self.f.layout.len() as u32;
        if insts.start + insts.len + 1 == end {
            self.f.layout.pop();
        } else {
            self.f.layout.extend_from_within(insts.range());
            insts.start = end;
        }
        let of_succ = std::mem::take(&mut self.blocks[succ.index()].insts);
        self.f.layout.extend_from_within(of_succ.range());
        insts.len += of_succ.len;
        let edges = std::mem::take(&mut self.blocks[succ.index()].edges);
        for edge in edges.range() {
            self.edges[edge].src = block;
        }
        self.blocks[succ.index()].params = List::default();
        self.blocks[block.index()].insts = insts;
        self.blocks[block.index()].edges = edges;
        self.count_in_edge(succ, false);
        self.in_edges = None;
        self.changed_graph = true;
        self.changed_lists = true;
    }

    /// Removes a block that no edge enters, with its instructions and out-edges.
    ///
    /// # Panics
    /// Panics if an edge enters the block, or if it is the entry.
    pub fn remove_block(&mut self, block: Block) {
        assert!(block != Function::ENTRY && self.n_in_edges(block) == 0, "{block} is reachable");
        for edge in self.out_edges(block) {
            self.count_in_edge(self.dst(edge), false);
        }
        let lists = &mut self.blocks[block.index()];
        lists.insts = List::default();
        lists.edges = List::default();
        lists.params = List::default();
        self.in_edges = None;
        self.changed_graph = true;
    }
}
