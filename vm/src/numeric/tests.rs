//! Edge values of every group of numeric instructions, compared with results computed by hand.

use super::*;
use TrapCode::{BadConversionToInteger, IntegerDivisionByZero, IntegerOverflow};

fn cell<T: Cell>(value: T) -> u64 {
    value.into_cell()
}

/// Returns the result of a binary instruction that does not trap, converted to another type.
fn binary<A: Cell, R: Cell>(op: Op, a: A, b: A) -> R {
    R::from_cell(eval(op, cell(a), cell(b)).expect("no trap"))
}

fn unary<A: Cell, R: Cell>(op: Op, a: A) -> R {
    R::from_cell(eval(op, cell(a), u64::MAX).expect("no trap"))
}

fn trap<A: Cell>(op: Op, a: A, b: A) -> TrapCode {
    eval(op, cell(a), cell(b)).expect_err("a trap")
}

/// Cells at the edges of some type, in both halves.
const EDGES: [u64; 22] = [
    0,
    1,
    2,
    31,
    32,
    63,
    64,
    0x7f,
    0x80,
    0x7fff,
    0x8000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0xffff_ffff_ffff_ffff,
    0x7f80_0000,
    0xff80_0001,
    0x7ff0_0000_0000_0001,
    0xc1e0_0000_0000_0000,
];

#[test]
fn exactly_the_numeric_opcodes_evaluate() {
    let numeric: Vec<Op> = Op::ALL.iter().copied().filter(|&op| is_numeric(op)).collect();
    assert_eq!((numeric[0].code(), numeric.len()), (0x70, 0xf8 - 0x70));
    for &op in &numeric {
        let signature = op.signature().expect("a fixed signature");
        assert_eq!(signature.results.len(), 1, "{op:?}");
        for a in EDGES {
            for b in EDGES {
                match eval(op, a, b) {
                    Ok(bits) => {
                        let narrow = matches!(signature.results, [ValType::I32 | ValType::F32]);
                        assert!(!narrow || bits >> 32 == 0, "{op:?} leaves the upper half");
                    }
                    Err(_) => assert_eq!(op.effect(), crate::op::Effect::Trap, "{op:?}"),
                }
            }
        }
    }
}

#[test]
fn the_upper_half_of_narrow_operands_and_the_second_of_unary_ones_are_ignored() {
    for &op in Op::ALL.iter().filter(|&&op| is_numeric(op)) {
        let params = op.signature().expect("a fixed signature").params;
        let dirty = |ty| if matches!(ty, ValType::I32 | ValType::F32) { 0xdead << 32 } else { 0 };
        let (dirty_a, dirty_b) = (dirty(params[0]), params.get(1).map_or(7, |&ty| dirty(ty)));
        for a in EDGES {
            for b in EDGES {
                assert_eq!(eval(op, a, b), eval(op, a ^ dirty_a, b ^ dirty_b), "{op:?}");
            }
        }
    }
}

#[test]
#[should_panic(expected = "`i32.load` is not a numeric instruction")]
fn other_opcodes_are_refused() {
    let _ = eval(Op::I32Load, 0, 0);
}

