use std::fmt::Write;

use slotvm_bytecode::Op;

use super::*;
use crate::construction::build::{build, build_loop};
use crate::ir::eval::Options;
use crate::ir::irop::Opcode;
use crate::ir::print::print;
use crate::ir::verify::{Form, verify};
use crate::ir::{LocData, entity};
use crate::tools::samples::{BUILDS, args, module, random_functions, run, slot_forms};
use crate::tools::testing::Rng;

fn inlined(module: &VerifiedModule, options: &BuildOptions) -> (Vec<Function>, InlineReport) {
    let mut forms = slot_forms(module, options);
    let (mut total, mut kept) = (InlineReport::default(), KeptForms::default());
    for f in &mut forms {
        let report = inline(f, module, options, None, &mut BuildScratch::default(), &mut kept);
        verify(f, Form::Slots, module).unwrap_or_else(|violation| panic!("{violation}\n{f}"));
        total.n_calls += report.n_calls;
        total.has_loop |= report.has_loop;
        total.n_added += report.n_added;
    }
    (forms, total)
}

/// Checks that a module does the same with its calls inlined, with every charge, at several amounts of fuel and of stack.
fn check_same(module: &VerifiedModule, calls: &[Vec<u128>]) -> InlineReport {
    check_same_with(&BUILDS, module, calls)
}

fn check_same_with(
    builds: &[BuildOptions],
    module: &VerifiedModule,
    calls: &[Vec<u128>],
) -> InlineReport {
    let mut report = InlineReport::default();
    for &build in builds {
        let (forms, of_build) = inlined(module, &build);
        report = of_build;
        let fuels = if build.fuel { &[Some(10), Some(57), Some(5_000)][..] } else { &[None] };
        for &fuel in fuels {
            for stack_cells in [Some(20), Some(5_000)] {
                let stack_cells = stack_cells.filter(|_| build.stack_cells);
                let polls = build.polls.then_some(30);
                let options = Options { fuel, stack_cells, polls, ..Options::default() };
                let expected = run(module, slot_forms(module, &build), calls, &options);
                let actual = run(module, forms.clone(), calls, &options);
                let texts = || forms.iter().map(print).collect::<String>();
                assert_eq!(actual, expected, "{build:?} {options:?}\n{}", texts());
            }
        }
    }
    report
}

#[test]
fn a_body_replaces_a_call_in_a_loop() {
    let module = module(
        "func clamp(a: i32) -> i32 {
          local.get a  i32.const 0  i32.lt_s  br_if negative
          local.get a  return
        negative:
          i32.const 0  return
        }
        func sum(n: i32) -> i32 {
          local i: i32
          local s: i32
        again:
          local.get s  local.get i  call clamp  i32.add  local.set s
          local.get i  i32.const 1  i32.add  local.tee i
          local.get n  i32.lt_s  br_if again
          local.get s  return
        }",
    );
    let report = check_same(&module, &args(&[0, 1, 10, 20]));
    assert_eq!((report.n_calls, report.has_loop), (1, false));
    let (forms, _) = inlined(&module, &BUILDS[0]);
    let is_call =
        |f: &Function| f.layout.iter().any(|&inst| f.opcode(inst) == Opcode::Op(Op::Call));
    assert!(!forms.iter().any(is_call));
}

#[test]
fn a_small_loop_is_inlined_in_loops_and_in_small_functions() {
    // The numbers of instructions in the loop, and of calls to inline.
    for (n_more, expected) in [(0, 2), (20, 0)] {
        let turns = |n: usize| "local.get a  i64.const 1  i64.rotl  local.set a  ".repeat(n);
        let (more, many) = (turns(n_more), turns(40));
        let module = module(&format!(
            "func zeros(a: i64) -> i64 {{
              local n: i64
            next:
              {more}
              local.get n  i64.const 1  i64.add  local.set n
              local.get a  i64.const 2  i64.div_s  local.tee a  i32.wrap_i64  br_if next
              local.get n  return
            }}
            func f(n: i64) -> i64 {{
              local sum: i64
              local.get n  call zeros  local.set sum
            again:
              local.get sum  local.get n  call zeros  i64.add  local.set sum
              local.get n  i64.const 1  i64.add  local.tee n
              i64.const 24  i64.lt_s  br_if again
              local.get sum  return
            }}
            func small(a: i64) -> i64 {{ local.get a  call zeros  i64.const 3  i64.mul  return }}
            func large(a: i64) -> i64 {{ {many} local.get a  call zeros  return }}"
        ));
        let report = check_same(&module, &args(&[1, 16]));
        assert_eq!(report.n_calls, expected);
    }
}

