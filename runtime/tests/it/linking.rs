//! Instances that import each other's things, and what does not fit.

use slotvm_bytecode::ValType::{self, FuncRef, I32, I64};
use slotvm_bytecode::module::{GlobalType, MemoryType, TableType};
use slotvm_bytecode::{FuncType, TrapCode};
use slotvm_runtime::native::{Natives, OnCall};
use slotvm_runtime::{
    Error, Extern, FuncHandle, FuncTarget, InstanceId, Limits, MemoryPlan, Store, StoreConfig,
};

use crate::support::{Program, call, func, host_func, module, stack_cells};

const PROVIDER: &str = "
    memory 0 1 4
    table t funcref 4 8
    global g: mut i64 = i64.const 5
    global constant: i32 = i32.const 3
    frame_stack 1024 64
    export \"mem\" memory 0
    export \"t\" table t
    export \"g\" global g
    export \"constant\" global constant
    export \"add\" func add
    export \"recurse\" func recurse
    func add(a: i64) -> i64 { global.get g local.get a i64.add global.set g global.get g return }
    func recurse(n: i64) -> i64 { local x: i64
      local.addr x i32.eqz drop
      local.get n i64.eqz br_if end
      local.get n i64.const 1 i64.sub call recurse return
    end: .line 5 unreachable }
    func ten() -> i64 { i64.const 10 return }";

const USER: &str = "
    import \"provider\" \"add\" func add(i64) -> i64
    import \"provider\" \"recurse\" func recurse(i64) -> i64
    import \"provider\" \"t\" table t funcref 4 8
    import \"provider\" \"mem\" memory mem 1 4
    import \"provider\" \"constant\" global constant i32
    import \"provider\" \"g\" global g mut i64
    global next: i32 = global.get constant i32.const 1 i32.add
    global local: mut i64 = i64.const 77
    data d at global.get constant \"xyz\"
    elem e t at global.get constant func own
    export \"own\" func own
    export \"add again\" func add
    func own() -> i64 { i64.const 11 return }
    func f(a: i64) -> (i64, i64) { local.get a call add global.get g return }
    func tail(a: i64) -> i64 { local 7 i64 local.get a return_call add }
    func set(a: i64) { local.get a global.set g local.get a global.set local return }
    func get() -> (i32, i64) { global.get next global.get local return }
    func down(n: i64) -> i64 { .line 9 local.get n call recurse return }
    func indirect(i: i32) -> i64 { local.get i call_indirect () -> i64, t return }";

/// A store with the provider as instance 0 and the user as instance 1.
fn linked(config: StoreConfig) -> Program {
    let mut program = Program::with(config, PROVIDER);
    let Program { store, instance } = &mut program;
    let names = ["add", "recurse", "t", "mem", "constant", "g"];
    let imports = names.map(|name| store.export(*instance, name).expect(name));
    *instance = store.instantiate(module(USER), &imports).unwrap();
    program
}

#[test]
fn calls_across_instances() {
    for config in [StoreConfig::default(), stack_cells(100)] {
        let mut program = linked(config);
        assert_eq!(program.call("f", &[10]).unwrap(), [15, 15]);
        assert_eq!(program.call("tail", &[1]).unwrap(), [16]);
        assert_eq!(program.call("indirect", &[3]).unwrap(), [11]);
        assert_eq!(
            program.store.func_target(program.func("add")),
            FuncTarget::Guest { instance: InstanceId::from_number(0), func: 0 }
        );
    }
}

