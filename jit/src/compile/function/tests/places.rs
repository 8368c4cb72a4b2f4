//! The tables of traps and calls: which instruction of the bytecode a place in the code belongs to.

use super::opcodes::{PRELUDE, SPECIAL, fixed_opcodes, many_escaping};
use super::*;
use crate::code::pctable::TrapReason;
use crate::lower::traps;

/// The places of traps of one code.
pub(super) fn trap_offsets(compiled: &CompiledFunction, code: TrapCode) -> Vec<u32> {
    let sites = compiled.code.traps.iter().filter(|t| t.reason == TrapReason::Guest(code));
    let mut offsets: Vec<u32> =
        sites.map(|site| compiled.code.places[site.place.0 as usize].offset).collect();
    offsets.sort_unstable();
    offsets.dedup();
    offsets
}

/// The code offsets of the instructions of a function that a predicate names.
fn offsets_of(module: &VerifiedModule, func: u32, wanted: impl Fn(Op) -> bool) -> Vec<u32> {
    let body = module.body(func).unwrap();
    let insts = body.blocks.iter().flat_map(|block| module.insts(func, block));
    insts.filter(|(_, inst)| wanted(inst.op)).map(|(offset, _)| offset).collect()
}

/// Accesses that a back end or the optimiser could fold, merge or remove.
const ACCESSES: &str = "
memory mem 1
global g: mut i32 = i32.const 0
func folded(a: i32, b: i64) -> i64 {
  local.get a i64.load
  local.get b
  i64.add
  return
}
func updated(a: i32, b: i64) {
  local.get a
  local.get a i64.load local.get b i64.add
  i64.store
  return
}
func overwritten(a: i32) {
  local.get a i32.const 1 i32.store
  local.get a i32.const 2 i32.store
  return
}
func overwritten_later(a: i32, b: i32) {
  local.get a i32.const 1 i32.store
  local.get a i32.const 2 i32.store 4
  local.get a i32.const 3 i32.store8
  local.get a i32.const 4 i32.store
  local.get b i32.load drop
  local.get a i32.const 5 i32.store
  i32.const 6 global.set g
  local.get a i32.const 7 i32.store
  local.get b br_if there
  local.get a i32.const 8 i32.store
there:
  local.get a i32.const 9 i32.store
  local.get a i64.const 10 i64.store
  return
}
func overwritten_round(a: i32, b: i32) {
again:
  local.get a i32.const 1 i32.store
  local.get b br_if again
  local.get a i32.const 2 i32.store
  return
}
func divided(a: i32, b: i64) -> i64 {
  local.get b
  local.get a i64.load
  i64.div_u
  return
}
func compared(a: i32, b: i32) -> i32 {
  local.get a i32.load 4
  local.get b i32.load 8
  i32.lt_s
  br_if less
  i32.const 1
  return
less:
  unreachable
}
func extended(a: i32) -> i64 {
  local.get a i32.load
  nop
  i64.extend_i32_s
  return
}
func followed(a: i32) -> i64 {
  local.get a i32.load 16
  nop
  i64.load
  return
}
func unused(a: i32) {
  local.get a f64.load drop
  return
}
";

#[test]
fn each_access_traps_at_its_own_offset() {
    let module = module(ACCESSES);
    for options in all_options() {
        let about = describe(&options);
        let checks = options.lower.memory == MemoryPlan::CHECKED;
        for (func, compiled) in (0..).zip(compile_all(&module, options)) {
            let name = module.func_name(func);
            let accesses = offsets_of(&module, func, |op| op.access().is_some());
            let traps = trap_offsets(&compiled, TrapCode::MemoryOutOfBounds);
            if checks && (name == "updated" || name.starts_with("overwritten")) {
                // One check serves both accesses of one address.
                assert_eq!(traps.first(), accesses.first(), "{name}, {about}");
                assert!(traps.iter().all(|trap| accesses.contains(trap)), "{name}, {about}");
            } else {
                assert_eq!(traps, accesses, "{name}, {about}");
            }
            let ends = offsets_of(&module, func, |op| op == Op::Unreachable);
            assert_eq!(trap_offsets(&compiled, TrapCode::Unreachable), ends, "{name}, {about}");
        }
    }
}

