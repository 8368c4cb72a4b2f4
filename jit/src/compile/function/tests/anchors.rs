//! The instruction of a function that placement aligns.

use super::*;

/// Two loops, one in the other, with blocks that trap before, between and after them: these are cold, and lie at the end of the
/// machine code.
const LOOPS: &str = "
memory mem 1
func f(n: i32, m: i32) -> i32 {
  local i: i32, j: i32
  local.get n i32.eqz br_if first
  br outer
first:
  unreachable
outer:
  local.get i i32.const 7 i32.eq br_if second
  i32.const 0 local.set j
  br inner
second:
  unreachable
inner:
  local.get j i32.const 9 i32.eq br_if third
  local.get j local.get i i32.store
  local.get j i32.const 2 i32.add local.tee j
  local.get m i32.lt_u br_if inner
  br after
third:
  unreachable
after:
  local.get i local.get i i32.store 8
  local.get i i32.const 1 i32.add local.tee i
  local.get n i32.lt_u br_if outer
  local.get i return
}";

/// Whether an instruction of x86-64 code branches back to an offset.
fn is_branched_back_to(code: &[u8], offset: usize) -> bool {
    let lengths = |at: usize| match code[at..] {
        [0x0f, 0x80..=0x8f, ..] => Some(6),
        [0xe9, ..] => Some(5),
        _ => None,
    };
    (offset..code.len()).any(|at| {
        let Some(end) = lengths(at).map(|length| at + length) else { return false };
        let Some(distance) = code.get(end - 4..end) else { return false };
        let distance = i32::from_le_bytes(distance.try_into().expect("it has four bytes"));
        end as i64 + i64::from(distance) == offset as i64
    })
}

#[test]
fn the_innermost_loop_is_aligned_whatever_is_cold_around_it() {
    let module = module(LOOPS);
    for slots in [SlotMode::Ssa, SlotMode::Memory] {
        let mut compiler = Compiler::new(options("x86_64-unknown-linux-gnu", slots));
        let compiled = compiler.compile(&module, 0, share(&module, 0)).unwrap();
        let anchor = compiled.code.anchor;
        assert_eq!(anchor.boundary, 64, "{slots}");
        let start = anchor.offset as usize;
        assert!(is_branched_back_to(&compiled.code.bytes, start), "{slots}: {start}");
        // The outer loop begins before it, and contains it.
        let outer = (1..start).filter(|&at| is_branched_back_to(&compiled.code.bytes, at));
        assert!(outer.count() > 0, "{slots}: {start}");
    }
}

#[test]
fn functions_without_loops_start_at_a_fetch() {
    let module =
        module("func f(a: i32) -> i32 { local.get a br_if on unreachable on: i32.const 3 return }");
    let mut compiler = Compiler::new(options("x86_64-unknown-linux-gnu", SlotMode::Ssa));
    let anchor = compiler.compile(&module, 0, share(&module, 0)).unwrap().code.anchor;
    assert_eq!((anchor.offset, anchor.boundary), (0, 32));
}