#[test]
fn globals_are_shared_memories_and_tables_too() {
    let mut program = linked(StoreConfig::default());
    program.call("set", &[40]).unwrap();
    assert_eq!(program.call("get", &[]).unwrap(), [4, 40]);
    let provider = InstanceId::from_number(0);
    let add = func(&program.store, provider, "add");
    assert_eq!(call(&mut program.store, add, &[2]).unwrap(), [42]);
    let Some(Extern::Global(global)) = program.store.export(provider, "g") else { panic!() };
    assert_eq!(program.store.global(global), 42);
    program.store.set_global(global, 1).unwrap();
    assert_eq!(program.call("f", &[0]).unwrap(), [1, 1]);

    let Some(Extern::Memory(memory)) = program.store.export(provider, "mem") else { panic!() };
    assert_eq!(program.store.instance_memory(program.instance), Some(memory));
    assert_eq!(program.store.memory(memory).slice(3, 3).unwrap(), b"xyz");
    let Some(Extern::Table(table)) = program.store.export(provider, "t") else { panic!() };
    let own = program.func("own");
    assert_eq!(program.store.table(table).get(3), Ok(own.cell()));
    let ten = func(&program.store, provider, "ten");
    program.store.table_set(table, 0, ten.cell()).unwrap();
    assert_eq!(program.call("indirect", &[0]).unwrap(), [10]);
    assert_eq!(program.store.table_grow(table, own.cell(), 2).unwrap(), Some(4));
    assert_eq!(program.call("indirect", &[5]).unwrap(), [11]);
    assert_eq!(program.store.table_grow(table, 0, 3).unwrap(), None);
    assert_eq!(program.store.instance_tables(program.instance), [table]);
    assert_eq!(program.store.instance_globals(program.instance)[1], global);
}

/// Native code calls the functions of such tables directly.
#[test]
fn tables_that_code_relies_on_cannot_be_changed() {
    let source = "
        table constant funcref 2 9
        table exported funcref 2 9
        table written funcref 2 9
        elem c constant at i32.const 0 func ten
        elem e exported at i32.const 0 func ten
        elem w written at i32.const 0 func ten
        export \"exported\" table exported
        func ten() -> i64 { i64.const 10 return }
        func write() { i32.const 0 ref.null funcref table.set written return }
        func call_constant() -> i64 { i32.const 0 call_indirect () -> i64, constant return }";
    let mut program = Program::new(source);
    let tables = program.store.instance_tables(program.instance).to_vec();
    for (&table, is_constant) in tables.iter().zip([true, false, false]) {
        let store = &mut program.store;
        assert_eq!(store.table(table).is_constant(), is_constant);
        let ten = store.table(table).get(0).unwrap();
        let changes = [store.table_set(table, 1, ten), store.table_grow(table, 0, 1).map(drop)];
        for changed in changes {
            assert_eq!(changed.is_err(), is_constant, "{changed:?}");
            if let Err(error) = changed {
                let error = error.to_string();
                assert!(error.starts_with("table 0 of the store cannot be changed: "), "{error}");
            }
        }
        assert_eq!(store.table(table).len(), if is_constant { 2 } else { 3 });
        let user = module("import \"m\" \"t\" table t funcref 1 9");
        let linked = store.instantiate(user, &[Extern::Table(table)]);
        assert_eq!(linked.is_err(), is_constant, "{linked:?}");
        if let Err(error) = linked {
            assert!(error.to_string().contains("whose elements are constant"), "{error}");
        }
    }
    assert_eq!(program.call("call_constant", &[]).unwrap(), [10]);
}

#[test]
fn traps_in_another_instance_restore_its_frame_stack() {
    let mut program = linked(StoreConfig::default());
    for _ in 0..3 {
        let trap = program.trap("down", &[5]);
        assert_eq!(trap.code, TrapCode::Unreachable);
        let lines: Vec<_> = trap.frames().iter().map(|frame| frame.line()).collect();
        assert_eq!(lines, [Some(5), None, None, None, None, None, Some(9)]);
    }
    assert_eq!(program.trap("down", &[8]).code, TrapCode::FrameStackOverflow);
    assert_eq!(program.trap("down", &[7]).code, TrapCode::Unreachable);
}

#[test]
fn functions_get_handles_when_somebody_asks_for_them() {
    let source = "
        table t funcref 2
        global g: funcref = ref.func in_global
        elem e t at i32.const 0 func in_table
        func idle() { return }
        func in_table() { return }
        func in_code() { return }
        func in_global() { ref.func in_code drop return }";
    let program = Program::new(source);
    let handle = |func| program.store.instance_func(program.instance, func).index();
    // What code and segments refer to has one already, so that they only count what comes now.
    assert_eq!([handle(2), handle(3), handle(1)], [0, 1, 2]);
    assert_eq!([handle(0), handle(0)], [3, 3]);
    assert_eq!(program.store.n_funcs(), 4);
    let last = program.store.instance_func(program.instance, 0);
    let target = program.store.func_target(last);
    assert_eq!(target, FuncTarget::Guest { instance: program.instance, func: 0 });

    let program = linked(StoreConfig::default());
    assert_eq!(program.store.n_funcs(), 3 + 7);
    // Guest functions keep their record when they are imported, and when they are exported again.
    let again = program.store.export(program.instance, "add again");
    assert_eq!(again, program.store.export(InstanceId::from_number(0), "add"));
}

