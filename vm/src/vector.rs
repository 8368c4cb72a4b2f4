//! Semantics of the SIMD instructions. The interpreter uses this definition, and native code must match it.
//! The IR evaluator, an oracle, has its own definition without shared code; its tests compare the two.
//!
//! A vector is a 128-bit number whose lowest bits are lane 0. The semantics are WebAssembly's, lane by lane,
//! so every result is defined, with the same exception as in [`crate::numeric`]: the machine chooses the
//! payload and the sign of a NaN returned by an operation of [`Op::makes_nan`]. `numeric` defines the
//! operations on float lanes. None of these instructions traps, except memory accesses, for which this module
//! only defines the conversion from and to bytes.

use crate::numeric::{self, CANONICAL_NAN_F32, CANONICAL_NAN_F64, Numeric};
use crate::op::{Op, VectorAccess, VectorPart};
use crate::types::ValType;

/// Whether [`eval`] computes the opcode: a SIMD opcode other than a memory access or a constant.
#[inline]
pub const fn is_vector_numeric(op: Op) -> bool {
    op.is_vector() && op.access_bytes().is_none() && !matches!(op, Op::V128Const)
}

/// A SIMD instruction by itself, for code that is made for one.
pub trait VectorNumeric {
    /// Its opcode.
    const OP: Op;

    /// Returns what [`eval`] does for the opcode.
    fn eval(imm: u128, operands: [u128; 3]) -> u128;
}

/// Defines the instructions, each by its result. The names are those of the immediate, of the lane in it, and of the
/// operands.
macro_rules! vector {
    (($imm:ident, $lane:ident, $a:ident, $b:ident, $c:ident) $($op:ident: $result:expr;)*) => {
        /// Returns the result of an instruction on its operands, the deepest first. Surplus operands are ignored.
        /// Numbers are zero-extended. The immediate is the lane, or the 16 bytes of a shuffle.
        ///
        /// # Panics
        /// Panics if [`is_vector_numeric`] does not hold for the opcode, or the lane is out of range.
        pub fn eval(op: Op, imm: u128, operands: [u128; 3]) -> u128 {
            match op {
                $(Op::$op => <ops::$op as VectorNumeric>::eval(imm, operands),)*
                _ => panic!("`{}` is not a SIMD instruction without memory access", op.mnemonic()),
            }
        }

        /// The SIMD instructions as types.
        pub mod ops {
            use super::*;
            $(
                #[doc = concat!("[`Op::", stringify!($op), "`].")]
                #[derive(Copy, Clone, Debug)]
                pub enum $op {}

                impl VectorNumeric for $op {
                    const OP: Op = Op::$op;

                    #[inline(always)]
                    #[allow(unused_variables, reason = "few instructions have all operands")]
                    fn eval($imm: u128, [$a, $b, $c]: [u128; 3]) -> u128 {
                        let $lane = $imm as u32;
                        $result
                    }
                }
            )*
        }

        /// Calls a macro with the names of all instructions, after what it is given.
        #[macro_export]
        #[doc(hidden)]
        macro_rules! for_each_vector_op {
            ($name:ident! $given:tt) => { $name! { $given $($op)* } };
        }
    };
}

