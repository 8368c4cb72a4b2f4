//! Integers with two results, which lie in the cells of the operand stack.

use slotvm_bytecode::Op;
use slotvm_bytecode::pairs::has_flag;

use super::Translator;
use super::operands::{Last, Operand, Value};
use crate::interp::handlers::table::{HandlerCode, RightIn};
use crate::steps::instr::Instr;

impl Translator<'_> {
    pub(super) fn pair(&mut self, op: Op) {
        if matches!(op, Op::I64Add128 | Op::I64Sub128) {
            return self.wide_pair(op);
        }
        let (y, x) = (self.pop(), self.pop());
        let b = self.source(x);
        if let Value::Const(value) = y.value {
            return self.define_pair(
                HandlerCode::Pair(op, RightIn::Long),
                b,
                0,
                Some(Instr::of_data(value)),
            );
        }
        let c = self.source(y);
        self.define_pair(HandlerCode::Pair(op, RightIn::Cell), b, c.into(), None);
    }

    /// An operation on four operands.
    fn wide_pair(&mut self, op: Op) {
        let mut operands: [Operand; 4] = std::array::from_fn(|_| self.pop());
        operands.reverse();
        let [b, x, y, last] = operands.map(|operand| self.source(operand));
        let slot = Instr::of_data_and(0, last.into(), 0);
        let c = u32::from(x) | u32::from(y) << 16;
        self.define_pair(HandlerCode::WidePair(op), b, c, Some(slot));
    }

    /// Appends an instruction that makes two operands, with a slot after it.
    fn define_pair(&mut self, code: HandlerCode, b: u16, c: u32, slot_after: Option<Instr>) {
        let cell = self.operands.height();
        self.operands.set_height(cell + 2);
        let to = if self.is_far {
            let to = self.next_scratch();
            self.next_scratch();
            to
        } else {
            cell as u16
        };
        let (slot, before) = (self.instrs.len(), self.accumulators);
        self.emit(code, to, b, c);
        if let Some(slot_after) = slot_after {
            self.emit_slot(slot_after);
        }
        if self.is_far {
            self.emit(HandlerCode::FarSet, to, 0, cell);
            self.emit(HandlerCode::FarSet, to + 1, 0, cell + 1);
        }
        self.accumulators.overwrite(cell);
        self.accumulators.overwrite(cell + 1);
        if !self.is_exact() {
            // The topmost operand is the second one.
            let (start, cell) = (slot, cell + 1);
            self.last = Some(Last { slot, cell, start, code, b, c, is_negated: false, before });
        }
    }

    /// Appends a branch by the flag of the last instruction in the place of both. Returns whether there is one.
    pub(super) fn pair_branch(&mut self, condition: Operand) -> bool {
        let Some(last) = self.maker(condition) else { return false };
        let HandlerCode::Pair(op, right) = last.code else { return false };
        if !has_flag(op) {
            return false;
        }
        let slot = match right {
            RightIn::Long => Instr::of_data(self.instrs[last.slot + 1].data()),
            _ => Instr::of_data_and(0, last.c, 0),
        };
        self.take_back(last);
        self.flush();
        self.emit(HandlerCode::PairBranch(op, right), last.cell as u16 - 1, last.b, 0);
        self.emit_slot(slot);
        self.accumulators.overwrite(last.cell - 1);
        true
    }
}
