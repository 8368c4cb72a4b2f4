//! Cases of the specification, for each family of instructions.

use slotvm_bytecode::TrapCode::{BadConversionToInteger, IntegerDivisionByZero, IntegerOverflow};
use slotvm_bytecode::{Op, TrapCode};

use crate::ir::eval::numeric::{Nans, eval};

/// The result of an instruction that does not trap.
fn run(op: Op, operands: &[u128]) -> u128 {
    with_imm(op, 0, operands)
}

fn with_imm(op: Op, imm: u128, operands: &[u128]) -> u128 {
    let result = eval(op, imm, operands, Nans::Propagated);
    result.expect("it does not trap").expect("it is numeric")
}

fn trap(op: Op, operands: &[u128]) -> TrapCode {
    eval(op, 0, operands, Nans::Propagated).expect_err("it traps")
}

fn i32(x: i32) -> u128 {
    (x as u32).into()
}

fn i64(x: i64) -> u128 {
    (x as u64).into()
}

fn f32(x: f32) -> u128 {
    x.to_bits().into()
}

fn f64(x: f64) -> u128 {
    x.to_bits().into()
}

/// A vector of equally wide lanes.
fn lanes<const N: usize>(lanes: [i64; N]) -> u128 {
    let n = 128 / N as u32;
    let lane = |x: i64| x as u128 & (u128::MAX >> (128 - n));
    lanes.iter().rev().fold(0, |vector, &x| vector << n | lane(x))
}

fn floats(lanes: [f32; 4]) -> u128 {
    lanes.iter().rev().fold(0, |vector, &x| vector << 32 | f32(x))
}

fn doubles([a, b]: [f64; 2]) -> u128 {
    f64(a) | f64(b) << 64
}

// --- Integers ---------------------------------------------------------------------------------------

#[test]
fn shifts_and_rotations_take_the_count_modulo_the_width() {
    let x = 0x8000_0003;
    for (op, count, expected) in [
        (Op::I32Rotl, 0, x),
        (Op::I32Rotl, 32, x),
        (Op::I32Rotl, 1, 7),
        (Op::I32Rotl, 33, 7),
        (Op::I32Rotr, 0, x),
        (Op::I32Rotr, 32, x),
        (Op::I32Rotr, 1, 0xc000_0001),
        (Op::I32Rotr, 0xffff_ffff, 7),
        (Op::I32Shl, 0, x),
        (Op::I32Shl, 32, x),
        (Op::I32Shl, 31, 0x8000_0000),
        (Op::I32ShrU, 32, x),
        (Op::I32ShrU, 31, 1),
        (Op::I32ShrS, 31, 0xffff_ffff),
        (Op::I32ShrS, 33, 0xc000_0001),
    ] {
        assert_eq!(run(op, &[x, count]), expected, "{op:?} {count}");
    }
    let x = 0x8000_0000_0000_0003;
    for (op, count, expected) in [
        (Op::I64Rotl, 64, x),
        (Op::I64Rotl, 65, 7),
        (Op::I64Rotr, 0, x),
        (Op::I64Rotr, 32, 0x0000_0003_8000_0000),
        (Op::I64Shl, 63, 1 << 63),
        (Op::I64ShrU, 63, 1),
        (Op::I64ShrS, 63, u64::MAX.into()),
    ] {
        assert_eq!(run(op, &[x, count]), expected, "{op:?} {count}");
    }
}

#[test]
fn bits_are_counted() {
    for (op, zero, one, top) in
        [(Op::I32Clz, 32, 31, 0), (Op::I32Ctz, 32, 0, 31), (Op::I32Popcnt, 0, 1, 1)]
    {
        assert_eq!([0, 1, 1 << 31].map(|x| run(op, &[x])), [zero, one, top], "{op:?}");
    }
    for (op, zero, one, top) in
        [(Op::I64Clz, 64, 63, 0), (Op::I64Ctz, 64, 0, 63), (Op::I64Popcnt, 0, 1, 1)]
    {
        assert_eq!([0, 1, 1 << 63].map(|x| run(op, &[x])), [zero, one, top], "{op:?}");
    }
}

