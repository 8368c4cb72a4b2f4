//! Every opcode in every mode through Cranelift's verifier and both back ends, and the tables of traps
//! and calls. What the code computes is compared elsewhere, by running it.

use std::fmt::Write;
use std::sync::Arc;

use cranelift_codegen::ir;
use slotvm_bytecode::op::ImmKind;
use slotvm_bytecode::{Effect, Op, TrapCode, ValType, text, verify};
use slotvm_runtime::MemoryPlan;
use slotvm_runtime::native::{CodeVersion, Part};
use slotvm_ssa::construction::build::{FuncExits, LikelyCall};
use slotvm_ssa::ir::irop::{IrOp, Opcode, is_in_ir};
use slotvm_ssa::pipeline::PassSet;
use target_lexicon::Triple;

use super::*;
use crate::compile::budget::Budget;
use crate::compile::function::form::FormExits;
use crate::lower::exits::LeftCode;
use crate::lower::isa::{IsaOptions, foreign_isa};
use crate::lower::order::find_loops;

mod anchors;
mod effort;
mod opcodes;
mod places;

use opcodes::all_opcodes;

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
        passes: Passes::default(),
        lower: LowerOptions {
            cold: None,
            isa,
            slots,
            memory: MemoryPlan::INDEXED,
            polls: false,
            trapping: Trapping::Signals,
            loads_entries: false,
            imports: None,
            counters: None,
            exits: None,
        },
        verify: true,
        keep_clif: false,
        keep_asm: false,
        keep_listing: false,
        containment: Containment::default(),
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
            checked.build =
                BuildOptions { fuel: true, stack_cells: true, polls: true, waits: false };
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

/// The form of a function after all passes.
fn form(compiler: &mut Compiler, module: &VerifiedModule, func: u32) -> Function {
    let share = share(module, func);
    let origin = Origin::of_func(func);
    let form = compiler.form(module, origin, PassSet::all(), share, &mut Times::default());
    form.expect("all stages are right").function
}

