//! Compile bombs are compiled at an effort level that their size allows, and compute the same results as in
//! the interpreter.
//!
//! The tests do not measure time: counts determine the effort level, and the allocator counts memory. The
//! example `bombs` measures time and memory.

#[path = "campaign/allocator.rs"]
mod allocator;

use std::sync::Arc;

use slotvm::compiler::{Cause, Effort, Work};
use slotvm::{Config, Engine, Error, Instance, Module, PassSet, SlotMode, Store, Tier};
use slotvm_bytecode::{VerifiedModule, encode, verify};
use slotvm_filetests::bombs::{ALL, NAME, family};
use slotvm_filetests::campaign::cost::promised_bytes;

fn verified(name: &str, size: usize, n_funcs: usize) -> Arc<VerifiedModule> {
    let module = family(name).modules(size, n_funcs);
    Arc::new(verify(module).unwrap_or_else(|error| panic!("{name} {size}: {error}")))
}

fn compile(tier: Tier, slots: SlotMode, module: &Arc<VerifiedModule>) -> Result<Module, Error> {
    compile_with(tier, slots, PassSet::all(), module)
}

fn compile_with(
    tier: Tier,
    slots: SlotMode,
    passes: PassSet,
    module: &Arc<VerifiedModule>,
) -> Result<Module, Error> {
    // Verification of passes is off, since its memory is not part of the budget.
    let config = &mut Config::new();
    config.tier(tier).slots(slots).passes(passes);
    config.verify_passes(false).parallel_compilation(false);
    let engine = Engine::new(config);
    Module::from_verified(&engine.expect("there is native code"), module.clone())
}

/// The compile work of the bomb, or the error if it was refused.
fn work(name: &str, size: usize, slots: SlotMode, passes: PassSet) -> Result<Work, Error> {
    let module = compile_with(Tier::Jit, slots, passes, &verified(name, size, 1))?;
    // In some families, the bomb is not the first function.
    let works = module.functions().into_iter().map(|function| function.work);
    Ok(works.max_by_key(|work| work.effort).expect("there is a function"))
}

