//! Semantics of the instructions on integers that have two results, opcodes 0xfc13 to 0xfc2b. The interpreter and constant
//! folding share this definition, and native code must match it. The IR evaluator, an oracle, has its own definition
//! without shared code.
//!
//! Operands and results are cells, as in [`crate::numeric`]. No such instruction traps.
//!
//! * Those of 128 bits are WebAssembly's wide arithmetic. A number is two words, the low one first.
//! * The others return the wrapped result, and whether the exact one differs from it: 1 or 0.

use crate::op::Op;

/// Whether the opcode is an instruction on integers with two results, so that [`eval`] computes it.
#[inline]
pub const fn is_pair(op: Op) -> bool {
    op as u16 >= Op::I64Add128 as u16 && op as u16 <= Op::I64MulOverflowU as u16
}

/// Whether the second result says that the first one has overflowed.
#[inline]
pub const fn has_flag(op: Op) -> bool {
    op as u16 >= Op::I32AddOverflowS as u16 && op as u16 <= Op::I64MulOverflowU as u16
}

/// An instruction with two results by itself, for code that is made for one.
pub trait Pair {
    /// Its opcode.
    const OP: Op;

    /// Returns what [`eval`] does for the opcode.
    fn eval(operands: [u64; 4]) -> [u64; 2];
}

/// Defines the instructions, each by a function of its operand cells, of which two or four count.
macro_rules! pairs {
    ($($op:ident: $f:expr;)*) => {
        /// Returns the results of an instruction on operand cells, the deepest one first. An instruction of two operands
        /// ignores the others.
        ///
        /// # Panics
        /// Panics if the opcode is none with two results, see [`is_pair`].
        #[inline]
        pub fn eval(op: Op, operands: [u64; 4]) -> [u64; 2] {
            match op {
                $(Op::$op => <ops::$op as Pair>::eval(operands),)*
                _ => no_pair(op),
            }
        }

        /// The instructions as types.
        pub mod ops {
            use super::*;
            $(
                #[doc = concat!("[`Op::", stringify!($op), "`].")]
                #[derive(Copy, Clone, Debug)]
                pub enum $op {}

                impl Pair for $op {
                    const OP: Op = Op::$op;

                    #[inline(always)]
                    fn eval(operands: [u64; 4]) -> [u64; 2] {
                        let f: fn([u64; 4]) -> [u64; 2] = $f;
                        f(operands)
                    }
                }
            )*
        }
    };
}

pairs! {
    I64Add128: |[a, b, c, d]| words(wide(a, b).wrapping_add(wide(c, d)));
    I64Sub128: |[a, b, c, d]| words(wide(a, b).wrapping_sub(wide(c, d)));
    I64MulWideS: |[a, b, ..]| words((i128::from(a as i64) * i128::from(b as i64)) as u128);
    I64MulWideU: |[a, b, ..]| words(u128::from(a) * u128::from(b));
    I32AddOverflowS: |[a, b, ..]| flagged_32((a as i32).overflowing_add(b as i32));
    I32AddOverflowU: |[a, b, ..]| flagged_u32((a as u32).overflowing_add(b as u32));
    I32SubOverflowS: |[a, b, ..]| flagged_32((a as i32).overflowing_sub(b as i32));
    I32SubOverflowU: |[a, b, ..]| flagged_u32((a as u32).overflowing_sub(b as u32));
    I32MulOverflowS: |[a, b, ..]| flagged_32((a as i32).overflowing_mul(b as i32));
    I32MulOverflowU: |[a, b, ..]| flagged_u32((a as u32).overflowing_mul(b as u32));
    I64AddOverflowS: |[a, b, ..]| flagged_64((a as i64).overflowing_add(b as i64));
    I64AddOverflowU: |[a, b, ..]| flagged_u64(a.overflowing_add(b));
    I64SubOverflowS: |[a, b, ..]| flagged_64((a as i64).overflowing_sub(b as i64));
    I64SubOverflowU: |[a, b, ..]| flagged_u64(a.overflowing_sub(b));
    I64MulOverflowS: |[a, b, ..]| flagged_64((a as i64).overflowing_mul(b as i64));
    I64MulOverflowU: |[a, b, ..]| flagged_u64(a.overflowing_mul(b));
}

#[cold]
#[inline(never)]
fn no_pair(op: Op) -> ! {
    panic!("`{}` does not have two results", op.mnemonic())
}

/// The number with these words.
#[inline(always)]
fn wide(low: u64, high: u64) -> u128 {
    u128::from(low) | u128::from(high) << 64
}

/// Its words.
#[inline(always)]
fn words(wide: u128) -> [u64; 2] {
    [wide as u64, (wide >> 64) as u64]
}

#[inline(always)]
fn flagged_32((result, overflows): (i32, bool)) -> [u64; 2] {
    flagged_u32((result as u32, overflows))
}

