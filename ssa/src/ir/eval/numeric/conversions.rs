//! Conversions of the specification: functions of the source type, the target type and the bits.
//!
//! Integers are given by their width and floats by their format. Floats become integers by comparing exact integers,
//! and integers become floats by [`Format::round`].

use slotvm_bytecode::TrapCode;

use super::format::{Float, Format, split};
use super::integers::{sat_s, sat_u, signed};

/// The signed number in another width.
pub(in crate::ir::eval) fn extend_s(from: u32, to: u32, a: u128) -> u128 {
    let number = signed(from, a);
    if number < 0 { ((1 << to) + number) as u128 } else { number as u128 }
}

/// The unsigned number in a greater width.
pub(super) fn extend_u(_from: u32, _to: u32, a: u128) -> u128 {
    a
}

/// The integer part of a float; `None` for NaN. Floats far outside 64 bits, infinities included, become any number
/// outside 64 bits.
fn integral(format: Format, x: u128) -> Option<i128> {
    const OUTSIDE_LOG2: i32 = 70;
    let (negative, magnitude) = match format.decode(x) {
        Float::Nan => return None,
        Float::Infinite { negative } => (negative, 1 << OUTSIDE_LOG2),
        Float::Finite(a) if a.exponent >= 0 => {
            // At most 53 digits and then 123. A greater exponent changes nothing: it is outside anyway.
            (a.negative, a.magnitude << a.exponent.min(OUTSIDE_LOG2))
        }
        Float::Finite(a) => (a.negative, split(a.magnitude, a.exponent.unsigned_abs()).0),
    };
    Some(if negative { -(magnitude as i128) } else { magnitude as i128 })
}

/// The integer part, if an integer type has it.
fn trunc(number: Option<i128>, is_inside: impl Fn(i128) -> bool) -> Result<i128, TrapCode> {
    let number = number.ok_or(TrapCode::BadConversionToInteger)?;
    if is_inside(number) { Ok(number) } else { Err(TrapCode::IntegerOverflow) }
}

pub(super) fn trunc_u(from: Format, to: u32, x: u128) -> Result<u128, TrapCode> {
    let number = trunc(integral(from, x), |number| (0..1 << to).contains(&number))?;
    Ok(sat_u(to, number))
}

pub(super) fn trunc_s(from: Format, to: u32, x: u128) -> Result<u128, TrapCode> {
    let half = 1 << (to - 1);
    let number = trunc(integral(from, x), |number| (-half..half).contains(&number))?;
    Ok(sat_s(to, number))
}

/// The nearest integer; 0 for NaN.
pub(super) fn trunc_sat_u(from: Format, to: u32, x: u128) -> u128 {
    integral(from, x).map_or(0, |number| sat_u(to, number))
}

/// The nearest integer; 0 for NaN.
pub(super) fn trunc_sat_s(from: Format, to: u32, x: u128) -> u128 {
    integral(from, x).map_or(0, |number| sat_s(to, number))
}

pub(super) fn convert_u(_from: u32, to: Format, a: u128) -> u128 {
    to.round(false, a, 0)
}

pub(super) fn convert_s(from: u32, to: Format, a: u128) -> u128 {
    let number = signed(from, a);
    to.round(number < 0, number.unsigned_abs(), 0)
}

/// The nearest float of the other format: `demote` and `promote`.
pub(super) fn refloat(from: Format, to: Format, x: u128) -> u128 {
    match from.decode(x) {
        Float::Nan => to.nan_of(from, x),
        Float::Infinite { negative } => to.infinity(negative),
        Float::Finite(a) => to.round(a.negative, a.magnitude, a.exponent),
    }
}
