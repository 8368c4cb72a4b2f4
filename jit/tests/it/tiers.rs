//! Programs that are interpreted at first, and go on in native code.

use std::thread;
use std::time::Duration;

use slotvm::{
    Config, Engine, Instance, Linker, Module, Store, Tier, TierCompilation, TierThresholds,
};

/// An engine that makes native code when these thresholds are reached.
fn engine_by(compilation: TierCompilation, calls: u32, rounds: u32, passes: &str) -> Engine {
    let mut config = Config::new();
    config.tier(Tier::Auto).tier_thresholds(Some(TierThresholds { calls, rounds }));
    config.tier_compilation(compilation).passes(passes.parse().unwrap());
    Engine::new(&config).unwrap()
}

/// The same, at once.
fn engine(calls: u32, rounds: u32, passes: &str) -> Engine {
    engine_by(TierCompilation::Synchronous, calls, rounds, passes)
}

fn instance(engine: &Engine, source: &str) -> (Store<()>, Instance) {
    let module = Module::from_text(engine, source).unwrap();
    let mut store = Store::new(engine, ());
    let instance = Linker::new(engine).instantiate(&mut store, &module).unwrap();
    (store, instance)
}

/// Two functions that call each other, so often that either can be native while the other is not.
const EVEN_ODD: &str = r#"
    export "even" func even
    func even(n: i64) -> i64 {
        local.get n
        i64.eqz
        br_if yes
        local.get n
        i64.const 1
        i64.sub
        call odd
        return
      yes:
        i64.const 1
        return
    }
    func odd(n: i64) -> i64 {
        local.get n
        i64.eqz
        br_if no
        local.get n
        i64.const 1
        i64.sub
        call even
        return
      no:
        i64.const 0
        return
    }"#;

#[test]
fn calls_lead_from_each_tier_to_each() {
    for calls in [1, 2, 3, 7, 50, 1000] {
        let engine = engine(calls, 1, "-inline");
        let (mut store, instance) = instance(&engine, EVEN_ODD);
        let even = instance.get_typed_func::<i64, i64>(&store, "even").unwrap();
        for n in 0..200 {
            assert_eq!(even.call(&mut store, n).unwrap(), i64::from(n % 2 == 0), "{calls} {n}");
        }
    }
}

/// A function that goes round a loop with an inlined call, and then calls itself last.
const LOOP_AND_TAIL_CALL: &str = r#"
    global left: mut i32 = i32.const 50
    export "main" func main
    func small(a: i32) -> i32 {
        local.get a  i32.const 31  i32.mul  i32.const 5  i32.xor  return
    }
    func main(n: i32, a: i32) -> i32 {
        local i: i32
        local.get n  local.set i
      again:
        local.get a  call small  local.get i  i32.add  local.set a
        local.get i  i32.const 1  i32.sub  local.tee i
        i32.const 0  i32.gt_s  br_if again
        global.get left  i32.eqz  br_if end
        global.get left  i32.const 1  i32.sub  global.set left
        local.get n  local.get a  return_call main
      end:
        local.get a  return
    }"#;

/// In code that is entered in the loop, the entry of the function and that of the code are two things.
#[test]
fn a_function_calls_itself_last_after_a_loop_that_went_on_in_native_code() {
    let expected = {
        let engine = Engine::new(Config::new().tier(Tier::Interpreter)).unwrap();
        let (mut store, instance) = instance(&engine, LOOP_AND_TAIL_CALL);
        let main = instance.get_typed_func::<(i32, i32), i32>(&store, "main").unwrap();
        main.call(&mut store, (100, 1)).unwrap()
    };
    for (calls, rounds) in [(1, 1), (1_000, 7), (3, 50), (1_000, 1_000)] {
        let (mut store, instance) = instance(&engine(calls, rounds, "all"), LOOP_AND_TAIL_CALL);
        let main = instance.get_typed_func::<(i32, i32), i32>(&store, "main").unwrap();
        assert_eq!(main.call(&mut store, (100, 1)).unwrap(), expected, "{calls} {rounds}");
    }
}

