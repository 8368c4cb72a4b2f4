use super::*;
use crate::construction::build::BuildOptions;
use crate::ir::eval::Options;
use crate::ir::print::print;
use crate::ir::verify::{Form, verify};
use crate::pipeline::{Driver, PassContext, PassScratch, PassSet, Start, Times, User};
use crate::tools::samples::{BUILDS, args, module, run, slot_forms};

/// A table with functions of two types and two null elements.
const TABLE: &str = "table t funcref 7
    elem s t at i32.const 1 func double, wide, negate, fail, wide
    func double(x: i64) -> i64 { local.get x  i64.const 2  i64.mul  return }
    func negate(x: i64) -> i64 { i64.const 0  local.get x  i64.sub  return }
    func fail(x: i64) -> i64 { local.get x  i64.const 0  i64.div_s  return }
    func wide(x: i64, y: i64) -> i64 { local.get x  local.get y  i64.add  return }\n";

/// Checks that a module does the same with its calls devirtualised. Returns the sum of the reports, and the functions.
fn check_same(source: &str, arguments: &[Vec<u128>]) -> (DevirtualisationReport, Vec<Function>) {
    let module = module(source);
    let mut sum = DevirtualisationReport::default();
    let mut last = Vec::new();
    for build in BUILDS {
        let mut forms = slot_forms(&module, &build);
        sum = DevirtualisationReport::default();
        for f in &mut forms {
            let report = devirtualise(f, &module, &mut Analyses::default());
            sum.n_calls += report.n_calls;
            sum.n_callees += report.n_callees;
            verify(f, Form::Slots, &module).unwrap_or_else(|violation| panic!("{violation}\n{f}"));
        }
        for fuel in [Some(7), Some(1_000)] {
            let fuel = fuel.filter(|_| build.fuel);
            let stack_cells = build.stack_cells.then_some(40);
            let options = Options { fuel, stack_cells, polls: None, ..Options::default() };
            let expected = run(&module, slot_forms(&module, &build), arguments, &options);
            let actual = run(&module, forms.clone(), arguments, &options);
            let texts = || forms.iter().map(print).collect::<String>();
            assert_eq!(actual, expected, "{build:?} {options:?}\n{}", texts());
        }
        last = forms;
    }
    (sum, last)
}

fn count(f: &Function, op: Op) -> usize {
    f.layout.iter().filter(|&&inst| f.opcode(inst) == Opcode::Op(op)).count()
}

fn report(n_calls: usize, n_callees: usize) -> DevirtualisationReport {
    DevirtualisationReport { n_calls, n_callees }
}

/// Every index: functions of the type, one that traps, another type, null elements, and beyond the table.
#[test]
fn each_index_calls_or_traps_as_before() {
    let source = format!(
        "{TABLE} func f(i: i32) -> i64 {{
          local sum: i64
        again:
          i64.const 21  local.get i  call_indirect (i64) -> i64, t
          local.get sum  i64.add  local.tee sum
          i64.const 0  i64.eq  br_if again
          local.get sum  return
        }}"
    );
    let indices = [0, 1, 2, 3, 4, 5, 6, 7, 8, 0x7fff_ffff, 0xffff_ffff];
    let (found, forms) = check_same(&source, &args(&indices));
    assert_eq!(found, report(1, 3));
    let f = forms.last().expect("`f` is the last function");
    assert_eq!((count(f, Op::Call), count(f, Op::CallIndirect)), (3, 1));
}

#[test]
fn elsewhere_than_in_loops_few_functions_are_compared() {
    let call = |ty: &str| {
        format!("{TABLE} func f(i: i32) -> i64 {{ {ty}, t  i64.const 1  i64.add  return }}")
    };
    let narrow = call("i64.const 3  local.get i  call_indirect (i64) -> i64");
    assert_eq!(check_same(&narrow, &args(&[1, 2, 3])).0, report(0, 0));
    let wide = call("i64.const 3  i64.const 4  local.get i  call_indirect (i64, i64) -> i64");
    assert_eq!(check_same(&wide, &args(&[0, 1, 2, 5, 6, 7])).0, report(1, 2));
}

