//! Inline caches: cells of an instance that guest code reads and the host fills, in every tier.

use slotvm::{Caller, Engine, Error, Global, Instance, Linker, Module, Rooted, Store, Val};

use crate::support::kinds;

/// Objects are in the memory: the number of a shape, then fields. The host knows at which offset a shape has the field.
const FIELD: &str = r#"
    import "host" "miss" cold func miss(i32, i32)
    export "sum" func sum
    memory heap 1
    global shape: mut i64 = i64.const 0
    global offset: mut i64 = i64.const 0
    data objects heap at i32.const 64 "\x01\x00\x00\x00\x00\x00\x00\x00\x0a\x00\x00\x00\x00\x00\x00\x00"
    data others heap at i32.const 96 "\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x64\x00\x00\x00\x00\x00\x00\x00"
    func sum(n: i64, object: i32) -> i64 {
      local sum: i64
    next:
      local.get object  i64.load 0  global.get shape  i64.ne  br_if miss
    hit:
      local.get object  global.get offset  i32.wrap_i64  i32.add  i64.load 0
      local.get sum  i64.add  local.set sum
      local.get n  i64.const 1  i64.sub  local.tee n  i64.eqz  i32.eqz  br_if next
      local.get sum  return
    miss:
      i32.const 0  local.get object  call miss  br hit
    }"#;

/// Fills the two cells from a number on, and counts.
fn miss(caller: &mut Caller<'_, u32>, cell: i32, object: i32) -> Result<(), Error> {
    *caller.data_mut() += 1;
    let memory = caller.memory().expect("the guest has one");
    let shape = memory.read_value::<i64>(&*caller, object as usize).map_err(Error::host)?;
    let offset = if shape == 1 { 8 } else { 16 };
    for (index, value) in (cell as u32..).zip([shape, offset]) {
        let cell = caller.global_at(index).expect("guest code names its own");
        cell.set(&mut *caller, Val::I64(value))?;
    }
    assert!(caller.global_at(2).is_none());
    Ok(())
}

fn instance(engine: &Engine) -> (Store<u32>, Instance) {
    let module = Module::from_text(engine, FIELD).unwrap();
    let mut linker = Linker::new(engine);
    let miss =
        |mut caller: Caller<'_, u32>, cell: i32, object: i32| miss(&mut caller, cell, object);
    linker.func_wrap("host", "miss", miss).unwrap();
    let mut store = Store::new(engine, 0);
    let instance = linker.instantiate(&mut store, &module).unwrap();
    (store, instance)
}

#[test]
fn the_host_fills_the_cells_of_the_instance_that_calls() {
    for kind in kinds(|_| {}) {
        let (mut store, one) = instance(&kind.engine);
        let sum = one.get_typed_func::<(i64, i32), i64>(&store, "sum").unwrap();
        let objects = [64, 64, 96, 96, 64];
        for (n_misses, object) in [1, 1, 2, 2, 3].into_iter().zip(objects) {
            let expected = if object == 64 { 50 } else { 500 };
            assert_eq!(sum.call(&mut store, (5, object)).unwrap(), expected, "{kind}");
            assert_eq!(*store.data(), n_misses, "{kind}");
        }
        // Another instance of the module has cells of its own.
        let (store, other) = instance(&kind.engine);
        let read = |cell: Global| cell.get(&store).unwrap_i64();
        assert_eq!(read(other.global_at(&store, 0)), 0, "{kind}");
    }
}

#[test]
fn the_host_itself_has_no_cells() {
    let engine = Engine::default();
    let mut store = Store::new(&engine, ());
    let host = slotvm::Func::wrap(&mut store, |caller: Caller<'_, ()>| {
        assert!(caller.global_at(0).is_none());
    });
    host.unwrap().call(&mut store, &[], &mut []).unwrap();
}

/// A cell with a reference is visited, and what the visitor writes is what guest code reads.
#[test]
fn references_in_cells_are_roots() {
    let source = r#"
        import "host" "move" func moved()
        export "get" func get
        global cell: mut ref = ref.null ref
        func get() -> i64 {
          local before: i64
          global.get cell  i64.reinterpret_ref  local.set before
          call moved
          global.get cell  i64.reinterpret_ref  local.get before  i64.sub  return
        }"#;
    for kind in kinds(|_| {}) {
        let engine = &kind.engine;
        let mut linker = Linker::new(engine);
        let moved = |mut caller: Caller<'_, ()>| caller.visit_roots(|root| *root += 16);
        linker.func_wrap("host", "move", moved).unwrap();
        let mut store = Store::new(engine, ());
        let module = Module::from_text(engine, source).unwrap();
        let instance = linker.instantiate(&mut store, &module).unwrap();
        let cell = instance.global_at(&store, 0);
        let object = Rooted::new(&mut store, 80);
        cell.set(&mut store, object.into()).unwrap();
        let get = instance.get_typed_func::<(), i64>(&store, "get").unwrap();
        for _ in 0..4 {
            assert_eq!(get.call(&mut store, ()).unwrap(), 16, "{kind}");
        }
        assert_eq!(object.bits(&store), 80 + 4 * 16, "{kind}");
        assert_eq!(cell.get(&store).unwrap_rooted().unwrap().bits(&store), 80 + 4 * 16, "{kind}");
    }
}
