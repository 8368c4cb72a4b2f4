//! Calls of all kinds, and what they do to the frames.

use slotvm_bytecode::TrapCode;
use slotvm_runtime::StoreConfig;

use crate::support::{Program, func, stack_cells};

#[test]
fn recursion() {
    let mut program = Program::new(
        "func fib(n: i64) -> i64 {
           local.get n i64.const 2 i64.lt_s br_if base
           local.get n i64.const 1 i64.sub call fib
           local.get n i64.const 2 i64.sub call fib
           i64.add return
         base: local.get n return }",
    );
    assert_eq!(program.call("fib", &[20]).unwrap(), [6765]);
}

#[test]
fn arguments_and_results_of_all_types_and_numbers() {
    let mut program = Program::new(
        "func turn(a: i32, b: i64, c: f32, d: f64, e: funcref, f: externref)
              -> (externref, funcref, f64, f32, i64, i32) {
           local.get f local.get e local.get d local.get c local.get b local.get a return }
         func twice(a: i32, b: i64, c: f32, d: f64, e: funcref, f: externref)
              -> (i32, i64, f32, f64, funcref, externref) {
           local b2: i64, f2: externref, d2: f64, e2: funcref, c2: f32, a2: i32
           i64.const 99
           local.get a local.get b local.get c local.get d local.get e local.get f call turn
           local.set a2 local.set b2 local.set c2 local.set d2 local.set e2 local.set f2
           drop
           local.get a2 local.get b2 local.get c2 local.get d2 local.get e2 local.get f2
           return }
         func none() { call nothing return }
         func nothing() { return }",
    );
    let func = func(&program.store, program.instance, "none").cell();
    let args = [7, u64::MAX, 2.5f32.to_bits().into(), (-0.0f64).to_bits(), func, 0];
    let mut turned = args;
    turned.reverse();
    assert_eq!(program.call("turn", &args).unwrap(), turned);
    assert_eq!(program.call("twice", &args).unwrap(), args);
    assert_eq!(program.call("none", &[]).unwrap(), []);
}

#[test]
fn locals_start_as_zero_in_each_call() {
    let mut program = Program::new(
        "func dirty() { local 8 i64
           i64.const 1 local.set 0 i64.const 2 local.set 3 i64.const 3 local.set 7 return }
         func sum() -> i64 { local 8 i64
           local.get 0 local.get 3 local.get 7 i64.add i64.add return }
         func f() -> i64 { call dirty call sum return }",
    );
    assert_eq!(program.call("f", &[]).unwrap(), [0]);
}

#[test]
fn operands_below_the_arguments_survive_calls() {
    let mut program = Program::new(
        "func pair(a: i64) -> (i64, i64) { local 3 i64
           i64.const -1 local.set 3 local.get a local.get a i64.const 1 i64.add return }
         func f() -> (i64, i64, i64, i64) {
           i64.const 10 i64.const 20 i64.const 30 call pair return }",
    );
    assert_eq!(program.call("f", &[]).unwrap(), [10, 20, 30, 31]);
}

const TAIL: &str = "
    table t funcref 2
    elem e t at i32.const 0 func even, odd
    func even(n: i64) -> i32 {
      local.get n i64.eqz br_if yes
      local.get n i64.const 1 i64.sub return_call odd
    yes: i32.const 1 return }
    func odd(n: i64) -> i32 { local 5 i64
      local.get n i64.eqz br_if no
      local.get n i64.const 1 i64.sub i32.const 0 return_call_indirect (i64) -> i32, t
    no: i32.const 0 return }
    func f(n: i64) -> i32 { i32.const 10 local.get n call even i32.add return }";

#[test]
fn tail_calls_use_constant_space() {
    let config = StoreConfig { limits: few_frames(), ..StoreConfig::default() };
    // 3 cells and 4 for `f`, at most 8 and 4 for the others.
    for config in [config, stack_cells(25)] {
        let mut program = Program::with(config, TAIL);
        assert_eq!(program.call("f", &[1_000_000]).unwrap(), [11]);
        assert_eq!(program.call("f", &[1_000_001]).unwrap(), [10]);
    }
}

fn few_frames() -> slotvm_runtime::Limits {
    slotvm_runtime::Limits { interp_frames_max: 4, interp_cells_max: 64, ..Default::default() }
}

#[test]
fn a_tail_call_moves_many_arguments_over_the_frame() {
    let mut program = Program::new(
        "func f(a: i64) -> i64 { local.get a i64.const 2 i64.const 3 i64.const 4 return_call g }
         func g(a: i64, b: i64, c: i64, d: i64) -> i64 { local e: i64
           local.get a local.get b i64.sub local.get c i64.sub local.get d i64.sub
           local.get e i64.sub return }
         func h() -> i64 { i64.const 100 i64.const 1 call f i64.add return }",
    );
    assert_eq!(program.call("h", &[]).unwrap(), [92]);
}

#[test]
fn the_deterministic_stack_counts_cells_and_calls() {
    let source = "func f(n: i64) -> i64 { local 3 i64
           local.get n i64.eqz br_if end
           local.get n i64.const 1 i64.sub call f return
         end: i64.const 7 return }";
    // A frame has 4 locals and 2 operands, and a call costs 4 more: 10 cells.
    let mut program = Program::with(stack_cells(1009), source);
    assert_eq!(program.call("f", &[99]).unwrap(), [7]);
    let trap = program.trap("f", &[100]);
    assert_eq!((trap.code, trap.offset, trap.frames().len()), (TrapCode::StackOverflow, 0, 100));
    assert_eq!(trap.backtrace().n_frames_omitted(), 1);
    // The trap has given the cells back.
    assert_eq!(program.call("f", &[99]).unwrap(), [7]);
    let deep = Program::with(stack_cells(100_000_000), source).call("f", &[1_000_000]);
    assert_eq!(deep.unwrap(), [7]);
}

#[test]
fn deep_recursion_is_no_matter_of_the_host_stack() {
    let mut program = Program::new(
        "func sum(n: i64) -> i64 {
           local.get n i64.eqz br_if end
           local.get n local.get n i64.const 1 i64.sub call sum i64.add return
         end: i64.const 0 return }",
    );
    assert_eq!(program.call("sum", &[100_000]).unwrap(), [5_000_050_000]);
}
