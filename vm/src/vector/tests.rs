use super::*;
use crate::op::ImmKind;

fn lanes<const N: usize>(lanes: [i64; N]) -> u128 {
    let bits = 128 / N as u32;
    let mask = u128::MAX >> (128 - bits);
    lanes.iter().rev().fold(0, |vector, &lane| {
        if bits == 128 { lane as u128 } else { vector << bits | lane as u128 & mask }
    })
}

fn floats(lanes: [f32; 4]) -> u128 {
    lanes.iter().rev().fold(0, |vector, lane| vector << 32 | u128::from(lane.to_bits()))
}

fn doubles([a, b]: [f64; 2]) -> u128 {
    u128::from(a.to_bits()) | u128::from(b.to_bits()) << 64
}

#[test]
fn exactly_the_instructions_on_vectors_alone_evaluate() {
    let (mut n, operands) = (0, [3, 0x0102_0304, 1]);
    for &op in Op::ALL.iter().filter(|&&op| is_vector_numeric(op)) {
        assert!(op.is_vector() && op.signature().is_some(), "{op:?}");
        let imm = if op.imm_kind() == ImmKind::Lane { 1 } else { 0 };
        eval(op, imm, operands);
        n += 1;
    }
    // The others access memory, or are the constant.
    assert_eq!(n, 236 - 22 - 1);
}

#[test]
fn lanes_are_little_endian() {
    let a = lanes([1, 2, 3, 4]);
    assert_eq!(a, 0x0000_0004_0000_0003_0000_0002_0000_0001);
    assert_eq!(eval(Op::I32x4ExtractLane, 2, [a, 0, 0]), 3);
    assert_eq!(eval(Op::I8x16ReplaceLane, 15, [0, 0x1ff, 0]), 0xff << 120);
    assert_eq!(eval(Op::I16x8ExtractLaneS, 7, [0x8000 << 112, 0, 0]), 0xffff_8000);
    assert_eq!(eval(Op::I16x8ExtractLaneU, 7, [0x8000 << 112, 0, 0]), 0x8000);
    assert_eq!(eval(Op::I16x8Splat, 0, [0x1_2345, 0, 0]), lanes([0x2345; 8]));
    let order = u128::from_le_bytes(std::array::from_fn(|i| 31 - i as u8));
    let (low, high) = (0x0f0e_0d0c_0b0a_0908_0706_0504_0302_0100, u128::MAX);
    assert_eq!(eval(Op::I8x16Shuffle, order, [high, low, 0]), low.swap_bytes());
    assert_eq!(
        eval(
            Op::I8x16Swizzle,
            0,
            [low, lanes([16, 15, -1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]), 0]
        ),
        lanes([0, 15, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2])
    );
}

#[test]
fn narrow_lanes_saturate_wrap_and_widen() {
    let b = |op, a, b| eval(op, 0, [a, b, 0]);
    let (a, one) = (lanes([i64::from(i16::MAX); 8]), lanes([1; 8]));
    assert_eq!(b(Op::I16x8Add, a, one), lanes([i64::from(i16::MIN); 8]));
    assert_eq!(b(Op::I16x8AddSatS, a, one), a);
    assert_eq!(b(Op::I16x8SubSatU, one, a), 0);
    assert_eq!(
        b(Op::I16x8Q15MulrSatS, lanes([i64::from(i16::MIN); 8]), lanes([i64::from(i16::MIN); 8])),
        a
    );
    assert_eq!(
        b(Op::I8x16NarrowI16x8S, lanes([300, -300, 5, -5, 127, 128, -128, -129]), 0),
        lanes([127, -128, 5, -5, 127, 127, -128, -128, 0, 0, 0, 0, 0, 0, 0, 0])
    );
    assert_eq!(
        b(Op::I16x8NarrowI32x4U, 0, lanes([70_000, -1, 65_535, 3])),
        lanes([0, 0, 0, 0, 65_535, 0, 65_535, 3])
    );
    assert_eq!(
        b(Op::I64x2ExtMulHighI32x4S, lanes([0, 0, -2, 3]), lanes([9, 9, 5, -7])),
        lanes([-10, -21])
    );
    assert_eq!(
        b(Op::I32x4DotI16x8S, lanes([1, 2, 3, 4, -5, 6, 7, 8]), lanes([1; 8])),
        lanes([3, 7, 1, 15])
    );
    assert_eq!(b(Op::I8x16AvgrU, lanes([1; 16]), lanes([2; 16])), lanes([2; 16]));
    assert_eq!(b(Op::I32x4Shl, lanes([1, 2, 3, -1]), 33), lanes([2, 4, 6, -2]));
    assert_eq!(eval(Op::I8x16Bitmask, 0, [0x80 << 120 | 0x80, 0, 0]), 0x8001);
    assert_eq!(eval(Op::I16x8AllTrue, 0, [one, 0, 0]), 1);
    assert_eq!(eval(Op::I16x8AllTrue, 0, [one >> 16, 0, 0]), 0);
}

