//! Vectors: the instructions on them, and loads and stores of their parts.
//!
//! Every vector is an [`I8X16`] between instructions, as a parameter and in memory; each instruction casts
//! its operands to the lanes that it works on, which the opcode table has. Such a cast generates no code.

use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::types::{F32X4, F64X2, I8X16, I16X8, I32, I32X4, I64X2};
use cranelift_codegen::ir::{self, ConstantData, InstBuilder, MemFlagsData, Type};
use slotvm_bytecode::op::{Access, Lanes, VectorAccess, VectorPart};
use slotvm_bytecode::{Op, ValType};
use slotvm_runtime::native::access_end_max;
use slotvm_ssa::ir::entity::Inst;

use super::Lowering;
use super::conditions::{float_condition, int_condition};
use super::traps::StoredBytes;

/// Cranelift's type of a vector with these lanes; without any, of one that is divided into bytes.
fn vector_type(lanes: Option<Lanes>) -> Type {
    match lanes {
        Some(Lanes::I8x16) | None => I8X16,
        Some(Lanes::I16x8) => I16X8,
        Some(Lanes::I32x4) => I32X4,
        Some(Lanes::I64x2) => I64X2,
        Some(Lanes::F32x4) => F32X4,
        Some(Lanes::F64x2) => F64X2,
    }
}

/// The types of the result of an instruction and of its operands.
fn types(op: Op) -> (Type, Type) {
    (vector_type(op.result_lanes()), vector_type(op.operand_lanes()))
}

impl Lowering<'_, '_> {
    /// Lowers an instruction on vectors that does not access memory.
    pub(super) fn lower_vector(&mut self, inst: Inst, op: Op) {
        let value = match self.func.operands(inst).len() {
            0 => self.vector_constant(self.func.vector_imm(inst)),
            1 => self.vector_unary(inst, op),
            2 => self.vector_binary(inst, op),
            _ => {
                debug_assert_eq!(op, Op::V128Bitselect);
                let [a, b, mask] = self.operands(inst);
                self.builder.ins().bitselect(mask, a, b)
            }
        };
        let value = self.cast(value, I8X16);
        self.define_result(inst, value);
    }

    /// Casts a vector to other lanes; other values stay as they are.
    fn cast(&mut self, value: ir::Value, to: Type) -> ir::Value {
        let from = self.builder.func.dfg.value_type(value);
        if from == to || !from.is_vector() {
            return value;
        }
        let flags = MemFlagsData::new().with_endianness(ir::Endianness::Little);
        self.builder.ins().bitcast(to, flags, value)
    }

    /// The lanes of an operand.
    fn lanes(&mut self, inst: Inst, index: usize, ty: Type) -> ir::Value {
        let value = self.operand(inst, index);
        self.cast(value, ty)
    }

    /// A vector with these bits.
    pub(super) fn vector_constant(&mut self, bits: u128) -> ir::Value {
        self.constant_lanes(I8X16, bits)
    }

    fn constant_lanes(&mut self, ty: Type, bits: u128) -> ir::Value {
        let data = ConstantData::from(&bits.to_le_bytes()[..]);
        let constant = self.builder.func.dfg.constants.insert(data);
        self.builder.ins().vconst(ty, constant)
    }

    /// The lane that the immediate of an instruction names.
    fn lane(&self, inst: Inst) -> u8 {
        self.func.imm(inst).low() as u8
    }

