//! The parts of the embedding API that other tests do not pass through.

use std::error::Error as _;

use slotvm::{
    Caller, Config, Engine, Error, ExternType, FuncType, GlobalType, LinkError, Linker, Memory,
    MemoryType, Module, Store, TableType, Tier, Val, ValType,
};

use crate::support::{for_all, module};

const ENTITIES: &str = r#"
    import "env" "print" func print(i64)
    import "env" "base" global base: i32
    import "env" "memory" memory m 1 2
    table t funcref 3
    global g: mut f64 = f64.const 1
    export "twice" func twice
    export "t" table t
    export "g" global g
    export "m" memory m
    func twice(n: i32) -> (i32, i32) { local.get n  local.get n  return }"#;

#[test]
fn modules_tell_what_they_import_and_export() {
    for_all(|engine| {
        let module = module(engine, ENTITIES);
        let imports: Vec<_> = module.imports().collect();
        let names: Vec<_> = imports.iter().map(|i| (i.module(), i.name())).collect();
        assert_eq!(names, [("env", "print"), ("env", "base"), ("env", "memory")]);
        let print = FuncType { params: vec![ValType::I64], results: vec![] };
        let memory = MemoryType { min: 1, max: Some(2) };
        assert_eq!(imports[0].ty().func(), Some(&print));
        assert_eq!(imports[0].ty().memory(), None);
        let base = GlobalType { ty: ValType::I32, mutable: false };
        assert_eq!(imports[1].ty().global(), Some(&base));
        assert_eq!(imports[2].ty().memory(), Some(&memory));

        let names: Vec<_> = module.exports().map(|export| export.name()).collect();
        assert_eq!(names, ["twice", "t", "g", "m"]);
        let twice = FuncType { params: vec![ValType::I32], results: vec![ValType::I32; 2] };
        assert_eq!(module.get_export("twice"), Some(ExternType::Func(twice)));
        let table = TableType { elem: ValType::FuncRef, min: 3, max: None };
        assert_eq!(module.get_export("t").unwrap().table(), Some(&table));
        let global = GlobalType { ty: ValType::F64, mutable: true };
        assert_eq!(module.get_export("g"), Some(ExternType::Global(global)));
        assert_eq!(module.get_export("m"), Some(ExternType::Memory(memory)));
        assert_eq!(module.get_export("base"), None);
    });
}

#[test]
fn entities_of_a_store_have_the_types_of_the_module() {
    for_all(|engine| {
        let source = r#"
            memory m 1
            table t externref 3 5
            global g: mut i64 = i64.const 1
            export "f" func f
            export "t" table t
            export "g" global g
            export "m" memory m
            func f(x: f32) { return }"#;
        let module = module(engine, source);
        let mut store = Store::new(engine, ());
        let instance = Linker::new(engine).instantiate(&mut store, &module).unwrap();
        for export in module.exports() {
            let found = instance.get_export(&store, export.name()).unwrap().ty(&store);
            assert_eq!(&found, export.ty(), "{}", export.name());
        }
        // The grown objects report their new size.
        instance.get_memory(&store, "m").unwrap().grow(&mut store, 2).unwrap();
        let grown = instance.get_export(&store, "m").unwrap().ty(&store);
        assert_eq!(grown.memory().unwrap().min, 3);
    });
}

#[test]
fn a_module_linked_once_makes_many_instances() {
    for_all(|engine| {
        let source = r#"
            import "env" "next" func next() -> i32
            export "f" func f
            func f() -> i32 { call next  call next  i32.add  return }"#;
        let module = module(engine, source);
        let mut linker: Linker<i32> = Linker::new(engine);
        let missing = linker.instantiate_pre(&module).unwrap_err();
        assert!(matches!(missing, Error::Link(LinkError::Missing { .. })), "{missing}");
        let next = |mut caller: Caller<'_, i32>| {
            *caller.data_mut() += 1;
            *caller.data()
        };
        linker.func_wrap("env", "next", next).unwrap();
        let linked = linker.instantiate_pre(&module).unwrap();
        assert!(linked.module().same(&module));
        // The linker is not needed any more.
        drop(linker);
        let run = |start: i32| {
            let mut store = Store::new(engine, start);
            let instance = linked.clone().instantiate(&mut store).unwrap();
            let f = instance.get_typed_func::<(), i32>(&store, "f").unwrap();
            let sum = f.call(&mut store, ()).unwrap();
            assert!(store.engine().same(engine));
            (sum, store.into_data())
        };
        assert_eq!((run(0), run(10)), ((3, 2), (23, 12)));
        std::thread::scope(|scope| assert_eq!(scope.spawn(|| run(5)).join().unwrap(), (13, 7)));
    });
}