#[test]
fn integer_comparisons_know_their_sign() {
    for (op, expected) in [
        (Op::I32LtS, true),
        (Op::I32LtU, false),
        (Op::I32GtS, false),
        (Op::I32GtU, true),
        (Op::I32LeS, true),
        (Op::I32LeU, false),
        (Op::I32GeS, false),
        (Op::I32GeU, true),
        (Op::I32Eq, false),
        (Op::I32Ne, true),
    ] {
        assert_eq!(binary::<i32, bool>(op, -1, 0), expected, "{op:?}");
    }
    for (op, expected) in [
        (Op::I64LtS, true),
        (Op::I64LtU, false),
        (Op::I64GtS, false),
        (Op::I64GtU, true),
        (Op::I64LeS, true),
        (Op::I64LeU, false),
        (Op::I64GeS, false),
        (Op::I64GeU, true),
        (Op::I64Eq, false),
        (Op::I64Ne, true),
    ] {
        assert_eq!(binary::<i64, bool>(op, i64::MIN, i64::MAX), expected, "{op:?}");
    }
    for op in [Op::I32LeS, Op::I32LeU, Op::I32GeS, Op::I32GeU, Op::I32Eq] {
        assert!(binary::<i32, bool>(op, -5, -5), "{op:?}");
    }
    for op in [Op::I64LtS, Op::I64LtU, Op::I64GtS, Op::I64GtU, Op::I64Ne] {
        assert!(!binary::<i64, bool>(op, -5, -5), "{op:?}");
    }
    assert!(unary::<u32, bool>(Op::I32Eqz, 0));
    assert!(!unary::<u32, bool>(Op::I32Eqz, 1 << 31));
    assert!(!unary::<u64, bool>(Op::I64Eqz, 1 << 32));
}

#[test]
fn float_comparisons_with_nan_are_false_except_ne() {
    for (f32_op, f64_op, less, equal, unordered) in [
        (Op::F32Eq, Op::F64Eq, false, true, false),
        (Op::F32Ne, Op::F64Ne, true, false, true),
        (Op::F32Lt, Op::F64Lt, true, false, false),
        (Op::F32Gt, Op::F64Gt, false, false, false),
        (Op::F32Le, Op::F64Le, true, true, false),
        (Op::F32Ge, Op::F64Ge, false, true, false),
    ] {
        for (x, y, expected) in [
            (-1.0, 2.0, less),
            (-0.0, 0.0, equal),
            (f32::INFINITY, f32::INFINITY, equal),
            (f32::NAN, 1.0, unordered),
            (1.0, f32::NAN, unordered),
            (f32::NAN, f32::NAN, unordered),
        ] {
            assert_eq!(binary::<f32, bool>(f32_op, x, y), expected, "{f32_op:?} {x} {y}");
            let (x, y) = (f64::from(x), f64::from(y));
            assert_eq!(binary::<f64, bool>(f64_op, x, y), expected, "{f64_op:?} {x} {y}");
        }
    }
}

#[test]
fn bit_counts() {
    for (op, zero, one, top) in
        [(Op::I32Clz, 32, 31, 0), (Op::I32Ctz, 32, 0, 31), (Op::I32Popcnt, 0, 1, 1)]
    {
        assert_eq!(unary::<u32, u32>(op, 0), zero);
        assert_eq!(unary::<u32, u32>(op, 1), one);
        assert_eq!(unary::<u32, u32>(op, 1 << 31), top);
    }
    for (op, zero, one, top) in
        [(Op::I64Clz, 64, 63, 0), (Op::I64Ctz, 64, 0, 63), (Op::I64Popcnt, 0, 1, 1)]
    {
        assert_eq!(unary::<u64, u64>(op, 0), zero);
        assert_eq!(unary::<u64, u64>(op, 1), one);
        assert_eq!(unary::<u64, u64>(op, 1 << 63), top);
    }
}

#[test]
fn integer_arithmetic_wraps() {
    assert_eq!(binary::<i32, i32>(Op::I32Add, i32::MAX, 1), i32::MIN);
    assert_eq!(binary::<i32, i32>(Op::I32Sub, i32::MIN, 1), i32::MAX);
    assert_eq!(binary::<i32, i32>(Op::I32Mul, i32::MIN, -1), i32::MIN);
    assert_eq!(binary::<i32, i32>(Op::I32Mul, 65536, 65537), 65536);
    assert_eq!(binary::<i64, i64>(Op::I64Add, i64::MAX, 1), i64::MIN);
    assert_eq!(binary::<i64, i64>(Op::I64Sub, i64::MIN, 1), i64::MAX);
    assert_eq!(binary::<i64, i64>(Op::I64Mul, i64::MIN, -1), i64::MIN);
    assert_eq!(binary::<u32, u32>(Op::I32And, 0b1100, 0b1010), 0b1000);
    assert_eq!(binary::<u32, u32>(Op::I32Or, 0b1100, 0b1010), 0b1110);
    assert_eq!(binary::<u32, u32>(Op::I32Xor, 0b1100, 0b1010), 0b0110);
    assert_eq!(binary::<u64, u64>(Op::I64And, 0b1100 << 40, 0b1010 << 40), 0b1000 << 40);
    assert_eq!(binary::<u64, u64>(Op::I64Or, 0b1100 << 40, 0b1010 << 40), 0b1110 << 40);
    assert_eq!(binary::<u64, u64>(Op::I64Xor, 0b1100 << 40, 0b1010 << 40), 0b0110 << 40);
}