/// A local of an inlined function starts as zero each time.
#[test]
fn locals_start_anew_in_each_round() {
    let module = module(
        "func count(a: i64) -> i64 {
          local sum: i64
          local.get sum  local.get a  i64.add  local.tee sum  return
        }
        func f(n: i64) -> i64 {
          local total: i64
        again:
          local.get n  call count  local.get total  i64.add  local.set total
          local.get n  i64.const 1  i64.sub  local.tee n
          i64.const 0  i64.gt_s  br_if again
          local.get total  return
        }",
    );
    let report = check_same(&module, &args(&[3, 5]));
    assert_eq!(report.n_calls, 1);
}

/// Traps keep their places, and locations the calls around them.
#[test]
fn a_trap_in_a_body_has_its_place() {
    let module = module(
        "func divide(a: i32, b: i32) -> i32 { local.get a  local.get b  i32.div_s  return }
        func half(a: i32) -> i32 { i32.const 100  local.get a  call divide  return }
        func f(a: i32) -> i32 { local.get a  call half  return }",
    );
    let report = check_same(&module, &args(&[7, 0]));
    // One in `half`, and two in `f`.
    assert_eq!(report.n_calls, 3);
    let (forms, _) = inlined(&module, &BUILDS[0]);
    let f = &forms[2];
    let is_division = |inst: &&entity::Inst| f.opcode(**inst) == Opcode::Op(Op::I32DivS);
    let division = *f.layout.iter().find(is_division).expect("the division is in `f` now");
    let chain: Vec<u32> = chain(f, f.loc(division)).iter().map(|loc| loc.func).collect();
    assert_eq!(chain, [0, 1, 2]);
}

/// A location, and those of the calls around it.
fn chain(f: &Function, loc: entity::Loc) -> Vec<LocData> {
    let data = |loc: entity::Loc| f.locs[loc.index()];
    std::iter::successors(Some(data(loc)), |at| at.inlined_at.map(data)).collect()
}

#[test]
fn a_function_is_inlined_into_itself_once() {
    let module = module(
        "func fib(n: i64) -> i64 {
          local.get n  i64.const 2  i64.lt_u  br_if small
          local.get n  i64.const 1  i64.sub  call fib
          local.get n  i64.const 2  i64.sub  call fib
          i64.add  return
        small:
          local.get n  return
        }",
    );
    let report = check_same(&module, &args(&[0, 1, 2, 9]));
    // Two bodies, and the leaf for each of their calls.
    assert_eq!((report.n_calls, report.has_loop), (6, false));
    let (forms, _) = inlined(&module, &BUILDS[0]);
    assert_eq!(n_calls_of_itself(&forms[0]), 4);
    // The parameter of the function, of each body, and of all leaves.
    assert_eq!(forms[0].slots.len(), 1 + 2 + 1);
}

fn n_calls_of_itself(f: &Function) -> usize {
    let is_own = |inst: &&entity::Inst| {
        f.opcode(**inst) == Opcode::Op(Op::Call) && f.imm(**inst).low() == f.func
    };
    f.layout.iter().filter(is_own).count()
}

/// The functions of this text with their bodies, which call `walk` and `g`.
fn walks(test: &str, leaf: &str, rest: &str) -> VerifiedModule {
    module(&format!(
        "import \"env\" \"show\" func show(i64)
        global g: mut i64 = i64.const 3
        func walk(n: i64) -> i64 {{
          {test}  br_if more
          {leaf}  local.get n  return
        more:
          {rest}
        }}
        func f(n: i64) -> i64 {{ local.get n  call walk  call show  global.get g  return }}"
    ))
}

const TWICE: &str = "local.get n  i64.const 1  i64.sub  call walk
    local.get n  i64.const 2  i64.sub  call walk  i64.add  return";