vector! {
    (imm, lane, a, b, c)
    I8x16Shuffle: shuffle(imm, a, b);
    I8x16Swizzle: swizzle(a, b);
    I8x16Splat: splat::<u8>(a);
    I16x8Splat: splat::<u16>(a);
    I32x4Splat: splat::<u32>(a);
    I64x2Splat: splat::<u64>(a);
    F32x4Splat: splat::<u32>(a);
    F64x2Splat: splat::<u64>(a);
    I8x16ExtractLaneS: u128::from(i32::from(get::<i8>(a, lane)) as u32);
    I8x16ExtractLaneU: get::<u8>(a, lane).into();
    I8x16ReplaceLane: replace::<u8>(a, lane, b);
    I16x8ExtractLaneS: u128::from(i32::from(get::<i16>(a, lane)) as u32);
    I16x8ExtractLaneU: get::<u16>(a, lane).into();
    I16x8ReplaceLane: replace::<u16>(a, lane, b);
    I32x4ExtractLane: get::<u32>(a, lane).into();
    I32x4ReplaceLane: replace::<u32>(a, lane, b);
    I64x2ExtractLane: get::<u64>(a, lane).into();
    I64x2ReplaceLane: replace::<u64>(a, lane, b);
    F32x4ExtractLane: get::<u32>(a, lane).into();
    F32x4ReplaceLane: replace::<u32>(a, lane, b);
    F64x2ExtractLane: get::<u64>(a, lane).into();
    F64x2ReplaceLane: replace::<u64>(a, lane, b);
    I8x16Eq: compare(a, b, |x: u8, y: u8| x == y);
    I8x16Ne: compare(a, b, |x: u8, y: u8| x != y);
    I8x16LtS: compare(a, b, |x: i8, y: i8| x < y);
    I8x16LtU: compare(a, b, |x: u8, y: u8| x < y);
    I8x16GtS: compare(a, b, |x: i8, y: i8| x > y);
    I8x16GtU: compare(a, b, |x: u8, y: u8| x > y);
    I8x16LeS: compare(a, b, |x: i8, y: i8| x <= y);
    I8x16LeU: compare(a, b, |x: u8, y: u8| x <= y);
    I8x16GeS: compare(a, b, |x: i8, y: i8| x >= y);
    I8x16GeU: compare(a, b, |x: u8, y: u8| x >= y);
    I16x8Eq: compare(a, b, |x: u16, y: u16| x == y);
    I16x8Ne: compare(a, b, |x: u16, y: u16| x != y);
    I16x8LtS: compare(a, b, |x: i16, y: i16| x < y);
    I16x8LtU: compare(a, b, |x: u16, y: u16| x < y);
    I16x8GtS: compare(a, b, |x: i16, y: i16| x > y);
    I16x8GtU: compare(a, b, |x: u16, y: u16| x > y);
    I16x8LeS: compare(a, b, |x: i16, y: i16| x <= y);
    I16x8LeU: compare(a, b, |x: u16, y: u16| x <= y);
    I16x8GeS: compare(a, b, |x: i16, y: i16| x >= y);
    I16x8GeU: compare(a, b, |x: u16, y: u16| x >= y);
    I32x4Eq: compare(a, b, |x: u32, y: u32| x == y);
    I32x4Ne: compare(a, b, |x: u32, y: u32| x != y);
    I32x4LtS: compare(a, b, |x: i32, y: i32| x < y);
    I32x4LtU: compare(a, b, |x: u32, y: u32| x < y);
    I32x4GtS: compare(a, b, |x: i32, y: i32| x > y);
    I32x4GtU: compare(a, b, |x: u32, y: u32| x > y);
    I32x4LeS: compare(a, b, |x: i32, y: i32| x <= y);
    I32x4LeU: compare(a, b, |x: u32, y: u32| x <= y);
    I32x4GeS: compare(a, b, |x: i32, y: i32| x >= y);
    I32x4GeU: compare(a, b, |x: u32, y: u32| x >= y);
    F32x4Eq: compare(a, b, |x: f32, y: f32| x == y);
    F32x4Ne: compare(a, b, |x: f32, y: f32| x != y);
    F32x4Lt: compare(a, b, |x: f32, y: f32| x < y);
    F32x4Gt: compare(a, b, |x: f32, y: f32| x > y);
    F32x4Le: compare(a, b, |x: f32, y: f32| x <= y);
    F32x4Ge: compare(a, b, |x: f32, y: f32| x >= y);
    F64x2Eq: compare(a, b, |x: f64, y: f64| x == y);
    F64x2Ne: compare(a, b, |x: f64, y: f64| x != y);
    F64x2Lt: compare(a, b, |x: f64, y: f64| x < y);
    F64x2Gt: compare(a, b, |x: f64, y: f64| x > y);
    F64x2Le: compare(a, b, |x: f64, y: f64| x <= y);
    F64x2Ge: compare(a, b, |x: f64, y: f64| x >= y);
    V128Not: !a;
    V128And: a & b;
    V128AndNot: a & !b;
    V128Or: a | b;
    V128Xor: a ^ b;
    V128Bitselect: a & c | b & !c;
    V128AnyTrue: u128::from(a != 0);
    F32x4DemoteF64x2Zero: narrowed::<numeric::ops::F32DemoteF64>(a);
    F64x2PromoteLowF32x4: widened::<numeric::ops::F64PromoteF32>(a);
    I8x16Abs: un(a, i8::wrapping_abs);
    I8x16Neg: un(a, u8::wrapping_neg);
    I8x16Popcnt: un(a, |x: u8| x.count_ones() as u8);
    I8x16AllTrue: all_true::<u8>(a);
    I8x16Bitmask: bitmask::<i8>(a, |x| x < 0);
    I8x16NarrowI16x8S: narrow(a, b, |x: i16| x.clamp(i8::MIN.into(), i8::MAX.into()) as i8);
    I8x16NarrowI16x8U: narrow(a, b, |x: i16| x.clamp(u8::MIN.into(), u8::MAX.into()) as u8);
    F32x4Ceil: lanewise::<u32, numeric::ops::F32Ceil>(a, 0);
    F32x4Floor: lanewise::<u32, numeric::ops::F32Floor>(a, 0);
    F32x4Trunc: lanewise::<u32, numeric::ops::F32Trunc>(a, 0);
    F32x4Nearest: lanewise::<u32, numeric::ops::F32Nearest>(a, 0);
    I8x16Shl: shift(a, b, u8::wrapping_shl);
    I8x16ShrS: shift(a, b, i8::wrapping_shr);
    I8x16ShrU: shift(a, b, u8::wrapping_shr);
    I8x16Add: bin(a, b, u8::wrapping_add);
    I8x16AddSatS: bin(a, b, i8::saturating_add);
    I8x16AddSatU: bin(a, b, u8::saturating_add);
    I8x16Sub: bin(a, b, u8::wrapping_sub);
    I8x16SubSatS: bin(a, b, i8::saturating_sub);
    I8x16SubSatU: bin(a, b, u8::saturating_sub);
    F64x2Ceil: lanewise::<u64, numeric::ops::F64Ceil>(a, 0);
    F64x2Floor: lanewise::<u64, numeric::ops::F64Floor>(a, 0);
    I8x16MinS: bin(a, b, i8::min);
    I8x16MinU: bin(a, b, u8::min);
    I8x16MaxS: bin(a, b, i8::max);
    I8x16MaxU: bin(a, b, u8::max);
    F64x2Trunc: lanewise::<u64, numeric::ops::F64Trunc>(a, 0);
    I8x16AvgrU: bin(a, b, |x: u8, y: u8| (u16::from(x) + u16::from(y)).div_ceil(2) as u8);
    I16x8ExtAddPairwiseI8x16S: pairwise(a, |x: i8, y: i8| i16::from(x) + i16::from(y));
    I16x8ExtAddPairwiseI8x16U: pairwise(a, |x: u8, y: u8| u16::from(x) + u16::from(y));
    I32x4ExtAddPairwiseI16x8S: pairwise(a, |x: i16, y: i16| i32::from(x) + i32::from(y));
    I32x4ExtAddPairwiseI16x8U: pairwise(a, |x: u16, y: u16| u32::from(x) + u32::from(y));
    I16x8Abs: un(a, i16::wrapping_abs);
    I16x8Neg: un(a, u16::wrapping_neg);
    I16x8Q15MulrSatS: bin(a, b, q15mulr);
    I16x8AllTrue: all_true::<u16>(a);
    I16x8Bitmask: bitmask::<i16>(a, |x| x < 0);
    I16x8NarrowI32x4S: narrow(a, b, |x: i32| x.clamp(i16::MIN.into(), i16::MAX.into()) as i16);
    I16x8NarrowI32x4U: narrow(a, b, |x: i32| x.clamp(u16::MIN.into(), u16::MAX.into()) as u16);
    I16x8ExtendLowI8x16S: extend(a, Half::Low, |x: i8| i16::from(x));
    I16x8ExtendHighI8x16S: extend(a, Half::High, |x: i8| i16::from(x));
    I16x8ExtendLowI8x16U: extend(a, Half::Low, |x: u8| u16::from(x));
    I16x8ExtendHighI8x16U: extend(a, Half::High, |x: u8| u16::from(x));
    I16x8Shl: shift(a, b, u16::wrapping_shl);
    I16x8ShrS: shift(a, b, i16::wrapping_shr);
    I16x8ShrU: shift(a, b, u16::wrapping_shr);
    I16x8Add: bin(a, b, u16::wrapping_add);
    I16x8AddSatS: bin(a, b, i16::saturating_add);
    I16x8AddSatU: bin(a, b, u16::saturating_add);
    I16x8Sub: bin(a, b, u16::wrapping_sub);
    I16x8SubSatS: bin(a, b, i16::saturating_sub);
    I16x8SubSatU: bin(a, b, u16::saturating_sub);
    F64x2Nearest: lanewise::<u64, numeric::ops::F64Nearest>(a, 0);
    I16x8Mul: bin(a, b, u16::wrapping_mul);
    I16x8MinS: bin(a, b, i16::min);
    I16x8MinU: bin(a, b, u16::min);
    I16x8MaxS: bin(a, b, i16::max);
    I16x8MaxU: bin(a, b, u16::max);
    I16x8AvgrU: bin(a, b, |x: u16, y: u16| (u32::from(x) + u32::from(y)).div_ceil(2) as u16);
    I16x8ExtMulLowI8x16S:
        extend_both(a, b, Half::Low, |x: i8, y: i8| i16::from(x).wrapping_mul(i16::from(y)));
    I16x8ExtMulHighI8x16S:
        extend_both(a, b, Half::High, |x: i8, y: i8| i16::from(x).wrapping_mul(i16::from(y)));
    I16x8ExtMulLowI8x16U:
        extend_both(a, b, Half::Low, |x: u8, y: u8| u16::from(x).wrapping_mul(u16::from(y)));
    I16x8ExtMulHighI8x16U:
        extend_both(a, b, Half::High, |x: u8, y: u8| u16::from(x).wrapping_mul(u16::from(y)));
    I32x4Abs: un(a, i32::wrapping_abs);
    I32x4Neg: un(a, u32::wrapping_neg);
    I32x4AllTrue: all_true::<u32>(a);
    I32x4Bitmask: bitmask::<i32>(a, |x| x < 0);
    I32x4ExtendLowI16x8S: extend(a, Half::Low, |x: i16| i32::from(x));
    I32x4ExtendHighI16x8S: extend(a, Half::High, |x: i16| i32::from(x));
    I32x4ExtendLowI16x8U: extend(a, Half::Low, |x: u16| u32::from(x));
    I32x4ExtendHighI16x8U: extend(a, Half::High, |x: u16| u32::from(x));
    I32x4Shl: shift(a, b, u32::wrapping_shl);
    I32x4ShrS: shift(a, b, i32::wrapping_shr);
    I32x4ShrU: shift(a, b, u32::wrapping_shr);
    I32x4Add: bin(a, b, u32::wrapping_add);
    I32x4Sub: bin(a, b, u32::wrapping_sub);
    I32x4Mul: bin(a, b, u32::wrapping_mul);
    I32x4MinS: bin(a, b, i32::min);
    I32x4MinU: bin(a, b, u32::min);
    I32x4MaxS: bin(a, b, i32::max);
    I32x4MaxU: bin(a, b, u32::max);
    I32x4DotI16x8S: dot(a, b);
    I32x4ExtMulLowI16x8S:
        extend_both(a, b, Half::Low, |x: i16, y: i16| i32::from(x).wrapping_mul(i32::from(y)));
    I32x4ExtMulHighI16x8S:
        extend_both(a, b, Half::High, |x: i16, y: i16| i32::from(x).wrapping_mul(i32::from(y)));
    I32x4ExtMulLowI16x8U:
        extend_both(a, b, Half::Low, |x: u16, y: u16| u32::from(x).wrapping_mul(u32::from(y)));
    I32x4ExtMulHighI16x8U:
        extend_both(a, b, Half::High, |x: u16, y: u16| u32::from(x).wrapping_mul(u32::from(y)));
    I64x2Abs: un(a, i64::wrapping_abs);
    I64x2Neg: un(a, u64::wrapping_neg);
    I64x2AllTrue: all_true::<u64>(a);
    I64x2Bitmask: bitmask::<i64>(a, |x| x < 0);
    I64x2ExtendLowI32x4S: extend(a, Half::Low, |x: i32| i64::from(x));
    I64x2ExtendHighI32x4S: extend(a, Half::High, |x: i32| i64::from(x));
    I64x2ExtendLowI32x4U: extend(a, Half::Low, |x: u32| u64::from(x));
    I64x2ExtendHighI32x4U: extend(a, Half::High, |x: u32| u64::from(x));
    I64x2Shl: shift(a, b, u64::wrapping_shl);
    I64x2ShrS: shift(a, b, i64::wrapping_shr);
    I64x2ShrU: shift(a, b, u64::wrapping_shr);
    I64x2Add: bin(a, b, u64::wrapping_add);
    I64x2Sub: bin(a, b, u64::wrapping_sub);
    I64x2Mul: bin(a, b, u64::wrapping_mul);
    I64x2Eq: compare(a, b, |x: u64, y: u64| x == y);
    I64x2Ne: compare(a, b, |x: u64, y: u64| x != y);
    I64x2LtS: compare(a, b, |x: i64, y: i64| x < y);
    I64x2GtS: compare(a, b, |x: i64, y: i64| x > y);
    I64x2LeS: compare(a, b, |x: i64, y: i64| x <= y);
    I64x2GeS: compare(a, b, |x: i64, y: i64| x >= y);
    I64x2ExtMulLowI32x4S:
        extend_both(a, b, Half::Low, |x: i32, y: i32| i64::from(x).wrapping_mul(i64::from(y)));
    I64x2ExtMulHighI32x4S:
        extend_both(a, b, Half::High, |x: i32, y: i32| i64::from(x).wrapping_mul(i64::from(y)));
    I64x2ExtMulLowI32x4U:
        extend_both(a, b, Half::Low, |x: u32, y: u32| u64::from(x).wrapping_mul(u64::from(y)));
    I64x2ExtMulHighI32x4U:
        extend_both(a, b, Half::High, |x: u32, y: u32| u64::from(x).wrapping_mul(u64::from(y)));
    F32x4Abs: lanewise::<u32, numeric::ops::F32Abs>(a, 0);
    F32x4Neg: lanewise::<u32, numeric::ops::F32Neg>(a, 0);
    F32x4Sqrt: lanewise::<u32, numeric::ops::F32Sqrt>(a, 0);
    F32x4Add: lanewise::<u32, numeric::ops::F32Add>(a, b);
    F32x4Sub: lanewise::<u32, numeric::ops::F32Sub>(a, b);
    F32x4Mul: lanewise::<u32, numeric::ops::F32Mul>(a, b);
    F32x4Div: lanewise::<u32, numeric::ops::F32Div>(a, b);
    F32x4Min: lanewise::<u32, numeric::ops::F32Min>(a, b);
    F32x4Max: lanewise::<u32, numeric::ops::F32Max>(a, b);
    F32x4PMin: bin(a, b, |x: f32, y: f32| if y < x { y } else { x });
    F32x4PMax: bin(a, b, |x: f32, y: f32| if x < y { y } else { x });
    F64x2Abs: lanewise::<u64, numeric::ops::F64Abs>(a, 0);
    F64x2Neg: lanewise::<u64, numeric::ops::F64Neg>(a, 0);
    F64x2Sqrt: lanewise::<u64, numeric::ops::F64Sqrt>(a, 0);
    F64x2Add: lanewise::<u64, numeric::ops::F64Add>(a, b);
    F64x2Sub: lanewise::<u64, numeric::ops::F64Sub>(a, b);
    F64x2Mul: lanewise::<u64, numeric::ops::F64Mul>(a, b);
    F64x2Div: lanewise::<u64, numeric::ops::F64Div>(a, b);
    F64x2Min: lanewise::<u64, numeric::ops::F64Min>(a, b);
    F64x2Max: lanewise::<u64, numeric::ops::F64Max>(a, b);
    F64x2PMin: bin(a, b, |x: f64, y: f64| if y < x { y } else { x });
    F64x2PMax: bin(a, b, |x: f64, y: f64| if x < y { y } else { x });
    I32x4TruncSatF32x4S: lanewise::<u32, numeric::ops::I32TruncSatF32S>(a, 0);
    I32x4TruncSatF32x4U: lanewise::<u32, numeric::ops::I32TruncSatF32U>(a, 0);
    F32x4ConvertI32x4S: lanewise::<u32, numeric::ops::F32ConvertI32S>(a, 0);
    F32x4ConvertI32x4U: lanewise::<u32, numeric::ops::F32ConvertI32U>(a, 0);
    I32x4TruncSatF64x2SZero: narrowed::<numeric::ops::I32TruncSatF64S>(a);
    I32x4TruncSatF64x2UZero: narrowed::<numeric::ops::I32TruncSatF64U>(a);
    F64x2ConvertLowI32x4S: widened::<numeric::ops::F64ConvertI32S>(a);
    F64x2ConvertLowI32x4U: widened::<numeric::ops::F64ConvertI32U>(a);
}

