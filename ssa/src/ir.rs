//! The IR: one data structure for both forms of a function.
//!
//! In *slot form* the locals and the operand-stack positions that survive their block are slots, read
//! and written by `slot.get` and `slot.set`. In *SSA form* no instruction on a promoted slot is left
//! and blocks have parameters instead (the phis), whose operands stand on the incoming edges.
//!
//! What holds in both forms (the verifier checks it):
//! * Block 0 is the entry. It has no predecessors; its parameters are the function's, or what a frame of the interpreter
//!   holds ([`frame`]).
//! * All blocks are reachable. They are numbered in preorder of the dominator tree, children in
//!   reverse postorder of the graph, so that a block dominates exactly a range of numbers.
//! * The last instruction of a block is its only terminator, and its targets are the block's
//!   out-edges: one for `br`; the taken one, then the other for `br_if`; the indexed ones, then the
//!   default for `br_table`; none for `return`, `unreachable`, `exit` and the tail calls.
//! * Slots start as zero (or null). Those that stand for parameters are written in the entry block.
//!
//! Storage is struct-of-arrays with dense ids. Edges are numbered by source block, so the out-edges of
//! a block are a range; predecessor lists are CSR. Phi operands are addressed by edge, so duplicate
//! edges need no special case.

pub mod analyses;
pub(crate) mod blocks;
pub(crate) mod branch_hints;
pub mod edit;
pub mod entity;
pub mod eval;
pub(crate) mod fold;
pub mod frame;
pub mod graph;
pub mod irop;
pub(crate) mod names;
pub mod parse;
pub mod print;
pub(crate) mod replacements;
pub(crate) mod split;
pub mod verify;
pub mod work;

use std::collections::BTreeMap;
use std::ops::Range;

use slotvm_bytecode::{FuncType, Imm, ImmKind, Op, ValType};

use crate::ir::entity::{Block, Edge, Inst, Loc, Value};
use crate::ir::frame::FrameState;
use crate::ir::irop::Opcode;
pub use crate::ir::names::Names;

/// The immediate of a safepoint at which all root cells of the function hold references; other immediates have a bit for each
/// cell that does.
pub const ALL_ROOT_CELLS: u32 = u32::MAX;

/// A function in slot form or SSA form.
#[derive(Debug, Default)]
pub struct Function {
    /// The function's index in the module.
    pub func: u32,
    /// A name for people.
    pub name: String,
    /// Names of its labels, for people: see [`Function::take_names`].
    pub label_names: BTreeMap<u32, String>,
    /// Names of its slots and values, for people: see [`Function::take_names`]. Without them passes name nothing.
    pub names: Option<Box<Names>>,
    /// Its type. Where it is entered in a loop, the parameters are those of [`Function::entry`].
    pub ty: FuncType,
    /// The way it is entered.
    pub entry: Entry,
    /// Its slots. Promotion leaves the list as it is.
    pub slots: Vec<SlotData>,
    /// The frames in which the interpreter goes on after exits. The immediate of an exit is an index.
    pub exits: Vec<FrameState>,
    /// The number of root cells: [`mod@crate::passes::roots`].
    pub n_root_cells: u32,
    /// The values that wait at calls whose inlined bodies may have exits, or after which there may be one, in the order of the
    /// calls. Used by inlining, and empty afterwards.
    pub waiting: Vec<WaitingCall>,
    /// Locations, by [`Loc`].
    pub locs: Vec<LocData>,
    /// The 16 bytes of vector constants and shuffles, as little-endian numbers. The immediate of such an
    /// instruction is an index.
    pub vectors: Vec<u128>,

    pub(crate) ops: Vec<Opcode>,
    pub(crate) imms: Vec<Imm>,
    /// Start and length in `operand_pool`, by instruction.
    pub(crate) operands: Vec<(u32, u32)>,
    pub(crate) operand_pool: Vec<Value>,
    /// First result and number of results, by instruction.
    pub(crate) results: Vec<(Value, u32)>,
    pub(crate) inst_locs: Vec<Loc>,
    /// A bit for each instruction up to some: see [`Function::is_in_bounds`].
    pub(crate) in_bounds: Vec<u64>,

    pub(crate) value_types: Vec<ValType>,

    /// The instructions of all blocks, one block after the other.
    pub(crate) layout: Vec<Inst>,
    pub(crate) blocks: Vec<BlockData>,
    pub(crate) block_params: Vec<Value>,

    /// Destination and source, by edge.
    pub(crate) edges: Vec<EdgeData>,
    /// Start of the in-edges of a block in `pred_edges`; one more entry than blocks.
    pub(crate) pred_starts: Vec<u32>,
    pub(crate) pred_edges: Vec<Edge>,
    pub(crate) edge_args: Vec<Value>,
}

