//! Whole memories and tables: sizes, growth, bulk operations, segments.

use slotvm_bytecode::TrapCode;
use slotvm_runtime::{Error, Limits, StoreConfig};

use crate::support::{Program, i32};

const FAIL: u64 = 0xffff_ffff;

#[test]
fn memories_grow_with_zeros_up_to_their_maximum() {
    let source = "memory 0 1 3
         func grow(n: i32) -> i32 { local.get n memory.grow 0 return }
         func size() -> i32 { memory.size 0 return }
         func load(a: i32) -> i32 { local.get a i32.load return }
         func store(a: i32) { local.get a i32.const -1 i32.store return }";
    let mut program = Program::new(source);
    program.call("store", &[65532]).unwrap();
    assert_eq!(program.call("grow", &[0]).unwrap(), [1]);
    assert_eq!(program.call("grow", &[3]).unwrap(), [FAIL]);
    assert_eq!(program.call("grow", &[i32(-1)]).unwrap(), [FAIL]);
    assert_eq!(program.call("grow", &[2]).unwrap(), [1]);
    assert_eq!(program.call("size", &[]).unwrap(), [3]);
    assert_eq!(program.call("grow", &[1]).unwrap(), [FAIL]);
    assert_eq!(program.call("load", &[65532]).unwrap(), [FAIL]);
    assert_eq!(program.call("load", &[65536]).unwrap(), [0]);
    assert_eq!(program.call("load", &[3 * 65536 - 4]).unwrap(), [0]);

    let limits = Limits { memory_pages_max: 2, ..Limits::default() };
    let mut program = Program::with(StoreConfig { limits, ..StoreConfig::default() }, source);
    assert_eq!(program.call("grow", &[2]).unwrap(), [FAIL]);
    assert_eq!(program.call("grow", &[1]).unwrap(), [1]);
}

#[test]
fn fill_and_copy() {
    let mut program = Program::new(
        "memory 0 1
         data d at i32.const 0 \"abcdef\"
         func fill(a: i32, byte: i32, n: i32) {
           local.get a local.get byte local.get n .line 1 memory.fill 0 return
         }
         func copy(to: i32, from: i32, n: i32) {
           local.get to local.get from local.get n .line 2 memory.copy 0 0 return
         }",
    );
    let memory = program.store.instance_memory(program.instance).unwrap();
    let text = |program: &Program| program.store.memory(memory).data()[..8].to_vec();
    program.call("copy", &[2, 0, 4]).unwrap();
    assert_eq!(text(&program), b"ababcd\0\0");
    program.call("copy", &[0, 1, 5]).unwrap();
    assert_eq!(text(&program), b"babcdd\0\0");
    program.call("fill", &[1, 0x178, 3]).unwrap();
    assert_eq!(text(&program), b"bxxxdd\0\0");

    // Nothing is written where the range does not fit, and an empty range fits up to the end.
    let out = TrapCode::MemoryOutOfBounds;
    program.expect_trap("fill", &[65535, 1, 2], out, ("fill", 1));
    program.expect_trap("fill", &[0, 1, i32(-1)], out, ("fill", 1));
    program.expect_trap("copy", &[65535, 0, 2], out, ("copy", 2));
    program.expect_trap("copy", &[0, 65535, 2], out, ("copy", 2));
    assert!(program.store.memory(memory).data()[8..].iter().all(|&byte| byte == 0));
    assert_eq!(text(&program), b"bxxxdd\0\0");
    program.call("fill", &[65536, 1, 0]).unwrap();
    program.call("copy", &[65536, 65536, 0]).unwrap();
    program.expect_trap("fill", &[65537, 1, 0], out, ("fill", 1));
    program.expect_trap("copy", &[0, 65537, 0], out, ("copy", 2));
    program.expect_trap("copy", &[65537, 0, 0], out, ("copy", 2));
}

