//! Jump threading: edges that decide the branch of the block that they enter, and skip it.
//!
//! A block can be skipped if it has no effects and nothing of it is used elsewhere. For each edge that enters it, its
//! instructions are folded with the constants that the edge carries. If that decides the branch, the edge enters
//! the target instead; the operands that the target's phis need are copied into a block on the edge.

use slotvm_bytecode::{Effect, Op};

use super::forward::passed_on;
use super::uses::Uses;
use super::{COPIES_MAX, CfgReport, THREADED_PER_EDGE_MAX, has_room};
use crate::ir::edit::Editor;
use crate::ir::entity::{Block, Edge, Inst, Value};
use crate::ir::irop::Opcode;
use crate::ir::{Function, fold};

/// The maximum number of instructions of a block that is skipped, its branch included.
const THREADED_INSTS_MAX: usize = 8;
/// The maximum number of parameters of a block that is skipped: those of each edge are looked at.
const THREADED_PARAMS_MAX: usize = 16;

/// Makes edges that decide the branch of the block that they enter skip that block.
pub(super) fn thread(editor: &mut Editor<'_>, report: &mut CfgReport) {
    let candidates: Vec<Block> =
        editor.order().iter().copied().filter(|&block| is_small(editor, block)).collect();
    if candidates.is_empty() {
        return;
    }
    let mut threader = Threader::new(editor);
    for block in candidates {
        threader.thread(block, report);
    }
}

/// Whether a block has few instructions without effects, and a branch that depends on a phi.
fn is_small(editor: &Editor<'_>, block: Block) -> bool {
    let params = editor.params(block);
    let insts = editor.insts(block);
    if block == Function::ENTRY || params.is_empty() || insts.len() > THREADED_INSTS_MAX {
        return false;
    }
    let f = editor.func();
    let Some((&last, others)) = insts.split_last() else { return false };
    if !matches!(f.opcode(last), Opcode::Op(Op::BrIf | Op::BrTable))
        || params.len() > THREADED_PARAMS_MAX
    {
        return false;
    }
    let mut dependent = params.to_vec();
    for &inst in others {
        if f.opcode(inst).effect() != Effect::Pure {
            return false;
        }
        if f.operands(inst).iter().any(|operand| dependent.contains(operand)) {
            dependent.extend(f.results(inst));
        }
    }
    dependent.contains(&f.operands(last)[0])
}

struct Threader<'e, 'f> {
    editor: &'e mut Editor<'f>,
    /// Made when the first edge decides a branch.
    uses: Option<Uses>,
    /// The instruction that defines each value, if one does.
    defs: Vec<Option<Inst>>,
    in_edges: InEdges,
    n_blocks_before: usize,
    n_edges_left: usize,
    /// The known cells of values of the block that is looked at.
    cells: Vec<(Value, u64)>,
}

impl<'e, 'f> Threader<'e, 'f> {
    fn new(editor: &'e mut Editor<'f>) -> Threader<'e, 'f> {
        let mut defs = vec![None; editor.func().n_values()];
        let mut in_edges = InEdges { first: vec![NO_EDGE; editor.n_blocks()], next: Vec::new() };
        let mut n_edges = 0;
        // Backwards, since the last edge that is put into a list comes first.
        for &block in editor.order().iter().rev() {
            for &inst in editor.insts(block) {
                editor.func().results(inst).for_each(|result| defs[result.index()] = Some(inst));
            }
            for edge in editor.out_edges(block).rev() {
                in_edges.put(editor.dst(edge), edge);
                n_edges += 1;
            }
        }
        let n_blocks_before = editor.n_blocks();
        let n_edges_left = THREADED_PER_EDGE_MAX * n_edges;
        Threader {
            editor,
            uses: None,
            defs,
            in_edges,
            n_blocks_before,
            n_edges_left,
            cells: Vec::new(),
        }
    }

    /// Makes edges skip a block as far as they decide its branch.
    fn thread(&mut self, block: Block, report: &mut CfgReport) {
        let edges = self.in_edges.of(block);
        // An edge from a later block goes back, to a loop header; not so one from a block that was made here.
        let goes_back = |src: Block| src >= block && src.index() < self.n_blocks_before;
        if edges.iter().any(|&edge| goes_back(self.editor.src(edge))) {
            return;
        }
        let onward: Vec<Option<Edge>> =
            edges.iter().map(|&edge| self.decided(block, edge)).collect();
        if onward.iter().all(Option::is_none) || self.is_used_elsewhere(block) {
            return;
        }
        self.in_edges.clear(block);
        for (edge, onward) in edges.into_iter().zip(onward).rev() {
            let onward = onward.filter(|_| self.n_edges_left > 0);
            match onward.and_then(|onward| self.skip(edge, onward)) {
                Some((target, edge)) => {
                    self.in_edges.put(target, edge);
                    self.n_edges_left -= 1;
                    report.n_threaded += 1;
                }
                None => self.in_edges.put(block, edge),
            }
        }
    }