    fn vector_unary(&mut self, inst: Inst, op: Op) -> ir::Value {
        use Op::*;
        let (result, operand) = types(op);
        match op {
            I8x16Splat | I16x8Splat | I32x4Splat | I64x2Splat | F32x4Splat | F64x2Splat => {
                let value = self.narrowed(inst, 0, result.lane_type());
                return self.builder.ins().splat(result, value);
            }
            _ => {}
        }
        let a = self.lanes(inst, 0, operand);
        let lane = self.lane(inst);
        let ins = self.builder.ins();
        match op {
            I8x16ExtractLaneS | I16x8ExtractLaneS => {
                let lane = ins.extractlane(a, lane);
                self.builder.ins().sextend(I32, lane)
            }
            I8x16ExtractLaneU | I16x8ExtractLaneU => {
                let lane = ins.extractlane(a, lane);
                self.builder.ins().uextend(I32, lane)
            }
            I32x4ExtractLane | I64x2ExtractLane | F32x4ExtractLane | F64x2ExtractLane => {
                ins.extractlane(a, lane)
            }
            V128Not => ins.bnot(a),
            V128AnyTrue => {
                let any = ins.vany_true(a);
                self.builder.ins().uextend(I32, any)
            }
            I8x16AllTrue | I16x8AllTrue | I32x4AllTrue | I64x2AllTrue => {
                let all = ins.vall_true(a);
                self.builder.ins().uextend(I32, all)
            }
            I8x16Bitmask | I16x8Bitmask | I32x4Bitmask | I64x2Bitmask => ins.vhigh_bits(I32, a),
            I8x16Abs | I16x8Abs | I32x4Abs | I64x2Abs => ins.iabs(a),
            I8x16Neg | I16x8Neg | I32x4Neg | I64x2Neg => ins.ineg(a),
            I8x16Popcnt => ins.popcnt(a),
            I16x8ExtAddPairwiseI8x16S | I32x4ExtAddPairwiseI16x8S => {
                let low = ins.swiden_low(a);
                let high = self.builder.ins().swiden_high(a);
                self.builder.ins().iadd_pairwise(low, high)
            }
            I16x8ExtAddPairwiseI8x16U | I32x4ExtAddPairwiseI16x8U => {
                let low = ins.uwiden_low(a);
                let high = self.builder.ins().uwiden_high(a);
                self.builder.ins().iadd_pairwise(low, high)
            }
            I16x8ExtendLowI8x16S | I32x4ExtendLowI16x8S | I64x2ExtendLowI32x4S => ins.swiden_low(a),
            I16x8ExtendHighI8x16S | I32x4ExtendHighI16x8S | I64x2ExtendHighI32x4S => {
                ins.swiden_high(a)
            }
            I16x8ExtendLowI8x16U | I32x4ExtendLowI16x8U | I64x2ExtendLowI32x4U => ins.uwiden_low(a),
            I16x8ExtendHighI8x16U | I32x4ExtendHighI16x8U | I64x2ExtendHighI32x4U => {
                ins.uwiden_high(a)
            }
            _ => self.vector_float_unary(op, a),
        }
    }

    /// The operations on the lanes of one vector of floats, and the conversions to and from them.
    fn vector_float_unary(&mut self, op: Op, a: ir::Value) -> ir::Value {
        use Op::*;
        let ins = self.builder.ins();
        match op {
            F32x4Abs | F64x2Abs => ins.fabs(a),
            F32x4Neg | F64x2Neg => ins.fneg(a),
            F32x4Sqrt | F64x2Sqrt => ins.sqrt(a),
            F32x4Ceil | F64x2Ceil => ins.ceil(a),
            F32x4Floor | F64x2Floor => ins.floor(a),
            F32x4Trunc | F64x2Trunc => ins.trunc(a),
            F32x4Nearest | F64x2Nearest => ins.nearest(a),
            F32x4DemoteF64x2Zero => ins.fvdemote(a),
            F64x2PromoteLowF32x4 => ins.fvpromote_low(a),
            F32x4ConvertI32x4S => ins.fcvt_from_sint(F32X4, a),
            F32x4ConvertI32x4U => ins.fcvt_from_uint(F32X4, a),
            F64x2ConvertLowI32x4S => {
                let wide = ins.swiden_low(a);
                self.builder.ins().fcvt_from_sint(F64X2, wide)
            }
            F64x2ConvertLowI32x4U => {
                let wide = ins.uwiden_low(a);
                self.builder.ins().fcvt_from_uint(F64X2, wide)
            }
            I32x4TruncSatF32x4S => ins.fcvt_to_sint_sat(I32X4, a),
            I32x4TruncSatF32x4U => ins.fcvt_to_uint_sat(I32X4, a),
            // Saturating once more, from 64 to 32 bits, saturates to what fits 32 bits.
            I32x4TruncSatF64x2SZero => {
                let wide = ins.fcvt_to_sint_sat(I64X2, a);
                let zero = self.constant_lanes(I64X2, 0);
                self.builder.ins().snarrow(wide, zero)
            }
            I32x4TruncSatF64x2UZero => {
                let wide = ins.fcvt_to_uint_sat(I64X2, a);
                let zero = self.constant_lanes(I64X2, 0);
                self.builder.ins().uunarrow(wide, zero)
            }
            _ => unreachable!("`{}` is not an operation on one vector", op.mnemonic()),
        }
    }

