//! References into the embedder's heap, in every tier, under a collector that moves everything at every call of the host.

use std::collections::HashMap;

use slotvm::{
    AsContextMut, Caller, Config, Engine, Error, Func, Global, GlobalType, Instance, Linker,
    Module, RootScope, Rooted, Store, Table, TableType, Tier, UpdateDeadline, Val, ValType,
};

use crate::support::kinds;

/// Objects by address. An address is never used again.
#[derive(Default)]
struct Heap {
    objects: HashMap<u64, i64>,
    next: u64,
    /// The roots that the last collection has visited.
    n_roots: usize,
    /// The polls that have moved everything.
    n_polls: u64,
}

impl Heap {
    fn alloc(&mut self, value: i64) -> u64 {
        self.next += 8;
        self.objects.insert(self.next, value);
        self.next
    }

    fn value(&self, address: u64) -> i64 {
        *self.objects.get(&address).expect("a reference is of this time")
    }
}

/// Moves all objects that roots name, and forgets the others.
fn collect(context: &mut impl AsContextMut<Data = Heap>) -> Result<(), Error> {
    let mut context = context.as_context_mut();
    let mut heap = std::mem::take(context.data_mut());
    let mut moved: HashMap<u64, u64> = HashMap::new();
    let mut objects = HashMap::new();
    heap.n_roots = 0;
    context.visit_roots(|root| {
        let value = heap.value(*root);
        heap.n_roots += 1;
        *root = *moved.entry(*root).or_insert_with(|| {
            heap.next += 8;
            objects.insert(heap.next, value);
            heap.next
        });
    })?;
    heap.objects = objects;
    *context.data_mut() = heap;
    Ok(())
}

fn linker(engine: &Engine) -> Linker<Heap> {
    let mut linker = Linker::new(engine);
    linker
        .func_wrap("heap", "alloc", |mut caller: Caller<'_, Heap>, value: i64| {
            collect(&mut caller)?;
            let address = caller.data_mut().alloc(value);
            Ok::<_, Error>(Some(Rooted::new(&mut caller, address)))
        })
        .unwrap();
    linker
        .func_wrap("heap", "value", |mut caller: Caller<'_, Heap>, object: Option<Rooted>| {
            collect(&mut caller)?;
            let address = object.expect("it is not null").bits(&caller);
            Ok::<_, Error>(caller.data().value(address))
        })
        .unwrap();
    linker
}

const IMPORTS: &str = r#"
    import "heap" "alloc" func alloc(i64) -> ref
    import "heap" "value" func value(ref) -> i64
    export "run" func run
"#;

/// Checks what a program returns in every tier.
fn check(source: &str, cases: &[(i64, i64)]) {
    for kind in kinds(|_| {}) {
        let engine = &kind.engine;
        let module = Module::from_text(engine, &format!("{IMPORTS}{source}")).unwrap();
        let mut store = Store::new(engine, Heap::default());
        let instance = linker(engine).instantiate(&mut store, &module).unwrap();
        let run = instance.get_typed_func::<i64, i64>(&store, "run").unwrap();
        for &(arg, expected) in cases {
            assert_eq!(run.call(&mut store, arg).unwrap(), expected, "{kind}: {arg}");
        }
    }
}

#[test]
fn locals_are_roots() {
    check(
        "func run(n: i64) -> i64 {
          local a: ref
          local b: ref
          local sum: i64
          i64.const 7  call alloc  local.set a
          i64.const 9  call alloc  local.set b
        next:
          local.get a  call value  local.get sum  i64.add  local.set sum
          local.get b  local.get a  local.set b  local.set a
          local.get n  i64.const 1  i64.sub  local.tee n  i64.const 0  i64.ne  br_if next
          local.get sum  return
        }",
        &[(1, 7), (2, 16), (101, 807)],
    );
}

