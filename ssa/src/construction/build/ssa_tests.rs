use super::*;
use crate::construction::promote::{Scratch, promote};
use crate::ir::verify::{Form, verify};
use crate::tools::samples::{module, slot_form};

fn all_options() -> Vec<SsaOptions> {
    let mut all = vec![];
    for bits in 0..16 {
        let [marker, scc_removal, fold, copies] = [0, 1, 2, 3].map(|bit| bits >> bit & 1 == 1);
        let braun = BraunOptions { marker, scc_removal, ..BraunOptions::default() };
        all.push(SsaOptions { build: BuildOptions::default(), braun, fold, copies });
    }
    all
}

fn ssa_form(module: &VerifiedModule, options: &SsaOptions) -> (Function, BraunReport) {
    let mut scratch = BuildScratch::default();
    let (f, report) =
        build_ssa(module, module.n_imported_funcs(), options, &mut scratch).expect("not too large");
    verify(&f, Form::Ssa, module).unwrap_or_else(|violation| panic!("{violation}\n{f}"));
    assert_eq!(report.n_left, f.n_phis());
    (f, report)
}

/// Checks the lines of a function's SSA form, except slots and locations.
fn check(source: &str, options: &SsaOptions, expected: &str) {
    let module = module(source);
    let lines = |text: &str| -> Vec<String> {
        let code = text.lines().map(|line| line.split(';').next().unwrap_or("").trim());
        let code = code.filter(|line| !line.is_empty() && !line.starts_with("slot "));
        code.map(str::to_owned).collect()
    };
    let printed = ssa_form(&module, options).0.to_string();
    assert_eq!(lines(&printed), lines(expected), "\n{printed}");
}

const SIMPLIFIED: SsaOptions = SsaOptions {
    build: BuildOptions { fuel: true, stack_cells: false, polls: false, waits: false },
    braun: BraunOptions {
        marker: true,
        scc_removal: true,
        entries_max: BraunOptions::ENTRIES_MAX_USUAL,
    },
    fold: true,
    copies: true,
};

#[test]
fn locals_and_operands_of_a_loop_become_parameters() {
    // The bottom operand stays, the one above and the local change.
    for options in all_options() {
        check(
            "func f(n: i64) -> i64 {
                i64.const 3  i64.const 4
              loop(i64, i64):
                local.get n  i64.mul
                local.get n  i64.const 5  i64.sub  local.tee n  i64.eqz  br_if loop
                i64.add  return }",
            &options,
            "func f0 f(v0: i64) -> i64 {
             b0:
               v1 = i64.const 3
               v2 = i64.const 4
               br b1(v0, v2)
             b1(v3: i64, v4: i64):
               v5 = i64.mul v4, v3
               v6 = i64.const 5
               v7 = i64.sub v3, v6
               v8 = i64.eqz v7
               br_if v8, b1(v7, v5), b2
             b2:
               v9 = i64.add v1, v5
               return v9
             }",
        );
    }
}

#[test]
fn slots_start_as_zero_or_null() {
    check(
        "func f(n: i32) -> (f64, externref, i64) {
            local a: f64, b: externref, c: i64
            local.get n  br_if skip
            f64.const 1  local.set a
            i64.const 1  local.set c
          skip:
            local.get a  local.get b  local.get c  return }",
        &SsaOptions::default(),
        "func f0 f(v0: i32) -> (f64, externref, i64) {
         b0:
           v1 = f64.const 0.0
           v2 = ref.null externref
           v3 = i64.const 0
           br_if v0, b2(v1, v3), b1
         b1:
           v4 = f64.const 1.0
           v5 = i64.const 1
           br b2(v4, v5)
         b2(v6: f64, v7: i64):
           return v6, v2, v7
         }",
    );
}

#[test]
fn each_edge_of_a_switch_has_its_operands() {
    check(
        "func f(n: i32) -> i32 {
            local.get n  br_table [end, other, end] end
          other:
            i32.const 1  local.set n  br end
          end:
            local.get n  return }",
        &SsaOptions::default(),
        "func f0 f(v0: i32) -> i32 {
         b0:
           br_table v0, [b2(v0), b1, b2(v0)], b2(v0)
         b1:
           v1 = i32.const 1
           br b2(v1)
         b2(v2: i32):
           return v2
         }",
    );
}

