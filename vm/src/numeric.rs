//! Semantics of the numeric instructions, opcodes 0x70 to 0xf7. The interpreter and constant folding share
//! this definition, and native code must match it. The IR evaluator, an oracle, has its own definition
//! without shared code; its tests compare the two.
//!
//! Operands and results are cells. An `i32` or `f32` is its bits, zero-extended; the upper half of such an
//! operand is ignored. The semantics are WebAssembly's, so every result is defined, with one exception: the
//! machine chooses the payload and the sign of a NaN returned by an operation of [`Op::makes_nan`].
//! [`canonical_nan`] replaces such NaNs where that is requested.

use crate::op::Op;
use crate::trap::TrapCode;
use crate::types::ValType;

/// The bits of the canonical `f32` NaN.
pub const CANONICAL_NAN_F32: u32 = 0x7fc0_0000;

/// The bits of the canonical `f64` NaN.
pub const CANONICAL_NAN_F64: u64 = 0x7ff8_0000_0000_0000;

/// Whether the opcode is numeric, so that [`eval`] computes it.
#[inline]
pub const fn is_numeric(op: Op) -> bool {
    op as u16 >= Op::I32Eqz as u16 && op as u16 <= Op::I64TruncSatF64U as u16
}

/// A numeric instruction by itself, for code that is made for one.
pub trait Numeric {
    /// Its opcode.
    const OP: Op;

    /// Returns what [`eval`] does for the opcode.
    ///
    /// # Errors
    /// As there.
    fn eval(a: u64, b: u64) -> Result<u64, TrapCode>;
}

/// Defines the instructions, each by its operands and results as `un`, `bin`, `try_un` or `try_bin` take them.
macro_rules! numeric {
    ($($op:ident: $form:ident $f:expr;)*) => {
        /// Returns the result of a numeric instruction on operand cells. `b` is the topmost operand of a binary
        /// instruction; unary instructions ignore it.
        ///
        /// # Errors
        /// Returns the trap if the operation is not defined on the operands.
        ///
        /// # Panics
        /// Panics if the opcode is not numeric, see [`is_numeric`].
        #[inline]
        pub fn eval(op: Op, a: u64, b: u64) -> Result<u64, TrapCode> {
            match op {
                $(Op::$op => <ops::$op as Numeric>::eval(a, b),)*
                _ => not_numeric(op),
            }
        }

        /// The numeric instructions as types.
        pub mod ops {
            use super::*;
            $(
                #[doc = concat!("[`Op::", stringify!($op), "`].")]
                #[derive(Copy, Clone, Debug)]
                pub enum $op {}

                impl Numeric for $op {
                    const OP: Op = Op::$op;

                    #[inline(always)]
                    fn eval(a: u64, b: u64) -> Result<u64, TrapCode> {
                        $form(a, b, $f)
                    }
                }
            )*
        }
    };
}