#[test]
fn operands_arguments_and_results_are_roots() {
    check(
        "func run(n: i64) -> i64 {
          local.get n  call alloc
          local.get n  i64.const 1  i64.add  call alloc
          call both
          call value
          return
        }
        func both(a: ref, b: ref) -> ref {
          local.get a  local.get b  call value
          local.get a  call value  i64.mul  call alloc
          call second return
        }
        func second(a: ref, b: ref) -> ref {
          local.get a  call value  drop
          local.get b  return
        }",
        &[(3, 12), (4, 20), (5, 30)],
    );
}

/// Each call puts arguments on the stack, and begins to where the call before returns.
#[test]
fn calls_in_a_row_with_arguments_on_the_stack() {
    let zeros = "i64.const 0  ".repeat(12);
    let params = "i64, ".repeat(12);
    check(
        &format!(
            "func run(n: i64) -> i64 {{
              local a: ref
              local.get n  call alloc  local.set a
              local.get n  call alloc
              {zeros} local.get a  call last  local.set a
              {zeros} local.get a  call last  call value
              swap  call value  i64.add
              return
            }}
            func last({params} object: ref) -> ref {{
              i64.const 1  call alloc  drop  local.get object  return
            }}"
        ),
        &[(3, 6), (4, 8), (5, 10)],
    );
}

/// A list in globals and a table, by recursion and by tail calls.
#[test]
fn globals_tables_and_tail_calls() {
    check(
        "global last: mut ref = ref.null ref
        table refs ref 4 4
        func run(n: i64) -> i64 {
          local.get n  call deep
          global.get last  call value  i64.add
          i32.const 2  table.get refs  call value  i64.add
          return
        }
        func deep(n: i64) -> i64 {
          local own: ref
          local.get n  i64.eqz  br_if end
          local.get n  call alloc  local.tee own  global.set last
          i32.const 2  local.get own  table.set refs
          local.get n  i64.const 1  i64.sub  call deep
          local.get own  call value  i64.add  return
        end:
          local.get n  i64.const 100  call alloc  return_call last_value
        }
        func last_value(n: i64, object: ref) -> i64 {
          local.get n  call alloc  call value
          local.get object  call value  i64.add  return
        }",
        &[(1, 1 + 100 + 1 + 1), (30, 465 + 100 + 1 + 1)],
    );
}

/// The interpreter may keep a dead one longer, as `Store::visit_roots` says.
#[test]
#[cfg_attr(not(feature = "jit"), ignore = "needs native code")]
fn what_is_dead_is_not_kept_alive_by_native_code() {
    let source = "
        func run(n: i64) -> i64 {
          local a: ref
          local.get n  call alloc  local.set a
          local.get a  call value  drop
          local.get n  call alloc  call value  return
        }";
    let mut config = Config::new();
    config.tier(Tier::BEST);
    let engine = Engine::new(&config).unwrap();
    let module = Module::from_text(&engine, &format!("{IMPORTS}{source}")).unwrap();
    let mut store = Store::new(&engine, Heap::default());
    let instance = linker(&engine).instantiate(&mut store, &module).unwrap();
    let run = instance.get_typed_func::<i64, i64>(&store, "run").unwrap();
    assert_eq!(run.call(&mut store, 5).unwrap(), 5);
    // Only the parameter of `value` is left.
    assert_eq!(store.data().n_roots, 1);
}

#[test]
fn the_host_has_handles() {
    let engine = Engine::default();
    let mut store = Store::new(&engine, ());
    let ty = GlobalType { ty: ValType::Ref, mutable: true };
    let global = Global::new(&mut store, ty, Val::Ref(None)).unwrap();
    assert!(global.get(&store).unwrap_rooted().is_none());
    let table = TableType { elem: ValType::Ref, min: 1, max: None };
    let table = Table::new(&mut store, table, Val::Ref(None)).unwrap();
    let outer = Rooted::new(&mut store, 2);
    global.set(&mut store, outer.into()).unwrap();
    let ended = {
        let mut scope = RootScope::new(&mut store);
        let inner = Rooted::new(&mut scope, 4);
        table.set(&mut scope, 0, inner.into()).unwrap();
        inner
    };
    let mut visited = Vec::new();
    store
        .visit_roots(|root| {
            visited.push(*root);
            *root += 100;
        })
        .unwrap();
    visited.sort_unstable();
    assert_eq!(visited, [2, 2, 4]);
    assert_eq!(outer.bits(&store), 102);
    assert_eq!(global.get(&store).unwrap_rooted().unwrap().bits(&store), 102);
    assert_eq!(table.get(&store, 0).unwrap().unwrap_rooted().unwrap().bits(&store), 104);
    let other = Rooted::new(&mut store, 6);
    assert_ne!(ended, other);
    let read = std::panic::AssertUnwindSafe(|| ended.bits(&store));
    assert!(std::panic::catch_unwind(read).is_err(), "its place was used again");
}

