//! Measurements of one engine: the embedding APIs use the same names, so both sides share this text.

/// A guest program and what is done with it. Everything that is called returns what it did.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Does the thing measured `n` times.
    pub(crate) run: Box<dyn FnMut(u32)>,
    /// Does everything else that `run` does `n` times.
    pub(crate) base: Option<Box<dyn FnMut(u32)>>,
}

/// Functions that the host calls.
pub(crate) const CALLEES: &str = r#"(module
  (func (export "nothing"))
  (func (export "one") (param i32) (result i32) local.get 0)
  (func (export "three") (param i32 i64 f64) (result f64) local.get 2)
  (func (export "swap") (param i32 i64 f64) (result f64 i64 i32)
    local.get 2 local.get 1 local.get 0))"#;

/// Functions that call the host in a loop, and the loop alone.
pub(crate) const CALLERS: &str = r#"(module
  (import "host" "nothing" (func $nothing))
  (import "host" "add" (func $add (param i32 i64) (result i64)))
  (import "host" "count" (func $count (param i32) (result i32)))
  (import "host" "dynamic" (func $dynamic (param i32) (result i32)))
  (import "host" "back" (func $back (param i32) (result i32)))
  (func (export "inner") (param i32) (result i32) local.get 0)
  (func (export "loop") (param i32)
    (loop $next
      (br_if $next (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
  (func (export "nothing") (param i32)
    (loop $next
      (call $nothing)
      (br_if $next (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
  (func (export "add") (param i32)
    (loop $next
      (drop (call $add (local.get 0) (i64.const 1)))
      (br_if $next (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
  (func (export "count") (param i32)
    (loop $next
      (drop (call $count (local.get 0)))
      (br_if $next (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
  (func (export "dynamic") (param i32)
    (loop $next
      (drop (call $dynamic (local.get 0)))
      (br_if $next (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
  (func (export "back") (param i32)
    (loop $next
      (drop (call $back (local.get 0)))
      (br_if $next (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))))"#;

/// A function that calls the host in a loop, and the loop alone, in our text form: the import is a leaf.
pub(crate) const LEAF_CALLERS: &str = r#"
    import "host" "add" leaf func add(i32, i64) -> i64
    export "add" func calls
    export "loop" func rounds
    func calls(n: i32) {
      next:
        local.get n  i64.const 1  call add  drop
        local.get n  i32.const 1  i32.sub  local.tee n  br_if next
        return
    }
    func rounds(n: i32) {
      next:
        local.get n  i32.const 1  i32.sub  local.tee n  br_if next
        return
    }"#;

/// Functions that sum up a field of 64 objects again and again. `cached` compares the shape of each object with a cell, and
/// reads the field at the offset that is in another one; on a miss it calls the host. `direct` reads it at the offset that
/// all of them have, as C does.
pub(crate) const FIELDS: &str = r#"(module
  (import "host" "nothing" (func $miss))
  (memory 1)
  (global $shape (mut i64) (i64.const 7))
  (global $offset (mut i64) (i64.const 16))
  (global $sum (mut i64) (i64.const 0))
  (func (export "fill") (local i32)
    (loop $next
      (i64.store (i32.shl (local.get 0) (i32.const 6)) (i64.const 7))
      (i64.store offset=16 (i32.shl (local.get 0) (i32.const 6)) (i64.extend_i32_u (local.get 0)))
      (br_if $next (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 1))) (i32.const 64)))))
  (func (export "cached") (param i32) (local $object i32) (local $sum i64)
    (loop $next
      (local.set $object
        (i32.shl (i32.and (local.get 0) (i32.const 63)) (i32.const 6)))
      (if (i64.ne (i64.load (local.get $object)) (global.get $shape)) (then (call $miss)))
      (local.set $sum (i64.add (local.get $sum)
        (i64.load (i32.add (local.get $object) (i32.wrap_i64 (global.get $offset))))))
      (br_if $next (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (global.set $sum (local.get $sum)))
  (func (export "direct") (param i32) (local $object i32) (local $sum i64)
    (loop $next
      (local.set $object
        (i32.shl (i32.and (local.get 0) (i32.const 63)) (i32.const 6)))
      (local.set $sum (i64.add (local.get $sum) (i64.load offset=16 (local.get $object))))
      (br_if $next (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (global.set $sum (local.get $sum))))"#;

/// The frames that are below the host function which visits references.
pub(crate) const FRAMES: i32 = 1_000;

/// Functions that trap.
pub(crate) const TRAPS: &str = r#"(module
  (import "host" "fail" (func $fail))
  (memory 1)
  (func (export "load") (param i32) (result i32) (i32.load (i32.sub (i32.const -8) (local.get 0))))
  (func (export "unreachable") (param i32) (result i32) unreachable)
  (func (export "divide") (param i32) (result i32) (i32.div_s (i32.const 1) (local.get 0)))
  (func $deeper (export "overflow") (param i32) (result i32)
    (i32.add (call $deeper (local.get 0)) (i32.const 1)))
  (func $deep (export "deep") (param i32) (result i32)
    (if (result i32) (local.get 0)
      (then (i32.add (call $deep (i32.sub (local.get 0) (i32.const 1))) (i32.const 1)))
      (else unreachable)))
  (func (export "host") (param i32) (result i32) (call $fail) (local.get 0)))"#;

/// Modules to make instances of, with their names.
pub(crate) fn instances() -> Vec<(&'static str, String)> {
    let funcs = |n: u32| {
        let funcs: String = (0..n).map(|i| format!("(func (export \"f{i}\"))")).collect();
        format!("(module {funcs})")
    };
    let data = "abcdefgh".repeat(512);
    let datas: String =
        (0..16).map(|i| format!("(data (i32.const {}) \"{data}\")", i * 8192)).collect();
    let imports: String = (0..10)
        .map(|i| format!("(import \"host\" \"f{i}\" (func (param i32 i64) (result i64)))"))
        .collect();
    let mixed = format!(
        "(module {imports} (memory 1) (global (mut i32) (i32.const 1)) (table 10 funcref)
           (elem (i32.const 0) 0 1 2 3 4 5 6 7 8 9) (data (i32.const 8) \"{data}\")
           (func (export \"f\") (result i32) (i32.load (i32.const 8))))"
    );
    vec![
        ("1 function", funcs(1)),
        ("1,000 functions", funcs(1000)),
        ("memory of 1 page", "(module (memory 1))".to_owned()),
        ("memory of 100 pages", "(module (memory 100))".to_owned()),
        ("memory and 64 KiB of data", format!("(module (memory 4) {datas})")),
        ("table of 1,000 elements", "(module (table 1000 funcref))".to_owned()),
        ("10 imports, memory, table, data", mixed),
    ]
}

/// The functions below, for the engine of a crate. What the crates do not have in common is beside it:
/// `func_type`, `start_leaf`, `start_deep`, `fail` and `is_trap`.
macro_rules! side {
    ($api:ident) => {
        use std::hint::black_box;

        use $api::{Caller, Engine, Func, Instance, Linker, Module, Store, Val, ValType};

        use crate::side::{self, Case};

        fn module(engine: &Engine, text: &str) -> Module {
            Module::new(engine, wat::parse_str(text).expect("the text is right"))
                .expect("the module is right")
        }

        /// Data of the host's store.
        #[derive(Default)]
        struct Data {
            n_calls: u32,
            inner: Option<$api::TypedFunc<i32, i32>>,
        }

        fn linker(engine: &Engine) -> Linker<Data> {
            let mut linker = Linker::new(engine);
            linker.func_wrap("host", "nothing", || ()).unwrap();
            linker.func_wrap("host", "add", |a: i32, b: i64| i64::from(a) + b).unwrap();
            linker
                .func_wrap("host", "count", |mut caller: Caller<'_, Data>, a: i32| {
                    caller.data_mut().n_calls += 1;
                    a
                })
                .unwrap();
            let ty = func_type(engine, [ValType::I32], [ValType::I32]);
            linker
                .func_new("host", "dynamic", ty, |_, params, results| {
                    results[0] = Val::I32(params[0].unwrap_i32());
                    Ok(())
                })
                .unwrap();
            linker
                .func_wrap("host", "back", |mut caller: Caller<'_, Data>, a: i32| {
                    let inner = caller.data().inner.clone().expect("set before the call");
                    inner.call(&mut caller, a)
                })
                .unwrap();
            linker.func_wrap("host", "fail", fail).unwrap();
            for i in 0..10 {
                let f = move |a: i32, b: i64| i64::from(a) + b + i;
                linker.func_wrap("host", &format!("f{i}"), f).unwrap();
            }
            linker
        }

        /// The cases in their order, which is the same for all engines.
        pub(crate) fn cases() -> Vec<Case> {
            let engine = engine();
            let mut cases = Vec::new();
            calls(&engine, &mut cases);
            host_calls(&engine, &mut cases);
            fields(&engine, &mut cases);
            frames(&engine, &mut cases);
            instances(&engine, &mut cases);
            traps(&engine, &mut cases);
            cases
        }

        fn start(engine: &Engine, text: &str) -> (Store<Data>, Instance) {
            let mut store = Store::new(engine, Data::default());
            let module = module(engine, text);
            let instance = linker(engine).instantiate(&mut store, &module).unwrap();
            (store, instance)
        }

        fn calls(engine: &Engine, cases: &mut Vec<Case>) {
            let mut push = |name, run| cases.push(Case { name, run, base: None });

            let (mut store, instance) = start(engine, side::CALLEES);
            let f = instance.get_typed_func::<(), ()>(&mut store, "nothing").unwrap();
            push(
                "call: typed () -> ()",
                Box::new(move |n| {
                    for _ in 0..n {
                        f.call(&mut store, ()).unwrap();
                    }
                }),
            );

            let (mut store, instance) = start(engine, side::CALLEES);
            let f = instance.get_typed_func::<i32, i32>(&mut store, "one").unwrap();
            push(
                "call: typed i32 -> i32",
                Box::new(move |n| {
                    for i in 0..n as i32 {
                        assert_eq!(f.call(&mut store, black_box(i)).unwrap(), i);
                    }
                }),
            );

            let (mut store, instance) = start(engine, side::CALLEES);
            let f = instance.get_typed_func::<(i32, i64, f64), f64>(&mut store, "three").unwrap();
            push(
                "call: typed i32, i64, f64 -> f64",
                Box::new(move |n| {
                    for _ in 0..n {
                        assert_eq!(f.call(&mut store, black_box((1, 2, 3.0))).unwrap(), 3.0);
                    }
                }),
            );

            let (mut store, instance) = start(engine, side::CALLEES);
            let f = instance
                .get_typed_func::<(i32, i64, f64), (f64, i64, i32)>(&mut store, "swap")
                .unwrap();
            push(
                "call: typed i32, i64, f64 -> f64, i64, i32",
                Box::new(move |n| {
                    for _ in 0..n {
                        assert_eq!(
                            f.call(&mut store, black_box((1, 2, 3.0))).unwrap(),
                            (3.0, 2, 1)
                        );
                    }
                }),
            );

            let (mut store, instance) = start(engine, side::CALLEES);
            let f: Func = instance.get_func(&mut store, "three").unwrap();
            push(
                "call: dynamic i32, i64, f64 -> f64",
                Box::new(move |n| {
                    let mut results = [Val::I32(0)];
                    for _ in 0..n {
                        let params = [Val::I32(1), Val::I64(2), Val::F64(3f64.to_bits())];
                        f.call(&mut store, &black_box(params), &mut results).unwrap();
                        assert_eq!(results[0].unwrap_f64(), 3.0);
                    }
                }),
            );
        }

        fn host_calls(engine: &Engine, cases: &mut Vec<Case>) {
            let loops = |export: &str| -> Box<dyn FnMut(u32)> {
                let (mut store, instance) = start(engine, side::CALLERS);
                let inner = instance.get_typed_func::<i32, i32>(&mut store, "inner").unwrap();
                store.data_mut().inner = Some(inner);
                let f = instance.get_typed_func::<i32, ()>(&mut store, export).unwrap();
                let is_counted = export == "count";
                Box::new(move |n| {
                    store.data_mut().n_calls = 0;
                    f.call(&mut store, n as i32).unwrap();
                    assert_eq!(store.data().n_calls, if is_counted { n } else { 0 });
                })
            };
            for (name, export) in [
                ("host call: () -> ()", "nothing"),
                ("host call: i32, i64 -> i64", "add"),
                ("host call: Caller, i32 -> i32", "count"),
                ("host call: dynamic i32 -> i32", "dynamic"),
                ("host call that calls back, i32 -> i32", "back"),
            ] {
                cases.push(Case { name, run: loops(export), base: Some(loops("loop")) });
            }
            let loops = |export: &str| -> Box<dyn FnMut(u32)> {
                let (mut store, instance) = start_leaf(engine);
                let f = instance.get_typed_func::<i32, ()>(&mut store, export).unwrap();
                Box::new(move |n| f.call(&mut store, n as i32).unwrap())
            };
            let name = "host call: leaf, i32, i64 -> i64";
            cases.push(Case { name, run: loops("add"), base: Some(loops("loop")) });
        }

        fn fields(engine: &Engine, cases: &mut Vec<Case>) {
            let loops = |export: &str| -> Box<dyn FnMut(u32)> {
                let (mut store, instance) = start(engine, side::FIELDS);
                let fill = instance.get_typed_func::<(), ()>(&mut store, "fill").unwrap();
                fill.call(&mut store, ()).unwrap();
                let f = instance.get_typed_func::<i32, ()>(&mut store, export).unwrap();
                Box::new(move |n| f.call(&mut store, n as i32).unwrap())
            };
            let name = "field: a hit, less a load at a known offset";
            cases.push(Case { name, run: loops("cached"), base: Some(loops("direct")) });
        }

        fn frames(engine: &Engine, cases: &mut Vec<Case>) {
            let name = "references: visiting 1,000 frames";
            let calls = |visits| start_deep(engine, visits);
            cases.push(Case { name, run: calls(true), base: Some(calls(false)) });
        }

        fn instances(engine: &Engine, cases: &mut Vec<Case>) {
            for (name, text) in side::instances() {
                let module = module(engine, &text);
                let linker = linker(engine);
                let engine = engine.clone();
                let name = format!("store and instance: {name}").leak();
                let run = Box::new(move |n| {
                    for _ in 0..n {
                        let mut store = Store::new(&engine, Data::default());
                        black_box(linker.instantiate(&mut store, &module).unwrap());
                    }
                });
                cases.push(Case { name, run, base: None });
            }
        }

        fn traps(engine: &Engine, cases: &mut Vec<Case>) {
            for (name, export, param) in [
                ("trap: load out of bounds", "load", 0),
                ("trap: unreachable", "unreachable", 0),
                ("trap: division by zero", "divide", 0),
                ("trap: unreachable below 100 calls", "deep", 100),
                ("trap: stack overflow", "overflow", 0),
                ("error of a host function", "host", 0),
            ] {
                let (mut store, instance) = start(engine, side::TRAPS);
                let f = instance.get_typed_func::<i32, i32>(&mut store, export).unwrap();
                let traps = export != "host";
                let run = Box::new(move |n| {
                    for _ in 0..n {
                        let error = f.call(&mut store, param).unwrap_err();
                        assert_eq!(is_trap(&error), traps, "{error:?}");
                    }
                });
                cases.push(Case { name, run, base: None });
            }
        }
    };
}