#[test]
fn arithmetic_wraps_and_division_goes_towards_zero() {
    assert_eq!(run(Op::I32Add, &[i32(i32::MAX), 1]), i32(i32::MIN));
    assert_eq!(run(Op::I32Sub, &[0, 1]), i32(-1));
    assert_eq!(run(Op::I64Mul, &[i64(i64::MIN), i64(-1)]), i64(i64::MIN));
    assert_eq!(run(Op::I32DivS, &[i32(-7), 2]), i32(-3));
    assert_eq!(run(Op::I32RemS, &[i32(-7), 2]), i32(-1));
    assert_eq!(run(Op::I32RemS, &[7, i32(-2)]), 1);
    assert_eq!(run(Op::I32DivU, &[i32(-7), 2]), 0x7fff_fffc);
    assert_eq!(run(Op::I64DivS, &[i64(7), i64(-2)]), i64(-3));
    for (div, rem, least) in
        [(Op::I32DivS, Op::I32RemS, i32(i32::MIN)), (Op::I64DivS, Op::I64RemS, i64(i64::MIN))]
    {
        let minus_one = 2 * least - 1;
        assert_eq!(trap(div, &[least, minus_one]), IntegerOverflow);
        assert_eq!(run(rem, &[least, minus_one]), 0);
        assert_eq!(trap(div, &[least, 0]), IntegerDivisionByZero);
        assert_eq!(trap(rem, &[least, 0]), IntegerDivisionByZero);
    }
    assert_eq!(trap(Op::I32DivU, &[1, 0]), IntegerDivisionByZero);
    assert_eq!(trap(Op::I64RemU, &[0, 0]), IntegerDivisionByZero);
}

#[test]
fn comparisons_know_their_sign() {
    assert_eq!(run(Op::I32LtS, &[i32(-1), 0]), 1);
    assert_eq!(run(Op::I32LtU, &[i32(-1), 0]), 0);
    assert_eq!(run(Op::I64GeS, &[i64(i64::MIN), 0]), 0);
    assert_eq!(run(Op::I64GeU, &[i64(i64::MIN), 0]), 1);
    assert_eq!(run(Op::I64Eqz, &[1 << 32]), 0);
}

// --- Floats -----------------------------------------------------------------------------------------

#[test]
fn halves_go_to_the_even_neighbour() {
    for (x, nearest, ceil, floor, trunc) in [
        (0.5, 0.0, 1.0, 0.0, 0.0),
        (-0.5, -0.0, -0.0, -1.0, -0.0),
        (1.5, 2.0, 2.0, 1.0, 1.0),
        (2.5, 2.0, 3.0, 2.0, 2.0),
        (-2.5, -2.0, -2.0, -3.0, -2.0),
        (-3.5, -4.0, -3.0, -4.0, -3.0),
        (0.75, 1.0, 1.0, 0.0, 0.0),
        (-0.25, -0.0, -0.0, -1.0, -0.0),
        (-0.0, -0.0, -0.0, -0.0, -0.0),
        (8_388_607.5, 8_388_608.0, 8_388_608.0, 8_388_607.0, 8_388_607.0),
        (1e30, 1e30, 1e30, 1e30, 1e30),
        (1e-45, 0.0, 1.0, 0.0, 0.0),
        (
            f32::NEG_INFINITY,
            f32::NEG_INFINITY,
            f32::NEG_INFINITY,
            f32::NEG_INFINITY,
            f32::NEG_INFINITY,
        ),
    ] {
        let single = [Op::F32Nearest, Op::F32Ceil, Op::F32Floor, Op::F32Trunc];
        let double = [Op::F64Nearest, Op::F64Ceil, Op::F64Floor, Op::F64Trunc];
        let expected = [nearest, ceil, floor, trunc];
        assert_eq!(single.map(|op| run(op, &[f32(x)])), expected.map(f32), "{x}");
        let found = double.map(|op| run(op, &[f64(x.into())]));
        assert_eq!(found, expected.map(|x| f64(x.into())), "{x}");
    }
    assert_eq!(run(Op::F64Nearest, &[f64(4_503_599_627_370_495.5)]), f64(4_503_599_627_370_496.0));
    assert_eq!(run(Op::F64Ceil, &[f64(5e-324)]), f64(1.0));
}