#[test]
fn loads_beyond_the_codes_of_their_own_trap_at_their_offsets_too() {
    let mut source = String::from("memory mem 1\nfunc sum(a: i32, b: i64) -> i64 {\n");
    let n_loads = traps::LOAD_CODES + 50;
    for i in 0..n_loads {
        writeln!(source, "  local.get b local.get a i64.load {} i64.add local.set b", i * 8)
            .unwrap();
    }
    source += "  local.get b return\n}";
    let module = module(&source);
    let loads = offsets_of(&module, 0, |op| op.access().is_some());
    assert_eq!(loads.len(), n_loads);
    for options in all_options() {
        let about = describe(&options);
        let compiled = compile_all(&module, options);
        assert_eq!(trap_offsets(&compiled[0], TrapCode::MemoryOutOfBounds), loads, "{about}");
    }
}

#[test]
fn each_pc_traps_for_one_reason() {
    let module = module(
        &(fixed_opcodes() + SPECIAL + &many_escaping() + &ACCESSES.replace("memory mem 1", "")),
    );
    for options in all_options() {
        let about = describe(&options);
        for compiled in compile_all(&module, options) {
            let offsets: Vec<u32> = compiled.code.traps.iter().map(|trap| trap.offset).collect();
            assert!(offsets.is_sorted_by(|a, b| a < b), "{about}");
        }
    }
}

#[test]
fn calls_return_to_their_offsets() {
    let module = module(&(PRELUDE.to_owned() + SPECIAL));
    for mut options in all_options().into_iter().chain(all_options_without_signals()) {
        // Each call of the bytecode stays a call.
        options.passes.switch("inline", false);
        let about = describe(&options);
        let first = module.n_imported_funcs();
        for (func, compiled) in (first..).zip(compile_all(&module, options)) {
            let calls = offsets_of(&module, func, |op| op.effect() == Effect::Call);
            let places = compiled.code.calls.iter().map(|call| call.place.0 as usize);
            let places: Vec<u32> = places.map(|place| compiled.code.places[place].offset).collect();
            let known = |offset: &u32| places.contains(offset);
            assert!(calls.iter().all(known), "{}, {about}", module.func_name(func));
        }
    }
}

#[test]
fn stack_overflow_belongs_to_the_start_even_of_huge_frames() {
    let mut source = String::from("func huge(n: i64) -> i64 {\n  local 49000 i64\n");
    for local in (1..49_001).step_by(3) {
        writeln!(source, "  local.get {local} local.get n i64.add local.set {local}").unwrap();
    }
    source += "  local.get n call huge local.get 1 i64.add return\n}";
    let module = module(&source);
    for target in TARGETS {
        for slots in [SlotMode::Memory, SlotMode::MemoryOpt, SlotMode::Ssa] {
            let compiled = &compile_all(&module, options(target, slots))[0];
            assert_eq!(trap_offsets(compiled, TrapCode::StackOverflow), [0], "{target} {slots}");
            if slots.is_memory() {
                assert!(compiled.sizes.slot_bytes >= 16_000 * 8);
                assert!(compiled.sizes.frame_bytes >= compiled.sizes.slot_bytes);
                // Without signals there is no room to look at the limit from such a frame.
                let mut options = options(target, slots);
                options.lower.memory = MemoryPlan::CHECKED;
                options.lower.trapping = Trapping::Calls;
                let compiled = &compile_all(&module, options)[0];
                let places: Vec<_> = compiled.code.calls.iter().map(|call| call.place).collect();
                assert_eq!(places.len(), 1, "{target} {slots}");
                assert_eq!(compiled.code.places[places[0].0 as usize].offset, 0);
                assert!(compiled.sizes.frame_bytes < 100);
            }
        }
    }
}