#[test]
fn a_constant_index_is_compared_with_nothing() {
    let source = |index: u32| {
        format!(
            "{TABLE} func f(i: i64) -> i64 {{
              local.get i  i32.const {index}  call_indirect (i64) -> i64, t  return
            }}"
        )
    };
    let (found, forms) = check_same(&source(3), &args(&[5]));
    assert_eq!(found, report(1, 1));
    let f = forms.last().expect("`f` is the last function");
    assert_eq!((count(f, Op::Call), count(f, Op::BrIf), count(f, Op::CallIndirect)), (1, 0, 0));
    for index in [0, 2, 7] {
        assert_eq!(check_same(&source(index), &args(&[5])).0, report(0, 0));
    }
}

#[test]
fn tail_calls_stay_tail_calls() {
    let source = format!(
        "{TABLE} func f(i: i32) -> i64 {{
          i64.const 3  i64.const 4  local.get i  return_call_indirect (i64, i64) -> i64, t
        }}"
    );
    let (found, forms) = check_same(&source, &args(&[0, 1, 2, 5, 6, 7]));
    assert_eq!(found, report(1, 2));
    let f = forms.last().expect("`f` is the last function");
    assert_eq!((count(f, Op::ReturnCall), count(f, Op::ReturnCallIndirect)), (2, 1));
}

#[test]
fn several_calls_in_a_block_are_replaced() {
    let source = format!(
        "{TABLE} func f(i: i32) -> i64 {{
          i64.const 3  i64.const 4  local.get i  call_indirect (i64, i64) -> i64, t
          i64.const 5  local.get i  call_indirect (i64, i64) -> i64, t
          i64.const 6  local.get i  i32.const 3  i32.add  call_indirect (i64, i64) -> i64, t
          return
        }}"
    );
    assert_eq!(check_same(&source, &args(&[0, 1, 2, 5])).0, report(3, 6));
}

#[test]
fn calls_through_other_tables_stay() {
    for rest in [
        "export \"t\" table t",
        "func w(i: i32) { local.get i  ref.func double  table.set t  return }",
    ] {
        let source = format!(
            "{TABLE} {rest}
            func f(i: i32) -> i64 {{
              i64.const 3  i64.const 4  local.get i  call_indirect (i64, i64) -> i64, t  return
            }}"
        );
        assert_eq!(check_same(&source, &args(&[2])).0, report(0, 0), "{rest}");
    }
}

/// Equal types with other numbers are the same type.
#[test]
fn types_are_compared_by_their_contents() {
    let mut source = module(&format!(
        "{TABLE} func f(i: i32) -> i64 {{
          i64.const 3  i64.const 4  local.get i  call_indirect (i64, i64) -> i64, t  return
        }}"
    ))
    .module()
    .clone();
    let wide = source.funcs[3].ty;
    source.types.push(source.types[wide as usize].clone());
    source.funcs[3].ty = source.types.len() as u32 - 1;
    let module = slotvm_bytecode::verify(source).expect("only the number of a type has changed");
    let mut forms = slot_forms(&module, &BuildOptions::default());
    assert_eq!(devirtualise(&mut forms[4], &module, &mut Analyses::default()), report(1, 2));
}

/// Loops are looked at for a call that stays as it is. Then a tail call of the function itself becomes a branch, though no
/// other body comes in.
#[test]
fn what_was_known_of_the_loops_is_forgotten_when_a_tail_call_becomes_one() {
    let source = format!(
        "{TABLE} func f(i: i32) -> i64 {{
          i64.const 21  local.get i  call_indirect (i64) -> i64, t  drop
          local.get i  i32.const 1  i32.sub  return_call f
        }}"
    );
    let module = module(&source);
    let func = module.n_funcs() - 1;
    let mut scratch = PassScratch::default();
    let mut context = PassContext::new(&module, func, &mut scratch);
    let (mut f, mut times) = (Function::default(), Times::default());
    f.func = func;
    let driver = Driver::new(User::Jit, PassSet::all(), true, &mut times);
    let ran = driver.run(&mut f, Start::Bytecode, &mut context, |_, _| {});
    assert_eq!(ran.expect("all rows are right").given_up.map(|row| row.name), None);
    scratch.analyses.check(&f);
    assert_eq!(scratch.analyses.loops(&f).0.n_loops(), 1);
}
