//! Editing of functions: the one interface by which passes change blocks, instructions and edges.
//!
//! The tables of a [`Function`] are made for reading: lists lie one after the other, and blocks are numbered in
//! preorder of the dominator tree. An [`Editor`] relaxes both while passes run. A list that shrinks stays where it
//! is; a list that grows moves to the end of its pool; new blocks come last. [`Editor::finish`] restores the
//! tables once for all passes, and only if something has moved. So an edit costs time linear in the lists that it
//! changes, and a pass that changes nothing leaves nothing to restore.
//!
//! Relies on a function that [`mod@crate::ir::verify`] accepts. Guarantees the properties about blocks, edges and
//! numbering (1 to 8) after [`Editor::finish`]; those about values are the pass's.
//!
//! Instructions with [ordered effects](Opcode::is_ordered) are fuel, polls, pushes and pops of stacks, and all
//! writes, calls and traps. An editor keeps them: it neither removes, inserts nor exchanges them, and panics
//! on such an edit. There are two exceptions: an operation that may trap can be folded once it is known that it does
//! not, and a block that no edge enters goes with its effects.
//! [`crate::ir::verify::effects`] checks the order of effects over a whole pass, without relying on the editor.

mod graph;

use slotvm_bytecode::{Effect, Imm, Op, ValType};

use crate::graphs::cfg::Cfg;
use crate::graphs::dominators::DomTree;
use crate::ir::entity::{Block, Edge, Inst, Loc, Value};
use crate::ir::fold;
use crate::ir::irop::Opcode;
use crate::ir::replacements::Replacements;
use crate::ir::{BlockData, EdgeData, Function};

/// Edits a function by one pass. Returns whether blocks or edges have come or gone.
pub fn edit(f: &mut Function, pass: impl FnOnce(&mut Editor<'_>)) -> bool {
    let mut editor = Editor::new(f);
    pass(&mut editor);
    let has_changed = editor.changed_graph;
    editor.finish();
    has_changed
}

/// Numbers the blocks of a function as [`crate::ir`] says, so that tests can write them in any order.
#[cfg(test)]
pub(crate) fn renumber(f: &mut Function) {
    let mut editor = Editor::new(f);
    editor.changed_graph = true;
    editor.finish();
}

/// A function that is being edited.
#[derive(Debug)]
pub struct Editor<'f> {
    f: &'f mut Function,
    blocks: Vec<BlockLists>,
    edges: Vec<EdgeLists>,
    /// The blocks that are reachable, in preorder of the dominator tree, as far as it is known; those that were
    /// split off since come last.
    order: Vec<Block>,
    /// The in-edges of each block, unless edges have changed since they were sorted.
    in_edges: Option<InEdges>,
    /// The number of in-edges of each block, or nothing as long as nobody asks.
    n_in_edges: Vec<u32>,
    replacements: Replacements,
    /// Whether blocks or edges have come or gone.
    changed_graph: bool,
    /// Whether lists of instructions, parameters or edge operands have changed.
    changed_lists: bool,
}

/// A list in a pool.
#[derive(Copy, Clone, Debug, Default)]
struct List {
    start: u32,
    len: u32,
}

impl List {
    fn range(self) -> std::ops::Range<usize> {
        self.start as usize..(self.start + self.len) as usize
    }
}

#[derive(Copy, Clone, Debug)]
struct BlockLists {
    /// Instructions, in the function's `layout`.
    insts: List,
    /// Parameters, in the function's `block_params`.
    params: List,
    /// Among the editor's edges.
    edges: List,
    label: u32,
    offset: u32,
}

#[derive(Copy, Clone, Debug)]
struct EdgeLists {
    src: Block,
    dst: Block,
    /// Arguments, in the function's `edge_args`.
    args: List,
}

/// Rows of edges by the block that they enter.
#[derive(Clone, Debug)]
struct InEdges {
    starts: Vec<u32>,
    edges: Vec<Edge>,
}