/// Charges move into the leaf, and so does what it writes. A test that may trap or reads stays behind charges.
#[test]
fn leaves_do_what_the_whole_function_does() {
    let writes = "global.get g  local.get n  i64.add  global.set g";
    for (test, leaf, is_pure) in [
        ("local.get n  i64.const 2  i64.ge_s", writes, true),
        ("i64.const 6  local.get n  i64.div_s  i64.const 3  i64.lt_s", "", false),
        ("global.get g  local.get n  i64.gt_s", writes, false),
    ] {
        let module = walks(test, leaf, TWICE);
        check_same(&module, &args(&[0, 1, 3, 6]));
        let n_calls = |build| inlined(&module, build).1.n_calls;
        // Without leaves these are the two calls in `walk`, and in `f` none or that of `walk`.
        let (plain, charged) = (n_calls(&BUILDS[0]), n_calls(&BUILDS[1]));
        assert!(plain >= 6, "{test}: {plain}");
        assert_eq!(charged >= 6, is_pure, "{test}: {charged}");
    }
}

/// A chain of calls has one leaf. A loop that calls now and then may have none, and so may a function that returns
/// elsewhere without a call.
#[test]
fn only_functions_that_call_themselves_again_have_leaves() {
    let test = "local.get n  i64.const 2  i64.ge_s";
    let one = "local.get n  i64.const 1  i64.sub  call walk";
    let either = format!(
        "local.get n  i64.ctz  i32.wrap_i64  br_if odd  {one}  return\nodd:  {one}  return"
    );
    let step = "local.get n  i64.const 1  i64.sub  local.tee n  i32.wrap_i64";
    let each =
        format!("{step}  drop\nagain:  {one}  drop  {step}  br_if again  local.get n  return");
    let some = format!(
        "{step}  drop
        again:  local.get n  i64.const 3  i64.and  i32.wrap_i64  br_if next  {one}  drop
        next:  {step}  br_if again  local.get n  return"
    );
    let most = format!("{step}  i32.eqz  br_if end  {TWICE}\nend:  local.get n  return");
    for (rest, has_leaf) in
        [(TWICE, true), (&either, false), (&each, true), (&some, false), (&most, false)]
    {
        let module = walks(test, "", rest);
        check_same(&module, &args(&[0, 1, 3, 6]));
        let walk = &slot_forms(&module, &BUILDS[0])[0];
        assert_eq!(leaf::leaf(walk).is_some(), has_leaf, "{rest}");
    }
}

#[test]
fn tail_calls_of_itself_become_loops() {
    let module = module(
        "import \"env\" \"show\" func show(i64)
        func sum(n: i64, total: i64) -> i64 {
          local zero: i64
          local.get zero  call show
          i64.const 7  local.set zero
          local.get n  i64.eqz  br_if done
          local.get n  i64.const 1  i64.sub  local.get total  local.get n  i64.add
          return_call sum
        done:
          local.get total  return
        }
        func even(n: i64) -> i64 {
          local.get n  i64.eqz  br_if yes
          local.get n  i64.const 1  i64.sub  return_call odd
        yes:
          i64.const 1  return
        }
        func odd(n: i64) -> i64 {
          local.get n  i64.eqz  br_if no
          local.get n  i64.const 1  i64.sub  return_call even
        no:
          i64.const 0  return
        }
        func f(n: i64) -> i64 {
          local.get n  call even  call show
          local.get n  i64.const 0  call sum  i64.const 1  i64.add  return
        }",
    );
    let report = check_same(&module, &args(&[0, 1, 4]));
    assert!(report.has_loop, "{report:?}");
    let (forms, _) = inlined(&module, &BUILDS[0]);
    let n_tail_calls = |f: &Function| {
        let is_tail_call = |inst: &&entity::Inst| f.opcode(**inst) == Opcode::Op(Op::ReturnCall);
        f.layout.iter().filter(is_tail_call).count()
    };
    let n_left: Vec<usize> = forms.iter().map(n_tail_calls).collect();
    assert_eq!(n_left, [0, 0, 0, 0], "`sum`, `even` and `odd` are loops");
}

