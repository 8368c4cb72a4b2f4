//! Host functions that call back take the host's stack, and every engine stops them before it is used up.

use std::hint::black_box;
use std::thread;

use slotvm::{Caller, Engine, Error, Extern, InstancePre, Limits, Linker, Store, Tier, TrapCode};

use crate::support::{for_all_with, module};

const SOURCE: &str = r#"
    import "env" "back" func back()
    export "back" func back
    export "f" func f
    export "one" func one
    func f() { call back return }
    func one() -> i32 { i32.const 1 return }"#;

/// Instances of this call the host before anybody has them.
const STARTS: &str = r#"
    import "env" "back" func back()
    start f
    func f() { call back return }"#;

/// Way back from the host to guest code.
#[derive(Copy, Clone, Debug)]
enum Way {
    /// A call of a guest function.
    Call,
    /// A call of the host function itself, which guest code may have given to the host.
    CallHost,
    /// The start function of an instance.
    Start,
}

struct Data {
    way: Way,
    starts: Option<InstancePre<Data>>,
    n_calls: u32,
    kib: u32,
}

/// Calls a function with more bytes on the stack.
#[inline(never)]
fn deep(kib: u32, f: &mut dyn FnMut() -> Result<(), Error>) -> Result<(), Error> {
    let block = black_box([0_u8; 1024]);
    let result = if kib == 0 { f() } else { deep(kib - 1, f) };
    black_box(&block);
    result
}

fn back(mut caller: Caller<'_, Data>) -> Result<(), Error> {
    let data = caller.data_mut();
    data.n_calls += 1;
    let (way, kib, starts) = (data.way, data.kib, data.starts.clone());
    let call = |caller: &mut Caller<'_, Data>, name: &str| {
        let func = caller.get_export(name).and_then(Extern::into_func).expect("it is exported");
        func.call(caller, &[], &mut [])
    };
    deep(kib, &mut || match way {
        Way::Call => call(&mut caller, "f"),
        Way::CallHost => match caller.get_export("back").and_then(Extern::into_func) {
            Some(back) => back.call(&mut caller, &[], &mut []),
            // Called by the host, it knows no instance.
            None => back_again(&mut caller),
        },
        Way::Start => starts.as_ref().expect("there is one").instantiate(&mut caller).map(drop),
    })
}

fn back_again(caller: &mut Caller<'_, Data>) -> Result<(), Error> {
    let func = slotvm::Func::wrap(&mut *caller, back)?;
    func.call(caller, &[], &mut [])
}

/// Test on a thread with so much stack.
fn run_out(engine: &Engine, way: Way, kib: u32) {
    let mut linker = Linker::new(engine);
    linker.func_wrap("env", "back", back).unwrap();
    let starts = linker.instantiate_pre(&module(engine, STARTS)).unwrap();
    let mut store = Store::new(engine, Data { way, starts: Some(starts), n_calls: 0, kib });
    let instance = linker.instantiate(&mut store, &module(engine, SOURCE)).unwrap();
    let f = instance.get_typed_func::<(), ()>(&store, "f").unwrap();
    let one = instance.get_typed_func::<(), i32>(&store, "one").unwrap();
    let mut counts = Vec::new();
    for _ in 0..2 {
        store.data_mut().n_calls = 0;
        let error = f.call(&mut store, ()).unwrap_err();
        // Where the host takes little, the number of calls may come first.
        let too_many = kib <= 4 && matches!(error, Error::Limit { name: "host_calls_max", .. });
        let overflow = error.trap_code() == Some(TrapCode::StackOverflow);
        assert!(overflow || too_many, "{way:?}: {error}");
        // The store can be used, and nothing of the stack is lost to it.
        assert_eq!(one.call(&mut store, ()).unwrap(), 1);
        counts.push(store.data().n_calls);
    }
    // The first time, more is interpreted.
    let is_equal = counts[0] == counts[1] || engine.tier() == Tier::Auto;
    assert!(counts[0] > 0 && is_equal, "{way:?}: {counts:?}");
}

#[test]
fn host_functions_that_call_back_do_not_use_up_a_small_stack() {
    for calls_max in [100, u32::MAX] {
        let limits = || Limits { host_calls_max: calls_max, ..Limits::default() };
        for_all_with(
            |config| _ = config.limits(limits()),
            |engine| {
                thread::scope(|scope| {
                    for kib in [0, 4, 32, 64] {
                        let run = move || {
                            [Way::Call, Way::CallHost, Way::Start]
                                .map(|way| run_out(engine, way, kib))
                        };
                        // Modules are compiled by threads of their own here.
                        let thread = thread::Builder::new().stack_size(288 << 10);
                        let thread = thread.spawn_scoped(scope, run).unwrap();
                        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                    }
                });
            },
        );
    }
}

#[test]
fn the_configured_part_of_a_large_stack_is_respected() {
    for (bytes, few) in [(1 << 20, false), (64 << 10, true)] {
        let limits = || Limits { host_calls_max: 20, ..Limits::default() };
        for_all_with(
            |config| _ = config.limits(limits()).max_native_stack(bytes),
            |engine| {
                let run = || {
                    let mut linker = Linker::new(engine);
                    linker.func_wrap("env", "back", back).unwrap();
                    let data = Data { way: Way::Call, starts: None, n_calls: 0, kib: 16 };
                    let mut store = Store::new(engine, data);
                    let instance = linker.instantiate(&mut store, &module(engine, SOURCE)).unwrap();
                    let f = instance.get_typed_func::<(), ()>(&store, "f").unwrap();
                    let error = f.call(&mut store, ()).unwrap_err();
                    assert_eq!(error.trap_code() == Some(TrapCode::StackOverflow), few, "{error}");
                    assert_eq!(store.data().n_calls < 20, few);
                };
                thread::scope(|scope| {
                    let thread = thread::Builder::new().stack_size(4 << 20);
                    let thread = thread.spawn_scoped(scope, run).unwrap();
                    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                });
            },
        );
    }
}
