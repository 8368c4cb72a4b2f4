use std::cell::RefCell;
use std::collections::HashMap;

use slotvm_bytecode::VerifiedModule;

use super::*;
use crate::construction::build::BuildOptions;
use crate::construction::promote::{Scratch, promote};
use crate::ir::eval::{Imports, Machine, Options};
use crate::ir::verify::{Form, verify};
use crate::tools::samples::{module, slot_form};

/// Objects by address. All move at each call of the host, and what no root names is gone.
#[derive(Default)]
struct Heap {
    objects: HashMap<u64, u64>,
    next: u64,
}

const IMPORTS: &str = "
    import \"heap\" \"alloc\" func alloc(i64) -> ref
    import \"heap\" \"value\" func value(ref) -> i64
";

/// The result of function 2 on each argument, in forms that a function makes of slot form.
fn run(module: &VerifiedModule, make: impl Fn(&mut Function), args: &[u128]) -> Vec<u128> {
    let heap = RefCell::new(Heap::default());
    let functions = (module.n_imported_funcs()..module.n_funcs()).map(|func| {
        let mut f = slot_form(module, func, &Default::default());
        make(&mut f);
        f
    });
    let host = |mut call: crate::ir::eval::HostCall<'_>| {
        let heap = &mut *heap.borrow_mut();
        let value = |bits: u128| heap.objects.get(&(bits as u64)).copied();
        let seen = (call.func == 1).then(|| value(call.args[0]).expect("it is of this time"));
        let mut moved = HashMap::new();
        call.roots.visit(|root| {
            let value = heap.objects.get(root).copied();
            let value = value.expect("a root is of this time");
            heap.next += 8;
            let (new, _) = *moved.entry(*root).or_insert((heap.next, value));
            *root = new;
        });
        heap.objects = moved.into_values().collect();
        Ok(vec![match seen {
            Some(value) => value.into(),
            None => {
                heap.next += 8;
                heap.objects.insert(heap.next, call.args[0] as u64);
                heap.next.into()
            }
        }])
    };
    let imports = Imports { host: Box::new(host), globals: Vec::new() };
    let mut machine = Machine::new(module, functions.collect(), imports, Options::default());
    args.iter().map(|&arg| machine.call(2, &[arg]).expect("it returns")[0]).collect()
}

/// Checks that a program does the same before and after the pass, in slot form and in SSA form.
fn check(source: &str, args: &[u128], expected: &[u128]) -> Vec<RootsReport> {
    let module = module(&format!("{IMPORTS}{source}"));
    let reports = RefCell::new(Vec::new());
    assert_eq!(run(&module, |_| {}, args), expected, "before");
    let make = |f: &mut Function| {
        let report = roots(f, &module, &mut Analyses::default());
        assert_eq!(verify(f, Form::Slots, &module).err(), None);
        reports.borrow_mut().push(report);
    };
    assert_eq!(run(&module, make, args), expected, "slot form");
    let promoted = |f: &mut Function| {
        roots(f, &module, &mut Analyses::default());
        promote(f, &mut Scratch::default());
        assert_eq!(verify(f, Form::Ssa, &module).err(), None);
    };
    assert_eq!(run(&module, promoted, args), expected, "SSA form");
    reports.into_inner()
}

const LOOP: &str = "
    func f(n: i64) -> i64 {
      local a: ref
      local b: ref
      local sum: i64
      i64.const 7  call alloc  local.set a
      i64.const 9  call alloc  local.set b
    next:
      local.get a  call value  local.get sum  i64.add  local.set sum
      local.get b  call value  local.get sum  i64.xor  local.set sum
      local.get b  local.get a  local.set b  local.set a
      local.get n  i64.const 1  i64.sub  local.tee n  i64.const 0  i64.ne  br_if next
      local.get sum  return
    }";

fn sum(n: u64) -> u128 {
    let (mut a, mut b, mut sum) = (7, 9, 0_u64);
    for _ in 0..n {
        sum = (sum + a) ^ b;
        (a, b) = (b, a);
    }
    sum.into()
}