/// Sums up to `n`, and what another sum makes of each step, in nested loops.
const SUMS: &str = r#"
    export "sum" func sum
    func sum(n: i64) -> i64 {
        local i: i64
        local j: i64
        local total: i64
      outer:
        local.get i
        local.get n
        i64.ge_s
        br_if done
        i64.const 0
        local.set j
      inner:
        local.get total
        local.get j
        i64.add
        local.set total
        local.get j
        i64.const 1
        i64.add
        local.tee j
        local.get i
        i64.le_s
        br_if inner
        local.get i
        i64.const 1
        i64.add
        local.set i
        br outer
      done:
        local.get total
        return
    }"#;

#[test]
fn loops_go_on_in_native_code() {
    for rounds in [1, 2, 3, 7, 50, 1000] {
        let engine = engine(1000, rounds, "all");
        let (mut store, instance) = instance(&engine, SUMS);
        let sum = instance.get_typed_func::<i64, i64>(&store, "sum").unwrap();
        let expected: i64 = (0..100).map(|i| i * (i + 1) / 2).sum();
        assert_eq!(sum.call(&mut store, 100).unwrap(), expected);
    }
}

/// A function with more loops than get native code of their own, one after the other and one in the other, which has
/// operands on the stack in one of them.
fn many_loops() -> String {
    let mut source = "export \"run\" func run\nfunc run(n: i64) -> i64 {\n local i: i64\n local j: i64\n local t: i64\n".to_owned();
    for k in 0..6 {
        source += &format!(
            "local.get n local.set i
            outer{k}:
            local.get n local.set j
            inner{k}:
            local.get t i64.const {} i64.mul local.get j i64.add local.set t
            local.get j i64.const 1 i64.sub local.tee j i64.eqz i32.eqz br_if inner{k}
            local.get i i64.const 1 i64.sub local.tee i i64.eqz i32.eqz br_if outer{k}\n",
            2 * k + 3
        );
    }
    source += "local.get t local.get n local.set i
        deep (i64): i64.const 7 i64.add
        local.get i i64.const 1 i64.sub local.tee i i64.eqz i32.eqz br_if deep
        return }";
    source
}

fn many_loops_in_rust(n: i64) -> i64 {
    let mut t = 0_i64;
    for k in 0..6 {
        for _ in 0..n {
            for j in (1..=n).rev() {
                t = t.wrapping_mul(2 * k + 3).wrapping_add(j);
            }
        }
    }
    t.wrapping_add(7 * n)
}

#[test]
fn all_loops_of_a_function_go_on_in_native_code() {
    let n = 40;
    for rounds in [1, 2, 3, 7, 30, 50, 500, 1000] {
        let (mut store, instance) = instance(&engine(1000, rounds, "all"), &many_loops());
        let run = instance.get_typed_func::<i64, i64>(&store, "run").unwrap();
        for _ in 0..3 {
            assert_eq!(run.call(&mut store, n).unwrap(), many_loops_in_rust(n), "{rounds}");
        }
    }
}

/// Compilations end whenever they do, in several threads that share a module.
/// A function, and a loop of another, that mostly wait for the host.
const WAITING: &str = r#"
    import "env" "wait" func wait()
    export "call" func call
    export "rounds" func rounds
    func call(n: i64) -> i64 {
        call wait  local.get n  return
    }
    func rounds(n: i64) -> i64 {
        local i: i64
      again:
        call wait
        local.get i  i64.const 1  i64.add  local.tee i  local.get n  i64.lt_s  br_if again
        local.get i  return
    }"#;

#[test]
fn what_takes_long_each_time_is_compiled() {
    let engine = engine_by(TierCompilation::Background, 1, 1, "all");
    let module = Module::from_text(&engine, WAITING).unwrap();
    let mut store = Store::new(&engine, ());
    let mut linker = Linker::new(&engine);
    // The compiler looks at once whether the program still comes here, which it does later only.
    linker.func_wrap("env", "wait", || thread::sleep(Duration::from_millis(1))).unwrap();
    let instance = linker.instantiate(&mut store, &module).unwrap();
    let rounds = instance.get_typed_func::<i64, i64>(&store, "rounds").unwrap();
    assert_eq!(rounds.call(&mut store, 300).unwrap(), 300);
    let n_loops = module.compile_stats().compiled();
    assert!(n_loops > 0);
    let call = instance.get_typed_func::<i64, i64>(&store, "call").unwrap();
    for n in 0..500 {
        assert_eq!(call.call(&mut store, n).unwrap(), n);
    }
    assert!(module.compile_stats().compiled() > n_loops);
}