#[test]
fn floats_are_those_of_numbers() {
    let nan = f32::NAN;
    let (a, b) = (floats([1.0, nan, -0.0, 2.0]), floats([2.0, 1.0, 0.0, nan]));
    assert_eq!(eval(Op::F32x4Lt, 0, [a, b, 0]), lanes([-1, 0, 0, 0]));
    // Unlike the minimum, these treat NaN and zeros by a comparison alone.
    assert_eq!(eval(Op::F32x4PMin, 0, [a, b, 0]), a);
    assert_eq!(eval(Op::F32x4PMax, 0, [a, b, 0]), floats([2.0, nan, -0.0, 2.0]));
    assert_eq!(
        eval(Op::I32x4TruncSatF64x2SZero, 0, [doubles([-3e9, 2.9]), 0, 0]),
        lanes([i32::MIN.into(), 2, 0, 0])
    );
    assert_eq!(
        eval(Op::F32x4DemoteF64x2Zero, 0, [doubles([0.5, -2.0]), 0, 0]),
        floats([0.5, -2.0, 0.0, 0.0])
    );
    assert_eq!(
        eval(Op::F64x2PromoteLowF32x4, 0, [floats([0.5, -2.0, 9.0, 9.0]), 0, 0]),
        doubles([0.5, -2.0])
    );
    let signed_nan = floats([-nan, 1.0, -nan, 2.0]);
    assert_eq!(canonical_nans(Op::F32x4Add, signed_nan), floats([nan, 1.0, nan, 2.0]));
    assert_eq!(canonical_nans(Op::F32x4PMin, signed_nan), signed_nan);
    assert_eq!(canonical_nans(Op::F64x2Sqrt, doubles([-f64::NAN, 1.0])), doubles([f64::NAN, 1.0]));
}

#[test]
fn parts_come_from_memory_and_go_there() {
    let load = |op: Op, bytes, lane, vector| {
        loaded(op.vector_access().expect("a load of a part"), bytes, lane, vector)
    };
    let bytes = 0x8001_7f02_0304_05ff;
    assert_eq!(load(Op::V128Load8x8S, bytes, 0, 0), lanes([-1, 5, 4, 3, 2, 127, 1, -128]));
    assert_eq!(load(Op::V128Load16x4U, bytes, 0, 0), lanes([0x05ff, 0x0304, 0x7f02, 0x8001]));
    assert_eq!(
        load(Op::V128Load32x2S, bytes, 0, 0),
        lanes([0x0304_05ff, i64::from(0x8001_7f02_u32 as i32)])
    );
    assert_eq!(load(Op::V128Load16Splat, 0x1234, 0, 0), lanes([0x1234; 8]));
    assert_eq!(load(Op::V128Load64Zero, bytes, 0, 0), bytes.into());
    assert_eq!(load(Op::V128Load32Lane, 7, 3, lanes([1, 2, 3, 4])), lanes([1, 2, 3, 7]));
    let store = Op::V128Store16Lane.vector_access().expect("a store of a part");
    assert_eq!(stored(store, 2, lanes([1, 2, 3, 4, 5, 6, 7, 8])) as u16, 3);
}
