//! Every opcode in every mode through Cranelift's verifier and both back ends, and the tables of traps
//! and calls. What the code computes is compared elsewhere, by running it.

use std::fmt::Write;

use cranelift_codegen::ir;
use slotvm_bytecode::op::ImmKind;
use slotvm_bytecode::{Effect, Op, TrapCode, ValType, text, verify};
use slotvm_runtime::MemoryPlan;
use slotvm_ssa::irop::{IrOp, Opcode, is_in_ir};
use target_lexicon::Triple;

use super::*;
use crate::budget::Budget;
use crate::isa::{IsaOptions, foreign_isa};

const TARGETS: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

fn module(source: &str) -> VerifiedModule {
    let module = text::parse(source).unwrap_or_else(|error| panic!("{error}\n{source}"));
    verify(module).unwrap_or_else(|error| panic!("{error}\n{source}"))
}

fn share(module: &VerifiedModule, func: u32) -> Share {
    Budget::new(module).share(module, func)
}

/// Options for a target, with Cranelift's verifier on.
fn options(target: &str, slots: SlotMode) -> CompileOptions {
    let triple: Triple = target.parse().unwrap();
    let isa = IsaOptions { verify_clif: true, ..IsaOptions::new(slots) };
    let isa = foreign_isa(triple, isa).unwrap();
    CompileOptions {
        build: BuildOptions::default(),
        promotion: PromoteOptions::default(),
        on_the_fly: None,
        lower: LowerOptions {
            isa,
            slots,
            memory: MemoryPlan::INDEXED,
            polls: false,
            trapping: Trapping::Signals,
            entries: None,
            imports: None,
        },
        keep_clif: false,
        keep_asm: false,
    }
}

/// All targets and modes, and SSA form straight from bytecode; each with guard pages and without
/// accounting, and the other way round.
fn all_options() -> Vec<CompileOptions> {
    let mut all = Vec::new();
    for target in TARGETS {
        for slots in SlotMode::ALL {
            let plain = options(target, slots);
            let mut checked = plain.clone();
            checked.build = BuildOptions { fuel: true, stack_cells: true, polls: true };
            checked.lower.memory = MemoryPlan::CHECKED;
            checked.lower.polls = true;
            if slots.is_promoted() {
                all.extend([&plain, &checked].map(|options| on_the_fly(options.clone())));
            }
            all.extend([plain, checked]);
        }
    }
    all
}

/// The same without signals.
fn all_options_without_signals() -> Vec<CompileOptions> {
    let mut all = all_options();
    for options in &mut all {
        options.lower.memory = MemoryPlan::CHECKED;
        options.lower.trapping = Trapping::Calls;
    }
    all
}

/// The options with SSA form made straight from bytecode, and simplified on the way.
fn on_the_fly(options: CompileOptions) -> CompileOptions {
    let build = options.build;
    let ssa = SsaOptions { build, fold: true, copies: true, ..SsaOptions::default() };
    CompileOptions { on_the_fly: Some(ssa), ..options }
}

fn describe(options: &CompileOptions) -> String {
    let CompileOptions { build, on_the_fly, lower, .. } = options;
    let LowerOptions { isa, slots, memory, trapping, .. } = lower;
    format!("{} {slots} {build:?} {on_the_fly:?} {memory:?} {trapping:?}", isa.triple())
}

fn compile_all(module: &VerifiedModule, options: CompileOptions) -> Vec<CompiledFunction> {
    let about = describe(&options);
    let mut compiler = Compiler::new(options);
    (module.n_imported_funcs()..module.n_funcs())
        .map(|func| match compiler.compile(module, func, share(module, func)) {
            Ok(compiled) => compiled,
            Err(error) => panic!("{error}\n{about}"),
        })
        .collect()
}