#[inline(always)]
fn flagged_u32((result, overflows): (u32, bool)) -> [u64; 2] {
    [result.into(), overflows.into()]
}

#[inline(always)]
fn flagged_64((result, overflows): (i64, bool)) -> [u64; 2] {
    flagged_u64((result as u64, overflows))
}

#[inline(always)]
fn flagged_u64((result, overflows): (u64, bool)) -> [u64; 2] {
    [result, overflows.into()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::ValType;

    #[test]
    fn they_are_the_opcodes_with_two_results() {
        for &op in Op::ALL {
            let has_two = op.signature().is_some_and(|signature| signature.results.len() == 2);
            assert_eq!(is_pair(op), has_two, "{op:?}");
            let is_flagged = op.mnemonic().contains("_overflow_");
            assert_eq!(has_flag(op), is_flagged, "{op:?}");
            if is_flagged {
                let signature = op.signature().expect("it has a fixed signature");
                assert_eq!(signature.results, [signature.params[0], ValType::I32], "{op:?}");
            }
        }
    }

    const ALL: u64 = u64::MAX;
    const MIN: u64 = 1 << 63;
    const MAX: u64 = MIN - 1;

    #[test]
    fn words_carry() {
        assert_eq!(eval(Op::I64Add128, [ALL, 1, 1, 2]), [0, 4]);
        assert_eq!(eval(Op::I64Add128, [ALL, ALL, 1, 0]), [0, 0]);
        assert_eq!(eval(Op::I64Sub128, [0, 5, 1, 2]), [ALL, 2]);
        assert_eq!(eval(Op::I64Sub128, [0, 0, 1, 0]), [ALL, ALL]);
        assert_eq!(eval(Op::I64MulWideU, [ALL, ALL, 7, 7]), [1, ALL - 1]);
        assert_eq!(eval(Op::I64MulWideS, [ALL, ALL, 7, 7]), [1, 0]);
        assert_eq!(eval(Op::I64MulWideS, [MIN, 2, 0, 0]), [0, ALL]);
        assert_eq!(eval(Op::I64MulWideU, [MIN, 2, 0, 0]), [0, 1]);
    }

    #[test]
    fn flags_say_whether_the_exact_result_differs() {
        let flag = |op, a, b| eval(op, [a, b, 0, 0]);
        assert_eq!(flag(Op::I64AddOverflowS, MAX, 1), [MIN, 1]);
        assert_eq!(flag(Op::I64AddOverflowU, MAX, 1), [MIN, 0]);
        assert_eq!(flag(Op::I64AddOverflowU, ALL, 1), [0, 1]);
        assert_eq!(flag(Op::I64AddOverflowS, ALL, 1), [0, 0]);
        assert_eq!(flag(Op::I64SubOverflowS, MIN, 1), [MAX, 1]);
        assert_eq!(flag(Op::I64SubOverflowU, 0, 1), [ALL, 1]);
        assert_eq!(flag(Op::I64SubOverflowS, 0, 1), [ALL, 0]);
        assert_eq!(flag(Op::I64MulOverflowS, MIN, ALL), [MIN, 1]);
        assert_eq!(flag(Op::I64MulOverflowS, 1 << 32, 1 << 30), [1 << 62, 0]);
        assert_eq!(flag(Op::I64MulOverflowU, 1 << 32, 1 << 32), [0, 1]);
        assert_eq!(flag(Op::I64MulOverflowU, 1 << 32, 1 << 31), [MIN, 0]);
    }

    #[test]
    fn narrow_ones_ignore_upper_halves() {
        let high = 0xdead_beef << 32;
        let flag = |op, a: u64, b: u64| {
            let plain = eval(op, [a, b, 0, 0]);
            assert_eq!(eval(op, [a | high, b | high, 0, 0]), plain, "{op:?}");
            plain
        };
        assert_eq!(flag(Op::I32AddOverflowS, 0x7fff_ffff, 1), [0x8000_0000, 1]);
        assert_eq!(flag(Op::I32AddOverflowU, 0x7fff_ffff, 1), [0x8000_0000, 0]);
        assert_eq!(flag(Op::I32SubOverflowS, 0x8000_0000, 1), [0x7fff_ffff, 1]);
        assert_eq!(flag(Op::I32SubOverflowU, 0, 1), [0xffff_ffff, 1]);
        assert_eq!(flag(Op::I32MulOverflowS, 0x8000_0000, 0xffff_ffff), [0x8000_0000, 1]);
        assert_eq!(flag(Op::I32MulOverflowU, 0x1_0000, 0x1_0000), [0, 1]);
        assert_eq!(flag(Op::I32MulOverflowU, 0x1_0000, 0xffff), [0xffff_0000, 0]);
    }
}
