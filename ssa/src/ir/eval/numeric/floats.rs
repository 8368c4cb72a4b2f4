//! Float operations of the specification, for both formats.
//!
//! Each function has the specification's name (`fadd`, `fnearest`, …), takes the format first, and works on bits. No
//! float of Rust occurs: arithmetic is computed exactly on integers, or to more digits than any format has, and
//! [`Format::round`] rounds once. Comparisons and sign operations read the bits as sign and magnitude.
//!
//! Numbers wider than 128 bits are cut off by *rounding to odd*: the last digit that is kept becomes 1 if
//! anything below is not zero. With two digits more than the format, rounding that to nearest gives the same
//! as rounding the exact value (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums: proved
//! algorithms using rounding to odd", IEEE Transactions on Computers 57, 2008, section 3).

use std::cmp::Ordering;

use super::format::{Float, Format, Rest, length, split};

/// The part of a magnitude above the lowest `k` bits, rounded to odd.
fn shifted_to_odd(magnitude: u128, k: u32) -> u128 {
    let (integer, rest) = split(magnitude, k);
    if rest == Rest::Zero { integer } else { integer | 1 }
}

pub(super) fn fadd(format: Format, x: u128, y: u128) -> u128 {
    use Float::{Finite, Infinite, Nan};
    match (format.decode(x), format.decode(y)) {
        (Nan, _) | (_, Nan) => format.nan(&[x, y]),
        (Infinite { negative }, Infinite { negative: other }) if negative != other => {
            format.nan(&[x, y])
        }
        (Infinite { .. }, _) => x,
        (_, Infinite { .. }) => y,
        (Finite(a), Finite(b)) => {
            let (high, low) = if a.exponent >= b.exponent { (a, b) } else { (b, a) };
            let gap = high.exponent.abs_diff(low.exponent);
            // 64 digits more than `high` has; whatever is below them cannot cancel it.
            let lift = gap.min(64);
            let high_part = high.magnitude << lift;
            let low_part = shifted_to_odd(low.magnitude, gap - lift);
            let term = |negative, part: u128| if negative { -(part as i128) } else { part as i128 };
            let sum = term(high.negative, high_part) + term(low.negative, low_part);
            // An exact zero is positive unless both operands are negative.
            let negative = match sum.cmp(&0) {
                Ordering::Less => true,
                Ordering::Equal => a.negative && b.negative,
                Ordering::Greater => false,
            };
            format.round(negative, sum.unsigned_abs(), high.exponent - lift as i32)
        }
    }
}

pub(super) fn fsub(format: Format, x: u128, y: u128) -> u128 {
    if format.is_nan(x) || format.is_nan(y) {
        return format.nan(&[x, y]);
    }
    fadd(format, x, fneg(format, y))
}

pub(super) fn fmul(format: Format, x: u128, y: u128) -> u128 {
    use Float::{Finite, Infinite, Nan};
    let negative = format.is_negative(x) != format.is_negative(y);
    match (format.decode(x), format.decode(y)) {
        (Nan, _) | (_, Nan) => format.nan(&[x, y]),
        (Infinite { .. }, Finite(zero)) | (Finite(zero), Infinite { .. }) if zero.is_zero() => {
            format.nan(&[x, y])
        }
        (Infinite { .. }, _) | (_, Infinite { .. }) => format.infinity(negative),
        (Finite(a), Finite(b)) => {
            format.round(negative, a.magnitude * b.magnitude, a.exponent + b.exponent)
        }
    }
}

pub(super) fn fdiv(format: Format, x: u128, y: u128) -> u128 {
    use Float::{Finite, Infinite, Nan};
    let negative = format.is_negative(x) != format.is_negative(y);
    match (format.decode(x), format.decode(y)) {
        (Nan, _) | (_, Nan) | (Infinite { .. }, Infinite { .. }) => format.nan(&[x, y]),
        (Infinite { .. }, Finite(_)) => format.infinity(negative),
        (Finite(_), Infinite { .. }) => format.round(negative, 0, 0),
        (Finite(a), Finite(b)) if a.is_zero() && b.is_zero() => format.nan(&[x, y]),
        (Finite(a), Finite(_)) if a.is_zero() => format.round(negative, 0, 0),
        (Finite(_), Finite(b)) if b.is_zero() => format.infinity(negative),
        (Finite(a), Finite(b)) => {
            // A dividend of 126 digits and a divisor of 53 at most: the quotient has at least 73.
            let lift = 126 - length(a.magnitude);
            let dividend = a.magnitude << lift;
            let quotient = dividend / b.magnitude;
            let is_exact = quotient * b.magnitude == dividend;
            let to_odd = if is_exact { quotient } else { quotient | 1 };
            format.round(negative, to_odd, a.exponent - lift as i32 - b.exponent)
        }
    }
}

