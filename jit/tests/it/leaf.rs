//! Leaf functions: how they are called, what imports accept them, and what stack they have.

use std::cell::Cell;
use std::ffi::c_void;

use slotvm::{Engine, Error, Func, LeafFunc, LinkError, Linker, Store, TrapCode};

use crate::support::{for_all, instance_with, module};

type Nothing = unsafe extern "C" fn(*mut c_void);
type OfI64 = unsafe extern "C" fn(*mut c_void, i64) -> i64;
type OfNumbers = unsafe extern "C" fn(*mut c_void, i32, f64) -> f32;
#[rustfmt::skip]
type Twelve = unsafe extern "C" fn(
    *mut c_void, i32, i64, f32, f64, u32, u64, f32, f64, i32, i64, f32, f64,
) -> f64;

thread_local! {
    static N_CALLS: Cell<u32> = const { Cell::new(0) };
}

unsafe extern "C" fn nothing(_: *mut c_void) {
    N_CALLS.set(N_CALLS.get() + 1);
}

unsafe extern "C" fn plus(data: *mut c_void, x: i64) -> i64 {
    data.addr() as i64 + x
}

unsafe extern "C" fn times(data: *mut c_void, x: i64) -> i64 {
    data.addr() as i64 * x
}

unsafe extern "C" fn narrow(_: *mut c_void, a: i32, b: f64) -> f32 {
    a as f32 - b as f32
}

#[rustfmt::skip]
unsafe extern "C" fn twelve(
    _: *mut c_void, a: i32, b: i64, c: f32, d: f64, e: u32, f: u64, g: f32, h: f64, i: i32, j: i64, k: f32, l: f64,
) -> f64 {
    let ints = [a as f64, b as f64, e as f64, f as f64, i as f64, j as f64];
    let floats = [c as f64, d, g as f64, h, k as f64, l];
    let weigh = |all: [f64; 6]| (1..).zip(all).map(|(weight, x)| f64::from(weight) * x).sum::<f64>();
    weigh(ints) + 100.0 * weigh(floats)
}

/// A leaf function with an address that is a number.
fn of_i64(function: OfI64, data: usize) -> LeafFunc {
    // SAFETY: it computes with its arguments, of which it takes none for an address.
    unsafe { LeafFunc::new(function, std::ptr::without_provenance_mut(data), 1024) }.unwrap()
}

fn linker<T: 'static>(engine: &Engine, data: usize) -> Linker<T> {
    let mut linker = Linker::new(engine);
    // SAFETY: all of them compute with their arguments, or count in a variable of the thread.
    let leaves = unsafe {
        let null = std::ptr::null_mut();
        [
            ("nothing", LeafFunc::new(nothing as Nothing, null, 256)),
            ("narrow", LeafFunc::new(narrow as OfNumbers, null, 256)),
            ("twelve", LeafFunc::new(twelve as Twelve, null, 4096)),
        ]
    };
    for (name, leaf) in leaves {
        linker.func_wrap_leaf("env", name, &leaf.unwrap()).unwrap();
    }
    linker.func_wrap_leaf("env", "f", &of_i64(plus, data)).unwrap();
    linker
}

#[test]
fn functions_of_all_shapes() {
    let source = r#"
        import "env" "nothing" leaf func nothing()
        import "env" "narrow" leaf func narrow(i32, f64) -> f32
        import "env" "twelve" leaf func twelve(i32, i64, f32, f64, i32, i64, f32, f64, i32, i64, f32, f64) -> f64
        export "run" func run
        func run() -> (f64, f32) {
          call nothing
          i32.const -1 i64.const -2 f32.const 3.0 f64.const 4.0
          i32.const -1 i64.const -6 f32.const 7.0 f64.const 8.0
          i32.const 9 i64.const 10 f32.const 11.0 f64.const 12.0
          call twelve
          i32.const -20 f64.const 0.5
          call narrow
          return
        }"#;
    for_all(|engine| {
        let (mut store, instance) = instance_with(engine, source, &linker(engine, 0), ());
        let run = instance.get_typed_func::<(), (f64, f32)>(&store, "run").unwrap();
        N_CALLS.set(0);
        let ints = -1.0 - 4.0 + 3.0 * 4294967295.0 + 4.0 * 18446744073709551610.0 + 45.0 + 60.0;
        let floats = 3.0 + 8.0 + 21.0 + 32.0 + 55.0 + 72.0;
        for n in 1..=5 {
            assert_eq!(run.call(&mut store, ()).unwrap(), (ints + 100.0 * floats, -20.5));
            assert_eq!(N_CALLS.get(), n);
        }
    });
}