#[test]
fn bounds_are_checked_exactly_where_the_reservation_does_not_cover_the_access() {
    let module = module(
        "memory mem 1
         func plain(a: i32) -> i32 { local.get a i32.load 100 return }
         func far(a: i32) -> i32 { local.get a i32.load 0x8000_0000 return }
         func indexed(a: i32, i: i32) -> i32 { local.get a local.get i i32.load_indexed 8 return }",
    );
    for (plan, checked) in [
        (MemoryPlan::CHECKED, [true, true, true]),
        (MemoryPlan::PLAIN, [false, true, true]),
        (MemoryPlan::INDEXED, [false, false, false]),
    ] {
        for target in TARGETS {
            let mut options = options(target, SlotMode::Ssa);
            options.lower.memory = plan;
            let mut compiler = Compiler::new(options);
            for (func, checked) in (0..).zip(checked) {
                let function = form(&mut compiler, &module, func);
                let options = compiler.options.lower.clone();
                compiler.lower(&module, &function, &find_loops(&function), &options);
                let checks = count(&compiler.context.func, ir::Opcode::Trapnz);
                assert_eq!(checks, usize::from(checked), "{} {plan:?}", function.name);
            }
        }
    }
}

/// One store of each width, at offset 100.
const STORES: &str = "
memory mem 1
func one(a: i32, v: i64) { local.get a local.get v i64.store8 100 return }
func two(a: i32, v: i64) { local.get a local.get v i64.store16 100 return }
func four(a: i32, v: i64) { local.get a local.get v i64.store32 100 return }
func eight(a: i32, v: i64) { local.get a local.get v i64.store 100 return }
func indexed(a: i32, v: f64) { local.get a local.get a local.get v f64.store_indexed 8 100 return }
";

#[test]
fn stores_that_may_write_a_part_are_probed_before() {
    let module = module(STORES);
    for target in TARGETS {
        for (plan, guarded) in [(MemoryPlan::INDEXED, true), (MemoryPlan::CHECKED, false)] {
            for slots in SlotMode::ALL {
                let mut options = options(target, slots);
                options.lower.memory = plan;
                for (func, compiled) in (0..).zip(compile_all(&module, options)) {
                    let is_probed = guarded && target.starts_with("aarch64") && func > 0;
                    let traps = compiled.code.traps.iter();
                    let out_of_bounds = TrapReason::Guest(TrapCode::MemoryOutOfBounds);
                    let places: Vec<_> =
                        traps.filter(|t| t.reason == out_of_bounds).map(|t| t.place).collect();
                    let name = module.func_name(func);
                    let n_expected = if is_probed { 2 } else { 1 };
                    assert_eq!(places.len(), n_expected, "{name}, {target}, {slots}, {plan:?}");
                    assert!(places.iter().all(|place| *place == places[0]));
                }
            }
        }
    }
}

#[test]
fn a_probe_loads_the_last_byte() {
    let module = module(STORES);
    let mut compiler = Compiler::new(options(TARGETS[1], SlotMode::Ssa));
    for (func, offset) in [(1, 101), (2, 103), (3, 107)] {
        let function = form(&mut compiler, &module, func);
        let options = compiler.options.lower.clone();
        compiler.lower(&module, &function, &find_loops(&function), &options);
        let loads = clif_insts(&compiler.context.func).filter_map(|inst| match inst {
            ir::InstructionData::Load { opcode: ir::Opcode::Uload8, offset, .. } => {
                Some(i32::from(*offset))
            }
            _ => None,
        });
        assert_eq!(loads.collect::<Vec<_>>(), [offset], "{}", module.func_name(func));
    }
}