#[test]
fn handles_end_with_the_call_that_they_were_made_in() {
    let engine = Engine::default();
    let module = Module::from_text(
        &engine,
        r#"import "env" "keep" func keep(ref) -> ref
        export "run" func run
        func run(object: ref) -> ref { local.get object call keep return }"#,
    )
    .unwrap();
    let mut store = Store::new(&engine, None);
    let keep =
        Func::wrap(&mut store, |mut caller: Caller<'_, Option<Rooted>>, object: Option<Rooted>| {
            *caller.data_mut() = object;
            object
        });
    let keep = keep.unwrap();
    let instance = Instance::new(&mut store, &module, &[keep.into()]).unwrap();
    let run = instance.get_typed_func::<Option<Rooted>, Option<Rooted>>(&store, "run").unwrap();
    let object = Rooted::new(&mut store, 10);
    let returned = run.call(&mut store, Some(object)).unwrap().unwrap();
    assert_eq!(returned.bits(&store), 10);
    let kept = store.data().unwrap();
    let read = std::panic::AssertUnwindSafe(|| kept.bits(&store));
    assert!(std::panic::catch_unwind(read).is_err(), "the handle was a parameter");
    assert_eq!(run.call(&mut store, None).unwrap(), None);
}

fn polling(config: &mut Config) {
    config.epoch_interruption(true);
}

/// Every poll is due, and moves everything; or none is, and calls alone do.
fn check_polling(source: &str, cases: &[(i64, i64)]) {
    let kinds = kinds(polling);
    for (kind, is_due) in kinds.iter().flat_map(|kind| [(kind, true), (kind, false)]) {
        let engine = &kind.engine;
        let module = Module::from_text(engine, &format!("{IMPORTS}{source}")).unwrap();
        let mut store = Store::new(engine, Heap::default());
        store.set_epoch_deadline(if is_due { 0 } else { 1000 });
        store.epoch_deadline_callback(|mut context| {
            collect(&mut context)?;
            context.data_mut().n_polls += 1;
            Ok(UpdateDeadline::Continue(0))
        });
        let instance = linker(engine).instantiate(&mut store, &module).unwrap();
        let run = instance.get_typed_func::<i64, i64>(&store, "run").unwrap();
        for &(arg, expected) in cases {
            assert_eq!(run.call(&mut store, arg).unwrap(), expected, "{kind}: {arg}");
        }
        assert_eq!(store.data().n_polls > 0, is_due, "{kind}");
    }
}

#[test]
fn locals_are_roots_at_polls() {
    check_polling(
        "func run(n: i64) -> i64 {
          local a: ref
          local b: ref
          local c: ref
          i64.const 7  call alloc  local.set a
          local.get n  call alloc  local.tee b  local.set c
        next:
          local.get a  local.get b  local.set a  local.set b
          local.get n  i64.const 1  i64.sub  local.tee n  i64.eqz  i32.eqz  br_if next
          local.get a  call value  i64.const 1000  i64.mul
          local.get b  call value  i64.const 100  i64.mul  i64.add
          local.get c  call value  i64.add  return
        }",
        &[(1, 1000 + 700 + 1), (2, 7000 + 200 + 2), (9, 9000 + 700 + 9), (40, 7000 + 4000 + 40)],
    );
}