#[test]
fn division() {
    assert_eq!(binary::<i32, i32>(Op::I32DivS, -7, 2), -3);
    assert_eq!(binary::<i32, i32>(Op::I32RemS, -7, 2), -1);
    assert_eq!(binary::<i32, i32>(Op::I32RemS, 7, -2), 1);
    assert_eq!(binary::<i32, u32>(Op::I32DivU, -7, 2), 0x7fff_fffc);
    assert_eq!(binary::<i32, u32>(Op::I32RemU, -7, 2), 1);
    assert_eq!(binary::<i64, i64>(Op::I64DivS, -7, 2), -3);
    assert_eq!(binary::<i64, i64>(Op::I64RemS, -7, 2), -1);
    assert_eq!(binary::<i64, u64>(Op::I64DivU, -7, 2), 0x7fff_ffff_ffff_fffc);
    assert_eq!(binary::<i64, u64>(Op::I64RemU, -7, 2), 1);

    assert_eq!(trap(Op::I32DivS, i32::MIN, -1), IntegerOverflow);
    assert_eq!(trap(Op::I64DivS, i64::MIN, -1), IntegerOverflow);
    assert_eq!(binary::<i32, i32>(Op::I32RemS, i32::MIN, -1), 0);
    assert_eq!(binary::<i64, i64>(Op::I64RemS, i64::MIN, -1), 0);
    assert_eq!(binary::<i32, u32>(Op::I32DivU, i32::MIN, -1), 0);
    assert_eq!(binary::<i64, i64>(Op::I64RemU, i64::MIN, -1), i64::MIN);

    for op in [Op::I32DivS, Op::I32DivU, Op::I32RemS, Op::I32RemU] {
        for x in [0, 1, i32::MIN] {
            assert_eq!(trap(op, x, 0), IntegerDivisionByZero, "{op:?}");
        }
    }
    for op in [Op::I64DivS, Op::I64DivU, Op::I64RemS, Op::I64RemU] {
        for x in [0, 1, i64::MIN] {
            assert_eq!(trap(op, x, 0), IntegerDivisionByZero, "{op:?}");
        }
    }
}

#[test]
fn shift_counts_are_modulo_the_width() {
    for (count, shl, shr_s, shr_u, rotl, rotr) in [
        (0, 0x8000_0001u32, 0x8000_0001u32, 0x8000_0001u32, 0x8000_0001u32, 0x8000_0001u32),
        (1, 2, 0xc000_0000, 0x4000_0000, 3, 0xc000_0000),
        (31, 0x8000_0000, 0xffff_ffff, 1, 0xc000_0000, 3),
        (32, 0x8000_0001, 0x8000_0001, 0x8000_0001, 0x8000_0001, 0x8000_0001),
        (33, 2, 0xc000_0000, 0x4000_0000, 3, 0xc000_0000),
        (u32::MAX, 0x8000_0000, 0xffff_ffff, 1, 0xc000_0000, 3),
    ] {
        for (op, expected) in [
            (Op::I32Shl, shl),
            (Op::I32ShrS, shr_s),
            (Op::I32ShrU, shr_u),
            (Op::I32Rotl, rotl),
            (Op::I32Rotr, rotr),
        ] {
            assert_eq!(binary::<u32, u32>(op, 0x8000_0001, count), expected, "{op:?} {count}");
        }
    }
    let x = 0x8000_0000_0000_0001u64;
    for count in [1u64, 65, u64::MAX - 62] {
        assert_eq!(binary::<u64, u64>(Op::I64Shl, x, count), 2);
        assert_eq!(binary::<u64, u64>(Op::I64ShrS, x, count), 0xc000_0000_0000_0000);
        assert_eq!(binary::<u64, u64>(Op::I64ShrU, x, count), 0x4000_0000_0000_0000);
        assert_eq!(binary::<u64, u64>(Op::I64Rotl, x, count), 3);
        assert_eq!(binary::<u64, u64>(Op::I64Rotr, x, count), 0xc000_0000_0000_0000);
    }
    // Only the low six bits of the count matter, not its value modulo 2^32.
    assert_eq!(binary::<u64, u64>(Op::I64Shl, x, 1 << 32), x);
    assert_eq!(binary::<u64, u64>(Op::I64Rotl, x, (1 << 40) + 1), 3);
}