/// Replaces each NaN in the result `bits` by the canonical one if [`Op::makes_nan`] holds. Other results are
/// unchanged.
pub fn canonical_nans(op: Op, bits: u128) -> u128 {
    match op.nan_type() {
        Some(ValType::F64) => {
            un(bits, |x: f64| if x.is_nan() { f64::from_bits(CANONICAL_NAN_F64) } else { x })
        }
        Some(_) => {
            un(bits, |x: f32| if x.is_nan() { f32::from_bits(CANONICAL_NAN_F32) } else { x })
        }
        None => bits,
    }
}

/// Returns the result of a load from its bytes, a little-endian number. A lane load also takes the vector to
/// change.
pub fn loaded(access: VectorAccess, bytes: u64, lane: u32, vector: u128) -> u128 {
    let bits = u128::from(bytes);
    match (access.part, access.bytes) {
        (VectorPart::Extended { lane_bytes: 1, signed: true }, _) => {
            extend(bits, Half::Low, |x: i8| i16::from(x))
        }
        (VectorPart::Extended { lane_bytes: 1, signed: false }, _) => {
            extend(bits, Half::Low, |x: u8| u16::from(x))
        }
        (VectorPart::Extended { lane_bytes: 2, signed: true }, _) => {
            extend(bits, Half::Low, |x: i16| i32::from(x))
        }
        (VectorPart::Extended { lane_bytes: 2, signed: false }, _) => {
            extend(bits, Half::Low, |x: u16| u32::from(x))
        }
        (VectorPart::Extended { signed: true, .. }, _) => {
            extend(bits, Half::Low, |x: i32| i64::from(x))
        }
        (VectorPart::Extended { signed: false, .. }, _) => {
            extend(bits, Half::Low, |x: u32| u64::from(x))
        }
        (VectorPart::LowLane, _) => bits,
        (VectorPart::Splat, 1) => splat::<u8>(bits),
        (VectorPart::Splat, 2) => splat::<u16>(bits),
        (VectorPart::Splat, 4) => splat::<u32>(bits),
        (VectorPart::Splat, _) => splat::<u64>(bits),
        (VectorPart::Lane, 1) => replace::<u8>(vector, lane, bits),
        (VectorPart::Lane, 2) => replace::<u16>(vector, lane, bits),
        (VectorPart::Lane, 4) => replace::<u32>(vector, lane, bits),
        (VectorPart::Lane, _) => replace::<u64>(vector, lane, bits),
    }
}