/// Operands that wait below a loop, in a function that is inlined into another one with references of its own.
#[test]
fn operands_and_inlined_frames_are_roots_at_polls() {
    check_polling(
        "func run(n: i64) -> i64 {
          local a: ref
          local b: ref
          i64.const 1  call alloc  local.set a
          i64.const 2  call alloc  local.set b
          local.get a
          local.get n  i64.const 10  call alloc  call last
          call value
          local.get b  call value  i64.const 100  i64.mul  i64.add
          local.set n
          call value  i64.const 1000  i64.mul  local.get n  i64.add  return
        }
        func last(n: i64, object: ref) -> ref {
          local.get object
        next (ref):
          local.get n  i64.const 1  i64.sub  local.tee n  i64.const 0  i64.gt_s  br_if next
          return
        }",
        &[(1, 1210), (5, 1210), (30, 1210)],
    );
}

/// References wait at calls and at polls, in blocks that do both.
#[test]
fn what_a_poll_has_left_in_cells_is_not_what_a_call_lists() {
    check_polling(
        "func run(n: i64) -> i64 {
          local a: ref
          local sum: i64
          local.get n  call alloc  local.set a
        next:
          local.get a  call value  local.get sum  i64.add  local.set sum
          local.get a  local.get n  call alloc  local.set a
          call value  local.get sum  i64.add  local.set sum
          local.get n  i64.const 1  i64.sub  local.tee n  i64.eqz  i32.eqz  br_if next
          local.get sum  local.get a  call value  i64.add  return
        }",
        &[(1, 1 + 1 + 1), (3, 3 + 3 + 3 + 3 + 2 + 2 + 1), (10, 10 + 10 + 2 * 54 + 1)],
    );
}

#[test]
fn parameters_are_roots_at_polls_of_recursive_functions() {
    check_polling(
        "func run(n: i64) -> i64 { local.get n  i64.const 5  call alloc  call deep  return }
        func deep(n: i64, object: ref) -> i64 {
          local.get n  i64.eqz  br_if end
          local.get n  i64.const 1  i64.sub  local.get object  call deep
          local.get object  call value  i64.add  return
        end:
          local.get object  call value  return
        }",
        &[(0, 5), (1, 10), (20, 105)],
    );
}

/// More references than calls list one by one, which stay in cells for good.
#[test]
fn references_in_memory_are_roots_at_polls() {
    let n_objects = 40_i64;
    let of_each = |f: &dyn Fn(i64) -> String| (1..=n_objects).map(f).collect::<String>();
    let locals = of_each(&|i| format!("local r{i}: ref\n"));
    let made = of_each(&|i| format!("i64.const {i}  call alloc  local.set r{i}\n"));
    let sums = of_each(&|i| format!("local.get r{i}  call value  i64.add\n"));
    check_polling(
        &format!(
            "func run(n: i64) -> i64 {{
              {locals}
              {made}
            next:
              local.get n  i64.const 1  i64.sub  local.tee n  i64.eqz  i32.eqz  br_if next
              i64.const 0
              {sums}
              return
            }}"
        ),
        &[(1, n_objects * (n_objects + 1) / 2), (10, n_objects * (n_objects + 1) / 2)],
    );
}

#[test]
fn references_are_not_visited_inside_of_operations() {
    let source = r#"
        export "run" func run
        memory m 100
        func run(object: ref) -> i64 {
          i32.const 0  i32.const 1  i32.const 6000000  memory.fill
          local.get object  i64.reinterpret_ref  return
        }"#;
    for kind in kinds(polling) {
        let engine = &kind.engine;
        let module = Module::from_text(engine, source).unwrap();
        let mut store = Store::new(engine, 0);
        store.set_epoch_deadline(0);
        store.epoch_deadline_callback(|mut context| {
            context.visit_roots(|_| {})?;
            *context.data_mut() += 1;
            Ok(UpdateDeadline::Continue(0))
        });
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        let run = instance.get_typed_func::<Option<Rooted>, i64>(&store, "run").unwrap();
        let error = run.call(&mut store, None).unwrap_err();
        let expected = "references cannot be visited while a program polls inside of an operation";
        assert!(error.to_string().contains(expected), "{kind}: {error}");
        assert!(*store.data() > 0, "{kind}: the function polls before");
        store.visit_roots(|_| {}).unwrap();
    }
}

