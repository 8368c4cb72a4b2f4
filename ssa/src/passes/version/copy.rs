//! The copies of loops, with their guards in front of them.
//!
//! All edges that enter a loop lead to its guard, which leads to the loop or to its copy. A value of the loop that is used
//! after it is written to a slot in both, and read from there. Promotion places the phis.

use slotvm_bytecode::{Imm, Op};

use super::value_map::ValueMap;
use super::{LIVE_OUT_MAX, Plan, guard};
use crate::construction::promote::{PromoteOptions, Scratch, promote_with};
use crate::ir::blocks::Blocks;
use crate::ir::entity::{Block, Inst, Loc, Slot, Value};
use crate::ir::irop::{IrOp, Opcode};
use crate::ir::{Function, SlotData, SlotOrigin};

/// No loop.
const NONE: usize = usize::MAX;

/// The loop of each block, by its number among these loops.
fn loops_of_blocks(f: &Function, loops: &[&[Block]]) -> Vec<usize> {
    let mut loop_of = vec![NONE; f.n_blocks()];
    for (number, blocks) in loops.iter().enumerate() {
        blocks.iter().for_each(|block| loop_of[block.index()] = number);
    }
    loop_of
}

/// The values of these loops that are used elsewhere, each with its loop, in the order of their first uses.
fn live_out(f: &Function, loops: &[&[Block]]) -> Vec<(Value, usize)> {
    let loop_of_block = loops_of_blocks(f, loops);
    let mut loop_of_value = vec![NONE; f.n_values()];
    for (number, &block) in
        loops.iter().enumerate().flat_map(|(i, of)| of.iter().map(move |b| (i, b)))
    {
        let results = f.insts(block).iter().flat_map(|&inst| f.results(inst));
        for value in f.params(block).iter().copied().chain(results) {
            loop_of_value[value.index()] = number;
        }
    }
    let mut found = Vec::new();
    for block in f.blocks() {
        let operands = f.insts(block).iter().flat_map(|&inst| f.operands(inst));
        let args = f.succ_edges(block).flat_map(|edge| f.edge_args(edge));
        for &value in operands.chain(args) {
            let of = &mut loop_of_value[value.index()];
            if *of != NONE && *of != loop_of_block[block.index()] {
                found.push((value, std::mem::replace(of, NONE)));
            }
        }
    }
    found
}

/// Leaves out loops, so that few values are used after the others.
pub(super) fn keep_few_live_out(f: &Function, loops: &mut Vec<Vec<Block>>) {
    let mut n_live_out = vec![0; loops.len()];
    let all: Vec<&[Block]> = loops.iter().map(Vec::as_slice).collect();
    live_out(f, &all).into_iter().for_each(|(_, of)| n_live_out[of] += 1);
    let (mut n, mut sum) = (n_live_out.into_iter(), 0);
    loops.retain(|_| {
        let n = n.next().expect("each loop has a number");
        let has_room = sum + n <= LIVE_OUT_MAX;
        sum += if has_room { n } else { 0 };
        has_room
    });
}

/// Copies loops, and writes their guards.
pub(super) fn apply(f: &mut Function, plans: &[Plan]) {
    let loops: Vec<&[Block]> = plans.iter().map(|plan| plan.blocks.as_slice()).collect();
    let n_slots = f.slots.len();
    let mut slots = vec![None; f.n_values()];
    for (value, of) in live_out(f, &loops) {
        slots[value.index()] = Some((f.slots.len() as u32, of));
        let origin = SlotOrigin::Inlined(f.slots.len() as u32);
        if let Some(names) = &mut f.names {
            names.name_slot_after(Slot::new(f.slots.len()), value);
        }
        f.slots.push(SlotData::new(f.value_type(value), origin));
    }
    let mut blocks = Blocks::like(f);
    let guards = plans.iter().map(|_| blocks.add()).collect();
    let first_copies = plans
        .iter()
        .map(|plan| plan.blocks.iter().map(|_| blocks.add()).min().expect("a loop has blocks"))
        .collect();
    let loop_of = loops_of_blocks(f, &loops);
    let layout = std::mem::take(&mut f.layout);
    let copies = ValueMap::new(f);
    let first_round = ValueMap::new(f);
    Copier { f, layout, blocks, slots, guards, first_copies, loop_of, copies }
        .run(plans, first_round);
    if f.slots.len() > n_slots {
        // The limits of this pass are far below those of promotion.
        let options = PromoteOptions { phi_operands_max: usize::MAX, ..PromoteOptions::default() };
        let report = promote_with(f, options, &mut Scratch::default());
        assert!(report.too_large.is_none(), "few values are used after loops");
        f.slots.truncate(n_slots);
        if let Some(names) = &mut f.names {
            names.truncate_slots(n_slots);
        }
    }
}

