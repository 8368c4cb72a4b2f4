//! WebAssembly's instructions that ours have by the same name, which are all but structured control.

use wasmparser::{HeapType, MemArg, Operator};

use crate::inst::Imm;
use crate::op::Op;
use crate::types::ValType;

/// The instruction that does the same, if there is exactly one. Control flow is not among them, nor are
/// those of [`vector`].
///
/// The operator has been validated with [`super::proposals::SUPPORTED`], so its memory is 0 and all of
/// its indices fit.
pub(super) fn plain(operator: &Operator<'_>) -> Option<(Op, Imm)> {
    macro_rules! same_name {
        (
            none: $($none:ident)*;
            mem: $($mem:ident)*;
            lane: $($lane:ident)*;
            mem_lane: $($mem_lane:ident)*;
            index: $($index:ident $field:ident)*;
        ) => {
            Some(match *operator {
                $(Operator::$none => (Op::$none, Imm::NONE),)*
                $(Operator::$mem { memarg } => (Op::$mem, mem(memarg)),)*
                $(Operator::$lane { lane } => (Op::$lane, Imm::lane(lane.into())),)*
                $(Operator::$mem_lane { memarg, lane } => {
                    (Op::$mem_lane, Imm::mem_lane(memarg.offset as u32, lane.into()))
                })*
                $(Operator::$index { $field } => (Op::$index, Imm::index($field)),)*
                Operator::I32Const { value } => (Op::I32Const, Imm::i32(value)),
                Operator::I64Const { value } => (Op::I64Const, Imm::i64(value)),
                Operator::F32Const { value } => (Op::F32Const, Imm::index(value.bits())),
                Operator::F64Const { value } => (Op::F64Const, Imm(value.bits())),
                Operator::TypedSelect { .. } => (Op::Select, Imm::NONE),
                Operator::RefNull { hty } => (Op::RefNull, Imm::ref_type(ref_type(hty))),
                Operator::CallIndirect { type_index, table_index } => {
                    (Op::CallIndirect, Imm::pair(type_index, table_index))
                }
                Operator::TableCopy { dst_table, src_table } => {
                    (Op::TableCopy, Imm::pair(dst_table, src_table))
                }
                Operator::TableInit { elem_index, table } => {
                    (Op::TableInit, Imm::pair(elem_index, table))
                }
                Operator::MemoryInit { data_index, mem } => {
                    (Op::MemoryInit, Imm::pair(data_index, mem))
                }
                Operator::MemoryCopy { dst_mem, src_mem } => {
                    (Op::MemoryCopy, Imm::pair(dst_mem, src_mem))
                }
                _ => return None,
            })
        };
    }
    same_name! {
        none: Drop Select RefIsNull
            I32Eqz I32Eq I32Ne I32LtS I32LtU I32GtS I32GtU I32LeS I32LeU I32GeS I32GeU
            I64Eqz I64Eq I64Ne I64LtS I64LtU I64GtS I64GtU I64LeS I64LeU I64GeS I64GeU
            F32Eq F32Ne F32Lt F32Gt F32Le F32Ge F64Eq F64Ne F64Lt F64Gt F64Le F64Ge
            I32Clz I32Ctz I32Popcnt I32Add I32Sub I32Mul I32DivS I32DivU I32RemS I32RemU
            I32And I32Or I32Xor I32Shl I32ShrS I32ShrU I32Rotl I32Rotr
            I64Clz I64Ctz I64Popcnt I64Add I64Sub I64Mul I64DivS I64DivU I64RemS I64RemU
            I64And I64Or I64Xor I64Shl I64ShrS I64ShrU I64Rotl I64Rotr
            F32Abs F32Neg F32Ceil F32Floor F32Trunc F32Nearest F32Sqrt
            F32Add F32Sub F32Mul F32Div F32Min F32Max F32Copysign
            F64Abs F64Neg F64Ceil F64Floor F64Trunc F64Nearest F64Sqrt
            F64Add F64Sub F64Mul F64Div F64Min F64Max F64Copysign
            I32WrapI64 I32TruncF32S I32TruncF32U I32TruncF64S I32TruncF64U
            I64ExtendI32S I64ExtendI32U I64TruncF32S I64TruncF32U I64TruncF64S I64TruncF64U
            F32ConvertI32S F32ConvertI32U F32ConvertI64S F32ConvertI64U F32DemoteF64
            F64ConvertI32S F64ConvertI32U F64ConvertI64S F64ConvertI64U F64PromoteF32
            I32ReinterpretF32 I64ReinterpretF64 F32ReinterpretI32 F64ReinterpretI64
            I32Extend8S I32Extend16S I64Extend8S I64Extend16S I64Extend32S
            I32TruncSatF32S I32TruncSatF32U I32TruncSatF64S I32TruncSatF64U
            I64TruncSatF32S I64TruncSatF32U I64TruncSatF64S I64TruncSatF64U
            I8x16Swizzle I8x16Splat I16x8Splat I32x4Splat I64x2Splat F32x4Splat F64x2Splat I8x16Eq
            I8x16Ne I8x16LtS I8x16LtU I8x16GtS I8x16GtU I8x16LeS I8x16LeU I8x16GeS I8x16GeU
            I16x8Eq I16x8Ne I16x8LtS I16x8LtU I16x8GtS I16x8GtU I16x8LeS I16x8LeU I16x8GeS
            I16x8GeU I32x4Eq I32x4Ne I32x4LtS I32x4LtU I32x4GtS I32x4GtU I32x4LeS I32x4LeU
            I32x4GeS I32x4GeU F32x4Eq F32x4Ne F32x4Lt F32x4Gt F32x4Le F32x4Ge F64x2Eq F64x2Ne
            F64x2Lt F64x2Gt F64x2Le F64x2Ge V128Not V128And V128AndNot V128Or V128Xor
            V128Bitselect V128AnyTrue F32x4DemoteF64x2Zero F64x2PromoteLowF32x4 I8x16Abs I8x16Neg
            I8x16Popcnt I8x16AllTrue I8x16Bitmask I8x16NarrowI16x8S I8x16NarrowI16x8U F32x4Ceil
            F32x4Floor F32x4Trunc F32x4Nearest I8x16Shl I8x16ShrS I8x16ShrU I8x16Add I8x16AddSatS
            I8x16AddSatU I8x16Sub I8x16SubSatS I8x16SubSatU F64x2Ceil F64x2Floor I8x16MinS
            I8x16MinU I8x16MaxS I8x16MaxU F64x2Trunc I8x16AvgrU I16x8ExtAddPairwiseI8x16S
            I16x8ExtAddPairwiseI8x16U I32x4ExtAddPairwiseI16x8S I32x4ExtAddPairwiseI16x8U I16x8Abs
            I16x8Neg I16x8Q15MulrSatS I16x8AllTrue I16x8Bitmask I16x8NarrowI32x4S
            I16x8NarrowI32x4U I16x8ExtendLowI8x16S I16x8ExtendHighI8x16S I16x8ExtendLowI8x16U
            I16x8ExtendHighI8x16U I16x8Shl I16x8ShrS I16x8ShrU I16x8Add I16x8AddSatS I16x8AddSatU
            I16x8Sub I16x8SubSatS I16x8SubSatU F64x2Nearest I16x8Mul I16x8MinS I16x8MinU I16x8MaxS
            I16x8MaxU I16x8AvgrU I16x8ExtMulLowI8x16S I16x8ExtMulHighI8x16S I16x8ExtMulLowI8x16U
            I16x8ExtMulHighI8x16U I32x4Abs I32x4Neg I32x4AllTrue I32x4Bitmask I32x4ExtendLowI16x8S
            I32x4ExtendHighI16x8S I32x4ExtendLowI16x8U I32x4ExtendHighI16x8U I32x4Shl I32x4ShrS
            I32x4ShrU I32x4Add I32x4Sub I32x4Mul I32x4MinS I32x4MinU I32x4MaxS I32x4MaxU
            I32x4DotI16x8S I32x4ExtMulLowI16x8S I32x4ExtMulHighI16x8S I32x4ExtMulLowI16x8U
            I32x4ExtMulHighI16x8U I64x2Abs I64x2Neg I64x2AllTrue I64x2Bitmask I64x2ExtendLowI32x4S
            I64x2ExtendHighI32x4S I64x2ExtendLowI32x4U I64x2ExtendHighI32x4U I64x2Shl I64x2ShrS
            I64x2ShrU I64x2Add I64x2Sub I64x2Mul I64x2Eq I64x2Ne I64x2LtS I64x2GtS I64x2LeS
            I64x2GeS I64x2ExtMulLowI32x4S I64x2ExtMulHighI32x4S I64x2ExtMulLowI32x4U
            I64x2ExtMulHighI32x4U F32x4Abs F32x4Neg F32x4Sqrt F32x4Add F32x4Sub F32x4Mul F32x4Div
            F32x4Min F32x4Max F32x4PMin F32x4PMax F64x2Abs F64x2Neg F64x2Sqrt F64x2Add F64x2Sub
            F64x2Mul F64x2Div F64x2Min F64x2Max F64x2PMin F64x2PMax I32x4TruncSatF32x4S
            I32x4TruncSatF32x4U F32x4ConvertI32x4S F32x4ConvertI32x4U I32x4TruncSatF64x2SZero
            I32x4TruncSatF64x2UZero F64x2ConvertLowI32x4S F64x2ConvertLowI32x4U;
        mem: I32Load I64Load F32Load F64Load I32Load8S I32Load8U I32Load16S I32Load16U
            I64Load8S I64Load8U I64Load16S I64Load16U I64Load32S I64Load32U
            I32Store I64Store F32Store F64Store I32Store8 I32Store16
            I64Store8 I64Store16 I64Store32
            V128Load V128Load8x8S V128Load8x8U V128Load16x4S V128Load16x4U V128Load32x2S
            V128Load32x2U V128Load8Splat V128Load16Splat V128Load32Splat V128Load64Splat V128Store
            V128Load32Zero V128Load64Zero;
        lane: I8x16ExtractLaneS I8x16ExtractLaneU I8x16ReplaceLane I16x8ExtractLaneS
            I16x8ExtractLaneU I16x8ReplaceLane I32x4ExtractLane I32x4ReplaceLane I64x2ExtractLane
            I64x2ReplaceLane F32x4ExtractLane F32x4ReplaceLane F64x2ExtractLane F64x2ReplaceLane;
        mem_lane: V128Load8Lane V128Load16Lane V128Load32Lane V128Load64Lane V128Store8Lane
            V128Store16Lane V128Store32Lane V128Store64Lane;
        index: LocalGet local_index LocalSet local_index LocalTee local_index
            GlobalGet global_index GlobalSet global_index
            RefFunc function_index Call function_index
            TableGet table TableSet table TableSize table TableGrow table TableFill table
            ElemDrop elem_index DataDrop data_index
            MemorySize mem MemoryGrow mem MemoryFill mem;
    }
}

/// The instruction that has the 16 bytes of a vector, and these, as a little-endian number.
pub(super) fn vector(operator: &Operator<'_>) -> Option<(Op, u128)> {
    match *operator {
        Operator::V128Const { value } => Some((Op::V128Const, value.i128() as u128)),
        Operator::I8x16Shuffle { lanes } => Some((Op::I8x16Shuffle, u128::from_le_bytes(lanes))),
        _ => None,
    }
}

/// The immediates of an access. There is one memory, and offsets have 32 bits.
fn mem(memarg: MemArg) -> Imm {
    Imm::mem(memarg.offset as u32)
}

/// The reference type of null of a heap type. There are only two without function references.
pub(super) fn ref_type(heap: HeapType) -> ValType {
    match heap {
        HeapType::EXTERN => ValType::ExternRef,
        _ => ValType::FuncRef,
    }
}
