use slotvm_bytecode::VerifiedModule;

use super::*;
use crate::ir::edit::edit;
use crate::ir::entity::{Block, Inst};
use crate::tools::samples::{module, slot_form};

#[test]
fn rows_stand_in_the_order_that_is_asked_for() {
    let place = |name| TABLE.iter().position(|row| row.name == name);
    for &(before, after, because) in ORDER {
        let places = (place(before), place(after));
        let (Some(first), Some(second)) = places else { panic!("{before} or {after} is no row") };
        assert!(first < second, "{before} stands before {after}: {because}");
    }
    for row in TABLE {
        let is_ordered = ORDER.iter().any(|&(a, b, _)| a == row.name || b == row.name);
        assert!(is_ordered, "nothing says where {} stands", row.name);
        assert_eq!(place(row.name).map(|at| TABLE[at].summary), Some(row.summary), "{}", row.name);
        assert!(!row.users.is_empty(), "nobody runs {}", row.name);
    }
    assert!(TABLE.len() < ROWS_MAX);
}

/// Each row needs a product of earlier rows, for each user. Without promotion, the JIT lowers slot form.
#[test]
fn rows_need_what_earlier_rows_make() {
    for user in [User::Jit, User::Opt] {
        let mut has = Product::Bytes;
        for (_, row) in rows_of(user) {
            assert_eq!(row.needs, has, "{user:?}: {}", row.name);
            has = row.makes;
        }
    }
    for row in TABLE {
        assert_eq!(row.is_of_ir(), matches!(row.run, Run::Pass(_)), "{}", row.name);
        assert!(!row.is_optional || row.needs == row.makes, "{}", row.name);
        assert!(row.is_optional || row.growth == Growth::None, "{}", row.name);
    }
}

fn sample() -> (VerifiedModule, Function) {
    let module = module(
        "memory m 1
        func f(a: i32, b: i32) -> i32 {
          local c: i32
          local.get a  br_if other
          i32.const 0  local.get b  i32.store 0
          local.get a  local.get b  i32.div_s  local.set c
          br end
        other:
          i32.const 4  local.get a  i32.store 0
        end:
          local.get c  return
        }",
    );
    let f = slot_form(&module, 0, &Default::default());
    (module, f)
}

/// Runs a faulty row with checks on, and returns the name and the property in the error.
fn caught(fault: fn(&mut Function)) -> (&'static str, String) {
    let (module, f) = sample();
    let mut ssa = f.clone();
    crate::construction::promote::promote(&mut ssa, &mut Default::default());
    let mut checks = Checks::new(true);
    checks.before(&ssa);
    fault(&mut ssa);
    let row = row("simplify").expect("it is a row");
    let error = checks.after(row, &ssa, &module).expect_err("it is faulty");
    (error.stage, error.reason)
}

fn find(f: &Function, mnemonic: &str) -> (usize, Inst) {
    let is = |inst: &Inst| f.opcode(*inst).mnemonic() == mnemonic;
    let at = f.layout.iter().position(is).expect("the function has one");
    (at, f.layout[at])
}

#[test]
fn effects_that_pass_each_other_are_found() {
    let is_of = |(stage, reason): &(&str, String), property: &str| {
        *stage == "simplify" && reason.contains(property)
    };
    let crossed = caught(|f| {
        let ((a, _), (b, _)) = (find(f, "i32.store"), find(f, "i32.div_s"));
        f.layout.swap(a, b);
    });
    let crossed_effects = is_of(&crossed, "(effects-in-order)");
    assert!(crossed_effects || is_of(&crossed, "(defs-dominate)"), "{crossed:?}");
    let removed = caught(|f| {
        let (at, _) = find(f, "i32.store");
        let place = f.layout[at];
        // A constant that stands elsewhere as well would break another property.
        let zero = f.make_inst(
            crate::ir::irop::Opcode::Op(slotvm_bytecode::Op::I32Const),
            slotvm_bytecode::Imm(0),
            &[],
            &[slotvm_bytecode::ValType::I32],
            f.loc(place),
        );
        f.layout[at] = zero;
    });
    assert!(is_of(&removed, "(effects-in-order)"), "{removed:?}");
    let added = caught(|f| {
        let (at, inst) = find(f, "i32.store");
        let operands = f.operands(inst).to_vec();
        let again = f.make_inst(f.opcode(inst), f.imm(inst), &operands, &[], f.loc(inst));
        f.layout.insert(at, again);
        for block in &mut f.blocks {
            block.insts.0 += u32::from(block.insts.0 as usize > at);
            block.insts.1 += u32::from(block.insts.1 as usize > at);
        }
    });
    assert!(is_of(&added, "(effects-in-order)"), "{added:?}");
}

