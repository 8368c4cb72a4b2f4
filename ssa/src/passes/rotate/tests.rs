use slotvm_bytecode::VerifiedModule;

use super::*;
use crate::construction::build::BuildOptions;
use crate::construction::promote::{Scratch, promote};
use crate::ir::graph::control_flow;
use crate::ir::verify::{Form, verify};
use crate::tools::samples::{module, random_functions, slot_form, slot_forms, walk};
use crate::tools::testing::Rng;

fn rotated(module: &VerifiedModule, options: &BuildOptions) -> (Function, RotationReport) {
    let mut f = slot_form(module, module.n_funcs() - 1, options);
    let report = rotate(&mut f, &mut Analyses::default());
    verify(&f, Form::Slots, module).unwrap_or_else(|violation| panic!("{violation}\n{f}"));
    (f, report)
}

const WHILE: &str = "func f(n: i64) -> i64 {
      local i: i64, sum: i64
    again:
      local.get i  local.get n  i64.ge_s  br_if done
      local.get sum  local.get i  i64.add  local.set sum
      local.get i  i64.const 1  i64.add  local.set i
      br again
    done:
      local.get sum  return
    }";

#[test]
fn a_while_loop_tests_at_its_end() {
    let (mut f, report) = rotated(&module(WHILE), &BuildOptions::default());
    assert_eq!(report, RotationReport { n_loops: 1, n_copies: 1 });
    promote(&mut f, &mut Scratch::default());
    // One block is the loop, and it branches to itself.
    let loops = LoopForest::new(&control_flow(&f));
    assert_eq!(loops.n_loops(), 1);
    let header = Block(loops.header(loops.loops().next().expect("there is one")));
    assert_eq!(f.succ_edges(header).len(), 2);
    assert!(f.succ_edges(header).any(|edge| f.edge_dst(edge) == header), "{f}");
}

#[test]
fn loops_that_test_at_their_end_or_in_the_middle_stay() {
    for (text, n_loops) in [
        ("func f(n: i64) { again: local.get n  i64.eqz  br_if again  return }", 0),
        ("func f(n: i64) { again: nop  br again }", 0),
        // The header calls something.
        (
            "func g() -> i32 { i32.const 0  return }
          func f(n: i64) { again: call g  br_if done  nop  br again  done: return }",
            0,
        ),
        (WHILE, 1),
        (&dispatching(8), 0),
        (&dispatching(7), 1),
    ] {
        let (_, report) = rotated(&module(text), &BuildOptions::default());
        assert_eq!(report.n_loops, n_loops, "{text}");
    }
}

/// A loop that chooses among targets right after its test.
fn dispatching(n_indexed: usize) -> String {
    let targets = vec!["even, odd"; n_indexed / 2].join(", ");
    let targets = if n_indexed % 2 == 1 { format!("{targets}, odd") } else { targets };
    format!(
        "func f(n: i32) -> i32 {{
          local sum: i32
        again:
          local.get n  i32.eqz  br_if done
          local.get n  br_table [{targets}] even
        even:
          local.get sum  i32.const 3  i32.add  local.set sum
          br next
        odd:
          local.get sum  i32.const 1  i32.add  local.set sum
        next:
          local.get n  i32.const 1  i32.sub  local.set n
          br again
        done:
          local.get sum  return
        }}"
    )
}

#[test]
fn loops_of_loops_are_rotated_each() {
    let source = "func f(n: i64) -> i64 {
      local i: i64, j: i64, sum: i64
    outer:
      local.get i  local.get n  i64.ge_s  br_if done
      i64.const 0  local.set j
    inner:
      local.get j  local.get i  i64.ge_s  br_if next
      local.get sum  local.get j  i64.add  local.set sum
      local.get j  i64.const 1  i64.add  local.set j
      br inner
    next:
      local.get i  i64.const 1  i64.add  local.set i
      br outer
    done:
      local.get sum  return
    }";
    let module = module(source);
    let (f, report) = rotated(&module, &BuildOptions::default());
    assert_eq!(report, RotationReport { n_loops: 2, n_copies: 2 });
    for n in [0, 1, 7] {
        let (_, end) = walk(&module, vec![f.clone()], &[n], 0);
        assert_eq!(end.expect("it returns"), [(0..n).map(|i| (0..i).sum::<u128>()).sum::<u128>()]);
    }
}

#[test]
fn random_functions_do_the_same_and_charge_the_same() {
    let mut rng = Rng(11);
    let mut n_loops = 0;
    for _ in 0..600 {
        let module = random_functions(&mut rng);
        // Only fuel ends them all.
        let options =
            BuildOptions { fuel: true, stack_cells: false, polls: rng.one_in(2), waits: false };
        let before = slot_forms(&module, &options);
        let mut after = before.clone();
        for f in &mut after {
            n_loops += rotate(f, &mut Analyses::default()).n_loops;
            verify(f, Form::Slots, &module).unwrap_or_else(|violation| panic!("{violation}\n{f}"));
        }
        for arg in [0, 3, 6] {
            let expected = walk(&module, before.clone(), &[arg], 0);
            assert_eq!(walk(&module, after.clone(), &[arg], 0), expected);
        }
    }
    assert!(n_loops > 8, "{n_loops}");
}