pub(super) fn fsqrt(format: Format, x: u128) -> u128 {
    match format.decode(x) {
        Float::Nan => format.nan(&[x]),
        Float::Finite(zero) if zero.is_zero() => x,
        _ if format.is_negative(x) => format.nan(&[x]),
        Float::Infinite { .. } => x,
        Float::Finite(a) => {
            // The exponent becomes even, and the root has at least 62 digits.
            let mut lift = 126 - length(a.magnitude);
            if (a.exponent - lift as i32) % 2 != 0 {
                lift -= 1;
            }
            let square = a.magnitude << lift;
            let root = integer_root(square);
            let to_odd = if root * root == square { root } else { root | 1 };
            format.round(false, to_odd, (a.exponent - lift as i32) / 2)
        }
    }
}

/// The greatest integer whose square is not above the number, digit by digit.
fn integer_root(number: u128) -> u128 {
    (0..64).rev().fold(0, |root: u128, i| {
        let longer = root | 1 << i;
        if longer * longer <= number { longer } else { root }
    })
}

/// Rounds to an integer, which `choose` computes from the sign, the integer part of the magnitude, and the
/// rest. The sign stays, of zeros too.
fn to_integral(format: Format, x: u128, choose: impl Fn(bool, u128, Rest) -> u128) -> u128 {
    match format.decode(x) {
        Float::Nan => format.nan(&[x]),
        Float::Infinite { .. } => x,
        Float::Finite(a) if a.exponent >= 0 => x,
        Float::Finite(a) => {
            let (integer, rest) = split(a.magnitude, a.exponent.unsigned_abs());
            format.round(a.negative, choose(a.negative, integer, rest), 0)
        }
    }
}

pub(super) fn fceil(format: Format, x: u128) -> u128 {
    to_integral(
        format,
        x,
        |negative, integer, rest| {
            if !negative && rest != Rest::Zero { integer + 1 } else { integer }
        },
    )
}

pub(super) fn ffloor(format: Format, x: u128) -> u128 {
    to_integral(
        format,
        x,
        |negative, integer, rest| {
            if negative && rest != Rest::Zero { integer + 1 } else { integer }
        },
    )
}

pub(super) fn ftrunc(format: Format, x: u128) -> u128 {
    to_integral(format, x, |_, integer, _| integer)
}

pub(super) fn fnearest(format: Format, x: u128) -> u128 {
    to_integral(format, x, |_, integer, rest| rest.nearest(integer))
}

/// The number without its sign, which is the highest bit.
fn magnitude(format: Format, x: u128) -> u128 {
    x % format.sign()
}

/// The sign operations keep all other bits, of NaNs too.
pub(super) fn fabs(format: Format, x: u128) -> u128 {
    magnitude(format, x)
}

pub(super) fn fneg(format: Format, x: u128) -> u128 {
    if format.is_negative(x) { x - format.sign() } else { x + format.sign() }
}

pub(super) fn fcopysign(format: Format, x: u128, y: u128) -> u128 {
    magnitude(format, x) + if format.is_negative(y) { format.sign() } else { 0 }
}

/// An integer that is ordered as the number is, unless it is NaN: both zeros are 0.
fn order(format: Format, x: u128) -> i128 {
    let magnitude = magnitude(format, x) as i128;
    if format.is_negative(x) { -magnitude } else { magnitude }
}

/// Compares two numbers; `None` if either is NaN.
fn compare(format: Format, x: u128, y: u128) -> Option<Ordering> {
    let is_ordered = !format.is_nan(x) && !format.is_nan(y);
    is_ordered.then(|| order(format, x).cmp(&order(format, y)))
}

pub(super) fn feq(format: Format, x: u128, y: u128) -> bool {
    compare(format, x, y) == Some(Ordering::Equal)
}

/// The only comparison that is true of NaN.
pub(super) fn fne(format: Format, x: u128, y: u128) -> bool {
    !feq(format, x, y)
}

pub(super) fn flt(format: Format, x: u128, y: u128) -> bool {
    compare(format, x, y) == Some(Ordering::Less)
}

pub(super) fn fgt(format: Format, x: u128, y: u128) -> bool {
    compare(format, x, y) == Some(Ordering::Greater)
}

pub(super) fn fle(format: Format, x: u128, y: u128) -> bool {
    flt(format, x, y) || feq(format, x, y)
}

pub(super) fn fge(format: Format, x: u128, y: u128) -> bool {
    fgt(format, x, y) || feq(format, x, y)
}

/// Orders -0 below +0, which comparisons do not.
fn is_below(format: Format, x: u128, y: u128) -> bool {
    let key = |x| (order(format, x), !format.is_negative(x));
    key(x) < key(y)
}

pub(super) fn fmin(format: Format, x: u128, y: u128) -> u128 {
    if format.is_nan(x) || format.is_nan(y) {
        return format.nan(&[x, y]);
    }
    if is_below(format, x, y) { x } else { y }
}

pub(super) fn fmax(format: Format, x: u128, y: u128) -> u128 {
    if format.is_nan(x) || format.is_nan(y) {
        return format.nan(&[x, y]);
    }
    if is_below(format, x, y) { y } else { x }
}

/// A choice by a comparison alone, which keeps all bits of the chosen operand.
pub(super) fn fpmin(format: Format, x: u128, y: u128) -> u128 {
    if flt(format, y, x) { y } else { x }
}

pub(super) fn fpmax(format: Format, x: u128, y: u128) -> u128 {
    if flt(format, x, y) { y } else { x }
}
