//! Puts the bodies of a plan together.
//!
//! The tables of all nodes are appended to those of the new function, with ids moved by the base of the node. Then
//! blocks are walked: at an inlined call the walk goes on in the body's entry, which continues the caller's block,
//! and at a return it goes on after the call. A body that returns at several places leads to a new block there,
//! whose parameters are the results of the call.
//!
//! Takes time linear in the tables, except for the dominator tree.

use slotvm_bytecode::{Imm, Op, ValType};

use super::plan::Plan;
use super::tables::{Tables, new_tables};
use crate::ir::blocks::Blocks;
use crate::ir::entity::{Block, Inst, Loc, Value};
use crate::ir::frame::{FramePlace, FrameState};
use crate::ir::irop::{IrOp, Opcode};
use crate::ir::replacements::Replacements;
use crate::ir::{Function, SlotOrigin, WaitingValue, fold};

/// The function with the bodies of its plan, in the memory of an empty one.
pub(super) fn splice(plan: &Plan, empty: Function) -> Function {
    let mut splicer = Splicer::new(plan, empty);
    let entry = splicer.walk();
    splicer.finish(entry)
}

/// A position in the body of a node.
#[derive(Copy, Clone)]
struct Position {
    node: usize,
    block: Block,
    /// The index among the instructions of the block.
    next: usize,
}

struct Splicer<'p> {
    plan: &'p Plan,
    out: Function,
    tables: Tables,
    /// The place after the call of each node that was entered.
    returns_to: Vec<Option<Position>>,
    /// The block there, if the node returns at several places and one of them was reached.
    after: Vec<Option<u32>>,
    /// The number of places at which each node returns.
    n_exits: Vec<u32>,
    /// Parameters and results that stand for arguments and returned values.
    replacements: Replacements,
    blocks: Blocks,
    /// Blocks to be filled, each from a position on.
    work: Vec<(u32, Position)>,
}

impl<'p> Splicer<'p> {
    fn new(plan: &'p Plan, empty: Function) -> Splicer<'p> {
        let (out, tables) = new_tables(plan, empty);
        let n_nodes = plan.nodes.len();
        Splicer {
            plan,
            returns_to: vec![None; n_nodes],
            after: vec![None; n_nodes],
            n_exits: n_exits(plan),
            replacements: Replacements::default(),
            blocks: Blocks::with_room(tables.n_blocks as usize, out.n_insts(), tables.n_edges),
            work: Vec::new(),
            out,
            tables,
        }
    }

    fn form(&self, node: usize) -> &'p Function {
        self.plan.form(node)
    }

    // --- Walking ------------------------------------------------------------------------------------------

    /// Fills all blocks. Returns the entry.
    fn walk(&mut self) -> u32 {
        self.queue_blocks(0, 0);
        let entry = match self.plan.has_loop() {
            true => self.enter_loop(),
            false => self.tables.block(0, Function::ENTRY),
        };
        while let Some((block, position)) = self.work.pop() {
            self.start(block, position);
            self.fill(block, position);
        }
        entry
    }

    /// Makes an entry that leads to the function's own, to which tail calls of the function lead as well.
    fn enter_loop(&mut self) -> u32 {
        let entry = self.blocks.add();
        let types = self.out.ty.params.to_vec();
        let params: Vec<Value> = types.into_iter().map(|ty| self.out.make_value(ty)).collect();
        self.blocks.set_params(entry, params.iter().copied());
        self.blocks.open(entry);
        let head = self.tables.block(0, Function::ENTRY);
        self.jump(entry, head, &params, self.tables.first_loc(self.plan, 0));
        entry
    }

    /// Queues the blocks of a node from one on.
    fn queue_blocks(&mut self, node: usize, first: usize) {
        for block in self.form(node).blocks().skip(first) {
            self.work.push((self.tables.block(node, block), Position { node, block, next: 0 }));
        }
    }

    /// Starts a block with the code from a position on.
    fn start(&mut self, block: u32, at: Position) {
        self.blocks.open(block);
        if at.next > 0 {
            return;
        }
        let f = self.form(at.node);
        let params = f.params(at.block).iter().map(|&param| self.tables.value(at.node, param));
        self.blocks.set_params(block, params);
        match at.node {
            0 => self.blocks.set_origin(block, f.label(at.block), f.block_offset(at.block)),
            node => self.blocks.set_origin(block, None, self.tables.offset_of_call(node)),
        }
    }

