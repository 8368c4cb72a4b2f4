use slotvm_bytecode::VerifiedModule;

use super::copies::{Source, Step, sequence};
use super::*;
use crate::construction::build::BuildOptions;
use crate::construction::promote::{Scratch, promote};
use crate::graphs::dominators::DomTree;
use crate::graphs::steps::within;
use crate::ir::eval::{Imports, Machine, Options};
use crate::ir::parse::parse;
use crate::ir::verify::{Form, verify};
use crate::tools::samples::{THE_SWAP, module, random_walk, slot_form, walk};
use crate::tools::testing::{Rng, families, size};

fn assert_valid(f: &Function, form: Form, module: &VerifiedModule) {
    verify(f, form, module).unwrap_or_else(|violation| panic!("{violation}\n{f}"));
}

/// Takes a function out of SSA form, and checks that the result is slot form: no phis, and no value is
/// used in another block except the address of the frame.
fn destructed(ssa: &Function, module: &VerifiedModule) -> (Function, DestructionReport) {
    assert_valid(ssa, Form::Ssa, module);
    let mut f = ssa.clone();
    let report = destruct(&mut f);
    assert!(!report.is_too_large);
    assert_valid(&f, Form::Slots, module);
    assert_eq!(f.n_phis(), 0, "{f}");
    let mut home = vec![None; f.n_values()];
    for_each_def(&f, |value, (block, _)| home[value.index()] = Some(block));
    for block in f.blocks() {
        for &inst in f.insts(block) {
            let is_frame = |value: &Value| {
                let mut insts = f.insts(Function::ENTRY).iter();
                insts.any(|&inst| {
                    f.opcode(inst) == Opcode::Ir(IrOp::FramePush) && f.result(inst) == *value
                })
            };
            let stray = f.operands(inst).iter().find(|v| home[v.index()] != Some(block));
            assert!(stray.is_none_or(is_frame), "{stray:?} in {block}\n{f}");
        }
    }
    (f, report)
}

/// Checks that the SSA form of `f0`, its slot form and that promoted again return these results.
fn check(ssa: &str, calls: &[(&[u128], &[u128])]) -> (Function, DestructionReport) {
    let ssa = parse(ssa).unwrap_or_else(|error| panic!("{error}"));
    let types = |types: &[ValType]| types.iter().map(|ty| ty.name()).collect::<Vec<_>>().join(", ");
    let (params, results) = (&ssa.ty.params, types(&ssa.ty.results));
    let params: Vec<String> =
        params.iter().enumerate().map(|(i, ty)| format!("p{i}: {}", ty.name())).collect();
    let module = module(&format!("func f({}) -> ({results}) {{ unreachable }}", params.join(", ")));
    let (slots, report) = destructed(&ssa, &module);
    let mut again = slots.clone();
    promote(&mut again, &mut Scratch::default());
    assert_valid(&again, Form::Ssa, &module);
    for f in [&ssa, &slots, &again] {
        for &(args, results) in calls {
            let functions = vec![f.clone()];
            let mut machine =
                Machine::new(&module, functions, Imports::default(), Options::default());
            assert_eq!(machine.call(0, args).as_deref(), Ok(results), "{args:?}\n{f}");
        }
    }
    (slots, report)
}

#[test]
fn the_lost_copy() {
    // The value of the phi before the last round is used after the loop, and the edge is critical.
    let ssa = "func f0(v0: i64) -> (i64) {
        b0:
          br b1(v0)
        b1(v1: i64):
          v2 = i64.const 1
          v3 = i64.add v1, v2
          v4 = i64.const 5
          v5 = i64.lt_s v3, v4
          br_if v5, b1(v3), b2
        b2:
          return v1
        }";
    let (f, report) = check(ssa, &[(&[0], &[4]), (&[3], &[4]), (&[7], &[7])]);
    assert_eq!((report.n_coalesced, report.n_copies, report.n_split_edges), (1, 1, 1), "{f}");
}

#[test]
fn the_swap() {
    let calls: [(&[u128], &[u128]); 3] =
        [(&[1, 10, 20], &[20, 10]), (&[2, 10, 20], &[10, 20]), (&[5, 10, 20], &[20, 10])];
    let (f, report) = check(THE_SWAP, &calls);
    // Only the edge back to the loop swaps; after the loop the names are the other way round.
    assert_eq!((report.n_coalesced, report.n_copies, report.n_split_edges), (6, 2, 1), "{f}");
}

