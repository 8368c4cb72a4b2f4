//! Integer operations with two results, by other methods than [`slotvm_bytecode::pairs`]: sums of 128 bits bit by bit,
//! products from products of half words, and flags by the range of the exact result.

use slotvm_bytecode::Op;

use super::integers::{bit, modulo, signed};

/// The results of an instruction that has two, on its operands, the deepest one first; `None` for other opcodes. Only the
/// bits that an operand's type has matter.
///
/// # Panics
/// Panics if an operand does not exist.
pub(in crate::ir::eval) fn eval(op: Op, operands: &[u128]) -> Option<[u128; 2]> {
    use Op::*;
    let word = |i: usize| modulo(64, operands[i]);
    let wide = |i: usize| word(i) + (word(i + 1) << 64);
    let exact = |of: fn(u32, u128, u128) -> Exact, n: u32| {
        let exact = of(n, modulo(n, operands[0]), modulo(n, operands[1]));
        [exact.wrapped, exact.overflows.into()]
    };
    Some(match op {
        I64Add128 => words(sum(wide(0), wide(2), false)),
        // The opposite is the inverse and one.
        I64Sub128 => words(sum(wide(0), !wide(2), true)),
        I64MulWideS => words(product_s(word(0), word(1))),
        I64MulWideU => words(product_u(word(0), word(1))),
        I32AddOverflowS => exact(add_s, 32),
        I32AddOverflowU => exact(add_u, 32),
        I32SubOverflowS => exact(sub_s, 32),
        I32SubOverflowU => exact(sub_u, 32),
        I32MulOverflowS => exact(mul_s, 32),
        I32MulOverflowU => exact(mul_u, 32),
        I64AddOverflowS => exact(add_s, 64),
        I64AddOverflowU => exact(add_u, 64),
        I64SubOverflowS => exact(sub_s, 64),
        I64SubOverflowU => exact(sub_u, 64),
        I64MulOverflowS => exact(mul_s, 64),
        I64MulOverflowU => exact(mul_u, 64),
        _ => return None,
    })
}

fn words(number: u128) -> [u128; 2] {
    [modulo(64, number), number >> 64]
}

/// The sum of two numbers and a carry, without the carry out, by a full adder for each bit.
fn sum(a: u128, b: u128, mut carry: bool) -> u128 {
    let mut sum = 0;
    for i in 0..128 {
        let ones = [bit(a, i), bit(b, i), carry].into_iter().filter(|&one| one).count();
        sum |= (ones as u128 & 1) << i;
        carry = ones > 1;
    }
    sum
}

/// The product of two words, as on paper in digits of 32 bits.
fn product_u(a: u128, b: u128) -> u128 {
    let digits = |number: u128| [modulo(32, number), number >> 32];
    let mut product = 0;
    for (i, x) in digits(a).into_iter().enumerate() {
        for (j, y) in digits(b).into_iter().enumerate() {
            product = sum(product, (x * y) << (32 * (i + j)), false);
        }
    }
    product
}

/// A word of the upper half stands for a number that lies 2^64 lower, so the other word is subtracted from the high one.
fn product_s(a: u128, b: u128) -> u128 {
    let mut product = product_u(a, b);
    for (number, other) in [(a, b), (b, a)] {
        if bit(number, 63) {
            product = sum(product, !(other << 64), true);
        }
    }
    product
}

/// A result modulo 2^N, and whether the exact one differs from what it stands for.
struct Exact {
    wrapped: u128,
    overflows: bool,
}

impl Exact {
    fn signed(n: u32, exact: i128) -> Exact {
        let wrapped = exact.rem_euclid(1 << n) as u128;
        let range = -(1 << (n - 1))..1 << (n - 1);
        Exact { wrapped, overflows: !range.contains(&exact) }
    }

    /// Of a number that is not negative.
    fn unsigned(n: u32, exact: u128) -> Exact {
        Exact { wrapped: modulo(n, exact), overflows: exact >= 1 << n }
    }
}

fn add_s(n: u32, a: u128, b: u128) -> Exact {
    Exact::signed(n, signed(n, a) + signed(n, b))
}

fn add_u(n: u32, a: u128, b: u128) -> Exact {
    Exact::unsigned(n, a + b)
}

fn sub_s(n: u32, a: u128, b: u128) -> Exact {
    Exact::signed(n, signed(n, a) - signed(n, b))
}

fn sub_u(n: u32, a: u128, b: u128) -> Exact {
    Exact { wrapped: modulo(n, a + (1 << n) - b), overflows: a < b }
}

fn mul_s(n: u32, a: u128, b: u128) -> Exact {
    Exact::signed(n, signed(n, a) * signed(n, b))
}

fn mul_u(n: u32, a: u128, b: u128) -> Exact {
    Exact::unsigned(n, a * b)
}
