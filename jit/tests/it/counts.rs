//! Counters of blocks in native code, compared with the instructions that the interpreter executes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use slotvm::compiler::FunctionCounts;
use slotvm::{
    Compile, Config, Engine, Instance, Module, Op, PassSet, SlotMode, Store, Tier, TierCompilation,
    TierThresholds,
};

/// Loops, both arms of a branch, a switch, calls, and recursion.
const PROGRAM: &str = r#"
    export "main" func main
    func main(n: i64) -> i64 {
      local i: i64, sum: i64
      i64.const 5  local.set sum
    next:
      local.get i  local.get n  i64.ge_s  br_if done
      local.get i  i64.const 1  i64.and  i32.wrap_i64  br_if odd
      local.get sum  local.get i  call twice  i64.add  local.set sum
      br after
    odd:
      local.get i  i32.wrap_i64  i32.const 3  i32.and  br_table [zero one] other
    zero:
      local.get sum  i64.const 7  i64.xor  local.set sum
      br after
    one:
      local.get sum  i64.const 3  call fib  i64.add  local.set sum
      br after
    other:
      local.get sum  i64.const 1  i64.sub  local.set sum
    after:
      local.get i  i64.const 1  i64.add  local.tee i  drop
      br next
    done:
      local.get sum  return
    }
    func twice(x: i64) -> i64 { local.get x  local.get x  i64.add  return }
    func fib(n: i64) -> i64 {
      local.get n  i64.const 2  i64.lt_s  br_if base
      local.get n  i64.const 1  i64.sub  call fib
      local.get n  i64.const 2  i64.sub  call fib
      i64.add  return
    base:
      local.get n  return
    }"#;

/// Arguments of `main`.
const SIZE: i64 = 23;

/// Runs `main` twice, in two instances.
fn run(module: &Module, trace: Option<slotvm_runtime::TraceFn>) -> i64 {
    let mut results = [0; 2];
    for result in &mut results {
        let mut store = Store::new(module.engine(), ());
        store.set_trace(trace.clone());
        let instance = Instance::new(&mut store, module, &[]).unwrap();
        let main = instance.get_typed_func::<i64, i64>(&store, "main").unwrap();
        *result = main.call(&mut store, SIZE).unwrap();
    }
    assert_eq!(results[0], results[1]);
    results[0]
}

fn module(configure: impl Fn(&mut Config)) -> Module {
    let mut config = Config::new();
    config.tier(Tier::Jit).count_blocks(true);
    configure(&mut config);
    Module::from_text(&Engine::new(&config).unwrap(), PROGRAM).unwrap()
}

/// The operation at each place, by function and code offset, and the number of its executions.
type Executed = BTreeMap<(u32, u32), (Op, u64)>;

/// The instructions that the interpreter executes, and the result.
fn executed() -> (i64, Executed) {
    let counts = Arc::new(Mutex::new(BTreeMap::new()));
    let to = counts.clone();
    let trace: slotvm_runtime::TraceFn = Arc::new(move |event| {
        let mut counts = to.lock().unwrap();
        counts.entry((event.func, event.offset)).or_insert((event.inst.op, 0)).1 += 1;
    });
    let module = module(|config| {
        config.tier(Tier::Interpreter);
    });
    let result = run(&module, Some(trace));
    assert!(module.block_counts().is_empty(), "nothing is compiled");
    (result, counts.lock().unwrap().clone())
}

/// The counts by function and offset of the bytecode that blocks begin with.
fn by_place(counts: &[FunctionCounts]) -> BTreeMap<(u32, u32), u64> {
    let mut by_place = BTreeMap::new();
    for block in counts.iter().flat_map(|counts| &counts.blocks) {
        *by_place.entry((block.func, block.offset)).or_insert(0) += block.count;
    }
    by_place
}

#[test]
fn without_passes_the_blocks_are_those_of_the_bytecode() {
    let (result, executed) = executed();
    for mode in SlotMode::ALL {
        let module = module(|config| {
            config.slots(mode).passes("none".parse::<PassSet>().unwrap());
        });
        assert_eq!(run(&module, None), result, "{mode}");
        let counts = by_place(&module.block_counts());
        assert_eq!(counts.len(), 10 + 1 + 3, "{mode}: all blocks of three functions");
        for (place, count) in counts {
            let expected = executed.get(&place).map_or(0, |&(_, n)| n);
            assert_eq!(count, expected, "{mode}: the block of function {} at {}", place.0, place.1);
        }
    }
}