/// Calls a macro with all fields of a function, so that a new one cannot be forgotten.
macro_rules! with_fields {
    ($call:ident) => {
        $call!(func name label_names names ty entry slots exits n_root_cells waiting locs vectors ops imms operands operand_pool results inst_locs
            in_bounds value_types layout blocks block_params edges pred_starts pred_edges edge_args)
    };
}

impl Clone for Function {
    fn clone(&self) -> Function {
        let mut f = Function::default();
        f.clone_from(self);
        f
    }

    /// Reuses the memory of the function that it overwrites.
    fn clone_from(&mut self, other: &Function) {
        macro_rules! clone_fields {
            ($($field:ident)*) => {
                let Function { $($field),* } = other;
                $(self.$field.clone_from($field);)*
            };
        }
        with_fields!(clone_fields);
    }
}

/// The way a function is entered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Entry {
    /// By a call.
    #[default]
    Call,
    /// From a frame of the interpreter, at the start of one of some basic blocks. The function has been called before. The
    /// values of the state are the parameters of the entry.
    Frame(FrameState),
}

impl Function {
    /// Makes this the empty function, in the memory that it has.
    pub(crate) fn clear(&mut self) {
        let mut empty = Function::default();
        /// Exchanges a list for its memory.
        macro_rules! keep_memory {
            ($($list:ident)*) => {
                $(
                    std::mem::swap(&mut empty.$list, &mut self.$list);
                    empty.$list.clear();
                )*
            };
        }
        keep_memory!(name slots locs vectors ops imms operands operand_pool results inst_locs in_bounds value_types layout
            blocks block_params edges pred_starts pred_edges edge_args);
        *self = empty;
    }

    /// The function that a call of would enter this one at its start, if any would.
    ///
    /// A form that is entered in a loop is none: its entry block sets slots from a frame, and a call of its function goes
    /// elsewhere.
    pub fn called_as(&self) -> Option<u32> {
        (self.entry == Entry::Call).then_some(self.func)
    }

    /// Whether an instruction is a tail call that enters this function at its start, so that a branch to its entry block,
    /// with the arguments for its parameters, does the same.
    pub(crate) fn tail_calls_itself(&self, inst: Inst) -> bool {
        self.opcode(inst) == Opcode::Op(Op::ReturnCall)
            && self.called_as() == Some(self.imm(inst).low())
    }
}

/// A call, with the values that the interpreter may read in the caller's frame after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingCall {
    /// The call.
    pub inst: Inst,
    /// The values by the cells where they lie; the first of two for a vector.
    pub values: Vec<(u32, WaitingValue)>,
    /// The cell where the callee's frame starts, and where its results are after the call.
    pub args: u32,
}

/// A value in a frame that waits.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum WaitingValue {
    /// The current value of a slot.
    Slot(u32),
    /// An operand that is in no slot.
    Operand(Value),
}

impl Function {
    /// The values that wait at a call, if they were recorded.
    pub(crate) fn waiting_at(&self, inst: Inst) -> Option<&WaitingCall> {
        let at = self.waiting.partition_point(|call| call.inst < inst);
        self.waiting.get(at).filter(|call| call.inst == inst)
    }

    /// The type of a value that waits.
    pub(crate) fn waiting_type(&self, value: WaitingValue) -> ValType {
        match value {
            WaitingValue::Slot(slot) => self.slots[slot as usize].ty,
            WaitingValue::Operand(value) => self.value_type(value),
        }
    }
}

/// A slot.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SlotData {
    /// The type of its value.
    pub ty: ValType,
    /// The local or operand that it stands for.
    pub origin: SlotOrigin,
    /// The code offset of the loop for whose sake promotion leaves the slot in memory, if it does:
    /// [`mod@crate::passes::pressure`].
    pub kept: Option<u32>,
}

impl SlotData {
    /// A slot that promotion turns into values.
    pub const fn new(ty: ValType, origin: SlotOrigin) -> SlotData {
        SlotData { ty, origin, kept: None }
    }
}

/// The origin of a slot in the bytecode. Its cell in the frame follows from it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum SlotOrigin {
    /// A local.
    Local(u32),
    /// The operand at a depth of the operand stack, while it has the slot's type.
    Stack(u32),
    /// A local or operand of a function that was inlined. Such slots have numbers of their own.
    Inlined(u32),
}