#[test]
fn phis_of_phis() {
    let ssa = "func f0(v0: i32, v1: i32) -> (i64) {
        b0:
          v2 = i64.const 1
          v3 = i64.const 2
          v4 = i64.add v2, v3
          br_if v0, b2(v4), b1
        b1:
          v5 = i64.mul v4, v4
          br b2(v5)
        b2(v6: i64):
          br_if v1, b4(v6, v6), b3
        b3:
          v7 = i64.add v6, v4
          br b4(v7, v6)
        b4(v8: i64, v9: i64):
          v10 = i64.mul v8, v9
          return v10
        }";
    let calls: [(&[u128], &[u128]); 4] =
        [(&[0, 0], &[108]), (&[0, 1], &[81]), (&[1, 0], &[18]), (&[1, 1], &[9])];
    check(ssa, &calls);
}

#[test]
fn critical_edges_of_a_switch() {
    // Two edges go to the same block with different operands, two to another one, and all are critical.
    let ssa = "func f0(v0: i32, v1: i64, v2: i64) -> (i64, i64) {
        b0:
          br_table v0, [b1(v1), b1(v2), b2(v1, v2), b1(v1)], b2(v2, v1)
        b1(v3: i64):
          br b2(v3, v3)
        b2(v4: i64, v5: i64):
          return v4, v5
        }";
    let calls: [(&[u128], &[u128]); 5] = [
        (&[0, 7, 8], &[7, 7]),
        (&[1, 7, 8], &[8, 8]),
        (&[2, 7, 8], &[7, 8]),
        (&[3, 7, 8], &[7, 7]),
        (&[9, 7, 8], &[8, 7]),
    ];
    let (f, report) = check(ssa, &calls);
    assert!(report.n_split_edges >= 2, "{f}");
}

#[test]
fn duplicate_edges_with_equal_operands() {
    let ssa = "func f0(v0: i32, v1: i64) -> (i64) {
        b0:
          v2 = i64.const 3
          v3 = i64.add v1, v2
          br_if v0, b1(v3), b1(v3)
        b1(v4: i64):
          return v4
        }";
    let (f, report) = check(ssa, &[(&[0, 1], &[4]), (&[1, 2], &[5])]);
    assert_eq!((report.n_coalesced, report.n_copies), (2, 0), "{f}");
}

#[test]
fn self_loops() {
    // A rotation of three: a cycle on a critical edge from a block to itself.
    let ssa = "func f0(v0: i32, v1: i64, v2: i64, v3: i64) -> (i64, i64, i64) {
        b0:
          br b1(v0, v1, v2, v3)
        b1(v4: i32, v5: i64, v6: i64, v7: i64):
          v8 = i32.const 1
          v9 = i32.sub v4, v8
          br_if v9, b1(v9, v6, v7, v5), b2
        b2:
          return v5, v6, v7
        }";
    let calls: [(&[u128], &[u128]); 4] = [
        (&[1, 7, 8, 9], &[7, 8, 9]),
        (&[2, 7, 8, 9], &[8, 9, 7]),
        (&[3, 7, 8, 9], &[9, 7, 8]),
        (&[4, 7, 8, 9], &[7, 8, 9]),
    ];
    let (f, report) = check(ssa, &calls);
    assert_eq!((report.n_copies, report.n_split_edges), (3, 1), "{f}");
}

#[test]
fn phis_that_nothing_uses_are_not_written() {
    let ssa = "func f0(v0: i32, v1: i64, v2: i64) -> (i64) {
        b0:
          br_if v0, b1(v1, v2), b1(v2, v1)
        b1(v3: i64, v4: i64):
          return v4
        }";
    let (f, report) = check(ssa, &[(&[0, 1, 2], &[1]), (&[1, 1, 2], &[2])]);
    assert_eq!(report.n_coalesced + report.n_copies, 2, "{f}");
}

#[test]
fn slots_start_as_zero() {
    let ssa = "func f0(v0: i64) -> (i64) {
        b0:
          v1 = i64.const 0
          br b1(v0, v1)
        b1(v2: i64, v3: i64):
          v4 = i64.add v3, v2
          v5 = i64.const 1
          v6 = i64.sub v2, v5
          v7 = i64.eqz v6
          br_if v7, b2, b1(v6, v4)
        b2:
          return v4
        }";
    let (f, _) = check(ssa, &[(&[4], &[10])]);
    assert_eq!(
        f.insts(Function::ENTRY).len(),
        2,
        "the parameter is written, then it branches\n{f}"
    );
}