/// Traps that Cranelift guards a division with, for operands that the lowering has ruled out.
const OF_DIVISIONS: [ir::TrapCode; 2] =
    [ir::TrapCode::INTEGER_DIVISION_BY_ZERO, ir::TrapCode::INTEGER_OVERFLOW];

#[test]
fn code_that_traps_by_calls_holds_no_instruction_that_would_fault() {
    use Op::{I32DivS, I32DivU, I32RemS, I32RemU, I64DivS, I64DivU, I64RemS, I64RemU};
    let divisions = [I32DivS, I32DivU, I32RemS, I32RemU, I64DivS, I64DivU, I64RemS, I64RemU];
    let module = all_opcodes();
    let (mut n_calls, mut n_of_divisions) = (0, 0);
    for options in all_options_without_signals() {
        let about = describe(&options);
        let mut compiler = Compiler::new(options);
        for func in module.n_imported_funcs()..module.n_funcs() {
            let code = compiler.compile(&module, func, share(&module, func)).unwrap().code;
            assert!(code.traps.is_empty(), "{about}");
            let divides = !offsets_of(&module, func, |op| divisions.contains(&op)).is_empty();
            for trap in compiler.compiled.as_ref().unwrap().buffer.traps() {
                let follows_call = code.calls.iter().any(|call| call.offset == trap.offset);
                match trap.code {
                    traps::NEVER => assert!(follows_call, "{about}"),
                    code => assert!(divides && OF_DIVISIONS.contains(&code), "{about}: {code}"),
                }
                n_calls += usize::from(follows_call);
                n_of_divisions += usize::from(!follows_call);
            }
        }
    }
    assert!(n_calls > 1_000 && n_of_divisions > 50, "{n_calls} {n_of_divisions}");
}

/// Loads of more than two rounds of codes in one block, in each shape that a back end folds, with users that stand
/// together after all loads.
#[test]
fn loads_that_share_codes_trap_at_their_offsets_whatever_uses_them() {
    let n_loads = 2 * traps::LOAD_CODES + 30;
    let shapes: [(&str, &str); 5] = [
        ("local.get b  local.get a i64.load OFF  i64.xor local.set b", ""),
        ("local.get a  local.get a i64.load OFF  local.get b i64.add  i64.store OFF", ""),
        ("local.get a i64.load OFF  local.get b i64.lt_s br_if out", ""),
        ("local.get a i64.load OFF", "i64.add"),
        ("local.get a i32.load OFF  i64.extend_i32_u", "i64.mul"),
    ];
    for (load, combine) in shapes {
        let mut source = String::from("memory mem 1\nfunc f(a: i32, b: i64) -> i64 {\n");
        // Operands that wait go through locals, so that all loads stand before all users.
        if !combine.is_empty() {
            for i in 0..n_loads {
                writeln!(source, "  local t{i}: i64").unwrap();
            }
        }
        for i in 0..n_loads {
            source += &load.replace("OFF", &(i * 8).to_string());
            source +=
                &if combine.is_empty() { "\n".to_owned() } else { format!(" local.set t{i}\n") };
        }
        if !combine.is_empty() {
            for i in 0..n_loads {
                writeln!(source, "  local.get b local.get t{i} {combine} local.set b").unwrap();
            }
        }
        source += "out:\n  local.get b return\n}";
        let module = module(&source);
        let accesses = offsets_of(&module, 0, |op| op.access().is_some());
        for options in all_options() {
            let about = describe(&options);
            let compiled = compile_all(&module, options);
            let traps = trap_offsets(&compiled[0], TrapCode::MemoryOutOfBounds);
            // A store to an address that was loaded is checked once.
            let is_known = |trap: &u32| accesses.contains(trap);
            assert!(traps.iter().all(is_known), "{load}, {about}");
            assert!(traps.len() >= n_loads, "{load}, {about}: {} of {n_loads}", traps.len());
        }
    }
}