impl SlotOrigin {
    /// A key that distinguishes origins and sorts locals before operands.
    pub(crate) const fn key(self) -> (u8, u32) {
        match self {
            SlotOrigin::Local(local) => (0, local),
            SlotOrigin::Stack(depth) => (1, depth),
            SlotOrigin::Inlined(number) => (2, number),
        }
    }
}

/// The origin of an instruction.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub struct LocData {
    /// The function, in the module's index space.
    pub func: u32,
    /// The code offset of the bytecode instruction.
    pub offset: u32,
    /// The call that the function was inlined at, if it was.
    pub inlined_at: Option<Loc>,
}

/// Parts of a block.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct BlockData {
    /// Range in `layout`.
    pub(crate) insts: (u32, u32),
    /// Range in `block_params`.
    pub(crate) params: (u32, u32),
    /// The first out-edge; they end where those of the next block start.
    pub(crate) first_edge: u32,
    /// The bytecode label that the block starts at, plus one; 0 if none.
    pub(crate) label: u32,
    /// The code offset of the bytecode that it was made from.
    pub(crate) offset: u32,
}

/// Parts of an edge.
#[derive(Copy, Clone, Debug)]
pub(crate) struct EdgeData {
    pub(crate) src: Block,
    pub(crate) dst: Block,
    /// Start of the operands for the destination's parameters in `edge_args`.
    pub(crate) args: u32,
}

impl Function {
    /// The entry block.
    pub const ENTRY: Block = Block(0);

    /// The number of blocks.
    pub fn n_blocks(&self) -> usize {
        self.blocks.len()
    }

    /// All blocks, in dominator-tree preorder.
    pub fn blocks(&self) -> impl DoubleEndedIterator<Item = Block> + ExactSizeIterator + use<> {
        (0..self.blocks.len() as u32).map(Block)
    }

    /// The number of instructions ever made; ids are below it.
    pub fn n_insts(&self) -> usize {
        self.ops.len()
    }

    /// The number of instructions in blocks.
    pub fn n_insts_in_blocks(&self) -> usize {
        self.layout.len()
    }

    /// The number of values ever made; ids are below it.
    pub fn n_values(&self) -> usize {
        self.value_types.len()
    }

    /// The number of edges.
    pub fn n_edges(&self) -> usize {
        self.edges.len()
    }

    /// The instructions of a block; the last one is the terminator.
    pub fn insts(&self, block: Block) -> &[Inst] {
        let (start, end) = self.blocks[block.index()].insts;
        &self.layout[start as usize..end as usize]
    }

    /// The instruction that ends a block.
    pub fn terminator(&self, block: Block) -> Inst {
        *self.insts(block).last().expect("a block has a terminator")
    }

    /// The parameters of a block: the function's for the entry, the phis for other blocks.
    pub fn params(&self, block: Block) -> &[Value] {
        let (start, end) = self.blocks[block.index()].params;
        &self.block_params[start as usize..end as usize]
    }

    /// The bytecode label that a block starts at, if there is one.
    pub fn label(&self, block: Block) -> Option<u32> {
        self.blocks[block.index()].label.checked_sub(1)
    }

    /// The code offset of the bytecode that a block was made from.
    pub fn block_offset(&self, block: Block) -> u32 {
        self.blocks[block.index()].offset
    }

    /// The out-edges of a block, in the order of its terminator's targets.
    pub fn succ_edges(
        &self,
        block: Block,
    ) -> impl DoubleEndedIterator<Item = Edge> + ExactSizeIterator + use<> {
        self.succ_edge_range(block).map(Edge)
    }

    fn succ_edge_range(&self, block: Block) -> Range<u32> {
        let next = self.blocks.get(block.index() + 1);
        let end = next.map_or(self.edges.len() as u32, |b| b.first_edge);
        self.blocks[block.index()].first_edge..end
    }

    /// The in-edges of a block.
    pub fn pred_edges(&self, block: Block) -> &[Edge] {
        let start = self.pred_starts[block.index()] as usize;
        let end = self.pred_starts[block.index() + 1] as usize;
        &self.pred_edges[start..end]
    }

    /// The block that an edge leaves.
    pub fn edge_src(&self, edge: Edge) -> Block {
        self.edges[edge.index()].src
    }

    /// The block that an edge enters.
    pub fn edge_dst(&self, edge: Edge) -> Block {
        self.edges[edge.index()].dst
    }

    /// The operands that an edge carries for the parameters of the block that it enters.
    pub fn edge_args(&self, edge: Edge) -> &[Value] {
        let EdgeData { dst, args, .. } = self.edges[edge.index()];
        &self.edge_args[args as usize..args as usize + self.params(dst).len()]
    }

    /// The operation of an instruction.
    pub fn opcode(&self, inst: Inst) -> Opcode {
        self.ops[inst.index()]
    }