/// Links an import of this text to an extern.
fn link(import: &str, thing: impl FnOnce(&mut Store) -> Extern) -> Result<(), String> {
    let result = Program::with_imports(StoreConfig::default(), import, |store| vec![thing(store)]);
    result.map(drop).map_err(|error| error.to_string())
}

fn memory(min: u32, max: Option<u32>) -> impl FnOnce(&mut Store) -> Extern {
    move |store| {
        Extern::Memory(store.new_memory(MemoryType { min, max }, MemoryPlan::CHECKED).unwrap())
    }
}

fn table(elem: ValType, min: u32, max: Option<u32>) -> impl FnOnce(&mut Store) -> Extern {
    move |store| Extern::Table(store.new_table(TableType { elem, min, max }, 0).unwrap())
}

fn global(ty: ValType, mutable: bool) -> impl FnOnce(&mut Store) -> Extern {
    move |store| Extern::Global(store.new_global(GlobalType { ty, mutable }, 0).unwrap())
}

#[test]
fn imports_that_fit() {
    link("import \"m\" \"n\" memory 0 1", memory(1, None)).unwrap();
    link("import \"m\" \"n\" memory 0 1", memory(2, Some(3))).unwrap();
    link("import \"m\" \"n\" memory 0 1 3", memory(2, Some(3))).unwrap();
    link("import \"m\" \"n\" table 0 funcref 1 3", table(FuncRef, 2, Some(2))).unwrap();
    link("import \"m\" \"n\" global 0 mut i64", global(I64, true)).unwrap();
    link("import \"m\" \"n\" global 0 i64", global(I64, false)).unwrap();
    link("import \"m\" \"n\" func 0(i64) -> i32", |store| {
        host_func(store, &[I64], &[I32], |_| Ok(()))
    })
    .unwrap();
}

#[test]
fn imports_that_do_not_fit_are_named_with_both_types() {
    let text = |expected: &str, found: &str| {
        Err(format!("import `m` `n`: expected {expected}, found {found}"))
    };
    let found = link("import \"m\" \"n\" memory 0 2", memory(1, None));
    assert_eq!(found, text("memory 2", "memory 1"));
    let found = link("import \"m\" \"n\" memory 0 1 3", memory(1, None));
    assert_eq!(found, text("memory 1 3", "memory 1"));
    let found = link("import \"m\" \"n\" memory 0 1 3", memory(1, Some(4)));
    assert_eq!(found, text("memory 1 3", "memory 1 4"));
    let found = link("import \"m\" \"n\" table 0 externref 1", table(FuncRef, 1, None));
    assert_eq!(found, text("table externref 1", "table funcref 1"));
    let found = link("import \"m\" \"n\" table 0 funcref 2 3", table(FuncRef, 1, Some(3)));
    assert_eq!(found, text("table funcref 2 3", "table funcref 1 3"));
    let found = link("import \"m\" \"n\" global 0 mut i64", global(I64, false));
    assert_eq!(found, text("global mut i64", "global i64"));
    let found = link("import \"m\" \"n\" global 0 i64", global(I64, true));
    assert_eq!(found, text("global i64", "global mut i64"));
    let found = link("import \"m\" \"n\" global 0 i64", global(I32, false));
    assert_eq!(found, text("global i64", "global i32"));
    let host = |store: &mut Store| host_func(store, &[I64], &[], |_| Ok(()));
    let found = link("import \"m\" \"n\" func 0(i64) -> i32", host);
    assert_eq!(found, text("function (i64) -> (i32)", "function (i64) -> ()"));
    let found = link("import \"m\" \"n\" func 0()", memory(1, None));
    assert_eq!(found, text("function () -> ()", "memory 1"));

    let error = Program::with_imports(StoreConfig::default(), USER, |_| Vec::new());
    let error = error.map(drop).unwrap_err();
    assert_eq!(error.to_string(), "expected 6 imports, found 0");
}