    fn vector_binary(&mut self, inst: Inst, op: Op) -> ir::Value {
        use Op::*;
        let (result, operand) = types(op);
        match op {
            I8x16ReplaceLane | I16x8ReplaceLane | I32x4ReplaceLane | I64x2ReplaceLane
            | F32x4ReplaceLane | F64x2ReplaceLane => {
                let a = self.lanes(inst, 0, result);
                let value = self.narrowed(inst, 1, result.lane_type());
                let lane = self.lane(inst);
                return self.builder.ins().insertlane(a, value, lane);
            }
            I8x16Shl | I16x8Shl | I32x4Shl | I64x2Shl | I8x16ShrS | I16x8ShrS | I32x4ShrS
            | I64x2ShrS | I8x16ShrU | I16x8ShrU | I32x4ShrU | I64x2ShrU => {
                let (a, count) = (self.lanes(inst, 0, result), self.operand(inst, 1));
                let ins = self.builder.ins();
                return match op {
                    I8x16Shl | I16x8Shl | I32x4Shl | I64x2Shl => ins.ishl(a, count),
                    I8x16ShrS | I16x8ShrS | I32x4ShrS | I64x2ShrS => ins.sshr(a, count),
                    _ => ins.ushr(a, count),
                };
            }
            I8x16Shuffle => {
                let [a, b] = self.operands(inst);
                let lanes = self.func.vector_imm(inst).to_le_bytes();
                let lanes = self.builder.func.dfg.immediates.push(ConstantData::from(&lanes[..]));
                return self.builder.ins().shuffle(a, b, lanes);
            }
            _ => {}
        }
        let (a, b) = (self.lanes(inst, 0, operand), self.lanes(inst, 1, operand));
        if let Some(condition) = int_condition(op) {
            return self.builder.ins().icmp(condition, a, b);
        }
        if let Some(condition) = float_condition(op) {
            return self.builder.ins().fcmp(condition, a, b);
        }
        let ins = self.builder.ins();
        match op {
            I8x16Swizzle => ins.swizzle(a, b),
            V128And => ins.band(a, b),
            V128AndNot => ins.band_not(a, b),
            V128Or => ins.bor(a, b),
            V128Xor => ins.bxor(a, b),
            I8x16Add | I16x8Add | I32x4Add | I64x2Add => ins.iadd(a, b),
            I8x16Sub | I16x8Sub | I32x4Sub | I64x2Sub => ins.isub(a, b),
            I16x8Mul | I32x4Mul | I64x2Mul => ins.imul(a, b),
            I8x16AddSatS | I16x8AddSatS => ins.sadd_sat(a, b),
            I8x16AddSatU | I16x8AddSatU => ins.uadd_sat(a, b),
            I8x16SubSatS | I16x8SubSatS => ins.ssub_sat(a, b),
            I8x16SubSatU | I16x8SubSatU => ins.usub_sat(a, b),
            I8x16MinS | I16x8MinS | I32x4MinS => ins.smin(a, b),
            I8x16MinU | I16x8MinU | I32x4MinU => ins.umin(a, b),
            I8x16MaxS | I16x8MaxS | I32x4MaxS => ins.smax(a, b),
            I8x16MaxU | I16x8MaxU | I32x4MaxU => ins.umax(a, b),
            I8x16AvgrU | I16x8AvgrU => ins.avg_round(a, b),
            I16x8Q15MulrSatS => ins.sqmul_round_sat(a, b),
            I8x16NarrowI16x8S | I16x8NarrowI32x4S => ins.snarrow(a, b),
            I8x16NarrowI16x8U | I16x8NarrowI32x4U => ins.unarrow(a, b),
            I16x8ExtMulLowI8x16S | I32x4ExtMulLowI16x8S | I64x2ExtMulLowI32x4S => {
                let (a, b) = (ins.swiden_low(a), self.builder.ins().swiden_low(b));
                self.builder.ins().imul(a, b)
            }
            I16x8ExtMulHighI8x16S | I32x4ExtMulHighI16x8S | I64x2ExtMulHighI32x4S => {
                let (a, b) = (ins.swiden_high(a), self.builder.ins().swiden_high(b));
                self.builder.ins().imul(a, b)
            }
            I16x8ExtMulLowI8x16U | I32x4ExtMulLowI16x8U | I64x2ExtMulLowI32x4U => {
                let (a, b) = (ins.uwiden_low(a), self.builder.ins().uwiden_low(b));
                self.builder.ins().imul(a, b)
            }
            I16x8ExtMulHighI8x16U | I32x4ExtMulHighI16x8U | I64x2ExtMulHighI32x4U => {
                let (a, b) = (ins.uwiden_high(a), self.builder.ins().uwiden_high(b));
                self.builder.ins().imul(a, b)
            }
            I32x4DotI16x8S => self.dot(a, b),
            F32x4Add | F64x2Add => ins.fadd(a, b),
            F32x4Sub | F64x2Sub => ins.fsub(a, b),
            F32x4Mul | F64x2Mul => ins.fmul(a, b),
            F32x4Div | F64x2Div => ins.fdiv(a, b),
            F32x4Min | F64x2Min => ins.fmin(a, b),
            F32x4Max | F64x2Max => ins.fmax(a, b),
            F32x4PMin | F64x2PMin => self.second_if_less(b, a, b, a),
            F32x4PMax | F64x2PMax => self.second_if_less(a, b, b, a),
            _ => unreachable!("`{}` is not an operation on two vectors", op.mnemonic()),
        }
    }

