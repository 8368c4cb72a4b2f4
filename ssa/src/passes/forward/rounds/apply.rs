//! Writes the loads in front of loops, and makes slots of what is carried.

use slotvm_bytecode::Imm;

use super::Plan;
use crate::construction::promote::{PromoteOptions, Scratch, promote_with};
use crate::ir::blocks::Blocks;
use crate::ir::entity::{Block, Inst, Value};
use crate::ir::irop::{IrOp, Opcode};
use crate::ir::{Function, SlotData, SlotOrigin};

/// Changes the loops of a function.
pub(super) fn apply(f: &mut Function, plans: &[Plan]) {
    let n_slots = f.slots.len();
    let mut blocks = Blocks::like(f);
    // The plan whose loop is entered by an edge from a block, or goes back from it.
    let (mut entered, mut closed) = (vec![None; f.n_edges()], vec![None; f.n_blocks()]);
    for (number, plan) in plans.iter().enumerate() {
        let first_slot = f.slots.len() as u32;
        let front = blocks.add();
        write_front(f, &mut blocks, front, plan);
        entered[plan.body.entry.index()] = Some(front);
        closed[f.edge_src(plan.body.latch).index()] = Some((number, first_slot));
    }
    let layout = std::mem::take(&mut f.layout);
    for block in f.blocks() {
        let (start, end) = f.blocks[block.index()].insts;
        let (&terminator, insts) =
            layout[start as usize..end as usize].split_last().expect("a block has a terminator");
        blocks.open(block.0);
        blocks.push_all(insts);
        if let Some((number, first_slot)) = closed[block.index()] {
            for (slot, carried) in (first_slot..).zip(&plans[number].carried) {
                if let Some(next) = carried.next {
                    let set = slot_set(f, slot, next, terminator);
                    blocks.push(set);
                }
            }
        }
        blocks.push(terminator);
        for edge in f.succ_edges(block) {
            match entered[edge.index()] {
                Some(front) => blocks.push_edge(front, []),
                None => {
                    blocks.push_edge(f.edge_dst(edge).0, f.edge_args(edge).iter().copied());
                }
            }
        }
        blocks.close(block.0);
    }
    blocks.finish(f, Function::ENTRY.0);
    // There are fewer of them than loads in the function.
    let options = PromoteOptions { phi_operands_max: usize::MAX, ..PromoteOptions::default() };
    let report = promote_with(f, options, &mut Scratch::default());
    assert!(report.too_large.is_none(), "few values are carried");
    f.slots.truncate(n_slots);
}

/// Writes the block in front of a loop, and makes the loads of what it knows reads of slots.
fn write_front(f: &mut Function, blocks: &mut Blocks, front: u32, plan: &Plan) {
    let header: Block = plan.body.blocks[0];
    let args = f.edge_args(plan.body.entry).to_vec();
    let mut copies: Vec<(Value, Value)> =
        f.params(header).iter().copied().zip(args.iter().copied()).collect();
    blocks.set_origin(front, None, f.block_offset(header));
    blocks.open(front);
    for &inst in &plan.first {
        let operands: Vec<Value> =
            f.operands(inst).iter().map(|&value| copy_of(&copies, value)).collect();
        let copy = f.make_copy(inst, &operands);
        copies.extend(f.results(inst).zip(f.results(copy)));
        blocks.push(copy);
    }
    let last = *plan.first.last().expect("a load is copied");
    for carried in &plan.carried {
        let slot = f.slots.len() as u32;
        let value = f.result(carried.loads[0]);
        f.slots.push(SlotData::new(f.value_type(value), SlotOrigin::Inlined(slot)));
        let set = slot_set(f, slot, copy_of(&copies, value), last);
        blocks.push(set);
        for &load in &carried.loads {
            f.ops[load.index()] = Opcode::Ir(IrOp::SlotGet);
            f.imms[load.index()] = Imm::index(slot);
            f.unmark(load);
            f.operands[load.index()].1 = 0;
        }
    }
    let branch = f.make_inst(Opcode::Op(slotvm_bytecode::Op::Br), Imm::NONE, &[], &[], f.loc(last));
    blocks.push(branch);
    blocks.push_edge(header.0, args);
    blocks.close(front);
}

fn slot_set(f: &mut Function, slot: u32, value: Value, at: Inst) -> Inst {
    let (op, imm) = (Opcode::Ir(IrOp::SlotSet), Imm::index(slot));
    f.make_inst(op, imm, &[value], &[], f.loc(at))
}

/// Returns the value that stands for a value in a copy. Few are copied, so a list will do.
fn copy_of(copies: &[(Value, Value)], value: Value) -> Value {
    copies.iter().rev().find(|&&(of, _)| of == value).map_or(value, |&(_, copy)| copy)
}