/// A body that leaves by a tail call continues after the call that it replaces, and has no frame in the callee.
#[test]
fn tail_calls_in_bodies_return_to_the_caller() {
    let shows = "local.get n  call show  ".repeat(40);
    let module = module(&format!(
        "import \"env\" \"show\" func show(i64)
        func trap(n: i64) -> i64 {{ {shows}  i64.const 100  local.get n  i64.div_s  return }}
        func pass(n: i64) -> i64 {{ local.get n  return_call trap }}
        func both(n: i64) -> i64 {{
          local.get n  i64.const 3  i64.eq  br_if other
          local.get n  return_call pass
        other:
          local.get n  return
        }}
        func f(n: i64) -> i64 {{
        again:
          local.get n  call both  i64.const 1  i64.add  local.tee n
          i64.const 100  i64.lt_s  br_if again
          local.get n  return
        }}",
    ));
    let report = check_same(&module, &args(&[0, 3, 5]));
    assert!(report.n_calls >= 2, "{report:?}");
    let (forms, _) = inlined(&module, &BUILDS[0]);
    let f = &forms[3];
    let is_call = |inst: &&entity::Inst| f.opcode(**inst) == Opcode::Op(Op::Call);
    let call = *f.layout.iter().find(is_call).expect("`trap` is too large to be inlined");
    let chain: Vec<u32> = chain(f, f.loc(call)).iter().map(|loc| loc.func).collect();
    assert_eq!(chain, [4], "neither `both` nor `pass` has a frame");
}

#[test]
fn indirect_tail_calls_are_inlined_in_tails_only() {
    for (call, n_calls) in [("call jump  i64.const 1  i64.add  return", 0), ("return_call jump", 1)]
    {
        let source = format!(
            "table t funcref 1
            elem targets t at i32.const 0 func target
            func target(n: i64) -> i64 {{ local.get n  i64.const 2  i64.mul  return }}
            func jump(n: i64) -> i64 {{
              local.get n  i32.const 0  return_call_indirect (i64) -> i64
            }}
            func f(n: i64) -> i64 {{ local.get n  {call} }}"
        );
        assert_eq!(check_same(&module(&source), &args(&[0, 3])).n_calls, n_calls, "{call}");
    }
}

#[test]
fn functions_that_never_return_end_their_callers() {
    let module = module(
        "func never() { unreachable }
        func f(n: i32) -> i32 {
          local.get n  br_if fail
          i32.const 3  return
        fail:
          call never
          i32.const 4  return
        }",
    );
    let report = check_same(&module, &args(&[0, 1]));
    assert_eq!(report.n_calls, 1);
}

/// Locals in memory are taken and given back in each round.
#[test]
fn frames_in_memory_come_and_go() {
    let module = module(
        "memory m 1
        frame_stack 0 1024
        func add_to(at: i32, n: i64) {
          local.get at  local.get at  i64.load 0  local.get n  i64.add  i64.store 0  return
        }
        func f(n: i64) -> i64 {
          local sum: i64
        again:
          local.addr sum  local.get n  call add_to
          local.get n  i64.const 1  i64.sub  local.tee n  i64.const 0  i64.gt_s  br_if again
          local.get sum  return
        }",
    );
    assert_eq!(check_same(&module, &args(&[3, 5])).n_calls, 1);
}

#[test]
fn random_functions_do_the_same() {
    let mut rng = Rng(18);
    let (mut n_calls, mut n_loops) = (0, 0);
    for _ in 0..300 {
        let module = random_functions(&mut rng);
        // Only fuel ends them all.
        let report = check_same_with(&BUILDS[1..], &module, &args(&[0, 2, 5]));
        n_calls += report.n_calls;
        n_loops += usize::from(report.has_loop);
    }
    assert!(n_calls > 100 && n_loops > 50, "{n_calls} calls, {n_loops} loops");
}

#[test]
fn kept_forms_change_nothing() {
    let mut rng = Rng(19);
    let (mut kept, mut n_calls) = (KeptForms::default(), 0);
    for _ in 0..100 {
        let module = random_functions(&mut rng);
        for options in &BUILDS {
            for f in slot_forms(&module, options) {
                // Those of other modules and charges are forgotten.
                let [with, without] = [&mut kept, &mut KeptForms::default()].map(|kept| {
                    let (mut f, scratch) = (f.clone(), &mut BuildScratch::default());
                    let report = inline(&mut f, &module, options, None, scratch, kept);
                    (print(&f), report)
                });
                assert_eq!(with, without);
                n_calls += with.1.n_calls;
            }
        }
    }
    assert!(n_calls > 100, "{n_calls} calls");
}

