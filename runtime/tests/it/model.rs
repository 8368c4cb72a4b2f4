//! Random bulk operations on memories and tables against plain vectors.

use std::ops::Range;

use proptest::prelude::*;
use slotvm_bytecode::TrapCode;
use slotvm_runtime::{Error, FuncHandle, FuncTarget, Store};

use crate::support::Program;

const SOURCE: &str = "
    memory 0 1 3
    data d \"abcdefghijklmnop\"
    table t funcref 8 20
    table u funcref 8
    elem e funcref [ref.func 0], [ref.null funcref], [ref.func 1], [ref.func 2]
    func fill(a: i32, b: i32, n: i32) {
      local.get a local.get b local.get n memory.fill 0 return }
    func copy(a: i32, b: i32, n: i32) {
      local.get a local.get b local.get n memory.copy 0 0 return }
    func init(a: i32, b: i32, n: i32) {
      local.get a local.get b local.get n memory.init d 0 return }
    func grow(a: i32, b: i32, n: i32) { local.get n memory.grow 0 drop return }
    func tfill(a: i32, b: i32, n: i32) {
      local.get a ref.func tfill local.get n table.fill t return }
    func tcopy(a: i32, b: i32, n: i32) {
      local.get a local.get b local.get n table.copy t t return }
    func tcopy_u(a: i32, b: i32, n: i32) {
      local.get a local.get b local.get n table.copy u t return }
    func tinit(a: i32, b: i32, n: i32) {
      local.get a local.get b local.get n table.init e t return }
    func tgrow(a: i32, b: i32, n: i32) { ref.func tgrow local.get n table.grow t drop return }";

/// Expected contents of memory and tables.
struct Model {
    memory: Vec<u8>,
    t: Vec<u64>,
    u: Vec<u64>,
}

/// `start..start + n`, if that fits.
fn range(start: u32, n: u32, len: usize) -> Option<Range<usize>> {
    let (start, n) = (start as usize, n as usize);
    (start + n <= len).then_some(start..start + n)
}

fn copy<T: Copy>(to: &mut [T], from: &[T], a: u32, b: u32, n: u32) -> Option<()> {
    let (a, b) = (range(a, n, to.len())?, range(b, n, from.len())?);
    to[a].copy_from_slice(&from[b]);
    Some(())
}

fn fill<T: Copy>(to: &mut [T], value: T, a: u32, n: u32) -> Option<()> {
    let range = range(a, n, to.len())?;
    to[range].fill(value);
    Some(())
}

impl Model {
    /// `None` if the operation traps.
    fn apply(&mut self, op: &str, a: u32, b: u32, n: u32) -> Option<()> {
        match op {
            "fill" => fill(&mut self.memory, b as u8, a, n),
            "copy" => {
                let from = self.memory.clone();
                copy(&mut self.memory, &from, a, b, n)
            }
            "init" => copy(&mut self.memory, b"abcdefghijklmnop", a, b, n),
            "grow" => {
                if self.memory.len() / 65536 + n as usize <= 3 {
                    self.memory.resize(self.memory.len() + n as usize * 65536, 0);
                }
                Some(())
            }
            // Function i is i + 1 here.
            "tfill" => fill(&mut self.t, 5, a, n),
            "tcopy" => {
                let from = self.t.clone();
                copy(&mut self.t, &from, a, b, n)
            }
            "tcopy_u" => copy(&mut self.u, &self.t, a, b, n),
            "tinit" => copy(&mut self.t, &[1, 0, 2, 3], a, b, n),
            "tgrow" => {
                if self.t.len() + n as usize <= 20 {
                    self.t.resize(self.t.len() + n as usize, 9);
                }
                Some(())
            }
            _ => unreachable!("{op}"),
        }
    }
}

/// Number of a reference in the model.
fn number(store: &Store, reference: u64) -> u64 {
    match FuncHandle::from_cell(reference).map(|func| store.func_target(func)) {
        None => 0,
        Some(FuncTarget::Guest { func, .. }) => u64::from(func) + 1,
        Some(target) => panic!("{target:?}"),
    }
}

fn small(max: u32) -> impl Strategy<Value = u32> {
    prop_oneof![8 => 0..=max, 1 => Just(u32::MAX), 1 => Just(u32::MAX - 1)]
}

fn address() -> impl Strategy<Value = u32> {
    prop_oneof![0..64u32, 65500..65540u32, 131_050..131_080u32]
}

fn step() -> impl Strategy<Value = (&'static str, u32, u32, u32)> {
    prop_oneof![
        (prop::sample::select(vec!["fill", "copy"]), address(), address(), small(100)),
        (Just("init"), address(), small(16), small(16)),
        (Just("grow"), Just(0), Just(0), small(2)),
        (
            prop::sample::select(vec!["tfill", "tcopy", "tcopy_u", "tinit", "tgrow"]),
            small(10),
            small(8),
            small(5)
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn bulk_operations_do_what_they_do_to_vectors(steps in prop::collection::vec(step(), 1..40)) {
        let mut program = Program::new(SOURCE);
        let memory = program.store.instance_memory(program.instance).unwrap();
        let tables = program.store.instance_tables(program.instance).to_vec();
        let mut model = Model { memory: vec![0; 65536], t: vec![0; 8], u: vec![0; 8] };
        for (op, a, b, n) in steps {
            let expected = model.apply(op, a, b, n);
            match program.call(op, &[a.into(), b.into(), n.into()]) {
                Ok(_) => prop_assert!(expected.is_some(), "{op} {a} {b} {n}"),
                Err(Error::Trap(trap)) => {
                    prop_assert!(expected.is_none(), "{op} {a} {b} {n}");
                    let on_table = op.starts_with('t');
                    prop_assert_eq!(trap.code == TrapCode::TableOutOfBounds, on_table);
                    prop_assert_eq!(trap.code == TrapCode::MemoryOutOfBounds, !on_table);
                }
                Err(error) => panic!("{error}"),
            }
            prop_assert!(program.store.memory(memory).data() == model.memory, "{op} {a} {b} {n}");
            for (&table, elems) in tables.iter().zip([&model.t, &model.u]) {
                let table = program.store.table(table);
                let found: Vec<_> =
                    (0..table.len()).map(|i| number(&program.store, table.get(i).unwrap())).collect();
                prop_assert_eq!(&found, elems, "{} {} {} {}", op, a, b, n);
            }
        }
    }
}