#[test]
fn references_in_slots_are_those_of_their_time() {
    let reports = check(LOOP, &[1, 2, 10], &[sum(1), sum(2), sum(10)]);
    // At the call that makes the first one, none waits.
    assert_eq!(reports, [RootsReport { n_safepoints: 3, is_in_memory: false }]);
}

#[test]
fn operands_that_wait_are_those_of_their_time() {
    let source = "
        func f(n: i64) -> i64 {
          local.get n  call alloc
          dup  i64.const 5  call alloc  call value
          swap  call value  i64.add
          rot drop
          return
        }";
    let source = source.replace("rot drop", "swap  call value  i64.mul");
    check(&source, &[3, 4], &[24, 36]);
}

#[test]
fn bits_before_a_call_are_not_those_after_it() {
    // Objects move, so the bits differ, unless a pass takes the ones for the others.
    let source = "
        func f(n: i64) -> i64 {
          local a: ref
          local.get n  call alloc  local.set a
          local.get a  i64.reinterpret_ref
          local.get a  call value  drop
          local.get a  i64.reinterpret_ref  i64.eq  i64.extend_i32_u  return
        }";
    check(source, &[3], &[0]);
}

#[test]
fn a_reference_is_written_once_for_calls_in_a_row() {
    let source = format!(
        "{IMPORTS} func f(n: i64) -> i64 {{
          local a: ref
          local.get n  call alloc  local.set a
          {}
          local.get a  call value  return
        }}",
        "i64.const 1  call alloc  drop  ".repeat(10)
    );
    let module = module(&source);
    let mut f = slot_form(&module, 2, &Default::default());
    let report = roots(&mut f, &module, &mut Analyses::default());
    assert_eq!(report.n_safepoints, 10);
    let n = |op| f.layout.iter().filter(|&&inst| f.opcode(inst) == Opcode::Ir(op)).count();
    assert_eq!((n(IrOp::RootSet), n(IrOp::RootGet), f.n_root_cells), (1, 10, 1));
}

/// A call on both ways, or one way without it, where the slot is written or not; then one more call.
#[test]
fn a_reference_is_not_written_again_after_calls_on_all_ways() {
    let call = "i64.const 1  call alloc  drop";
    let write = "i64.const 50  call alloc  local.set a";
    for (one, other, n_sets) in [
        (call, call, 2),
        (call, "i64.const 1  drop", 2),
        (call, write, 2),
        (&format!("{call} local.get a  call value  drop {write}")[..], call, 3),
        (&format!("{write} {call}")[..], call, 2),
    ] {
        let body = format!(
            "local a: ref
             local.get n  call alloc  local.set a
             local.get n  i64.eqz  br_if else
             {one}  br merge
           else:
             {other}
           merge:
             {call}
             local.get a  call value  return"
        );
        let source = format!("func f(n: i64) -> i64 {{ {body} }}");
        let value = |side: &str, n| if side.contains("local.set") { 50 } else { n };
        check(&source, &[5, 0], &[value(one, 5), value(other, 0)]);
        let module = module(&format!("{IMPORTS}{source}"));
        let mut f = slot_form(&module, 2, &Default::default());
        roots(&mut f, &module, &mut Analyses::default());
        let is_set = |inst: &&Inst| f.opcode(**inst) == Opcode::Ir(IrOp::RootSet);
        assert_eq!(f.layout.iter().filter(is_set).count(), n_sets, "{one} or {other}");
    }
}

/// Polls do not write cells where they are not due, so a call after them does, on whatever way.
#[test]
fn a_poll_on_one_way_keeps_what_is_in_a_cell_and_adds_nothing() {
    let source = format!(
        "{IMPORTS} func f(n: i64) -> i64 {{
          local a: ref
          local.get n  call alloc  local.set a
        next:
          local.get n  i64.const 1  i64.sub  local.tee n  i64.const 0  i64.ne  br_if next
          i64.const 1  call alloc  drop
        again:
          local.get n  i64.const 1  i64.add  local.tee n  i64.const 3  i64.ne  br_if again
          i64.const 1  call alloc  drop
          local.get a  call value  return
        }}"
    );
    let module = module(&source);
    let options = BuildOptions { polls: true, ..BuildOptions::default() };
    let mut f = slot_form(&module, 2, &options);
    roots(&mut f, &module, &mut Analyses::default());
    // At each round of the first loop and the call after it, but no more.
    let mut sets = f.layout.iter().filter(|&&inst| f.opcode(inst) == Opcode::Ir(IrOp::RootSet));
    let polls = f.layout.iter().filter(|&&inst| f.opcode(inst) == Opcode::Ir(IrOp::Poll)).count();
    assert!(polls >= 2);
    assert_eq!(sets.by_ref().count(), 2);
}

