//! Instances that share, imports that do not fit, and what belongs together.

use std::panic::{AssertUnwindSafe, catch_unwind};

use slotvm::{
    Caller, Config, Engine, Error, Extern, Global, GlobalType, Instance, LinkError, Linker, Memory,
    MemoryType, Module, Store, Table, TableType, Tier, Trap, TrapCode, UnknownImportError, Val,
    ValType,
};

use crate::support::{for_all, instance, module};

const COUNTER: &str = r#"
    memory m 1
    global n: mut i64 = i64.const 0
    export "bump" func bump
    export "n" global n
    export "m" memory m
    func bump(by: i64) -> i64 {
      global.get n local.get by i64.add global.set n
      i32.const 0 global.get n i64.store
      global.get n return
    }"#;

#[test]
fn instances_of_a_module_have_state_of_their_own() {
    for_all(|engine| {
        let module = module(engine, COUNTER);
        let mut store = Store::new(engine, ());
        let make = |store: &mut Store<()>| Instance::new(store, &module, &[]).unwrap();
        let (a, b) = (make(&mut store), make(&mut store));
        let bump = |instance: &Instance, store: &mut Store<()>, by| {
            instance.get_typed_func::<i64, i64>(&*store, "bump").unwrap().call(store, by).unwrap()
        };
        assert_eq!(bump(&a, &mut store, 5), 5);
        assert_eq!(bump(&b, &mut store, 7), 7);
        assert_eq!(bump(&a, &mut store, 1), 6);
        assert_eq!(a.get_global(&store, "n").unwrap().get(&store).unwrap_i64(), 6);
        assert_eq!(b.get_memory(&store, "m").unwrap().data(&store)[0], 7);
    });
}

/// A start function that fails has run, with whatever the host has failed.
#[test]
fn the_start_function_runs_once_whatever_the_host_fails_with() {
    let source = r#"
        import "env" "fail" func fail()
        memory m 1
        start s
        func s() { call fail return }"#;
    let errors: [fn() -> Error; 9] = [
        || Error::AddressSpace { needed: 1, found: 0 },
        || Error::OutOfMemory { what: "a linear memory", bytes: 1 },
        || Error::Limit { name: "memory_pages_max", max: 0, wanted: 1 },
        || Error::Refused { what: "a memory", wanted: 1, unit: "bytes" },
        || Error::Segment { code: TrapCode::MemoryOutOfBounds, kind: "data", index: 0 },
        || LinkError::Count { expected: 0, found: 1 }.into(),
        || Trap::new(TrapCode::StackOverflow, []).into(),
        || Error::Usage("wrong".to_owned()),
        || Error::compile("too large"),
    ];
    for_all(|engine| {
        for error in errors {
            let mut linker = Linker::<u32>::new(engine);
            let fail = move |mut caller: Caller<'_, u32>| -> Result<(), Error> {
                *caller.data_mut() += 1;
                Err(error())
            };
            linker.func_wrap("env", "fail", fail).unwrap();
            let mut store = Store::new(engine, 0);
            let found = linker.instantiate(&mut store, &module(engine, source)).unwrap_err();
            assert_eq!(*store.data(), 1, "{found}");
            let found = found.to_string();
            assert_eq!(found.lines().next(), error().to_string().lines().next());
        }
    });
}

#[test]
fn instances_call_each_other() {
    let user = r#"
        import "counter" "bump" func bump(i64) -> i64
        import "counter" "n" global n mut i64
        import "counter" "m" memory m 1
        export "twice" func twice
        table t funcref 1
        elem e t at i32.const 0 func bump
        func twice(by: i64) -> (i64, i64, i64) {
          local.get by call bump drop
          local.get by i32.const 0 call_indirect (i64) -> i64, t
          global.get n
          i32.const 0 i64.load
          return
        }"#;
    for_all(|engine| {
        let mut store = Store::new(engine, ());
        let mut linker = Linker::new(engine);
        let counter = linker.instantiate(&mut store, &module(engine, COUNTER)).unwrap();
        linker.instance(&store, "counter", counter).unwrap();
        let user = linker.instantiate(&mut store, &module(engine, user)).unwrap();
        let twice = user.get_typed_func::<i64, (i64, i64, i64)>(&store, "twice").unwrap();
        assert_eq!(twice.call(&mut store, 21).unwrap(), (42, 42, 42));
        let names: Vec<String> =
            counter.exports(&store).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["bump", "n", "m"]);
    });
}

