//! The instructions of a guard, and the number in which its conditions are joined.

use slotvm_bytecode::{Imm, Op, ValType};

use super::affine::Step;
use super::value_map::ValueMap;
use crate::ir::Function;
use crate::ir::entity::{Inst, Loc, Value};
use crate::ir::irop::Opcode;

/// Writes a guard.
pub(super) struct Guard<'f> {
    pub(super) f: &'f mut Function,
    /// The values of the first round, by those of the loop.
    pub(super) first_round: &'f mut ValueMap,
    pub(super) loc: Loc,
    pub(super) insts: Vec<Inst>,
    /// A number that is negative unless all conditions so far hold.
    pub(super) refused: Option<Value>,
}

impl Guard<'_> {
    /// The size of a step in 64 bits.
    pub(super) fn amount(&mut self, step: Step) -> Value {
        match step {
            Step::Constant(step) => self.constant(step.unsigned_abs().into()),
            Step::Times(factor, times) => {
                let mut amount = self.first(factor);
                if times != 1 {
                    let times = self.constant32(times);
                    amount = self.binary32(Op::I32Mul, amount, times);
                }
                self.extend(amount, false)
            }
        }
    }

    /// Adds the condition that a number is at most another one. Both are signed; their difference fits in 64 bits.
    pub(super) fn require_at_most(&mut self, a: Value, b: Value) {
        let difference = self.binary(Op::I64Sub, b, a);
        self.require_not_negative(difference);
    }

    /// Adds the condition that a signed number is not negative.
    pub(super) fn require_not_negative(&mut self, value: Value) {
        self.refused = Some(match self.refused {
            Some(refused) => self.binary(Op::I64Or, refused, value),
            None => value,
        });
    }

    /// A value of the loop in the first round.
    pub(super) fn first(&self, value: Value) -> Value {
        self.first_round.get(value)
    }

    pub(super) fn constant(&mut self, value: i64) -> Value {
        self.emit(Op::I64Const, Imm::i64(value), &[], ValType::I64)
    }

    pub(super) fn constant32(&mut self, value: i32) -> Value {
        self.emit(Op::I32Const, Imm::i32(value), &[], ValType::I32)
    }

    /// A value of 32 bits in 64 bits.
    pub(super) fn extend(&mut self, value: Value, is_signed: bool) -> Value {
        let op = if is_signed { Op::I64ExtendI32S } else { Op::I64ExtendI32U };
        self.emit(op, Imm::NONE, &[value], ValType::I64)
    }

    pub(super) fn binary(&mut self, op: Op, a: Value, b: Value) -> Value {
        self.emit(op, Imm::NONE, &[a, b], ValType::I64)
    }

    pub(super) fn binary32(&mut self, op: Op, a: Value, b: Value) -> Value {
        self.emit(op, Imm::NONE, &[a, b], ValType::I32)
    }

    pub(super) fn shifted(&mut self, value: Value, by: u32) -> Value {
        let by = self.constant(by.into());
        self.binary(Op::I64Shl, value, by)
    }

    pub(super) fn emit(&mut self, op: Op, imm: Imm, operands: &[Value], result: ValType) -> Value {
        let inst = self.f.make_inst(Opcode::Op(op), imm, operands, &[result], self.loc);
        self.insts.push(inst);
        self.f.result(inst)
    }

    /// Copies a pure instruction of the loop.
    pub(super) fn copy(&mut self, inst: Inst) {
        let copy = self.first_round.copy(self.f, inst);
        self.insts.push(copy);
    }
}
