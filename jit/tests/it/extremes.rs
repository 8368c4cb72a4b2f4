//! Numbers that an embedder may set, at their ends: nothing panics, and the engines agree.

use std::time::Duration;

use slotvm::compiler::PromoteOptions;
use slotvm::{
    Compile, Config, Engine, Error, Limits, Linker, MemoryPlan, Store, StoreLimitsBuilder, Tier,
    TrapCode,
};

use crate::support::module;

/// Uses a little of everything that has a limit.
const SOURCE: &str = r#"
    import "env" "host" func host(i32) -> i32
    export "f" func f
    export "g" func g
    memory m 1 3
    table t funcref 2 5
    global n: mut i32 = i32.const 0
    elem e t at i32.const 0 func g
    data d at i32.const 8 "abcdefgh"
    start s
    func s() { i32.const 1 global.set n return }
    func g(a: i32) -> i32 { local.get a i32.const 1 i32.add return }
    func f() -> i32 {
      local i: i32
      i32.const 1 memory.grow drop
      ref.null funcref i32.const 1 table.grow t drop
      i32.const 0 i32.const 8 i32.const 8 memory.copy
    again:
      local.get i i32.const 1 i32.add local.tee i i32.const 10 i32.lt_s br_if again
      i32.const 30 i32.const 0 call_indirect (i32) -> i32, t
      call host
      local.get i i32.add
      return
    }"#;

type Data = slotvm::StoreLimits;

/// Runs the program: what it returns, or the message of what it fails with, which has no places.
fn run(engine: &Engine, prepare: &dyn Fn(&mut Store<Data>)) -> Result<i32, Error> {
    let mut linker: Linker<Data> = Linker::new(engine);
    linker.func_wrap("env", "host", |mut caller: slotvm::Caller<'_, Data>, n: i32| {
        let g = caller.get_export("g").and_then(slotvm::Extern::into_func).unwrap();
        g.typed::<i32, i32>(&caller)?.call(&mut caller, n)
    })?;
    let mut store = Store::new(engine, StoreLimitsBuilder::new().build());
    prepare(&mut store);
    let instance = linker.instantiate(&mut store, &module(engine, SOURCE))?;
    instance.get_typed_func::<(), i32>(&store, "f")?.call(&mut store, ())
}

fn outcome(result: Result<i32, Error>) -> String {
    match result {
        Ok(n) => n.to_string(),
        Err(error) => error.to_string().lines().next().unwrap().to_owned(),
    }
}

/// Runs the program in all engines; returns its result.
fn outcomes(
    what: &str,
    configure: &dyn Fn(&mut Config),
    prepare: &dyn Fn(&mut Store<Data>),
) -> Vec<String> {
    let mut outcomes = Vec::new();
    for (tier, compile, signals) in [
        (Tier::Interpreter, Compile::Eager, true),
        (Tier::BEST, Compile::Eager, true),
        (Tier::BEST, Compile::Eager, false),
        (Tier::BEST, Compile::Lazy, true),
    ] {
        let mut config = Config::new();
        config.tier(tier).compile(compile).signals_based_traps(signals);
        configure(&mut config);
        let engine = Engine::new(&config).unwrap_or_else(|error| panic!("{what}: {error}"));
        outcomes.push(outcome(run(&engine, prepare)));
    }
    outcomes
}

/// The same, where all have to agree.
fn agreed(
    what: &str,
    configure: &dyn Fn(&mut Config),
    prepare: &dyn Fn(&mut Store<Data>),
) -> String {
    let outcomes = outcomes(what, configure, prepare);
    assert!(outcomes.iter().all(|outcome| *outcome == outcomes[0]), "{what}: {outcomes:?}");
    outcomes[0].clone()
}

const NOTHING: &dyn Fn(&mut Store<Data>) = &|_| {};

/// The ends of an unsigned type.
macro_rules! ends {
    ($ty:ty) => {
        [0, 1, <$ty>::MAX - 1, <$ty>::MAX]
    };
}

macro_rules! limits {
    ($($field:ident: $ty:ty),* $(,)?) => { [$(
        (stringify!($field), ends!($ty).map(|end| Limits { $field: end, ..Limits::default() })),
    )*] };
}

#[test]
fn limits_of_a_store() {
    // There is a field in the list for each that there is.
    let Limits {
        instances_max: _,
        funcs_max: _,
        memories_max: _,
        memory_pages_max: _,
        memory_bytes_total_max: _,
        tables_max: _,
        table_elems_max: _,
        table_elems_total_max: _,
        globals_max: _,
        externs_max: _,
        host_calls_max: _,
        interp_frames_max,
        interp_cells_max,
    } = Limits::default();
    let limits = limits! {
        instances_max: u32, funcs_max: u32, memories_max: u32, memory_pages_max: u32,
        memory_bytes_total_max: u64, tables_max: u32, table_elems_max: u32,
        table_elems_total_max: u64, globals_max: u32, externs_max: u32, host_calls_max: u32,
        interp_frames_max: u32, interp_cells_max: u32,
    };
    for (field, limits) in limits {
        let mut results = Vec::new();
        for limits in limits {
            let is_interpreters = limits.interp_frames_max != interp_frames_max
                || limits.interp_cells_max != interp_cells_max;
            let configure = |config: &mut Config| _ = config.limits(limits.clone());
            if is_interpreters {
                results.push(outcomes(field, &configure, NOTHING)[0].clone());
            } else {
                results.push(agreed(field, &configure, NOTHING));
            }
        }
        let [.., before_last, last] = &results[..] else { unreachable!("four values") };
        assert_eq!([before_last, last], ["42", "42"], "{field}");
        let unused = field == "externs_max";
        assert_eq!(results[0] == "42", unused, "{field}: {}", results[0]);
    }
}