numeric! {
    I32Eqz: un |x: u32| x == 0;
    I32Eq: bin |x: u32, y: u32| x == y;
    I32Ne: bin |x: u32, y: u32| x != y;
    I32LtS: bin |x: i32, y: i32| x < y;
    I32LtU: bin |x: u32, y: u32| x < y;
    I32GtS: bin |x: i32, y: i32| x > y;
    I32GtU: bin |x: u32, y: u32| x > y;
    I32LeS: bin |x: i32, y: i32| x <= y;
    I32LeU: bin |x: u32, y: u32| x <= y;
    I32GeS: bin |x: i32, y: i32| x >= y;
    I32GeU: bin |x: u32, y: u32| x >= y;
    I64Eqz: un |x: u64| x == 0;
    I64Eq: bin |x: u64, y: u64| x == y;
    I64Ne: bin |x: u64, y: u64| x != y;
    I64LtS: bin |x: i64, y: i64| x < y;
    I64LtU: bin |x: u64, y: u64| x < y;
    I64GtS: bin |x: i64, y: i64| x > y;
    I64GtU: bin |x: u64, y: u64| x > y;
    I64LeS: bin |x: i64, y: i64| x <= y;
    I64LeU: bin |x: u64, y: u64| x <= y;
    I64GeS: bin |x: i64, y: i64| x >= y;
    I64GeU: bin |x: u64, y: u64| x >= y;
    F32Eq: bin |x: f32, y: f32| x == y;
    F32Ne: bin |x: f32, y: f32| x != y;
    F32Lt: bin |x: f32, y: f32| x < y;
    F32Gt: bin |x: f32, y: f32| x > y;
    F32Le: bin |x: f32, y: f32| x <= y;
    F32Ge: bin |x: f32, y: f32| x >= y;
    F64Eq: bin |x: f64, y: f64| x == y;
    F64Ne: bin |x: f64, y: f64| x != y;
    F64Lt: bin |x: f64, y: f64| x < y;
    F64Gt: bin |x: f64, y: f64| x > y;
    F64Le: bin |x: f64, y: f64| x <= y;
    F64Ge: bin |x: f64, y: f64| x >= y;

    I32Clz: un u32::leading_zeros;
    I32Ctz: un u32::trailing_zeros;
    I32Popcnt: un u32::count_ones;
    I32Add: bin u32::wrapping_add;
    I32Sub: bin u32::wrapping_sub;
    I32Mul: bin u32::wrapping_mul;
    I32DivS: try_bin |x: i32, y: i32| quotient(y == 0, x.checked_div(y));
    I32DivU: try_bin |x: u32, y: u32| quotient(y == 0, x.checked_div(y));
    // `MIN % -1` is 0, although `MIN / -1` overflows.
    I32RemS: try_bin |x: i32, y: i32| remainder(y == 0, || x.wrapping_rem(y));
    I32RemU: try_bin |x: u32, y: u32| remainder(y == 0, || x % y);
    I32And: bin |x: u32, y: u32| x & y;
    I32Or: bin |x: u32, y: u32| x | y;
    I32Xor: bin |x: u32, y: u32| x ^ y;
    I32Shl: bin u32::wrapping_shl;
    I32ShrS: bin |x: i32, y: i32| x.wrapping_shr(y as u32);
    I32ShrU: bin u32::wrapping_shr;
    I32Rotl: bin |x: u32, y: u32| x.rotate_left(y % 32);
    I32Rotr: bin |x: u32, y: u32| x.rotate_right(y % 32);
    I64Clz: un |x: u64| u64::from(x.leading_zeros());
    I64Ctz: un |x: u64| u64::from(x.trailing_zeros());
    I64Popcnt: un |x: u64| u64::from(x.count_ones());
    I64Add: bin u64::wrapping_add;
    I64Sub: bin u64::wrapping_sub;
    I64Mul: bin u64::wrapping_mul;
    I64DivS: try_bin |x: i64, y: i64| quotient(y == 0, x.checked_div(y));
    I64DivU: try_bin |x: u64, y: u64| quotient(y == 0, x.checked_div(y));
    I64RemS: try_bin |x: i64, y: i64| remainder(y == 0, || x.wrapping_rem(y));
    I64RemU: try_bin |x: u64, y: u64| remainder(y == 0, || x % y);
    I64And: bin |x: u64, y: u64| x & y;
    I64Or: bin |x: u64, y: u64| x | y;
    I64Xor: bin |x: u64, y: u64| x ^ y;
    I64Shl: bin |x: u64, y: u64| x.wrapping_shl(y as u32);
    I64ShrS: bin |x: i64, y: i64| x.wrapping_shr(y as u32);
    I64ShrU: bin |x: u64, y: u64| x.wrapping_shr(y as u32);
    I64Rotl: bin |x: u64, y: u64| x.rotate_left((y % 64) as u32);
    I64Rotr: bin |x: u64, y: u64| x.rotate_right((y % 64) as u32);

    F32Abs: un |x: u32| x & !F32_SIGN;
    F32Neg: un |x: u32| x ^ F32_SIGN;
    F32Ceil: un |x: f32| quiet_f32(x, f32::ceil);
    F32Floor: un |x: f32| quiet_f32(x, f32::floor);
    F32Trunc: un |x: f32| quiet_f32(x, f32::trunc);
    F32Nearest: un |x: f32| quiet_f32(x, f32::round_ties_even);
    F32Sqrt: un f32::sqrt;
    F32Add: bin |x: f32, y: f32| x + y;
    F32Sub: bin |x: f32, y: f32| x - y;
    F32Mul: bin |x: f32, y: f32| x * y;
    F32Div: bin |x: f32, y: f32| x / y;
    F32Min: bin min_f32;
    F32Max: bin max_f32;
    F32Copysign: bin |x: u32, y: u32| x & !F32_SIGN | y & F32_SIGN;
    F64Abs: un |x: u64| x & !F64_SIGN;
    F64Neg: un |x: u64| x ^ F64_SIGN;
    F64Ceil: un |x: f64| quiet_f64(x, f64::ceil);
    F64Floor: un |x: f64| quiet_f64(x, f64::floor);
    F64Trunc: un |x: f64| quiet_f64(x, f64::trunc);
    F64Nearest: un |x: f64| quiet_f64(x, f64::round_ties_even);
    F64Sqrt: un f64::sqrt;
    F64Add: bin |x: f64, y: f64| x + y;
    F64Sub: bin |x: f64, y: f64| x - y;
    F64Mul: bin |x: f64, y: f64| x * y;
    F64Div: bin |x: f64, y: f64| x / y;
    F64Min: bin min_f64;
    F64Max: bin max_f64;
    F64Copysign: bin |x: u64, y: u64| x & !F64_SIGN | y & F64_SIGN;

    I32WrapI64: un |x: u64| x as u32;
    I32TruncF32S: try_un |x: f32| Ok(trunc(x.into(), I32_RANGE)? as i32);
    I32TruncF32U: try_un |x: f32| Ok(trunc(x.into(), U32_RANGE)? as u32);
    I32TruncF64S: try_un |x: f64| Ok(trunc(x, I32_RANGE)? as i32);
    I32TruncF64U: try_un |x: f64| Ok(trunc(x, U32_RANGE)? as u32);
    I64ExtendI32S: un |x: i32| i64::from(x);
    I64ExtendI32U: un |x: u32| u64::from(x);
    I64TruncF32S: try_un |x: f32| Ok(trunc(x.into(), I64_RANGE)? as i64);
    I64TruncF32U: try_un |x: f32| Ok(trunc(x.into(), U64_RANGE)? as u64);
    I64TruncF64S: try_un |x: f64| Ok(trunc(x, I64_RANGE)? as i64);
    I64TruncF64U: try_un |x: f64| Ok(trunc(x, U64_RANGE)? as u64);
    F32ConvertI32S: un |x: i32| x as f32;
    F32ConvertI32U: un |x: u32| x as f32;
    F32ConvertI64S: un |x: i64| x as f32;
    F32ConvertI64U: un |x: u64| x as f32;
    F32DemoteF64: un |x: f64| x as f32;
    F64ConvertI32S: un |x: i32| f64::from(x);
    F64ConvertI32U: un |x: u32| f64::from(x);
    F64ConvertI64S: un |x: i64| x as f64;
    F64ConvertI64U: un |x: u64| x as f64;
    F64PromoteF32: un |x: f32| f64::from(x);
    I32ReinterpretF32: un |x: u32| x;
    F32ReinterpretI32: un |x: u32| x;
    I64ReinterpretF64: un |x: u64| x;
    F64ReinterpretI64: un |x: u64| x;
    I32Extend8S: un |x: u32| i32::from(x as i8);
    I32Extend16S: un |x: u32| i32::from(x as i16);
    I64Extend8S: un |x: u64| i64::from(x as i8);
    I64Extend16S: un |x: u64| i64::from(x as i16);
    I64Extend32S: un |x: u64| i64::from(x as i32);
    // Rust's `as` also saturates, and converts NaN to 0.
    I32TruncSatF32S: un |x: f32| x as i32;
    I32TruncSatF32U: un |x: f32| x as u32;
    I32TruncSatF64S: un |x: f64| x as i32;
    I32TruncSatF64U: un |x: f64| x as u32;
    I64TruncSatF32S: un |x: f32| x as i64;
    I64TruncSatF32U: un |x: f32| x as u64;
    I64TruncSatF64S: un |x: f64| x as i64;
    I64TruncSatF64U: un |x: f64| x as u64;
}