    fn is_used_elsewhere(&mut self, block: Block) -> bool {
        let uses = self.uses.get_or_insert_with(|| Uses::scan(self.editor));
        let f = self.editor.func();
        let results = self.editor.insts(block).iter().flat_map(|&inst| f.results(inst));
        let mut defined = self.editor.params(block).iter().copied().chain(results);
        defined.any(|value| uses.is_used_elsewhere(value))
    }

    /// Notes that a value is used in a block of its own.
    fn note_use(&mut self, value: Value) {
        if let Some(uses) = &mut self.uses {
            uses.note(value);
        }
    }

    /// The out-edge that a block takes if an edge enters it.
    fn decided(&mut self, block: Block, edge: Edge) -> Option<Edge> {
        let insts = self.editor.insts(block);
        let (terminator, n_insts) = (insts[insts.len() - 1], insts.len() - 1);
        let selector = self.editor.func().operands(terminator)[0];
        let selector = self.editor.resolve(selector);
        self.cells.clear();
        for i in 0..self.editor.params(block).len() {
            let param = self.editor.params(block)[i];
            if let Some(cell) = self.cell_of_arg(edge, i, param == selector) {
                self.cells.push((param, cell));
            }
        }
        if self.cells.is_empty() {
            return None;
        }
        for i in 0..n_insts {
            self.fold(self.editor.insts(block)[i]);
        }
        let cell = self.cell(selector)?;
        let Opcode::Op(op) = self.editor.func().opcode(terminator) else { return None };
        let mut edges = self.editor.out_edges(block);
        let taken = fold::taken(op, cell, edges.len());
        edges.nth(taken)
    }

    /// The cell of an operand of an edge: it is a constant, or what the branch at the start of the edge found. If it
    /// `decides` a branch by itself, any number other than zero is as good as one.
    fn cell_of_arg(&mut self, edge: Edge, i: usize, decides: bool) -> Option<u64> {
        let value = self.editor.args(edge)[i];
        let value = self.editor.resolve(value);
        if let Some(cell) = self.constant(value) {
            return Some(cell);
        }
        let src = self.editor.src(edge);
        let terminator = self.editor.terminator(src);
        let f = self.editor.func();
        if f.opcode(terminator) != Opcode::Op(Op::BrIf) {
            return None;
        }
        let condition = f.operands(terminator)[0];
        if self.editor.resolve(condition) != value {
            return None;
        }
        let is_taken = self.editor.out_edges(src).next() == Some(edge);
        if !is_taken {
            return Some(0);
        }
        (decides || self.is_boolean(value)).then_some(1)
    }

    fn def(&self, value: Value) -> Option<Inst> {
        self.defs.get(value.index()).copied().flatten()
    }

    fn constant(&self, value: Value) -> Option<u64> {
        let f = self.editor.func();
        let inst = self.def(value)?;
        let is_constant = matches!(f.opcode(inst), Opcode::Op(Op::I32Const | Op::I64Const));
        is_constant.then(|| f.imm(inst).0)
    }

    fn is_boolean(&self, value: Value) -> bool {
        let op = self.def(value).map(|inst| self.editor.func().opcode(inst));
        matches!(op, Some(Opcode::Op(op)) if fold::is_comparison(op))
    }

    fn cell(&self, value: Value) -> Option<u64> {
        let known = self.cells.iter().find(|(of, _)| *of == value).map(|&(_, cell)| cell);
        known.or_else(|| self.constant(value))
    }

    /// Computes an instruction of the block that is looked at, if its operands are known.
    fn fold(&mut self, inst: Inst) {
        let f = self.editor.func();
        let Opcode::Op(op) = f.opcode(inst) else { return };
        let mut cells = [None; 2];
        let n_operands = f.operands(inst).len();
        if n_operands == 0 || n_operands > cells.len() {
            return;
        }
        for (i, cell) in cells.iter_mut().enumerate().take(n_operands) {
            let operand = self.editor.func().operands(inst)[i];
            let operand = self.editor.resolve(operand);
            *cell = self.cell(operand);
        }
        if let Some((_, bits)) = fold::fold(op, |i| cells[i]) {
            self.cells.push((self.editor.func().result(inst), bits));
        }
    }