#[test]
fn address_space_of_memories() {
    let edges = [0, 1, 65_535, 65_536, 1 << 32, 1 << 47, 1 << 63, u64::MAX - 65_535];
    let edges: Vec<u64> = edges.into_iter().chain(ends!(u64)).collect();
    for &reservation_bytes in &edges {
        for guard_bytes in [0, 1, u64::MAX - 65_535, u64::MAX - 1, u64::MAX] {
            let plan = MemoryPlan { reservation_bytes, guard_bytes };
            let configure = |config: &mut Config| _ = config.memory(Some(plan));
            assert_eq!(agreed(&format!("{plan:?}"), &configure, NOTHING), "42");
        }
    }
}

#[test]
fn stacks_fuel_and_epochs() {
    let exhausted = TrapCode::StackOverflow.message();
    for (bytes, expected) in ends!(usize).into_iter().zip([exhausted, exhausted, "42", "42"]) {
        let configure = |config: &mut Config| _ = config.max_native_stack(bytes);
        assert_eq!(agreed("max_native_stack", &configure, NOTHING), expected);
    }
    for (cells, expected) in ends!(u64).into_iter().zip([exhausted, exhausted, "42", "42"]) {
        let configure = |config: &mut Config| _ = config.deterministic_stack(Some(cells));
        assert_eq!(agreed("deterministic_stack", &configure, NOTHING), expected);
    }
    let no_fuel = TrapCode::OutOfFuel.message();
    for (fuel, expected) in ends!(u64).into_iter().zip([no_fuel, no_fuel, "42", "42"]) {
        let configure = |config: &mut Config| _ = config.consume_fuel(true);
        let prepare = |store: &mut Store<Data>| store.set_fuel(fuel).unwrap();
        assert_eq!(agreed("fuel", &configure, &prepare), expected);
    }
    let interrupted = TrapCode::Interrupted.message();
    for (ticks, expected) in ends!(u64).into_iter().zip([interrupted, "42", "42", "42"]) {
        let configure = |config: &mut Config| _ = config.epoch_interruption(true);
        let prepare = |store: &mut Store<Data>| {
            store.engine().increment_epoch();
            store.set_epoch_deadline(ticks);
        };
        assert_eq!(agreed("epoch deadline", &configure, &prepare), expected);
    }
}

#[test]
fn timeouts() {
    let nanos = Duration::from_nanos;
    let interrupted = TrapCode::Interrupted.message();
    let times = [
        Duration::ZERO,
        nanos(1),
        nanos(u64::MAX - 1),
        nanos(u64::MAX),
        Duration::MAX - nanos(1),
        Duration::MAX,
    ];
    for (i, time) in times.into_iter().enumerate() {
        let by_config = |config: &mut Config| _ = config.timeout(Some(time));
        let by_store = |store: &mut Store<Data>| store.set_timeout(Some(time)).unwrap();
        let polls = |config: &mut Config| _ = config.timeout(Some(Duration::MAX));
        for found in
            [outcomes("timeout", &by_config, NOTHING), outcomes("timeout", &polls, &by_store)]
        {
            let expected: &[&str] = match i {
                0 => &[interrupted],
                // The program may be faster than its watcher.
                1 => &[interrupted, "42"],
                _ => &["42"],
            };
            assert!(found.iter().all(|o| expected.contains(&&**o)), "{time:?}: {found:?}");
        }
    }
}

#[test]
fn limiters_and_promotion() {
    for n in ends!(usize) {
        let large = n > 1;
        for (what, limits) in [
            ("memory_size", StoreLimitsBuilder::new().memory_size(n)),
            ("table_elements", StoreLimitsBuilder::new().table_elements(n)),
            ("instances", StoreLimitsBuilder::new().instances(n)),
            ("tables", StoreLimitsBuilder::new().tables(n)),
            ("memories", StoreLimitsBuilder::new().memories(n)),
        ] {
            let prepare = |store: &mut Store<Data>| {
                *store.data_mut() = limits.clone().build();
                store.limiter(|limits| limits);
            };
            let found = agreed(what, &|_| {}, &prepare);
            let is_one_enough = !matches!(what, "memory_size" | "table_elements");
            assert_eq!(found == "42", large || n == 1 && is_one_enough, "{what} {n}: {found}");
        }
        let options = PromoteOptions { phi_operands_max: n, ..PromoteOptions::default() };
        let configure = |config: &mut Config| _ = config.promotion(options);
        assert_eq!(agreed("phi_operands_max", &configure, NOTHING), "42");
    }
}
