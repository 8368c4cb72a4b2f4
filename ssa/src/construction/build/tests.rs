use slotvm_bytecode::BranchHint;

use super::*;
use crate::construction::promote::{Scratch, promote};
use crate::ir::parse::parse;
use crate::ir::verify::{Form, verify};
use crate::tools::samples::{module, slot_form, slot_forms};

const CHARGED: BuildOptions =
    BuildOptions { fuel: true, stack_cells: true, polls: false, waits: false };

/// Checks the lines of a function's slot form, except locations.
fn check(source: &str, options: &BuildOptions, expected: &str) {
    let module = module(source);
    let func = module.n_imported_funcs();
    let printed = slot_form(&module, func, options).to_string();
    let lines = |text: &str| -> Vec<String> {
        let code = text.lines().map(|line| line.split(';').next().unwrap_or("").trim());
        code.filter(|line| !line.is_empty()).map(str::to_owned).collect()
    };
    assert_eq!(lines(&printed), lines(expected), "\n{printed}");
}

#[test]
fn locations_and_labels_are_kept() {
    let source =
        "func add(a: i64) -> i64 { local.get a  br l  l(i64): i64.const 300  i64.add  return }";
    assert_eq!(
        slot_form(&module(source), 0, &BuildOptions::default()).to_string(),
        "\
func f0 add(v0: i64) -> i64 {
  slot s0: i64 = local 0
  slot stack0: i64 = stack 0
b0:                                     ; @0000
  slot.set s0, v0                       ; @0000
  v1 = slot.get s0                      ; @0000
  slot.set stack0, v1                   ; @0000
  br b1                                 ; @0002
b1:                                     ; label 0 @0004
  v2 = i64.const 300                    ; @0004
  v3 = slot.get stack0                  ; @0007
  v4 = i64.add v3, v2                   ; @0007
  return v4                             ; @0008
}
"
    );
}

#[test]
fn operands_that_survive_are_written_where_they_are_pushed() {
    // The bottom operand stays, the one above changes, the top is dropped unread.
    check(
        "func f(n: i64) -> i64 {
            i64.const 1  i64.const 2  f32.const 3
          loop(i64, i64, f32):
            drop
            local.get n  i64.add
            f32.const 4
            local.get n  i64.eqz  br_if loop
            drop  i64.mul  return }",
        &BuildOptions::default(),
        "func f0 f(v0: i64) -> i64 {
           slot s0: i64 = local 0
           slot stack0: i64 = stack 0
           slot stack1: i64 = stack 1
           slot stack2: f32 = stack 2
         b0:
           slot.set s0, v0
           v1 = i64.const 1
           slot.set stack0, v1
           v2 = i64.const 2
           slot.set stack1, v2
           v3 = f32.const 3.0
           slot.set stack2, v3
           br b1
         b1:
           v4 = slot.get s0
           v5 = slot.get stack1
           v6 = i64.add v5, v4
           slot.set stack1, v6
           v7 = f32.const 4.0
           slot.set stack2, v7
           v8 = slot.get s0
           v9 = i64.eqz v8
           br_if v9, b1, b2
         b2:
           v10 = slot.get stack0
           v11 = slot.get stack1
           v12 = i64.mul v10, v11
           return v12
         }",
    );
}

#[test]
fn shuffles_of_inherited_operands_read_before_they_write() {
    check(
        "func f(n: i64) -> i64 {
            i64.const 1  i64.const 2  i64.const 3
          loop(i64, i64, i64):
            rot
            local.get n  i64.eqz  br_if loop
            swap  swap
            br end
          end(i64, i64, i64):
            drop  drop  return }",
        &BuildOptions::default(),
        "func f0 f(v0: i64) -> i64 {
           slot s0: i64 = local 0
           slot stack0: i64 = stack 0
           slot stack1: i64 = stack 1
           slot stack2: i64 = stack 2
         b0:
           slot.set s0, v0
           v1 = i64.const 1
           slot.set stack0, v1
           v2 = i64.const 2
           slot.set stack1, v2
           v3 = i64.const 3
           slot.set stack2, v3
           br b1
         b1:
           v4 = slot.get stack0
           v5 = slot.get stack1
           v6 = slot.get stack2
           slot.set stack0, v5
           slot.set stack1, v6
           slot.set stack2, v4
           v7 = slot.get s0
           v8 = i64.eqz v7
           br_if v8, b1, b2
         b2:
           v9 = slot.get stack1
           v10 = slot.get stack2
           br b3
         b3:
           v11 = slot.get stack0
           return v11
         }",
    );
}