#[test]
fn zeros_have_signs() {
    let (plus, minus) = (f64(0.0), f64(-0.0));
    for (op, a, b, expected) in [
        (Op::F64Add, plus, minus, plus),
        (Op::F64Add, minus, minus, minus),
        (Op::F64Sub, minus, plus, minus),
        (Op::F64Sub, minus, minus, plus),
        (Op::F64Sub, f64(1.5), f64(1.5), plus),
        (Op::F64Mul, minus, f64(2.0), minus),
        (Op::F64Div, f64(1.0), minus, f64(f64::NEG_INFINITY)),
        (Op::F64Div, f64(-1.0), f64(f64::INFINITY), minus),
        (Op::F64Min, plus, minus, minus),
        (Op::F64Min, minus, plus, minus),
        (Op::F64Max, plus, minus, plus),
        (Op::F64Max, minus, plus, plus),
        (Op::F64Copysign, f64(3.0), minus, f64(-3.0)),
        (Op::F64Copysign, f64(-3.0), plus, f64(3.0)),
    ] {
        assert_eq!(run(op, &[a, b]), expected, "{op:?} {a:x} {b:x}");
    }
    assert_eq!(run(Op::F64Sqrt, &[minus]), minus);
    assert_eq!(run(Op::F64Eq, &[plus, minus]), 1);
    assert_eq!(run(Op::F64Lt, &[minus, plus]), 0);
}

#[test]
fn arithmetic_rounds_once_to_the_nearest() {
    assert_eq!(run(Op::F64Add, &[f64(0.1), f64(0.2)]), 0x3fd3_3333_3333_3334);
    assert_eq!(run(Op::F64Mul, &[f64(0.1), f64(10.0)]), f64(1.0));
    assert_eq!(run(Op::F64Div, &[f64(1.0), f64(3.0)]), 0x3fd5_5555_5555_5555);
    assert_eq!(run(Op::F64Sqrt, &[f64(2.0)]), 0x3ff6_a09e_667f_3bcd);
    assert_eq!(run(Op::F32Sqrt, &[f32(2.0)]), 0x3fb5_04f3);
    // Between two floats: to the even one.
    assert_eq!(run(Op::F32Add, &[f32(16_777_216.0), f32(1.0)]), f32(16_777_216.0));
    assert_eq!(run(Op::F32Add, &[f32(16_777_216.0), f32(3.0)]), f32(16_777_220.0));
    // What lies far below decides between two floats all the same.
    let next = 16_777_218.0;
    assert_eq!(run(Op::F32Add, &[f32(next), f32(1.0)]), f32(16_777_220.0));
    assert_eq!(run(Op::F64Add, &[f64(1.0), f64(f64::EPSILON / 2.0)]), f64(1.0));
    let above_half = f64(f64::EPSILON / 2.0) + 1;
    assert_eq!(run(Op::F64Add, &[f64(1.0), above_half]), f64(1.0) + 1);
    assert_eq!(run(Op::F64Sub, &[f64(1.0), f64(1e-300)]), f64(1.0));
    // Subnormal numbers have fewer digits, and the least half goes to zero.
    assert_eq!(run(Op::F64Mul, &[1, f64(0.5)]), 0);
    assert_eq!(run(Op::F64Mul, &[3, f64(0.5)]), 2);
    assert_eq!(run(Op::F32Div, &[f32(f32::MIN_POSITIVE), f32(2.0)]), 1 << 22);
    assert_eq!(run(Op::F32Sub, &[f32(f32::MIN_POSITIVE), 1]), (1 << 23) - 1);
    // Beyond the greatest number is infinity, from half a unit on.
    assert_eq!(run(Op::F32Add, &[f32(f32::MAX), f32(f32::MAX)]), f32(f32::INFINITY));
    let half_unit = (127 + 103) << 23;
    assert_eq!(run(Op::F32Add, &[f32(f32::MAX), half_unit]), f32(f32::INFINITY));
    assert_eq!(run(Op::F32Add, &[f32(f32::MAX), half_unit - 1]), f32(f32::MAX));
}