/// A loop that calls a function after a loop inside of it. The function takes most of the time.
const CALLED_IN_A_LOOP: &str = r#"
    export "run" func run
    func mix(x: i64) -> i64 {
        local.get x  local.get x  i64.const 13  i64.shl  i64.xor  local.set x
        local.get x  local.get x  i64.const 7  i64.shr_u  i64.xor  local.set x
        local.get x  local.get x  i64.const 17  i64.shl  i64.xor  local.set x
        local.get x  local.get x  i64.const 5  i64.shr_u  i64.xor  return
    }
    func run(n: i64) -> i64 {
        local i: i64
        local x: i64
        i64.const 1  local.set x
      again:
        local.get x  i64.const 63  i64.and  local.set i
      inner:
        local.get i  i64.const 32  i64.sub  local.tee i  i64.const 0  i64.gt_s  br_if inner
        local.get x  call mix  local.set x
        local.get n  i64.const 1  i64.sub  local.tee n  i64.const 0  i64.gt_s  br_if again
        local.get x  return
    }"#;

#[test]
fn a_function_that_is_inlined_where_it_is_called_has_no_code_of_its_own() {
    let run = |passes: &str| {
        let mut config = Config::new();
        config.tier(Tier::Auto).tier_compilation(TierCompilation::Synchronous);
        config.passes(passes.parse().unwrap());
        let engine = Engine::new(&config).unwrap();
        let module = Module::from_text(&engine, CALLED_IN_A_LOOP).unwrap();
        let mut store = Store::new(&engine, ());
        let instance = Linker::new(&engine).instantiate(&mut store, &module).unwrap();
        let run = instance.get_typed_func::<i64, i64>(&store, "run").unwrap();
        (run.call(&mut store, 20_000).unwrap(), module.compile_stats().compiled())
    };
    let (result, n_compiled) = run("all");
    assert_eq!(n_compiled, 1, "the loop");
    assert_eq!(run("-inline"), (result, 2));
}

#[test]
fn threads_go_on_while_others_compile() {
    for (calls, rounds) in [(1, 1), (2, 3), (50, 200)] {
        let engine = engine_by(TierCompilation::Background, calls, rounds, "-inline");
        let source = many_loops() + &EVEN_ODD.replace("export", "\nexport");
        let module = Module::from_text(&engine, &source).unwrap();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut store = Store::new(&engine, ());
                    let instance = Instance::new(&mut store, &module, &[]).unwrap();
                    let run = instance.get_typed_func::<i64, i64>(&store, "run").unwrap();
                    let even = instance.get_typed_func::<i64, i64>(&store, "even").unwrap();
                    for n in 1..80 {
                        assert_eq!(run.call(&mut store, n).unwrap(), many_loops_in_rust(n));
                        let is_even = i64::from(n % 2 == 0);
                        assert_eq!(even.call(&mut store, n).unwrap(), is_even);
                    }
                });
            }
        });
        // In the end the hot functions are native.
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        let even = instance.get_typed_func::<i64, i64>(&store, "even").unwrap();
        for _ in 0..1_000_000 {
            even.call(&mut store, 10).unwrap();
            if module.functions().iter().any(|function| function.name == "even") {
                break;
            }
            thread::yield_now();
        }
        assert!(module.code_bytes() > 0 && !module.functions().is_empty());
    }
}