#[test]
fn a_position_has_a_slot_for_each_type() {
    check(
        "func f(n: i64) {
            i64.const 1  br a
          a(i64):
            drop  f64.const 2  br b
          b(f64):
            drop  return }",
        &BuildOptions::default(),
        "func f0 f(v0: i64) {
           slot s0: i64 = local 0
           slot stack0: i64 = stack 0
           slot stack0_f64: f64 = stack 0
         b0:
           slot.set s0, v0
           v1 = i64.const 1
           slot.set stack0, v1
           br b1
         b1:
           v2 = f64.const 2.0
           slot.set stack0_f64, v2
           br b2
         b2:
           return
         }",
    );
}

#[test]
fn dup_and_over_keep_what_is_in_place() {
    check(
        "func f() -> i64 {
            i64.const 1  i64.const 2  br a
          a(i64, i64):
            over  dup  br b
          b(i64, i64, i64, i64):
            drop drop drop return }",
        &BuildOptions::default(),
        "func f0 f() -> i64 {
           slot stack0: i64 = stack 0
           slot stack1: i64 = stack 1
           slot stack2: i64 = stack 2
           slot stack3: i64 = stack 3
         b0:
           v0 = i64.const 1
           slot.set stack0, v0
           v1 = i64.const 2
           slot.set stack1, v1
           br b1
         b1:
           v2 = slot.get stack0
           v3 = slot.get stack1
           slot.set stack2, v2
           slot.set stack3, v2
           br b2
         b2:
           v4 = slot.get stack0
           return v4
         }",
    );
}

#[test]
fn the_entry_is_split_if_code_jumps_to_it() {
    check(
        "func f(n: i64) {
          start:
            local.get n  i64.eqz  br_if start
            return
          dead:
            br start }",
        &CHARGED,
        "func f0 f(v0: i64) {
           slot s0: i64 = local 0
         b0:
           stack.push 6
           slot.set s0, v0
           br b1
         b1:
           fuel 3
           v1 = slot.get s0
           v2 = i64.eqz v1
           br_if v2, b1, b2
         b2:
           fuel 1
           stack.pop 6
           return
         }",
    );
}

#[test]
fn escaping_locals_are_memory_and_others_are_slots() {
    check(
        "import \"env\" \"take\" func take(i32)
         memory m 1
         frame_stack 1024 4096
         func f(a: i32, b: f64) -> i32 {
            local c: i64, d: i32
            local.addr a  call take
            local.addr d  i32.const 5  i32.store
            local.addr c  call take
            i64.const 1  local.tee c  drop
            local.get a
            local.addr d  dup  i32.load  swap  i32.load
            i32.add  i32.add
            return }",
        &CHARGED,
        "func f1 f(v0: i32, v1: f64) -> i32 {
           slot s1: f64 = local 1
           slot s3: i32 = local 3
         b0:
           stack.push 11
           v2 = frame.push 16
           i32.store v2, v0
           slot.set s1, v1
           fuel 19
           call f0(v2)
           v3 = i32.const 5
           slot.set s3, v3
           v4 = i32.const 8
           v5 = i32.add v2, v4
           call f0(v5)
           v6 = i64.const 1
           i64.store v2+8, v6
           v7 = i32.load v2
           v8 = slot.get s3
           v9 = slot.get s3
           v10 = i32.add v8, v9
           v11 = i32.add v7, v10
           frame.pop 16
           stack.pop 11
           return v11
         }",
    );
}

