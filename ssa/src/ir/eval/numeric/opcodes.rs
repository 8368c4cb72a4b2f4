//! The table from opcodes to the specification's operations, with width, format and lanes.

use slotvm_bytecode::{Op, TrapCode};

use super::conversions::*;
use super::floats::*;
use super::format::{Format, Nans};
use super::integers::*;
use super::vectors::*;
use super::{Kind, vectors};

/// The result of a numeric instruction on its operands, the deepest one first; `None` if the opcode is not numeric or has
/// two results. The
/// immediate is the lane, or the 16 indices of a shuffle. Only the bits that an operand's type has matter.
///
/// # Errors
/// Returns the trap if the operation is not defined on the operands.
///
/// # Panics
/// Panics if an operand or the lane does not exist.
pub(in crate::ir::eval) fn eval(
    op: Op,
    imm: u128,
    operands: &[u128],
    nans: Nans,
) -> Result<Option<u128>, TrapCode> {
    use Half::{High, Low};
    use Op::*;
    use Sign::{Signed, Unsigned};
    let operand = |i: usize| operands.get(i).copied().unwrap_or(0);
    let (a, b, c) = (operand(0), operand(1), operand(2));
    let x = Operands { a, b };
    let lane = imm as usize;
    let (single, double) = (Format::single(nans), Format::double(nans));
    Ok(Some(match op {
        I32Eqz => x.test(32, ieqz),
        I32Eq => x.compare(32, ieq),
        I32Ne => x.compare(32, ine),
        I32LtS => x.compare(32, ilt_s),
        I32LtU => x.compare(32, ilt_u),
        I32GtS => x.compare(32, igt_s),
        I32GtU => x.compare(32, igt_u),
        I32LeS => x.compare(32, ile_s),
        I32LeU => x.compare(32, ile_u),
        I32GeS => x.compare(32, ige_s),
        I32GeU => x.compare(32, ige_u),
        I64Eqz => x.test(64, ieqz),
        I64Eq => x.compare(64, ieq),
        I64Ne => x.compare(64, ine),
        I64LtS => x.compare(64, ilt_s),
        I64LtU => x.compare(64, ilt_u),
        I64GtS => x.compare(64, igt_s),
        I64GtU => x.compare(64, igt_u),
        I64LeS => x.compare(64, ile_s),
        I64LeU => x.compare(64, ile_u),
        I64GeS => x.compare(64, ige_s),
        I64GeU => x.compare(64, ige_u),
        F32Eq => x.compare(single, feq),
        F32Ne => x.compare(single, fne),
        F32Lt => x.compare(single, flt),
        F32Gt => x.compare(single, fgt),
        F32Le => x.compare(single, fle),
        F32Ge => x.compare(single, fge),
        F64Eq => x.compare(double, feq),
        F64Ne => x.compare(double, fne),
        F64Lt => x.compare(double, flt),
        F64Gt => x.compare(double, fgt),
        F64Le => x.compare(double, fle),
        F64Ge => x.compare(double, fge),
        I32Clz => x.unary(32, iclz),
        I32Ctz => x.unary(32, ictz),
        I32Popcnt => x.unary(32, ipopcnt),
        I32Add => x.binary(32, iadd),
        I32Sub => x.binary(32, isub),
        I32Mul => x.binary(32, imul),
        I32DivS => x.partial(32, idiv_s)?,
        I32DivU => x.partial(32, idiv_u)?,
        I32RemS => x.partial(32, irem_s)?,
        I32RemU => x.partial(32, irem_u)?,
        I32And => x.binary(32, iand),
        I32Or => x.binary(32, ior),
        I32Xor => x.binary(32, ixor),
        I32Shl => x.binary(32, ishl),
        I32ShrS => x.binary(32, ishr_s),
        I32ShrU => x.binary(32, ishr_u),
        I32Rotl => x.binary(32, irotl),
        I32Rotr => x.binary(32, irotr),
        I64Clz => x.unary(64, iclz),
        I64Ctz => x.unary(64, ictz),
        I64Popcnt => x.unary(64, ipopcnt),
        I64Add => x.binary(64, iadd),
        I64Sub => x.binary(64, isub),
        I64Mul => x.binary(64, imul),
        I64DivS => x.partial(64, idiv_s)?,
        I64DivU => x.partial(64, idiv_u)?,
        I64RemS => x.partial(64, irem_s)?,
        I64RemU => x.partial(64, irem_u)?,
        I64And => x.binary(64, iand),
        I64Or => x.binary(64, ior),
        I64Xor => x.binary(64, ixor),
        I64Shl => x.binary(64, ishl),
        I64ShrS => x.binary(64, ishr_s),
        I64ShrU => x.binary(64, ishr_u),
        I64Rotl => x.binary(64, irotl),
        I64Rotr => x.binary(64, irotr),
        F32Abs => x.unary(single, fabs),
        F32Neg => x.unary(single, fneg),
        F32Ceil => x.unary(single, fceil),
        F32Floor => x.unary(single, ffloor),
        F32Trunc => x.unary(single, ftrunc),
        F32Nearest => x.unary(single, fnearest),
        F32Sqrt => x.unary(single, fsqrt),
        F32Add => x.binary(single, fadd),
        F32Sub => x.binary(single, fsub),
        F32Mul => x.binary(single, fmul),
        F32Div => x.binary(single, fdiv),
        F32Min => x.binary(single, fmin),
        F32Max => x.binary(single, fmax),
        F32Copysign => x.binary(single, fcopysign),
        F64Abs => x.unary(double, fabs),
        F64Neg => x.unary(double, fneg),
        F64Ceil => x.unary(double, fceil),
        F64Floor => x.unary(double, ffloor),
        F64Trunc => x.unary(double, ftrunc),
        F64Nearest => x.unary(double, fnearest),
        F64Sqrt => x.unary(double, fsqrt),
        F64Add => x.binary(double, fadd),
        F64Sub => x.binary(double, fsub),
        F64Mul => x.binary(double, fmul),
        F64Div => x.binary(double, fdiv),
        F64Min => x.binary(double, fmin),
        F64Max => x.binary(double, fmax),
        F64Copysign => x.binary(double, fcopysign),
        I32WrapI64 => x.bits(32),
        I32TruncF32S => x.try_convert(single, 32, trunc_s)?,
        I32TruncF32U => x.try_convert(single, 32, trunc_u)?,
        I32TruncF64S => x.try_convert(double, 32, trunc_s)?,
        I32TruncF64U => x.try_convert(double, 32, trunc_u)?,
        I64ExtendI32S => x.convert(32, 64, extend_s),
        I64ExtendI32U => x.convert(32, 64, extend_u),
        I64TruncF32S => x.try_convert(single, 64, trunc_s)?,
        I64TruncF32U => x.try_convert(single, 64, trunc_u)?,
        I64TruncF64S => x.try_convert(double, 64, trunc_s)?,
        I64TruncF64U => x.try_convert(double, 64, trunc_u)?,
        F32ConvertI32S => x.convert(32, single, convert_s),
        F32ConvertI32U => x.convert(32, single, convert_u),
        F32ConvertI64S => x.convert(64, single, convert_s),
        F32ConvertI64U => x.convert(64, single, convert_u),
        F32DemoteF64 => x.convert(double, single, refloat),
        F64ConvertI32S => x.convert(32, double, convert_s),
        F64ConvertI32U => x.convert(32, double, convert_u),
        F64ConvertI64S => x.convert(64, double, convert_s),
        F64ConvertI64U => x.convert(64, double, convert_u),
        F64PromoteF32 => x.convert(single, double, refloat),
        I32ReinterpretF32 => x.bits(32),
        I64ReinterpretF64 => x.bits(64),
        F32ReinterpretI32 => x.bits(32),
        F64ReinterpretI64 => x.bits(64),
        I32Extend8S => x.convert(8, 32, extend_s),
        I32Extend16S => x.convert(16, 32, extend_s),
        I64Extend8S => x.convert(8, 64, extend_s),
        I64Extend16S => x.convert(16, 64, extend_s),
        I64Extend32S => x.convert(32, 64, extend_s),
        I32TruncSatF32S => x.convert(single, 32, trunc_sat_s),
        I32TruncSatF32U => x.convert(single, 32, trunc_sat_u),
        I32TruncSatF64S => x.convert(double, 32, trunc_sat_s),
        I32TruncSatF64U => x.convert(double, 32, trunc_sat_u),
        I64TruncSatF32S => x.convert(single, 64, trunc_sat_s),
        I64TruncSatF32U => x.convert(single, 64, trunc_sat_u),
        I64TruncSatF64S => x.convert(double, 64, trunc_sat_s),
        I64TruncSatF64U => x.convert(double, 64, trunc_sat_u),
        I8x16Shuffle => shuffle(imm, a, b),
        I8x16Swizzle => swizzle(a, b),
        I8x16Splat => splat(8, a),
        I16x8Splat => splat(16, a),
        I32x4Splat => splat(32, a),
        I64x2Splat => splat(64, a),
        F32x4Splat => splat(32, a),
        F64x2Splat => splat(64, a),
        I8x16ExtractLaneS => extend_s(8, 32, lanes(8, a)[lane]),
        I8x16ExtractLaneU => lanes(8, a)[lane],
        I8x16ReplaceLane => replace(8, a, imm, b),
        I16x8ExtractLaneS => extend_s(16, 32, lanes(16, a)[lane]),
        I16x8ExtractLaneU => lanes(16, a)[lane],
        I16x8ReplaceLane => replace(16, a, imm, b),
        I32x4ExtractLane => lanes(32, a)[lane],
        I32x4ReplaceLane => replace(32, a, imm, b),
        I64x2ExtractLane => lanes(64, a)[lane],
        I64x2ReplaceLane => replace(64, a, imm, b),
        F32x4ExtractLane => lanes(32, a)[lane],
        F32x4ReplaceLane => replace(32, a, imm, b),
        F64x2ExtractLane => lanes(64, a)[lane],
        F64x2ReplaceLane => replace(64, a, imm, b),
        I8x16Eq => x.compare_lanes(8, ieq),
        I8x16Ne => x.compare_lanes(8, ine),
        I8x16LtS => x.compare_lanes(8, ilt_s),
        I8x16LtU => x.compare_lanes(8, ilt_u),
        I8x16GtS => x.compare_lanes(8, igt_s),
        I8x16GtU => x.compare_lanes(8, igt_u),
        I8x16LeS => x.compare_lanes(8, ile_s),
        I8x16LeU => x.compare_lanes(8, ile_u),
        I8x16GeS => x.compare_lanes(8, ige_s),
        I8x16GeU => x.compare_lanes(8, ige_u),
        I16x8Eq => x.compare_lanes(16, ieq),
        I16x8Ne => x.compare_lanes(16, ine),
        I16x8LtS => x.compare_lanes(16, ilt_s),
        I16x8LtU => x.compare_lanes(16, ilt_u),
        I16x8GtS => x.compare_lanes(16, igt_s),
        I16x8GtU => x.compare_lanes(16, igt_u),
        I16x8LeS => x.compare_lanes(16, ile_s),
        I16x8LeU => x.compare_lanes(16, ile_u),
        I16x8GeS => x.compare_lanes(16, ige_s),
        I16x8GeU => x.compare_lanes(16, ige_u),
        I32x4Eq => x.compare_lanes(32, ieq),
        I32x4Ne => x.compare_lanes(32, ine),
        I32x4LtS => x.compare_lanes(32, ilt_s),
        I32x4LtU => x.compare_lanes(32, ilt_u),
        I32x4GtS => x.compare_lanes(32, igt_s),
        I32x4GtU => x.compare_lanes(32, igt_u),
        I32x4LeS => x.compare_lanes(32, ile_s),
        I32x4LeU => x.compare_lanes(32, ile_u),
        I32x4GeS => x.compare_lanes(32, ige_s),
        I32x4GeU => x.compare_lanes(32, ige_u),
        F32x4Eq => x.compare_lanes(single, feq),
        F32x4Ne => x.compare_lanes(single, fne),
        F32x4Lt => x.compare_lanes(single, flt),
        F32x4Gt => x.compare_lanes(single, fgt),
        F32x4Le => x.compare_lanes(single, fle),
        F32x4Ge => x.compare_lanes(single, fge),
        F64x2Eq => x.compare_lanes(double, feq),
        F64x2Ne => x.compare_lanes(double, fne),
        F64x2Lt => x.compare_lanes(double, flt),
        F64x2Gt => x.compare_lanes(double, fgt),
        F64x2Le => x.compare_lanes(double, fle),
        F64x2Ge => x.compare_lanes(double, fge),
        V128Not => x.unary(128, inot),
        V128And => x.binary(128, iand),
        V128AndNot => x.binary(128, iandnot),
        V128Or => x.binary(128, ior),
        V128Xor => x.binary(128, ixor),
        V128Bitselect => ibitselect(128, a, b, c),
        V128AnyTrue => u128::from(a != 0),
        F32x4DemoteF64x2Zero => x.convert_lanes(double, single, refloat),
        F64x2PromoteLowF32x4 => x.convert_lanes(single, double, refloat),
        I8x16Abs => x.map(8, iabs),
        I8x16Neg => x.map(8, ineg),
        I8x16Popcnt => x.map(8, ipopcnt),
        I8x16AllTrue => all_true(8, a),
        I8x16Bitmask => bitmask(8, a),
        I8x16NarrowI16x8S => narrow(16, sat_s, a, b),
        I8x16NarrowI16x8U => narrow(16, sat_u, a, b),
        F32x4Ceil => x.map(single, fceil),
        F32x4Floor => x.map(single, ffloor),
        F32x4Trunc => x.map(single, ftrunc),
        F32x4Nearest => x.map(single, fnearest),
        I8x16Shl => shift(8, ishl, a, b),
        I8x16ShrS => shift(8, ishr_s, a, b),
        I8x16ShrU => shift(8, ishr_u, a, b),
        I8x16Add => x.zip(8, iadd),
        I8x16AddSatS => x.zip(8, iadd_sat_s),
        I8x16AddSatU => x.zip(8, iadd_sat_u),
        I8x16Sub => x.zip(8, isub),
        I8x16SubSatS => x.zip(8, isub_sat_s),
        I8x16SubSatU => x.zip(8, isub_sat_u),
        F64x2Ceil => x.map(double, fceil),
        F64x2Floor => x.map(double, ffloor),
        I8x16MinS => x.zip(8, imin_s),
        I8x16MinU => x.zip(8, imin_u),
        I8x16MaxS => x.zip(8, imax_s),
        I8x16MaxU => x.zip(8, imax_u),
        F64x2Trunc => x.map(double, ftrunc),
        I8x16AvgrU => x.zip(8, iavgr_u),
        I16x8ExtAddPairwiseI8x16S => extadd_pairwise(8, Signed, a),
        I16x8ExtAddPairwiseI8x16U => extadd_pairwise(8, Unsigned, a),
        I32x4ExtAddPairwiseI16x8S => extadd_pairwise(16, Signed, a),
        I32x4ExtAddPairwiseI16x8U => extadd_pairwise(16, Unsigned, a),
        I16x8Abs => x.map(16, iabs),
        I16x8Neg => x.map(16, ineg),
        I16x8Q15MulrSatS => x.zip(16, iq15mulr_sat_s),
        I16x8AllTrue => all_true(16, a),
        I16x8Bitmask => bitmask(16, a),
        I16x8NarrowI32x4S => narrow(32, sat_s, a, b),
        I16x8NarrowI32x4U => narrow(32, sat_u, a, b),
        I16x8ExtendLowI8x16S => extend(8, Low, Signed, a),
        I16x8ExtendHighI8x16S => extend(8, High, Signed, a),
        I16x8ExtendLowI8x16U => extend(8, Low, Unsigned, a),
        I16x8ExtendHighI8x16U => extend(8, High, Unsigned, a),
        I16x8Shl => shift(16, ishl, a, b),
        I16x8ShrS => shift(16, ishr_s, a, b),
        I16x8ShrU => shift(16, ishr_u, a, b),
        I16x8Add => x.zip(16, iadd),
        I16x8AddSatS => x.zip(16, iadd_sat_s),
        I16x8AddSatU => x.zip(16, iadd_sat_u),
        I16x8Sub => x.zip(16, isub),
        I16x8SubSatS => x.zip(16, isub_sat_s),
        I16x8SubSatU => x.zip(16, isub_sat_u),
        F64x2Nearest => x.map(double, fnearest),
        I16x8Mul => x.zip(16, imul),
        I16x8MinS => x.zip(16, imin_s),
        I16x8MinU => x.zip(16, imin_u),
        I16x8MaxS => x.zip(16, imax_s),
        I16x8MaxU => x.zip(16, imax_u),
        I16x8AvgrU => x.zip(16, iavgr_u),
        I16x8ExtMulLowI8x16S => extmul(8, Low, Signed, a, b),
        I16x8ExtMulHighI8x16S => extmul(8, High, Signed, a, b),
        I16x8ExtMulLowI8x16U => extmul(8, Low, Unsigned, a, b),
        I16x8ExtMulHighI8x16U => extmul(8, High, Unsigned, a, b),
        I32x4Abs => x.map(32, iabs),
        I32x4Neg => x.map(32, ineg),
        I32x4AllTrue => all_true(32, a),
        I32x4Bitmask => bitmask(32, a),
        I32x4ExtendLowI16x8S => extend(16, Low, Signed, a),
        I32x4ExtendHighI16x8S => extend(16, High, Signed, a),
        I32x4ExtendLowI16x8U => extend(16, Low, Unsigned, a),
        I32x4ExtendHighI16x8U => extend(16, High, Unsigned, a),
        I32x4Shl => shift(32, ishl, a, b),
        I32x4ShrS => shift(32, ishr_s, a, b),
        I32x4ShrU => shift(32, ishr_u, a, b),
        I32x4Add => x.zip(32, iadd),
        I32x4Sub => x.zip(32, isub),
        I32x4Mul => x.zip(32, imul),
        I32x4MinS => x.zip(32, imin_s),
        I32x4MinU => x.zip(32, imin_u),
        I32x4MaxS => x.zip(32, imax_s),
        I32x4MaxU => x.zip(32, imax_u),
        I32x4DotI16x8S => dot_s(16, a, b),
        I32x4ExtMulLowI16x8S => extmul(16, Low, Signed, a, b),
        I32x4ExtMulHighI16x8S => extmul(16, High, Signed, a, b),
        I32x4ExtMulLowI16x8U => extmul(16, Low, Unsigned, a, b),
        I32x4ExtMulHighI16x8U => extmul(16, High, Unsigned, a, b),
        I64x2Abs => x.map(64, iabs),
        I64x2Neg => x.map(64, ineg),
        I64x2AllTrue => all_true(64, a),
        I64x2Bitmask => bitmask(64, a),
        I64x2ExtendLowI32x4S => extend(32, Low, Signed, a),
        I64x2ExtendHighI32x4S => extend(32, High, Signed, a),
        I64x2ExtendLowI32x4U => extend(32, Low, Unsigned, a),
        I64x2ExtendHighI32x4U => extend(32, High, Unsigned, a),
        I64x2Shl => shift(64, ishl, a, b),
        I64x2ShrS => shift(64, ishr_s, a, b),
        I64x2ShrU => shift(64, ishr_u, a, b),
        I64x2Add => x.zip(64, iadd),
        I64x2Sub => x.zip(64, isub),
        I64x2Mul => x.zip(64, imul),
        I64x2Eq => x.compare_lanes(64, ieq),
        I64x2Ne => x.compare_lanes(64, ine),
        I64x2LtS => x.compare_lanes(64, ilt_s),
        I64x2GtS => x.compare_lanes(64, igt_s),
        I64x2LeS => x.compare_lanes(64, ile_s),
        I64x2GeS => x.compare_lanes(64, ige_s),
        I64x2ExtMulLowI32x4S => extmul(32, Low, Signed, a, b),
        I64x2ExtMulHighI32x4S => extmul(32, High, Signed, a, b),
        I64x2ExtMulLowI32x4U => extmul(32, Low, Unsigned, a, b),
        I64x2ExtMulHighI32x4U => extmul(32, High, Unsigned, a, b),
        F32x4Abs => x.map(single, fabs),
        F32x4Neg => x.map(single, fneg),
        F32x4Sqrt => x.map(single, fsqrt),
        F32x4Add => x.zip(single, fadd),
        F32x4Sub => x.zip(single, fsub),
        F32x4Mul => x.zip(single, fmul),
        F32x4Div => x.zip(single, fdiv),
        F32x4Min => x.zip(single, fmin),
        F32x4Max => x.zip(single, fmax),
        F32x4PMin => x.zip(single, fpmin),
        F32x4PMax => x.zip(single, fpmax),
        F64x2Abs => x.map(double, fabs),
        F64x2Neg => x.map(double, fneg),
        F64x2Sqrt => x.map(double, fsqrt),
        F64x2Add => x.zip(double, fadd),
        F64x2Sub => x.zip(double, fsub),
        F64x2Mul => x.zip(double, fmul),
        F64x2Div => x.zip(double, fdiv),
        F64x2Min => x.zip(double, fmin),
        F64x2Max => x.zip(double, fmax),
        F64x2PMin => x.zip(double, fpmin),
        F64x2PMax => x.zip(double, fpmax),
        I32x4TruncSatF32x4S => x.convert_lanes(single, 32, trunc_sat_s),
        I32x4TruncSatF32x4U => x.convert_lanes(single, 32, trunc_sat_u),
        F32x4ConvertI32x4S => x.convert_lanes(32, single, convert_s),
        F32x4ConvertI32x4U => x.convert_lanes(32, single, convert_u),
        I32x4TruncSatF64x2SZero => x.convert_lanes(double, 32, trunc_sat_s),
        I32x4TruncSatF64x2UZero => x.convert_lanes(double, 32, trunc_sat_u),
        F64x2ConvertLowI32x4S => x.convert_lanes(32, double, convert_s),
        F64x2ConvertLowI32x4U => x.convert_lanes(32, double, convert_u),

        // Opcodes that are not numeric. They are listed so that a new opcode does not compile unnoticed.
        Unreachable | Trap | Nop | Br | BrIf | BrTable | Return | Call | CallIndirect
        | ReturnCall | ReturnCallIndirect | BrKeep | Drop | Dup | Swap | Over | Rot | Select
        | LocalGet | LocalSet | LocalTee | LocalAddr | GlobalGet | GlobalSet | RefNull
        | RefIsNull | RefFunc | RefReinterpretI64 | I64ReinterpretRef | TableGet | TableSet
        | TableSize | TableGrow | TableFill | TableCopy | TableInit | ElemDrop | I32Const
        | I64Const | F32Const | F64Const | MemorySize | MemoryGrow | MemoryFill | MemoryCopy
        | MemoryInit | DataDrop | I32Load | I64Load | F32Load | F64Load | I32Load8S | I32Load8U
        | I32Load16S | I32Load16U | I64Load8S | I64Load8U | I64Load16S | I64Load16U
        | I64Load32S | I64Load32U | I32Store | I64Store | F32Store | F64Store | I32Store8
        | I32Store16 | I64Store8 | I64Store16 | I64Store32 | I32LoadIndexed | I64LoadIndexed
        | F32LoadIndexed | F64LoadIndexed | I32Load8SIndexed | I32Load8UIndexed
        | I32Load16SIndexed | I32Load16UIndexed | I64Load8SIndexed | I64Load8UIndexed
        | I64Load16SIndexed | I64Load16UIndexed | I64Load32SIndexed | I64Load32UIndexed
        | I32StoreIndexed | I64StoreIndexed | F32StoreIndexed | F64StoreIndexed
        | I32Store8Indexed | I32Store16Indexed | I64Store8Indexed | I64Store16Indexed
        | I64Store32Indexed | V128Load | V128Load8x8S | V128Load8x8U | V128Load16x4S
        | V128Load16x4U | V128Load32x2S | V128Load32x2U | V128Load8Splat | V128Load16Splat
        | V128Load32Splat | V128Load64Splat | V128Store | V128Const | V128Load8Lane
        | V128Load16Lane | V128Load32Lane | V128Load64Lane | V128Store8Lane | V128Store16Lane
        | V128Store32Lane | V128Store64Lane | V128Load32Zero | V128Load64Zero => {
            return Ok(None);
        }

        // Those with two results: `pairs` has them.
        I64Add128 | I64Sub128 | I64MulWideS | I64MulWideU | I32AddOverflowS | I32AddOverflowU
        | I32SubOverflowS | I32SubOverflowU | I32MulOverflowS | I32MulOverflowU
        | I64AddOverflowS | I64AddOverflowU | I64SubOverflowS | I64SubOverflowU
        | I64MulOverflowS | I64MulOverflowU => {
            return Ok(None);
        }
    }))
}