/// Returns the bytes that a lane store writes, as the low bytes of the number.
pub fn stored(access: VectorAccess, lane: u32, vector: u128) -> u64 {
    (vector >> (8 * access.bytes * lane)) as u64
}

/// A lane of a vector.
trait Lane: Copy {
    const BITS: u32;
    /// All lanes of a vector. A compiler makes vector instructions of loops over them.
    type Lanes: Default + AsRef<[Self]> + AsMut<[Self]>;

    fn split(vector: u128) -> Self::Lanes;
    fn join(lanes: Self::Lanes) -> u128;
    fn from_bits(bits: u128) -> Self;
    fn to_bits(self) -> u128;
}

macro_rules! lanes {
    ($($ty:ty: $bits:ident => $from:expr, $value:ident => $to:expr;)*) => {
        $(impl Lane for $ty {
            const BITS: u32 = 8 * size_of::<$ty>() as u32;
            type Lanes = [$ty; 16 / size_of::<$ty>()];

            #[inline(always)]
            fn split(vector: u128) -> Self::Lanes {
                let bytes = vector.to_le_bytes();
                let (lanes, _) = bytes.as_chunks::<{ size_of::<$ty>() }>();
                std::array::from_fn(|i| <$ty>::from_le_bytes(lanes[i]))
            }

            #[inline(always)]
            fn join(lanes: Self::Lanes) -> u128 {
                let mut bytes = [0; 16];
                let (places, _) = bytes.as_chunks_mut::<{ size_of::<$ty>() }>();
                for (place, lane) in places.iter_mut().zip(lanes) {
                    *place = lane.to_le_bytes();
                }
                u128::from_le_bytes(bytes)
            }

            #[inline(always)]
            fn from_bits($bits: u128) -> $ty {
                $from
            }

            #[inline(always)]
            fn to_bits(self) -> u128 {
                let $value = self;
                $to
            }
        })*
    };
}

