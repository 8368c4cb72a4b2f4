//! The evaluator's numerics beside those of the interpreter, on all opcodes; and cases from the specification by hand.

mod by_hand;

use slotvm_bytecode::op::ImmKind;
use slotvm_bytecode::{Effect, Op, TrapCode, ValType, numeric, pairs, vector};

use super::{Nans, eval, eval_pair};
use crate::tools::testing::Rng;

/// Whether an instruction computes one number from numbers alone, by the opcode table.
fn computes(op: Op) -> bool {
    n_computed(op) == 1
}

/// How many numbers an instruction computes from numbers alone.
fn n_computed(op: Op) -> usize {
    let signature = op.signature().filter(|signature| !signature.params.is_empty());
    match op.effect() {
        // References keep their bits.
        _ if matches!(op, Op::RefReinterpretI64 | Op::I64ReinterpretRef) => 0,
        Effect::Pure | Effect::Trap => signature.map_or(0, |signature| signature.results.len()),
        _ => 0,
    }
}

fn params(op: Op) -> &'static [ValType] {
    op.signature().expect("numeric instructions have fixed signatures").params
}

#[test]
fn exactly_the_numeric_opcodes_evaluate() {
    let mut n = 0;
    for &op in Op::ALL {
        let result = eval(op, 0, &[3, 2, 1], Nans::Propagated);
        assert_eq!(matches!(result, Ok(Some(_))), computes(op), "{op:?}");
        assert_eq!(
            computes(op),
            numeric::is_numeric(op) || vector::is_vector_numeric(op),
            "{op:?}: the other definition has the same opcodes"
        );
        n += u32::from(computes(op));
    }
    assert_eq!(n, 136 + 213);
    for &op in Op::ALL {
        let has_two = n_computed(op) == 2;
        assert_eq!(eval_pair(op, &[3, 2, 1, 0]).is_some(), has_two, "{op:?}");
        assert_eq!(pairs::is_pair(op), has_two, "{op:?}: so has the other definition");
    }
}

// --- Edge values ------------------------------------------------------------------------------------