/// Calls in a loop, out of an inlined function, in tail position, through a table, and of an exported import.
const CALLS: &str = r#"
    import "env" "f" leaf func f(i64) -> i64
    import "env" "g" func g(i64) -> i64
    table t funcref 2
    elem e t at i32.const 0 func f, g
    export "f" func f
    export "loop" func loop
    export "tail" func tail
    export "through" func through
    func small(x: i64) -> i64 { local.get x  call f  call g  return }
    func loop(n: i64) -> i64 {
        local sum: i64
      again:
        local.get sum  local.get n  call f  i64.add
        local.get n  call small  i64.add  local.set sum
        local.get n  i64.const 1  i64.sub  local.tee n
        i64.eqz  i32.eqz  br_if again
        local.get sum  return
    }
    func tail(x: i64) -> i64 { local.get x  i64.const 1  i64.add  return_call f }
    func through(x: i64, i: i32) -> i64 { local.get x  local.get i  call_indirect (i64) -> i64, t  return }"#;

#[test]
fn all_ways_to_call() {
    for_all(|engine| {
        let mut linker = linker(engine, 1000);
        linker.func_wrap_leaf("env", "g", &of_i64(times, 3)).unwrap();
        let (mut store, instance) = instance_with(engine, CALLS, &linker, ());
        let of_i64 =
            |store: &Store<()>, name| instance.get_typed_func::<i64, i64>(store, name).unwrap();
        let (sum, tail, f) = (of_i64(&store, "loop"), of_i64(&store, "tail"), of_i64(&store, "f"));
        let through = instance.get_typed_func::<(i64, i32), i64>(&store, "through").unwrap();
        for n in 1..=8 {
            let expected: i64 = (1..=n).map(|n| 1000 + n + 3 * (1000 + n)).sum();
            assert_eq!(sum.call(&mut store, n).unwrap(), expected);
            assert_eq!(tail.call(&mut store, n).unwrap(), 1001 + n);
            assert_eq!(f.call(&mut store, n).unwrap(), 1000 + n);
            assert_eq!(through.call(&mut store, (n, 0)).unwrap(), 1000 + n);
            assert_eq!(through.call(&mut store, (n, 1)).unwrap(), 3 * n);
        }
    });
}

#[test]
fn instances_that_share_code_have_functions_of_their_own() {
    for_all(|engine| {
        let module = module(engine, CALLS);
        let mut store = Store::new(engine, ());
        let instances: Vec<_> = (1..=4)
            .map(|i| {
                let mut linker = linker(engine, i);
                linker.func_wrap("env", "g", move |x: i64| x * i as i64).unwrap();
                linker.instantiate(&mut store, &module).unwrap()
            })
            .collect();
        for round in 0..3 {
            for (i, instance) in (1..).zip(&instances) {
                let sum = instance.get_typed_func::<i64, i64>(&store, "loop").unwrap();
                let expected: i64 = (1..=5).map(|n| i + n + i * (i + n)).sum();
                assert_eq!(sum.call(&mut store, 5).unwrap(), expected, "{i} in round {round}");
            }
        }
    });
}

#[test]
fn leaf_imports_accept_nothing_else() {
    let source = r#"
        import "env" "f" leaf func f(i64) -> i64
        export "f" func f
        export "own" func own
        func own(x: i64) -> i64 { local.get x  return }"#;
    for_all(|engine| {
        let module = module(engine, source);
        let mut store = Store::new(engine, ());
        let refused = |store: &mut Store<()>, func: Func| {
            let mut linker = Linker::new(engine);
            linker.define(&*store, "env", "f", func).unwrap();
            match linker.instantiate(store, &module) {
                Err(Error::Link(LinkError::Type { module, name, expected, found })) => {
                    assert_eq!((module.as_str(), name.as_str()), ("env", "f"));
                    assert_eq!(expected, "leaf function (i64) -> (i64)");
                    found
                }
                other => panic!("{other:?}"),
            }
        };
        let ordinary = Func::wrap(&mut store, |x: i64| x).unwrap();
        assert_eq!(refused(&mut store, ordinary), "function (i64) -> (i64)");

        // SAFETY: it counts in a variable of the thread.
        let other = unsafe { LeafFunc::new(nothing as Nothing, std::ptr::null_mut(), 256) };
        let other = Func::wrap_leaf(&mut store, &other.unwrap()).unwrap();
        assert_eq!(refused(&mut store, other), "leaf function () -> ()");

        let leaf = Func::wrap_leaf(&mut store, &of_i64(plus, 7)).unwrap();
        let mut linker = Linker::new(engine);
        linker.define(&store, "env", "f", leaf).unwrap();
        let instance = linker.instantiate(&mut store, &module).unwrap();
        let own = instance.get_func(&store, "own").unwrap();
        assert_eq!(refused(&mut store, own), "function (i64) -> (i64)");

        // An import that is exported is the leaf function that it was given.
        let again = instance.get_func(&store, "f").unwrap();
        let mut linker = Linker::new(engine);
        linker.define(&store, "env", "f", again).unwrap();
        let instance = linker.instantiate(&mut store, &module).unwrap();
        let f = instance.get_typed_func::<i64, i64>(&store, "f").unwrap();
        assert_eq!(f.call(&mut store, 1).unwrap(), 8);
    });
}