/// The form of `main` that is entered in its first loop, with its calls inlined.
fn inlined_at_loop(source: &str) -> (Function, InlineReport) {
    let (module, scratch) = (module(source), &mut BuildScratch::default());
    let main = module.n_funcs() - 1;
    let start = module.body(main).expect("it is defined").loops()[0].start;
    let form = build_loop(&module, main, &[start], FuncExits::NONE, &BUILDS[1], scratch);
    let mut f = form.expect("one loop has one frame");
    let entry = f.insts(Function::ENTRY).len();
    let report = inline(&mut f, &module, &BUILDS[1], None, scratch, &mut KeptForms::default());
    verify(&f, Form::Slots, &module).unwrap_or_else(|violation| panic!("{violation}\n{f}"));
    assert!(f.insts(Function::ENTRY).len() >= entry, "the entry still sets the slots\n{f}");
    (f, report)
}

fn tail_calls(f: &Function) -> Vec<u32> {
    let is_tail = |&&inst: &&entity::Inst| f.opcode(inst) == Opcode::Op(Op::ReturnCall);
    f.layout.iter().filter(is_tail).map(|&inst| f.imm(inst).low()).collect()
}

/// A branch to the entry would find the loop's frame there, and no parameters.
#[test]
fn tail_calls_of_a_form_that_is_entered_in_a_loop_leave_it() {
    let source = "
        func small(a: i64) -> i64 { local.get a  i64.const 3  i64.mul  return }
        func main(n: i64, total: i64) -> i64 {
        again:
          local.get total  call small  local.set total
          local.get n  i64.const 1  i64.sub  local.tee n  i32.wrap_i64  br_if again
          local.get total  i32.wrap_i64  br_if more
          local.get total  return
        more:
          i64.const 7  i64.const 0  return_call main
        }";
    let (f, report) = inlined_at_loop(source);
    assert_eq!((report.n_calls, report.has_loop), (1, false));
    assert_eq!(tail_calls(&f), [1], "{f}");
}

/// The bodies of functions that call themselves last, in the place of tail calls: of the function itself, and of another.
#[test]
fn bodies_that_call_themselves_last_leave_a_form_that_is_entered_in_a_loop() {
    let own = "
        func main(n: i64) -> i64 {
        again:
          local.get n  i64.const 1  i64.sub  local.tee n  i32.wrap_i64  br_if again
          local.get n  return_call main
        }";
    let other = "
        func last(n: i64) -> i64 {
          local.get n  i64.eqz  br_if end
          local.get n  i64.const 1  i64.sub  return_call last
        end:
          local.get n  return
        }
        func main(n: i64) -> i64 {
        again:
          local.get n  i64.const 1  i64.sub  local.tee n  i32.wrap_i64  br_if again
          local.get n  return_call last
        }";
    for (source, callee) in [(own, 0), (other, 0)] {
        let (f, report) = inlined_at_loop(source);
        assert!(!report.has_loop, "{report:?}\n{f}");
        assert!(tail_calls(&f).iter().all(|&called| called == callee), "{f}");
        assert!(!tail_calls(&f).is_empty(), "{f}");
    }
}

/// A module of many small functions that call one another grows in proportion.
#[test]
fn growth_is_bounded() {
    let mut text =
        String::from("func f0(a: i64) -> i64 { local.get a  i64.const 3  i64.mul  return }\n");
    for i in 1..2_000 {
        let (x, y) = (i - 1, i / 2);
        let body =
            format!("local.get a call f{x} call f{y} call f{x} i64.const {i} i64.add return");
        writeln!(text, "func f{i}(a: i64) -> i64 {{ {body} }}").unwrap();
    }
    let module = module(&text);
    let (forms, report) = inlined(&module, &BUILDS[0]);
    assert!(report.n_calls > 1_000, "{report:?}");
    let n_insts: usize = forms.iter().map(|f| f.layout.len()).sum();
    assert!(n_insts < 2_000 * 100, "{n_insts}");
}

