//! Functions that take too much work to be compiled as asked, and machines without the instructions asked for.

use super::places::trap_offsets;
use super::*;
use crate::compile::budget::{n_checks_of, n_code_blocks};

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
            let is_unoptimised = compiled.work.effort != Effort::AsAsked;
            assert_eq!(is_unoptimised, expected, "{depth} {slots}");
            // Both paths know where fuel runs out.
            let blocks = module.body(0).unwrap().blocks.iter().map(|block| block.start);
            let out = trap_offsets(compiled, TrapCode::OutOfFuel);
            assert_eq!(out, blocks.collect::<Vec<_>>(), "{depth} {slots}");
        }
    }
}

/// Cranelift lists the blocks of machine code in time quadratic in the number of adjacent blocks without code.
#[test]
fn the_hottest_loop_is_looked_for_in_functions_of_few_blocks_only() {
    for (n_ifs, boundary) in [(100, 64), (10_000, 32)] {
        let mut source = String::from("func f(n: i32) {\nhead:\n");
        for i in 0..n_ifs {
            writeln!(source, "local.get n br_if b{i} nop b{i}:").unwrap();
        }
        let module = module(&(source + "local.get n br_if head return }"));
        for slots in SlotMode::ALL {
            let mut options = options(TARGETS[0], slots);
            options.passes.usual = PassSet::none();
            options.verify = false;
            let compiled = &compile_all(&module, options)[0];
            assert_eq!(compiled.code.anchor.boundary, boundary, "{n_ifs} {slots}");
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
            assert_eq!(compiled.work.effort == Effort::OnePass, expected, "{slots}");
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
        let effort = if expected { Effort::SlotsInMemory } else { Effort::AsAsked };
        assert_eq!(compiled.work.effort, effort, "{n_edges} {slots}");
        let is_in_memory = compiled.sizes.slot_bytes > 0;
        assert_eq!(is_in_memory, expected || slots.is_memory(), "{n_edges} {slots}");
    }
}

/// Passes merge and skip blocks, and the estimates of the cheaper levels are made from the slot form.
#[test]
fn blocks_that_passes_change_are_counted_by_the_slot_form() {
    // Loops that locals live through, with empty blocks in between.
    let module_of = |n: usize| {
        let mut source = String::from("func f(n: i32) -> i32 {\n");
        for i in 0..n {
            writeln!(source, "  local x{i}: i32").unwrap();
        }
        for i in 0..n {
            writeln!(source, "h{i}: local.get n br_if e{i} br s{i} e{i}: br s{i} s{i}:").unwrap();
            writeln!(source, "  local.get x{i} local.get n i32.add local.set x{i}").unwrap();
        }
        for i in (0..n).rev() {
            writeln!(source, "  local.get x{i} br_if h{i}").unwrap();
        }
        module(&(source + "  local.get x0 return }"))
    };
    let effort = |n| compile_all(&module_of(n), options(TARGETS[0], SlotMode::Ssa))[0].work.effort;
    assert_eq!(effort(20), Effort::AsAsked);
    assert!(effort(1_500) >= Effort::SlotsInMemory);
}

/// A loop of indirect calls of eight functions each, and direct calls of a small one. All locals are live across them.
fn many_calls(n_calls: usize, n_locals: usize) -> VerifiedModule {
    let mut source = String::from(
        "table t funcref 8\nelem e t at i32.const 0 func c0, c1, c2, c3, c4, c5, c6, c7\n",
    );
    for i in 0..8 {
        let body = format!("local.get a i64.const {i} i64.div_s ").repeat(20);
        writeln!(source, "func c{i}(a: i64) -> i64 {{ {body} return }}").unwrap();
    }
    source += "func small(a: i64) -> i64 { local.get a i64.const 3 i64.mul return }\n";
    source += "func f(n: i32, a: i64) -> i64 {\n";
    for i in 0..n_locals {
        writeln!(source, "  local x{i}: i64").unwrap();
    }
    source += "again:\n";
    for i in 0..n_calls {
        let local = i % n_locals;
        writeln!(source, "  local.get x{local} local.get n call_indirect (i64) -> i64, t call small local.set x{local}").unwrap();
    }
    source += "  local.get n i32.const 1 i32.sub local.tee n br_if again local.get a\n";
    for i in 0..n_locals {
        writeln!(source, "  local.get x{i} i64.add").unwrap();
    }
    module(&(source + "  return }"))
}

#[test]
fn a_function_that_indirect_calls_make_too_large_still_inlines() {
    for (n_calls, is_devirtualised) in [(20, true), (300, false)] {
        let module = many_calls(n_calls, 30);
        let f = module.n_funcs() - 1;
        let mut compiler = Compiler::new(options(TARGETS[0], SlotMode::Ssa));
        let compiled = compiler.compile(&module, f, share(&module, f)).unwrap();
        let small = f - 1;
        assert!(compiled.inlined.contains(&small), "{n_calls}: {:?}", compiled.inlined);
        assert_eq!(compiled.inlined.len() > 1, is_devirtualised, "{n_calls}");
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

/// The blocks in which code calls what stops the program are cold, and counted by their checks.
#[test]
fn the_lowering_makes_no_more_blocks_than_the_budget_counts() {
    let module = all_opcodes();
    for options in all_options_without_signals().into_iter().chain(all_options()) {
        let about = describe(&options);
        let splits = options.lower.trapping == Trapping::Calls;
        let mut compiler = Compiler::new(options);
        let (mut n_close, mut n_functions) = (0, 0);
        for func in module.n_imported_funcs()..module.n_funcs() {
            let function = form(&mut compiler, &module, func);
            let lower = compiler.options.lower.clone();
            compiler.lower(&module, &function, &find_loops(&function), &lower);
            let layout = &compiler.context.func.layout;
            let n_cold = layout.blocks().filter(|&block| layout.is_cold(block)).count() as u64;
            let n_blocks = layout.blocks().count() as u64 - n_cold;
            let of_block = |block| n_code_blocks(&function, block, splits);
            // Some code begins with a block of its own.
            let counted = 1 + function.blocks().map(of_block).sum::<u64>();
            let n_checks: u64 = function.blocks().map(|block| n_checks_of(&function, block)).sum();
            // Another one is that of the check of the stack.
            let n_others = n_polls(&function) + u64::from(splits);
            assert!(n_blocks <= counted, "{}: {n_blocks} of {counted}, {about}", function.name);
            let (n_all, all) = (n_blocks + n_cold, counted + n_checks + n_others);
            assert!(n_all <= all, "{}: {n_all} of {all}, {about}", function.name);
            n_close += usize::from(n_blocks + 1 >= counted);
            n_functions += 1;
        }
        // The bound of most functions is close.
        assert!(n_close * 3 > n_functions * 2, "{n_close} of {n_functions}, {about}");
    }
}

fn n_polls(function: &Function) -> u64 {
    let insts = function.blocks().flat_map(|block| function.insts(block));
    insts.filter(|&&inst| function.opcode(inst) == Opcode::Ir(IrOp::Poll)).count() as u64
}
