use slotvm_bytecode::VerifiedModule;

use super::*;
use crate::construction::build::BuildOptions;
use crate::construction::promote::{Scratch, promote};
use crate::ir::verify::effects::Effects;
use crate::ir::verify::{Form, verify};
use crate::tools::samples::{blocks_after, random_walk, slot_form, walk};
use crate::tools::testing::Rng;

fn simplified(text: &str) -> (String, CfgReport) {
    blocks_after(text, simplify_cfg)
}

#[test]
fn chains_of_blocks_become_one() {
    let (left, report) = simplified(
        "func f0(v0: i32) -> (i32) {
        b0:
          br b1(v0)
        b1(v1: i32):
          v2 = i32.div_s v1, v0
          br b2(v2)
        b2(v3: i32):
          v4 = i32.div_s v3, v1
          return v4
        }",
    );
    assert_eq!(left, "b0:; v1 = i32.div_s v0, v0; v2 = i32.div_s v1, v0; return v2");
    assert_eq!(report, CfgReport { n_merged: 2, ..CfgReport::default() });
}

#[test]
fn branches_to_one_block_become_jumps() {
    let (left, report) = simplified(
        "func f0(v0: i32) -> (i32) {
        b0:
          br_table v0, [b1(v0), b1(v0)], b1(v0)
        b1(v1: i32):
          return v1
        }",
    );
    assert_eq!(left, "b0:; return v0");
    assert_eq!((report.n_branches, report.n_merged), (1, 1));
}

#[test]
fn edges_skip_empty_blocks() {
    let (left, report) = simplified(
        "func f0(v0: i32, v1: i32) -> (i32) {
        b0:
          br_if v0, b2, b1
        b1:
          br_if v1, b3(v0), b4
        b2:
          br b3(v1)
        b3(v2: i32):
          br b5(v2)
        b4:
          v3 = i32.div_s v0, v1
          br b5(v3)
        b5(v4: i32):
          return v4
        }",
    );
    let expected = "b0:; br_if v0, b3(v1), b1; b1:; br_if v1, b3(v0), b2; b2:; \
                    v2 = i32.div_s v0, v1; br b3(v2); b3(v3: i32):; return v3";
    assert_eq!(left, expected);
    assert_eq!((report.n_forwarded, report.n_merged), (3, 0));
}

/// `a && b`, kept as 0 or 1 and tested again.
const AND: &str = "func f0(v0: i32, v1: i32) -> (i32) {
        b0:
          v2 = i32.const 0
          br_if v0, b1, b2(v2)
        b1:
          v3 = i32.const 0
          v4 = i32.ne v1, v3
          br b2(v4)
        b2(v5: i32):
          v6 = i32.eqz v5
          v7 = i32.const 10
          br_if v6, b3(v7), b4
        b3(v8: i32):
          return v8
        b4:
          v9 = i32.const 20
          br b3(v9)
        }";

#[test]
fn constants_that_decide_a_branch_skip_it() {
    let (left, report) = simplified(AND);
    let expected = "b0:; v2 = i32.const 0; br_if v0, b2, b1; b1:; v3 = i32.const 10; br b4(v3); b2:; \
                    v4 = i32.const 0; v5 = i32.ne v1, v4; v6 = i32.eqz v5; v7 = i32.const 10; \
                    br_if v6, b4(v7), b3; b3:; v8 = i32.const 20; br b4(v8); b4(v9: i32):; return v9";
    assert_eq!(left, expected);
    assert_eq!((report.n_threaded, report.n_merged), (1, 1));
}

/// `a || b` as bytecode from LLVM has it: the operand itself is kept.
#[test]
fn a_condition_is_known_on_the_edges_of_its_branch() {
    let (left, report) = simplified(
        "func f0(v0: i32, v1: i32) -> (i32) {
        b0:
          br_if v0, b2(v0), b1
        b1:
          v2 = i32.div_s v1, v1
          br b2(v2)
        b2(v3: i32):
          br_if v3, b3, b4
        b3:
          v4 = i32.const 1
          return v4
        b4:
          v5 = i32.const 2
          return v5
        }",
    );
    let expected = "b0:; br_if v0, b3, b1; b1:; v2 = i32.div_s v1, v1; br_if v2, b3, b2; b2:; \
                    v3 = i32.const 2; return v3; b3:; v4 = i32.const 1; return v4";
    assert_eq!(left, expected);
    assert_eq!(report.n_threaded, 1);
}