/// A function with a rare way, which another one calls while operands wait: a local, a constant, and a result.
const RARE: &str = "
    func rare(x: i64) -> i64 {
      local.get x  i64.eqz  br_if rare
      local.get x  return
    rare:
      i64.const 9  return
    }
    func main(a: i64, b: i64) -> i64 {
      local c: i64  local d: i64
      local.get a  i64.const 5  local.get b  i64.eqz  i64.extend_i32_u
      local.get b  CALL rare
      i64.add  i64.sub  i64.xor
      local.get c  i64.add  return
    }";

/// The form of `main` with exits in the place of the rare way of what it calls, whose frames may have so many cells.
fn with_rare_exits(source: &str, cells_max: u32) -> String {
    let module = module(source);
    let options = BuildOptions { waits: true, ..BuildOptions::default() };
    let (mut scratch, mut kept) = (BuildScratch::default(), KeptForms::default());
    let main = module.n_funcs() - 1;
    let mut f = build(&module, main, &options, &mut scratch);
    let of_funcs = HashMap::from([(0, FuncExits { blocks: vec![2], calls: Vec::new() })]);
    let exits = Some(BodyExits { of_funcs: &of_funcs, cells_max });
    let report = inline(&mut f, &module, &options, exits, &mut scratch, &mut kept);
    assert_eq!((report.n_calls, f.waiting.len()), (module.n_funcs() as usize - 1, 0));
    verify(&f, Form::Slots, &module).unwrap_or_else(|violation| panic!("{violation}\n{f}"));
    f.to_string()
}

#[test]
fn exits_of_bodies_leave_the_frames_of_callers() {
    let text = with_rare_exits(&RARE.replace("CALL", "call"), 100);
    // Operands lie above the four locals; `d` is never read.
    let exit = "exit f0 at 2: < f1 after ";
    assert!(text.contains(exit), "{text}");
    let places = text.split(exit).nth(1).and_then(|rest| rest.split(": ").nth(1)).unwrap();
    assert!(places.starts_with("cell 0, cell 1, cell 2, cell 4, cell 5, cell 6 ("), "{places}");
}

#[test]
fn bodies_are_whole_where_frames_cannot_be_left() {
    let source = RARE.replace("CALL", "call");
    assert!(with_rare_exits(&source, 6).contains("exit"), "six cells wait");
    assert!(!with_rare_exits(&source, 5).contains("exit"), "and none is left out");
}

#[test]
fn exits_of_tail_called_bodies_leave_no_frame_of_the_function_that_calls() {
    let tail = "local.get b  CALL rare
      i64.add  i64.sub  i64.xor
      local.get c  i64.add  return";
    let text = RARE.replace(tail, "drop drop drop local.get b  return_call rare");
    let text = with_rare_exits(&text, 100);
    assert!(text.contains("exit f0 at 2: ") && !text.contains("< f1"), "{text}");
    // `main` waits for `next`, and then for what that tail calls.
    let next = "func next(x: i64) -> i64 { local.get x  return_call rare }  func main";
    let source = RARE.replace("CALL rare", "call next").replace("func main", next);
    let text = with_rare_exits(&source, 100);
    assert!(text.contains("exit f0 at 2: < f2 after ") && !text.contains("f1 after"), "{text}");
}

/// Each value that an exit leaves is an instruction, whoever's frame it is in.
#[test]
fn exits_count_by_the_values_of_all_frames() {
    let with_locals = |n: usize| {
        let locals = "local i64  ".repeat(n);
        let reads: String = (0..n).map(|i| format!("local.get {}  i64.add  ", i + 4)).collect();
        let source = RARE.replace("CALL", "call").replace("local d: i64", "local d: i64  LOCALS");
        source
            .replace("LOCALS", &locals)
            .replace("local.get c  i64.add", &format!("local.get c  i64.add  {reads}"))
    };
    assert!(with_rare_exits(&with_locals(0), 256).contains("exit"));
    assert!(!with_rare_exits(&with_locals(20), 256).contains("exit"), "20 more values");
}
