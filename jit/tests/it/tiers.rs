//! Programs that are interpreted at first, and go on in native code.

use slotvm::{
    Config, Engine, Instance, Linker, Module, Store, Tier, TierCompilation, TierThresholds,
};

/// An engine that makes native code at once when these thresholds are reached.
fn engine(calls: u32, rounds: u32, configure: impl FnOnce(&mut Config)) -> Engine {
    let mut config = Config::new();
    config.tier(Tier::Auto).tier_thresholds(Some(TierThresholds { calls, rounds }));
    config.tier_compilation(TierCompilation::Synchronous);
    configure(&mut config);
    Engine::new(&config).unwrap()
}

fn instance(engine: &Engine, source: &str) -> (Store<()>, Instance) {
    let module = Module::from_text(engine, source).unwrap();
    let mut store = Store::new(engine, ());
    let instance = Linker::new(engine).instantiate(&mut store, &module).unwrap();
    (store, instance)
}

/// Two functions that call each other, so often that either can be native while the other is not.
const EVEN_ODD: &str = r#"
    export "even" func even
    func even(n: i64) -> i64 {
        local.get n
        i64.eqz
        br_if yes
        local.get n
        i64.const 1
        i64.sub
        call odd
        return
      yes:
        i64.const 1
        return
    }
    func odd(n: i64) -> i64 {
        local.get n
        i64.eqz
        br_if no
        local.get n
        i64.const 1
        i64.sub
        call even
        return
      no:
        i64.const 0
        return
    }"#;

#[test]
fn calls_lead_from_each_tier_to_each() {
    for calls in [1, 2, 3, 7, 50, 1000] {
        let engine = engine(calls, 1, |config| {
            config.passes("-inline".parse().unwrap());
        });
        let (mut store, instance) = instance(&engine, EVEN_ODD);
        let even = instance.get_typed_func::<i64, i64>(&store, "even").unwrap();
        for n in 0..200 {
            assert_eq!(even.call(&mut store, n).unwrap(), i64::from(n % 2 == 0), "{calls} {n}");
        }
    }
}

/// Sums up to `n`, and what another sum makes of each step, in nested loops.
const SUMS: &str = r#"
    export "sum" func sum
    func sum(n: i64) -> i64 {
        local i: i64
        local j: i64
        local total: i64
      outer:
        local.get i
        local.get n
        i64.ge_s
        br_if done
        i64.const 0
        local.set j
      inner:
        local.get total
        local.get j
        i64.add
        local.set total
        local.get j
        i64.const 1
        i64.add
        local.tee j
        local.get i
        i64.le_s
        br_if inner
        local.get i
        i64.const 1
        i64.add
        local.set i
        br outer
      done:
        local.get total
        return
    }"#;

#[test]
fn loops_go_on_in_native_code() {
    for rounds in [1, 2, 3, 7, 50, 1000] {
        let engine = engine(1000, rounds, |_| ());
        let (mut store, instance) = instance(&engine, SUMS);
        let sum = instance.get_typed_func::<i64, i64>(&store, "sum").unwrap();
        let expected: i64 = (0..100).map(|i| i * (i + 1) / 2).sum();
        assert_eq!(sum.call(&mut store, 100).unwrap(), expected);
    }
}
