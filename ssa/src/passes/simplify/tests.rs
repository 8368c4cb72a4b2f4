use slotvm_bytecode::VerifiedModule;

use super::*;
use crate::construction::build::BuildOptions;
use crate::construction::promote::{Scratch, promote};
use crate::ir::verify::{Form, verify};
use crate::tools::samples::{blocks_after, random_walk, slot_form, walk};
use crate::tools::testing::Rng;

fn assert_valid(f: &Function, module: &VerifiedModule) {
    verify(f, Form::Ssa, module).unwrap_or_else(|violation| panic!("{violation}\n{f}"));
}

/// The instructions and blocks that are left of a function, without locations.
fn simplified(text: &str) -> (String, SimplificationReport) {
    blocks_after(text, simplify)
}

#[test]
fn constants_are_folded_and_branches_follow() {
    let (left, report) = simplified(
        "func f0(v0: i64) -> (i64) {
        b0:
          v1 = i64.const 6
          v2 = i64.const 7
          v3 = i64.mul v1, v2
          v4 = i64.const 42
          v5 = i64.eq v3, v4
          br_if v5, b2(v3), b1
        b1:
          br b2(v0)
        b2(v6: i64):
          return v6
        }",
    );
    assert_eq!(left, "b0:; v1 = i64.const 42; br b1; b1:; return v1");
    let expected = SimplificationReport { n_folded: 2, n_branches: 1, n_phis: 1, n_unused: 4 };
    assert_eq!(report, expected);
}

#[test]
fn what_traps_stays_and_so_do_nans_of_the_machine() {
    let text = "func f0() -> (i32, f64) {
        b0:
          v0 = i32.const 1
          v1 = i32.const 0
          v2 = i32.div_s v0, v1
          v3 = i32.div_s v1, v0
          v4 = f64.const 0x0p0
          v5 = f64.div v4, v4
          v6 = f64.neg v4
          return v3, v5
        }";
    let (left, report) = simplified(text);
    assert!(left.contains("i32.div_s v0, v1") && left.contains("f64.div"), "{left}");
    assert_eq!((report.n_folded, left.matches("div").count()), (2, 2), "{left}");
}

#[test]
fn switches_take_the_default_beyond_their_list() {
    let text = |selector: i32| {
        let text = format!(
            "func f0() -> (i32) {{
            b0:
              v0 = i32.const {selector}
              br_table v0, [b3, b2], b1
            b1:
              v1 = i32.const 33
              return v1
            b2:
              v2 = i32.const 22
              return v2
            b3:
              v3 = i32.const 11
              return v3
            }}"
        );
        simplified(&text).0
    };
    for (selector, result) in [(0, 11), (1, 22), (2, 33), (-1, 33)] {
        assert!(text(selector).ends_with(&format!("i32.const {result}; return v0")), "{selector}");
    }
}

#[test]
fn phis_that_only_use_each_other_go() {
    let (left, report) = simplified(
        "func f0(v0: i64) -> (i64) {
        b0:
          br b1(v0, v0)
        b1(v1: i64, v2: i64):
          v3 = i64.eqz v1
          v4 = i64.const 1
          v5 = i64.sub v1, v4
          br_if v3, b2, b1(v5, v2)
        b2:
          return v0
        }",
    );
    assert_eq!((report.n_phis, left.matches("i64)").count()), (1, 1), "{left}");
    let (left, _) = simplified(
        "func f0(v0: i32, v1: i64) -> (i64) {
        b0:
          br b1(v1)
        b1(v2: i64):
          v3 = i64.add v2, v2
          br_if v0, b2, b1(v3)
        b2:
          return v1
        }",
    );
    assert!(!left.contains("add") && left.contains("br_if v0, b2, b1"), "{left}");
}

#[test]
fn random_functions_compute_the_same() {
    let mut rng = Rng(41);
    let mut total = 0;
    for _ in 0..1_000 {
        let module = random_walk(&mut rng);
        let options = BuildOptions { fuel: true, stack_cells: false, polls: true, waits: false };
        let mut ssa = slot_form(&module, module.n_funcs() - 1, &options);
        promote(&mut ssa, &mut Scratch::default());
        let mut simple = ssa.clone();
        let report = simplify(&mut simple);
        assert_valid(&simple, &module);
        total += report.n_folded.min(1) + report.n_unused.min(1);
        for seed in 0..4 {
            let args = [rng.next(), rng.next()].map(u128::from);
            let run = |f: &Function| walk(&module, vec![f.clone()], &args, seed);
            assert_eq!(run(&simple), run(&ssa), "{ssa}\n{simple}");
        }
    }
    assert!(total > 200, "{total}");
}
