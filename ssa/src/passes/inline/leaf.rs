//! The leaf of a function that calls itself twice in a row: what its first test leads to without a call.
//!
//! About half of the calls of such a function end in a leaf, as half of the nodes of a binary tree do. Where the leaf
//! is inlined, they need no frame and save no registers. This is what GCC's `ipa-split` and LLVM's `PartialInliner` do
//! with an outlined rest. Here the whole function stays, and tests again.
//!
//! The leaf is a form of its own: the test, what it leads to up to a return, and a tail call of the whole function with
//! the same arguments instead of the rest. So it is put into its caller as other bodies are.
//!
//! Behaviour does not change. What precedes the test neither writes nor calls, so it may run twice. Charges before the
//! test move after it, into the leaf, because the whole function makes its own. If there are any, nothing before the
//! test may trap or read the store, so their order does not show.

use std::collections::HashMap;

use slotvm_bytecode::{Effect, Imm, ImmKind, Op};

use super::limits::Limits;
use crate::graphs::dominators::DomTree;
use crate::ir::Function;
use crate::ir::entity::{Block, Edge, Inst, Loc, Value};
use crate::ir::graph::control_flow;
use crate::ir::irop::{IrOp, Opcode};

/// The leaf of a function, if it has one.
///
/// Its test is a comparison. A switch would be an indirect jump that runs twice.
pub(super) fn leaf(f: &Function) -> Option<Function> {
    let test = f.terminator(Function::ENTRY);
    if f.opcode(test) != Opcode::Op(Op::BrIf) || !may_run_twice(f) {
        return None;
    }
    let is_path = |edge: Edge| Some((edge, path(f, f.edge_dst(edge))?));
    let (edge, path) = f.succ_edges(Function::ENTRY).find_map(is_path)?;
    let rest = f.succ_edges(Function::ENTRY).find(|&other| other != edge)?;
    if !ends_in_leaves(f, f.edge_dst(rest)) {
        return None;
    }
    Some(Copier::new(f).copy(edge, &path))
}

/// Whether most calls of the function end in the leaf, as far as that shows: the rest, which starts at a block, calls the
/// function, and calls it again. Again means that a call dominates another one, or the end of a round of a loop. Of a
/// chain of calls only the last one ends in the leaf, and of calls that may call nothing few may.
fn ends_in_leaves(f: &Function, rest: Block) -> bool {
    let is_own =
        |&inst: &Inst| f.opcode(inst) == Opcode::Op(Op::Call) && f.imm(inst).low() == f.func;
    let calls = f.blocks().flat_map(|block| {
        let n_calls = f.insts(block).iter().copied().filter(is_own).count();
        std::iter::repeat_n(block, n_calls.min(2))
    });
    let mut calls: Vec<Block> = calls.collect();
    if calls.is_empty() || returns_without(f, rest, &calls) {
        return false;
    }
    let tree = DomTree::semi_nca(&control_flow(f));
    let dominates = |a: Block, b: Block| tree.dominates(a.0, b.0);
    calls.sort_by_key(|block| tree.number(block.0));
    // A block comes right before the first of those that it dominates.
    if calls.windows(2).any(|pair| dominates(pair[0], pair[1])) {
        return true;
    }
    let edges = f.blocks().flat_map(|src| f.succ_edges(src).map(move |edge| (src, edge)));
    let mut back = edges.map(|(src, edge)| (src, f.edge_dst(edge)));
    back.any(|(src, header)| {
        // No call dominates another, so only the last one up to `src` can dominate `src`.
        let end = calls.partition_point(|call| tree.number(call.0) <= tree.number(src.0));
        calls[..end].last().is_some_and(|&call| dominates(header, call) && dominates(call, src))
    })
}

/// Whether a path from a block returns without a call in one of these blocks.
fn returns_without(f: &Function, start: Block, calls: &[Block]) -> bool {
    if calls.contains(&start) {
        return false;
    }
    let mut is_seen = vec![false; f.n_blocks()];
    calls.iter().chain([&start]).for_each(|block| is_seen[block.index()] = true);
    let mut work = vec![start];
    while let Some(block) = work.pop() {
        if matches!(
            f.opcode(f.terminator(block)),
            Opcode::Op(Op::Return | Op::ReturnCall | Op::ReturnCallIndirect)
        ) {
            return true;
        }
        for edge in f.succ_edges(block) {
            let next = f.edge_dst(edge);
            if !std::mem::replace(&mut is_seen[next.index()], true) {
                work.push(next);
            }
        }
    }
    false
}

/// Whether an instruction is a charge of the entry, which moves into the leaf.
fn is_charge(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Ir(IrOp::Fuel | IrOp::Poll | IrOp::StackPush))
}

/// Whether the entry up to its test, without charges, may run before the function does.
fn may_run_twice(f: &Function) -> bool {
    let insts = f.insts(Function::ENTRY);
    let has_charges = insts.iter().any(|&inst| is_charge(f.opcode(inst)));
    insts.iter().map(|&inst| f.opcode(inst)).all(|opcode| match opcode.effect() {
        Effect::Pure | Effect::Local | Effect::Control => true,
        Effect::Trap | Effect::Read => !has_charges,
        Effect::Write | Effect::Call | Effect::Stack => is_charge(opcode),
    })
}

