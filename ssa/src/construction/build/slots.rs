//! Slots during translation: the builder reads and writes them through this trait, whether it makes
//! slot form or SSA form.

use slotvm_bytecode::{Imm, Op, ValType};

use super::loc_at;
use crate::ir::Function;
use crate::ir::entity::{Inst, Value};
use crate::ir::irop::{IrOp, Opcode};

/// A representation of slots. The reads and writes of a block come in its order, except the writes of
/// operands that survive it, which come at its end.
pub(super) trait Slots {
    /// Whether [`Slots::simplify`] ever returns a value.
    const SIMPLIFIES: bool;

    /// Starts the block with a number, to which the following reads and writes belong.
    fn start_block(&mut self, _: &mut Function, _: u32) {}

    /// Ends the block.
    fn end_block(&mut self, _: &mut Function) {}

    /// Reads a slot of this type.
    fn read(&mut self, f: &mut Function, slot: u32, ty: ValType, offset: u32) -> Value;

    /// Writes a slot.
    fn write(&mut self, f: &mut Function, slot: u32, value: Value, offset: u32);

    /// Writes the slot of an operand that survives the block. `at` is the position in the
    /// layout after the instruction that pushed it, which has this offset; positions ascend.
    fn write_surviving(&mut self, f: &mut Function, slot: u32, value: Value, at: u32, offset: u32);

    /// Ends the writes of the operands that survive the block.
    fn end_surviving(&mut self, f: &mut Function);

    /// The type of a value that was read or made.
    fn value_type(&self, f: &Function, value: Value) -> ValType;

    /// The value of an operation, if it need not be executed.
    fn simplify(
        &mut self,
        f: &mut Function,
        op: Op,
        imm: Imm,
        operands: impl ExactSizeIterator<Item = Value> + Clone,
        offset: u32,
    ) -> Option<Value>;
}

/// Slot form: reads and writes are instructions.
pub(super) struct AsInsts<'a> {
    /// The writes of the operands that survive the block, and their places in the layout.
    pub(super) surviving: &'a mut Vec<(u32, Inst)>,
}

impl Slots for AsInsts<'_> {
    const SIMPLIFIES: bool = false;

    #[inline]
    fn read(&mut self, f: &mut Function, slot: u32, ty: ValType, offset: u32) -> Value {
        let loc = loc_at(f, offset);
        let inst = f.make_inst(Opcode::Ir(IrOp::SlotGet), Imm::index(slot), &[], &[ty], loc);
        f.layout.push(inst);
        f.result(inst)
    }

    #[inline]
    fn write(&mut self, f: &mut Function, slot: u32, value: Value, offset: u32) {
        let loc = loc_at(f, offset);
        let inst = f.make_inst(Opcode::Ir(IrOp::SlotSet), Imm::index(slot), &[value], &[], loc);
        f.layout.push(inst);
    }

    #[inline]
    fn write_surviving(&mut self, f: &mut Function, slot: u32, value: Value, at: u32, offset: u32) {
        let loc = loc_at(f, offset);
        let inst = f.make_inst(Opcode::Ir(IrOp::SlotSet), Imm::index(slot), &[value], &[], loc);
        self.surviving.push((at, inst));
    }

    /// Merges the writes into the block from its end.
    fn end_surviving(&mut self, f: &mut Function) {
        insert_at(&mut f.layout, self.surviving);
        self.surviving.clear();
    }

    #[inline]
    fn value_type(&self, f: &Function, value: Value) -> ValType {
        f.value_type(value)
    }

    fn simplify(
        &mut self,
        _: &mut Function,
        _: Op,
        _: Imm,
        _: impl ExactSizeIterator<Item = Value> + Clone,
        _: u32,
    ) -> Option<Value> {
        None
    }
}

/// Inserts each instruction before the position that it comes with. The positions ascend.
fn insert_at(layout: &mut Vec<Inst>, insertions: &[(u32, Inst)]) {
    let mut from = layout.len();
    layout.resize(from + insertions.len(), Inst::default());
    let mut to = layout.len();
    for &(at, inst) in insertions.iter().rev() {
        let n_moved = from - at as usize;
        layout.copy_within(at as usize..from, to - n_moved);
        to -= n_moved + 1;
        from = at as usize;
        layout[to] = inst;
    }
}
