//! Integers with two results.
//!
//! Those of 128 bits are CLIF's `i128`: one multiplication makes both words, and carries stay in the processor's flag.
//!
//! A flag of overflow that is only a condition is a comparison where there is one, and else what CLIF's operation with
//! overflow returns. Cranelift writes the latter to a register and tests it, but makes one branch of a comparison and the
//! branch by it.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I128};
use cranelift_codegen::ir::{self, InstBuilder};
use slotvm_bytecode::Op;
use slotvm_bytecode::pairs::has_flag;
use slotvm_ssa::ir::entity::Inst;

use super::Lowering;

impl Lowering<'_, '_> {
    pub(super) fn lower_pair(&mut self, inst: Inst, op: Op) {
        let mut results = self.func.results(inst);
        let mut result = || results.next().expect("there are two results");
        let (first, second) = (result(), result());
        let (a, b) = if has_flag(op) {
            let [a, b] = self.operands(inst);
            let is_condition = self.conditions.contain(second);
            let compared = is_condition.then(|| self.compared(op, a, b)).flatten();
            let (result, flag) = compared.unwrap_or_else(|| self.flagged(op, a, b));
            (result, if is_condition { flag } else { self.widened(flag) })
        } else {
            self.wide(inst, op)
        };
        self.define(first, a);
        self.define(second, b);
    }

    /// The words of a result of 128 bits.
    fn wide(&mut self, inst: Inst, op: Op) -> (ir::Value, ir::Value) {
        let result = match op {
            Op::I64Add128 | Op::I64Sub128 => {
                let [a, b, c, d] = self.operands(inst);
                let left = self.builder.ins().iconcat(a, b);
                let right = self.builder.ins().iconcat(c, d);
                match op {
                    Op::I64Add128 => self.builder.ins().iadd(left, right),
                    _ => self.builder.ins().isub(left, right),
                }
            }
            _ => {
                let [a, b] = self.operands(inst);
                let [a, b] = [a, b].map(|a| match op {
                    Op::I64MulWideS => self.builder.ins().sextend(I128, a),
                    _ => self.builder.ins().uextend(I128, a),
                });
                self.builder.ins().imul(a, b)
            }
        };
        self.builder.ins().isplit(result)
    }

    /// The result, and in 8 bits whether it has overflowed.
    fn flagged(&mut self, op: Op, a: ir::Value, b: ir::Value) -> (ir::Value, ir::Value) {
        let ins = self.builder.ins();
        match op {
            Op::I32AddOverflowS | Op::I64AddOverflowS => ins.sadd_overflow(a, b),
            Op::I32AddOverflowU | Op::I64AddOverflowU => ins.uadd_overflow(a, b),
            Op::I32SubOverflowS | Op::I64SubOverflowS => ins.ssub_overflow(a, b),
            Op::I32SubOverflowU | Op::I64SubOverflowU => ins.usub_overflow(a, b),
            Op::I32MulOverflowS | Op::I64MulOverflowS => ins.smul_overflow(a, b),
            Op::I32MulOverflowU | Op::I64MulOverflowU => ins.umul_overflow(a, b),
            _ => unreachable!("`{}` has no flag", op.mnemonic()),
        }
    }

    /// The same by a comparison, if one is enough: of unsigned numbers, or with a constant, whose sign says where the result
    /// must lie.
    fn compared(&mut self, op: Op, a: ir::Value, b: ir::Value) -> Option<(ir::Value, ir::Value)> {
        let (is_sum, is_signed) = match op {
            Op::I32AddOverflowS | Op::I64AddOverflowS => (true, true),
            Op::I32AddOverflowU | Op::I64AddOverflowU => (true, false),
            Op::I32SubOverflowS | Op::I64SubOverflowS => (false, true),
            Op::I32SubOverflowU | Op::I64SubOverflowU => (false, false),
            _ => return None,
        };
        let (a, b) = if is_sum && self.constant_bits(a).is_some() { (b, a) } else { (a, b) };
        let condition = match (is_sum, is_signed) {
            (_, false) => IntCC::UnsignedLessThan,
            (_, true) if self.is_negative_constant(b)? == is_sum => IntCC::SignedGreaterThan,
            (_, true) => IntCC::SignedLessThan,
        };
        let result = match is_sum {
            true => self.builder.ins().iadd(a, b),
            false => self.builder.ins().isub(a, b),
        };
        let (left, right) = if is_sum || is_signed { (result, a) } else { (a, b) };
        Some((result, self.builder.ins().icmp(condition, left, right)))
    }

    /// Whether a constant is negative.
    fn is_negative_constant(&self, value: ir::Value) -> Option<bool> {
        let bits = self.constant_bits(value)?;
        let is_narrow = self.builder.func.dfg.value_type(value) == I32;
        Some(if is_narrow { (bits as i32) < 0 } else { bits < 0 })
    }
}