    /// Fills a block with the code from a position on.
    fn fill(&mut self, block: u32, mut at: Position) {
        loop {
            let f = self.form(at.node);
            let inst = f.insts(at.block)[at.next];
            at.next += 1;
            let next = if let Some(callee) = self.plan.inlined_at(at.node, inst) {
                Some(self.enter(at, inst, callee))
            } else if f.opcode(inst).is_terminator() {
                self.terminator(block, at, inst)
            } else {
                self.blocks.push(self.tables.inst(at.node, inst));
                Some(at)
            };
            match next {
                Some(next) => at = next,
                None => return self.blocks.close(block),
            }
        }
    }

    /// Goes on in a body instead of the call before a position.
    fn enter(&mut self, at: Position, call: Inst, callee: usize) -> Position {
        self.returns_to[callee] = Some(at);
        let call = self.tables.inst(at.node, call);
        for (i, &param) in self.form(callee).params(Function::ENTRY).iter().enumerate() {
            let param = self.tables.value(callee, param);
            let arg = self.out.operands(call)[i];
            self.replacements.replace(param, arg, self.out.n_values());
        }
        self.zero_locals(callee, self.out.loc(call));
        self.queue_blocks(callee, 1);
        Position { node: callee, block: Function::ENTRY, next: 0 }
    }

    /// Writes zeros to the locals of a node that are no parameters, as at the start of its function.
    fn zero_locals(&mut self, node: usize, loc: Loc) {
        let f = self.form(node);
        let n_params = f.ty.params.len();
        let mut zeros: Vec<(ValType, Value)> = Vec::new();
        for (slot, data) in f.slots.iter().enumerate() {
            if !matches!(data.origin, SlotOrigin::Local(local) if local as usize >= n_params) {
                continue;
            }
            let known = zeros.iter().find(|&&(ty, _)| ty == data.ty);
            let zero = known.map(|&(_, zero)| zero).unwrap_or_else(|| {
                let (op, imm) = fold::constant(&mut self.out, data.ty, 0);
                let zero = self.emit(Opcode::Op(op), imm, &[], &[data.ty], loc);
                let zero = self.out.result(zero);
                zeros.push((data.ty, zero));
                zero
            });
            let slot = Imm::index(self.tables.slot(node, slot as u32));
            self.emit(Opcode::Ir(IrOp::SlotSet), slot, &[zero], &[], loc);
        }
    }

    /// Ends a block, or goes on after the call that a terminator returns from.
    fn terminator(&mut self, block: u32, at: Position, inst: Inst) -> Option<Position> {
        let f = self.form(at.node);
        let left = self.plan.returning(at.node);
        let inst_out = self.tables.inst(at.node, inst);
        let operands = || self.out.operands(inst_out).to_vec();
        match f.opcode(inst) {
            Opcode::Op(Op::ReturnCall) if self.plan.enters_root(at.node, f.imm(inst).low()) => {
                let (loc, operands) = (self.out.loc(inst_out), operands());
                self.zero_locals(0, loc);
                let head = self.tables.block(0, Function::ENTRY);
                self.jump(block, head, &operands, loc);
                None
            }
            Opcode::Op(Op::Return) if left > 0 => {
                let operands = operands();
                self.leave(block, left, &operands, self.out.loc(inst_out))
            }
            Opcode::Op(Op::ReturnCall) if left > 0 => {
                // The function that makes the call has no frame meanwhile.
                let operands = operands();
                let loc = self.tables.outer(left).expect("only the root is inlined nowhere");
                let types = self.form(left).ty.results.to_vec();
                let (op, imm) = (Opcode::Op(Op::Call), f.imm(inst));
                let call = self.emit(op, imm, &operands, &types, loc);
                let results: Vec<Value> = self.out.results(call).collect();
                self.leave(block, left, &results, loc)
            }
            Opcode::Ir(IrOp::Exit) if at.node > 0 => {
                self.exit(at.node, inst);
                None
            }
            _ => {
                self.blocks.push(inst_out);
                for edge in f.succ_edges(at.block) {
                    let target = self.tables.block(at.node, f.edge_dst(edge));
                    let args = f.edge_args(edge).iter();
                    let args = args.map(|&arg| self.tables.value(at.node, arg));
                    self.blocks.push_edge(target, args);
                }
                None
            }
        }
    }

