//! References that are used in other blocks than their own get slots, so that all others live in one block.
//!
//! Slot form as it is built has no such values. Inlining makes some: the parameters of a body are the arguments of the call.

use slotvm_bytecode::ValType;

use super::append;
use crate::ir::entity::{Block, Inst, Loc, Value};
use crate::ir::irop::IrOp;
use crate::ir::{Function, SlotData, SlotOrigin};

/// Gives slots to the references that are used in other blocks.
pub(super) fn localise(f: &mut Function) {
    let slots = slots(f);
    if slots.iter().all(Option::is_none) {
        return;
    }
    let old = std::mem::take(&mut f.layout);
    let mut localiser = Localiser { slots, layout: Vec::with_capacity(old.len()) };
    for block in f.blocks() {
        let (start, end) = f.blocks[block.index()].insts;
        let new_start = localiser.layout.len() as u32;
        localiser.block(f, block, &old[start as usize..end as usize]);
        f.blocks[block.index()].insts = (new_start, localiser.layout.len() as u32);
    }
    f.layout = localiser.layout;
}

/// The block that defines each reference, and the new slot of each that another block uses.
fn slots(f: &mut Function) -> Vec<Option<(Block, u32)>> {
    let mut defined_in = vec![Block(0); f.n_values()];
    for block in f.blocks() {
        f.params(block).iter().for_each(|param| defined_in[param.index()] = block);
        for &inst in f.insts(block) {
            f.results(inst).for_each(|result| defined_in[result.index()] = block);
        }
    }
    let mut is_shared = vec![false; f.n_values()];
    for block in f.blocks() {
        let mut used = |value: Value| {
            if f.value_type(value) == ValType::Ref && defined_in[value.index()] != block {
                is_shared[value.index()] = true;
            }
        };
        for &inst in f.insts(block) {
            f.operands(inst).iter().for_each(|&value| used(value));
        }
        for edge in f.succ_edges(block) {
            f.edge_args(edge).iter().for_each(|&value| used(value));
        }
    }
    let number = |slot: &SlotData| match slot.origin {
        SlotOrigin::Inlined(number) => Some(number + 1),
        SlotOrigin::Local(_) | SlotOrigin::Stack(_) => None,
    };
    let mut next = f.slots.iter().filter_map(number).max().unwrap_or(0);
    let slots = is_shared.into_iter().zip(defined_in).map(|(is_shared, block)| {
        is_shared.then(|| {
            f.slots.push(SlotData::new(ValType::Ref, SlotOrigin::Inlined(next)));
            next += 1;
            (block, f.slots.len() as u32 - 1)
        })
    });
    slots.collect()
}

struct Localiser {
    slots: Vec<Option<(Block, u32)>>,
    layout: Vec<Inst>,
}

impl Localiser {
    fn block(&mut self, f: &mut Function, block: Block, insts: &[Inst]) {
        let params = f.params(block).to_vec();
        self.write(f, &params, f.loc(insts[0]));
        for &inst in insts {
            let (start, len) = f.operands[inst.index()];
            for i in start as usize..(start + len) as usize {
                let loc = f.loc(inst);
                f.operand_pool[i] = self.read(f, block, f.operand_pool[i], loc);
            }
            if f.opcode(inst).is_terminator() {
                let loc = f.loc(inst);
                for i in f.edge_arg_places(block) {
                    f.edge_args[i] = self.read(f, block, f.edge_args[i], loc);
                }
            }
            self.layout.push(inst);
            let results: Vec<Value> = f.results(inst).collect();
            self.write(f, &results, f.loc(inst));
        }
    }

    /// Writes those of some values to their slots that have one.
    fn write(&mut self, f: &mut Function, values: &[Value], loc: Loc) {
        for &value in values {
            if let Some((_, slot)) = self.slot(value) {
                append(f, &mut self.layout, (IrOp::SlotSet, slot), &[value], &[], loc);
            }
        }
    }

    /// The value for uses of a value in a block: read from its slot, if the value is another block's.
    fn read(&mut self, f: &mut Function, block: Block, value: Value, loc: Loc) -> Value {
        match self.slot(value) {
            Some((own, slot)) if own != block => {
                let get = (IrOp::SlotGet, slot);
                let value = append(f, &mut self.layout, get, &[], &[ValType::Ref], loc);
                value.expect("a slot has a value")
            }
            _ => value,
        }
    }

    /// The slot of a value, and its block; values that were made here have none.
    fn slot(&self, value: Value) -> Option<(Block, u32)> {
        self.slots.get(value.index()).copied().flatten()
    }
}