lanes! {
    u8: bits => bits as u8, value => value.into();
    i8: bits => bits as i8, value => (value as u8).into();
    u16: bits => bits as u16, value => value.into();
    i16: bits => bits as i16, value => (value as u16).into();
    u32: bits => bits as u32, value => value.into();
    i32: bits => bits as i32, value => (value as u32).into();
    u64: bits => bits as u64, value => value.into();
    i64: bits => bits as i64, value => (value as u64).into();
    f32: bits => f32::from_bits(bits as u32), value => f32::to_bits(value).into();
    f64: bits => f64::from_bits(bits as u64), value => f64::to_bits(value).into();
}

/// A lane of a vector.
#[inline(always)]
fn get<T: Lane>(vector: u128, lane: u32) -> T {
    T::split(vector).as_ref()[lane as usize]
}

/// Returns the vector with these lanes.
#[inline(always)]
fn from_lanes<T: Lane>(lane: impl Fn(u32) -> T) -> u128 {
    let mut lanes = T::Lanes::default();
    for (i, place) in (0..).zip(lanes.as_mut()) {
        *place = lane(i);
    }
    T::join(lanes)
}

#[inline(always)]
fn un<T: Lane, R: Lane>(a: u128, f: impl Fn(T) -> R) -> u128 {
    from_lanes(|i| f(get(a, i)))
}

