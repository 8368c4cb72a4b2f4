//! Locals whose address is taken: those that stay cells, and those that live in the frame stack.

use slotvm_bytecode::TrapCode;

use crate::support::{Program, i32};

#[test]
fn promotable_locals_are_accessed_directly() {
    let mut program = Program::new(
        "memory 0 1
         frame_stack 1024 64
         func f(n: i64) -> (i64, i32, f32) { local x: i32, y: f32
           local.addr n dup i64.load i64.const 5 i64.add i64.store
           i32.const -3 local.addr x swap i32.store
           i64.const 70 local.addr x i32.const 9 over i32.load i32.mul i32.store drop
           local.addr y f32.const 2.5 f32.store
           local.addr n i64.load local.addr x i32.load local.get y return }",
    );
    let module = program.store.module(program.instance).clone();
    assert_eq!(module.body(0).unwrap().frame_bytes, 0, "no local escapes");
    let expected = [47, i32(-27), 2.5f32.to_bits().into()];
    assert_eq!(program.call("f", &[42]).unwrap(), expected);
    // Memory is not concerned.
    let memory = program.store.instance_memory(program.instance).unwrap();
    assert!(program.store.memory(memory).data().iter().all(|&byte| byte == 0));
}

const ESCAPING: &str = "
    memory 0 1
    frame_stack 1024 64
    func increment(p: i32) { local.get p local.get p i64.load i64.const 1 i64.add i64.store return }
    func by_address(n: i64) -> i64 { local a: i32, x: i64
      local.get n local.set x
      local.addr x call increment
      local.addr n call increment
      local.get x i64.const 1000 i64.mul local.get n i64.add return }
    func addresses(n: i64) -> (i32, i32, i32) { local x: f32, between: i64, y: i32
      local.addr n local.addr x local.addr y return }
    func nested(depth: i32) -> i32 { local x: i64
      local.get depth i32.eqz br_if end
      local.get depth i32.const 1 i32.sub call nested return
    end: local.addr x return }
    func tail(depth: i32) -> i32 { local x: i64
      local.addr x drop
      local.get depth i32.eqz br_if end
      local.get depth i32.const 1 i32.sub return_call tail
    end: local.addr x return }
    func dirty() -> i64 { local x: i64, y: i32
      local.addr x i64.const -1 i64.store 0
      local.addr y i32.const -1 i32.store 4
      local.get x local.get y i64.extend_i32_u i64.add return }
    func fresh() -> (i64, i32) { local x: i64, y: i32
      i32.const 1024 drop
      local.addr x drop local.get x local.get y local.addr y drop return }
    func narrow(n: i32) -> (i32, i64) { local x: i64
      i64.const -1 local.set x
      local.addr n i32.const 255 i32.store8 1
      local.get n local.tee n
      local.addr x i64.load32_u return }
";

#[test]
fn escaping_locals_live_in_memory() {
    let mut program = Program::new(ESCAPING);
    assert_eq!(program.call("by_address", &[5]).unwrap(), [6006]);
    // The frame stack grows downwards from 1088; the locals lie in ascending order, 8 bytes each.
    assert_eq!(program.call("addresses", &[7]).unwrap(), [1064, 1072, 1080]);
    let memory = program.store.instance_memory(program.instance).unwrap();
    let data = &program.store.memory(memory).data()[1056..1088];
    assert_eq!(data[8..16], 7u64.to_le_bytes(), "the parameter was stored");
    assert_eq!(program.call("narrow", &[i32(0x1234_5678)]).unwrap(), [0x1234_ff78, 0xffff_ffff]);
}

#[test]
fn frames_stand_below_those_of_the_callers() {
    let mut program = Program::new(ESCAPING);
    assert_eq!(program.call("nested", &[0]).unwrap(), [1080]);
    assert_eq!(program.call("nested", &[3]).unwrap(), [1056]);
    assert_eq!(program.call("nested", &[7]).unwrap(), [1024]);
    let trap = program.trap("nested", &[8]);
    assert_eq!((trap.code, trap.offset), (TrapCode::FrameStackOverflow, 0));
    assert_eq!(trap.frames().len(), 9);
    // The trap has given the frames back, and so has each return.
    assert_eq!(program.call("nested", &[0]).unwrap(), [1080]);
}

#[test]
fn tail_calls_give_their_frame_back_first() {
    let mut program = Program::new(ESCAPING);
    assert_eq!(program.call("tail", &[1_000]).unwrap(), [1080]);
}

#[test]
fn frames_are_zeroed_on_entry() {
    let mut program = Program::new(ESCAPING);
    assert_eq!(program.call("dirty", &[]).unwrap(), [u64::MAX]);
    let memory = program.store.instance_memory(program.instance).unwrap();
    program.store.memory_data_mut(memory)[1024..1088].fill(0xee);
    assert_eq!(program.call("fresh", &[]).unwrap(), [0, 0]);
}