#[test]
fn bulk_operations_charge_right_before_they_start() {
    check(
        "memory m 1
         table t funcref 1
         func f(n: i32) {
            i32.const 0  i32.const 0  local.get n  memory.fill
            ref.null funcref  local.get n  table.grow t  drop
            i32.const 0  i32.const 0  local.get n  table.copy t t
            return }",
        &BuildOptions { fuel: true, ..BuildOptions::default() },
        "func f0 f(v0: i32) {
           slot s0: i32 = local 0
         b0:
           slot.set s0, v0
           fuel 13
           v1 = i32.const 0
           v2 = i32.const 0
           v3 = slot.get s0
           fuel.bulk 6, v3
           memory.fill v1, v2, v3
           v4 = ref.null funcref
           v5 = slot.get s0
           fuel.bulk 3, v5
           v6 = table.grow t0, v4, v5
           v7 = i32.const 0
           v8 = i32.const 0
           v9 = slot.get s0
           fuel.bulk 3, v9
           table.copy t0, t0, v7, v8, v9
           return
         }",
    );
}

#[test]
fn polls_come_before_fuel_and_only_where_they_are_needed() {
    let options = BuildOptions { fuel: true, stack_cells: true, polls: true, waits: false };
    let source = "func f(n: i32) {
            local.get n  br_if middle
          head:
            nop
          middle:
            local.get n  br_if head
            return }";
    check(
        source,
        &options,
        "func f0 f(v0: i32) {
           slot s0: i32 = local 0
         b0:
           stack.push 6
           slot.set s0, v0
           poll
           fuel 2
           v1 = slot.get s0
           br_if v1, b1, b3
         b1:
           fuel 2
           v2 = slot.get s0
           br_if v2, b3, b2
         b2:
           fuel 1
           stack.pop 6
           return
         b3:
           poll
           fuel 1
           br b1
         }",
    );
    // A function that starts with a loop needs one poll for both.
    check(
        "func f(n: i32) { again: local.get n  br_if again  return }",
        &BuildOptions { polls: true, ..BuildOptions::default() },
        "func f0 f(v0: i32) {
           slot s0: i32 = local 0
         b0:
           slot.set s0, v0
           br b1
         b1:
           poll
           v1 = slot.get s0
           br_if v1, b1, b2
         b2:
           return
         }",
    );
}

#[test]
fn calls_and_tail_calls_take_operands_in_the_order_of_pushing() {
    check(
        "table t funcref 1
         func f(a: i64, b: i32) -> (i64, i32) {
            local.get a  local.get b  call g
            i32.const 7  call_indirect (i64, i32) -> (i64, i32), t
            i32.const 8  return_call_indirect (i64, i32) -> (i64, i32), t }
         func g(a: i64, b: i32) -> (i64, i32) { local.get a  local.get b  return_call f }",
        &BuildOptions { stack_cells: true, ..BuildOptions::default() },
        "func f0 f(v0: i64, v1: i32) -> (i64, i32) {
           slot s0: i64 = local 0
           slot s1: i32 = local 1
         b0:
           stack.push 9
           slot.set s0, v0
           slot.set s1, v1
           v2 = slot.get s0
           v3 = slot.get s1
           v4: i64, v5: i32 = call f1(v2, v3)
           v6 = i32.const 7
           v7: i64, v8: i32 = call_indirect type0 t0(v4, v5, v6)
           v9 = i32.const 8
           stack.pop 9
           return_call_indirect type0 t0(v7, v8, v9)
         }",
    );
}

#[test]
fn br_table_keeps_duplicate_targets() {
    check(
        "func f(n: i32) -> i32 {
            i32.const 9  local.get n  br_table [a, b, a] b
          a(i32):
            return
          b(i32):
            drop  i32.const 1  return }",
        &BuildOptions::default(),
        "func f0 f(v0: i32) -> i32 {
           slot s0: i32 = local 0
           slot stack0: i32 = stack 0
         b0:
           slot.set s0, v0
           v1 = i32.const 9
           slot.set stack0, v1
           v2 = slot.get s0
           br_table v2, [b2, b1, b2], b1
         b1:
           v3 = i32.const 1
           return v3
         b2:
           v4 = slot.get stack0
           return v4
         }",
    );
}