    /// Leaves for the interpreter in the body of a node, with the frames that wait for it.
    fn exit(&mut self, node: usize, inst: Inst) {
        let (form, plan) = (self.form(node), self.plan);
        let inst_out = self.tables.inst(node, inst);
        let (loc, mut values) = (self.out.loc(inst_out), self.out.operands(inst_out).to_vec());
        let mut frames = vec![form.exits[form.imm(inst).low() as usize].clone()];
        for (caller, call) in plan.waiting(node) {
            let form = plan.form(caller);
            let waiting = form.waiting_at(call).expect("bodies with exits have what waits");
            let mut places = Vec::with_capacity(waiting.values.len());
            for &(cell, value) in &waiting.values {
                places.push(FramePlace::Cell(cell));
                values.push(match value {
                    WaitingValue::Slot(slot) => {
                        let (ty, slot) =
                            (form.slots[slot as usize].ty, self.tables.slot(caller, slot));
                        let (op, imm) = (Opcode::Ir(IrOp::SlotGet), Imm::index(slot));
                        let get = self.emit(op, imm, &[], &[ty], loc);
                        self.out.result(get)
                    }
                    WaitingValue::Operand(value) => self.tables.value(caller, value),
                });
            }
            let call = Some(form.locs[form.loc(call).index()].offset);
            let (func, blocks) = (form.func, Vec::new());
            frames.push(FrameState { func, blocks, call, places, caller: None });
        }
        let with_caller = |caller, state| Some(Box::new(FrameState { caller, ..state }));
        let state = frames.into_iter().rev().fold(None, with_caller);
        let exit = Imm::index(self.out.exits.len() as u32);
        self.out.exits.extend(state.map(|state| *state));
        self.emit(Opcode::Ir(IrOp::Exit), exit, &values, &[], loc);
    }

    /// Goes on after the call of a node, which has these results.
    fn leave(&mut self, block: u32, node: usize, results: &[Value], loc: Loc) -> Option<Position> {
        let back = self.returns_to[node].expect("the node was entered");
        let (caller, call) = self.plan.nodes[node].caller.expect("only the root has no caller");
        let call_results = self.out.results(self.tables.inst(caller, call));
        if self.n_exits[node] == 1 {
            for (result, &value) in call_results.zip(results) {
                self.replacements.replace(result, value, self.out.n_values());
            }
            return Some(back);
        }
        let after = self.after[node].unwrap_or_else(|| {
            let after = self.blocks.add();
            self.blocks.set_params(after, call_results);
            self.blocks.set_origin(after, None, self.tables.offset_of_call(node));
            self.after[node] = Some(after);
            self.work.push((after, back));
            after
        });
        self.jump(block, after, results, loc);
        None
    }

    // --- Making -------------------------------------------------------------------------------------------

    fn emit(
        &mut self,
        op: Opcode,
        imm: Imm,
        operands: &[Value],
        results: &[ValType],
        loc: Loc,
    ) -> Inst {
        let inst = self.out.make_inst(op, imm, operands, results, loc);
        self.blocks.push(inst);
        inst
    }

    /// Ends a block with a branch.
    fn jump(&mut self, block: u32, target: u32, args: &[Value], loc: Loc) {
        self.emit(Opcode::Op(Op::Br), Imm::NONE, &[], &[], loc);
        self.blocks.push_edge(target, args.iter().copied());
        self.blocks.close(block);
    }

    /// Puts the blocks together.
    fn finish(mut self, entry: u32) -> Function {
        let operands = self.out.operand_pool.iter_mut().chain(self.blocks.args_mut());
        operands.for_each(|value| *value = self.replacements.resolve(*value));
        self.blocks.finish(&mut self.out, entry);
        self.out
    }
}

/// The number of places at which each node returns to its caller.
fn n_exits(plan: &Plan) -> Vec<u32> {
    let mut n_exits: Vec<u32> =
        (0..plan.nodes.len()).map(|node| plan.form_of(node).n_exits).collect();
    // Callers come first.
    for (number, node) in plan.nodes.iter().enumerate().rev() {
        if let Some((caller, _)) = node.caller.filter(|_| node.is_tail) {
            // The tail call itself is none any more.
            n_exits[caller] = n_exits[caller] - 1 + n_exits[number];
        }
    }
    n_exits
}