    /// Makes an edge enter the target of an out-edge of the block that it enters. Returns the target, and the edge that
    /// enters it, unless that would take too many copies.
    fn skip(&mut self, edge: Edge, onward: Edge) -> Option<(Block, Edge)> {
        let (block, target) = (self.editor.dst(edge), self.editor.dst(onward));
        let n_args = self.editor.args(onward).len();
        if !has_room(self.editor.args(edge).len(), n_args) {
            return None;
        }
        let mut needed: Vec<Value> = Vec::with_capacity(n_args);
        for i in 0..n_args {
            let arg = self.editor.args(onward)[i];
            needed.push(self.editor.resolve(arg));
        }
        let copied = self.insts_of(block, &needed)?;
        if copied.is_empty() {
            let args: Vec<Value> =
                needed.iter().map(|&value| passed_on(self.editor, edge, value)).collect();
            self.editor.redirect_edge(edge, target, &args);
            return Some((target, edge));
        }
        Some((target, self.skip_with_copies(edge, target, &copied, &needed)))
    }

    /// The instructions of a block that compute the values, if they are few.
    fn insts_of(&mut self, block: Block, values: &[Value]) -> Option<Vec<Inst>> {
        let mut needed = values.to_vec();
        let mut copied = Vec::new();
        for i in (0..self.editor.insts(block).len() - 1).rev() {
            let inst = self.editor.insts(block)[i];
            let f = self.editor.func();
            if !f.results(inst).any(|result| needed.contains(&result)) {
                continue;
            }
            for i in 0..f.operands(inst).len() {
                let operand = self.editor.func().operands(inst)[i];
                needed.push(self.editor.resolve(operand));
            }
            copied.push(inst);
        }
        copied.reverse();
        (copied.len() <= COPIES_MAX).then_some(copied)
    }

    fn skip_with_copies(
        &mut self,
        edge: Edge,
        target: Block,
        copied: &[Inst],
        args: &[Value],
    ) -> Edge {
        // What the block's values are if the edge enters it.
        let params = self.editor.params(self.editor.dst(edge));
        let mut values: Vec<(Value, Value)> =
            params.iter().copied().zip(self.editor.args(edge).iter().copied()).collect();
        let loc = self.editor.func().loc(self.editor.terminator(self.editor.dst(edge)));
        let on_edge = self.editor.split_edge(edge, loc);
        let map = |values: &[(Value, Value)], value| {
            values.iter().find(|(from, _)| *from == value).map_or(value, |&(_, to)| to)
        };
        let mut insts = Vec::with_capacity(copied.len() + 1);
        for &inst in copied {
            let mut operands = self.editor.func().operands(inst).to_vec();
            for operand in &mut operands {
                *operand = map(&values, self.editor.resolve(*operand));
                self.note_use(*operand);
            }
            let f = self.editor.func();
            let types: Vec<_> = f.results(inst).map(|result| f.value_type(result)).collect();
            let (op, imm, loc) = (f.opcode(inst), f.imm(inst), f.loc(inst));
            let copy = self.editor.make_inst(op, imm, &operands, &types, loc);
            let f = self.editor.func();
            self.defs.resize(f.n_values(), None);
            for (from, to) in f.results(inst).zip(f.results(copy)) {
                values.push((from, to));
                self.defs[to.index()] = Some(copy);
            }
            insts.push(copy);
        }
        insts.push(self.editor.terminator(on_edge));
        self.editor.set_insts(on_edge, &insts);
        let args: Vec<Value> = args.iter().map(|&value| map(&values, value)).collect();
        args.iter().for_each(|&arg| self.note_use(arg));
        let inner = self.editor.only_out_edge(on_edge).expect("a block on an edge branches on");
        self.editor.redirect_edge(inner, target, &args);
        inner
    }
}

/// The edges that enter each block, in lists that change as edges do.
struct InEdges {
    first: Vec<Edge>,
    /// The edge after each edge in its list.
    next: Vec<Edge>,
}

const NO_EDGE: Edge = Edge(u32::MAX);

impl InEdges {
    /// Puts an edge first into the list of a block.
    fn put(&mut self, block: Block, edge: Edge) {
        if self.next.len() <= edge.index() {
            self.next.resize(edge.index() + 1, NO_EDGE);
        }
        self.next[edge.index()] = std::mem::replace(&mut self.first[block.index()], edge);
    }

    fn clear(&mut self, block: Block) {
        self.first[block.index()] = NO_EDGE;
    }

    fn of(&self, block: Block) -> Vec<Edge> {
        let first = Some(self.first[block.index()]).filter(|&edge| edge != NO_EDGE);
        let next = |&edge: &Edge| Some(self.next[edge.index()]).filter(|&edge| edge != NO_EDGE);
        std::iter::successors(first, next).collect()
    }
}