#[test]
fn a_deep_stack_costs_what_blocks_touch() {
    // 2,000 operands stay on the stack through 2,000 blocks that touch only the topmost.
    let n = 2_000;
    let mut source = String::from("func f(n: i64) { i64.const 0\n");
    source.push_str(&"local.get n\n".repeat(n));
    source.push_str(&"i64.const 1 i64.add local.get n i64.eqz br_if end\n".repeat(n));
    source.push_str("br end end(");
    source.push_str(&vec!["i64"; n + 1].join(", "));
    source.push_str("): unreachable }");
    let module = module(&source);
    let f = slot_form(&module, 0, &BuildOptions::default());
    assert_eq!(f.n_blocks(), n + 2);
    // The pushes with their writes and what each block does to the topmost operand.
    assert!(f.n_insts() < 12 * n, "{} instructions", f.n_insts());
}

#[test]
fn scratch_memory_carries_nothing_from_function_to_function() {
    let source = "func deep() { i64.const 1 i64.const 2 br a a(i64, i64): unreachable }
         func flat(n: i32) { local.get n br a a(i32): drop return }";
    let module = module(source);
    let options = BuildOptions::default();
    let reused: Vec<_> = slot_forms(&module, &options).iter().map(Function::to_string).collect();
    let fresh: Vec<_> = (0..2).map(|f| slot_form(&module, f, &options).to_string()).collect();
    assert_eq!(reused, fresh);
}

#[test]
fn functions_with_absurdly_many_operands_are_refused() {
    // Each block pushes many results and forgets them.
    let module_of = |n_blocks: usize| {
        let calls = "call g ".repeat(900);
        let blocks = (0..n_blocks).map(|i| format!("l{i}: {calls} unreachable "));
        let blocks: String = blocks.collect();
        let results = vec!["i64"; 1_000].join(", ");
        module(&format!("func f() {{ {blocks} }} func g() -> ({results}) {{ unreachable }}"))
    };
    let large = module_of(1);
    assert!(is_buildable(&large, 0) && is_buildable(&large, 1));
    assert_eq!(slot_form(&large, 0, &BuildOptions::default()).n_values(), 900_000);
    // 15 blocks of 900 calls may be too many at first sight, but are not.
    assert!(is_buildable(&module_of(15), 0));
    assert!(!is_buildable(&module_of(20), 0));
}

/// A function with two loops, of which the second is entered with operands on the stack.
const TWO_LOOPS: &str = "
    func f(n: i32, x: f64) -> f64 {
      local v: v128
    first:
      local.get n  i32.const 1  i32.sub  local.tee n  br_if first
      i64.const 5  local.get x  br second
    second(i64, f64):
      local.get x  f64.add
      local.get n  i32.const 1  i32.add  local.tee n  i32.const 9  i32.lt_s  br_if second
      swap  drop  return
    }";

/// At each block, the cells hold what the operands are there.
#[test]
fn operands_of_different_types_share_a_cell_at_different_blocks() {
    let module = module(
        "func f(n: i32) -> i32 {
          i64.const 5
        first(i64):
          local.get n  i32.const 1  i32.sub  local.tee n  br_if first
          drop  f64.const 2.5
        second(f64):
          local.get n  i32.const 1  i32.add  local.tee n  i32.const 9  i32.lt_s  br_if second
          drop  local.get n  return
        }",
    );
    let loops = module.body(0).expect("it is defined").loops();
    let starts: Vec<u32> = loops.iter().map(|blocks| blocks.start).collect();
    assert_eq!(starts.len(), 2);
    let form =
        build_loop(&module, 0, &starts, FuncExits::NONE, &CHARGED, &mut BuildScratch::default());
    let f = form.expect("operands of one type lie in one place");
    assert!(f.to_string().contains(": cell 0, cell 1, cell 1, block\n"), "{f}");
    verify(&f, Form::Slots, &module).unwrap_or_else(|violation| panic!("{violation}\n{f}"));
}

