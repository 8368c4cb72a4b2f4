use super::*;
use crate::ir::eval::{Imports, Machine, Options};
use crate::ir::parse::parse;
use crate::tools::samples::{blocks_after, module};
use crate::tools::testing::Rng;

/// The instructions that are left of a function of one block that returns `v9`.
fn left(params: &str, result: &str, insts: &str) -> String {
    let text = format!("func f0({params}) -> ({result}) {{\n b0:\n {insts}\n return v9\n }}");
    let (left, _) = blocks_after(&text, peephole);
    left.trim_start_matches("b0:; ").to_owned()
}

#[test]
fn masks_of_clear_bits_go() {
    let byte = "v1 = i32.load8_u v0\n v2 = i32.const 255\n";
    let kept = left("v0: i32", "i32", &format!("{byte} v9 = i32.and v2, v1"));
    assert_eq!(kept, "v1 = i32.load8_u v0; v2 = i32.const 255; return v1");
    let kept = left("v0: i32", "i32", &format!("{byte} v3 = i32.const 127\n v9 = i32.and v1, v3"));
    assert!(kept.contains("i32.and"), "{kept}");
    let sum = "v3 = i32.add v1, v1\n v4 = i32.const 511\n v9 = i32.and v3, v4";
    assert!(!left("v0: i32", "i32", &format!("{byte} {sum}")).contains("and"));
    let shifted =
        "v1 = i64.const 60\n v2 = i64.shr_u v0, v1\n v3 = i64.const 15\n v9 = i64.and v2, v3";
    assert!(!left("v0: i64", "i64", shifted).contains("and"));
}

#[test]
fn numbers_that_are_zero_or_one_are_not_tested_for_it() {
    let test = "v2 = i32.lt_s v0, v1\n v3 = i32.const 1\n v4 = i32.const 0\n v5 = i32.const -1\n";
    let start = "v2 = i32.lt_s v0, v1; v3 = i32.const 1; v4 = i32.const 0; v5 = i32.const -1; ";
    for (insts, expected) in [
        ("v9 = i32.and v2, v3", "return v2"),
        ("v9 = i32.ne v2, v4", "return v2"),
        ("v9 = i32.eq v2, v3", "return v2"),
        ("v9 = i32.eq v2, v4", "v6 = i32.eqz v2; return v6"),
        ("v9 = i32.ne v3, v2", "v6 = i32.eqz v2; return v6"),
        ("v9 = i32.xor v2, v3", "v6 = i32.eqz v2; return v6"),
        (
            "v8 = i32.xor v2, v5\n v9 = i32.and v8, v3",
            "v6 = i32.xor v2, v5; v7 = i32.eqz v2; return v7",
        ),
        ("v8 = i32.eqz v2\n v9 = i32.eqz v8", "v6 = i32.eqz v2; return v2"),
        ("v9 = i32.eq v0, v4", "v6 = i32.eqz v0; return v6"),
        ("v9 = i32.ne v0, v4", "v6 = i32.ne v0, v4; return v6"),
        ("v9 = i32.and v0, v3", "v6 = i32.and v0, v3; return v6"),
    ] {
        let kept = left("v0: i32, v1: i32", "i32", &format!("{test} {insts}"));
        assert_eq!(kept, format!("{start}{expected}"), "{insts}");
    }
}

#[test]
fn extensions_of_what_is_extended_go() {
    let kept = left("v0: i32", "i32", "v1 = i32.load8_s v0\n v9 = i32.extend16_s v1");
    assert_eq!(kept, "v1 = i32.load8_s v0; return v1");
    let kept = left("v0: i32", "i32", "v1 = i32.load16_s v0\n v9 = i32.extend8_s v1");
    assert!(kept.contains("extend8"), "{kept}");
    let kept = left("v0: i32", "i64", "v1 = i32.load8_u v0\n v9 = i64.extend_i32_s v1");
    assert!(kept.contains("i64.extend_i32_u"), "{kept}");
    let shifts =
        "v1 = i32.load16_s v0\n v2 = i32.const 16\n v3 = i32.shl v1, v2\n v9 = i32.shr_s v3, v2";
    assert!(left("v0: i32", "i32", shifts).ends_with("return v1"));
    assert!(left("v0: i32", "i32", &shifts.replace("shr_s", "shr_u")).contains("shr_u"));
    assert!(left("v0: i32", "i32", &shifts.replace("16_s v0", "16_u v0")).contains("shr_s"));
}