#[test]
fn missing_leaf_imports_are_not_made_up() {
    let engine = Engine::default();
    let module = module(&engine, "import \"env\" \"f\" leaf func f()");
    let mut linker = Linker::<()>::new(&engine);
    linker.define_unknown_imports_as_default_values(&module);
    let mut store = Store::new(&engine, ());
    let error = linker.instantiate(&mut store, &module).unwrap_err();
    assert_eq!(
        error.to_string(),
        "import `env` `f`: nothing has this name, expected leaf function () -> ()"
    );
}

const STACK_BYTES: usize = 60 << 10;

/// Writes to most of the stack that it may take.
unsafe extern "C" fn deep(_: *mut c_void, x: i64) -> i64 {
    let mut bytes = [0u8; STACK_BYTES];
    for i in (0..STACK_BYTES).step_by(512) {
        bytes[i] = (i as i64 + x) as u8;
    }
    std::hint::black_box(&mut bytes);
    i64::from(bytes[0])
}

#[test]
fn guest_code_leaves_them_their_stack() {
    let source = r#"
        import "env" "deep" leaf func deep(i64) -> i64
        export "down" func down
        func down(x: i64) -> i64 {
          local.get x  call deep  drop
          local.get x  i64.const 1  i64.add  call down
          i64.const 1  i64.add  return
        }"#;
    for_all(|engine| {
        let module = module(engine, source);
        // The limit of the configuration lies beyond the end of this stack, so guest code ends where the reserve begins.
        let run = || {
            let mut linker = Linker::new(engine);
            // SAFETY: it writes to its own frame.
            let leaf =
                unsafe { LeafFunc::new(deep as OfI64, std::ptr::null_mut(), STACK_BYTES + 1024) };
            linker.func_wrap_leaf("env", "deep", &leaf.unwrap()).unwrap();
            let mut store = Store::new(engine, ());
            let instance = linker.instantiate(&mut store, &module).unwrap();
            let down = instance.get_typed_func::<i64, i64>(&store, "down").unwrap();
            for _ in 0..3 {
                let error = down.call(&mut store, 0).unwrap_err();
                assert_eq!(error.trap_code(), Some(TrapCode::StackOverflow), "{error}");
            }
        };
        std::thread::scope(|scope| {
            std::thread::Builder::new().stack_size(384 << 10).spawn_scoped(scope, run).unwrap();
        });
    });
}

#[test]
fn the_stack_that_they_may_take_is_limited() {
    // SAFETY: it counts in a variable of the thread.
    let leaf = |bytes| unsafe { LeafFunc::new(nothing as Nothing, std::ptr::null_mut(), bytes) };
    assert_eq!(leaf(64 << 10).unwrap().ty().to_string(), "() -> ()");
    let error = leaf((64 << 10) + 1).unwrap_err();
    assert_eq!(error.to_string(), "limit LEAF_STACK_BYTES_MAX (65536) exceeded: 65537 wanted");
}

#[cfg(feature = "jit")]
#[test]
fn native_code_calls_them_by_the_c_convention() {
    let engine = Engine::default();
    let module = module(&engine, CALLS);
    // Function 4 is `tail`.
    let Some(tail) = module.clif(4).unwrap() else { panic!("the engine makes native code") };
    assert!(tail.contains("system_v") && !tail.contains("return_call"), "{tail}");
}