/// So do operands of one type, where those below take more cells at one block than at the other.
#[test]
fn operands_of_one_type_share_cells_at_different_blocks() {
    let module = module(
        "func f(n: i32) -> i32 {
          i32.const 5  v128.const 7
        first(i32, v128):
          local.get n  i32.const 1  i32.sub  local.tee n  br_if first
          drop  drop  v128.const 9  i32.const 3
        second(v128, i32):
          local.get n  i32.const 1  i32.add  local.tee n  i32.const 9  i32.lt_s  br_if second
          drop  drop  v128.const 9  v128.const 8
        third(v128, v128):
          local.get n  i32.const 1  i32.sub  local.tee n  br_if third
          drop  drop  local.get n  return
        }",
    );
    let loops = module.body(0).expect("it is defined").loops();
    let starts: Vec<u32> = loops.iter().map(|blocks| blocks.start).collect();
    let scratch = &mut BuildScratch::default();
    let mut n_forms = 0;
    for starts in [&starts[..2], &starts[1..], &[starts[0], starts[2]], &starts] {
        let form = build_loop(&module, 0, starts, FuncExits::NONE, &CHARGED, scratch);
        let Some(f) = form else { continue };
        verify(&f, Form::Slots, &module).unwrap_or_else(|violation| panic!("{violation}\n{f}"));
        n_forms += 1;
    }
    assert!(n_forms > 0);
}

/// The state of the frame that a form is entered from is part of its text, and stays what it is when it is promoted.
#[test]
fn the_state_of_a_frame_is_data() {
    let module = module(TWO_LOOPS);
    let starts: Vec<u32> =
        module.body(0).expect("it is defined").loops().iter().map(|blocks| blocks.start).collect();
    assert_eq!(starts.len(), 2);
    let form =
        build_loop(&module, 0, &starts, FuncExits::NONE, &CHARGED, &mut BuildScratch::default());
    let mut f = form.expect("the operands of one loop lie in one place");
    let expected = FrameState {
        func: 0,
        blocks: starts,
        call: None,
        places: [0, 1, 2, 5, 4]
            .map(FramePlace::Cell)
            .into_iter()
            .chain([FramePlace::Block])
            .collect(),
        caller: None,
    };
    assert_eq!(f.entry, Entry::Frame(expected.clone()));
    let check = |f: &Function, form| {
        verify(f, form, &module).unwrap_or_else(|violation| panic!("{violation}\n{f}"));
        let text = f.to_string();
        let line = "  enter f0 at 0, 2: cell 0, cell 1, cell 2, cell 5, cell 4, block\n";
        assert!(text.contains(line), "{text}");
        let read = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!((&read.entry, read.to_string()), (&f.entry, text));
    };
    check(&f, Form::Slots);
    promote(&mut f, &mut Scratch::default());
    check(&f, Form::Ssa);
}

/// The hints of a function's branches, in the order of blocks.
fn hints(f: &Function) -> Vec<Option<BranchHint>> {
    let branches = f.blocks().map(|block| f.terminator(block));
    let branches = branches.filter(|&inst| f.opcode(inst) == Opcode::Op(Op::BrIf));
    branches.map(|inst| f.branch_hint(inst)).collect()
}

#[test]
fn a_branch_to_a_block_that_never_ran_has_no_hint() {
    let module = module(
        "func f(n: i32) -> i32 {
            local.get n  .likely br_if usual
            i32.const 1  return
          usual:
            local.get n  i32.const 5  i32.lt_s  .unlikely br_if rare
            i32.const 2  return
          rare:
            i32.const 3  return }",
    );
    let (likely, unlikely) = (Some(BranchHint::Likely), Some(BranchHint::Unlikely));
    let options = BuildOptions::default();
    assert_eq!(hints(&slot_form(&module, 0, &options)), [likely, unlikely]);
    let mut scratch = BuildScratch::default();
    let (ssa, _) = build_ssa(&module, 0, &SsaOptions::default(), &mut scratch).unwrap();
    assert_eq!(hints(&ssa), [likely, unlikely]);
    let mut with_exits = |blocks: &[u32]| {
        let exits = FuncExits { blocks: blocks.to_vec(), ..FuncExits::default() };
        hints(&build_with_exits(&module, 0, &exits, &options, &mut scratch))
    };
    // The blocks in the order of the code: whichever side never ran.
    assert_eq!(with_exits(&[1]), [None, unlikely]);
    assert_eq!(with_exits(&[3]), [likely, None]);
    assert_eq!(with_exits(&[4]), [likely, None]);
    // Of the first branch nothing is left but the exit, and the other side.
    assert_eq!(with_exits(&[2]), [None]);
}