/// Replaces a NaN in the result `bits` by the canonical one if [`Op::makes_nan`] holds. Other results are
/// unchanged.
#[inline]
pub fn canonical_nan(op: Op, bits: u64) -> u64 {
    match op.nan_type() {
        Some(ValType::F32) if f32::from_bits(bits as u32).is_nan() => u64::from(CANONICAL_NAN_F32),
        Some(ValType::F64) if f64::from_bits(bits).is_nan() => CANONICAL_NAN_F64,
        _ => bits,
    }
}

#[cold]
#[inline(never)]
fn not_numeric(op: Op) -> ! {
    panic!("`{}` is not a numeric instruction", op.mnemonic())
}

/// A value as a cell holds it.
trait Cell {
    fn from_cell(cell: u64) -> Self;
    fn into_cell(self) -> u64;
}

macro_rules! cell {
    ($($ty:ty: $cell:ident => $from:expr, $value:ident => $into:expr;)*) => {
        $(impl Cell for $ty {
            #[inline]
            fn from_cell($cell: u64) -> $ty {
                $from
            }
            #[inline]
            fn into_cell(self) -> u64 {
                let $value = self;
                $into
            }
        })*
    };
}

cell! {
    bool: cell => cell != 0, value => u64::from(value);
    u32: cell => cell as u32, value => u64::from(value);
    i32: cell => cell as i32, value => u64::from(value as u32);
    u64: cell => cell, value => value;
    i64: cell => cell as i64, value => value as u64;
    f32: cell => f32::from_bits(cell as u32), value => u64::from(value.to_bits());
    f64: cell => f64::from_bits(cell), value => value.to_bits();
}