#[inline(always)]
fn bin<T: Lane, R: Lane>(a: u128, b: u128, f: impl Fn(T, T) -> R) -> u128 {
    from_lanes(|i| f(get(a, i), get(b, i)))
}

/// Applies a numeric instruction to each lane.
#[inline(always)]
fn lanewise<T: Lane, N: Numeric>(a: u128, b: u128) -> u128 {
    from_lanes(|i| T::from_bits(scalar::<N>(get::<T>(a, i).to_bits(), get::<T>(b, i).to_bits())))
}

/// Applies a numeric instruction from 64 to 32 bits to both lanes; the upper lanes are zero.
#[inline(always)]
fn narrowed<N: Numeric>(a: u128) -> u128 {
    scalar::<N>(get::<u64>(a, 0).into(), 0) | scalar::<N>(get::<u64>(a, 1).into(), 0) << 32
}

/// Applies a numeric instruction from 32 to 64 bits to the two lower lanes.
#[inline(always)]
fn widened<N: Numeric>(a: u128) -> u128 {
    scalar::<N>(get::<u32>(a, 0).into(), 0) | scalar::<N>(get::<u32>(a, 1).into(), 0) << 64
}

#[inline(always)]
fn scalar<N: Numeric>(a: u128, b: u128) -> u128 {
    N::eval(a as u64, b as u64).expect("lane operations do not trap").into()
}

