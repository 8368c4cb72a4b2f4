use super::*;
use crate::construction::build::BuildOptions;
use crate::construction::promote::{Scratch, promote};
use crate::ir::verify::effects::Effects;
use crate::ir::verify::{Form, verify};
use crate::tools::samples::{blocks_after, random_walk, slot_form, walk};
use crate::tools::testing::Rng;

fn converted(text: &str) -> (String, IfConversionReport) {
    blocks_after(text, if_convert)
}

/// The minimum of three as a naive compiler writes it.
const MIN: &str = "func f0(v0: i32, v1: i32, v2: i32) -> (i32) {
        b0:
          v3 = i32.const 1
          v4 = i32.add v0, v3
          v5 = i32.lt_s v4, v1
          br_if v5, b1, b2(v1)
        b1:
          v6 = i32.const 1
          v7 = i32.add v0, v6
          br b2(v7)
        b2(v8: i32):
          v9 = i32.lt_s v2, v8
          br_if v9, b3(v2), b3(v8)
        b3(v10: i32):
          v11 = i32.div_s v10, v0
          return v11
        }";

#[test]
fn triangles_become_selects() {
    let (left, report) = converted(MIN);
    let expected = "b0:; v3 = i32.const 1; v4 = i32.add v0, v3; v5 = i32.lt_s v4, v1; v6 = i32.const 1; \
                    v7 = i32.add v0, v6; v8 = select v7, v1, v5; v9 = i32.lt_s v2, v8; \
                    v10 = select v2, v8, v9; v11 = i32.div_s v10, v0; return v11";
    assert_eq!(left, expected);
    let (n_branches, n_selects, n_moved) = (2, 2, 2);
    let expected =
        IfConversionReport { n_branches, n_moved, n_selects, ..IfConversionReport::default() };
    assert_eq!(report, expected);
}

#[test]
fn nested_diamonds_become_selects_from_inside() {
    let (left, report) = converted(
        "func f0(v0: i32, v1: i32) -> (i32) {
        b0:
          br_if v0, b1, b4
        b1:
          br_if v1, b2(v0), b3
        b2(v2: i32):
          br b5(v2)
        b3:
          v3 = i32.const 7
          br b5(v3)
        b4:
          v4 = i32.sub v0, v1
          br b6(v4)
        b5(v5: i32):
          br b6(v5)
        b6(v6: i32):
          v7 = i32.div_s v6, v0
          return v7
        }",
    );
    let expected = "b0:; v2 = i32.const 7; v3 = select v0, v2, v1; v4 = i32.sub v0, v1; \
                    v5 = select v3, v4, v0; v6 = i32.div_s v5, v0; return v6";
    assert_eq!(left, expected);
    assert_eq!((report.n_branches, report.n_selects), (2, 2));
}

#[test]
fn equal_values_need_no_select() {
    let (left, report) = converted(
        "func f0(v0: i32) -> (i32, i32) {
        b0:
          br_if v0, b1, b2
        b1:
          v1 = i32.const 7
          br b3(v1, v0)
        b2:
          v2 = i32.const 7
          br b3(v2, v1)
        b3(v3: i32, v4: i32):
          return v3, v4
        }"
        .replace("b3(v2, v1)", "b3(v2, v2)")
        .as_str(),
    );
    assert_eq!(report.n_selects, 1);
    assert!(left.ends_with("v3 = select v0, v2, v0; return v1, v3"), "{left}");
}

#[test]
fn a_condition_as_a_number_is_the_condition() {
    let (left, report) = converted(
        "func f0(v0: i32) -> (i32) {
        b0:
          v1 = i32.eqz v0
          v2 = i32.const 1
          v3 = i32.const 0
          br_if v1, b1(v2), b1(v3)
        b1(v4: i32):
          return v4
        }",
    );
    assert_eq!(left, "b0:; v1 = i32.eqz v0; v2 = i32.const 1; v3 = i32.const 0; return v1");
    assert_eq!((report.n_branches, report.n_selects), (1, 0));
}