#[test]
fn constants_fold_and_fuel_stays() {
    // What would trap stays, and both ends of the diamond write the same.
    check(
        "func f(n: i64) -> i64 {
            local a: i64
            i64.const 6  i64.const 7  i64.mul  local.set a
            local.get n  i64.eqz  br_if other
            i64.const 42  local.set a  br end
          other:
            i64.const 1  i64.const 0  i64.div_s  drop
          end:
            local.get a  i64.const 2  i64.add  local.get n  i64.mul  return }",
        &SIMPLIFIED,
        "func f0 f(v0: i64) -> i64 {
         b0:
           v1 = i64.const 42
           fuel 7
           v2 = i64.const 6
           v3 = i64.const 7
           v4 = i64.const 42
           v5 = i64.eqz v0
           br_if v5, b2, b1
         b1:
           fuel 3
           v6 = i64.const 42
           br b3
         b2:
           fuel 4
           v7 = i64.const 1
           v8 = i64.const 0
           v9 = i64.div_s v7, v8
           br b3
         b3:
           fuel 6
           v10 = i64.const 2
           v11 = i64.const 44
           v12 = i64.mul v11, v0
           return v12
         }",
    );
}

#[test]
fn operations_that_copy_an_operand_go() {
    let source = "func f(n: i32, c: i32) -> i32 {
            local.get n  i32.const 0  i32.add  local.tee n
            i32.const -1  i32.and  i32.const 8  i32.const 8  i32.sub  i32.or
            local.get n  local.get c  select
            return }";
    check(
        source,
        &SsaOptions { fold: false, ..SIMPLIFIED },
        "func f0 f(v0: i32, v1: i32) -> i32 {
         b0:
           fuel 14
           v2 = i32.const 0
           v3 = i32.const -1
           v4 = i32.const 8
           v5 = i32.const 8
           v6 = i32.sub v4, v5
           v7 = i32.or v0, v6
           v8 = select v7, v0, v1
           return v8
         }",
    );
    check(
        source,
        &SIMPLIFIED,
        "func f0 f(v0: i32, v1: i32) -> i32 {
         b0:
           fuel 14
           v2 = i32.const 0
           v3 = i32.const -1
           v4 = i32.const 8
           v5 = i32.const 8
           v6 = i32.const 0
           return v0
         }",
    );
}

#[test]
fn a_loop_with_two_entries_has_the_phis_that_promotion_places() {
    let source = "func f(n: i64, c: i32) -> i64 {
            local x: i64
            local.get n  local.set x
            local.get c  br_if second
          first:
            local.get n  i64.const 1  i64.sub  local.set n
          second:
            local.get n  i64.const 2  i64.mul  local.set n
            local.get n  i64.eqz  br_if first
            local.get x  local.get n  i64.add  return }";
    let module = module(source);
    let mut promoted = slot_form(&module, 0, &BuildOptions::default());
    promote(&mut promoted, &mut Scratch::default());
    for options in all_options() {
        let (f, report) = ssa_form(&module, &options);
        // That of `n` in each of the two blocks; that of `x` is redundant.
        assert_eq!(promoted.n_phis(), 2);
        assert_eq!(report.n_left, if options.braun.scc_removal { 2 } else { 4 }, "{f}");
        if options.braun.scc_removal {
            assert_eq!(f.to_string(), promoted.to_string(), "{options:?}");
        }
    }
}

#[test]
fn scratch_memory_carries_nothing_from_function_to_function() {
    let source = "func deep() -> i64 { local x: i64 i64.const 1 local.get x br a
                    a(i64, i64): i64.add return }
         func flat(n: i32) -> i32 { local y: i32 local.get n br_if b i32.const 0 local.set n
                    b: local.get n local.get y i32.add return }";
    let module = module(source);
    let mut reused = BuildScratch::default();
    for _ in 0..2 {
        for func in 0..2 {
            let [one, other] = [&mut reused, &mut BuildScratch::default()].map(|scratch| {
                build_ssa(&module, func, &SIMPLIFIED, scratch).expect("not too large")
            });
            assert_eq!(one.0.to_string(), other.0.to_string());
            assert_eq!(one.1, other.1);
        }
    }
}

#[test]
fn what_needs_too_much_is_refused() {
    let n = 100;
    let locals: Vec<String> = (0..n).map(|i| format!("x{i}: i64")).collect();
    let reads: String = (0..n).map(|i| format!("local.get x{i} drop ")).collect();
    let blocks: String = (0..n).map(|i| format!("l{i}: local.get n br_if l{i} ")).collect();
    let source =
        format!("func f(n: i32) {{ local {} {blocks} {reads} return }}", locals.join(", "));
    let module = module(&source);
    let mut scratch = BuildScratch::default();
    let mut build = |entries_max: usize| {
        let braun = BraunOptions { entries_max, ..BraunOptions::default() };
        let options = SsaOptions { braun, ..SsaOptions::default() };
        build_ssa(&module, 0, &options, &mut scratch).is_some()
    };
    assert!(build(50_000));
    assert!(!build(5_000));
}
