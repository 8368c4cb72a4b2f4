//! Constants, `select`, references as values, and the numeric instructions.

use cranelift_codegen::ir::immediates::{Ieee32, Ieee64};
use cranelift_codegen::ir::types::{F32, F64, I8, I16, I32, I64};
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, Type};
use slotvm_bytecode::Op;
use slotvm_ssa::ir::entity::Inst;

use super::Lowering;
use super::conditions::{float_condition, int_condition, is_comparison};

impl Lowering<'_, '_> {
    /// Lowers an instruction that depends on its operands and immediates only.
    pub(super) fn lower_pure(&mut self, inst: Inst, op: Op) {
        let value = match self.func.operands(inst).len() {
            0 => self.constant(inst, op),
            1 => {
                let [a] = self.operands(inst);
                self.unary(op, a)
            }
            2 => {
                let [a, b] = self.operands(inst);
                self.binary(op, a, b)
            }
            _ => {
                debug_assert_eq!(op, Op::Select);
                let [a, b, condition] = self.operands(inst);
                let condition = self.condition(condition);
                self.builder.ins().select(condition, a, b)
            }
        };
        let result = self.func.result(inst);
        let is_number = is_comparison(op) && !self.conditions.contain(result);
        let value = if is_number { self.widened(value) } else { value };
        self.define(result, value);
    }

    fn constant(&mut self, inst: Inst, op: Op) -> ir::Value {
        let bits = self.func.imm(inst).0;
        match op {
            Op::I32Const => return self.int32(bits as u32),
            Op::I64Const => return self.int64(bits as i64),
            _ => {}
        }
        let ins = self.builder.ins();
        match op {
            Op::F32Const => ins.f32const(Ieee32::with_bits(bits as u32)),
            Op::F64Const => ins.f64const(Ieee64::with_bits(bits)),
            Op::RefNull => ins.iconst(I64, 0),
            _ => unreachable!("`{}` is not a constant", op.mnemonic()),
        }
    }

    /// Sign-extends the low bits, as many as `narrow` has.
    fn sign_extend(&mut self, narrow: Type, wide: Type, a: ir::Value) -> ir::Value {
        let low = self.builder.ins().ireduce(narrow, a);
        self.builder.ins().sextend(wide, low)
    }

    /// The result; of a comparison, in 8 bits.
    fn unary(&mut self, op: Op, a: ir::Value) -> ir::Value {
        if self.traps_by_calls()
            && let Some(converted) = self.checked_conversion(op, a)
        {
            return converted;
        }
        let ins = self.builder.ins();
        match op {
            Op::I32Eqz | Op::I64Eqz | Op::RefIsNull => self.inverted_condition(a),
            Op::I32Clz | Op::I64Clz => ins.clz(a),
            Op::I32Ctz | Op::I64Ctz => ins.ctz(a),
            Op::I32Popcnt | Op::I64Popcnt => ins.popcnt(a),
            Op::F32Abs | Op::F64Abs => ins.fabs(a),
            Op::F32Neg | Op::F64Neg => ins.fneg(a),
            Op::F32Ceil | Op::F64Ceil => ins.ceil(a),
            Op::F32Floor | Op::F64Floor => ins.floor(a),
            Op::F32Trunc | Op::F64Trunc => ins.trunc(a),
            Op::F32Nearest | Op::F64Nearest => ins.nearest(a),
            Op::F32Sqrt | Op::F64Sqrt => ins.sqrt(a),
            Op::I32WrapI64 => ins.ireduce(I32, a),
            Op::I64ExtendI32S => ins.sextend(I64, a),
            Op::I64ExtendI32U => ins.uextend(I64, a),
            Op::I32TruncF32S | Op::I32TruncF64S => ins.fcvt_to_sint(I32, a),
            Op::I32TruncF32U | Op::I32TruncF64U => ins.fcvt_to_uint(I32, a),
            Op::I64TruncF32S | Op::I64TruncF64S => ins.fcvt_to_sint(I64, a),
            Op::I64TruncF32U | Op::I64TruncF64U => ins.fcvt_to_uint(I64, a),
            Op::I32TruncSatF32S | Op::I32TruncSatF64S => ins.fcvt_to_sint_sat(I32, a),
            Op::I32TruncSatF32U | Op::I32TruncSatF64U => ins.fcvt_to_uint_sat(I32, a),
            Op::I64TruncSatF32S | Op::I64TruncSatF64S => ins.fcvt_to_sint_sat(I64, a),
            Op::I64TruncSatF32U | Op::I64TruncSatF64U => ins.fcvt_to_uint_sat(I64, a),
            Op::F32ConvertI32S | Op::F32ConvertI64S => ins.fcvt_from_sint(F32, a),
            Op::F32ConvertI32U | Op::F32ConvertI64U => ins.fcvt_from_uint(F32, a),
            Op::F64ConvertI32S | Op::F64ConvertI64S => ins.fcvt_from_sint(F64, a),
            Op::F64ConvertI32U | Op::F64ConvertI64U => ins.fcvt_from_uint(F64, a),
            Op::F32DemoteF64 => ins.fdemote(F32, a),
            Op::F64PromoteF32 => ins.fpromote(F64, a),
            Op::I32ReinterpretF32 => ins.bitcast(I32, MemFlagsData::new(), a),
            Op::RefReinterpretI64 | Op::I64ReinterpretRef => a,
            Op::I64ReinterpretF64 => ins.bitcast(I64, MemFlagsData::new(), a),
            Op::F32ReinterpretI32 => ins.bitcast(F32, MemFlagsData::new(), a),
            Op::F64ReinterpretI64 => ins.bitcast(F64, MemFlagsData::new(), a),
            Op::I32Extend8S => self.sign_extend(I8, I32, a),
            Op::I32Extend16S => self.sign_extend(I16, I32, a),
            Op::I64Extend8S => self.sign_extend(I8, I64, a),
            Op::I64Extend16S => self.sign_extend(I16, I64, a),
            Op::I64Extend32S => self.sign_extend(I32, I64, a),
            _ => unreachable!("`{}` is not a unary operation", op.mnemonic()),
        }
    }

