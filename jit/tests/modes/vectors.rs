//! Each instruction on vectors on edge values, against its definition, and vectors in all places where
//! values can be.

use std::fmt::Write;

use slotvm::Val;
use slotvm_bytecode::vector::{canonical_nans, eval, is_vector_numeric};
use slotvm_bytecode::{ImmKind, Op, ValType};

use crate::engines::{Guest, Setup, candidates, compare};

/// Vectors whose lanes of all widths are at edges, and some that are not.
fn vectors() -> Vec<u128> {
    let of_f32 = |lanes: [f32; 4]| {
        lanes.iter().rev().fold(0, |bits, lane| bits << 32 | u128::from(lane.to_bits()))
    };
    let of_f64 =
        |lanes: [f64; 2]| u128::from(lanes[0].to_bits()) | u128::from(lanes[1].to_bits()) << 64;
    vec![
        0,
        u128::MAX,
        0x0f0e_0d0c_0b0a_0908_0706_0504_0302_0100,
        0x807f_ff01_8000_7fff_8000_0000_7fff_ffff,
        0x8000_0000_0000_0000_7fff_ffff_ffff_ffff,
        0x1011_f0ff_8080_7f7f_0102_fefd_c3a5_5a3c,
        of_f32([0.0, -0.0, 1.5, -2.5]),
        of_f32([f32::NAN, f32::INFINITY, 3e9, -3e9]),
        of_f32([0.5, -0.5, 4_294_967_296.0, f32::MIN_POSITIVE]),
        of_f64([0.0, -0.0]),
        of_f64([f64::NAN, f64::NEG_INFINITY]),
        of_f64([4_294_967_295.5, -2_147_483_649.0]),
        of_f64([1e300, 2.5]),
    ]
}

/// Edge values of a type, as bits.
fn edges(ty: ValType) -> Vec<u128> {
    match ty {
        ValType::V128 => vectors(),
        ValType::I32 => [0, 1, 7, 9, 33, 0x8000, 0xffff_ffff, 0x7fff_fff0].to_vec(),
        ValType::I64 => [0, 1, u64::MAX.into(), 1 << 63, 0x0123_4567_89ab_cdef].to_vec(),
        ValType::F32 => [0.0, -1.5, f32::NAN].map(|x: f32| x.to_bits().into()).to_vec(),
        _ => [0.0, -1.5, f64::NAN].map(|x: f64| x.to_bits().into()).to_vec(),
    }
}

fn val(ty: ValType, bits: u128) -> Val {
    match ty {
        ValType::I32 => Val::I32(bits as i32),
        ValType::I64 => Val::I64(bits as i64),
        ValType::F32 => Val::F32(bits as u32),
        ValType::F64 => Val::F64(bits as u64),
        _ => Val::V128(bits.into()),
    }
}

/// An instruction with immediates, as text and as [`eval`] takes them.
struct Case {
    op: Op,
    name: String,
    text: String,
    imm: u128,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for &op in Op::ALL.iter().filter(|&&op| is_vector_numeric(op)) {
        let imms: Vec<(String, u128)> = match op.imm_kind() {
            ImmKind::Lane => {
                let lanes = 0..op.n_lanes().unwrap();
                lanes.map(|lane| (lane.to_string(), lane.into())).collect()
            }
            ImmKind::Lanes => {
                let orders: [[u8; 16]; 4] = [
                    std::array::from_fn(|i| i as u8),
                    std::array::from_fn(|i| 31 - i as u8),
                    std::array::from_fn(|i| (i as u8 * 7 + 3) % 32),
                    [5; 16],
                ];
                let text = |lanes: [u8; 16]| lanes.map(|lane| lane.to_string()).join(" ");
                orders.map(|lanes| (text(lanes), u128::from_le_bytes(lanes))).to_vec()
            }
            _ => vec![(String::new(), 0)],
        };
        for (text, imm) in imms {
            let name = format!("{}.{}", op.mnemonic(), cases.len());
            cases.push(Case { op, name, text, imm });
        }
    }
    cases
}