#[test]
fn what_the_host_makes_can_be_imported() {
    let source = r#"
        import "env" "m" memory m 1
        import "env" "g" global g mut f64
        import "env" "t" table t externref 2
        export "run" func run
        func run() -> (i32, f64, i32) {
          i32.const 4 i32.load_indexed_at
          return
        }"#
    .replace(
        "i32.const 4 i32.load_indexed_at",
        "i32.const 4 i32.const 1 i32.load_indexed 4
         global.get g f64.const 2.0 f64.mul global.set g global.get g
         i32.const 1 table.get t ref.is_null",
    );
    for_all(|engine| {
        let mut store = Store::new(engine, ());
        let memory = Memory::new(&mut store, MemoryType { min: 1, max: Some(2) }).unwrap();
        memory.write(&mut store, 8, &[1, 2, 0, 0]).unwrap();
        memory.data_mut(&mut store)[9] = 1;
        let ty = GlobalType { ty: ValType::F64, mutable: true };
        let global = Global::new(&mut store, ty, Val::from(1.25)).unwrap();
        let ty = TableType { elem: ValType::ExternRef, min: 1, max: None };
        let table = Table::new(&mut store, ty, Val::ExternRef(None)).unwrap();
        assert_eq!(table.grow(&mut store, 1, Val::ExternRef(None)).unwrap(), 1);
        let mut linker = Linker::new(engine);
        linker.define(&store, "env", "m", memory).unwrap();
        linker.define(&store, "env", "g", global).unwrap();
        linker.define(&store, "env", "t", table).unwrap();
        let instance = linker.instantiate(&mut store, &module(engine, &source)).unwrap();
        let run = instance.get_typed_func::<(), (i32, f64, i32)>(&store, "run").unwrap();
        assert_eq!(run.call(&mut store, ()).unwrap(), (0x101, 2.5, 1));
        assert_eq!(global.get(&store).unwrap_f64(), 2.5);
        assert_eq!((memory.size(&store), memory.data_size(&store)), (1, 65_536));
        assert_eq!(memory.ty(&store), MemoryType { min: 1, max: Some(2) });
        assert_eq!(table.size(&store), 2);
        assert!(table.get(&store, 2).is_none());
        assert!(table.set(&mut store, 5, Val::ExternRef(None)).is_err());
        assert!(table.set(&mut store, 0, Val::FuncRef(None)).is_err());
        assert!(global.set(&mut store, Val::I32(1)).is_err());
        assert!(memory.grow(&mut store, 2).is_err());
    });
}

#[test]
fn imports_that_do_not_fit_are_named() {
    let source = r#"import "env" "f" func f(i32) -> i64"#;
    for_all(|engine| {
        let module = module(engine, source);
        let mut store = Store::new(engine, ());
        let mut linker: Linker<()> = Linker::new(engine);
        let error = linker.instantiate(&mut store, &module).unwrap_err();
        assert!(matches!(error, Error::Link(LinkError::Missing { .. })), "{error}");
        assert_eq!(
            error.to_string(),
            "import `env` `f`: nothing has this name, expected function (i32) -> (i64)"
        );
        linker.func_wrap("env", "f", |_: i32| 0_i32).unwrap();
        let error = linker.instantiate(&mut store, &module).unwrap_err();
        let message = "import `env` `f`: expected function (i32) -> (i64), \
                       found function (i32) -> (i32)";
        assert_eq!(error.to_string(), message);
        // A name is defined once.
        assert!(linker.func_wrap("env", "f", |_: i32| 0_i64).is_err());
        assert!(linker.instantiate(&mut store, &module).is_err());
        linker.allow_shadowing(true).func_wrap("env", "f", |_: i32| 0_i64).unwrap();
        linker.instantiate(&mut store, &module).unwrap();
        let error = Instance::new(&mut store, &module, &[]).unwrap_err();
        assert!(matches!(error, Error::Link(LinkError::Count { .. })), "{error}");
    });
}

#[test]
fn exports_are_found_by_name_and_type() {
    for_all(|engine| {
        let (store, instance) = instance(engine, COUNTER);
        assert!(instance.get_func(&store, "missing").is_none());
        assert!(instance.get_func(&store, "n").is_none());
        assert!(instance.get_memory(&store, "m").is_some());
        assert!(instance.get_table(&store, "m").is_none());
        assert!(matches!(instance.get_export(&store, "n"), Some(Extern::Global(_))));
        let error = instance.get_typed_func::<i32, i64>(&store, "bump").unwrap_err();
        assert_eq!(error.to_string(), "the function has type (i64) -> (i64), not (i32) -> (i64)");
        let error = instance.get_typed_func::<i64, i64>(&store, "missing").unwrap_err();
        assert_eq!(error.to_string(), "the instance exports no function `missing`");
    });
}