fn stays(why: &str, text: &str) {
    let (left, report) = converted(text);
    assert_eq!(report.n_branches, 0, "{why}: {left}");
}

#[test]
fn what_is_not_cheap_stays_a_branch() {
    let arm = |insts: &str| {
        format!(
            "func f0(v0: i32, v1: i32) -> (i32) {{
            b0:
              br_if v0, b1, b2(v1)
            b1:
              {insts}
              br b2(v9)
            b2(v10: i32):
              return v10
            }}"
        )
    };
    stays("it traps", &arm("v9 = i32.div_s v0, v1"));
    stays("it charges fuel", &arm("fuel 1\n v9 = i32.add v0, v1"));
    stays("it reads memory", &arm("v9 = i32.load v0"));
    stays("it takes long", &arm("v9 = i32.popcnt v0"));
    let sum =
        "v5 = i32.add v0, v1\n v6 = i32.xor v5, v1\n v7 = i32.add v6, v5\n v8 = i32.xor v7, v5\n";
    stays("there is much of it", &arm(&format!("{sum} v9 = i32.add v8, v5")));
    let (_, report) = converted(&arm(&format!("{sum} v9 = i32.const 3")));
    assert_eq!(report.n_branches, 1, "constants cost nothing");
}

#[test]
fn floats_and_their_equality_stay_branches() {
    stays(
        "floats are not selected",
        "func f0(v0: i32, v1: f64, v2: f64) -> (f64) {
        b0:
          br_if v0, b1(v1), b1(v2)
        b1(v3: f64):
          return v3
        }",
    );
    let compare = |op: &str| {
        format!(
            "func f0(v0: f64, v1: i32, v2: i32) -> (i32) {{
            b0:
              v3 = {op} v0, v0
              br_if v3, b1(v1), b1(v2)
            b1(v4: i32):
              return v4
            }}"
        )
    };
    stays("equality needs two flags", &compare("f64.ne"));
    assert_eq!(converted(&compare("f64.lt")).1.n_selects, 1);
}

#[test]
fn three_values_stay_a_branch() {
    stays(
        "three selects",
        "func f0(v0: i32, v1: i32, v2: i32) -> (i32) {
        b0:
          br_if v0, b1(v0, v1, v2), b1(v1, v2, v0)
        b1(v3: i32, v4: i32, v5: i32):
          v6 = i32.add v3, v4
          v7 = i32.add v6, v5
          return v7
        }",
    );
}

/// A binary search: the next address depends on each load.
#[test]
fn branches_that_let_loads_start_early_stay() {
    let text = "func f0(v0: i32, v1: i32, v2: i32) -> (i32) {
        b0:
          br b1(v0, v1)
        b1(v3: i32, v4: i32):
          v5 = i32.add v3, v4
          v6 = i32.const 1
          v7 = i32.shr_u v5, v6
          v8 = i32.load v7
          v9 = i32.lt_u v8, v2
          br_if v9, b2(v7, v4), b2(v3, v7)
        b2(v10: i32, v11: i32):
          v12 = i32.lt_u v10, v11
          br_if v12, b1(v10, v11), b3
        b3:
          return v10
        }";
    let (left, report) = converted(text);
    assert_eq!((report.n_branches, report.n_kept_for_loads), (0, 1), "{left}");
    // What is not an address may wait.
    let (left, report) = converted(&text.replace("i32.load v7", "i32.load v2"));
    assert_eq!((report.n_branches, report.n_kept_for_loads), (1, 0), "{left}");
}