#[inline(always)]
fn un<A: Cell, R: Cell>(a: u64, _: u64, f: impl FnOnce(A) -> R) -> Result<u64, TrapCode> {
    Ok(f(A::from_cell(a)).into_cell())
}

#[inline(always)]
fn bin<A: Cell, R: Cell>(a: u64, b: u64, f: impl FnOnce(A, A) -> R) -> Result<u64, TrapCode> {
    Ok(f(A::from_cell(a), A::from_cell(b)).into_cell())
}

#[inline(always)]
fn try_un<A: Cell, R: Cell>(
    a: u64,
    _: u64,
    f: impl FnOnce(A) -> Result<R, TrapCode>,
) -> Result<u64, TrapCode> {
    Ok(f(A::from_cell(a))?.into_cell())
}

#[inline(always)]
fn try_bin<A: Cell, R: Cell>(
    a: u64,
    b: u64,
    f: impl FnOnce(A, A) -> Result<R, TrapCode>,
) -> Result<u64, TrapCode> {
    Ok(f(A::from_cell(a), A::from_cell(b))?.into_cell())
}

/// The result of a division, which can only fail with a zero divisor or overflow.
#[inline]
fn quotient<T>(by_zero: bool, result: Option<T>) -> Result<T, TrapCode> {
    if by_zero {
        return Err(TrapCode::IntegerDivisionByZero);
    }
    result.ok_or(TrapCode::IntegerOverflow)
}

/// The result of a remainder, which can only fail with a zero divisor.
#[inline]
fn remainder<T>(by_zero: bool, result: impl FnOnce() -> T) -> Result<T, TrapCode> {
    if by_zero { Err(TrapCode::IntegerDivisionByZero) } else { Ok(result()) }
}

/// Half-open ranges `[min, end)` of integer types; both ends are exact as `f64`.
type Range = (f64, f64);
const I32_RANGE: Range = (-2147483648.0, 2147483648.0);
const U32_RANGE: Range = (0.0, 4294967296.0);
const I64_RANGE: Range = (-9223372036854775808.0, 9223372036854775808.0);
const U64_RANGE: Range = (0.0, 18446744073709551616.0);

/// The integral part of `x`, which lies in the range. An `f32` is exact as an `f64`.
#[inline]
fn trunc(x: f64, (min, end): Range) -> Result<f64, TrapCode> {
    if x.is_nan() {
        return Err(TrapCode::BadConversionToInteger);
    }
    let integral = x.trunc();
    if min <= integral && integral < end { Ok(integral) } else { Err(TrapCode::IntegerOverflow) }
}

const F32_SIGN: u32 = 1 << 31;
const F64_SIGN: u64 = 1 << 63;

macro_rules! float_helpers {
    ($($ty:ty, $quiet_bit:literal: $quiet:ident $min:ident $max:ident;)*) => {
        $(/// `round(x)`; a NaN becomes quiet, which a rounding function of a library may not do.
        #[inline]
        fn $quiet(x: $ty, round: impl FnOnce($ty) -> $ty) -> $ty {
            if x.is_nan() { <$ty>::from_bits(x.to_bits() | 1 << $quiet_bit) } else { round(x) }
        }

        /// NaN if either operand is, and -0 is less than 0.
        #[inline]
        fn $min(x: $ty, y: $ty) -> $ty {
            if x < y {
                x
            } else if y < x {
                y
            } else if x == y {
                // Equal operands differ at most in the sign of zero.
                <$ty>::from_bits(x.to_bits() | y.to_bits())
            } else {
                x + y
            }
        }

        /// NaN if either operand is, and -0 is less than 0.
        #[inline]
        fn $max(x: $ty, y: $ty) -> $ty {
            if x > y {
                x
            } else if y > x {
                y
            } else if x == y {
                <$ty>::from_bits(x.to_bits() & y.to_bits())
            } else {
                x + y
            }
        })*
    };
}

float_helpers! {
    f32, 22: quiet_f32 min_f32 max_f32;
    f64, 51: quiet_f64 min_f64 max_f64;
}

#[cfg(test)]
mod tests;