#[test]
fn handles_are_of_use_in_their_own_store_only() {
    for_all(|engine| {
        let (mut store, instance_a) = instance(engine, COUNTER);
        let (mut other, instance_b) = instance(engine, COUNTER);
        let bump = instance_a.get_typed_func::<i64, i64>(&store, "bump").unwrap();
        let memory = instance_a.get_memory(&store, "m").unwrap();
        let global = instance_b.get_global(&other, "n").unwrap();
        let panics = |f: &mut dyn FnMut()| {
            let panic = catch_unwind(AssertUnwindSafe(f)).unwrap_err();
            let panic = *panic.downcast::<&str>().unwrap();
            assert_eq!(panic, "object used with the wrong store");
        };
        panics(&mut || _ = bump.call(&mut other, 1));
        panics(&mut || _ = memory.write(&mut other, 0, &[1]));
        panics(&mut || _ = global.get(&store));
        panics(&mut || _ = instance_b.get_export(&store, "n"));
        let val = Val::from(*bump.func());
        panics(&mut || _ = Global::new(&mut other, FUNC_GLOBAL, val));
        assert_eq!(bump.call(&mut store, 1).unwrap(), 1);
    });
}

const FUNC_GLOBAL: GlobalType = GlobalType { ty: ValType::FuncRef, mutable: false };

#[test]
fn modules_run_in_stores_of_their_own_engine() {
    let interpreter = || Engine::new(Config::new().tier(Tier::Interpreter)).unwrap();
    let module = module(&interpreter(), COUNTER);
    let mut store = Store::new(&interpreter(), ());
    let error = Instance::new(&mut store, &module, &[]).unwrap_err();
    assert_eq!(error.to_string(), "the module and the store belong to different engines");
    let mut store = Store::new(module.engine(), ());
    Instance::new(&mut store, &module, &[]).unwrap();
}

#[test]
fn a_module_runs_in_many_threads_at_once() {
    let source = r#"
        export "work" func work
        func work(n: i64) -> i64 {
          local sum: i64
        next:
          local.get n i64.eqz br_if done
          local.get sum local.get n i64.add local.set sum
          local.get n i64.const 1 i64.sub local.set n
          br next
        done:
          i64.const 1 local.get sum i64.const 500500 i64.sub i64.div_s
          return
        }"#;
    for_all(|engine| {
        let module = module(engine, source);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for i in 0..50 {
                        let mut store = Store::new(engine, i);
                        let instance = Instance::new(&mut store, &module, &[]).unwrap();
                        let work = instance.get_typed_func::<i64, i64>(&store, "work").unwrap();
                        assert_eq!(work.call(&mut store, 999).unwrap(), 0);
                        assert!(work.call(&mut store, 1000).is_err());
                    }
                });
            }
        });
    });
}

#[test]
fn stores_keep_what_they_run() {
    for_all(|engine| {
        let mut store = Store::new(engine, ());
        let instance = Instance::new(&mut store, &module(engine, COUNTER), &[]).unwrap();
        let engine = engine.clone();
        // The module is gone, others come and go; stores move to other threads.
        let handle = std::thread::spawn(move || {
            drop(module(&engine, COUNTER));
            drop(engine);
            let bump = instance.get_typed_func::<i64, i64>(&store, "bump").unwrap();
            bump.call(&mut store, 3).unwrap()
        });
        assert_eq!(handle.join().unwrap(), 3);
    });
}

#[test]
fn start_functions_run_and_may_fail() {
    for_all(|engine| {
        let source = r#"
            global g: mut i32 = i32.const 1
            export "g" global g
            start init
            func init() { global.get g i32.const 41 i32.add global.set g return }"#;
        let (store, made) = instance(engine, source);
        assert_eq!(made.get_global(&store, "g").unwrap().get(&store).unwrap_i32(), 42);
        let module = module(engine, "start bad func bad() { unreachable }");
        let mut store = Store::new(engine, ());
        let error = Instance::new(&mut store, &module, &[]).unwrap_err();
        assert_eq!(error.trap_code(), Some(slotvm::TrapCode::Unreachable));
    });
}

#[test]
fn modules_come_from_binary_and_from_text() {
    for_all(|engine| {
        let parsed = slotvm_bytecode::text::parse(COUNTER).unwrap();
        let bytes = slotvm_bytecode::encode(&parsed);
        for module in [
            Module::new(engine, &bytes).unwrap(),
            Module::new(engine, COUNTER).unwrap(),
            Module::from_verified(engine, slotvm_bytecode::verify(parsed).unwrap()).unwrap(),
        ] {
            assert_eq!(module.exports().len(), 3);
            assert_eq!(module.imports().len(), 0);
            assert_eq!(module.name(), None);
            let mut store = Store::new(engine, ());
            Instance::new(&mut store, &module, &[]).unwrap();
        }
        let error = Module::new(engine, &bytes[..bytes.len() - 1]).unwrap_err();
        assert!(matches!(error, Error::Decode(_)), "{error}");
        assert!(matches!(Module::new(engine, b"").unwrap_err(), Error::Decode(_)));
        assert!(matches!(Module::new(engine, "func").unwrap_err(), Error::Parse(_)));
        let error = Module::new(engine, "func f() -> i32 { return }").unwrap_err();
        assert!(matches!(error, Error::Verify(_)), "{error}");
    });
}