/// The first two operands of an instruction.
#[derive(Copy, Clone)]
struct Operands {
    a: u128,
    b: u128,
}

impl Operands {
    /// The first operand as a number of some kind.
    fn first(self, kind: impl Kind) -> u128 {
        modulo(kind.bits(), self.a)
    }

    /// The second operand as a number of some kind.
    fn second(self, kind: impl Kind) -> u128 {
        modulo(kind.bits(), self.b)
    }

    fn bits(self, n: u32) -> u128 {
        self.first(n)
    }

    fn test(self, n: u32, op: fn(u32, u128) -> bool) -> u128 {
        op(n, self.first(n)).into()
    }

    fn unary<K: Kind>(self, kind: K, op: fn(K, u128) -> u128) -> u128 {
        op(kind, self.first(kind))
    }

    fn binary<K: Kind>(self, kind: K, op: fn(K, u128, u128) -> u128) -> u128 {
        op(kind, self.first(kind), self.second(kind))
    }

    fn compare<K: Kind>(self, kind: K, op: fn(K, u128, u128) -> bool) -> u128 {
        op(kind, self.first(kind), self.second(kind)).into()
    }

    /// An operation that is not defined on all operands.
    fn partial(
        self,
        n: u32,
        op: fn(u32, u128, u128) -> Result<u128, TrapCode>,
    ) -> Result<u128, TrapCode> {
        op(n, self.first(n), self.second(n))
    }

    fn convert<F: Kind, T: Kind>(self, from: F, to: T, op: fn(F, T, u128) -> u128) -> u128 {
        op(from, to, self.first(from))
    }

    fn try_convert<F: Kind, T: Kind>(
        self,
        from: F,
        to: T,
        op: fn(F, T, u128) -> Result<u128, TrapCode>,
    ) -> Result<u128, TrapCode> {
        op(from, to, self.first(from))
    }

    fn map<K: Kind>(self, kind: K, op: fn(K, u128) -> u128) -> u128 {
        vectors::map(kind, op, self.a)
    }

    fn zip<K: Kind>(self, kind: K, op: fn(K, u128, u128) -> u128) -> u128 {
        vectors::zip(kind, op, self.a, self.b)
    }

    fn compare_lanes<K: Kind>(self, kind: K, op: fn(K, u128, u128) -> bool) -> u128 {
        vectors::compare(kind, op, self.a, self.b)
    }

    fn convert_lanes<F: Kind, T: Kind>(self, from: F, to: T, op: fn(F, T, u128) -> u128) -> u128 {
        vectors::convert(from, to, op, self.a)
    }
}