/// The loads and stores of a function that are not in cold blocks.
#[cfg(feature = "jit")]
fn accesses_of_warm_blocks(engine: &Engine, source: &str) -> usize {
    let module = Module::from_text(engine, source).unwrap();
    let clif = module.clif(0).unwrap().expect("it is native code");
    let mut is_cold = false;
    let mut n = 0;
    for line in clif.lines() {
        if line.trim_start().starts_with("block") {
            is_cold = line.contains(" cold");
        }
        let is_access = line.contains(" load.") || line.contains(" store.");
        n += usize::from(is_access && !is_cold);
    }
    n
}

#[test]
#[cfg(feature = "jit")]
fn a_poll_that_is_not_due_neither_writes_nor_reads_references() {
    let mut config = Config::new();
    config.tier(Tier::Jit).epoch_interruption(true);
    let engine = Engine::new(&config).unwrap();
    let of_type = |ty: &str| {
        format!(
            "func run(n: i64, a: {ty}, b: {ty}) -> {ty} {{
               local other: {ty}
             next:
               local.get a  local.set other  local.get b  local.set a  local.get other  local.set b
               local.get n  i64.const 1  i64.sub  local.tee n  i64.eqz  i32.eqz  br_if next
               local.get a  return
             }}
             export \"run\" func run"
        )
    };
    let [references, numbers] =
        ["ref", "i64"].map(|ty| accesses_of_warm_blocks(&engine, &of_type(ty)));
    assert!(numbers > 0, "polls read the epoch");
    assert_eq!(references, numbers);
}

#[test]
fn handles_end_with_a_call_that_panics() {
    for kind in kinds(|_| {}) {
        let module = Module::from_text(
            &kind.engine,
            r#"import "env" "keep" func keep(ref)
            export "run" func run
            func run(object: ref) { local.get object call keep return }"#,
        )
        .unwrap();
        let mut store = Store::new(&kind.engine, None);
        let keep = |mut caller: Caller<'_, Option<Rooted>>, object: Option<Rooted>| {
            *caller.data_mut() = object;
            assert!(object.is_none(), "planned");
        };
        let keep = Func::wrap(&mut store, keep).unwrap();
        let instance = Instance::new(&mut store, &module, &[keep.into()]).unwrap();
        let run = instance.get_typed_func::<Option<Rooted>, ()>(&store, "run").unwrap();
        let object = Rooted::new(&mut store, 10);
        for _ in 0..3 {
            let called = std::panic::AssertUnwindSafe(|| run.call(&mut store, Some(object)));
            assert!(std::panic::catch_unwind(called).is_err(), "{kind}");
            let kept = store.data().unwrap();
            let read = std::panic::AssertUnwindSafe(|| kept.bits(&store));
            assert!(std::panic::catch_unwind(read).is_err(), "{kind}: the call has ended");
        }
        let mut n_roots = 0;
        store.visit_roots(|_| n_roots += 1).unwrap();
        assert_eq!(n_roots, 1, "{kind}");
        run.call(&mut store, None).unwrap();
    }
}

#[test]
fn handles_go_with_their_store_wherever_it_is_moved() {
    let engine = Engine::default();
    let (mut a, mut b) = (Store::new(&engine, 'a'), Store::new(&engine, 'b'));
    let (of_a, of_b) = (Rooted::new(&mut a, 2), Rooted::new(&mut b, 4));
    std::mem::swap(&mut a, &mut b);
    assert_eq!((of_a.bits(&b), of_b.bits(&a)), (2, 4));
    let mut scope = RootScope::new(&mut a);
    let inner = Rooted::new(&mut scope, 6);
    let read = std::panic::AssertUnwindSafe(|| of_a.bits(&scope));
    assert!(std::panic::catch_unwind(read).is_err(), "it is of the other store");
    drop(scope);
    let read = std::panic::AssertUnwindSafe(|| inner.bits(&b));
    assert!(std::panic::catch_unwind(read).is_err(), "it is of the other store, and has ended");
}
