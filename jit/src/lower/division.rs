//! Division of 32-bit integers by a constant, as a multiplication with its reciprocal.
//!
//! Cranelift does so as well, with the upper half of a 32-bit product. A 64-bit product has a shorter chain of dependent
//! instructions: the factor may have 32 bits without a correction, and the sign of the product is that of the quotient.
//! The method: Warren, "Hacker's Delight", 2nd edition, chapter 10; Granlund and Montgomery, "Division by
//! Invariant Integers using Multiplication", 1994, section 4.

use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{self, InstBuilder};
use slotvm_bytecode::Op;

use super::Lowering;

/// A number by which to multiply, and by how much to shift the product, to divide by another.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Reciprocal {
    factor: u64,
    shift: u32,
}

impl Reciprocal {
    /// The reciprocal of a divisor that is no power of two, for dividends of at most 2 to the power of `dividend_log2`. The
    /// product with a dividend has at most 32 bits more than that. None if the factor would have more than 32 bits.
    fn of(divisor: u32, dividend_log2: u32) -> Option<Reciprocal> {
        let divisor = u64::from(divisor);
        (dividend_log2..64).find_map(|shift| {
            // The least multiple of the divisor above 2 to the power of `shift` is not so far above that a dividend gets a
            // quotient that is too large.
            let power = 1_u64 << shift;
            let excess = divisor - power % divisor;
            let factor = power / divisor + 1;
            let is_right = excess <= 1 << (shift - dividend_log2);
            (is_right && factor <= 1 << 32).then_some(Reciprocal { factor, shift })
        })
    }
}

impl Lowering<'_, '_> {
    /// The quotient or remainder of 32-bit integers, if the divisor is a constant for which this is faster.
    pub(super) fn divide_by_constant(
        &mut self,
        op: Op,
        a: ir::Value,
        b: ir::Value,
    ) -> Option<ir::Value> {
        let (is_signed, is_rest) = match op {
            Op::I32DivS => (true, false),
            Op::I32RemS => (true, true),
            Op::I32DivU => (false, false),
            Op::I32RemU => (false, true),
            _ => return None,
        };
        let divisor = self.constant_bits(b)? as u32;
        // Shifts divide by powers of two. Negative divisors are rare.
        if !self.optimises || divisor <= 2 || divisor.is_power_of_two() {
            return None;
        }
        let quotient = match is_signed {
            true if divisor > i32::MAX as u32 => return None,
            true => self.signed_quotient(a, Reciprocal::of(divisor, 31)?),
            false => self.unsigned_quotient(a, Reciprocal::of(divisor, 32)?),
        };
        if !is_rest {
            return Some(quotient);
        }
        let multiple = self.builder.ins().imul(quotient, b);
        Some(self.builder.ins().isub(a, multiple))
    }

    /// The quotient, rounded towards zero: one more than the floor of the product if that is negative.
    fn signed_quotient(&mut self, a: ir::Value, by: Reciprocal) -> ir::Value {
        let wide = self.builder.ins().sextend(I64, a);
        let factor = self.int64(by.factor as i64);
        let (shift, sign) = (self.int64(by.shift.into()), self.int64(63));
        let product = self.builder.ins().imul(wide, factor);
        let floor = self.builder.ins().sshr(product, shift);
        let is_negative = self.builder.ins().ushr(product, sign);
        let quotient = self.builder.ins().iadd(floor, is_negative);
        self.builder.ins().ireduce(I32, quotient)
    }

    fn unsigned_quotient(&mut self, a: ir::Value, by: Reciprocal) -> ir::Value {
        let wide = self.extended(a);
        let (factor, shift) = (self.int64(by.factor as i64), self.int64(by.shift.into()));
        let product = self.builder.ins().imul(wide, factor);
        let quotient = self.builder.ins().ushr(product, shift);
        self.builder.ins().ireduce(I32, quotient)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Divisors: small ones, those around powers of two, and others of any size.
    fn divisors() -> impl Iterator<Item = u32> {
        let powers = (1..32).flat_map(|log2| {
            let power = 1_u32 << log2;
            [power.wrapping_sub(1), power + 1, power.wrapping_add(power / 2), power + power / 3]
        });
        let others = (1..2_000_u32).map(|i| i.wrapping_mul(0x9e37_79b9) >> (i % 30));
        let all = (3..3_000).chain(powers).chain(others).chain([u32::MAX, i32::MAX as u32]);
        all.filter(|&divisor| divisor > 2 && !divisor.is_power_of_two())
    }

    /// Dividends where the quotient changes, and the largest ones.
    fn dividends(divisor: u32) -> impl Iterator<Item = u32> {
        let n_multiples = u32::MAX / divisor;
        let multiples =
            [0, 1, 2, n_multiples / 2, n_multiples / 2 + 1, n_multiples - 1, n_multiples];
        let multiples = multiples.map(|n| n.wrapping_mul(divisor));
        let ends = [0, i32::MAX as u32, i32::MIN as u32, u32::MAX];
        let all = multiples.into_iter().chain(multiples.map(u32::wrapping_neg)).chain(ends);
        all.flat_map(|n| [n.wrapping_sub(1), n, n.wrapping_add(1)])
    }

    #[test]
    fn unsigned_quotients_are_right_or_refused() {
        let (mut n_found, mut n_refused) = (0, 0);
        for divisor in divisors() {
            let Some(Reciprocal { factor, shift }) = Reciprocal::of(divisor, 32) else {
                n_refused += 1;
                continue;
            };
            n_found += 1;
            for n in dividends(divisor) {
                let product = u64::from(n).checked_mul(factor).expect("it has 64 bits");
                assert_eq!((product >> shift) as u32, n / divisor, "{n} / {divisor}");
            }
        }
        assert!(n_found > 1_000 && n_refused > 100, "{n_found} {n_refused}");
        assert_eq!(Reciprocal::of(7, 32), None);
    }

    #[test]
    fn signed_quotients_are_right() {
        for divisor in divisors().filter_map(|divisor| i32::try_from(divisor).ok()) {
            let by = Reciprocal::of(divisor as u32, 31);
            let Reciprocal { factor, shift } = by.unwrap_or_else(|| panic!("{divisor}"));
            for n in dividends(divisor as u32) {
                let n = n as i32;
                let product = i64::from(n).checked_mul(factor as i64).expect("it has 64 bits");
                let quotient = (product >> shift) + (product as u64 >> 63) as i64;
                assert_eq!(quotient as i32, n / divisor, "{n} / {divisor}");
            }
        }
    }
}