#[test]
fn a_linked_import_of_another_type_is_refused() {
    for_all(|engine| {
        let module = module(engine, "import \"env\" \"f\" func f(i32)");
        let mut linker: Linker<()> = Linker::new(engine);
        linker.func_wrap("env", "f", |_: i64| {}).unwrap();
        let linked = linker.instantiate_pre(&module).unwrap();
        let error = linked.instantiate(&mut Store::new(engine, ())).unwrap_err();
        assert!(matches!(error, Error::Link(LinkError::Type { .. })), "{error}");
    });
}

#[test]
fn numbers_in_memory_are_little_endian_and_checked() {
    let engine = Engine::new(Config::new().tier(Tier::BEST)).unwrap();
    let mut store = Store::new(&engine, ());
    let memory = Memory::new(&mut store, MemoryType { min: 1, max: Some(1) }).unwrap();
    memory.write_value(&mut store, 1, 0x0102_0304_0506_0708_u64).unwrap();
    assert_eq!(memory.data(&store)[..10], [0, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    assert_eq!(memory.read_value::<u8>(&store, 2).unwrap(), 7);
    assert_eq!(memory.read_value::<u16>(&store, 2).unwrap(), 0x0607);
    memory.write_value(&mut store, 0, -1_i8).unwrap();
    assert_eq!(memory.read_value::<i16>(&store, 0).unwrap(), 0x08ff);
    memory.write_value(&mut store, 65_528, -0.5_f64).unwrap();
    assert_eq!(memory.read_value::<f64>(&store, 65_528).unwrap(), -0.5);
    memory.write_value(&mut store, 65_532, 1.5_f32).unwrap();
    assert_eq!(memory.read_value::<f32>(&store, 65_532).unwrap(), 1.5);
    // The last byte counts, and addresses do not wrap.
    for address in [65_533, 65_536, usize::MAX - 1, usize::MAX] {
        assert!(memory.read_value::<i32>(&store, address).is_err(), "{address}");
        let before = memory.data(&store).to_vec();
        assert!(memory.write_value(&mut store, address, u32::MAX).is_err(), "{address}");
        assert!(memory.data(&store) == before, "{address}");
    }
}

#[test]
fn host_functions_have_memory_and_data_at_once() {
    for_all(|engine| {
        let source = r#"
            import "env" "count" func count(i32)
            memory m 1
            export "m" memory m
            export "f" func f
            func f() { i32.const 8  call count  i32.const 8  call count  return }"#;
        let mut linker: Linker<Vec<u8>> = Linker::new(engine);
        let count = |mut caller: Caller<'_, Vec<u8>>, at: i32| {
            let memory = caller.get_export("m").and_then(|item| item.into_memory()).unwrap();
            let (bytes, seen) = memory.data_and_store_mut(&mut caller);
            bytes[at as usize] += 1;
            seen.push(bytes[at as usize]);
        };
        linker.func_wrap("env", "count", count).unwrap();
        let mut store = Store::new(engine, Vec::new());
        let instance = linker.instantiate(&mut store, &module(engine, source)).unwrap();
        let f = instance.get_func(&store, "f").unwrap();
        f.call(&mut store, &[], &mut []).unwrap();
        assert_eq!(store.into_data(), [1, 2]);
    });
}

#[test]
fn one_enum_has_all_errors_with_their_sources() {
    #[derive(Debug, thiserror::Error)]
    #[error("the disk is full")]
    struct DiskFull(#[source] std::io::Error);

    for_all(|engine| {
        let absent = Module::from_file(engine, "no/such/file.bc").unwrap_err();
        assert!(absent.to_string().starts_with("cannot read no/such/file.bc: "), "{absent}");
        let io: &std::io::Error = absent.source().unwrap().downcast_ref().unwrap();
        assert_eq!(io.kind(), std::io::ErrorKind::NotFound);

        let mut linker: Linker<()> = Linker::new(engine);
        let fail = || -> Result<i32, Error> {
            Err(Error::host(DiskFull(std::io::ErrorKind::StorageFull.into())))
        };
        linker.func_wrap("env", "fail", fail).unwrap();
        let source = r#"
            import "env" "fail" func fail() -> i32
            export "f" func f
            func f() -> i32 { call fail return }"#;
        let mut store = Store::new(engine, ());
        let instance = linker.instantiate(&mut store, &module(engine, source)).unwrap();
        let f = instance.get_func(&store, "f").unwrap();
        let error = f.call(&mut store, &[], &mut [Val::I32(0)]).unwrap_err();
        assert_eq!(error.to_string(), "the disk is full");
        let io: &std::io::Error = error.source().unwrap().downcast_ref().unwrap();
        assert_eq!(io.kind(), std::io::ErrorKind::StorageFull);
        let Error::Host(inner) = error else { panic!("{error}") };
        assert!(inner.is::<DiskFull>());
    });
}

#[test]
fn files_are_modules() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../programs/fib_rec.bc");
    for_all(|engine| {
        let module = Module::from_file(engine, path).unwrap();
        assert!(module.exports().len() > 0);
    });
}
