//! A module that has every opcode.

use super::*;

/// One function for each opcode with a fixed signature, with parameters as operands.
pub(super) fn fixed_opcodes() -> String {
    let mut source = String::from(PRELUDE);
    for &op in Op::ALL {
        let Some(signature) = op.signature() else { continue };
        if op.effect() == Effect::Stack {
            continue;
        }
        let imm = match op.imm_kind() {
            ImmKind::I32 | ImmKind::I64 => "-5",
            ImmKind::F32 | ImmKind::F64 => "-0x1.8p3",
            ImmKind::Mem => "16",
            ImmKind::MemLane => "1 16",
            ImmKind::Lane => "1",
            ImmKind::V128 => "i32x4 1 -2 3 -4",
            ImmKind::Lanes => "0 17 2 19 4 21 6 23 8 25 10 27 12 29 14 31",
            ImmKind::Indexed => "8 24",
            ImmKind::Func => "own",
            ImmKind::Table => "t",
            ImmKind::TableTable => "t u",
            ImmKind::ElemTable => "e t",
            ImmKind::Elem => "e",
            ImmKind::Data | ImmKind::DataMemory => "d",
            _ => "",
        };
        let name = op.mnemonic();
        let list =
            |types: &[ValType]| types.iter().map(|t| t.name()).collect::<Vec<_>>().join(", ");
        let (params, results) = (list(signature.params), list(signature.results));
        writeln!(source, "func op.{name}({params}) -> ({results}) {{").unwrap();
        for i in 0..signature.params.len() {
            writeln!(source, "  local.get {i}").unwrap();
        }
        writeln!(source, "  {name} {imm}\n  return\n}}").unwrap();
    }
    source
}

pub(super) const PRELUDE: &str = r#"
import "env" "host" func host(i32, f64) -> i64
import "env" "counter" global imported mut i32
memory mem 2 16
table t funcref 10 20
table u funcref 10
table x externref 5
global g32: mut i32 = i32.const 1
global g64: i64 = i64.const 1
global f32: mut f32 = f32.const 1.0
global ref: mut externref = ref.null externref
frame_stack 1024 65536
data d "passive"
elem e func own
func own(a: i32, b: f64) -> i64 {
  local.get a
  i64.extend_i32_s
  return
}
"#;

/// Opcodes whose types depend on something, control flow, calls, slots of each kind.
pub(super) const SPECIAL: &str = r#"
func traps(i: i32) -> i32 { local.get i br_if other trap 7 other: trap 4294967295 }
func globals() -> (i32, i32, i64, f32, externref) {
  global.get imported global.get g32 i32.add global.set imported
  global.get g32 i32.const 2 i32.mul global.set g32
  f32.const 0.5 global.set f32
  ref.null externref global.set ref
  global.get imported global.get g32 global.get g64 global.get f32 global.get ref
  return
}
func tables(i: i32, r: externref) -> (i32, i32, externref) {
  local.get i local.get r table.set x
  local.get r local.get i table.grow x
  local.get i local.get r i32.const 3 table.fill x
  table.size x
  local.get i table.get x
  return
}
func references(r: externref) -> (i32, i32, funcref) {
  local.get r ref.is_null
  ref.null funcref ref.is_null
  ref.func own
  return
}
func roots(bits: i64) -> i64 {
  local own: ref
  local.get bits ref.reinterpret_i64 local.set own
  i32.const 1 f64.const 1.0 call host drop
  local.get own i64.reinterpret_ref
  return
}
func selects(c: i32, a: f64, b: f64) -> (f64, f64) {
  local.get a local.get b local.get c select
  local.get a local.get b
  local.get a local.get b f64.lt select
  return
}
func shuffles(a: i64, b: i64, c: i64) -> (i64, i64) {
  local.get a local.get b local.get c
  rot swap over i64.sub dup i64.add nop
  i64.mul
  local.tee a
  return
}
func calls(i: i32) -> (i64, i64, i64) {
  local.get i f64.const 1.0 call host
  local.get i f64.const 2.0 call own
  local.get i f64.const 3.0 local.get i call_indirect (i32, f64) -> i64, t
  return
}
func tail_own(i: i32) -> i64 {
  local.get i f64.const 3.0 return_call own
}
func tail_host(i: i32) -> i64 {
  local.get i f64.const 3.0 return_call host
}
func tail_indirect(i: i32) -> i64 {
  local.get i f64.const 3.0 local.get i return_call_indirect (i32, f64) -> i64, t
}
func many(a: i32) -> (i32, i64, f32, f64, i32, i32, i32, i32, funcref) {
  local.get a i64.const 2 f32.const 3.0 f64.const 4.0 local.get a i32.const 6 i32.const 7 dup
  ref.func own
  return
}
func calls_many(a: i32) -> (i32, i64, f32, f64, i32, i32, i32, i32, funcref) {
  local.get a call many
  drop drop drop drop drop drop drop drop drop
  local.get a local.get a call_indirect (i32) -> (i32, i64, f32, f64, i32, i32, i32, i32, funcref), t
  drop drop drop drop drop drop drop drop drop
  local.get a return_call many
}
func many_floats() -> (f64, f64, f64, f64, f64, f64, f64, f64, f64) {
  f64.const 1.0 dup dup dup dup dup dup dup dup
  return
}
func loops(n: i64, kind: i32) -> i64 {
  local sum: i64, x: f64
  local.get kind
  br_table [counting, stacked, counting] out
counting:
  local.get n i64.eqz
  br_if out
  local.get sum local.get n i64.add local.set sum
  local.get n i64.const 1 i64.sub local.set n
  br counting
stacked:
  i64.const 7
  local.get n
inner(i64, i64):
  i64.const 1 i64.sub dup
  i64.const 0 i64.gt_s
  br_if inner
  drop
  local.set sum
  br out
out:
  local.get sum
  return
}
func irreducible(c: i32, n: i32) -> i32 {
  local.get c
  br_if second
first:
  local.get n i32.const 1 i32.sub local.set n
second:
  local.get n
  br_if first
  local.get n
  return
}
func both_edges(c: i32) -> i32 {
  local x: i32
  local.get c
  br_if next
next:
  local.get x
  local.get c local.set x
  local.get c
  br_if other
  return
other(i32):
  unreachable
}
func restarts(n: i32) {
start:
  local.get n
  br_if start
  return
}
func direct_address(a: i32) -> i32 {
  local.addr a i32.const 5 i32.store
  local.addr a i32.load
  return
}
func escaping(a: i32, b: f64) -> i32 {
  local c: i64
  local.addr a local.addr b i32.add local.addr c i32.sub
  local.get a local.get c i32.wrap_i64 i32.add i32.mul
  return
}
"#;

/// A function with so many escaping locals that the runtime zeroes its frame.
pub(super) fn many_escaping() -> String {
    let mut source = String::from("func escaping_many() -> i32 {\n  local 40 i64\n  i32.const 0\n");
    for local in 0..40 {
        writeln!(source, "  local.addr {local} i32.add").unwrap();
    }
    source + "  return\n}\n"
}

pub(super) fn all_opcodes() -> VerifiedModule {
    module(&(fixed_opcodes() + SPECIAL + &many_escaping()))
}