    /// The immediates of an instruction, packed as [`Imm`] says. Control instructions have none, except
    /// the type and table of `return_call_indirect`, the function of `return_call`, and the hint of `br_if`
    /// ([`Function::branch_hint`]).
    pub fn imm(&self, inst: Inst) -> Imm {
        self.imms[inst.index()]
    }

    /// Whether an access is in bounds for sure, so that no check is needed. Bytecode does not say so: passes find out.
    pub fn is_in_bounds(&self, inst: Inst) -> bool {
        let word = self.in_bounds.get(inst.index() / 64);
        word.is_some_and(|word| word >> (inst.index() % 64) & 1 != 0)
    }

    /// Says that an access is in bounds for sure.
    pub(crate) fn mark_in_bounds(&mut self, inst: Inst) {
        let word = inst.index() / 64;
        if self.in_bounds.len() <= word {
            self.in_bounds.resize(word + 1, 0);
        }
        self.in_bounds[word] |= 1 << (inst.index() % 64);
    }

    /// Takes back what is known of an instruction that becomes another one.
    pub(crate) fn unmark(&mut self, inst: Inst) {
        if let Some(word) = self.in_bounds.get_mut(inst.index() / 64) {
            *word &= !(1 << (inst.index() % 64));
        }
    }

    /// The immediate of an instruction on vectors: a lane, or 16 bytes.
    pub fn vector_imm(&self, inst: Inst) -> u128 {
        let imm = self.imm(inst).low();
        match self.opcode(inst) {
            Opcode::Op(op) if matches!(op.imm_kind(), ImmKind::V128 | ImmKind::Lanes) => {
                self.vectors[imm as usize]
            }
            _ => imm.into(),
        }
    }

    /// Adds 16 bytes, and returns their index as an immediate.
    pub(crate) fn add_vector(&mut self, bytes: u128) -> Imm {
        // Code often has one constant several times in a row, zero above all.
        if self.vectors.last() != Some(&bytes) {
            self.vectors.push(bytes);
        }
        Imm::index(self.vectors.len() as u32 - 1)
    }

    /// The operands of an instruction, in the order in which the bytecode pushes them.
    pub fn operands(&self, inst: Inst) -> &[Value] {
        let (start, len) = self.operands[inst.index()];
        &self.operand_pool[start as usize..(start + len) as usize]
    }

    /// The results of an instruction.
    pub fn results(&self, inst: Inst) -> impl ExactSizeIterator<Item = Value> + use<> {
        let (first, n) = self.results[inst.index()];
        (first.0..first.0 + n).map(Value)
    }

    /// The only result of an instruction that has one.
    pub fn result(&self, inst: Inst) -> Value {
        debug_assert_eq!(self.results[inst.index()].1, 1, "{inst} has one result");
        self.results[inst.index()].0
    }

    /// The location of an instruction.
    pub fn loc(&self, inst: Inst) -> Loc {
        self.inst_locs[inst.index()]
    }

    /// The type of a value.
    pub fn value_type(&self, value: Value) -> ValType {
        self.value_types[value.index()]
    }

    /// Whether any instruction reads or writes a slot.
    pub fn has_slot_accesses(&self) -> bool {
        use crate::ir::irop::IrOp;
        self.layout
            .iter()
            .any(|&inst| matches!(self.opcode(inst), Opcode::Ir(IrOp::SlotGet | IrOp::SlotSet)))
    }

    /// Calls `on` with each operand of each instruction and of each edge.
    pub(crate) fn operands_in_use(&self, mut on: impl FnMut(Value)) {
        for &inst in &self.layout {
            self.operands(inst).iter().for_each(|&value| on(value));
        }
        for edge in (0..self.n_edges()).map(Edge::new) {
            self.edge_args(edge).iter().for_each(|&value| on(value));
        }
    }

    /// The places in `edge_args` of what the out-edges of a block carry.
    pub(crate) fn edge_arg_places(&self, block: Block) -> Vec<usize> {
        let places = |edge: Edge| {
            let EdgeData { dst, args, .. } = self.edges[edge.index()];
            args as usize..args as usize + self.params(dst).len()
        };
        self.succ_edges(block).flat_map(places).collect()
    }

    /// The number of phis: block parameters other than the function's own.
    pub fn n_phis(&self) -> usize {
        self.blocks().skip(1).map(|block| self.params(block).len()).sum()
    }