#[test]
fn instructions_compute_what_their_definition_says() {
    let cases = cases();
    let mut source = String::new();
    for Case { op, name, text, .. } in &cases {
        let signature = op.signature().unwrap();
        let params = signature.params.iter().map(|ty| ty.name()).collect::<Vec<_>>().join(", ");
        let gets: String =
            (0..signature.params.len()).map(|i| format!("local.get {i}\n")).collect();
        // Floats are given as integers, so that all bits count.
        let (result, cast) = match signature.results[0] {
            ValType::F32 => (ValType::I32, "i32.reinterpret_f32"),
            ValType::F64 => (ValType::I64, "i64.reinterpret_f64"),
            ty => (ty, ""),
        };
        let mnemonic = op.mnemonic();
        writeln!(source, "export \"{name}\" func f.{name}").unwrap();
        writeln!(
            source,
            "func f.{name}({params}) -> {result} {{ {gets} {mnemonic} {text}\n {cast} return }}"
        )
        .unwrap();
    }
    let setup = Setup { canonical_nans: true, ..Setup::default() };
    let mut n_compared = 0;
    for candidate in &candidates(setup) {
        let mut guest = Guest::new(candidate, setup, &source);
        for Case { op, name, imm, .. } in &cases {
            let params = op.signature().unwrap().params;
            let all: Vec<Vec<u128>> = params.iter().map(|&ty| edges(ty)).collect();
            let n_calls: usize = all.iter().map(Vec::len).product();
            // Of three operands only some combinations.
            let step = if params.len() == 3 { 37 } else { 1 };
            for call in (0..n_calls).step_by(step) {
                let (mut rest, mut operands) = (call, [0; 3]);
                for (operand, edges) in operands.iter_mut().zip(&all) {
                    *operand = edges[rest % edges.len()];
                    rest /= edges.len();
                }
                let args: Vec<Val> =
                    params.iter().zip(operands).map(|(&ty, bits)| val(ty, bits)).collect();
                let expected = canonical_nans(*op, eval(*op, *imm, operands));
                let outcome = guest.call(name, &args);
                let expected = format!("{expected:#x}");
                assert_eq!(
                    outcome, expected,
                    "{op:?} {imm:#x} {operands:x?} in {}",
                    candidate.name
                );
                n_compared += 1;
            }
        }
    }
    assert!(n_compared > 20_000, "{n_compared}");
}