#[test]
fn the_test_module_has_every_opcode() {
    let module = all_opcodes();
    let mut seen = vec![false; Op::ALL.len()];
    let mut compiler = Compiler::new(options(TARGETS[0], SlotMode::Memory));
    compiler.options.build =
        BuildOptions { fuel: true, stack_cells: true, polls: true, waits: false };
    let mut ir_ops = Vec::new();
    for func in module.n_imported_funcs()..module.n_funcs() {
        let function = form(&mut compiler, &module, func);
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
    // Forms of bytecode have exits only where they are asked for, as below.
    let is_asked_for = |op| matches!(op, IrOp::Exit | IrOp::RefIsFunc);
    for op in IrOp::ALL.iter().filter(|&&op| !is_asked_for(op)) {
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

/// What follows at a loop is compiled from its slots in the interpreter's frame: vectors, operands and frames in memory too.
/// So are exits in the place of all other blocks.
#[test]
fn loops_compile_in_every_mode_for_every_target() {
    let module = module(
        "memory m 1
         frame_stack 0 1024
         table t funcref 2 2
         elem smalls t at i32.const 0 func small, other
         func other(a: i64) -> i64 { local.get a return }
         func small(a: i64) -> i64 { local.get a i64.const 3 i64.mul return }
         func f(n: i32, a: f64, v: v128) -> (f64, v128) {
           local sum: i64
           local addressed: i32
           i64.const 7
         outer(i64):
           local.get n local.set addressed
         inner(i64):
           local.get sum call small i64.add
           i32.const 1 call_indirect (i64) -> i64, t
           local.get v local.get v i32x4.add local.set v
           local.get a local.get a f64.mul local.set a
           local.addr addressed i32.load 0 i32.const 1 i32.sub local.tee addressed br_if inner
           local.get n i32.const 1 i32.sub local.tee n br_if outer
           local.set sum
           local.get n local.get a local.get v return_call f
         }",
    );
    let func = module.n_funcs() - 1;
    assert_eq!(module.body(func).unwrap().loops().len(), 2);
    let body = module.body(func).unwrap();
    let insts = body.blocks.iter().flat_map(|block| module.insts(func, block));
    let call = insts.map(|(at, inst)| (at, inst.op)).find(|it| it.1 == Op::CallIndirect);
    let calls = [LikelyCall { offset: call.unwrap().0, callees: vec![0, 1], leaves: true }];
    for options in all_options().into_iter().chain(all_options_without_signals()) {
        let about = describe(&options);
        let mut compiler = Compiler::new(options);
        for loops in [&[][..], &[0], &[1], &[0, 1], &[1, 0]] {
            let body = module.body(func).unwrap();
            let is_entered = |block: &u32| {
                loops.iter().any(|&number: &u32| body.loops()[number as usize].start == *block)
            };
            let others: Vec<u32> =
                (1..body.blocks.len() as u32).filter(|block| !is_entered(block)).collect();
            let exits = [(&[][..], false), (&others, false), (&[], true), (&others, true)];
            for (blocks, has_calls) in exits {
                let calls = calls.iter().filter(|_| has_calls).cloned().collect();
                let of_func = &FuncExits { blocks: blocks.to_vec(), calls };
                let version = Arc::new(CodeVersion::new(Part::Func(func), 0, 1));
                let code = Some(LeftCode { interpreter: Some(16), version: &version });
                let exits = FormExits { of_func, bodies: None, code };
                let origin = Origin::Bytecode { func, loops, exits };
                let compiled = compiler.compile_at(&module, origin, share(&module, func));
                let compiled = compiled.unwrap_or_else(|error| panic!("{error}\n{about}"));
                assert!(!compiled.code.bytes.is_empty(), "{about}");
                // The call is in a block that is an exit unless the function or the loop is entered there.
                let has_exits = !blocks.is_empty() || has_calls;
                assert_eq!(compiled.exits.is_some(), has_exits, "{about}");
                assert_eq!(compiled.code.has_addresses, has_exits, "{about}");
            }
        }
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
        let function = form(&mut compiler, module, func);
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
            // What is left is the area for the results of calls, and root cells.
            let areas = usize::from(["calls_many", "roots"].contains(&&*function.name));
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
    // The loop tests in its middle, so it is not rotated.
    let module = module(
        "memory m 1
         func leave_if(n: i64) -> i64 {
         head:
           i32.const 0 i32.const 1 i32.const 2 memory.fill
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

#[test]
fn functions_that_call_themselves_need_no_table_and_can_be_placed_anywhere() {
    let module = module(
        "func f(n: i32) -> i32 {
           local.get n i32.eqz br_if end
           local.get n i32.const 1 i32.sub call f local.get n i32.mul return
           end: i32.const 1 return }
         func g(n: i32) -> i32 {
           local.get n i32.eqz br_if end
           local.get n i32.const 1 i32.sub return_call g
           end: i32.const 1 return }",
    );
    for target in TARGETS {
        for loads_entries in [false, true] {
            let mut options = options(target, SlotMode::Ssa);
            options.passes.switch("inline", false);
            options.lower.loads_entries = loads_entries;
            options.keep_clif = true;
            for compiled in compile_all(&module, options) {
                let clif = compiled.clif.as_ref().unwrap();
                assert!(clif.contains("call fn0"), "{clif}");
                assert!(compiled.code.is_kept_as_it_is());
            }
        }
    }
}

/// Otherwise a loop that begins before its callee is compiled would go to the interpreter as long as it runs.
#[test]
fn loops_look_for_the_code_of_a_callee_each_time() {
    let module = module(
        "func callee() { return }
         func caller(n: i32) {
           again: call callee
           local.get n i32.const 1 i32.sub local.tee n br_if again return }",
    );
    for target in TARGETS {
        let mut options = options(target, SlotMode::Ssa);
        options.passes.switch("inline", false);
        options.lower.loads_entries = true;
        options.keep_clif = true;
        let clif = compile_all(&module, options)[1].clif.clone().unwrap();
        let (_, call) = clif.split_once("call_indirect ").expect("it calls by an address");
        let callee = call.split([',', '(']).nth(1).expect("the address").trim();
        let load = format!("{callee} = load.i64 ");
        let definition = clif.lines().find(|line| line.contains(&load)).expect("it is loaded");
        assert!(!definition.contains("readonly"), "{definition}");
    }
}