/// One function for each opcode with a fixed signature, with parameters as operands.
fn fixed_opcodes() -> String {
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

const PRELUDE: &str = r#"
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
const SPECIAL: &str = r#"
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
fn many_escaping() -> String {
    let mut source = String::from("func escaping_many() -> i32 {\n  local 40 i64\n  i32.const 0\n");
    for local in 0..40 {
        writeln!(source, "  local.addr {local} i32.add").unwrap();
    }
    source + "  return\n}\n"
}

fn all_opcodes() -> VerifiedModule {
    module(&(fixed_opcodes() + SPECIAL + &many_escaping()))
}

#[test]
fn the_test_module_has_every_opcode() {
    let module = all_opcodes();
    let mut seen = vec![false; Op::ALL.len()];
    let mut compiler = Compiler::new(options(TARGETS[0], SlotMode::Memory));
    compiler.options.build = BuildOptions { fuel: true, stack_cells: true, polls: true };
    let mut ir_ops = Vec::new();
    for func in module.n_imported_funcs()..module.n_funcs() {
        let (function, _) =
            compiler.form(&module, func, share(&module, func), &mut StageTimes::default());
        for block in function.blocks() {
            for &inst in function.insts(block) {
                match function.opcode(inst) {
                    Opcode::Op(op) => seen[op as usize] = true,
                    Opcode::Ir(op) => ir_ops.push(op),
                }
            }
        }
    }
    for &op in Op::ALL {
        assert_eq!(seen[op as usize], is_in_ir(op), "{}", op.mnemonic());
    }
    for op in IrOp::ALL {
        assert!(ir_ops.contains(op), "{}", op.mnemonic());
    }
}

#[test]
fn every_opcode_compiles_in_every_mode_for_every_target() {
    let module = all_opcodes();
    for options in all_options().into_iter().chain(all_options_without_signals()) {
        let n_funcs = (module.n_funcs() - module.n_imported_funcs()) as usize;
        let compiled = compile_all(&module, options);
        assert_eq!(compiled.len(), n_funcs);
        assert!(compiled.iter().all(|function| !function.code.bytes.is_empty()));
    }
}

#[test]
fn the_verifier_of_clif_is_on_in_tests() {
    assert!(IsaOptions::new(SlotMode::Ssa).verify_clif);
    assert!(options(TARGETS[0], SlotMode::Ssa).lower.isa.flags().enable_verifier());
}

/// The CLIF of each function of a module.
fn for_each_clif(
    module: &VerifiedModule,
    slots: SlotMode,
    mut check: impl FnMut(&Function, &ir::Function),
) {
    let mut compiler = Compiler::new(options(TARGETS[0], slots));
    for func in module.n_imported_funcs()..module.n_funcs() {
        let (function, _) =
            compiler.form(module, func, share(module, func), &mut StageTimes::default());
        let options = compiler.options.lower.clone();
        compiler.lower(module, &function, &find_loops(&function), &options);
        check(&function, &compiler.context.func);
    }
}

fn clif_insts(clif: &ir::Function) -> impl Iterator<Item = &ir::InstructionData> {
    let insts = clif.layout.blocks().flat_map(|block| clif.layout.block_insts(block));
    insts.map(|inst| &clif.dfg.insts[inst])
}

fn count(clif: &ir::Function, opcode: ir::Opcode) -> usize {
    clif_insts(clif).filter(|data| data.opcode() == opcode).count()
}

/// Loads and stores in the alias region of the slots.
fn frame_accesses(clif: &ir::Function) -> usize {
    let region = |data: &&ir::InstructionData| {
        let region = data.alias_region(&clif.dfg)?;
        Some(clif.dfg.alias_regions[region].description == "frame")
    };
    clif_insts(clif).filter(|data| region(data) == Some(true)).count()
}

fn slot_reads(function: &Function) -> usize {
    let insts = function.blocks().flat_map(|block| function.insts(block));
    insts.filter(|&&inst| function.opcode(inst) == Opcode::Ir(IrOp::SlotGet)).count()
}

#[test]
fn promoted_code_has_no_slot_access() {
    let module = all_opcodes();
    for slots in [SlotMode::Ssa, SlotMode::Variables] {
        for_each_clif(&module, slots, |function, clif| {
            assert_eq!(frame_accesses(clif), 0, "{}\n{clif}", function.name);
            // What is left is the area for the results of calls.
            let areas = usize::from(function.name == "calls_many");
            assert_eq!(clif.sized_stack_slots.len(), areas, "{}\n{clif}", function.name);
        });
    }
}

#[test]
fn memory_modes_access_memory_for_each_slot_access() {
    let module = all_opcodes();
    for slots in [SlotMode::Memory, SlotMode::MemoryOpt, SlotMode::MemoryForwarded] {
        let mut n_reads = 0;
        for_each_clif(&module, slots, |function, clif| {
            let reads = slot_reads(function);
            assert!(frame_accesses(clif) >= reads, "{}\n{clif}", function.name);
            n_reads += reads;
        });
        assert!(n_reads > 100);
    }
}

#[test]
fn only_memory_opt_fences_reads() {
    let module = module("func f(a: i64) -> i64 { local.get a local.get a i64.add return }");
    for (slots, fences) in [
        (SlotMode::Memory, 0),
        (SlotMode::MemoryOpt, 2),
        (SlotMode::MemoryForwarded, 0),
        (SlotMode::Variables, 0),
        (SlotMode::Ssa, 0),
    ] {
        for_each_clif(&module, slots, |_, clif| {
            assert_eq!(count(clif, ir::Opcode::SequencePoint), fences, "{slots}\n{clif}");
        });
    }
}

#[test]
fn the_loop_exit_is_the_first_target() {
    let module = module(
        "func stay_if(n: i64) -> i64 {
         head:
           local.get n i64.const 1 i64.sub local.tee n
           i64.const 0 i64.gt_s
           br_if head
           local.get n
           return
         }
         func leave_if(n: i64) -> i64 {
         head:
           local.get n i64.eqz
           br_if out
           local.get n i64.const 1 i64.sub local.set n
           br head
         out:
           local.get n
           return
         }",
    );
    for slots in SlotMode::ALL {
        for_each_clif(&module, slots, |function, clif| {
            let brif = clif_insts(clif).find_map(|data| match data {
                ir::InstructionData::Brif { blocks, .. } => Some(blocks[0]),
                _ => None,
            });
            let first = brif.expect("a branch").block(&clif.dfg.value_lists);
            let last = clif.layout.last_inst(first).unwrap();
            let leaves = clif.dfg.insts[last].opcode() == ir::Opcode::Return;
            assert!(leaves, "{} in {slots}\n{clif}", function.name);
        });
    }
}

