//! Compilations that fail: named, counted, remembered, and without effect on what programs do.

use std::fmt::Write as _;
use std::thread;

use slotvm::{
    CompileFailure, CompileStats, Config, Engine, Instance, Module, Store, Tier, TierCompilation,
    TierThresholds, TypedFunc,
};

fn engine(compilation: TierCompilation, calls: u32, rounds: u32) -> Engine {
    let mut config = Config::new();
    config.tier(Tier::Auto).tier_thresholds(Some(TierThresholds { calls, rounds }));
    Engine::new(config.tier_compilation(compilation)).unwrap()
}

/// `run` in a new store.
fn instantiate(module: &Module) -> (Store<()>, TypedFunc<i64, i64>) {
    let mut store = Store::new(module.engine(), ());
    let instance = Instance::new(&mut store, module, &[]).unwrap();
    let run = instance.get_typed_func(&store, "run").unwrap();
    (store, run)
}

fn run(module: &Module, n: i64) -> i64 {
    let (mut store, run) = instantiate(module);
    run.call(&mut store, n).unwrap()
}

fn expected(source: &str, n: i64) -> i64 {
    let engine = Engine::new(Config::new().tier(Tier::Interpreter)).unwrap();
    let module = Module::from_text(&engine, source).unwrap();
    let result = run(&module, n);
    assert_eq!(module.compile_stats(), CompileStats::default());
    result
}

/// Calls `run` in one store, which goes on with it, until the statistics are as they should be.
fn run_until(module: &Module, n: i64, expected: i64, is_done: impl Fn(&CompileStats) -> bool) {
    let (mut store, run) = instantiate(module);
    for _ in 0..100_000 {
        assert_eq!(run.call(&mut store, n).unwrap(), expected);
        if is_done(&module.compile_stats()) {
            return;
        }
        thread::yield_now();
    }
    panic!("there is still no code: {:?}", module.compile_stats());
}

/// Loops with two operands below, the upper one an `i64`. A vector takes two cells, so there it lies one cell higher.
const LOOPS: &str = r#"
    export "run" func run
    func run(n: i64) -> i64 {
        local i: i64
        local t: i64
        local.get n  local.set i
        i64.const 1  i64.const 2
      first (i64, i64):
        i64.const 3  i64.mul
        local.get i  i64.const 1  i64.sub  local.tee i  i64.eqz  i32.eqz  br_if first
        i64.add  local.set t
        local.get n  local.set i
        v128.const i64x2 5 6
        local.get t
      second (v128, i64):
        i64.const 7  i64.add
        local.get i  i64.const 1  i64.sub  local.tee i  i64.eqz  i32.eqz  br_if second
        local.set t
        i64x2.extract_lane 1
        local.get t  i64.xor
        return
    }"#;

#[test]
fn loops_whose_operands_lie_in_different_cells_are_compiled_one_by_one() {
    let n = 1_000;
    let expected = expected(LOOPS, n);
    for compilation in [TierCompilation::Synchronous, TierCompilation::Background] {
        let engine = engine(compilation, 1_000_000, 20);
        let module = Module::from_text(&engine, LOOPS).unwrap();
        run_until(&module, n, expected, |stats| stats.compiled() == 2);
        for _ in 0..10 {
            assert_eq!(run(&module, n), expected);
        }
        let stats = module.compile_stats();
        assert_eq!(stats.compiled(), 2, "{compilation:?}");
        // The form for both is tried once.
        let failures: Vec<_> = stats.all_failures().collect();
        assert_eq!(failures, [(CompileFailure::DifferentOperands, 1)], "{compilation:?}");
        drop(module);
        assert_eq!(engine.compile_stats(), stats);
    }
}

/// Calls with a thousand arguments and results, which take more work to compile than the budget allows.
fn wide_calls(n_calls: usize) -> String {
    const N: usize = 1_000;
    let types = vec!["i64"; N].join(", ");
    let params: Vec<_> = (0..N).map(|i| format!("p{i}: i64")).collect();
    let mut source = format!("func wide({}) -> ({types}) {{\n", params.join(", "));
    (0..N).for_each(|i| _ = writeln!(source, "local.get p{i}"));
    source += "return }\nexport \"run\" func run\nfunc run(n: i64) -> i64 {\n";
    source += &"local.get n\n".repeat(N);
    source += &"call wide\n".repeat(n_calls);
    source += &"i64.add\n".repeat(N - 1);
    source + "return }\n"
}

#[test]
fn what_exceeds_the_budget_is_tried_once_and_stays_interpreted() {
    let source = wide_calls(4_000);
    for compilation in [TierCompilation::Synchronous, TierCompilation::Background] {
        let engine = engine(compilation, 1, 1);
        let module = Module::from_text(&engine, &source).unwrap();
        run_until(&module, 3, 3_000, |stats| stats.failures(CompileFailure::Budget) > 0);
        for _ in 0..3 {
            assert_eq!(run(&module, 3), 3_000);
        }
        drop(module);
        let stats = engine.compile_stats();
        let failures: Vec<_> = stats.all_failures().collect();
        assert_eq!(failures, [(CompileFailure::Budget, 1)], "{compilation:?}: {stats:?}");
    }
}

#[test]
fn native_code_of_a_module_that_is_refused_is_counted_by_the_engine() {
    let engine = Engine::new(Config::new().tier(Tier::Jit)).unwrap();
    let error = Module::from_text(&engine, &wide_calls(4_000)).unwrap_err();
    assert!(error.to_string().contains("cannot be compiled"), "{error}");
    assert_eq!(engine.compile_stats().failures(CompileFailure::Budget), 1);
    assert_eq!(engine.compile_stats().bugs(), 0);
}