/// The blocks from one on that follow each other up to a return, without calls, if they are as small as a leaf with its
/// entry.
fn path(f: &Function, mut block: Block) -> Option<Vec<Block>> {
    let calls =
        |opcode: Opcode| opcode.effect() == Effect::Call && opcode != Opcode::Ir(IrOp::Poll);
    let mut blocks = Vec::new();
    let mut n_insts = f.insts(Function::ENTRY).len();
    loop {
        blocks.push(block);
        n_insts += f.insts(block).len();
        let (&terminator, insts) = f.insts(block).split_last()?;
        if n_insts > Limits::leaf_cost_max() || insts.iter().any(|&inst| calls(f.opcode(inst))) {
            return None;
        }
        match f.opcode(terminator) {
            Opcode::Op(Op::Return) => return Some(blocks),
            Opcode::Op(Op::Br) => block = f.edge_dst(f.succ_edges(block).next()?),
            _ => return None,
        }
    }
}

/// Copies a leaf. Its tables have only what it needs.
struct Copier<'f> {
    f: &'f Function,
    out: Function,
    values: HashMap<Value, Value>,
    slots: HashMap<u32, u32>,
}

impl<'f> Copier<'f> {
    fn new(f: &'f Function) -> Copier<'f> {
        let out = Function {
            func: f.func,
            name: f.name.clone(),
            ty: f.ty.clone(),
            ..Function::default()
        };
        Copier { f, out, values: HashMap::new(), slots: HashMap::new() }
    }

    /// Copies the entry, what an edge of it and a path lead to, and the call.
    fn copy(mut self, edge: Edge, path: &[Block]) -> Function {
        let f = self.f;
        self.out.start_block(None, f.block_offset(Function::ENTRY));
        for &param in f.params(Function::ENTRY) {
            let copy = self.out.append_param(f.value_type(param));
            self.values.insert(param, copy);
        }
        let (charges, insts): (Vec<Inst>, Vec<Inst>) =
            f.insts(Function::ENTRY).iter().partition(|&&inst| is_charge(f.opcode(inst)));
        insts.iter().for_each(|&inst| self.inst(inst));
        let (leaf, call) = (Block(1), Block(2));
        for other in f.succ_edges(Function::ENTRY) {
            self.out.append_edge(if other == edge { leaf } else { call });
        }
        self.out.end_block();
        self.leaf(edge, &charges, path);
        self.call(insts[0]);
        self.out.compute_preds();
        self.out
    }

    /// Copies charges and a path, as one block that an edge leads to.
    fn leaf(&mut self, edge: Edge, charges: &[Inst], path: &[Block]) {
        let f = self.f;
        self.out.start_block(None, f.block_offset(path[0]));
        charges.iter().for_each(|&inst| self.inst(inst));
        let mut edge = Some(edge);
        for &block in path {
            let args = edge.map_or(&[][..], |edge| f.edge_args(edge));
            let args: Vec<Value> = args.iter().map(|arg| self.values[arg]).collect();
            self.values.extend(f.params(block).iter().copied().zip(args));
            // A branch within the path goes.
            edge = f.succ_edges(block).next();
            let n_insts = f.insts(block).len() - usize::from(edge.is_some());
            f.insts(block)[..n_insts].iter().for_each(|&inst| self.inst(inst));
        }
        self.out.end_block();
    }

    /// Makes the block that calls the whole function.
    fn call(&mut self, first: Inst) {
        let f = self.f;
        self.out.start_block(None, f.block_offset(Function::ENTRY));
        let params = f.params(Function::ENTRY).iter().map(|param| self.values[param]);
        let params: Vec<Value> = params.collect();
        let loc = self.loc(first);
        let (op, imm) = (Opcode::Op(Op::ReturnCall), Imm::index(f.func));
        let call = self.out.make_inst(op, imm, &params, &[], loc);
        self.out.layout.push(call);
        self.out.end_block();
    }

    fn inst(&mut self, inst: Inst) {
        let f = self.f;
        let opcode = f.opcode(inst);
        let imm = match opcode {
            Opcode::Ir(op) if op.is_slot_access() => Imm::index(self.slot(f.imm(inst).low())),
            Opcode::Op(op) if matches!(op.imm_kind(), ImmKind::V128 | ImmKind::Lanes) => {
                self.out.add_vector(f.vector_imm(inst))
            }
            _ => f.imm(inst),
        };
        let operands: Vec<Value> =
            f.operands(inst).iter().map(|value| self.values[value]).collect();
        let types: Vec<_> = f.results(inst).map(|result| f.value_type(result)).collect();
        let loc = self.loc(inst);
        let copy = self.out.make_inst(opcode, imm, &operands, &types, loc);
        self.values.extend(f.results(inst).zip(self.out.results(copy)));
        self.out.layout.push(copy);
    }

    fn slot(&mut self, slot: u32) -> u32 {
        *self.slots.entry(slot).or_insert_with(|| {
            self.out.slots.push(self.f.slots[slot as usize]);
            self.out.slots.len() as u32 - 1
        })
    }

    fn loc(&mut self, inst: Inst) -> Loc {
        let data = self.f.locs[self.f.loc(inst).index()];
        if self.out.locs.last() != Some(&data) {
            self.out.locs.push(data);
        }
        Loc::new(self.out.locs.len() - 1)
    }
}
