//! Every trap, with its code and place.

use slotvm_bytecode::TrapCode;
use slotvm_runtime::{Error, Limits, StoreConfig};

use crate::support::{Program, i32, stack_cells};

#[test]
fn unreachable() {
    let mut program = Program::new("func f() { nop .line 3 unreachable }");
    program.expect_trap("f", &[], TrapCode::Unreachable, ("f", 3));
}

#[test]
fn division() {
    let mut program = Program::new(
        "func i32div(a: i32, b: i32) -> i32 { local.get a local.get b .line 1 i32.div_s return }
         func i32rem(a: i32, b: i32) -> i32 { local.get a local.get b .line 2 i32.rem_s return }
         func i64div(a: i64, b: i64) -> i64 { local.get a local.get b .line 3 i64.div_u return }",
    );
    assert_eq!(program.call("i32div", &[i32(-7), 2]).unwrap(), [i32(-3)]);
    let zero = TrapCode::IntegerDivisionByZero;
    program.expect_trap("i32div", &[1, 0], zero, ("i32div", 1));
    let (min, overflow) = (i32(i32::MIN), TrapCode::IntegerOverflow);
    program.expect_trap("i32div", &[min, i32(-1)], overflow, ("i32div", 1));
    assert_eq!(program.call("i32rem", &[min, i32(-1)]).unwrap(), [0]);
    program.expect_trap("i32rem", &[1, 0], zero, ("i32rem", 2));
    program.expect_trap("i64div", &[1, 0], zero, ("i64div", 3));
    assert_eq!(program.call("i64div", &[u64::MAX, 2]).unwrap(), [u64::MAX / 2]);
}

#[test]
fn conversion() {
    let mut program =
        Program::new("func f(a: f64) -> i32 { local.get a .line 1 i32.trunc_f64_s return }");
    assert_eq!(program.call("f", &[(-2.9f64).to_bits()]).unwrap(), [i32(-2)]);
    let (nan, big) = (f64::NAN.to_bits(), 3e9f64.to_bits());
    program.expect_trap("f", &[nan], TrapCode::BadConversionToInteger, ("f", 1));
    program.expect_trap("f", &[big], TrapCode::IntegerOverflow, ("f", 1));
}

#[test]
fn memory_accesses_past_the_end() {
    let mut program = Program::new(
        "memory 0 1 1
         func load(a: i32) -> i64 { local.get a .line 1 i64.load return }
         func load_far(a: i32) -> i32 { local.get a .line 2 i32.load8_u 0xffff_ffff return }
         func store(a: i32) { local.get a f64.const 1.5 .line 3 f64.store 8 return }
         func load_indexed(a: i32, i: i32) -> i32 {
           local.get a local.get i .line 4 i32.load_indexed 8 return
         }
         func store_indexed(a: i32, i: i32) {
           local.get a local.get i i32.const 7 .line 5 i32.store8_indexed 2 4 return
         }",
    );
    let out = TrapCode::MemoryOutOfBounds;
    assert_eq!(program.call("load", &[65528]).unwrap(), [0]);
    program.expect_trap("load", &[65529], out, ("load", 1));
    program.expect_trap("load", &[i32(-1)], out, ("load", 1));
    program.expect_trap("load_far", &[0], out, ("load_far", 2));
    program.expect_trap("load_far", &[i32(-1)], out, ("load_far", 2));
    program.call("store", &[65520]).unwrap();
    assert_eq!(program.call("load", &[65528]).unwrap(), [1.5f64.to_bits()]);
    program.expect_trap("store", &[65521], out, ("store", 3));
    // Nothing was written by the store that has trapped.
    assert_eq!(program.call("load", &[65528]).unwrap(), [1.5f64.to_bits()]);

    assert_eq!(program.call("load_indexed", &[65524, 1]).unwrap(), [0x3ff8_0000]);
    program.expect_trap("load_indexed", &[65525, 1], out, ("load_indexed", 4));
    program.call("store_indexed", &[65529, 1]).unwrap();
    program.expect_trap("store_indexed", &[65530, 1], out, ("store_indexed", 5));
    // An address that wraps to something inside when computed with 32 bits, or with 33.
    for (base, index) in [(8, i32(-1)), (i32(-1), i32(-1)), (i32(-4), 1), (0, 0x2000_0000)] {
        program.expect_trap("load_indexed", &[base, index], out, ("load_indexed", 4));
    }
}

#[test]
fn indirect_calls() {
    let mut program = Program::new(
        "table t funcref 4
         elem e t at i32.const 1 func good, bad
         func good(a: i64) -> i64 { local.get a i64.const 1 i64.add return }
         func bad() -> i64 { i64.const 0 return }
         func f(i: i32) -> i64 {
           i64.const 41 local.get i .line 7 call_indirect (i64) -> i64, t return
         }
         func tail(i: i32) -> i64 {
           i64.const 41 local.get i .line 8 return_call_indirect (i64) -> i64, t
         }",
    );
    for (name, line) in [("f", 7), ("tail", 8)] {
        assert_eq!(program.call(name, &[1]).unwrap(), [42]);
        program.expect_trap(name, &[2], TrapCode::BadSignature, (name, line));
        program.expect_trap(name, &[0], TrapCode::IndirectCallToNull, (name, line));
        program.expect_trap(name, &[4], TrapCode::TableOutOfBounds, (name, line));
        program.expect_trap(name, &[i32(-1)], TrapCode::TableOutOfBounds, (name, line));
    }
}

#[test]
fn endless_recursion_overflows_at_the_start_of_the_callee() {
    let source = "func f() { nop call f return }
                  func wide() { local 1000 i64 nop nop call wide return }";
    let limits = Limits { interp_frames_max: 1000, ..Limits::default() };
    let few_frames = StoreConfig { limits, ..StoreConfig::default() };
    for config in [StoreConfig::default(), few_frames, stack_cells(10_000)] {
        let mut program = Program::with(config, source);
        for (name, call_offset) in [("f", 1), ("wide", 2)] {
            let trap = program.trap(name, &[]);
            assert_eq!((trap.code, trap.offset), (TrapCode::StackOverflow, 0));
            assert_eq!(trap.frames()[1].offset, call_offset);
            assert_eq!(trap.frames()[0].func_name(), name);
        }
        // The trap has given everything back.
        let again = program.trap("f", &[]);
        assert_eq!(
            again.backtrace().n_frames_omitted(),
            program.trap("f", &[]).backtrace().n_frames_omitted()
        );
    }
}

#[test]
fn a_trap_tells_its_place_and_the_way_there() {
    let mut program = Program::new(
        "module \"calc\"
         func div(a: i32, b: i32) -> i32 {
           .line 2
           local.get a local.get b
           i32.div_u
           return
         }
         func main() -> i32 {
           .line 7
           i32.const 1 i32.const 0 call div
           return
         }",
    );
    let error = program.call("main", &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "integer division by zero\n    \
         at calc!div (offset 0x0004, line 2)\n    \
         at calc!main (offset 0x0004, line 7)"
    );
    assert!(matches!(error, Error::Trap(_)));
    assert_eq!(error.trap_code(), Some(TrapCode::IntegerDivisionByZero));
}

#[test]
fn a_long_backtrace_lists_the_innermost_frames() {
    let mut program = Program::new(
        "func f(n: i64) {
           local.get n i64.eqz br_if end
           local.get n i64.const 1 i64.sub call f return
         end: unreachable }",
    );
    let trap = program.trap("f", &[150]);
    assert_eq!((trap.frames().len(), trap.backtrace().n_frames_omitted()), (100, 51));
    assert!(trap.to_string().ends_with("... 51 more frames"));
}
