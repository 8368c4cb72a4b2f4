//! Native backtraces and the names that profilers learn.

use std::backtrace::Backtrace;
use std::sync::{Arc, Mutex};

use slotvm::{
    Caller, Config, Engine, Func, Linker, Module, ProfilingStrategy, Store, Tier, TrapCode,
};

use crate::support::{for_all, for_all_with, frames, instance, marked};

const SOURCE: &str = r#"
    import "env" "look" func look(i32)
    export "outer_guest" func outer_guest
    func outer_guest(n: i32) {
        local.get n  br_if deeper
        i32.const 1  call look  return
      deeper:
        local.get n  i32.const 1  i32.sub  call outer_guest  return
    }"#;

/// The names of the host's functions in the backtrace that a host function captures, and where it was
/// called: the innermost first.
#[inline(never)]
fn backtrace_below_guest(engine: &Engine) -> String {
    let module = Module::from_text(engine, SOURCE).unwrap();
    let found = Arc::new(Mutex::new(String::new()));
    let mut linker = Linker::new(engine);
    let result = found.clone();
    linker
        .func_wrap("env", "look", move |mut caller: Caller<'_, u32>, n: i32| {
            *caller.data_mut() += n as u32;
            *result.lock().unwrap() = Backtrace::force_capture().to_string();
        })
        .unwrap();
    let mut store = Store::new(engine, 0);
    let instance = linker.instantiate(&mut store, &module).unwrap();
    let f = instance.get_typed_func::<i32, ()>(&mut store, "outer_guest").unwrap();
    f.call(&mut store, 50).unwrap();
    assert_eq!(*store.data(), 1);
    let text = found.lock().unwrap();
    text.clone()
}

#[test]
#[cfg_attr(not(feature = "jit"), ignore = "needs native code")]
#[cfg(target_env = "gnu")]
fn backtraces_of_the_host_pass_through_native_frames() {
    // Inlined functions have no native frame.
    let engine =
        Engine::new(Config::new().tier(Tier::BEST).passes("-inline".parse().unwrap())).unwrap();
    // Code comes and goes; what is gone must not be in the way of what takes its place.
    for _ in 0..3 {
        let text = backtrace_below_guest(&engine);
        let place = |name: &str| text.find(name).unwrap_or_else(|| panic!("no {name} in {text}"));
        let host_function = place("host_call");
        // The closure that is the host function has its name, too, so the last one counts.
        let test = text.rfind("backtrace_below_guest").expect("a caller");
        assert!(host_function < test, "{text}");
        // Between them are the frames of guest functions, which have no symbol.
        let guests = text[host_function..test].matches("<unknown>").count();
        assert!(guests >= 51, "{text}");
    }
}

#[test]
#[cfg_attr(not(feature = "jit"), ignore = "needs native code")]
fn a_perf_map_names_guest_functions_and_trampolines() {
    let engine =
        Engine::new(Config::new().tier(Tier::BEST).profiler(ProfilingStrategy::PerfMap)).unwrap();
    // Both engines of the process write to one file.
    let second =
        Engine::new(Config::new().tier(Tier::BEST).profiler(ProfilingStrategy::PerfMap)).unwrap();
    let module = Module::from_text(&engine, SOURCE).unwrap();
    let source = SOURCE.replace("outer_guest", "second_guest");
    let second_module = Module::from_text(&second, &source).unwrap();
    // What leads to the host comes with the first function of the host.
    let mut store = Store::new(&second, ());
    Func::wrap(&mut store, |_: i32| ()).unwrap();
    let path = format!("/tmp/perf-{}.map", std::process::id());
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    let bytes_of = |name: &str| -> usize {
        let line = text.lines().find(|line| line.ends_with(name));
        let line = line.unwrap_or_else(|| panic!("no {name} in {text}"));
        usize::from_str_radix(line.split(' ').nth(1).unwrap(), 16).unwrap()
    };
    for (name, module) in [(" outer_guest", &module), (" second_guest", &second_module)] {
        let bytes = bytes_of(name);
        assert!(bytes > 0 && bytes <= module.code_bytes(), "{text}");
    }
    assert!(bytes_of(" trampoline to the host (i32) -> ()") > 0);
    let mut ranges: Vec<(usize, usize)> = text
        .lines()
        .map(|line| {
            let mut words = line.split(' ');
            let mut hex = || usize::from_str_radix(words.next().unwrap(), 16).unwrap();
            let (start, len) = (hex(), hex());
            (start, start + len)
        })
        .collect();
    ranges.sort();
    assert!(ranges.is_sorted_by(|a, b| a.1 <= b.0), "ranges overlap: {text}");
}

/// The leaf divides by 0 if `n` is 0.
const WALK: &str = r#"
    export "walk" func walk
    func walk(n: i32) -> i32 {
        local.get n  i32.const 2  i32.ge_s  br_if more
        i32.const 10  local.get n
        i32.div_s  return ; leaf
      more:
        local.get n  i32.const 1  i32.sub
        call walk ; first
        local.get n  i32.const 2  i32.sub
        call walk ; second
        i32.add  return
    }"#;

#[test]
fn a_trap_in_a_leaf_that_is_inlined_has_all_frames() {
    let line = |mark| ("walk".to_owned(), marked(WALK, mark)[0]);
    for_all(|engine| {
        let (mut store, instance) = instance(engine, WALK);
        let walk = instance.get_typed_func::<i32, i32>(&store, "walk").unwrap();
        assert_eq!(walk.call(&mut store, 1).unwrap(), 10);
        for n in 2..9 {
            let error = walk.call(&mut store, n).unwrap_err();
            assert_eq!(error.trap_code(), Some(TrapCode::IntegerDivisionByZero));
            let firsts = (2..n).map(|_| line("first"));
            let expected: Vec<_> =
                [line("leaf"), line("second")].into_iter().chain(firsts).collect();
            assert_eq!(frames(&error), expected);
        }
    });
}

/// Fuel and the cells of frames are charged in the leaf, though its test runs before.
#[test]
fn charges_of_a_leaf_that_is_inlined_end_where_they_do_elsewhere() {
    let source = WALK.replace("i32.div_s", "i32.add");
    let expected = std::cell::RefCell::new(None);
    let configure = |config: &mut Config| {
        config.consume_fuel(true).deterministic_stack(Some(30));
    };
    for_all_with(configure, |engine| {
        let (mut store, instance) = instance(engine, &source);
        let walk = instance.get_typed_func::<i32, i32>(&store, "walk").unwrap();
        let mut ends = Vec::new();
        for (n, fuel) in (0..250).map(|fuel| (6, fuel)).chain((0..40).map(|n| (n, 2_000))) {
            store.set_fuel(fuel).unwrap();
            let end = walk.call(&mut store, n).map_err(|error| (error.trap_code(), frames(&error)));
            ends.push((end, store.get_fuel().unwrap()));
        }
        let codes: Vec<_> = ends.iter().filter_map(|(end, _)| end.as_ref().err()?.0).collect();
        assert!(codes.contains(&TrapCode::OutOfFuel) && codes.contains(&TrapCode::StackOverflow));
        assert_eq!(*expected.borrow_mut().get_or_insert_with(|| ends.clone()), ends);
    });
}