/// Locals, globals, parameters and results of all kinds, beside numbers of one cell.
const PLACES: &str = r#"
    memory mem 1
    global g: mut v128 = v128.const i32x4 1 2 3 4
    global after: mut i32 = i32.const 77
    table t funcref 2
    elem e t at i32.const 0 func many, few
    export "mem" memory mem
    export "locals" func locals
    export "globals" func globals
    export "calls" func calls
    export "indirect" func indirect
    export "tail" func tail
    export "select" func select
    export "shuffles" func shuffles
    export "loop" func loop
    export "accesses" func accesses

    func locals(n: i32, v: v128, m: i64) -> (i64, v128, i32, v128) {
      local a: v128, k: i32, b: v128, f: f64
      local.get m
      local.get v
      local.tee b
      local.get n
      local.tee k
      local.get a
      local.get b
      i8x16.add
      return
    }

    func globals(v: v128) -> (v128, i32, v128) {
      global.get g
      global.get after
      local.get v
      global.set g
      global.get g
      i32.const 9
      global.set after
      return
    }

    func many(a: i32, v: v128, w: v128, b: i64) -> (v128, i32, v128, i64, v128, f64, v128, v128, v128, v128, v128, v128, v128, v128) {
      local.get v
      local.get a
      local.get w
      local.get b
      local.get v
      f64.const 2.5
      local.get w
      local.get v
      local.get w
      local.get v
      local.get w
      local.get v
      local.get w
      local.get w
      return
    }

    func few(v: v128, w: v128) -> v128 {
      local.get w
      local.get v
      i16x8.sub
      return
    }

    func calls(v: v128, w: v128) -> (v128, i32, v128, i64, v128, f64, v128, v128, v128, v128, v128, v128, v128, v128) {
      i32.const -5
      local.get w
      local.get v
      i64.const 123456789012
      call many
      return
    }

    func indirect(v: v128, w: v128, i: i32) -> v128 {
      local.get v
      local.get w
      local.get i
      call_indirect (v128, v128) -> v128, t
      return
    }

    func tail(v: v128, w: v128) -> v128 {
      local.get w
      local.get v
      return_call few
    }

    func select(v: v128, w: v128, i: i32) -> v128 {
      local.get v
      local.get w
      local.get i
      select
      return
    }

    func shuffles(v: v128, w: v128, i: i32) -> (v128, v128, i32, v128, i32, i32, v128) {
      local.get v
      local.get i
      swap
      local.get w
      rot
      over
      dup
      drop
      local.get v
      local.get w
      drop
      local.get i
      local.get i
      rot
      return
    }

    func loop(v: v128, n: i32) -> v128 {
      local sum: v128, other: v128
      again:
      local.get sum
      local.get other
      local.set sum
      local.get v
      i32x4.add
      local.set other
      local.get n
      i32.const 1
      i32.sub
      local.tee n
      br_if again
      local.get sum
      local.get other
      i64x2.sub
      return
    }

    func accesses(v: v128, at: i32) -> (v128, v128, v128, v128) {
      local.get at
      local.get v
      v128.store 3
      local.get at
      v128.load32_splat 5
      local.get at
      local.get v
      v128.load16_lane 6 7
      local.get at
      local.get v
      v128.store8_lane 15 2
      local.get at
      v128.load16x4_s 1
      local.get at
      v128.load 2
      return
    }
"#;

#[test]
fn vectors_are_values_like_others() {
    let [v, w] =
        [0x0f1e_2d3c_4b5a_6978_8796_a5b4_c3d2_e1f0, 0x1357_9bdf_0246_8ace_ffff_0000_8000_7fff]
            .map(|bits: u128| Val::V128(bits.into()));
    let i32 = Val::I32;
    let mut calls: Vec<(&str, Vec<Val>)> = vec![
        ("locals", vec![i32(-3), v, Val::I64(-1)]),
        ("globals", vec![v]),
        ("globals", vec![w]),
        ("calls", vec![v, w]),
        ("tail", vec![v, w]),
        ("select", vec![v, w, i32(0)]),
        ("select", vec![v, w, i32(2)]),
        ("shuffles", vec![v, w, i32(42)]),
        ("loop", vec![v, i32(1)]),
        ("loop", vec![w, i32(10)]),
    ];
    calls.extend((0..3).map(|i| ("indirect", vec![v, w, i32(i)])));
    calls.extend([0, 100, 65_517, 65_518, 65_535, -1].map(|at| ("accesses", vec![w, i32(at)])));
    let outcomes = compare(PLACES, &calls);
    let of = |i: usize| outcomes[i].split(", memory").next().unwrap().to_owned();
    let (v, w) = ("0xf1e2d3c4b5a69788796a5b4c3d2e1f0", "0x13579bdf02468aceffff000080007fff");
    assert_eq!(of(0), format!("0xffffffffffffffff {v} 0xfffffffd {v}"));
    assert_eq!(of(1), format!("0x4000000030000000200000001 0x4d {v}"));
    assert_eq!(of(2), format!("{v} 0x9 {w}"));
    assert!(of(3).starts_with(&format!("{w} 0xfffffffb {v} 0x1cbe991a14 {w} 0x4004000000000000d")));
    assert_eq!(of(5), w);
    assert_eq!(of(6), v);
    assert_eq!(of(7), format!("{v} {w} 0x2a {w} 0x2a 0x2a {v}"));
}