/// No bit lies above all 64.
#[test]
fn shifts_to_the_left_and_back_by_the_width_are_no_shifts() {
    for (ty, width) in [("i32", 32), ("i64", 64)] {
        for count in [0, width] {
            for back in ["shr_s", "shr_u"] {
                let shifts = format!(
                    "v2 = {ty}.const {count}\n v3 = {ty}.shl v0, v2\n v9 = {ty}.{back} v3, v2"
                );
                let left = left(&format!("v0: {ty}"), ty, &shifts);
                assert_eq!(left.ends_with("return v0"), back == "shr_u", "{shifts}: {left}");
            }
        }
    }
}

/// A byte that is loaded before a loop and again in each round.
const BYTES: &str = "func f0(v0: i32) -> (i32) {
        b0:
          v1 = i32.load8_u v0
          br b1(v0, v1)
        b1(v2: i32, v3: i32):
          v4 = i32.const 255
          v5 = i32.and v3, v4
          v6 = i32.const 1
          v7 = i32.add v2, v6
          v8 = i32.load8_u v7
          br_if v5, b1(v7, v8), b2
        b2:
          return v5
        }";

#[test]
fn phis_have_the_zeros_of_their_operands() {
    assert_eq!(blocks_after(BYTES, peephole).1.n_removed, 1);
    let counted = BYTES.replace("v8 = i32.load8_u v7", "v8 = i32.add v3, v6");
    assert_eq!(blocks_after(&counted, peephole).1.n_removed, 0, "a count has no bound");
    let unknown = BYTES.replace("v1 = i32.load8_u v0", "v1 = i32.load v0");
    assert_eq!(blocks_after(&unknown, peephole).1.n_removed, 0);
}

#[test]
fn long_chains_take_linear_time() {
    let n = 20_000;
    let mut text = String::from("func f0(v0: i32) -> (i32) {\n b0:\n v1 = i32.const 255\n");
    for i in 2..n {
        text += &format!("v{i} = i32.and v{}, v1\n", i - 1);
    }
    text += &format!("return v{}\n }}", n - 1);
    assert_eq!(blocks_after(&text, peephole).1.n_removed, n - 2);
}

/// Random chains of the operations that rules exist for compute the same.
#[test]
fn random_operations_compute_the_same() {
    let ops = [
        "i32.and",
        "i32.or",
        "i32.xor",
        "i32.add",
        "i32.eq",
        "i32.ne",
        "i32.shl",
        "i32.shr_u",
        "i32.shr_s",
        "i32.lt_u",
    ];
    let unary = ["i32.eqz", "i32.extend8_s", "i32.extend16_s", "i32.popcnt"];
    let constants = [0, 1, 1, 2, 8, 16, 24, 31, 127, 255, 65535, -1, i32::MIN];
    let module = module("func f(a: i32, b: i32) -> i32 { unreachable }");
    let mut rng = Rng(47);
    let mut total = PeepholeReport::default();
    for _ in 0..2_000 {
        let mut text = String::from("func f0(v0: i32, v1: i32) -> (i32) {\n b0:\n");
        let n = 24;
        for i in 2..n {
            let mut operand = || if rng.one_in(2) { i - 1 } else { rng.below(i) };
            let (a, b) = (operand(), operand());
            let inst = match rng.below(5) {
                0 | 1 => {
                    format!("i32.const {}", constants[rng.below(constants.len() as u32) as usize])
                }
                2 => format!("{} v{a}", unary[rng.below(unary.len() as u32) as usize]),
                3 => format!("{} v{a}, v{b}", ops[rng.below(ops.len() as u32) as usize]),
                _ => format!("select v{a}, v{b}, v{}", rng.below(i)),
            };
            text += &format!("v{i} = {inst}\n");
        }
        text += &format!("return v{}\n }}", n - 1);
        let before = parse(&text).unwrap_or_else(|error| panic!("{error}"));
        let (mut after, report) = (before.clone(), peephole(&mut before.clone()));
        peephole(&mut after);
        total.n_removed += report.n_removed;
        total.n_changed += report.n_changed;
        for _ in 0..4 {
            let args = [rng.next() as u32, rng.next() as u32 & 255].map(u128::from);
            let run = |f: &Function| {
                let functions = vec![f.clone()];
                Machine::new(&module, functions, Imports::default(), Options::default())
                    .call(0, &args)
            };
            assert_eq!(run(&after), run(&before), "{before}\n{after}");
        }
    }
    assert!(total.n_removed > 500 && total.n_changed > 50, "{total:?}");
}