#[test]
fn an_operation_that_cannot_trap_may_go() {
    let (module, mut f) = sample();
    crate::construction::promote::promote(&mut f, &mut Default::default());
    let mut checks = Checks::new(true);
    checks.before(&f);
    let (_, div) = find(&f, "i32.div_s");
    edit(&mut f, |editor| editor.fold(div, 3));
    let row = row("simplify").expect("it is a row");
    checks.after(row, &f, &module).unwrap_or_else(|error| panic!("{error}\n{f}"));
}

#[test]
fn passes_run_with_times_and_checks() {
    let (module, mut f) = sample();
    crate::construction::promote::promote(&mut f, &mut Default::default());
    let mut unchanged = f.clone();
    let run = |passes, f: &mut Function| {
        let (mut times, mut scratch) = (Times::default(), PassScratch::default());
        let mut context = PassContext::new(&module, 0, &mut scratch);
        let last = row("simplify_cfg").expect("it is a row");
        let driver = Driver::new(User::Opt, passes, true, &mut times).up_to(last);
        driver.run(f, Start::Ssa, &mut context, |_, _| {}).expect("passes are right");
        times
    };
    let times = run(PassSet::all(), &mut f);
    assert!(times.of("simplify") > Default::default());
    assert_eq!(times.of("clif"), Default::default());
    assert_eq!(times.rows().count(), TABLE.len());

    let before = unchanged.to_string();
    let times = run(PassSet::none(), &mut unchanged);
    assert_eq!((times, unchanged.to_string()), (Times::default(), before));
}

/// A pass that is switched off leaves the function as it is, in all that read the table.
#[test]
fn passes_are_switched_off() {
    let module = module(
        "func f(a: i32) -> i32 {
          i32.const 2  i32.const 3  i32.mul  local.get a  i32.add  return
        }",
    );
    let shown = |name, passes| {
        show_with(&module, 0, name, passes, &mut Style::Text).unwrap_or_else(|e| panic!("{e}"))
    };
    let off: PassSet = "-simplify".parse().expect("it is optional");
    assert_eq!(shown("simplify", off), shown("ssa", PassSet::all()));
    assert!(shown("simplify", off).contains("i32.mul"));
    assert!(!shown("simplify", PassSet::all()).contains("i32.mul"));
    let optimized = |passes| {
        let optimized = crate::optimize::optimize_with(&module, passes);
        let module = optimized.unwrap_or_else(|e| panic!("{e}")).module;
        slotvm_bytecode::text::print(&module).expect("it can be printed")
    };
    assert!(optimized(off).contains("i32.mul"));
    assert!(!optimized(PassSet::all()).contains("i32.mul"));
}

#[test]
fn every_row_of_the_ir_is_shown() {
    let (module, f) = sample();
    for name in names() {
        let text = show(&module, 0, name, &mut Style::Text).unwrap_or_else(|e| panic!("{e}"));
        assert!(text.contains("func f0") || name == "promotion", "{name}: {text}");
        assert!(!text.is_empty());
    }
    let ssa = show_from(&f, &module, "ssa", &mut Style::Text).expect("it is a row");
    assert!(ssa.contains("b3(v") && !ssa.contains("slot.get"), "{ssa}");
    let error = show(&module, 0, "tokens", &mut Style::Text).expect_err("no such stage");
    let expected = "unknown stage \"tokens\"; expected cfg, dom, loops, frontiers, liveness, phis, promotion, slots, devirtualise, inline, rotate, roots, pressure, ssa, \
                    forward, peephole, simplify, simplify_cfg, if_convert, version, bounds, destruct";
    assert_eq!(error.to_string(), expected);
    assert_eq!(f.succ_edges(Block(0)).len(), 2);
}

/// A fault after any row is named by that row.
#[test]
fn a_fault_is_named_by_its_stage() {
    let (module, f) = sample();
    for row in TABLE.iter().filter(|row| row.is_of_ir()) {
        let mut after = after(row, f.clone(), &module).unwrap_or_else(|error| panic!("{error}"));
        let mut checks = Checks::new(true);
        checks.before(&after);
        checks.after(row, &after, &module).unwrap_or_else(|error| panic!("{error}"));
        let mut ends = after.blocks.iter().map(|block| block.insts);
        let (_, end) = ends.find(|(start, end)| end - start > 1).expect("a block has two");
        after.layout.swap(end as usize - 2, end as usize - 1);
        let error = checks.after(row, &after, &module).expect_err("the terminator is not last");
        assert_eq!(error.stage, row.name);
        assert!(error.to_string().starts_with(&format!("stage {} left", row.name)), "{error}");
    }
}