impl<'f> Editor<'f> {
    /// Starts to edit a function. Takes time linear in its blocks and edges.
    pub fn new(f: &'f mut Function) -> Editor<'f> {
        let list = |(start, end): (u32, u32)| List { start, len: end - start };
        let mut blocks = Vec::with_capacity(f.n_blocks());
        for block in f.blocks() {
            let BlockData { insts, params, first_edge, label, offset } = f.blocks[block.index()];
            let edges = List { start: first_edge, len: f.succ_edges(block).len() as u32 };
            let (insts, params) = (list(insts), list(params));
            blocks.push(BlockLists { insts, params, edges, label, offset });
        }
        let edge = |&EdgeData { src, dst, args }: &EdgeData| {
            let len = blocks[dst.index()].params.len;
            EdgeLists { src, dst, args: List { start: args, len } }
        };
        let edges = f.edges.iter().map(edge).collect();
        Editor {
            order: f.blocks().collect(),
            f,
            blocks,
            edges,
            in_edges: None,
            n_in_edges: Vec::new(),
            replacements: Replacements::default(),
            changed_graph: false,
            changed_lists: false,
        }
    }

    /// The function's tables of instructions and values. Its blocks and edges are those from before.
    pub fn func(&self) -> &Function {
        self.f
    }

    /// The number of blocks ever made; ids are below it.
    pub fn n_blocks(&self) -> usize {
        self.blocks.len()
    }

    /// The blocks, in dominance order if none was split off since [`Editor::remove_unreachable`].
    pub fn order(&self) -> &[Block] {
        &self.order
    }

    /// The instructions of a block; the last one is the terminator.
    pub fn insts(&self, block: Block) -> &[Inst] {
        &self.f.layout[self.blocks[block.index()].insts.range()]
    }

    /// The parameters of a block.
    pub fn params(&self, block: Block) -> &[Value] {
        &self.f.block_params[self.blocks[block.index()].params.range()]
    }

    /// The out-edges of a block, in the order of its terminator's targets.
    pub fn out_edges(
        &self,
        block: Block,
    ) -> impl DoubleEndedIterator<Item = Edge> + ExactSizeIterator + use<> {
        let List { start, len } = self.blocks[block.index()].edges;
        (start..start + len).map(Edge)
    }

    /// The in-edges of a block. The first call after edges have changed sorts all edges.
    pub fn in_edges(&mut self, block: Block) -> &[Edge] {
        if self.in_edges.is_none() {
            self.in_edges = Some(self.sort_edges());
        }
        let InEdges { starts, edges } = self.in_edges.as_ref().expect("they were just sorted");
        &edges[starts[block.index()] as usize..starts[block.index() + 1] as usize]
    }

    fn sort_edges(&self) -> InEdges {
        let in_use = || self.order.iter().flat_map(|&block| self.out_edges(block));
        let mut starts = vec![0; self.blocks.len() + 1];
        in_use().for_each(|edge| starts[self.dst(edge).index() + 1] += 1);
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut ends = starts.clone();
        let mut edges =
            vec![Edge(0); *starts.last().expect("there is one more than blocks") as usize];
        for edge in in_use() {
            let end = &mut ends[self.dst(edge).index()];
            edges[*end as usize] = edge;
            *end += 1;
        }
        InEdges { starts, edges }
    }

    /// The block that an edge leaves.
    pub fn src(&self, edge: Edge) -> Block {
        self.edges[edge.index()].src
    }

    /// The block that an edge enters.
    pub fn dst(&self, edge: Edge) -> Block {
        self.edges[edge.index()].dst
    }

    /// The operands that an edge carries for the parameters of the block that it enters.
    pub fn args(&self, edge: Edge) -> &[Value] {
        &self.f.edge_args[self.edges[edge.index()].args.range()]
    }

    /// Returns the value that stands for a value: its final replacement, or itself. Operands may still
    /// name values that were replaced.
    pub fn resolve(&mut self, value: Value) -> Value {
        self.replacements.resolve(value)
    }

    /// Replaces all uses of a value that stands for itself.
    pub fn replace_value(&mut self, value: Value, by: Value) {
        debug_assert_eq!(self.f.value_type(value), self.f.value_type(by), "{value} by {by}");
        if let Some(names) = &mut self.f.names {
            names.pass_on(value, self.replacements.resolve(by));
        }
        self.replacements.replace(value, by, self.f.n_values());
    }

    /// Replaces one operand of an instruction.
    pub fn set_operand(&mut self, inst: Inst, i: usize, by: Value) {
        let (start, len) = self.f.operands[inst.index()];
        assert!(i < len as usize, "{inst} has {len} operands");
        let operand = &mut self.f.operand_pool[start as usize + i];
        debug_assert_eq!(self.f.value_types[operand.index()], self.f.value_types[by.index()]);
        *operand = by;
    }

    /// Turns an instruction into the constant that it is known to compute, given by its cell.
    ///
    /// # Panics
    /// Panics if it does anything other than compute its only result.
    pub fn fold(&mut self, inst: Inst, bits: u64) {
        let effect = self.f.opcode(inst).effect();
        assert!(matches!(effect, Effect::Pure | Effect::Trap), "{inst} has ordered effects");
        let ty = self.f.value_type(self.f.result(inst));
        let (op, imm) = fold::constant(self.f, ty, bits);
        self.f.ops[inst.index()] = Opcode::Op(op);
        self.f.imms[inst.index()] = imm;
        self.f.operands[inst.index()].1 = 0;
    }

    /// Makes a constant, given by its cell, without putting it into a block.
    pub fn make_constant(&mut self, ty: ValType, bits: u64, loc: Loc) -> Inst {
        let (op, imm) = fold::constant(self.f, ty, bits);
        self.f.make_inst(Opcode::Op(op), imm, &[], &[ty], loc)
    }

    /// Turns an instruction into another that computes its only result.
    ///
    /// # Panics
    /// Panics if the effects of either are ordered.
    pub fn rewrite(&mut self, inst: Inst, op: Opcode, operands: &[Value]) {
        assert!(!self.f.opcode(inst).is_ordered(), "{inst} has ordered effects");
        assert!(!op.is_ordered() && !op.is_terminator(), "{} has effects", op.mnemonic());
        self.f.ops[inst.index()] = op;
        self.f.imms[inst.index()] = Imm::NONE;
        let (start, len) = self.f.operands[inst.index()];
        let start = if operands.len() <= len as usize {
            let start = start as usize;
            self.f.operand_pool[start..start + operands.len()].copy_from_slice(operands);
            start
        } else {
            self.f.operand_pool.extend_from_slice(operands);
            self.f.operand_pool.len() - operands.len()
        };
        self.f.operands[inst.index()] = (start as u32, operands.len() as u32);
    }

    /// Makes the branch at the end of a block always take one of its out-edges.
    ///
    /// # Panics
    /// Panics if the edge leaves another block.
    pub fn keep_edge(&mut self, block: Block, edge: Edge) {
        assert_eq!(self.src(edge), block, "{edge} leaves another block");
        let terminator = *self.insts(block).last().expect("a block has a terminator");
        self.f.ops[terminator.index()] = Opcode::Op(Op::Br);
        // The hint of the branch goes with it.
        self.f.imms[terminator.index()] = Imm::NONE;
        self.f.operands[terminator.index()].1 = 0;
        for dropped in self.out_edges(block).filter(|&other| other != edge) {
            self.count_in_edge(self.dst(dropped), false);
        }
        self.blocks[block.index()].edges = List { start: edge.0, len: 1 };
        self.in_edges = None;
        self.changed_graph = true;
    }

    /// Puts a new block on an edge. The block branches on, with the operands that the edge had.
    pub fn split_edge(&mut self, edge: Edge, loc: Loc) -> Block {
        let EdgeLists { src, dst, args } = self.edges[edge.index()];
        let block = Block::new(self.blocks.len());
        let br = self.f.make_inst(Opcode::Op(Op::Br), Imm::NONE, &[], &[], loc);
        let insts = List { start: self.f.layout.len() as u32, len: 1 };
        self.f.layout.push(br);
        let edges = List { start: self.edges.len() as u32, len: 1 };
        self.edges.push(EdgeLists { src: block, dst, args });
        self.edges[edge.index()] = EdgeLists { src, dst: block, args: List::default() };
        let offset = self.blocks[src.index()].offset;
        self.blocks.push(BlockLists { insts, params: List::default(), edges, label: 0, offset });
        if !self.n_in_edges.is_empty() {
            self.n_in_edges.push(1);
        }
        self.order.push(block);
        self.in_edges = None;
        self.changed_graph = true;
        block
    }

    /// Makes an instruction without putting it into a block. Its results are new values.
    ///
    /// # Panics
    /// Panics if its effects are ordered.
    pub fn make_inst(
        &mut self,
        op: Opcode,
        imm: Imm,
        operands: &[Value],
        results: &[ValType],
        loc: Loc,
    ) -> Inst {
        assert!(!op.is_ordered(), "{} has ordered effects", op.mnemonic());
        self.f.make_inst(op, imm, operands, results, loc)
    }

    /// Inserts instructions into a block before a position. Takes time linear in the block; a pass that
    /// inserts at many places of a block uses [`Editor::set_insts`].
    pub fn insert(&mut self, block: Block, position: usize, insts: &[Inst]) {
        let mut list = self.insts(block).to_vec();
        list.splice(position..position, insts.iter().copied());
        self.set_insts(block, &list);
    }

    /// Replaces the list of instructions of a block.
    ///
    /// # Panics
    /// Panics if this would remove, insert or exchange instructions with ordered effects.
    pub fn set_insts(&mut self, block: Block, insts: &[Inst]) {
        let f = &*self.f;
        let is_ordered = |inst: &&Inst| f.opcode(**inst).is_ordered();
        let before = self.insts(block).iter().filter(is_ordered);
        assert!(before.eq(insts.iter().filter(is_ordered)), "effects of {block} would change");
        let list = &mut self.blocks[block.index()].insts;
        if insts.len() > list.len as usize {
            list.start = self.f.layout.len() as u32;
            self.f.layout.extend_from_slice(insts);
        } else {
            let start = list.start as usize;
            self.f.layout[start..start + insts.len()].copy_from_slice(insts);
        }
        list.len = insts.len() as u32;
        self.changed_lists = true;
    }

    /// Removes the instructions of a block that are not to be kept. Returns their number.
    ///
    /// # Panics
    /// Panics if a removed instruction has ordered effects.
    pub fn retain_insts(
        &mut self,
        block: Block,
        mut keep: impl FnMut(&Function, Inst) -> bool,
    ) -> usize {
        let List { start, len } = self.blocks[block.index()].insts;
        let mut end = start;
        for i in start..start + len {
            let inst = self.f.layout[i as usize];
            if keep(self.f, inst) {
                self.f.layout[end as usize] = inst;
                end += 1;
            } else {
                assert!(!self.f.opcode(inst).is_ordered(), "{inst} has ordered effects");
            }
        }
        let n_removed = (start + len - end) as usize;
        self.blocks[block.index()].insts.len = end - start;
        self.changed_lists |= n_removed > 0;
        n_removed
    }

    /// Removes the parameters of a block that are not marked to be kept, with their operands on all in-edges.
    ///
    /// # Panics
    /// Panics if there is not one mark for each parameter.
    pub fn retain_params(&mut self, block: Block, kept: &[bool]) {
        assert_eq!(kept.len(), self.params(block).len(), "there is a mark for each parameter");
        if !kept.contains(&false) {
            return;
        }
        for i in 0..self.in_edges(block).len() {
            let edge = self.in_edges(block)[i];
            retain(&mut self.f.edge_args, &mut self.edges[edge.index()].args, kept);
        }
        retain(&mut self.f.block_params, &mut self.blocks[block.index()].params, kept);
        self.changed_lists = true;
    }

    /// Removes the blocks that are no longer reachable, and computes dominance order again. Takes time
    /// linear in blocks and edges if these have changed, and constant time otherwise.
    pub fn remove_unreachable(&mut self) {
        if !self.changed_graph {
            return;
        }
        let succs = |block| self.out_edges(Block::new(block)).map(|edge| self.dst(edge).0);
        let graph = Cfg::new(Function::ENTRY.0, (0..self.blocks.len()).map(succs));
        let tree = DomTree::semi_nca(&graph);
        self.order.clear();
        self.order.extend(tree.preorder().iter().copied().map(Block));
        self.in_edges = None;
        self.n_in_edges.clear();
    }

    /// Ends editing: restores what [`crate::ir`] promises of a function's tables.
    pub fn finish(mut self) {
        if !self.replacements.is_empty() {
            self.rewrite_operands();
        }
        if self.changed_graph {
            self.remove_unreachable();
        }
        if self.changed_graph || self.changed_lists {
            self.rebuild();
        }
    }

    fn rewrite_operands(&mut self) {
        for i in 0..self.f.operand_pool.len() {
            self.f.operand_pool[i] = self.resolve(self.f.operand_pool[i]);
        }
        for i in 0..self.f.edge_args.len() {
            self.f.edge_args[i] = self.resolve(self.f.edge_args[i]);
        }
    }

    /// Puts the lists of all blocks one after the other again, in the order of blocks.
    fn rebuild(self) {
        let Editor { f, blocks, edges, order, .. } = self;
        let mut numbers = vec![Block(u32::MAX); blocks.len()];
        for (i, block) in order.iter().enumerate() {
            numbers[block.index()] = Block::new(i);
        }
        let layout = std::mem::take(&mut f.layout);
        let block_params = std::mem::take(&mut f.block_params);
        let edge_args = std::mem::take(&mut f.edge_args);
        f.layout.reserve(layout.len());
        f.block_params.reserve(block_params.len());
        f.edge_args.reserve(edge_args.len());
        f.blocks.clear();
        f.edges.clear();
        for block in order {
            let BlockLists { insts, params, edges: out_edges, label, offset } =
                blocks[block.index()];
            let block = f.start_block(label.checked_sub(1), offset);
            f.block_params.extend_from_slice(&block_params[params.range()]);
            f.blocks[block.index()].params.1 = f.block_params.len() as u32;
            f.layout.extend_from_slice(&layout[insts.range()]);
            for EdgeLists { dst, args, .. } in &edges[out_edges.range()] {
                f.append_edge(numbers[dst.index()]);
                f.edge_args.extend_from_slice(&edge_args[args.range()]);
            }
            f.end_block();
        }
        f.compute_preds();
    }
}

/// Keeps the entries of a list that are marked.
fn retain(pool: &mut [Value], list: &mut List, kept: &[bool]) {
    let start = list.start as usize;
    let mut end = start;
    for (i, _) in kept.iter().enumerate().filter(|&(_, &kept)| kept) {
        pool[end] = pool[start + i];
        end += 1;
    }
    list.len = (end - start) as u32;
}

#[cfg(test)]
mod tests;