    /// The result; of a comparison, in 8 bits.
    fn binary(&mut self, op: Op, a: ir::Value, b: ir::Value) -> ir::Value {
        if let Some(condition) = int_condition(op) {
            return self.builder.ins().icmp(condition, a, b);
        }
        if let Some(condition) = float_condition(op) {
            return self.builder.ins().fcmp(condition, a, b);
        }
        if self.traps_by_calls() {
            self.check_division(op, a, b);
        }
        if matches!(op, Op::I32Mul | Op::I64Mul)
            && let Some(product) = self.multiply_by_shift(a, b)
        {
            return product;
        }
        if let Some(result) = self.divide_by_constant(op, a, b) {
            return result;
        }
        let ins = self.builder.ins();
        match op {
            Op::I32Add | Op::I64Add => ins.iadd(a, b),
            Op::I32Sub | Op::I64Sub => ins.isub(a, b),
            Op::I32Mul | Op::I64Mul => ins.imul(a, b),
            Op::I32DivS | Op::I64DivS => ins.sdiv(a, b),
            Op::I32DivU | Op::I64DivU => ins.udiv(a, b),
            Op::I32RemS | Op::I64RemS => ins.srem(a, b),
            Op::I32RemU | Op::I64RemU => ins.urem(a, b),
            Op::I32And | Op::I64And => ins.band(a, b),
            Op::I32Or | Op::I64Or => ins.bor(a, b),
            Op::I32Xor | Op::I64Xor => ins.bxor(a, b),
            Op::I32Shl | Op::I64Shl => ins.ishl(a, b),
            Op::I32ShrS | Op::I64ShrS => ins.sshr(a, b),
            Op::I32ShrU | Op::I64ShrU => ins.ushr(a, b),
            Op::I32Rotl | Op::I64Rotl => ins.rotl(a, b),
            Op::I32Rotr | Op::I64Rotr => ins.rotr(a, b),
            Op::F32Add | Op::F64Add => ins.fadd(a, b),
            Op::F32Sub | Op::F64Sub => ins.fsub(a, b),
            Op::F32Mul | Op::F64Mul => ins.fmul(a, b),
            Op::F32Div | Op::F64Div => ins.fdiv(a, b),
            Op::F32Min | Op::F64Min => ins.fmin(a, b),
            Op::F32Max | Op::F64Max => ins.fmax(a, b),
            Op::F32Copysign | Op::F64Copysign => ins.fcopysign(a, b),
            _ => unreachable!("`{}` is not a binary operation", op.mnemonic()),
        }
    }

    /// The product with 3, 5 or 9, as the sum of a number and its double, quadruple or octuple: one instruction with a
    /// third of the latency. Cranelift makes shifts of powers of two only.
    fn multiply_by_shift(&mut self, a: ir::Value, b: ir::Value) -> Option<ir::Value> {
        let (value, factor) = match (self.constant_bits(a), self.constant_bits(b)) {
            (None, Some(factor)) => (a, factor),
            (Some(factor), None) => (b, factor),
            _ => return None,
        };
        let count = match factor {
            3 => 1,
            5 => 2,
            9 => 3,
            _ => return None,
        };
        let ty = self.builder.func.dfg.value_type(value);
        let count = self.builder.ins().iconst(ty, count);
        let multiple = self.builder.ins().ishl(value, count);
        Some(self.builder.ins().iadd(value, multiple))
    }

    /// The bits of an integer constant.
    pub(super) fn constant_bits(&self, value: ir::Value) -> Option<i64> {
        let dfg = &self.builder.func.dfg;
        match dfg.insts[dfg.value_def(value).inst()?] {
            ir::InstructionData::UnaryImm { opcode: ir::Opcode::Iconst, imm } => Some(imm.bits()),
            _ => None,
        }
    }
}