#[inline(always)]
fn compare<T: Lane>(a: u128, b: u128, f: impl Fn(T, T) -> bool) -> u128 {
    let ones = u128::MAX >> (128 - T::BITS);
    from_lanes(|i| T::from_bits(if f(get(a, i), get(b, i)) { ones } else { 0 }))
}

#[inline(always)]
fn shift<T: Lane>(a: u128, count: u128, f: impl Fn(T, u32) -> T) -> u128 {
    un(a, |x| f(x, count as u32 % T::BITS))
}

#[inline(always)]
fn splat<T: Lane>(a: u128) -> u128 {
    from_lanes(|_| T::from_bits(a))
}

#[inline(always)]
fn replace<T: Lane>(a: u128, lane: u32, value: u128) -> u128 {
    let mut lanes = T::split(a);
    lanes.as_mut()[lane as usize] = T::from_bits(value);
    T::join(lanes)
}

#[inline(always)]
fn shuffle(lanes: u128, a: u128, b: u128) -> u128 {
    un(lanes, |lane: u8| match lane {
        0..16 => get::<u8>(a, lane.into()),
        _ => get(b, u32::from(lane) - 16),
    })
}

#[inline(always)]
fn swizzle(a: u128, lanes: u128) -> u128 {
    un(lanes, |lane: u8| if lane < 16 { get::<u8>(a, lane.into()) } else { 0 })
}

