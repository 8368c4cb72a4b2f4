//! Fuel: charges, their time, and the place where execution stops.

use slotvm_bytecode::TrapCode;
use slotvm_runtime::{Error, StoreConfig};

use crate::support::{Program, fuel, i32};

const LOOP: &str = "
    func count(n: i64) -> i64 { local i: i64
    loop:
      local.get i i64.const 1 i64.add local.tee i
      local.get n i64.lt_s br_if loop
      .line 9
      local.get i return }";

#[test]
fn blocks_cost_their_instructions() {
    let mut program = Program::with(fuel(1000), LOOP);
    assert_eq!(program.call("count", &[10]).unwrap(), [10]);
    assert_eq!(program.store.fuel(), Some(1000 - 10 * 7 - 2));
    program.store.set_fuel(72).unwrap();
    assert_eq!(program.call("count", &[10]).unwrap(), [10]);
    assert_eq!(program.store.fuel(), Some(0));
}

#[test]
fn too_little_stops_at_the_start_of_the_block_and_charges_nothing() {
    let mut program = Program::with(fuel(71), LOOP);
    program.expect_trap("count", &[10], TrapCode::OutOfFuel, ("count", 9));
    assert_eq!(program.store.fuel(), Some(1));
    let trap = program.trap("count", &[10]);
    assert_eq!((trap.code, trap.offset), (TrapCode::OutOfFuel, 0));
    assert_eq!(program.store.fuel(), Some(1));
    program.store.set_fuel(69).unwrap();
    let trap = program.trap("count", &[10]);
    assert_eq!((trap.code, trap.offset), (TrapCode::OutOfFuel, 0));
    assert_eq!(program.store.fuel(), Some(6));
}

#[test]
fn a_trap_keeps_what_its_block_has_charged() {
    let mut program = Program::with(fuel(10), "func f() { nop unreachable }");
    program.trap("f", &[]);
    assert_eq!(program.store.fuel(), Some(8));
}

#[test]
fn calls_do_not_end_blocks() {
    let source = "func f() { nop call g nop nop return } func g() { nop return }";
    let mut program = Program::with(fuel(6), source);
    let trap = program.trap("f", &[]);
    let names: Vec<_> = trap.frames().iter().map(|frame| frame.func_name()).collect();
    assert_eq!(
        (trap.code, trap.offset, names),
        (TrapCode::OutOfFuel, 0, vec!["g".into(), "f".into()])
    );
    assert_eq!(program.store.fuel(), Some(1));
}

#[test]
fn bulk_operations_cost_by_length_before_they_start() {
    let source = "
        memory 0 1
        data d \"0123456789012345678901234567890123456789012345678901234567890123\"
        table t funcref 64
        elem e funcref [ref.null funcref], [ref.null funcref], [ref.null funcref],
          [ref.null funcref], [ref.null funcref], [ref.null funcref], [ref.null funcref],
          [ref.null funcref]
        func fill(n: i32) { i32.const 0 i32.const 1 local.get n .line 1 memory.fill 0 return }
        func copy(n: i32) { i32.const 0 i32.const 1 local.get n .line 2 memory.copy 0 0 return }
        func init(n: i32) { i32.const 0 i32.const 0 local.get n .line 3 memory.init d 0 return }
        func tfill(n: i32) { i32.const 0 ref.null funcref local.get n .line 4 table.fill t return }
        func tcopy(n: i32) { i32.const 0 i32.const 1 local.get n .line 5 table.copy t t return }
        func tinit(n: i32) { i32.const 0 i32.const 0 local.get n .line 6 table.init e t return }
        func tgrow(n: i32) { ref.null funcref local.get n .line 7 table.grow t drop return }
        func grow() { i32.const 3 memory.grow 0 drop return }";
    let mut program = Program::with(fuel(0), source);
    let memory_ops =
        [("fill", 1), ("copy", 2), ("init", 3)].map(|(name, line)| (name, line, 5, 64));
    let table_ops =
        [("tfill", 4, 5, 8), ("tcopy", 5, 5, 8), ("tinit", 6, 5, 8), ("tgrow", 7, 5, 8)];
    for (name, line, cost, unit) in memory_ops.into_iter().chain(table_ops) {
        program.store.set_fuel(cost).unwrap();
        program.call(name, &[unit - 1]).unwrap();
        assert_eq!(program.store.fuel(), Some(0), "{name}");
        program.store.set_fuel(cost).unwrap();
        program.expect_trap(name, &[unit], TrapCode::OutOfFuel, (name, line));
        assert_eq!(program.store.fuel(), Some(0), "{name}");
        program.store.set_fuel(cost + 1).unwrap();
        program.call(name, &[unit]).unwrap();
        assert_eq!(program.store.fuel(), Some(0), "{name}");
        // The fuel is charged before the bounds are checked, and the length is unsigned.
        program.store.set_fuel(1 << 20).unwrap();
        program.expect_trap(name, &[i32(-1)], TrapCode::OutOfFuel, (name, line));
    }
    program.store.set_fuel(4).unwrap();
    program.call("grow", &[]).unwrap();
    assert_eq!(program.store.fuel(), Some(0));
}

#[test]
fn without_fuel_nothing_is_charged() {
    let mut program = Program::with(StoreConfig::default(), LOOP);
    program.call("count", &[10]).unwrap();
    assert_eq!(program.store.fuel(), None);
    assert!(matches!(program.store.set_fuel(5), Err(Error::Usage(_))));
}