#[test]
fn nans_come_from_invalid_operations_and_from_operands() {
    let canonical = 0x7ff8_0000_0000_0000;
    let (inf, zero) = (f64(f64::INFINITY), f64(-0.0));
    for (op, operands) in [
        (Op::F64Add, &[inf, f64(f64::NEG_INFINITY)][..]),
        (Op::F64Sub, &[inf, inf]),
        (Op::F64Mul, &[zero, inf]),
        (Op::F64Mul, &[inf, zero]),
        (Op::F64Div, &[inf, inf]),
        (Op::F64Div, &[zero, zero]),
        (Op::F64Sqrt, &[f64(-1e-300)]),
        (Op::F64Sqrt, &[f64(f64::NEG_INFINITY)]),
    ] {
        assert_eq!(run(op, operands), canonical, "{op:?}");
    }
    // The first NaN is propagated and becomes quiet, unless canonical NaNs are asked for.
    let (signalling, other) = (0xfff0_0000_0000_1234, 0x7ff8_0000_0000_4321);
    let quiet = 0xfff8_0000_0000_1234;
    for op in [Op::F64Add, Op::F64Sub, Op::F64Mul, Op::F64Div, Op::F64Min, Op::F64Max] {
        assert_eq!(run(op, &[signalling, other]), quiet, "{op:?}");
        assert_eq!(run(op, &[other, signalling]), other, "{op:?}");
        assert_eq!(run(op, &[f64(1.0), signalling]), quiet, "{op:?}");
        let result = eval(op, 0, &[signalling, f64(1.0)], Nans::Canonical);
        assert_eq!(result, Ok(Some(canonical)), "{op:?}");
    }
    assert_eq!(run(Op::F32DemoteF64, &[0xfff0_0000_2000_0000]), 0xffc0_0001);
    assert_eq!(run(Op::F32DemoteF64, &[signalling]), 0xffc0_0000);
    assert_eq!(run(Op::F64PromoteF32, &[0x7f80_0001]), 0x7ff8_0000_2000_0000);
    // Operations on the sign alone keep all other bits.
    for nans in [Nans::Propagated, Nans::Canonical] {
        for (op, expected) in [
            (Op::F64Abs, 0x7ff0_0000_0000_1234),
            (Op::F64Neg, 0x7ff0_0000_0000_1234),
            (Op::F64Copysign, 0x7ff0_0000_0000_1234),
            (Op::I64ReinterpretF64, signalling),
        ] {
            assert_eq!(eval(op, 0, &[signalling, 0], nans), Ok(Some(expected)), "{op:?}");
        }
    }
}

#[test]
fn comparisons_with_nan_are_false_except_ne() {
    let nan = f32(f32::NAN);
    let all = [Op::F32Eq, Op::F32Ne, Op::F32Lt, Op::F32Gt, Op::F32Le, Op::F32Ge];
    for operands in [[nan, nan], [nan, f32(1.0)], [f32(1.0), nan]] {
        assert_eq!(all.map(|op| run(op, &operands)), [0, 1, 0, 0, 0, 0]);
    }
    assert_eq!(all.map(|op| run(op, &[f32(-1.0), f32(2.0)])), [0, 1, 1, 0, 1, 0]);
    assert_eq!(all.map(|op| run(op, &[f32(-1.0), f32(-2.0)])), [0, 1, 0, 1, 0, 1]);
    assert_eq!(all.map(|op| run(op, &[f32(f32::INFINITY); 2])), [1, 0, 0, 0, 1, 1]);
}