#[inline(always)]
fn all_true<T: Lane>(a: u128) -> u128 {
    u128::from((0..128 / T::BITS).all(|i| get::<T>(a, i).to_bits() != 0))
}

#[inline(always)]
fn bitmask<T: Lane>(a: u128, is_set: impl Fn(T) -> bool) -> u128 {
    (0..128 / T::BITS).fold(0, |mask, i| mask | u128::from(is_set(get(a, i))) << i)
}

/// The lanes of both, those of the first below.
#[inline(always)]
fn narrow<T: Lane, R: Lane>(a: u128, b: u128, f: impl Fn(T) -> R) -> u128 {
    let n = 128 / T::BITS;
    from_lanes(|i| f(if i < n { get(a, i) } else { get(b, i - n) }))
}

#[derive(Copy, Clone)]
enum Half {
    Low,
    High,
}

/// The lanes of a half.
#[inline(always)]
fn extend<T: Lane, R: Lane>(a: u128, half: Half, f: impl Fn(T) -> R) -> u128 {
    extend_both(a, 0, half, |x, _| f(x))
}

/// The lanes of the halves of both.
#[inline(always)]
fn extend_both<T: Lane, R: Lane>(a: u128, b: u128, half: Half, f: impl Fn(T, T) -> R) -> u128 {
    let first = match half {
        Half::Low => 0,
        Half::High => 128 / R::BITS,
    };
    from_lanes(|i| f(get(a, first + i), get(b, first + i)))
}

/// Pairs of neighbouring lanes.
#[inline(always)]
fn pairwise<T: Lane, R: Lane>(a: u128, f: impl Fn(T, T) -> R) -> u128 {
    from_lanes(|i| f(get(a, 2 * i), get(a, 2 * i + 1)))
}

#[inline(always)]
fn dot(a: u128, b: u128) -> u128 {
    let product = |i| i32::from(get::<i16>(a, i)) * i32::from(get::<i16>(b, i));
    from_lanes(|i| product(2 * i).wrapping_add(product(2 * i + 1)))
}

#[inline(always)]
fn q15mulr(x: i16, y: i16) -> i16 {
    let rounded = (i32::from(x) * i32::from(y) + (1 << 14)) >> 15;
    rounded.clamp(i16::MIN.into(), i16::MAX.into()) as i16
}

#[cfg(test)]
mod tests;
