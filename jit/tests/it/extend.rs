//! Instances that are extended while they run, in every tier.

use slotvm::{
    AsContextMut, Caller, Config, Engine, Error, Func, Instance, Limits, Linker, Module, Store,
    Table, TrapCode, Val,
};

use crate::support::kinds;

fn extend(store: &mut Store<()>, instance: Instance, source: &str) -> Result<Instance, Error> {
    let engine = store.engine().clone();
    instance.extend(store, &Module::from_text(&engine, source)?, &Linker::new(&engine))
}

fn start(engine: &Engine, source: &str) -> (Store<()>, Instance) {
    let mut store = Store::new(engine, ());
    let module = Module::from_text(engine, source).unwrap();
    let instance = Linker::new(engine).instantiate(&mut store, &module).unwrap();
    (store, instance)
}

fn call(store: &mut Store<()>, instance: Instance, name: &str) -> i64 {
    let func = instance.get_typed_func::<(), i64>(&*store, name).unwrap();
    func.call(store, ()).unwrap()
}

const VARIABLE: &str = r#"
    export "x" global x
    export "step" func step
    global x: mut i64 = i64.const 0
    func step() -> i64 { global.get x i64.const 1 i64.add global.set x global.get x return }"#;

#[test]
fn lines_use_what_there_was_before_them() {
    for kind in kinds(|_| {}) {
        let (mut store, instance) = start(&kind.engine, VARIABLE);
        let lines = [
            r#"import "self" "step" func step() -> i64
               import "self" "x" global x: mut i64
               export "twice" func twice
               export "line" func line
               func twice(n: i64) -> i64 { local.get n i64.const 2 i64.mul return }
               func line() -> i64 { call step call twice global.set x global.get x return }"#,
            // The new functions replace the old ones for the lines to come.
            r#"import "self" "twice" func twice(i64) -> i64
               export "twice" func more
               export "line" func line
               func more(n: i64) -> i64 { local.get n call twice i64.const 10 i64.add return }
               func line() -> i64 { i64.const 3 call more return }"#,
            r#"import "self" "twice" func twice(i64) -> i64
               import "self" "step" func step() -> i64
               export "line" func line
               func line() -> i64 { call step call twice return }"#,
        ];
        let mut values = Vec::new();
        let mut parts = Vec::new();
        for line in lines {
            parts.push(extend(&mut store, instance, line).unwrap());
            for _ in 0..4 {
                values.push(call(&mut store, instance, "line"));
            }
        }
        let expected = [2, 6, 14, 30, 16, 16, 16, 16, 72, 74, 76, 78];
        assert_eq!(values, expected, "{kind}");
        // Each part has its own exports still.
        assert_eq!(call(&mut store, parts[1], "line"), 16, "{kind}");
        let names: Vec<_> = instance.exports(&store).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["x", "step", "line", "twice"]);
    }
}

/// A table of functions that are made when they are first called: each entry is a host function at first.
#[test]
fn functions_are_added_by_the_host_function_that_a_running_loop_calls() {
    let source = r#"
        export "table" table lazily
        export "run" func run
        export "calls" global calls
        global calls: mut i64 = i64.const 0
        table lazily funcref 8 8
        func run(n: i64) -> i64 {
          local sum: i64
        next:
          local.get n  local.get n  i32.wrap_i64  i32.const 7  i32.and
          call_indirect (i64) -> i64 lazily
          local.get sum  i64.add  local.set sum
          local.get n  i64.const 1  i64.sub  local.tee n  i64.eqz  i32.eqz  br_if next
          local.get sum  return
        }"#;
    for kind in kinds(|_| {}) {
        let (mut store, instance) = start(&kind.engine, source);
        let table = instance.get_table(&store, "table").unwrap();
        for index in 0..8 {
            let compile = move |mut caller: Caller<'_, ()>, n: i64| {
                make(&mut caller, instance, table, index, n)
            };
            let stub = Func::wrap(&mut store, compile).unwrap();
            table.set(&mut store, index.into(), Val::FuncRef(Some(stub))).unwrap();
        }
        let run = instance.get_typed_func::<i64, i64>(&store, "run").unwrap();
        let expected: i64 = (1..=100).map(|n| n * (n & 7)).sum();
        for _ in 0..3 {
            assert_eq!(run.call(&mut store, 100).unwrap(), expected, "{kind}");
        }
        // Each of the functions was added once.
        let calls = instance.get_global(&store, "calls").unwrap();
        assert_eq!(calls.get(&store).unwrap_i64(), 8, "{kind}");
    }
}

/// Adds the function of an entry, and does its work this one time.
fn make(
    caller: &mut Caller<'_, ()>,
    instance: Instance,
    table: Table,
    index: u32,
    n: i64,
) -> Result<i64, Error> {
    let source = format!(
        r#"import "self" "calls" global calls: mut i64
        export "f{index}" func f
        start count
        func count() {{ global.get calls i64.const 1 i64.add global.set calls return }}
        func f(n: i64) -> i64 {{ local.get n i64.const {index} i64.mul return }}"#
    );
    let engine = caller.engine().clone();
    let module = Module::from_text(&engine, &source)?;
    instance.extend(caller.as_context_mut(), &module, &Linker::new(&engine))?;
    let made = instance.get_typed_func::<i64, i64>(&*caller, &format!("f{index}"))?;
    let func = instance.get_func(&*caller, &format!("f{index}"));
    table.set(caller.as_context_mut(), index.into(), Val::FuncRef(func))?;
    made.call(caller.as_context_mut(), n)
}

#[test]
fn a_line_that_fails_leaves_the_exports() {
    for kind in kinds(|_| {}) {
        let (mut store, instance) = start(&kind.engine, VARIABLE);
        let missing = r#"import "self" "y" global y: mut i64"#;
        let error = extend(&mut store, instance, missing).unwrap_err();
        assert_eq!(
            error.to_string(),
            "import `self` `y`: nothing has this name, expected global mut i64",
            "{kind}"
        );
        let other = r#"import "self" "x" global x: mut i32"#;
        let error = extend(&mut store, instance, other).unwrap_err();
        assert!(matches!(error, Error::Link(_)), "{kind}: {error}");
        let trapping = r#"
            import "self" "step" func step() -> i64
            export "step" func other
            start run
            func run() { call step drop unreachable }
            func other() -> i64 { i64.const 77 return }"#;
        let error = extend(&mut store, instance, trapping).unwrap_err();
        assert_eq!(error.trap_code(), Some(TrapCode::Unreachable), "{kind}");
        assert_eq!(call(&mut store, instance, "step"), 2, "{kind}: the start function has run");
    }
}

#[test]
fn a_line_counts_as_an_instance() {
    let mut config = Config::new();
    config.limits(Limits { instances_max: 2, ..Limits::default() });
    let (mut store, instance) = start(&Engine::new(&config).unwrap(), VARIABLE);
    let line = r#"export "zero" func zero func zero() -> i64 { i64.const 0 return }"#;
    extend(&mut store, instance, line).unwrap();
    let error = extend(&mut store, instance, line).unwrap_err();
    assert_eq!(error.to_string(), "limit instances_max (2) exceeded: 3 wanted");
}

#[test]
fn other_stores_are_refused() {
    let engine = Engine::default();
    let (_store, instance) = start(&engine, VARIABLE);
    let (mut other, _) = start(&engine, VARIABLE);
    let extended = std::panic::AssertUnwindSafe(|| extend(&mut other, instance, "memory m 1"));
    assert!(std::panic::catch_unwind(extended).is_err());
}