#[test]
fn functions_stand_in_for_unknown_imports() {
    const SOURCE: &str = r#"
        import "a" "known" func known() -> i32
        import "a" "unknown" func unknown(i64) -> (i32, i64, f64, externref)
        import "b" "known" func other() -> i32
        export "known" func call_known
        export "unknown" func call_unknown
        func call_known() -> i32 { call known return }
        func call_unknown() -> (i32, i64, f64, externref) { i64.const 1 call unknown return }"#;
    for_all(|engine| {
        let module = module(engine, SOURCE);
        let mut linker = Linker::new(engine);
        linker.func_wrap("a", "known", || 5).unwrap();
        let run = |linker: &Linker<()>, name: &str| {
            let mut store = Store::new(engine, ());
            let instance = linker.instantiate(&mut store, &module)?;
            let func = instance.get_func(&store, name).unwrap();
            let mut results = vec![Val::I32(-1); func.ty(&store).results.len()];
            func.call(&mut store, &[], &mut results)?;
            Ok::<_, Error>(results.iter().map(|val| format!("{val:?}")).collect::<Vec<_>>())
        };
        assert!(matches!(run(&linker, "known"), Err(Error::Link(LinkError::Missing { .. }))));

        let mut trapping = linker.clone();
        trapping.define_unknown_imports_as_traps(&module);
        assert_eq!(run(&trapping, "known").unwrap(), ["I32(5)"], "what is known stays");
        let error = run(&trapping, "unknown").unwrap_err();
        let expected = UnknownImportError { module: "a".to_owned(), name: "unknown".to_owned() };
        assert_eq!(UnknownImportError::of(&error), Some(&expected));
        assert_eq!(
            error.to_string(),
            "the program called its import `a` `unknown`, which is not defined"
        );

        linker.define_unknown_imports_as_default_values(&module);
        assert_eq!(run(&linker, "known").unwrap(), ["I32(5)"]);
        let zeros = [Val::I32(0), Val::I64(0), Val::F64(0), Val::ExternRef(None)];
        assert_eq!(run(&linker, "unknown").unwrap(), zeros.map(|val| format!("{val:?}")));
    });
}

#[test]
fn memories_are_not_made_up() {
    let engine = Engine::new(Config::new().tier(Tier::BEST)).unwrap();
    let module = module(&engine, "import \"a\" \"m\" memory m 1");
    let mut linker = Linker::<()>::new(&engine);
    linker.define_unknown_imports_as_traps(&module);
    linker.define_unknown_imports_as_default_values(&module);
    let error = linker.instantiate(Store::new(&engine, ()), &module).unwrap_err();
    assert!(matches!(error, Error::Link(LinkError::Missing { .. })), "{error}");
}

/// Names of imports in errors hold nothing that controls a terminal.
#[test]
fn errors_of_linking_show_no_name_as_it_is() {
    use slotvm_bytecode::printable::Printable;
    let engine = Engine::new(Config::new().tier(Tier::BEST)).unwrap();
    let name = r"\u{1b}[2J\n\u{202e}";
    let source = format!(
        "import \"{name}\" \"{name}\" func f(i32)\nexport \"run\" func run\nfunc run() {{ i32.const 0 call f return }}"
    );
    let module = Module::from_text(&engine, &source).unwrap();
    let check = |error: Error| {
        let error = error.to_string();
        assert!(error.contains(r"\u{1b}[2J\u{a}\u{202e}"), "{error}");
        assert_eq!(error, Printable(&error).to_string());
    };
    let mut store = Store::new(&engine, ());
    let mut linker = Linker::new(&engine);
    check(linker.instantiate(&mut store, &module).unwrap_err());
    linker.define_unknown_imports_as_traps(&module);
    let instance = linker.instantiate(&mut store, &module).unwrap();
    let run = instance.get_typed_func::<(), ()>(&store, "run").unwrap();
    check(run.call(&mut store, ()).unwrap_err());
    linker.allow_shadowing(true);
    linker.func_wrap("\u{1b}[2J\n\u{202e}", "\u{1b}[2J\n\u{202e}", |_: i64| {}).unwrap();
    check(linker.instantiate(&mut store, &module).unwrap_err());
}