/// `(a && b) && c`: the first 0 skips both tests, with the operand that the last phi wants.
#[test]
fn a_constant_skips_one_branch_after_the_other() {
    let (left, report) = simplified(
        "func f0(v0: i32, v1: i32, v2: i32) -> (i32) {
        b0:
          v3 = i32.const 0
          br_if v0, b1, b2(v3)
        b1:
          v4 = i32.ne v1, v3
          br b2(v4)
        b2(v5: i32):
          v6 = i32.const 0
          br_if v5, b3, b4(v6)
        b3:
          v7 = i32.ne v2, v3
          br b4(v7)
        b4(v8: i32):
          br_if v8, b5, b6
        b5:
          v9 = i32.const 1
          return v9
        b6:
          v10 = i32.const 2
          return v10
        }",
    );
    assert_eq!(report.n_threaded, 3, "{left}");
    assert!(!left.contains("i32):"), "no phi is left: {left}");
}

#[test]
fn values_that_other_blocks_use_keep_their_block() {
    let text = AND.replace("v9 = i32.const 20", "v9 = i32.add v5, v5");
    let (left, report) = simplified(&text);
    assert_eq!(report.n_threaded, 0, "{left}");
}

#[test]
fn loop_headers_and_their_only_latch_stay() {
    let (left, report) = simplified(
        "func f0(v0: i32) -> (i32) {
        b0:
          v1 = i32.const 1
          br b1(v1)
        b1(v2: i32):
          br_if v2, b2, b3
        b2:
          v4 = i32.div_s v0, v2
          br_if v4, b4(v4), b5
        b3:
          return v0
        b4(v5: i32):
          br b1(v5)
        b5:
          v6 = i32.div_s v4, v0
          br b4(v6)
        }",
    );
    assert_eq!((report.n_threaded, report.n_forwarded), (0, 0), "{left}");
}

#[test]
fn edges_do_not_carry_ever_more_operands() {
    let many = EDGE_OPERANDS_MAX + 1;
    let list =
        |prefix: &str| (0..many).map(|_| format!("{prefix}v0")).collect::<Vec<_>>().join(", ");
    let params: Vec<String> = (0..many).map(|i| format!("v{}: i32", i + 10)).collect();
    let text = format!(
        "func f0(v0: i32) -> (i32) {{
        b0:
          br_table v0, [b1, b1], b2
        b1:
          br b3({args})
        b2:
          v1 = i32.div_s v0, v0
          br b3({args})
        b3({params}):
          v2 = i32.add v10, v11
          return v2
        }}",
        args = list(""),
        params = params.join(", "),
    );
    let (_, report) = simplified(&text);
    assert_eq!(report.n_forwarded, 0);
}

fn assert_valid(f: &Function, module: &VerifiedModule) {
    verify(f, Form::Ssa, module).unwrap_or_else(|violation| panic!("{violation}\n{f}"));
}

#[test]
fn random_functions_have_the_same_effects() {
    let mut rng = Rng(43);
    let mut total = CfgReport::default();
    for i in 0..1_000 {
        let module = random_walk(&mut rng);
        let options =
            BuildOptions { fuel: i % 4 == 0, stack_cells: false, polls: true, waits: false };
        let mut ssa = slot_form(&module, module.n_funcs() - 1, &options);
        promote(&mut ssa, &mut Scratch::default());
        let mut simple = ssa.clone();
        let effects = Effects::of(&ssa);
        let report = simplify_cfg(&mut simple);
        assert_valid(&simple, &module);
        effects.check(&simple).unwrap_or_else(|violation| panic!("{violation}\n{ssa}\n{simple}"));
        total.n_forwarded += report.n_forwarded;
        total.n_merged += report.n_merged;
        for seed in 0..4 {
            let args = [rng.next(), rng.next()].map(u128::from);
            let run = |f: &Function| walk(&module, vec![f.clone()], &args, seed);
            assert_eq!(run(&simple), run(&ssa), "{ssa}\n{simple}");
        }
    }
    assert!(total.n_forwarded > 100 && total.n_merged > 100, "{total:?}");
}
