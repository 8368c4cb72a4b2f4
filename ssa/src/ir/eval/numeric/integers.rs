//! Integer operations of the specification, for any width up to 64 bits.
//!
//! Each function has the specification's name (`iadd`, `idiv_s`, …) and takes the width in bits first. An integer is
//! its unsigned interpretation, as in the specification; [`signed`] is the other one. Arithmetic is exact in 128 bits
//! and reduced modulo 2^N at the end. Counts, shifts and rotations are defined bit by bit.
//!
//! Relies on operands below 2^N, and guarantees results below 2^N.

use slotvm_bytecode::TrapCode;

/// The number modulo 2^N.
pub(super) fn modulo(n: u32, number: u128) -> u128 {
    if n == 128 { number } else { number % (1 << n) }
}

/// The signed interpretation: numbers of the upper half lie 2^N lower.
pub(super) fn signed(n: u32, number: u128) -> i128 {
    let number = number as i128;
    if number < 1 << (n - 1) { number } else { number - (1 << n) }
}

/// The number whose signed interpretation is this one, modulo 2^N.
fn from_signed(n: u32, number: i128) -> u128 {
    number.rem_euclid(1 << n) as u128
}

/// Bit `i` of a number.
pub(super) fn bit(number: u128, i: u32) -> bool {
    number >> i & 1 == 1
}

/// The number with these bits.
pub(super) fn from_bits(n: u32, bit: impl Fn(u32) -> bool) -> u128 {
    (0..n).filter(|&i| bit(i)).map(|i| 1 << i).sum()
}

pub(super) fn iadd(n: u32, a: u128, b: u128) -> u128 {
    modulo(n, a + b)
}

pub(super) fn isub(n: u32, a: u128, b: u128) -> u128 {
    modulo(n, a + (1 << n) - b)
}

pub(super) fn imul(n: u32, a: u128, b: u128) -> u128 {
    modulo(n, a * b)
}

pub(super) fn ineg(n: u32, a: u128) -> u128 {
    isub(n, 0, a)
}

/// The absolute value of the least number is itself.
pub(super) fn iabs(n: u32, a: u128) -> u128 {
    from_signed(n, signed(n, a).abs())
}

/// The divisor, unless it is zero.
fn nonzero(b: u128) -> Result<u128, TrapCode> {
    if b == 0 { Err(TrapCode::IntegerDivisionByZero) } else { Ok(b) }
}

pub(super) fn idiv_u(_: u32, a: u128, b: u128) -> Result<u128, TrapCode> {
    Ok(a / nonzero(b)?)
}

pub(super) fn idiv_s(n: u32, a: u128, b: u128) -> Result<u128, TrapCode> {
    let quotient = signed(n, a) / signed(n, nonzero(b)?);
    let fits = quotient < 1 << (n - 1);
    if fits { Ok(from_signed(n, quotient)) } else { Err(TrapCode::IntegerOverflow) }
}

pub(super) fn irem_u(_: u32, a: u128, b: u128) -> Result<u128, TrapCode> {
    Ok(a % nonzero(b)?)
}

/// The remainder has the sign of the dividend. It exists even if the quotient does not fit.
pub(super) fn irem_s(n: u32, a: u128, b: u128) -> Result<u128, TrapCode> {
    Ok(from_signed(n, signed(n, a) % signed(n, nonzero(b)?)))
}

pub(super) fn inot(n: u32, a: u128) -> u128 {
    from_bits(n, |i| !bit(a, i))
}

pub(super) fn iand(n: u32, a: u128, b: u128) -> u128 {
    from_bits(n, |i| bit(a, i) && bit(b, i))
}

pub(super) fn iandnot(n: u32, a: u128, b: u128) -> u128 {
    from_bits(n, |i| bit(a, i) && !bit(b, i))
}

pub(super) fn ior(n: u32, a: u128, b: u128) -> u128 {
    from_bits(n, |i| bit(a, i) || bit(b, i))
}

pub(super) fn ixor(n: u32, a: u128, b: u128) -> u128 {
    from_bits(n, |i| bit(a, i) != bit(b, i))
}

/// Bits of `a` where `mask` has ones, of `b` elsewhere.
pub(super) fn ibitselect(n: u32, a: u128, b: u128, mask: u128) -> u128 {
    from_bits(n, |i| bit(if bit(mask, i) { a } else { b }, i))
}

/// A shift or rotation count, which is taken modulo the width.
fn count(n: u32, count: u128) -> u32 {
    (count % u128::from(n)) as u32
}

pub(super) fn ishl(n: u32, a: u128, k: u128) -> u128 {
    let k = count(n, k);
    from_bits(n, |i| i >= k && bit(a, i - k))
}

pub(super) fn ishr_u(n: u32, a: u128, k: u128) -> u128 {
    let k = count(n, k);
    from_bits(n, |i| i + k < n && bit(a, i + k))
}