#[test]
fn the_start_function_runs_after_the_segments() {
    let source = "memory 0 1 global g: mut i32 = i32.const 0
         data d at i32.const 7 \"A\"
         start init
         export \"g\" global g
         func init() { i32.const 7 i32.load8_u global.set g return }";
    let program = Program::new(source);
    let Some(Extern::Global(g)) = program.store.export(program.instance, "g") else { panic!() };
    assert_eq!(program.store.global(g), u128::from(b'A'));
    assert!(program.store.export(program.instance, "h").is_none());

    let source = "start f func f() { .line 8 unreachable }";
    let error = Program::with_imports(StoreConfig::default(), source, |_| Vec::new());
    let Err(Error::Trap(trap)) = error.map(drop) else { panic!("the start function traps") };
    assert_eq!(trap.frames()[0].line(), Some(8));
}

#[test]
fn functions_of_an_instance_that_failed_stay_callable() {
    let mut program = Program::new(
        "table t funcref 2 export \"t\" table t
         func f(i: i32) -> i64 { local.get i call_indirect () -> i64, t return }",
    );
    let table = program.store.export(program.instance, "t").unwrap();
    let source = "import \"m\" \"t\" table t funcref 2 memory 0 0
         global g: i64 = i64.const 42
         elem a t at i32.const 1 func get
         elem b t at i32.const 0 func get, get, get
         func get() -> i64 { global.get g return }";
    let error = program.store.instantiate(module(source), &[table]).unwrap_err();
    assert!(matches!(error, Error::Segment { kind: "element", index: 1, .. }));
    assert_eq!(program.call("f", &[1]).unwrap(), [42]);
    program.trap("f", &[0]);
}

#[test]
fn limits_are_named() {
    let refused = |limits: Limits, source: &str| {
        let config = StoreConfig { limits, ..StoreConfig::default() };
        let error = Program::with_imports(config, source, |_| Vec::new()).map(drop).unwrap_err();
        error.to_string()
    };
    let two = "func 0() { return } func 1() { return }";
    let limits = || Limits::default();
    assert_eq!(
        refused(Limits { instances_max: 0, ..limits() }, ""),
        "limit instances_max (0) exceeded: 1 wanted"
    );
    assert_eq!(
        refused(Limits { funcs_max: 1, ..limits() }, two),
        "limit funcs_max (1) exceeded: 2 wanted"
    );
    assert_eq!(
        refused(Limits { memory_pages_max: 1, ..limits() }, "memory 0 2"),
        "limit memory_pages_max (1) exceeded: 2 wanted"
    );
    assert_eq!(
        refused(Limits { memories_max: 0, ..limits() }, "memory 0 0"),
        "limit memories_max (0) exceeded: 1 wanted"
    );
    assert_eq!(
        refused(Limits { table_elems_max: 9, ..limits() }, "table 0 funcref 10"),
        "limit table_elems_max (9) exceeded: 10 wanted"
    );
    assert_eq!(
        refused(Limits { tables_max: 1, ..limits() }, "table 0 funcref 1 table 1 funcref 1"),
        "limit tables_max (1) exceeded: 2 wanted"
    );
    assert_eq!(
        refused(Limits { globals_max: 0, ..limits() }, "global 0: i32 = i32.const 1"),
        "limit globals_max (0) exceeded: 1 wanted"
    );
    let mut store = Store::new(
        StoreConfig { limits: Limits { externs_max: 1, ..limits() }, ..Default::default() },
        Box::new(()),
    );
    store.new_extern(Box::new(1)).unwrap();
    assert!(matches!(store.new_extern(Box::new(2)), Err(Error::Limit { name: "externs_max", .. })));
}

