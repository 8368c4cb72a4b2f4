//! Vectors of the specification: 128 bits that are split into lanes, and joined again.
//!
//! Lanes are lists, lane 0 first. The other files compute on lanes; this one pairs them.

use super::Kind;
use super::conversions::{extend_s, extend_u};
use super::integers::{bit, from_bits, iadd, imul, modulo, signed};

/// The lanes of a vector, each of N bits.
pub(in crate::ir::eval) fn lanes(n: u32, vector: u128) -> Vec<u128> {
    (0..128 / n).map(|i| modulo(n, vector >> (i * n))).collect()
}

/// The vector of these lanes; missing lanes are zero.
pub(super) fn join(n: u32, lanes: impl IntoIterator<Item = u128>) -> u128 {
    lanes.into_iter().zip(0..128 / n).map(|(lane, i)| lane << (i * n)).sum()
}

/// An operation on each lane.
pub(super) fn map<K: Kind>(kind: K, op: fn(K, u128) -> u128, a: u128) -> u128 {
    let n = kind.bits();
    join(n, lanes(n, a).into_iter().map(|x| op(kind, x)))
}

/// An operation on each pair of lanes of the same number.
pub(super) fn zip<K: Kind>(kind: K, op: fn(K, u128, u128) -> u128, a: u128, b: u128) -> u128 {
    let n = kind.bits();
    join(n, lanes(n, a).into_iter().zip(lanes(n, b)).map(|(x, y)| op(kind, x, y)))
}

/// All ones where a comparison is true, else zero.
pub(super) fn compare<K: Kind>(kind: K, op: fn(K, u128, u128) -> bool, a: u128, b: u128) -> u128 {
    let n = kind.bits();
    let ones = from_bits(n, |_| true);
    let pairs = lanes(n, a).into_iter().zip(lanes(n, b));
    join(n, pairs.map(|(x, y)| if op(kind, x, y) { ones } else { 0 }))
}

/// Each lane shifted by the same count.
pub(super) fn shift(n: u32, op: fn(u32, u128, u128) -> u128, a: u128, count: u128) -> u128 {
    join(n, lanes(n, a).into_iter().map(|x| op(n, x, count)))
}

/// The lanes converted to another kind, as many as both vectors have room for. Higher lanes are zero.
pub(super) fn convert<F: Kind, T: Kind>(
    from: F,
    to: T,
    op: fn(F, T, u128) -> u128,
    a: u128,
) -> u128 {
    join(to.bits(), lanes(from.bits(), a).into_iter().map(|x| op(from, to, x)))
}

pub(in crate::ir::eval) fn splat(n: u32, a: u128) -> u128 {
    join(n, (0..128 / n).map(|_| modulo(n, a)))
}

/// The vector with another number in a lane.
pub(in crate::ir::eval) fn replace(n: u32, a: u128, lane: u128, number: u128) -> u128 {
    let mut lanes = lanes(n, a);
    lanes[lane as usize] = modulo(n, number);
    join(n, lanes)
}

/// The lanes of `a` and then of `b`, in the order of the indices.
pub(super) fn shuffle(indices: u128, a: u128, b: u128) -> u128 {
    let both = [lanes(8, a), lanes(8, b)].concat();
    join(8, lanes(8, indices).into_iter().map(|i| both[i as usize]))
}

/// The lanes of `a` in the order of the indices; zero where there is no such lane.
pub(super) fn swizzle(a: u128, indices: u128) -> u128 {
    let lanes_of_a = lanes(8, a);
    let lane = |i: u128| lanes_of_a.get(i as usize).copied().unwrap_or(0);
    join(8, lanes(8, indices).into_iter().map(lane))
}

/// Whether no lane is zero.
pub(super) fn all_true(n: u32, a: u128) -> u128 {
    u128::from(!lanes(n, a).contains(&0))
}

/// The sign bits of all lanes.
pub(super) fn bitmask(n: u32, a: u128) -> u128 {
    let lanes = lanes(n, a);
    from_bits(128 / n, |i| bit(lanes[i as usize], n - 1))
}

/// A half of the lanes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(in crate::ir::eval) enum Half {
    Low,
    High,
}

/// Whether lanes are extended as signed numbers.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(in crate::ir::eval) enum Sign {
    Signed,
    Unsigned,
}

/// All lanes, with twice their width.
fn extended(n: u32, sign: Sign, a: u128) -> Vec<u128> {
    let extend = match sign {
        Sign::Signed => extend_s,
        Sign::Unsigned => extend_u,
    };
    lanes(n, a).into_iter().map(|x| extend(n, 2 * n, x)).collect()
}

/// The lanes of a half, with twice their width.
fn half_extended(n: u32, half: Half, sign: Sign, a: u128) -> Vec<u128> {
    let mut low = extended(n, sign, a);
    let high = low.split_off(low.len() / 2);
    match half {
        Half::Low => low,
        Half::High => high,
    }
}

pub(in crate::ir::eval) fn extend(n: u32, half: Half, sign: Sign, a: u128) -> u128 {
    join(2 * n, half_extended(n, half, sign, a))
}

/// The products of the lanes of a half, with twice their width.
pub(super) fn extmul(n: u32, half: Half, sign: Sign, a: u128, b: u128) -> u128 {
    let a = half_extended(n, half, sign, a);
    let b = half_extended(n, half, sign, b);
    join(2 * n, a.into_iter().zip(b).map(|(x, y)| imul(2 * n, x, y)))
}

/// The sums of neighbours, with twice their width.
fn neighbour_sums(n: u32, lanes: &[u128]) -> u128 {
    join(2 * n, lanes.chunks(2).map(|pair| iadd(2 * n, pair[0], pair[1])))
}

pub(super) fn extadd_pairwise(n: u32, sign: Sign, a: u128) -> u128 {
    neighbour_sums(n, &extended(n, sign, a))
}

/// The sums of the products of neighbours, with twice their width.
pub(super) fn dot_s(n: u32, a: u128, b: u128) -> u128 {
    let a = extended(n, Sign::Signed, a).into_iter();
    let products = a.zip(extended(n, Sign::Signed, b)).map(|(x, y)| imul(2 * n, x, y));
    neighbour_sums(n, &products.collect::<Vec<_>>())
}

/// The lanes of `a` and then of `b`, signed, with half their width; `saturate` makes them fit.
pub(super) fn narrow(n: u32, saturate: fn(u32, i128) -> u128, a: u128, b: u128) -> u128 {
    let both = [lanes(n, a), lanes(n, b)].concat();
    join(n / 2, both.into_iter().map(|x| saturate(n / 2, signed(n, x))))
}