#[test]
fn accesses_of_slots_are_counted_as_the_lowering_makes_them() {
    let (_, executed) = executed();
    let n_of = |ops: &[Op]| {
        executed.values().filter(|(op, _)| ops.contains(op)).map(|(_, n)| n).sum::<u64>()
    };
    // Each function has one parameter, which is written when it starts, and `main` has two locals that are zeroed.
    let n_starts = (0..3).map(|func| executed[&(func, 0)].1).sum::<u64>();
    let reads = n_of(&[Op::LocalGet]);
    let writes = n_of(&[Op::LocalSet, Op::LocalTee]) + n_starts + 2 * 2;
    for mode in SlotMode::ALL {
        let module = module(|config| {
            config.slots(mode).passes("none".parse::<PassSet>().unwrap());
        });
        run(&module, None);
        let counts = module.block_counts();
        let found = (
            counts.iter().map(FunctionCounts::slot_reads).sum::<u64>(),
            counts.iter().map(FunctionCounts::slot_writes).sum::<u64>(),
        );
        let is_in_memory = !matches!(mode, SlotMode::Variables | SlotMode::Ssa);
        assert_eq!(found, if is_in_memory { (reads, writes) } else { (0, 0) }, "{mode}");
    }
}

#[test]
fn with_passes_no_block_counts_more_often_than_its_bytecode() {
    let (result, executed) = executed();
    for mode in SlotMode::ALL {
        let module = module(|config| {
            config.slots(mode);
        });
        assert_eq!(run(&module, None), result, "{mode}");
        let counts = module.block_counts();
        let entry = counts.iter().find(|counts| counts.func == 0).unwrap().blocks[0];
        assert_eq!(entry.count, 2, "{mode}: calls of main");
        let mut n = 0;
        for (place, count) in by_place(&counts) {
            let expected = executed.get(&place).map_or(0, |&(_, n)| n);
            assert!(count <= expected, "{mode}: {count} of {expected} at {place:?}");
            n += count;
        }
        assert!(n > 2 * SIZE as u64, "{mode}: the loop counts");
    }
}

#[test]
fn functions_are_counted_whenever_they_are_compiled() {
    let (result, executed) = executed();
    let none = "none".parse::<PassSet>().unwrap();
    let lazy = module(|config| {
        config.passes(none).compile(Compile::Lazy);
    });
    assert!(lazy.block_counts().is_empty());
    assert_eq!(run(&lazy, None), result);
    for (place, count) in by_place(&lazy.block_counts()) {
        assert_eq!(count, executed.get(&place).map_or(0, |&(_, n)| n), "{place:?}");
    }
    let tiered = module(|config| {
        config.tier(Tier::Auto).passes(none).tier_compilation(TierCompilation::Synchronous);
        config.tier_thresholds(Some(TierThresholds { calls: 2, rounds: 2 }));
    });
    assert_eq!(run(&tiered, None), result);
    let counts = tiered.block_counts();
    assert!(counts.iter().any(|counts| counts.func == 0 && counts.is_loop), "{counts:?}");
    assert!(counts.iter().any(|counts| counts.func == 2 && !counts.is_loop), "{counts:?}");
    for (place, count) in by_place(&counts) {
        assert!(count <= executed.get(&place).map_or(0, |&(_, n)| n), "{place:?}");
    }
}

#[test]
fn code_without_counters_is_as_ever_and_so_is_kept_code() {
    let counted = module(|_| {});
    let uncounted = module(|config| {
        config.count_blocks(false);
    });
    assert!(counted.code_bytes() > uncounted.code_bytes());
    assert!(uncounted.block_counts().is_empty());
    assert_eq!(counted.asm(0).unwrap(), uncounted.asm(0).unwrap(), "texts are of plain code");
    // An address of this process would make them differ.
    let lazily = |count: bool| {
        module(|config| {
            config.compile(Compile::Lazy).code_key(Some([7; 32])).count_blocks(count);
        })
    };
    let (counted, uncounted) = (lazily(true), lazily(false));
    run(&counted, None);
    let bytes = counted.serialize().unwrap();
    assert_eq!(bytes, uncounted.serialize().unwrap());
    let kept = Module::deserialize_authenticated(counted.engine(), bytes).unwrap();
    assert_eq!(run(&kept, None), run(&uncounted, None));
    assert!(kept.block_counts().is_empty());
}