#[test]
fn sign_operations_keep_nan_bits() {
    let signalling = 0x7f80_0001u32;
    assert_eq!(unary::<u32, u32>(Op::F32Neg, signalling), 0xff80_0001);
    assert_eq!(unary::<u32, u32>(Op::F32Abs, 0xff80_0001), signalling);
    assert_eq!(binary::<u32, u32>(Op::F32Copysign, signalling, 1 << 31), 0xff80_0001);
    assert_eq!(unary::<u32, u32>(Op::F32ReinterpretI32, signalling), signalling);
    assert_eq!(unary::<u32, u32>(Op::I32ReinterpretF32, signalling), signalling);
    let signalling = 0x7ff0_0000_0000_0001u64;
    assert_eq!(unary::<u64, u64>(Op::F64Neg, signalling), signalling | 1 << 63);
    assert_eq!(unary::<u64, u64>(Op::F64Abs, signalling | 1 << 63), signalling);
    assert_eq!(binary::<u64, u64>(Op::F64Copysign, signalling, 1 << 63), signalling | 1 << 63);
    assert_eq!(unary::<u64, u64>(Op::F64ReinterpretI64, signalling), signalling);
    assert_eq!(unary::<u64, u64>(Op::I64ReinterpretF64, signalling), signalling);
    assert_eq!(binary::<f64, f64>(Op::F64Copysign, 3.0, -0.0), -3.0);
    assert_eq!(binary::<f32, f32>(Op::F32Copysign, -3.0, 0.0), 3.0);
}

#[test]
fn rounding() {
    for (x, ceil, floor, trunc, nearest) in [
        (0.5f32, 1.0f32, 0.0f32, 0.0f32, 0.0f32),
        (1.5, 2.0, 1.0, 1.0, 2.0),
        (2.5, 3.0, 2.0, 2.0, 2.0),
        (-0.5, -0.0, -1.0, -0.0, -0.0),
        (-1.5, -1.0, -2.0, -1.0, -2.0),
        (-2.5, -2.0, -3.0, -2.0, -2.0),
        (0.49999997, 1.0, 0.0, 0.0, 0.0),
        (-0.0, -0.0, -0.0, -0.0, -0.0),
        (8388609.0, 8388609.0, 8388609.0, 8388609.0, 8388609.0),
        (
            f32::NEG_INFINITY,
            f32::NEG_INFINITY,
            f32::NEG_INFINITY,
            f32::NEG_INFINITY,
            f32::NEG_INFINITY,
        ),
    ] {
        for (f32_op, f64_op, expected) in [
            (Op::F32Ceil, Op::F64Ceil, ceil),
            (Op::F32Floor, Op::F64Floor, floor),
            (Op::F32Trunc, Op::F64Trunc, trunc),
            (Op::F32Nearest, Op::F64Nearest, nearest),
        ] {
            // Compare bits: the sign of zero matters.
            assert_eq!(unary::<f32, u32>(f32_op, x), expected.to_bits(), "{f32_op:?} {x}");
            let expected = f64::from(expected).to_bits();
            assert_eq!(unary::<f64, u64>(f64_op, x.into()), expected, "{f64_op:?} {x}");
        }
    }
    assert_eq!(unary::<f64, f64>(Op::F64Nearest, 4503599627370497.5), 4503599627370498.0);
    assert_eq!(unary::<f32, f32>(Op::F32Sqrt, 9.0), 3.0);
    assert_eq!(unary::<f64, u64>(Op::F64Sqrt, -0.0), (-0.0f64).to_bits());
    assert!(unary::<f64, f64>(Op::F64Sqrt, -1.0).is_nan());
}

