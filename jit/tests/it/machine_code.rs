//! Machine code of a function with the bytecode that it comes from, the functions that it names, and its traps.

use std::ops::Range;

use slotvm::compiler::{BytecodePlace, CodeTarget, FunctionCode};
use slotvm::{Compile, Config, Engine, Module, PassSet, SlotMode, Tier, TrapCode};

/// `g` divides; `f` calls it and itself. Their numbers are 1 and 2, after the import.
const SOURCE: &str = r#"
import "env" "host" func host(i32)
export "f" func f
export "g" func g
func g(a: i32, b: i32) -> i32 {
  local.get a
  local.get b
  i32.div_s
  return
}
func f(n: i32) -> i32 {
  local.get n
  call host
  local.get n
  br_if again
  i32.const 0
  return
again:
  local.get n  i32.const 1  i32.sub
  call f
  local.get n
  call g
  return
}"#;

fn module(config: &mut Config) -> Module {
    let engine = Engine::new(config.tier(Tier::Jit)).unwrap();
    Module::from_text(&engine, SOURCE).unwrap()
}

fn code(module: &Module, func: u32) -> FunctionCode {
    module.machine_code(func).unwrap().unwrap()
}

/// Properties of all code.
fn check(module: &Module, code: &FunctionCode) {
    let len = code.bytes.len() as u32;
    assert!(code.ranges.is_sorted_by(|a, b| a.code.end <= b.code.start));
    assert!(code.ranges.iter().all(|range| !range.code.is_empty() && range.code.end <= len));
    assert!(code.relocations.is_sorted_by_key(|reloc| reloc.offset));
    assert!(code.traps.is_sorted_by(|a, b| a.offset < b.offset));
    assert!(code.traps.iter().all(|trap| trap.offset < len && !trap.places.is_empty()));
    assert!(code.calls.is_sorted_by(|a, b| a.return_offset < b.return_offset));
    let places = code.ranges.iter().flat_map(|range| &range.places);
    for &BytecodePlace { func, offset } in places {
        let body = module.verified().func(func).expect("only code of the module is inlined");
        assert!((offset as usize) < body.code.len());
    }
    for range in &code.ranges {
        assert!(!range.places.is_empty());
        assert_eq!(code.places_at(range.code.start), range.places);
        assert_eq!(code.places_at(range.code.end - 1), range.places);
        assert_eq!(range.places.last().unwrap().func, code.func);
    }
    assert_eq!(code.places_at(len), []);
    for trap in &code.traps {
        assert_eq!(code.traps_in(trap.offset..trap.offset + 1), std::slice::from_ref(trap));
    }
    for reloc in &code.relocations {
        let found = code.relocations_in(reloc.offset..reloc.offset + 1);
        assert!(found.contains(reloc), "{reloc:?}");
    }
}

/// The code offset of the instruction with an opcode.
fn offset_of(module: &Module, func: u32, mnemonic: &str) -> u32 {
    let body = &module.verified().func(func).unwrap().code;
    let mut reader = slotvm_bytecode::inst::CodeReader::new(body, 0);
    while !reader.is_at_end() {
        let offset = reader.offset();
        if reader.read().unwrap().op.mnemonic() == mnemonic {
            return offset;
        }
    }
    panic!("function {func} has no {mnemonic}");
}

#[test]
fn code_of_each_mode_says_where_it_comes_from_and_what_it_names() {
    for slots in SlotMode::ALL {
        let module = module(Config::new().slots(slots).passes("-inline".parse().unwrap()));
        assert_eq!(module.machine_code(0).unwrap(), None, "it is imported");
        assert_eq!(module.machine_code(99).unwrap(), None);
        let (g, f) = (code(&module, 1), code(&module, 2));
        for code in [&g, &f] {
            check(&module, code);
        }
        let division = BytecodePlace { func: 1, offset: offset_of(&module, 1, "i32.div_s") };
        let by_zero: Vec<_> = g
            .traps
            .iter()
            .filter(|trap| trap.reason == Some(TrapCode::IntegerDivisionByZero))
            .collect();
        assert!(!by_zero.is_empty() && by_zero.iter().all(|trap| trap.places == [division]));
        assert!(g.ranges.iter().any(|range| range.places == [division]), "{slots}");
        assert!(g.relocations.is_empty() && g.calls.is_empty());
        // Calls of itself are named, too, though they are resolved.
        let named: Vec<_> = f.relocations.iter().map(|reloc| reloc.target.clone()).collect();
        // Both slots of `g` are in memory, or none.
        let Range { start, end } = g.frame.slots;
        assert_eq!(end > start, slots.is_memory(), "{slots}: {:?}", g.frame);
        assert!(end <= g.frame.bytes);
        assert!(named.contains(&CodeTarget::Func(1)) && named.contains(&CodeTarget::Func(2)));
        assert_eq!(f.calls.len(), 3);
    }
}

#[test]
fn inlined_code_has_the_places_of_the_calls() {
    let module = module(Config::new().passes(PassSet::default()));
    let f = code(&module, 2);
    check(&module, &f);
    let inlined = f.traps.iter().find(|trap| trap.places.len() == 2).expect("`g` is inlined");
    assert_eq!(inlined.places[0].func, 1);
    assert_eq!(inlined.places[1].func, 2);
}

#[test]
fn code_that_is_placed_together_is_that_which_runs() {
    let module = module(&mut Config::new());
    let (g, f) = (code(&module, 1), code(&module, 2));
    let place = |code: &FunctionCode| code.module_offset.unwrap() as usize;
    let (g_at, f_at) = (place(&g), place(&f));
    assert!(g_at + g.bytes.len() <= f_at || f_at + f.bytes.len() <= g_at);
    assert!(f_at.max(g_at) < module.code_bytes());
    // Where functions are compiled on their own, there is no common start.
    let lazy = self::module(Config::new().compile(Compile::Lazy));
    let g = code(&lazy, 1);
    check(&lazy, &g);
    assert_eq!(g.module_offset, None);
}

#[test]
fn calls_lead_to_where_functions_are_placed() {
    let module = module(Config::new().passes(PassSet::none()));
    let (g, f) = (code(&module, 1), code(&module, 2));
    let to_g = f.relocations.iter().find(|reloc| reloc.target == CodeTarget::Func(1)).unwrap();
    if cfg!(target_arch = "x86_64") {
        let at = to_g.offset as usize;
        let field = f.bytes[at..at + 4].try_into().unwrap();
        let end = f.module_offset.unwrap() as i64 + at as i64 + 4;
        assert_eq!(to_g.kind, "CallPCRel4");
        assert_eq!(end + i64::from(i32::from_le_bytes(field)), g.module_offset.unwrap() as i64);
    } else {
        assert!(to_g.kind.contains("Call"), "{}", to_g.kind);
    }
}