#[test]
fn data_segments() {
    let mut program = Program::new(
        "memory 0 1
         data active at i32.const 100 \"zz\"
         data d \"abcdef\"
         func init(to: i32, from: i32, n: i32) {
           local.get to local.get from local.get n .line 1 memory.init d 0 return
         }
         func init_active(n: i32) {
           i32.const 0 i32.const 0 local.get n .line 2 memory.init active 0 return
         }
         func drop() { data.drop d return }
         func load(a: i32) -> i32 { local.get a i32.load8_u return }",
    );
    assert_eq!(program.call("load", &[101]).unwrap(), [u64::from(b'z')]);
    program.call("init", &[10, 2, 4]).unwrap();
    assert_eq!(program.call("load", &[13]).unwrap(), [u64::from(b'f')]);
    let out = TrapCode::MemoryOutOfBounds;
    program.expect_trap("init", &[0, 3, 4], out, ("init", 1));
    program.expect_trap("init", &[65534, 0, 3], out, ("init", 1));
    program.expect_trap("init", &[0, i32(-1), 1], out, ("init", 1));
    assert_eq!(program.call("load", &[0]).unwrap(), [0]);
    program.call("drop", &[]).unwrap();
    program.call("drop", &[]).unwrap();
    program.call("init", &[0, 0, 0]).unwrap();
    program.expect_trap("init", &[0, 0, 1], out, ("init", 1));
    // An active segment is dropped when it has been copied.
    program.call("init_active", &[0]).unwrap();
    program.expect_trap("init_active", &[1], out, ("init_active", 2));
}

const TABLES: &str = "
    table t funcref 4 6
    table u funcref 4
    table x externref 2
    elem e funcref [ref.func one], [ref.null funcref], [ref.func two]
    elem declared func one, two
    func one() -> i64 { i64.const 1 return }
    func two() -> i64 { i64.const 2 return }
    func get(i: i32) -> i64 {
      local.get i .line 1 table.get t ref.is_null br_if null
      local.get i call_indirect () -> i64, t return
    null: i64.const 0 return
    }
    func set_one(i: i32) { local.get i ref.func one .line 2 table.set t return }
    func size() -> i32 { table.size t return }
    func grow(n: i32) -> i32 { ref.func two local.get n table.grow t return }
    func fill(i: i32, n: i32) { local.get i ref.func two local.get n .line 3 table.fill t return }
    func copy(to: i32, from: i32, n: i32) {
      local.get to local.get from local.get n .line 4 table.copy t t return
    }
    func copy_from_u(to: i32, from: i32, n: i32) {
      local.get to local.get from local.get n .line 5 table.copy t u return
    }
    func init(to: i32, from: i32, n: i32) {
      local.get to local.get from local.get n .line 6 table.init e t return
    }
    func drop() { elem.drop e return }
    func set_x(i: i32, r: externref) { local.get i local.get r .line 7 table.set x return }
    func get_x(i: i32) -> externref { local.get i .line 8 table.get x return }
";

impl Program {
    /// Returns the results of the functions in table `t`, 0 for null.
    fn table(&mut self) -> Vec<u64> {
        let n = self.call("size", &[]).unwrap()[0];
        (0..n).map(|i| self.call("get", &[i]).unwrap()[0]).collect()
    }
}

#[test]
fn table_elements() {
    let mut program = Program::new(TABLES);
    let out = TrapCode::TableOutOfBounds;
    program.call("set_one", &[3]).unwrap();
    assert_eq!(program.table(), [0, 0, 0, 1]);
    program.expect_trap("set_one", &[4], out, ("set_one", 2));
    program.expect_trap("get", &[4], out, ("get", 1));
    program.expect_trap("get", &[i32(-1)], out, ("get", 1));

    let object = program.store.new_extern(Box::new("hello")).unwrap();
    program.call("set_x", &[1, object]).unwrap();
    let found = program.call("get_x", &[1]).unwrap()[0];
    let found = program.store.extern_object(found).unwrap();
    assert_eq!(found.downcast_ref(), Some(&"hello"));
    assert_eq!(program.call("get_x", &[0]).unwrap(), [0]);
    assert!(program.store.extern_object(0).is_none());
    assert!(program.store.extern_object(u64::MAX).is_none());
    program.expect_trap("set_x", &[2, object], out, ("set_x", 7));
}