// --- Conversions ------------------------------------------------------------------------------------

#[test]
fn conversions_to_integers_trap_or_saturate() {
    for (op, saturating, x, expected) in [
        (Op::I32TruncF64S, Op::I32TruncSatF64S, 2_147_483_647.9, i32(i32::MAX)),
        (Op::I32TruncF64S, Op::I32TruncSatF64S, -2_147_483_648.9, i32(i32::MIN)),
        (Op::I32TruncF64U, Op::I32TruncSatF64U, 4_294_967_295.9, i32(-1)),
        (Op::I32TruncF64U, Op::I32TruncSatF64U, -0.9, 0),
        (Op::I64TruncF64S, Op::I64TruncSatF64S, -9_223_372_036_854_775_808.0, i64(i64::MIN)),
        (Op::I64TruncF64U, Op::I64TruncSatF64U, 1e19, 10_000_000_000_000_000_000),
    ] {
        assert_eq!(run(op, &[f64(x)]), expected, "{op:?} {x}");
        assert_eq!(run(saturating, &[f64(x)]), expected, "{op:?} {x}");
    }
    for (op, saturating, least, greatest) in [
        (Op::I32TruncF32S, Op::I32TruncSatF32S, i32(i32::MIN), i32(i32::MAX)),
        (Op::I32TruncF32U, Op::I32TruncSatF32U, 0, u32::MAX.into()),
        (Op::I64TruncF32S, Op::I64TruncSatF32S, i64(i64::MIN), i64(i64::MAX)),
        (Op::I64TruncF32U, Op::I64TruncSatF32U, 0, u64::MAX.into()),
    ] {
        for (x, expected) in [
            (f32::INFINITY, greatest),
            (18_446_744_073_709_551_616.0, greatest),
            (f32::MAX, greatest),
            (f32::NEG_INFINITY, least),
            (-18_446_744_073_709_551_616.0, least),
        ] {
            assert_eq!(run(saturating, &[f32(x)]), expected, "{saturating:?} {x}");
            assert_eq!(trap(op, &[f32(x)]), IntegerOverflow, "{op:?} {x}");
        }
        assert_eq!(run(saturating, &[f32(-f32::NAN)]), 0);
        assert_eq!(trap(op, &[f32(-f32::NAN)]), BadConversionToInteger);
    }
    assert_eq!(trap(Op::I32TruncF64S, &[f64(2_147_483_648.0)]), IntegerOverflow);
    assert_eq!(trap(Op::I32TruncF64U, &[f64(-1.0)]), IntegerOverflow);
    assert_eq!(trap(Op::I64TruncF64S, &[f64(9_223_372_036_854_775_808.0)]), IntegerOverflow);
}

#[test]
fn conversions_to_floats_round_to_the_nearest() {
    assert_eq!(run(Op::F32ConvertI32S, &[i32(-16_777_217)]), f32(-16_777_216.0));
    assert_eq!(run(Op::F32ConvertI32U, &[16_777_219]), f32(16_777_220.0));
    assert_eq!(run(Op::F32ConvertI64U, &[u64::MAX.into()]), f32(18_446_744_073_709_551_616.0));
    // Between two floats, and one more: rounding to 53 digits first would go wrong.
    assert_eq!(run(Op::F32ConvertI64U, &[0x8000_0080_0000_0000]), 0x5f00_0000);
    assert_eq!(run(Op::F32ConvertI64U, &[0x8000_0080_0000_0001]), 0x5f00_0001);
    assert_eq!(run(Op::F64ConvertI64S, &[i64(i64::MIN)]), f64(-9_223_372_036_854_775_808.0));
    assert_eq!(run(Op::F64ConvertI64S, &[9_007_199_254_740_993]), f64(9_007_199_254_740_992.0));
    assert_eq!(run(Op::F32ConvertI64S, &[0]), 0);
    // The greatest number and half a unit is infinity, anything less is not.
    assert_eq!(run(Op::F32DemoteF64, &[0x47ef_ffff_f000_0000]), f32(f32::INFINITY));
    assert_eq!(run(Op::F32DemoteF64, &[0x47ef_ffff_efff_ffff]), f32(f32::MAX));
    assert_eq!(run(Op::F32DemoteF64, &[f64(-1e-46)]), f32(-0.0));
    assert_eq!(run(Op::F32DemoteF64, &[f64(1e-45)]), 1);
    assert_eq!(run(Op::F64PromoteF32, &[1]), f64(1.401_298_464_324_817e-45));
    assert_eq!(run(Op::F64PromoteF32, &[f32(f32::NEG_INFINITY)]), f64(f64::NEG_INFINITY));
}