/// Engines and modules are dropped while something of them is compiled.
#[test]
fn what_is_being_compiled_can_be_dropped() {
    for i in 0..60 {
        let engine = engine_by(TierCompilation::Background, 1, 1, "all");
        let (mut store, instance) = instance(&engine, &many_loops());
        let run = instance.get_typed_func::<i64, i64>(&store, "run").unwrap();
        let n = 1 + i % 7;
        assert_eq!(run.call(&mut store, n).unwrap(), many_loops_in_rust(n));
        match i % 3 {
            0 => drop(engine),
            1 => drop(store),
            _ => {}
        }
    }
}

/// Two functions that call each other last, and one that neither is called with as many arguments.
const LAST_CALLS: &str = r#"
    export "even" func even
    func even(n: i64) -> i64 {
        local.get n
        i64.eqz
        br_if yes
        local.get n
        i64.const 1
        i64.sub
        i64.const 2
        i64.const 3
        return_call odd
      yes:
        i64.const 1
        return
    }
    func odd(n: i64, a: i64, b: i64) -> i64 {
        local.get n
        i64.eqz
        br_if no
        local.get n
        i64.const 1
        i64.sub
        local.get a
        local.get b
        i64.sub
        i64.add
        i64.const 1
        i64.add
        return_call even
      no:
        i64.const 0
        return
    }"#;

#[test]
fn last_calls_take_no_stack_in_any_tier() {
    for calls in [1, 2, 3, 7, 1000, 100_000] {
        for compilation in [TierCompilation::Synchronous, TierCompilation::Background] {
            let engine = engine_by(compilation, calls, 1, "-inline");
            // Each of the two is native before the other.
            for skipped in [0, 1] {
                let (mut store, instance) = instance(&engine, LAST_CALLS);
                let even = instance.get_typed_func::<i64, i64>(&store, "even").unwrap();
                for n in [skipped, 1_000_000 + skipped, 4, 1_000_001] {
                    assert_eq!(even.call(&mut store, n).unwrap(), i64::from(n % 2 == 0));
                }
            }
        }
    }
}

/// Two loops, one after the other, with something long in between, and another loop before all that.
fn two_loops() -> String {
    let long = "local.get x  i64.const 5  i64.add  i64.const 9  i64.xor  local.set x  ".repeat(40);
    format!(
        "export \"run\" func run
         export \"warm\" func warm
         func warm(n: i64) {{
         next:
           local.get n  i64.const 1  i64.sub  local.tee n  i64.const 0  i64.ne  br_if next
           return
         }}
         func run(n: i64) -> i64 {{
           local x: i64  local i: i64
         first:
           local.get x  local.get i  i64.xor  local.set x
           local.get i  i64.const 1  i64.add  local.tee i  local.get n  i64.lt_s  br_if first
           {long}
           i64.const 0  local.set i
         second:
           local.get x  i64.const 3  i64.mul  local.get i  i64.add  local.set x
           local.get i  i64.const 1  i64.add  local.tee i  local.get n  i64.lt_s  br_if second
           local.get x  return
         }}"
    )
}

/// The parts of a small module are there as soon as they are hot, if the first one was so a while ago. The code of each loop
/// leaves after it.
#[test]
fn the_program_makes_code_of_a_small_module_itself() {
    const N: i64 = 20_000;
    let engine = Engine::default();
    let module = Module::from_text(&engine, &two_loops()).unwrap();
    let mut store = Store::new(&engine, ());
    let instance = Linker::new(&engine).instantiate(&mut store, &module).unwrap();
    let warm = instance.get_typed_func::<i64, ()>(&store, "warm").unwrap();
    warm.call(&mut store, N).unwrap();
    thread::sleep(Duration::from_millis(2));
    let run = instance.get_typed_func::<i64, i64>(&store, "run").unwrap();
    let first = (0..N).fold(0, |x: i64, i| x ^ i);
    let between = (0..40).fold(first, |x: i64, _| x.wrapping_add(5) ^ 9);
    let expected = (0..N).fold(between, |x: i64, i| x.wrapping_mul(3).wrapping_add(i));
    assert_eq!(run.call(&mut store, N).unwrap(), expected);
    assert_eq!(module.exits_taken(), 1);
    assert!(module.code_bytes() > 0);
    for _ in 0..10 {
        assert_eq!(run.call(&mut store, N).unwrap(), expected);
    }
}