    /// Sums of neighbouring products.
    fn dot(&mut self, a: ir::Value, b: ir::Value) -> ir::Value {
        let (x, y) = (self.builder.ins().swiden_low(a), self.builder.ins().swiden_low(b));
        let low = self.builder.ins().imul(x, y);
        let (x, y) = (self.builder.ins().swiden_high(a), self.builder.ins().swiden_high(b));
        let high = self.builder.ins().imul(x, y);
        self.builder.ins().iadd_pairwise(low, high)
    }

    /// The lanes of `then` where those of `x` are less than those of `y`, of `otherwise` elsewhere.
    fn second_if_less(
        &mut self,
        x: ir::Value,
        y: ir::Value,
        then: ir::Value,
        otherwise: ir::Value,
    ) -> ir::Value {
        let ty = self.builder.func.dfg.value_type(x);
        let is_less = self.builder.ins().fcmp(FloatCC::LessThan, x, y);
        let is_less = self.cast(is_less, ty);
        self.builder.ins().bitselect(is_less, then, otherwise)
    }

    /// An operand as a lane: numbers of 32 bits stand for narrower ones.
    fn narrowed(&mut self, inst: Inst, index: usize, lane: Type) -> ir::Value {
        let value = self.operand(inst, index);
        if lane.bits() < 32 { self.builder.ins().ireduce(lane, value) } else { value }
    }

    /// Lowers a load or store of a part of a vector.
    pub(super) fn lower_vector_access(&mut self, inst: Inst, op: Op, part: VectorAccess) {
        let imm = self.func.imm(inst);
        let VectorAccess { bytes, part, store } = part;
        // Bounds and address are those of a number of as many bytes.
        let ty = if bytes > 4 { ValType::I64 } else { ValType::I32 };
        let access = Access { ty, bytes, signed: false, store, indexed: false };
        let faults = self.options.memory.covers(access_end_max(op, imm));
        if !faults && !self.func.is_in_bounds(inst) {
            self.check_bounds(inst, access, imm);
        }
        let (address, offset) = self.place(inst, access, imm);
        let lanes = match bytes {
            1 => I8X16,
            2 => I16X8,
            4 => I32X4,
            _ => I64X2,
        };
        let lane = imm.access_lane() as u8;
        let flags = if faults { self.faulting_flags() } else { self.checked_flags() };
        if store {
            if faults && bytes > 1 && self.faulting_stores_may_write() {
                self.probe(access, (address, offset));
            }
            let vector = self.lanes(inst, 1, lanes);
            let value = self.builder.ins().extractlane(vector, lane);
            let stored = StoredBytes { offset, bytes };
            self.before_store(stored);
            self.builder.ins().store(flags, value, address, offset);
            self.unobserved_store = faults.then_some(stored);
            return;
        }
        self.unobserved_store = None;
        if let VectorPart::Extended { lane_bytes, signed } = part {
            let ins = self.builder.ins();
            let value = match (lane_bytes, signed) {
                (1, true) => ins.sload8x8(flags, address, offset),
                (1, false) => ins.uload8x8(flags, address, offset),
                (2, true) => ins.sload16x4(flags, address, offset),
                (2, false) => ins.uload16x4(flags, address, offset),
                (_, true) => ins.sload32x2(flags, address, offset),
                (_, false) => ins.uload32x2(flags, address, offset),
            };
            let value = self.cast(value, I8X16);
            return self.define_result(inst, value);
        }
        // The back ends fold these loads into what makes vectors of them, wherever that ends up.
        let flags = if faults { self.single_load_flags(self.func.loc(inst)) } else { flags };
        let value = self.builder.ins().load(lanes.lane_type(), flags, address, offset);
        let vector = match part {
            VectorPart::Splat => self.builder.ins().splat(lanes, value),
            VectorPart::LowLane => self.builder.ins().scalar_to_vector(lanes, value),
            _ => {
                let vector = self.lanes(inst, 1, lanes);
                self.builder.ins().insertlane(vector, value, lane)
            }
        };
        let vector = self.cast(vector, I8X16);
        self.define_result(inst, vector);
    }
}