/// Puts the blocks of a function together anew.
struct Copier<'f> {
    f: &'f mut Function,
    /// The instructions of all blocks.
    layout: Vec<Inst>,
    blocks: Blocks,
    /// The slot of each value that is used after its loop, and the loop.
    slots: Vec<Option<(u32, usize)>>,
    /// The guard of each loop.
    guards: Vec<u32>,
    /// The copy of each loop's header; those of its other blocks follow.
    first_copies: Vec<u32>,
    loop_of: Vec<usize>,
    /// The copies of the values of a loop.
    copies: ValueMap,
}

impl Copier<'_> {
    fn run(mut self, plans: &[Plan], mut first_round: ValueMap) {
        for (number, plan) in plans.iter().enumerate() {
            self.write_guard(number, plan, &mut first_round);
            for (copy, &block) in (self.first_copies[number]..).zip(&plan.blocks) {
                self.copy(number, plan, block, copy);
            }
            first_round.clear();
            self.copies.clear();
        }
        for &inst in plans.iter().flat_map(|plan| &plan.in_bounds) {
            self.f.mark_in_bounds(inst);
        }
        for block in self.f.blocks() {
            self.fill(block);
        }
        self.blocks.finish(self.f, Function::ENTRY.0);
    }

    fn insts(&self, block: Block) -> Vec<Inst> {
        let (start, end) = self.f.blocks[block.index()].insts;
        self.layout[start as usize..end as usize].to_vec()
    }

    fn loc(&self, block: Block) -> Loc {
        let (start, _) = self.f.blocks[block.index()].insts;
        self.f.loc(self.layout[start as usize])
    }

    /// Writes the blocks that decide between a loop and its copy.
    fn write_guard(&mut self, number: usize, plan: &Plan, first_round: &mut ValueMap) {
        let (guard, header) = (self.guards[number], plan.blocks[0]);
        // A location of its own, so that the branch is no copy of another one.
        let loc = Loc::new(self.f.locs.len());
        self.f.locs.push(self.f.locs[self.loc(header).index()]);
        let params = first_round.copy_params(self.f, header);
        self.blocks.set_params(guard, params.iter().copied());
        let second = self.blocks.add();
        let parts = guard::write(self.f, plan, first_round, loc);
        for (part, (block, next)) in parts.into_iter().zip([(guard, second), (second, header.0)]) {
            self.blocks.set_origin(block, None, self.f.block_offset(header));
            self.blocks.open(block);
            for inst in part.insts {
                self.push(inst, NONE);
            }
            let (op, operands) = (Opcode::Op(Op::BrIf), [part.refuses]);
            let branch = self.f.make_inst(op, Imm::NONE, &operands, &[], loc);
            self.blocks.push(branch);
            self.blocks.push_edge(self.first_copies[number], params.iter().copied());
            let args: &[Value] = if next == second { &[] } else { &params };
            self.blocks.push_edge(next, args.iter().copied());
            self.blocks.close(block);
        }
    }

    /// Copies a block of a loop.
    fn copy(&mut self, number: usize, plan: &Plan, block: Block, copy: u32) {
        let params = self.copies.copy_params(self.f, block);
        self.blocks.set_params(copy, params.iter().copied());
        self.blocks.set_origin(copy, None, self.f.block_offset(block));
        self.blocks.open(copy);
        let of = self.f.params(block).to_vec();
        for (of, param) in of.into_iter().zip(params) {
            self.save(of, param, self.loc(block));
        }
        let insts = self.insts(block);
        let (&terminator, insts) = insts.split_last().expect("a block has a terminator");
        for &inst in insts {
            let copied = self.copies.copy(self.f, inst);
            self.push(copied, number);
            for (of, result) in self.f.results(inst).zip(self.f.results(copied)) {
                self.save(of, result, self.f.loc(inst));
            }
        }
        let edges: Vec<(u32, Vec<Value>)> = (self.f.succ_edges(block))
            .map(|edge| {
                let dst = self.f.edge_dst(edge);
                let place = plan.blocks.binary_search(&dst);
                let target = place.map_or_else(
                    |_| self.target(dst, number),
                    |i| self.first_copies[number] + i as u32,
                );
                (target, self.f.edge_args(edge).iter().map(|&arg| self.copies.get(arg)).collect())
            })
            .collect();
        let copied = self.copies.copy(self.f, terminator);
        self.end(copy, copied, edges, number);
    }

    /// Fills a block of the function.
    fn fill(&mut self, block: Block) {
        let number = self.loop_of[block.index()];
        self.blocks.open(block.0);
        for param in self.f.params(block).to_vec() {
            self.save(param, param, self.loc(block));
        }
        let insts = self.insts(block);
        let (&terminator, insts) = insts.split_last().expect("a block has a terminator");
        for &inst in insts {
            self.push(inst, number);
            for result in self.f.results(inst) {
                self.save(result, result, self.f.loc(inst));
            }
        }
        let edges: Vec<(u32, Vec<Value>)> = (self.f.succ_edges(block))
            .map(|edge| {
                (self.target(self.f.edge_dst(edge), number), self.f.edge_args(edge).to_vec())
            })
            .collect();
        self.end(block.0, terminator, edges, number);
    }

    /// The block that an edge to a block leads to, from inside of a loop or from elsewhere.
    fn target(&self, dst: Block, from: usize) -> u32 {
        match self.loop_of[dst.index()] {
            of if of == NONE || of == from => dst.0,
            of => self.guards[of],
        }
    }

    /// Ends the block that is open with a terminator and its edges.
    fn end(&mut self, block: u32, terminator: Inst, edges: Vec<(u32, Vec<Value>)>, number: usize) {
        let loc = self.f.loc(terminator);
        let used = |copier: &mut Self, args: Vec<Value>| -> Vec<Value> {
            args.into_iter().map(|arg| copier.used(arg, number, loc)).collect()
        };
        let edges: Vec<(u32, Vec<Value>)> =
            edges.into_iter().map(|(target, args)| (target, used(self, args))).collect();
        self.push(terminator, number);
        for (target, args) in edges {
            self.blocks.push_edge(target, args);
        }
        self.blocks.close(block);
    }

    /// Appends an instruction inside of a loop, or elsewhere.
    fn push(&mut self, inst: Inst, number: usize) {
        let (start, len) = self.f.operands[inst.index()];
        for i in start as usize..(start + len) as usize {
            let value = self.f.operand_pool[i];
            self.f.operand_pool[i] = self.used(value, number, self.f.loc(inst));
        }
        self.blocks.push(inst);
    }

    /// The value to use for one that may be of another loop.
    fn used(&mut self, value: Value, number: usize, loc: Loc) -> Value {
        match self.slots.get(value.index()) {
            Some(&Some((slot, of))) if of != number => {
                let ty = self.f.value_type(value);
                let (op, imm) = (Opcode::Ir(IrOp::SlotGet), Imm::index(slot));
                let get = self.f.make_inst(op, imm, &[], &[ty], loc);
                self.blocks.push(get);
                self.f.result(get)
            }
            _ => value,
        }
    }

    /// Writes a value to its slot, if it is used after its loop. `of` is the value in the loop itself.
    fn save(&mut self, of: Value, value: Value, loc: Loc) {
        if let Some(&Some((slot, _))) = self.slots.get(of.index()) {
            let (op, imm) = (Opcode::Ir(IrOp::SlotSet), Imm::index(slot));
            let set = self.f.make_inst(op, imm, &[value], &[], loc);
            self.blocks.push(set);
        }
    }
}