/// Integers around powers of two, and some that lie between two floats.
fn integer_edges(n_bits: u32) -> Vec<u128> {
    let powers = [0, 1, 3, 5, 6, 7, 8, 15, 16, 24, 31, 32, 33, 53, 62, 63];
    let near_powers =
        powers.iter().filter(|&&k| k < n_bits).flat_map(|k| [(1 << k) - 1, 1 << k, (1 << k) + 1]);
    let ties = [0x0100_0003, 0xffff_ff7f, 0xffff_ff80, 0x7fff_ffbf];
    let wide_ties = [
        0x8000_0080_0000_0000,
        0x8000_0080_0000_0001,
        0x8000_0180_0000_0000,
        0x0000_8000_0080_0001,
        0xffff_ff7f_ffff_ffff,
        0xffff_ff80_0000_0000,
        0x8000_0000_0000_0400,
        0x8000_0000_0000_0401,
        0xffff_ffff_ffff_fbff,
        0xffff_ffff_ffff_fc00,
        0x0020_0000_0000_0003,
    ];
    let numbers = near_powers.chain(ties).chain(wide_ties);
    // The opposites, too.
    let numbers = numbers.flat_map(|x: u128| [x, x.wrapping_neg()]);
    let mut numbers: Vec<u128> = numbers.map(|x| x % (1 << n_bits)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// Floats with fractions at the edges, and with exponents where rounding, range or format change.
fn float_edges(exponent_bits: u32, fraction_bits: u32) -> Vec<u128> {
    let bias = (1 << (exponent_bits - 1)) - 1;
    let near_one = [-2, -1, 0, 1, 2, 6, 7, 15, 22, 23, 24, 30, 31, 32, 51, 52, 53, 62, 63, 64];
    let near_zero = [0, 1, 2];
    let others = [bias - 149, bias - 150, bias - 127, bias + 127, bias + 128];
    let greatest = [2 * bias, 2 * bias + 1];
    let exponents = near_one.map(|exponent| bias + exponent).into_iter();
    let exponents = exponents.chain(near_zero).chain(others).chain(greatest);
    let unit = 1 << fraction_bits;
    let half = unit / 2;
    let fractions: [u128; 7] =
        [0, 1, half - 1, half, half + 1, unit - 1, 0x000f_ffff_f000_0000 % unit];
    let mut floats = Vec::new();
    for exponent in exponents.filter(|exponent| (0..2 * bias + 2).contains(exponent)) {
        for fraction in fractions {
            let float = exponent as u128 * unit + fraction;
            floats.extend([float, float + (unit << exponent_bits)]);
        }
    }
    floats.sort_unstable();
    floats.dedup();
    floats
}

/// Values of each type.
struct Edges {
    i8: Vec<u128>,
    i16: Vec<u128>,
    i32: Vec<u128>,
    i64: Vec<u128>,
    f32: Vec<u128>,
    f64: Vec<u128>,
}

impl Edges {
    fn new() -> Edges {
        Edges {
            i8: integer_edges(8),
            i16: integer_edges(16),
            i32: integer_edges(32),
            i64: integer_edges(64),
            f32: float_edges(8, 23),
            f64: float_edges(11, 52),
        }
    }

    fn of(&self, ty: ValType) -> &[u128] {
        match ty {
            ValType::I32 => &self.i32,
            ValType::I64 => &self.i64,
            ValType::F32 => &self.f32,
            ValType::F64 => &self.f64,
            _ => panic!("{ty} is not a scalar"),
        }
    }

    /// A value of a type: any bits, a float near 1, or an edge value; a vector of such.
    fn draw(&self, ty: ValType, rng: &mut Rng) -> u128 {
        let random = u128::from(rng.next());
        match (ty, rng.below(3)) {
            (ValType::V128, _) => {
                let (n, lanes): (u32, &[u128]) = match rng.below(6) {
                    0 => (8, &self.i8),
                    1 => (16, &self.i16),
                    2 => (32, &self.i32),
                    3 => (64, &self.i64),
                    4 => (32, &self.f32),
                    _ => (64, &self.f64),
                };
                (0..128 / n).fold(0, |vector, _| {
                    let lane = match rng.one_in(2) {
                        true => u128::from(rng.next()) % (1 << n),
                        false => lanes[rng.below(lanes.len() as u32) as usize],
                    };
                    vector << n | lane
                })
            }
            (ValType::I32 | ValType::F32, 0) => random % (1 << 32),
            (_, 0) => random,
            (ValType::F32, 1) => {
                let exponent = u128::from(127 - 30 + rng.below(60));
                random % (1 << 23) + (exponent << 23) + (random >> 63 << 31)
            }
            (ValType::F64, 1) => {
                let exponent = u128::from(1023 - 60 + rng.below(120));
                random % (1 << 52) + (exponent << 52) + (random >> 63 << 63)
            }
            _ => {
                let edges = self.of(ty);
                edges[rng.below(edges.len() as u32) as usize]
            }
        }
    }
}

// --- Agreement --------------------------------------------------------------------------------------

/// Result by the definition that the interpreter uses.
fn other_eval(op: Op, imm: u128, operands: &[u128]) -> Result<u128, TrapCode> {
    let operand = |i: usize| operands.get(i).copied().unwrap_or(0);
    if op.is_vector() {
        return Ok(vector::eval(op, imm, [operand(0), operand(1), operand(2)]));
    }
    numeric::eval(op, operand(0) as u64, operand(1) as u64).map(u128::from)
}

fn other_canonical(op: Op, bits: u128) -> u128 {
    if op.is_vector() {
        return vector::canonical_nans(op, bits);
    }
    numeric::canonical_nan(op, bits as u64).into()
}

/// The result with all NaNs made quiet that the instruction may make.
fn quieted(op: Op, bits: u128) -> u128 {
    let quiet_f32 = |x: u128| x | u128::from(f32::from_bits(x as u32).is_nan()) << 22;
    let quiet_f64 = |x: u128| x | u128::from(f64::from_bits(x as u64).is_nan()) << 51;
    let lanes_f32 = |n: u32| (0..n).map(|i| quiet_f32(bits >> (32 * i) & 0xffff_ffff) << (32 * i));
    match (op.nan_type(), op.is_vector()) {
        (None, _) => bits,
        (Some(ValType::F32), false) => quiet_f32(bits),
        (Some(ValType::F32), true) => lanes_f32(4).sum(),
        (_, false) => quiet_f64(bits),
        (_, true) => quiet_f64(bits % (1 << 64)) + (quiet_f64(bits >> 64) << 64),
    }
}

/// Checks that both definitions agree, with NaNs masked where there is a choice, and that NaNs are quiet.
fn check(op: Op, imm: u128, operands: &[u128]) {
    let expected = other_eval(op, imm, operands).map(|bits| other_canonical(op, bits));
    let case = || format!("{op:?} {imm:#x} {operands:#x?}");
    let result = |nans| {
        let result = eval(op, imm, operands, nans);
        result.map(|bits| bits.unwrap_or_else(|| panic!("{}: not numeric", case())))
    };
    assert_eq!(result(Nans::Canonical), expected, "{}", case());
    let propagated = result(Nans::Propagated);
    assert_eq!(propagated.map(|bits| other_canonical(op, bits)), expected, "{}", case());
    assert_eq!(propagated.map(|bits| quieted(op, bits)), propagated, "{}: quiet", case());
}

#[test]
fn both_definitions_agree_on_scalars_at_the_edges() {
    let edges = Edges::new();
    for &op in Op::ALL.iter().filter(|&&op| computes(op) && !op.is_vector()) {
        match params(op) {
            &[ty] => edges.of(ty).iter().for_each(|&a| check(op, 0, &[a])),
            &[first, second] => {
                for &a in edges.of(first) {
                    edges.of(second).iter().for_each(|&b| check(op, 0, &[a, b]));
                }
            }
            params => panic!("{op:?} has {} operands", params.len()),
        }
    }
}

#[test]
fn both_definitions_agree_on_random_operands() {
    let edges = Edges::new();
    let mut rng = Rng(1);
    for &op in Op::ALL.iter().filter(|&&op| computes(op)) {
        let n_cases = if op.is_vector() { 1_500 } else { 6_000 };
        for _ in 0..n_cases {
            let imm = match op.imm_kind() {
                ImmKind::Lane => rng.below(op.n_lanes().expect("the lane is one of some")).into(),
                ImmKind::Lanes => (0..16).fold(0, |all, _| all << 8 | u128::from(rng.below(32))),
                _ => 0,
            };
            let operands: Vec<u128> =
                params(op).iter().map(|&ty| edges.draw(ty, &mut rng)).collect();
            check(op, imm, &operands);
        }
    }
}

/// Checks that both definitions of an instruction with two results agree.
fn check_pair(op: Op, operands: &[u128]) {
    let cells = std::array::from_fn(|i| operands.get(i).map_or(0, |&operand| operand as u64));
    let expected = pairs::eval(op, cells).map(u128::from);
    assert_eq!(eval_pair(op, operands), Some(expected), "{op:?} {operands:#x?}");
}

#[test]
fn both_definitions_of_two_results_agree() {
    let edges = Edges::new();
    let mut rng = Rng(3);
    for &op in Op::ALL.iter().filter(|&&op| n_computed(op) == 2) {
        if let &[first, second] = params(op) {
            for &a in edges.of(first) {
                edges.of(second).iter().for_each(|&b| check_pair(op, &[a, b]));
            }
        }
        for _ in 0..6_000 {
            let clean: Vec<u128> = params(op).iter().map(|&ty| edges.draw(ty, &mut rng)).collect();
            check_pair(op, &clean);
            let dirty: Vec<u128> = clean
                .iter()
                .zip(params(op))
                .map(|(&operand, ty)| operand | u128::from(rng.next()) << (8 * ty.bytes()))
                .collect();
            assert_eq!(eval_pair(op, &dirty), eval_pair(op, &clean), "{op:?} {clean:#x?}");
        }
    }
}

#[test]
fn lanes_of_eight_bits_agree_on_all_pairs() {
    let is_binary =
        |op: Op| op.is_vector() && computes(op) && params(op) == [ValType::V128, ValType::V128];
    for &op in Op::ALL.iter().filter(|&&op| is_binary(op) && op.mnemonic().starts_with("i8x16.")) {
        if op.imm_kind() != ImmKind::None {
            continue;
        }
        for x in 0..=255 {
            let a = u128::from_le_bytes([x; 16]);
            for first in (0..=255).step_by(16) {
                let b = u128::from_le_bytes(std::array::from_fn(|i| first + i as u8));
                check(op, 0, &[a, b]);
            }
        }
    }
}

#[test]
fn bits_that_a_type_does_not_have_are_ignored() {
    let edges = Edges::new();
    let mut rng = Rng(2);
    for &op in Op::ALL.iter().filter(|&&op| computes(op)) {
        for _ in 0..50 {
            let clean: Vec<u128> = params(op).iter().map(|&ty| edges.draw(ty, &mut rng)).collect();
            let mut dirty = clean.clone();
            for (operand, ty) in dirty.iter_mut().zip(params(op)) {
                let junk = u128::from(rng.next()) << 64 | u128::from(rng.next());
                *operand |= junk.checked_shl(8 * ty.bytes()).unwrap_or(0);
            }
            let results = [clean, dirty].map(|operands| eval(op, 0, &operands, Nans::Propagated));
            assert_eq!(results[0], results[1], "{op:?}");
        }
    }
}
