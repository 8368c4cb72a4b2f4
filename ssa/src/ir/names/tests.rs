use super::*;
use crate::construction::build::{BuildOptions, BuildScratch, build};
use crate::construction::promote::{Scratch, promote};
use crate::ir::parse::parse;
use crate::ir::print::print;
use crate::passes::destruct::destruct;
use crate::pipeline;
use crate::tools::samples::module;

/// The text of a function after a row of the pipeline. It is read back.
fn after(module: &VerifiedModule, func: u32, row: &str) -> String {
    let mut f = build(module, func, &BuildOptions::default(), &mut BuildScratch::default());
    f.take_names(module);
    let row = pipeline::row(row).expect("the table has the row");
    let text = print(&pipeline::after(row, f, module).expect("the row leaves a valid function"));
    assert_eq!(print(&parse(&text).expect("it parses")), text);
    text
}

const SUM: &str = "
    func sum(n: i64) -> i64 {
        local unused: i32, total: i64
      loop:
        local.get total  local.get n  i64.add  local.set total
        local.get n  i64.const 1  i64.sub  local.tee n
        i64.const 0  i64.gt_s  br_if loop
        local.get total  return }";

#[test]
fn slots_and_values_have_the_names_of_locals() {
    let module = module(SUM);
    let slots = "\
func f0 sum(v0.n: i64) -> i64 {
  slot s0.n: i64 = local 0
  slot s1.unused: i32 = local 1
  slot s2.total: i64 = local 2
b0:                                     ; @0000
  slot.set s0.n, v0.n                   ; @0000
  br b1                                 ; @0000
";
    let text = after(&module, 0, "slots");
    assert!(text.starts_with(slots), "{text}");
    // The phis have the names of the locals, and so has what is written to them. No slot is left to list.
    let ssa = "\
func f0 sum(v0.n: i64) -> i64 {
b0:                                     ; @0000
  v1 = i64.const 0                      ; @0000
  br b1(v0.n, v1)                       ; @0000
b1(v2.n: i64, v3.total: i64):           ; label loop @0000
  v4.total = i64.add v3.total, v2.n     ; @0004
  v5 = i64.const 1                      ; @0009
  v6.n = i64.sub v2.n, v5               ; @000b
  v7 = i64.const 0                      ; @000e
  v8 = i64.gt_s v6.n, v7                ; @0010
  br_if v8, b1(v6.n, v4.total), b2      ; @0011
b2:                                     ; @0013
  return v4.total                       ; @0015
}
";
    assert_eq!(after(&module, 0, "ssa"), ssa);
}

#[test]
fn names_survive_inlining_and_the_way_out_of_ssa_form() {
    let source = "
        func absolute(n: i64) -> i64 {
            local.get n  i64.const 0  i64.ge_s  br_if done
            i64.const 0  local.get n  i64.sub  local.set n
          done:
            local.get n  return }
        func twice(a: i64) -> i64 {
            local b: i64
            local.get a  call absolute  local.set b
            local.get a  local.get b  i64.mul  return }";
    let inlining = module(source);
    let inlined = after(&inlining, 1, "inline");
    for part in ["slot s0.a: i64", "slot inlined2.n: i64 = inlined 2", "slot.set inlined2.n"] {
        assert!(inlined.contains(part), "{part}: {inlined}");
    }
    let promoted = after(&inlining, 1, "ssa");
    assert!(promoted.contains(".n: i64):"), "the phi of n has its name: {promoted}");
    let module = module(SUM);
    let mut f = build(&module, 0, &BuildOptions::default(), &mut BuildScratch::default());
    f.take_names(&module);
    promote(&mut f, &mut Scratch::default());
    destruct(&mut f);
    let texts = f.slot_texts();
    assert!(texts.contains(&"s0.n".to_owned()), "{texts:?}");
    assert!(texts.iter().any(|text| text.ends_with(".total")), "{texts:?}");
}

#[test]
fn operands_and_locals_without_slots_leave_the_numbers_of_locals() {
    // The address of local 0 escapes, so local 1 has the first slot.
    let source = "
        memory m 1
        frame_stack 1024 4096
        func f(n: i64) -> i64 {
            local a: i32, b: i64
            local.addr a  drop
            local.get n  i64.const 7
          done(i64, i64):
            local.set b  drop
            local.get b  return }";
    let module = module(source);
    let text = after(&module, 0, "slots");
    for part in [
        "slot s2.b: i64 = local 2",
        "slot stack0: i64 = stack 0",
        "slot.get stack1",
        "slot.set s2.b",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("s1"), "{text}");
}

#[test]
fn names_are_escaped_and_long_ones_left_out() {
    let long = "l".repeat(SHOWN_NAME_BYTES_MAX + 1);
    let source = format!(
        "func f($\"a\\u{{1b}}[2J; b\": i64, {long}: i64) -> i64 {{
            local.get 0  local.get 1  i64.add  return }}"
    );
    let text = after(&module(&source), 0, "ssa");
    assert!(text.starts_with("func f0 f(v0.$\"a\\u{1b}[2J; b\": i64, v1: i64)"), "{text}");
}

#[test]
fn a_function_without_names_stays_without() {
    let module = module(SUM);
    let mut f = build(&module, 0, &BuildOptions::default(), &mut BuildScratch::default());
    promote(&mut f, &mut Scratch::default());
    destruct(&mut f);
    assert_eq!(f.names, None);
}