#[test]
fn values_of_different_times_share_slots() {
    let ssa = "func f0(v0: i64, v1: i64) -> (i64) {
        b0:
          v2 = i64.add v0, v1
          br b1
        b1:
          v3 = i64.mul v2, v2
          br b2
        b2:
          v4 = i64.sub v3, v3
          br b3
        b3:
          return v4
        }";
    let (f, _) = check(ssa, &[(&[3, 4], &[0])]);
    assert_eq!(f.slots.len(), 1, "{f}");
}

/// Contents of slots after these steps, where slot `i` starts as `i`.
fn after(steps: &[Step<u32>]) -> Vec<u32> {
    let mut slots: Vec<u32> = (0..8).collect();
    let mut saved = None;
    for &step in steps {
        match step {
            Step::Save(slot) => saved = Some(slots[slot as usize]),
            Step::Copy(to, Source::Slot(from)) => slots[to as usize] = slots[from as usize],
            Step::Copy(to, Source::Saved) => slots[to as usize] = saved.expect("saved before"),
            Step::Copy(to, Source::Value(value)) => slots[to as usize] = value,
        }
    }
    slots
}

#[test]
fn sequences_are_parallel_copies() {
    let mut rng = Rng(21);
    for _ in 0..20_000 {
        let mut copies = Vec::new();
        let mut expected: Vec<u32> = (0..8).collect();
        for to in 0..8 {
            let from = rng.below(10);
            if rng.one_in(5) || from == to {
                continue;
            }
            let source = if from < 8 { Source::Slot(from) } else { Source::Value(from) };
            copies.push((to, source));
            expected[to as usize] = from;
        }
        let steps = sequence(&copies);
        assert_eq!(after(&steps), expected, "{copies:?} {steps:?}");
        let n_saved = steps.iter().filter(|step| matches!(step, Step::Save(_))).count();
        assert_eq!(steps.len(), copies.len() + n_saved);
        assert!(n_saved <= 4, "no more than there can be cycles");
    }
}

#[test]
fn random_functions_compute_the_same() {
    let mut rng = Rng(22);
    let mut n_split = 0;
    let mut n_coalesced = 0;
    for _ in 0..1_000 {
        let module = random_walk(&mut rng);
        let func = module.n_funcs() - 1;
        let options = BuildOptions { fuel: true, stack_cells: false, polls: true, waits: false };
        let slots = slot_form(&module, func, &options);
        let mut ssa = slots.clone();
        promote(&mut ssa, &mut Scratch::default());
        let (back, report) = destructed(&ssa, &module);
        n_split += report.n_split_edges;
        n_coalesced += report.n_coalesced;
        assert_eq!(report.locals.len(), back.slots.len());
        let mut again = back.clone();
        promote(&mut again, &mut Scratch::default());
        assert_valid(&again, Form::Ssa, &module);
        for seed in 0..4 {
            let args = [rng.next(), rng.next()].map(u128::from);
            let run = |f: &Function| walk(&module, vec![f.clone()], &args, seed);
            let expected = run(&slots);
            for f in [&ssa, &back, &again] {
                assert_eq!(run(f), expected, "{slots}\n{f}");
            }
        }
    }
    assert!(n_split > 200 && n_coalesced > 1_000, "{n_split} {n_coalesced}");
}

#[test]
fn steps_on_large_families_are_linear() {
    use crate::graphs::cfg::ControlFlow;
    for (name, cfg) in families(20_000) {
        let (cfg, _) = DomTree::semi_nca(&cfg).renumber(&cfg);
        // A phi in each block that has several in-edges: the number of the last block.
        let mut text = String::from("func f0(v0: i32) -> (i32) {\n");
        let n_blocks = cfg.n_blocks() as u32;
        for block in 0..n_blocks {
            let value = block + 1;
            let target = |&succ: &u32| format!("b{succ}({})", format_args!("v{value}"));
            let targets: Vec<String> = cfg.succs(block).iter().map(target).collect();
            let start = if block == 0 {
                "b0:\n  v1 = i32.clz v0\n".to_owned()
            } else {
                format!("b{block}(v{value}: i32):\n")
            };
            text.push_str(&start);
            text.push_str(&match &targets[..] {
                [] => format!("  return v{value}\n"),
                [target] => format!("  br {target}\n"),
                [taken, other] => format!("  br_if v0, {taken}, {other}\n"),
                [indexed @ .., default] => {
                    format!("  br_table v0, [{}], {default}\n", indexed.join(", "))
                }
            });
        }
        text.push('}');
        let mut f = parse(&text).unwrap_or_else(|error| panic!("{error}"));
        let report = within(20 * size(&cfg), name, || destruct(&mut f));
        assert_eq!((f.n_phis(), report.n_copies), (0, 0), "{name}");
    }
}