#[test]
fn the_host_cannot_forge_references_or_write_constants() {
    let mut store = Store::new(StoreConfig::default(), Box::new(()));
    let ty = TableType { elem: FuncRef, min: 1, max: None };
    assert!(matches!(store.new_table(ty, 1), Err(Error::Usage(_))));
    let table = store.new_table(ty, 0).unwrap();
    assert!(matches!(store.table_set(table, 0, 1), Err(Error::Usage(_))));
    assert!(matches!(store.table_set(table, 1, 0), Err(Error::Usage(_))));
    assert!(matches!(store.table_grow(table, 1, 1), Err(Error::Usage(_))));
    let ty = GlobalType { ty: FuncRef, mutable: true };
    assert!(matches!(store.new_global(ty, 1), Err(Error::Usage(_))));
    let global = store.new_global(ty, 0).unwrap();
    assert!(matches!(store.set_global(global, 1), Err(Error::Usage(_))));
    let constant =
        store.new_global(GlobalType { ty: I32, mutable: false }, u64::MAX.into()).unwrap();
    assert_eq!(store.global(constant), 0xffff_ffff);
    assert!(matches!(store.set_global(constant, 1), Err(Error::Usage(_))));

    let host = host_func(&mut store, &[], &[], |_| Ok(()));
    let Extern::Func(host) = host else { panic!() };
    assert_eq!(*store.func_type(host), FuncType::default());
    store.table_set(table, 0, host.cell()).unwrap();
    store.set_global(global, host.cell().into()).unwrap();
    assert_eq!(store.table(table).get(0), Ok(host.cell()));
    for forged in [1, host.cell() - 1, host.cell() + 1, 2 * host.cell(), u64::MAX] {
        assert!(matches!(store.table_set(table, 0, forged), Err(Error::Usage(_))), "{forged}");
        assert!(
            matches!(store.set_global(global, forged.into()), Err(Error::Usage(_))),
            "{forged}"
        );
    }
}

#[test]
fn forged_functions_are_not_imported() {
    let mut store = Store::new(StoreConfig::default(), Box::new(()));
    let Extern::Func(host) = host_func(&mut store, &[], &[], |_| Ok(())) else { panic!() };
    let user = module("import \"env\" \"f\" func f() func g() -> funcref { ref.func f return }");
    for forged in [1, host.cell() - 1, host.cell() + 1, 2 * host.cell(), u64::MAX] {
        let import = Extern::Func(FuncHandle::from_cell(forged).unwrap());
        let error = store.instantiate(user.clone(), &[import]).unwrap_err();
        assert_eq!(error.to_string(), format!("unknown function {forged} in the store"));
    }
    store.instantiate(user, &[Extern::Func(host)]).unwrap();
}

#[test]
fn native_code_does_not_get_less_address_space_than_it_relies_on() {
    let source = "memory 0 1 1 func f() { return }";
    for (plan, span, fits) in [
        (Some(MemoryPlan::CHECKED), 0, true),
        (Some(MemoryPlan::CHECKED), 1 << 32, false),
        (None, MemoryPlan::PLAIN.span_bytes(), true),
        (None, MemoryPlan::PLAIN.span_bytes() + 1, false),
    ] {
        let config = StoreConfig { memory: plan, ..StoreConfig::default() };
        let mut store = Store::new(config, Box::new(()));
        let natives = Natives {
            entries: std::ptr::null(),
            on_call: OnCall::NONE,
            memory_span_bytes: span,
            image: None,
            tiers: None,
        };
        let mut n_asked = 0;
        let other = |memory_span_bytes: u64| {
            n_asked += 1;
            Ok(Natives { memory_span_bytes, ..natives })
        };
        // SAFETY: there is no code, and the store interprets.
        let result = unsafe {
            store.instantiate_native(
                module(source),
                &[],
                natives,
                &Default::default(),
                || { other }(span),
            )
        };
        match result {
            Ok(_) => assert!(fits),
            Err(error) => assert!(!fits && matches!(error, Error::AddressSpace { .. }), "{error}"),
        }
        assert_eq!(n_asked, u32::from(!fits));
        // Nothing is left of a failure.
        assert_eq!(store.next_instance(), InstanceId::from_number(fits.into()));
        // SAFETY: as above.
        let result = unsafe {
            let checked = || Ok(Natives { memory_span_bytes: 0, ..natives });
            store.instantiate_native(module(source), &[], natives, &Default::default(), checked)
        };
        assert!(result.is_ok());
    }
}