#[test]
fn bombs_are_compiled_with_less_work() {
    use Effort::{AsAsked, OnePass, SlotsInMemory, Unoptimised};
    use SlotMode::{Memory, MemoryForwarded, MemoryOpt, Ssa, Variables};
    let mut differences = Vec::new();
    for &(name, size, slots, expected) in &[
        ("nested loops x locals", 20, Ssa, AsAsked),
        ("nested loops x locals", 300, Ssa, SlotsInMemory),
        ("nested loops x locals", 300, Variables, SlotsInMemory),
        ("nested loops x locals", 1_000, MemoryOpt, Unoptimised),
        ("nested loops x locals", 1_000, MemoryForwarded, Unoptimised),
        ("ifs x locals", 300, Ssa, AsAsked),
        ("ifs x locals", 4_000, Ssa, SlotsInMemory),
        ("nested loops", 60, Ssa, AsAsked),
        ("nested loops", 2_000, Ssa, Unoptimised),
        ("nested loops", 20_000, Ssa, OnePass),
        ("nested loops", 20_000, Memory, OnePass),
        ("ifs", 1_000, Ssa, AsAsked),
        ("ifs", 180_000, Ssa, OnePass),
        ("blocks", 1_000_000, Ssa, OnePass),
        ("switch", 100_000, Ssa, OnePass),
        ("switch x locals", 100_000, Ssa, SlotsInMemory),
        ("switch x locals", 100_000, Variables, SlotsInMemory),
        ("calls x locals", 4_000, Ssa, AsAsked),
        ("loop x locals", 4_000, Ssa, SlotsInMemory),
        ("edges back", 20_000, Ssa, OnePass),
        ("irreducible ladder", 1_200, Ssa, OnePass),
        ("irreducible ladder", 1_200, Memory, OnePass),
        ("pile of loads", 300, Ssa, AsAsked),
        ("pile of loads", 20_000, Ssa, OnePass),
        ("pile of loads", 20_000, Memory, OnePass),
        ("sum of loads", 300, Ssa, AsAsked),
        ("sum of loads", 20_000, Ssa, Unoptimised),
        ("late sum", 4_000, Ssa, Unoptimised),
        ("common values", 300, Ssa, AsAsked),
        ("common values", 8_000, Ssa, Unoptimised),
        ("targets", 100_000, Ssa, AsAsked),
        ("targets", 300_000, Ssa, OnePass),
    ] {
        match work(name, size, slots, PassSet::none()) {
            Ok(work) if work.effort == expected => {
                assert_eq!(work.cause.is_some(), expected != AsAsked, "{work:?}");
            }
            other => differences.push(format!("{name} {size} {slots}: {other:?}")),
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Of some bombs, passes leave little.
#[test]
fn passes_defuse_bombs() {
    for (name, size) in
        [("ifs", 180_000), ("blocks", 1_000_000), ("common values", 8_000), ("targets", 300_000)]
    {
        let effort =
            |passes| work(name, size, SlotMode::Ssa, passes).map(|work| work.effort).unwrap();
        assert_ne!(effort(PassSet::none()), Effort::AsAsked, "{name}");
        assert_eq!(effort(PassSet::all()), Effort::AsAsked, "{name}");
    }
}

#[test]
fn what_can_be_compiled_in_no_way_is_refused() {
    for name in ["wide calls", "wide returns"] {
        let error = work(name, 4_000, SlotMode::Ssa, PassSet::all()).unwrap_err().to_string();
        assert!(error.contains("cannot be compiled"), "{error}");
        assert!(error.contains(Cause::WideOperands.message()), "{error}");
    }
}

/// The effort level depends on other functions of the module only by their size.
#[test]
fn the_way_does_not_depend_on_the_order_of_functions() {
    let module = verified("nested loops x locals", 60, 30);
    let compiled = compile(Tier::Jit, SlotMode::Ssa, &module).unwrap();
    let first = compiled.functions()[0].work;
    assert!(compiled.functions().iter().all(|function| function.work == first));
}

/// Polls have blocks of their own, one for each loop.
#[test]
fn polls_and_fuel_count() {
    let counts = |config: &mut Config| {
        let engine = Engine::new(config.tier(Tier::Jit)).expect("there is native code");
        let module = Module::from_verified(&engine, verified("nested loops", 60, 1));
        module.expect("it compiles").functions()[0].work.counts
    };
    let plain = counts(&mut Config::new());
    let polled = counts(Config::new().tier(Tier::BEST).epoch_interruption(true));
    let metered = counts(Config::new().tier(Tier::BEST).consume_fuel(true));
    assert!(polled.n_blocks >= plain.n_blocks + 60, "{polled:?} {plain:?}");
    assert!(polled.n_edges >= plain.n_edges + 60, "{polled:?} {plain:?}");
    assert!(metered.n_insts >= plain.n_insts + 60, "{metered:?} {plain:?}");
}

#[test]
fn bombs_compute_the_same_on_every_rung() {
    let run = |module: &Module| -> i64 {
        let mut store = Store::new(module.engine(), ());
        let instance = Instance::new(&mut store, module, &[]).expect("it imports nothing");
        let bomb = instance.get_typed_func::<i32, i64>(&store, NAME).expect("it is exported");
        bomb.call(&mut store, 3).expect("it ends")
    };
    let mut efforts = Vec::new();
    let sizes = |name| match name {
        "wide calls" | "wide returns" => vec![2],
        "irreducible ladder" | "nested loops" => vec![20, 1_200],
        _ => vec![20, 700],
    };
    for name in ALL.iter().map(|family| family.name) {
        for size in sizes(name) {
            let module = verified(name, size, 1);
            let interpreted = compile(Tier::Interpreter, SlotMode::Ssa, &module).unwrap();
            let expected = run(&interpreted);
            for slots in [SlotMode::Ssa, SlotMode::Variables] {
                let compiled = compile(Tier::Jit, slots, &module).unwrap();
                assert_eq!(run(&compiled), expected, "{name} {size} {slots}");
                efforts.extend(compiled.functions().iter().map(|function| function.work.effort));
            }
        }
    }
    for effort in Effort::ALL {
        assert!(efforts.contains(&effort), "no bomb is compiled at the effort level `{effort}`");
    }
}

/// Bombs of one opcode or of one rule of the optimiser.
#[test]
fn costly_opcodes_take_the_memory_that_is_promised() {
    use Effort::{AsAsked, OnePass, Unoptimised};
    check_memory(&[
        ("rotations", 300, 1, Some((AsAsked, None))),
        ("rotations", 75_000, 1, Some((OnePass, Some(Cause::Rewriting)))),
        ("rotations", 8_000, 5, Some((Unoptimised, Some(Cause::Rewriting)))),
        ("sums with constants", 300, 1, Some((AsAsked, None))),
        ("sums with constants", 30_000, 1, Some((Unoptimised, Some(Cause::Rewriting)))),
        ("saturating lanes", 300, 1, Some((AsAsked, None))),
        ("saturating lanes", 20_000, 1, Some((OnePass, Some(Cause::Code)))),
        ("calls by table", 300, 1, Some((AsAsked, None))),
        ("calls by table", 15_000, 1, Some((OnePass, Some(Cause::Code)))),
    ]);
}

/// Bombs of one opcode in modules of a megabyte.
#[test]
fn costly_opcodes_in_large_modules_take_the_memory_that_is_promised() {
    use Effort::{AsAsked, Unoptimised};
    if std::env::var_os("SLOTVM_FULL").is_none() {
        return;
    }
    check_memory(&[
        ("rotations", 37_500, 14, Some((Unoptimised, Some(Cause::Rewriting)))),
        ("sums with constants", 25_000, 14, Some((Unoptimised, Some(Cause::Rewriting)))),
        ("saturating lanes", 500_000, 1, None),
        ("saturating lanes", 36_000, 14, None),
        ("calls by table", 15_000, 14, Some((AsAsked, None))),
    ]);
}

/// The effort level of a bomb and its cause, or `None` if it is refused.
type Outcome = Option<(Effort, Option<Cause>)>;

/// Compiles modules with a number of bombs of a size, and compares the peak memory with the limit in
/// `SECURITY.md`. Checks the effort level and its cause, or that the module is refused.
fn check_memory(cases: &[(&str, usize, usize, Outcome)]) {
    let mut differences = Vec::new();
    for &(name, size, n_funcs, expected) in cases {
        let module = verified(name, size, n_funcs);
        // Known bombs must stay within half of the promise.
        let bytes_max = promised_bytes(encode(module.module()).len()) / 2;
        (allocator::METER.reset)();
        let compiled = compile(Tier::Jit, SlotMode::Ssa, &module);
        let bytes = (allocator::METER.peak)();
        let work = compiled.ok().map(|module| {
            let works = module.functions().into_iter().map(|function| function.work);
            let work = works.max_by_key(|work| work.effort).expect("there is a function");
            (work.effort, work.cause)
        });
        let line = format!("{n_funcs} x {name} {size}: {bytes} of {bytes_max} bytes, {work:?}");
        println!("{line}");
        if bytes > bytes_max || work != expected {
            differences.push(line);
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