#[test]
fn minimum_and_maximum_of_zeros_and_nan() {
    for (x, y) in [(0.0f32, -0.0f32), (-0.0, 0.0)] {
        assert_eq!(binary::<f32, u32>(Op::F32Min, x, y), (-0.0f32).to_bits());
        assert_eq!(binary::<f32, u32>(Op::F32Max, x, y), 0);
        let (x, y) = (f64::from(x), f64::from(y));
        assert_eq!(binary::<f64, u64>(Op::F64Min, x, y), (-0.0f64).to_bits());
        assert_eq!(binary::<f64, u64>(Op::F64Max, x, y), 0);
    }
    for (x, y, min, max) in [
        (1.0, 2.0, 1.0, 2.0),
        (2.0, -1.0, -1.0, 2.0),
        (f32::NEG_INFINITY, 3.0, f32::NEG_INFINITY, 3.0),
        (-3.0, -3.0, -3.0, -3.0),
    ] {
        assert_eq!(binary::<f32, f32>(Op::F32Min, x, y), min);
        assert_eq!(binary::<f32, f32>(Op::F32Max, x, y), max);
        let (x, y) = (f64::from(x), f64::from(y));
        assert_eq!(binary::<f64, f64>(Op::F64Min, x, y), f64::from(min));
        assert_eq!(binary::<f64, f64>(Op::F64Max, x, y), f64::from(max));
    }
    for (x, y) in [(f32::NAN, 1.0), (1.0, f32::NAN), (f32::NAN, f32::NEG_INFINITY)] {
        assert!(binary::<f32, f32>(Op::F32Min, x, y).is_nan());
        assert!(binary::<f32, f32>(Op::F32Max, x, y).is_nan());
        assert!(binary::<f64, f64>(Op::F64Min, x.into(), y.into()).is_nan());
        assert!(binary::<f64, f64>(Op::F64Max, x.into(), y.into()).is_nan());
    }
}

#[test]
fn float_arithmetic() {
    assert_eq!(binary::<f32, f32>(Op::F32Add, 0.1, 0.2), 0.3);
    assert_eq!(binary::<f64, f64>(Op::F64Add, 0.1, 0.2), 0.30000000000000004);
    assert_eq!(binary::<f32, f32>(Op::F32Sub, 1.0, 3.0), -2.0);
    assert_eq!(binary::<f64, f64>(Op::F64Sub, 1.0, 3.0), -2.0);
    assert_eq!(binary::<f32, f32>(Op::F32Mul, f32::MAX, 2.0), f32::INFINITY);
    assert_eq!(binary::<f64, f64>(Op::F64Mul, -1.5, 2.0), -3.0);
    assert_eq!(binary::<f32, f32>(Op::F32Div, 1.0, -0.0), f32::NEG_INFINITY);
    assert_eq!(binary::<f64, f64>(Op::F64Div, 1.0, 4.0), 0.25);
    assert!(binary::<f64, f64>(Op::F64Div, 0.0, 0.0).is_nan());
}