#[test]
fn integers_change_their_width() {
    assert_eq!(run(Op::I32WrapI64, &[0x1234_8765_4321]), 0x8765_4321);
    assert_eq!(run(Op::I64ExtendI32S, &[0x8000_0000]), 0xffff_ffff_8000_0000);
    assert_eq!(run(Op::I64ExtendI32U, &[0x8000_0000]), 0x8000_0000);
    assert_eq!(run(Op::I32Extend8S, &[0x1280]), 0xffff_ff80);
    assert_eq!(run(Op::I32Extend16S, &[0x8_7fff]), 0x7fff);
    assert_eq!(run(Op::I64Extend32S, &[0x1_8000_0000]), 0xffff_ffff_8000_0000);
}

// --- Vectors ----------------------------------------------------------------------------------------

#[test]
fn lanes_are_numbered_from_the_lowest() {
    let a = lanes([1, 2, 3, 4]);
    assert_eq!(with_imm(Op::I32x4ExtractLane, 2, &[a]), 3);
    assert_eq!(with_imm(Op::I32x4ReplaceLane, 3, &[a, 9]), lanes([1, 2, 3, 9]));
    assert_eq!(with_imm(Op::I8x16ExtractLaneS, 15, &[0xfe << 120]), 0xffff_fffe);
    assert_eq!(with_imm(Op::I8x16ExtractLaneU, 15, &[0xfe << 120]), 0xfe);
    assert_eq!(run(Op::I16x8Splat, &[0x1_2345]), lanes([0x2345; 8]));
    assert_eq!(run(Op::F64x2Splat, &[f64(1.5)]), doubles([1.5, 1.5]));
}