/// Copies of the sign bit are shifted in from above.
pub(super) fn ishr_s(n: u32, a: u128, k: u128) -> u128 {
    let k = count(n, k);
    from_bits(n, |i| bit(a, (i + k).min(n - 1)))
}

pub(super) fn irotl(n: u32, a: u128, k: u128) -> u128 {
    let k = count(n, k);
    from_bits(n, |i| bit(a, (i + n - k) % n))
}

pub(super) fn irotr(n: u32, a: u128, k: u128) -> u128 {
    let k = count(n, k);
    from_bits(n, |i| bit(a, (i + k) % n))
}

pub(super) fn iclz(n: u32, a: u128) -> u128 {
    (0..n).rev().take_while(|&i| !bit(a, i)).count() as u128
}

pub(super) fn ictz(n: u32, a: u128) -> u128 {
    (0..n).take_while(|&i| !bit(a, i)).count() as u128
}

pub(super) fn ipopcnt(n: u32, a: u128) -> u128 {
    (0..n).filter(|&i| bit(a, i)).count() as u128
}

pub(super) fn ieqz(_: u32, a: u128) -> bool {
    a == 0
}

pub(super) fn ieq(_: u32, a: u128, b: u128) -> bool {
    a == b
}

pub(super) fn ine(_: u32, a: u128, b: u128) -> bool {
    a != b
}

pub(super) fn ilt_u(_: u32, a: u128, b: u128) -> bool {
    a < b
}

pub(super) fn ilt_s(n: u32, a: u128, b: u128) -> bool {
    signed(n, a) < signed(n, b)
}

pub(super) fn igt_u(_: u32, a: u128, b: u128) -> bool {
    a > b
}

pub(super) fn igt_s(n: u32, a: u128, b: u128) -> bool {
    signed(n, a) > signed(n, b)
}

pub(super) fn ile_u(_: u32, a: u128, b: u128) -> bool {
    a <= b
}

pub(super) fn ile_s(n: u32, a: u128, b: u128) -> bool {
    signed(n, a) <= signed(n, b)
}

pub(super) fn ige_u(_: u32, a: u128, b: u128) -> bool {
    a >= b
}

pub(super) fn ige_s(n: u32, a: u128, b: u128) -> bool {
    signed(n, a) >= signed(n, b)
}

/// The first operand if the comparison is true of both, otherwise the second.
fn choose(n: u32, is_first: fn(u32, u128, u128) -> bool, a: u128, b: u128) -> u128 {
    if is_first(n, a, b) { a } else { b }
}

pub(super) fn imin_u(n: u32, a: u128, b: u128) -> u128 {
    choose(n, ilt_u, a, b)
}

pub(super) fn imin_s(n: u32, a: u128, b: u128) -> u128 {
    choose(n, ilt_s, a, b)
}

pub(super) fn imax_u(n: u32, a: u128, b: u128) -> u128 {
    choose(n, igt_u, a, b)
}

pub(super) fn imax_s(n: u32, a: u128, b: u128) -> u128 {
    choose(n, igt_s, a, b)
}

/// The unsigned integer of N bits that is nearest to a number.
pub(super) fn sat_u(n: u32, number: i128) -> u128 {
    let max = (1 << n) - 1;
    if number < 0 {
        0
    } else if number > max {
        max as u128
    } else {
        number as u128
    }
}

/// The signed integer of N bits that is nearest to a number.
pub(super) fn sat_s(n: u32, number: i128) -> u128 {
    let half = 1 << (n - 1);
    if number < -half {
        from_signed(n, -half)
    } else if number >= half {
        from_signed(n, half - 1)
    } else {
        from_signed(n, number)
    }
}

pub(super) fn iadd_sat_u(n: u32, a: u128, b: u128) -> u128 {
    sat_u(n, a as i128 + b as i128)
}

pub(super) fn iadd_sat_s(n: u32, a: u128, b: u128) -> u128 {
    sat_s(n, signed(n, a) + signed(n, b))
}

pub(super) fn isub_sat_u(n: u32, a: u128, b: u128) -> u128 {
    sat_u(n, a as i128 - b as i128)
}

pub(super) fn isub_sat_s(n: u32, a: u128, b: u128) -> u128 {
    sat_s(n, signed(n, a) - signed(n, b))
}

/// The average, rounded up.
pub(super) fn iavgr_u(_: u32, a: u128, b: u128) -> u128 {
    let sum = a + b;
    sum / 2 + sum % 2
}

/// The product of fixed-point numbers with 15 fractional bits: half a unit is added, and what lies below a unit
/// dropped.
pub(super) fn iq15mulr_sat_s(n: u32, a: u128, b: u128) -> u128 {
    let product = signed(n, a) * signed(n, b);
    sat_s(n, (product + (1 << 14)).div_euclid(1 << 15))
}
