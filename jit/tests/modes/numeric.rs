//! Each numeric instruction on edge values, against its definition.

use std::fmt::Write;

use slotvm::Val;
use slotvm_bytecode::numeric::{canonical_nan, eval, is_numeric};
use slotvm_bytecode::{Op, ValType};

use crate::engines::{Guest, Setup, candidates};

const EDGES_32: [u32; 10] = [0, 1, 2, 31, 33, 0x7f, 0x8000, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];

const EDGES_64: [u64; 11] = [
    0,
    1,
    63,
    65,
    0x80,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    i64::MAX as u64,
    i64::MIN as u64,
    u64::MAX,
];

const EDGES_FLOAT: [f64; 24] = [
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    0.999_999_999,
    -0.999_999_999,
    16_777_217.0,
    2_147_483_647.0,
    2_147_483_648.0,
    -2_147_483_648.0,
    -2_147_483_649.0,
    4_294_967_295.0,
    4_294_967_296.0,
    9_223_372_036_854_775_808.0,
    -9_223_372_036_854_775_808.0,
    18_446_744_073_709_551_616.0,
    1e300,
    5e-324,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

/// Edge values of a type, as cells.
fn edges(ty: ValType) -> Vec<u64> {
    match ty {
        ValType::I32 => EDGES_32.map(u64::from).into(),
        ValType::I64 => EDGES_64.into(),
        // A NaN with a payload and a sign besides.
        ValType::F32 => {
            let plain = EDGES_FLOAT.iter().map(|&x| u64::from((x as f32).to_bits()));
            plain.chain([0xffa0_0001]).collect()
        }
        _ => EDGES_FLOAT.iter().map(|x| x.to_bits()).chain([0xfff4 << 48 | 1]).collect(),
    }
}

fn val(ty: ValType, cell: u64) -> Val {
    match ty {
        ValType::I32 => Val::I32(cell as i32),
        ValType::I64 => Val::I64(cell as i64),
        ValType::F32 => Val::F32(cell as u32),
        _ => Val::F64(cell),
    }
}

fn numeric_ops() -> impl Iterator<Item = Op> {
    Op::ALL.iter().copied().filter(|&op| is_numeric(op))
}

/// A function for each instruction. Float results are returned as integers, so that all bits count.
fn source() -> String {
    let mut source = String::new();
    for op in numeric_ops() {
        let signature = op.signature().unwrap();
        let params = signature.params.iter().map(|ty| ty.name()).collect::<Vec<_>>().join(", ");
        let (result, cast) = match signature.results[0] {
            ValType::F32 => (ValType::I32, "i32.reinterpret_f32"),
            ValType::F64 => (ValType::I64, "i64.reinterpret_f64"),
            ty => (ty, ""),
        };
        let name = op.mnemonic();
        writeln!(source, "export \"{name}\" func op.{name}").unwrap();
        writeln!(source, "func op.{name}({params}) -> {result} {{ local.get 0").unwrap();
        if signature.params.len() == 2 {
            writeln!(source, "local.get 1").unwrap();
        }
        writeln!(source, "{name} {cast} return }}").unwrap();
    }
    source
}

/// The outcome by definition, as `Guest::call` shows it.
fn expected(op: Op, a: u64, b: u64) -> Result<u64, String> {
    eval(op, a, b).map_err(|code| {
        // The instruction follows its operands, each of two bytes.
        let offset = 2 * op.signature().unwrap().params.len();
        format!("{code} at op.{}+{offset:#x}", op.mnemonic())
    })
}

fn is_nan(ty: ValType, cell: u64) -> bool {
    match ty {
        ValType::F32 => f32::from_bits(cell as u32).is_nan(),
        ValType::F64 => f64::from_bits(cell).is_nan(),
        _ => false,
    }
}

fn check_all(canonical_nans: bool) {
    let setup = Setup { canonical_nans, ..Setup::default() };
    let source = source();
    for candidate in &candidates(setup) {
        let mut guest = Guest::new(candidate, setup, &source);
        for op in numeric_ops() {
            let signature = op.signature().unwrap();
            let is_binary = signature.params.len() == 2;
            let firsts = edges(signature.params[0]);
            let seconds = if is_binary { edges(signature.params[1]) } else { vec![0] };
            for (&a, &b) in firsts.iter().flat_map(|a| seconds.iter().map(move |b| (a, b))) {
                let args: Vec<Val> =
                    signature.params.iter().zip([a, b]).map(|(&ty, cell)| val(ty, cell)).collect();
                let outcome = guest.call(op.mnemonic(), &args);
                let result = signature.results[0];
                let expected = match expected(op, a, b) {
                    Ok(cell) if op.makes_nan() && is_nan(result, cell) && !canonical_nans => {
                        // The machine's choice, but a NaN.
                        let bits = outcome.strip_prefix("0x").expect("a value");
                        let bits = u64::from_str_radix(bits, 16).expect("digits");
                        assert!(is_nan(result, bits), "{op:?} {a:#x} {b:#x} in {}", candidate.name);
                        continue;
                    }
                    Ok(cell) if canonical_nans => format!("{:#x}", canonical_nan(op, cell)),
                    Ok(cell) => format!("{cell:#x}"),
                    Err(trap) => trap,
                };
                assert_eq!(outcome, expected, "{op:?} {a:#x} {b:#x} in {}", candidate.name);
            }
        }
    }
}

#[test]
fn numeric_instructions_compute_what_their_definition_says() {
    check_all(false);
}

#[test]
fn canonical_nans_have_the_same_bits_everywhere() {
    check_all(true);
}

#[test]
fn constant_operands_change_nothing() {
    // The back ends have other paths for constants, above all for division.
    let setup = Setup::default();
    let mut source = String::new();
    let mut cases = Vec::new();
    for op in numeric_ops() {
        let signature = op.signature().unwrap();
        let [ty @ (ValType::I32 | ValType::I64), _] = signature.params[..] else { continue };
        let result = signature.results[0];
        let small = [0u64, 1, 3, 7, 8, 10, 31, 641, 65_521];
        let large = [1_000_000_007, i32::MAX as u64, i32::MIN as u64, i64::MIN as u64, u64::MAX];
        for constant in small.into_iter().chain(large) {
            let constant = if ty == ValType::I32 { constant & 0xffff_ffff } else { constant };
            let name = format!("{}.{}", op.mnemonic(), cases.len());
            let text = if ty == ValType::I32 { constant as i32 as i64 } else { constant as i64 };
            writeln!(
                source,
                "export \"{name}\" func {name}
                 func {name}(a: {ty}) -> {result} {{ local.get a {ty}.const {text} {} return }}",
                op.mnemonic()
            )
            .unwrap();
            cases.push((name, op, ty, constant));
        }
    }
    for candidate in &candidates(setup) {
        let mut guest = Guest::new(candidate, setup, &source);
        for &(ref name, op, ty, constant) in &cases {
            for a in edges(ty) {
                let outcome = guest.call(name, &[val(ty, a)]);
                match eval(op, a, constant) {
                    Ok(cell) => {
                        let what = format!("{name} {a:#x} in {}", candidate.name);
                        assert_eq!(outcome, format!("{cell:#x}"), "{what}");
                    }
                    Err(code) => {
                        assert!(outcome.starts_with(&code.to_string()), "{name} {outcome}")
                    }
                }
            }
        }
    }
}