/// The places of traps of one code.
fn trap_offsets(compiled: &CompiledFunction, code: TrapCode) -> Vec<u32> {
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
            if checks && ["updated", "overwritten"].contains(&name.as_str()) {
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
    let n_loads = traps::LOAD_CODES_MAX + 50;
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
    for options in all_options().into_iter().chain(all_options_without_signals()) {
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
                let (function, _) =
                    compiler.form(&module, func, share(&module, func), &mut StageTimes::default());
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
        let (function, _) =
            compiler.form(&module, func, share(&module, func), &mut StageTimes::default());
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

/// What Cranelift puts in front of a division for operands that the lowering has ruled out.
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
            for trap in compiler.context.compiled_code().unwrap().buffer.traps() {
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

#[test]
fn text_of_clif_and_machine_code_is_kept_when_asked_for() {
    let module = module("func f(a: i64) -> i64 { local.get a i64.const 3 i64.add return }");
    let mut options = options(TARGETS[0], SlotMode::Ssa);
    options.keep_clif = true;
    options.keep_asm = true;
    let compiled = &compile_all(&module, options)[0];
    assert!(compiled.clif.as_ref().unwrap().contains("iadd"));
    assert!(compiled.asm.as_ref().unwrap().contains("ret"));
    assert_eq!(compiled.sizes.n_blocks, 1);
    assert!(compiled.sizes.code_bytes > 0);
}

/// Loops inside each other, each of two blocks.
fn nest(depth: usize) -> VerifiedModule {
    let mut source = String::from("func f(n: i32) {\n");
    for i in 0..depth {
        write!(source, "h{i}: nop ").unwrap();
    }
    for i in (0..depth).rev() {
        writeln!(source, "local.get n br_if h{i}").unwrap();
    }
    module(&(source + "return }"))
}

#[test]
fn deep_nests_are_compiled_without_the_optimiser() {
    for (depth, expected) in [(100, false), (3000, true)] {
        let module = nest(depth);
        for slots in SlotMode::ALL {
            let mut options = options(TARGETS[0], slots);
            options.build.fuel = true;
            let compiled = &compile_all(&module, options)[0];
            let expected = expected && slots != SlotMode::Memory;
            let is_unoptimised = compiled.work.rung != Rung::AsAsked;
            assert_eq!(is_unoptimised, expected, "{depth} {slots}");
            // Both paths know where fuel runs out.
            let blocks = module.body(0).unwrap().blocks.iter().map(|block| block.start);
            let out = trap_offsets(compiled, TrapCode::OutOfFuel);
            assert_eq!(out, blocks.collect::<Vec<_>>(), "{depth} {slots}");
        }
    }
}

#[test]
fn registers_are_allocated_in_one_pass_where_edges_lead_back_too_far() {
    // A nest, and one loop with many edges back; both take the square of their size.
    let edges_back = |n: usize| {
        let edges = "local.get n br_if again\n".repeat(n);
        module(&format!("func f(n: i32) {{\nagain: {edges}return }}"))
    };
    for slots in [SlotMode::Memory, SlotMode::Ssa] {
        for (module, expected) in [
            (nest(3_000), false),
            (nest(12_000), true),
            (edges_back(3_000), false),
            (edges_back(17_000), true),
        ] {
            let compiled = &compile_all(&module, options(TARGETS[0], slots))[0];
            assert_eq!(compiled.work.rung == Rung::OnePass, expected, "{slots}");
        }
    }
}

#[test]
fn too_many_slots_stay_in_memory() {
    // A switch goes by many edges to a block where all locals meet other values of theirs.
    let module_of = |n_edges: usize| {
        let mut source = String::from("func f(n: i32) -> i64 {\n  local 1000 i64\n");
        let mut write_all = |rest: &str| {
            for local in 1..=1000 {
                writeln!(source, "  i64.const {local} local.set {local}").unwrap();
            }
            source += rest;
        };
        write_all("  local.get n br_if end\n");
        write_all("  local.get n br_table [");
        source += &"end ".repeat(n_edges);
        source += "] end\nend:\n  i64.const 0\n";
        for local in 1..=1000 {
            writeln!(source, "  local.get {local} i64.add").unwrap();
        }
        module(&(source + "  return\n}"))
    };
    for (n_edges, slots, expected) in [
        (10, SlotMode::Ssa, false),
        (10, SlotMode::Variables, false),
        (5_000, SlotMode::Ssa, true),
        (50_000, SlotMode::Variables, true),
        (50_000, SlotMode::Memory, false),
    ] {
        let compiled = &compile_all(&module_of(n_edges), options(TARGETS[0], slots))[0];
        let rung = if expected { Rung::SlotsInMemory } else { Rung::AsAsked };
        assert_eq!(compiled.work.rung, rung, "{n_edges} {slots}");
        let is_in_memory = compiled.sizes.slot_bytes > 0;
        assert_eq!(is_in_memory, expected || slots.is_memory(), "{n_edges} {slots}");
    }
}

#[test]
fn without_its_instructions_vectors_are_an_error_that_says_so() {
    let with_vectors = module("func f(v: v128) -> v128 { local.get v i8x16.abs return }");
    let without = module("func f(n: i64) -> i64 { local.get n return }");
    let mut options = options(TARGETS[0], SlotMode::Ssa);
    let share_of = |module: &VerifiedModule| share(module, 0);
    let mut compiler = Compiler::new(options.clone());
    compiler.compile(&with_vectors, 0, share_of(&with_vectors)).unwrap();
    // Any x86-64 has SSE2, and no more.
    let flags = options.lower.isa.flags().clone();
    let oldest = cranelift_codegen::isa::lookup(TARGETS[0].parse().unwrap()).unwrap();
    options.lower.isa = oldest.finish(flags).unwrap();
    let mut compiler = Compiler::new(options);
    compiler.compile(&without, 0, share_of(&without)).unwrap();
    let error = compiler.compile(&with_vectors, 0, share_of(&with_vectors)).err().unwrap();
    assert_eq!(
        error.to_string(),
        "function f cannot be compiled: vectors need SSSE3 and SSE4.1, which this machine lacks"
    );
}