#[test]
fn tables_grow_up_to_their_maximum() {
    let mut program = Program::new(TABLES);
    assert_eq!(program.call("grow", &[i32(-1)]).unwrap(), [FAIL]);
    assert_eq!(program.call("grow", &[3]).unwrap(), [FAIL]);
    assert_eq!(program.call("grow", &[1]).unwrap(), [4]);
    assert_eq!(program.call("grow", &[1]).unwrap(), [5]);
    assert_eq!(program.call("grow", &[0]).unwrap(), [6]);
    assert_eq!(program.table(), [0, 0, 0, 0, 2, 2]);

    let limits = Limits { table_elems_max: 5, ..Limits::default() };
    let mut program = Program::with(StoreConfig { limits, ..StoreConfig::default() }, TABLES);
    assert_eq!(program.call("grow", &[2]).unwrap(), [FAIL]);
    assert_eq!(program.call("grow", &[1]).unwrap(), [4]);
}

#[test]
fn bulk_table_operations() {
    let mut program = Program::new(TABLES);
    let out = TrapCode::TableOutOfBounds;
    program.call("init", &[1, 0, 3]).unwrap();
    assert_eq!(program.table(), [0, 1, 0, 2]);
    program.call("copy", &[0, 1, 3]).unwrap();
    assert_eq!(program.table(), [1, 0, 2, 2]);
    program.call("copy", &[1, 0, 3]).unwrap();
    assert_eq!(program.table(), [1, 1, 0, 2]);
    program.call("fill", &[0, 2]).unwrap();
    assert_eq!(program.table(), [2, 2, 0, 2]);
    program.call("copy_from_u", &[0, 3, 1]).unwrap();
    assert_eq!(program.table(), [0, 2, 0, 2]);

    program.expect_trap("fill", &[3, 2], out, ("fill", 3));
    program.expect_trap("copy", &[2, 0, 3], out, ("copy", 4));
    program.expect_trap("copy", &[0, 2, 3], out, ("copy", 4));
    program.expect_trap("copy_from_u", &[0, 2, 3], out, ("copy_from_u", 5));
    program.expect_trap("copy_from_u", &[2, 0, 3], out, ("copy_from_u", 5));
    program.expect_trap("init", &[0, 1, 3], out, ("init", 6));
    program.expect_trap("init", &[2, 0, 3], out, ("init", 6));
    assert_eq!(program.table(), [0, 2, 0, 2]);
    program.call("fill", &[4, 0]).unwrap();
    program.expect_trap("fill", &[5, 0], out, ("fill", 3));
    program.call("drop", &[]).unwrap();
    program.call("init", &[4, 0, 0]).unwrap();
    program.expect_trap("init", &[0, 0, 1], out, ("init", 6));
}

#[test]
fn segments_that_do_not_fit_fail_the_instantiation() {
    let fail = |source: &str| {
        let result = Program::with_imports(StoreConfig::default(), source, |_| Vec::new());
        result.map(|_| ()).expect_err("a segment does not fit")
    };
    let error = fail("memory 0 1 data ok at i32.const 0 \"x\" data d at i32.const 65535 \"ab\"");
    assert_eq!(error.to_string(), "data segment 1: out of bounds memory access");
    assert_eq!(error.trap_code(), Some(TrapCode::MemoryOutOfBounds));
    assert!(matches!(error, Error::Segment { index: 1, .. }));
    let error = fail("table 0 funcref 1 func f() { return } elem e 0 at i32.const -1 func f");
    assert_eq!(error.to_string(), "element segment 0: out of bounds table access");
}