/// Each block is looked at as often as its word can change, whatever order the blocks are in.
#[test]
fn blocks_in_reverse_order_take_linear_time() {
    let n = 5_000;
    let mut body = String::from("local a: ref local.get n call alloc local.set a br l0\n");
    for i in (0..n).rev() {
        body += &format!("l{i}: i64.const 1 call alloc drop br l{}\n", i + 1);
    }
    body += &format!("l{n}: local.get a call value return");
    let module = module(&format!("{IMPORTS} func f(n: i64) -> i64 {{ {body} }}"));
    let mut f = slot_form(&module, 2, &Default::default());
    roots(&mut f, &module, &mut Analyses::default());
    let is_set = |inst: &&Inst| f.opcode(**inst) == Opcode::Ir(IrOp::RootSet);
    assert_eq!(f.layout.iter().filter(is_set).count(), 1);
}

#[test]
fn a_slot_that_was_written_since_is_written_to_its_cell_again() {
    let source = "
        func f(n: i64) -> i64 {
          local a: ref
          local.get n  call alloc  local.set a
          i64.const 1  call alloc  drop
          local.get a  call value
          i64.const 2  call alloc  local.set a
          i64.const 1  call alloc  drop
          local.get a  call value  i64.add  return
        }";
    check(source, &[5, 6], &[7, 8]);
}

#[test]
fn many_references_stay_in_memory() {
    let n = 40;
    let locals = (0..n).map(|i| format!("local l{i}: ref\n")).collect::<String>();
    let sets = (0..n)
        .map(|i| format!("i64.const {i} local.get n i64.add call alloc local.set l{i}\n"))
        .collect::<String>();
    let gets = (0..n).map(|i| format!("local.get l{i} call value i64.add\n")).collect::<String>();
    let source = format!("func f(n: i64) -> i64 {{ {locals} {sets} i64.const 0 {gets} return }}");
    let expected = (0..n).map(|i| i + 5).sum();
    let reports = check(&source, &[5], &[expected]);
    assert!(reports[0].is_in_memory);
}

#[test]
fn many_operands_stay_in_memory() {
    let n = 50;
    let pushes = (0..n)
        .map(|i| format!("i64.const {i} local.get n i64.add call alloc\n"))
        .collect::<String>();
    let pops = "call value local.get sum i64.add local.set sum\n".repeat(n as usize);
    let source =
        format!("func f(n: i64) -> i64 {{ local sum: i64 {pushes} {pops} local.get sum return }}");
    let expected = (0..n).map(|i| i + 5).sum();
    let reports = check(&source, &[5], &[expected]);
    assert!(reports[0].is_in_memory);
}

/// A thousand references at a thousand calls.
#[test]
fn the_result_is_linear() {
    let size = |n: usize| {
        let locals = (0..n).map(|i| format!("local l{i}: ref\n")).collect::<String>();
        let calls = "i64.const 1 call alloc drop\n".repeat(n);
        let gets = (0..n).map(|i| format!("local.get l{i} call value drop\n")).collect::<String>();
        let source = format!(
            "{IMPORTS} func f(n: i64) -> i64 {{ {locals} {calls} {gets} i64.const 0 return }}"
        );
        let module = module(&source);
        let mut f = slot_form(&module, 2, &Default::default());
        let before = f.n_insts_in_blocks();
        roots(&mut f, &module, &mut Analyses::default());
        f.n_insts_in_blocks() as f64 / before as f64
    };
    for n in [1, 5, 20, 31, 100, 1_000] {
        let factor = size(n);
        assert!(factor < 6.0, "{n} references: {factor}");
    }
}