    /// Makes room for a function of about this size.
    pub(crate) fn reserve(&mut self, n_insts: usize, n_blocks: usize, n_edges: usize) {
        self.ops.reserve(n_insts);
        self.imms.reserve(n_insts);
        self.operands.reserve(n_insts);
        self.operand_pool.reserve(n_insts);
        self.results.reserve(n_insts);
        self.inst_locs.reserve(n_insts);
        self.locs.reserve(n_insts);
        self.value_types.reserve(n_insts);
        self.layout.reserve(n_insts);
        self.blocks.reserve(n_blocks);
        self.edges.reserve(n_edges);
    }

    /// Makes an instruction without putting it into a block. Its results are new values.
    pub(crate) fn make_inst(
        &mut self,
        op: Opcode,
        imm: Imm,
        operands: &[Value],
        results: &[ValType],
        loc: Loc,
    ) -> Inst {
        self.operand_pool.extend_from_slice(operands);
        self.make_inst_of_pool(op, imm, operands.len() as u32, results, loc)
    }

    /// Makes an instruction like another one, with other operands. Its results are new values.
    pub(crate) fn make_copy(&mut self, inst: Inst, operands: &[Value]) -> Inst {
        let types: Vec<ValType> =
            self.results(inst).map(|result| self.value_type(result)).collect();
        let (op, imm, loc) = (self.opcode(inst), self.imm(inst), self.loc(inst));
        let copy = self.make_inst(op, imm, operands, &types, loc);
        if self.is_in_bounds(inst) {
            self.mark_in_bounds(copy);
        }
        copy
    }

    /// Makes an instruction whose operands are the last `n_operands` of the operand pool.
    #[inline]
    pub(crate) fn make_inst_of_pool(
        &mut self,
        op: Opcode,
        imm: Imm,
        n_operands: u32,
        results: &[ValType],
        loc: Loc,
    ) -> Inst {
        let inst = Inst::new(self.ops.len());
        self.ops.push(op);
        self.imms.push(imm);
        self.operands.push((self.operand_pool.len() as u32 - n_operands, n_operands));
        self.results.push((Value::new(self.value_types.len()), results.len() as u32));
        self.value_types.extend_from_slice(results);
        self.inst_locs.push(loc);
        inst
    }

    /// Makes a value that no instruction defines: a block parameter.
    pub(crate) fn make_value(&mut self, ty: ValType) -> Value {
        self.value_types.push(ty);
        Value::new(self.value_types.len() - 1)
    }

    /// Starts the next block. What is appended until the next call belongs to it; its instructions
    /// and out-edges end with [`Function::end_block`].
    pub(crate) fn start_block(&mut self, label: Option<u32>, offset: u32) -> Block {
        let block = Block::new(self.blocks.len());
        let at = self.layout.len() as u32;
        let params = self.block_params.len() as u32;
        self.blocks.push(BlockData {
            insts: (at, at),
            params: (params, params),
            first_edge: self.edges.len() as u32,
            label: label.map_or(0, |label| label + 1),
            offset,
        });
        block
    }

    /// Appends a parameter to the block that was started last.
    pub(crate) fn append_param(&mut self, ty: ValType) -> Value {
        let value = self.make_value(ty);
        self.block_params.push(value);
        let block = self.blocks.last_mut().expect("a block was started");
        block.params.1 = self.block_params.len() as u32;
        value
    }

    /// Appends an out-edge to the block that was started last. Its operands are appended to
    /// `edge_args` afterwards.
    pub(crate) fn append_edge(&mut self, dst: Block) {
        let src = Block::new(self.blocks.len() - 1);
        self.edges.push(EdgeData { src, dst, args: self.edge_args.len() as u32 });
    }

    /// Ends the block that was started last: all of the layout since then is its instructions.
    pub(crate) fn end_block(&mut self) {
        let end = self.layout.len() as u32;
        self.blocks.last_mut().expect("a block was started").insts.1 = end;
    }

    /// Computes the predecessor lists from the edges, by a counting sort. In-edges of a block are in
    /// the order of their numbers.
    pub(crate) fn compute_preds(&mut self) {
        self.pred_starts.clear();
        self.pred_starts.resize(self.blocks.len() + 1, 0);
        for edge in &self.edges {
            self.pred_starts[edge.dst.index()] += 1;
        }
        let mut end = 0;
        for start in &mut self.pred_starts {
            end += *start;
            *start = end;
        }
        // Every entry is the end of its block's list now. Filling each list from its back leaves the
        // start.
        self.pred_edges.clear();
        self.pred_edges.resize(self.edges.len(), Edge(0));
        for (i, edge) in self.edges.iter().enumerate().rev() {
            let start = &mut self.pred_starts[edge.dst.index()];
            *start -= 1;
            self.pred_edges[*start as usize] = Edge::new(i);
        }
    }
}