/// Each trapping truncation, with a value just inside each end of its range and one just outside.
#[test]
fn truncation_traps_outside_the_range() {
    for (op, inside, outside) in [
        (
            Op::I32TruncF32S,
            [-2147483648.0f32, 2147483520.0],
            [(-2147483648.0_f32).next_down(), 2147483648.0],
        ),
        (Op::I32TruncF32U, [-0.99999994, 4294967040.0], [-1.0, 4294967296.0]),
        (
            Op::I64TruncF32S,
            [-9223372036854775808.0, 9223371487098961920.0],
            [(-9223372036854775808.0_f32).next_down(), 9223372036854775808.0],
        ),
        (Op::I64TruncF32U, [-0.99999994, 18446742974197923840.0], [-1.0, 18446744073709551616.0]),
    ] {
        for x in inside {
            let result = eval(op, cell(x), 0).expect("in range");
            let back = match op {
                Op::I32TruncF32S => f64::from(result as i32),
                Op::I64TruncF32S => result as i64 as f64,
                _ => result as f64,
            };
            assert_eq!(back, f64::from(x.trunc()), "{op:?} {x}");
        }
        for x in outside.into_iter().chain([f32::INFINITY, f32::NEG_INFINITY]) {
            assert_eq!(trap(op, x, 0.0), IntegerOverflow, "{op:?} {x}");
        }
        assert_eq!(trap(op, f32::NAN, 0.0), BadConversionToInteger, "{op:?}");
        assert_eq!(trap(op, -f32::NAN, 0.0), BadConversionToInteger, "{op:?}");
    }
    for (op, inside, outside) in [
        (
            Op::I32TruncF64S,
            [(-2147483649.0_f64).next_up(), 2147483648.0_f64.next_down()],
            [-2147483649.0, 2147483648.0],
        ),
        (
            Op::I32TruncF64U,
            [(-1.0_f64).next_up(), 4294967296.0_f64.next_down()],
            [-1.0, 4294967296.0],
        ),
        (
            Op::I64TruncF64S,
            [-9223372036854775808.0, 9223372036854775808.0_f64.next_down()],
            [(-9223372036854775808.0_f64).next_down(), 9223372036854775808.0],
        ),
        (
            Op::I64TruncF64U,
            [(-1.0_f64).next_up(), 18446744073709551616.0_f64.next_down()],
            [-1.0, 18446744073709551616.0],
        ),
    ] {
        for x in inside {
            let result = eval(op, cell(x), 0).expect("in range");
            let back = match op {
                Op::I32TruncF64S => f64::from(result as i32),
                Op::I64TruncF64S => result as i64 as f64,
                _ => result as f64,
            };
            assert_eq!(back, x.trunc(), "{op:?} {x}");
        }
        for x in outside.into_iter().chain([f64::INFINITY, f64::NEG_INFINITY]) {
            assert_eq!(trap(op, x, 0.0), IntegerOverflow, "{op:?} {x}");
        }
        assert_eq!(trap(op, f64::NAN, 0.0), BadConversionToInteger, "{op:?}");
    }
}

#[test]
fn saturating_truncation_never_traps() {
    for (f32_op, f64_op, min, max) in [
        (Op::I32TruncSatF32S, Op::I32TruncSatF64S, cell(i32::MIN), cell(i32::MAX)),
        (Op::I32TruncSatF32U, Op::I32TruncSatF64U, 0, cell(u32::MAX)),
        (Op::I64TruncSatF32S, Op::I64TruncSatF64S, cell(i64::MIN), cell(i64::MAX)),
        (Op::I64TruncSatF32U, Op::I64TruncSatF64U, 0, u64::MAX),
    ] {
        for (x, expected) in [
            (f32::NAN, 0),
            (f32::INFINITY, max),
            (f32::NEG_INFINITY, min),
            (1e30, max),
            (-1e30, min),
            (1.9, 1),
            (-0.9, 0),
        ] {
            assert_eq!(eval(f32_op, cell(x), 0), Ok(expected), "{f32_op:?} {x}");
            assert_eq!(eval(f64_op, cell(f64::from(x)), 0), Ok(expected), "{f64_op:?} {x}");
        }
    }
}