/// A sum to which every other round of a loop adds twice.
#[test]
fn tests_that_repeat_after_few_rounds_stay_branches() {
    let text = "func f0(v0: i32) -> (i32) {
        b0:
          v1 = i32.const 0
          v20 = i32.const 2
          v2 = i32.const 1
          br b1(v1, v1)
        b1(v3: i32, v4: i32):
          v5 = i32.and v3, v2
          v6 = i32.eqz v5
          br_if v6, b2, b3(v4)
        b2:
          v7 = i32.add v4, v3
          br b3(v7)
        b3(v8: i32):
          v9 = i32.add v8, v3
          v10 = i32.add v3, v2
          v11 = i32.lt_u v10, v0
          br_if v11, b1(v10, v9), b4
        b4:
          return v9
        }";
    let kept = |text: &str| {
        let (_, report) = converted(text);
        (report.n_branches, report.n_kept_for_counters)
    };
    let replaced = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        kept(&text.replace(from, to))
    };
    assert_eq!(kept(text), (0, 1));
    assert_eq!(replaced("v5 = i32.and v3, v2", "v5 = i32.rem_s v3, v20"), (0, 1));
    assert_eq!(replaced("v6 = i32.eqz v5", "v6 = i32.ne v5, v2"), (0, 1));
    assert_eq!(replaced("v10 = i32.add v3, v2", "v10 = i32.sub v3, v20"), (0, 1));
    // What is tested is no counter, goes through more values, or is compared otherwise.
    assert_eq!(replaced("v5 = i32.and v3, v2", "v5 = i32.and v0, v2"), (1, 0));
    assert_eq!(replaced("v5 = i32.and v3, v2", "v5 = i32.and v4, v2"), (1, 0));
    assert_eq!(replaced("v10 = i32.add v3, v2", "v10 = i32.add v3, v0"), (1, 0));
    assert_eq!(replaced("v10 = i32.add v3, v2", "v10 = i32.shl v3, v2"), (1, 0));
    assert_eq!(replaced("v2 = i32.const 1", "v2 = i32.const 16"), (1, 0));
    assert_eq!(replaced("v6 = i32.eqz v5", "v6 = i32.lt_u v5, v2"), (1, 0));
}

#[test]
fn exits_and_back_edges_stay_branches() {
    stays(
        "one side goes back",
        "func f0(v0: i32) -> (i32) {
        b0:
          br b1(v0)
        b1(v1: i32):
          v2 = i32.const 1
          v3 = i32.sub v1, v2
          br_if v3, b1(v3), b2
        b2:
          return v1
        }",
    );
}

#[test]
fn long_chains_of_branches_take_linear_time() {
    let n = 20_000;
    let mut text = String::from("func f0(v0: i32, v1: i32) -> (i32) {\n b0:\n br b1(v0)\n");
    for i in 0..n {
        let (block, param) = (2 * i + 1, 3 * i + 2);
        text += &format!(
            "b{block}(v{param}: i32):\n v{} = i32.lt_s v{param}, v1\n br_if v{}, b{}, b{}(v{param})\n",
            param + 1,
            param + 1,
            block + 1,
            block + 2,
        );
        text += &format!(
            "b{}:\n v{} = i32.add v{param}, v1\n br b{}(v{})\n",
            block + 1,
            param + 2,
            block + 2,
            param + 2
        );
    }
    text += &format!("b{}(v{}: i32):\n return v{}\n }}", 2 * n + 1, 3 * n + 2, 3 * n + 2);
    let (_, report) = converted(&text);
    assert_eq!(report.n_branches, n);
}

#[test]
fn random_functions_compute_the_same() {
    let mut rng = Rng(44);
    let mut total = 0;
    for _ in 0..1_000 {
        let module = random_walk(&mut rng);
        let options = BuildOptions { fuel: false, stack_cells: false, polls: true, waits: false };
        let mut ssa = slot_form(&module, module.n_funcs() - 1, &options);
        promote(&mut ssa, &mut Scratch::default());
        let mut flat = ssa.clone();
        let effects = Effects::of(&ssa);
        total += if_convert(&mut flat).n_branches;
        verify(&flat, Form::Ssa, &module).unwrap_or_else(|error| panic!("{error}\n{flat}"));
        effects.check(&flat).unwrap_or_else(|error| panic!("{error}\n{ssa}\n{flat}"));
        for seed in 0..4 {
            let args = [rng.next(), rng.next()].map(u128::from);
            let run = |f: &Function| walk(&module, vec![f.clone()], &args, seed);
            assert_eq!(run(&flat), run(&ssa), "{ssa}\n{flat}");
        }
    }
    assert!(total > 30, "{total}");
}