#[test]
fn shuffles_choose_lanes() {
    let a = lanes([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
    let b = lanes([100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115]);
    let indices = lanes([31, 0, 16, 15, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22]);
    let expected = lanes([115, 0, 100, 15, 1, 101, 2, 102, 3, 103, 4, 104, 5, 105, 6, 106]);
    assert_eq!(with_imm(Op::I8x16Shuffle, indices, &[a, b]), expected);
    let indices = lanes([15, 16, 0, 255, 128, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 31]);
    let expected = lanes([115, 0, 100, 0, 0, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 0]);
    assert_eq!(run(Op::I8x16Swizzle, &[b, indices]), expected);
}

#[test]
fn narrow_lanes_saturate() {
    let x = |op, a, b| run(op, &[lanes([a; 16]), lanes([b; 16])]);
    for (op, a, b, expected) in [
        (Op::I8x16AddSatS, 100, 100, 127),
        (Op::I8x16AddSatS, -100, -100, -128),
        (Op::I8x16AddSatS, -100, 100, 0),
        (Op::I8x16AddSatU, 200, 100, 255),
        (Op::I8x16SubSatS, -100, 100, -128),
        (Op::I8x16SubSatS, 100, -100, 127),
        (Op::I8x16SubSatS, 0, -128, 127),
        (Op::I8x16SubSatU, 1, 2, 0),
        (Op::I8x16SubSatU, 255, 1, 254),
        (Op::I8x16Add, 100, 100, -56),
        (Op::I8x16AvgrU, 254, 255, 255),
        (Op::I8x16AvgrU, 1, 2, 2),
        (Op::I8x16MinS, -1, 1, -1),
        (Op::I8x16MinU, -1, 1, 1),
        (Op::I8x16MaxS, -1, 1, 1),
        (Op::I8x16MaxU, -1, 1, -1),
    ] {
        assert_eq!(x(op, a, b), lanes([expected; 16]), "{op:?} {a} {b}");
    }
    assert_eq!(run(Op::I8x16Abs, &[lanes([-128; 16])]), lanes([-128; 16]));
    assert_eq!(run(Op::I8x16Popcnt, &[lanes([0x7f; 16])]), lanes([7; 16]));
}

#[test]
fn fixed_point_products_round_and_saturate() {
    for (a, b, expected) in [
        (-0x8000, -0x8000, 0x7fff),
        (0x7fff, 0x7fff, 0x7ffe),
        (0x4000, 1, 1),
        (0x3fff, 1, 0),
        (-0x4000, 1, 0),
        (-0x4001, 1, -1),
    ] {
        let found = run(Op::I16x8Q15MulrSatS, &[lanes([a; 8]), lanes([b; 8])]);
        assert_eq!(found, lanes([expected; 8]), "{a} {b}");
    }
}

#[test]
fn lanes_are_narrowed_and_widened() {
    let a = lanes([300, -300, 5, -5, 127, 128, -128, -129]);
    let signed = [127, -128, 5, -5, 127, 127, -128, -128, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(run(Op::I8x16NarrowI16x8S, &[a, 0]), lanes(signed));
    let unsigned = [0, 0, 0, 0, 0, 0, 0, 0, 255, 0, 5, 0, 127, 128, 0, 0];
    assert_eq!(run(Op::I8x16NarrowI16x8U, &[0, a]), lanes(unsigned));
    assert_eq!(
        run(Op::I16x8NarrowI32x4U, &[lanes([70_000, -1, 65_535, 3]), lanes([1, 2, 3, 4])]),
        lanes([65_535, 0, 65_535, 3, 1, 2, 3, 4])
    );
    let b = lanes([-1, -2, -3, -4, 5, 6, 7, 8]);
    assert_eq!(run(Op::I32x4ExtendLowI16x8S, &[b]), lanes([-1, -2, -3, -4]));
    assert_eq!(run(Op::I32x4ExtendLowI16x8U, &[b]), lanes([65_535, 65_534, 65_533, 65_532]));
    assert_eq!(run(Op::I32x4ExtendHighI16x8S, &[b]), lanes([5, 6, 7, 8]));
    assert_eq!(
        run(Op::I64x2ExtMulHighI32x4S, &[lanes([0, 0, -2, 3]), lanes([9, 9, 5, -7])]),
        lanes([-10, -21])
    );
    assert_eq!(
        run(Op::I64x2ExtMulLowI32x4U, &[lanes([-1, 2, 0, 0]), lanes([-1, 3, 0, 0])]),
        lanes([-0x1_ffff_ffff, 6])
    );
    assert_eq!(run(Op::I32x4ExtAddPairwiseI16x8S, &[b]), lanes([-3, -7, 11, 15]));
    assert_eq!(run(Op::I32x4ExtAddPairwiseI16x8U, &[b]), lanes([131_069, 131_065, 11, 15]));
}

#[test]
fn dot_products_add_neighbours() {
    assert_eq!(
        run(
            Op::I32x4DotI16x8S,
            &[lanes([1, 2, 3, 4, -5, 6, 7, 8]), lanes([1, 1, 2, 2, 3, 3, 4, -4])]
        ),
        lanes([3, 14, 3, -4])
    );
    // The only sum that wraps.
    let least = lanes([-0x8000; 8]);
    assert_eq!(run(Op::I32x4DotI16x8S, &[least, least]), lanes([i32::MIN.into(); 4]));
}

#[test]
fn vectors_shift_compare_and_are_tested() {
    assert_eq!(run(Op::I32x4Shl, &[lanes([1, 2, 3, -1]), 33]), lanes([2, 4, 6, -2]));
    assert_eq!(run(Op::I8x16ShrS, &[lanes([-128; 16]), 15]), lanes([-1; 16]));
    assert_eq!(run(Op::I8x16ShrU, &[lanes([-128; 16]), 15]), lanes([1; 16]));
    assert_eq!(run(Op::I64x2ShrS, &[lanes([-8, 8]), 66]), lanes([-2, 2]));
    assert_eq!(run(Op::I64x2LtS, &[lanes([-1, 1]), 0]), lanes([-1, 0]));
    assert_eq!(run(Op::I16x8GtU, &[lanes([-1, 1, 0, 0, 0, 0, 0, 0]), 0]) as u32, u32::MAX);
    assert_eq!(run(Op::I8x16Bitmask, &[0x80 << 120 | 0x80]), 0x8001);
    assert_eq!(run(Op::I64x2Bitmask, &[lanes([1, -1])]), 2);
    assert_eq!(run(Op::I16x8AllTrue, &[lanes([1; 8])]), 1);
    assert_eq!(run(Op::I16x8AllTrue, &[lanes([1, 1, 1, 1, 1, 1, 1, 0])]), 0);
    assert_eq!(run(Op::V128AnyTrue, &[1 << 127]), 1);
    assert_eq!(run(Op::V128AnyTrue, &[0]), 0);
    assert_eq!(run(Op::V128Bitselect, &[0b1100, 0b1010, 0b0110]), 0b1100);
    assert_eq!(run(Op::V128AndNot, &[0b1100, 0b1010]), 0b0100);
    assert_eq!(run(Op::V128Not, &[0]), u128::MAX);
}

#[test]
fn lanes_of_floats() {
    let nan = f32::NAN;
    let (a, b) = (floats([1.0, nan, -0.0, 2.0]), floats([2.0, 1.0, 0.0, nan]));
    assert_eq!(run(Op::F32x4Lt, &[a, b]), lanes([-1, 0, 0, 0]));
    assert_eq!(run(Op::F32x4Min, &[a, b]), floats([1.0, nan, -0.0, nan]));
    // A choice by a comparison alone.
    assert_eq!(run(Op::F32x4PMin, &[a, b]), a);
    assert_eq!(run(Op::F32x4PMin, &[b, a]), floats([1.0, 1.0, 0.0, nan]));
    assert_eq!(run(Op::F32x4PMax, &[a, b]), floats([2.0, nan, -0.0, 2.0]));
    assert_eq!(run(Op::F64x2Sqrt, &[doubles([4.0, -0.0])]), doubles([2.0, -0.0]));
    assert_eq!(
        run(Op::I32x4TruncSatF32x4U, &[floats([nan, -1.0, 3e9, f32::INFINITY])]),
        lanes([0, 0, 3_000_000_000, -1])
    );
    assert_eq!(
        run(Op::I32x4TruncSatF64x2SZero, &[doubles([-3e9, 2.9])]),
        lanes([i32::MIN.into(), 2, 0, 0])
    );
    assert_eq!(
        run(Op::F32x4DemoteF64x2Zero, &[doubles([0.5, -2.0])]),
        floats([0.5, -2.0, 0.0, 0.0])
    );
    assert_eq!(
        run(Op::F64x2PromoteLowF32x4, &[floats([0.5, -2.0, 9.0, 9.0])]),
        doubles([0.5, -2.0])
    );
    assert_eq!(
        run(Op::F64x2ConvertLowI32x4U, &[lanes([-1, 1, 9, 9])]),
        doubles([4_294_967_295.0, 1.0])
    );
}