#[test]
fn conversions() {
    assert_eq!(unary::<u64, u32>(Op::I32WrapI64, 0x1_8000_0000), 0x8000_0000);
    assert_eq!(unary::<i32, i64>(Op::I64ExtendI32S, -1), -1);
    assert_eq!(unary::<i32, i64>(Op::I64ExtendI32U, -1), 0xffff_ffff);
    assert_eq!(unary::<i32, f32>(Op::F32ConvertI32S, -1), -1.0);
    assert_eq!(unary::<i32, f32>(Op::F32ConvertI32U, -1), 4294967296.0);
    assert_eq!(unary::<i32, f64>(Op::F64ConvertI32S, -1), -1.0);
    assert_eq!(unary::<i32, f64>(Op::F64ConvertI32U, -1), 4294967295.0);
    assert_eq!(unary::<i64, f32>(Op::F32ConvertI64S, i64::MIN), -9223372036854775808.0);
    assert_eq!(unary::<i64, f64>(Op::F64ConvertI64S, i64::MAX), 9223372036854775808.0);
    // Ties to even, decided on all bits: no double rounding by way of f64.
    assert_eq!(unary::<u64, f32>(Op::F32ConvertI64U, 0x8000_0080_0000_0001), 9223373136366403584.0);
    assert_eq!(unary::<u64, f32>(Op::F32ConvertI64U, 0x8000_0080_0000_0000), 9223372036854775808.0);
    assert_eq!(unary::<u64, f64>(Op::F64ConvertI64U, u64::MAX), 18446744073709551616.0);
    assert_eq!(unary::<u64, f64>(Op::F64ConvertI64U, 0x8000_0000_0000_0401), 9223372036854777856.0);
    assert_eq!(unary::<f64, f32>(Op::F32DemoteF64, 1e300), f32::INFINITY);
    assert_eq!(unary::<f64, u32>(Op::F32DemoteF64, -1e-300), (-0.0f32).to_bits());
    assert_eq!(
        unary::<f32, f64>(Op::F64PromoteF32, f32::MIN_POSITIVE / 2.0),
        5.877471754111438e-39
    );
    assert_eq!(unary::<i32, i32>(Op::I32Extend8S, 0x180), -128);
    assert_eq!(unary::<i32, i32>(Op::I32Extend16S, 0x1_7fff), 32767);
    assert_eq!(unary::<i64, i64>(Op::I64Extend8S, 0xff), -1);
    assert_eq!(unary::<i64, i64>(Op::I64Extend16S, 0x8000), -32768);
    assert_eq!(unary::<i64, i64>(Op::I64Extend32S, 0x1_8000_0000), i64::from(i32::MIN));
}

/// WebAssembly requires quiet NaN results of arithmetic; the machine chooses the payload.
#[test]
fn arithmetic_gives_quiet_nans_and_canonical_nan_fixes_them() {
    for &op in Op::ALL.iter().filter(|&&op| is_numeric(op) && op.makes_nan()) {
        let signature = op.signature().expect("a fixed signature");
        let signalling = match signature.params[0] {
            ValType::F32 => 0xff80_0001,
            _ => 0xfff0_0000_0000_0001,
        };
        let bits = eval(op, signalling, signalling).expect("no trap");
        let (quiet, canonical) = match signature.results {
            [ValType::F32] => (0x7fc0_0000, u64::from(CANONICAL_NAN_F32)),
            _ => (0x7ff8_0000_0000_0000, CANONICAL_NAN_F64),
        };
        assert_eq!(bits & quiet, quiet, "{op:?}");
        assert_eq!(canonical_nan(op, bits), canonical, "{op:?}");
        let one = eval(op, cell(1.0f64), cell(1.0f64)).expect("no trap");
        if !matches!(signature.params[0], ValType::F32) {
            assert_eq!(canonical_nan(op, one), one, "{op:?} is no NaN");
        }
    }
    for op in [Op::F64Neg, Op::F64Copysign, Op::F64ReinterpretI64, Op::I64Add, Op::I64Load] {
        assert_eq!(canonical_nan(op, u64::MAX), u64::MAX, "{op:?} keeps bits");
    }
}
