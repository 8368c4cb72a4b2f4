//! Native code that is left for the interpreter, in the place of blocks that are drawn at random.

use slotvm::{
    Config, Engine, Error, Func, Instance, Limits, Linker, Module, Store, Tier, TierCompilation,
    TierThresholds, TrapCode,
};

/// An engine whose code has exits by this seed, from the first call or round on.
pub(crate) fn engine(seed: u64, configure: impl Fn(&mut Config)) -> Engine {
    let mut config = Config::new();
    config.tier(Tier::Auto).tier_thresholds(Some(TierThresholds { calls: 1, rounds: 1 }));
    config.tier_compilation(TierCompilation::Synchronous).tier_exits(seed, false);
    configure(&mut config);
    Engine::new(&config).unwrap()
}

pub(crate) fn instance(engine: &Engine, source: &str) -> (Store<()>, Module, Instance) {
    let module = Module::from_text(engine, source).unwrap();
    let mut store = Store::new(engine, ());
    let instance = Linker::new(engine).instantiate(&mut store, &module).unwrap();
    (store, module, instance)
}

/// Calls `main` with an argument, with exits by several seeds, and checks the result. Returns how often code was left.
fn taken(source: &str, n: i64, expected: i64, configure: impl Fn(&mut Config)) -> u64 {
    let mut n_taken = 0;
    for seed in 0..20 {
        let engine = engine(seed, &configure);
        let (mut store, module, instance) = instance(&engine, source);
        let main = instance.get_typed_func::<i64, i64>(&store, "main").unwrap();
        assert_eq!(main.call(&mut store, n).unwrap(), expected, "seed {seed}");
        n_taken += module.exits_taken();
    }
    n_taken
}

/// Calls `main` in one activation with as many exits as the argument, but for some at the start: ten millions if
/// `SLOTVM_FULL=1`. The result is that of `expected`.
pub(crate) fn take_many(
    source: &str,
    expected: impl Fn(i64) -> i64,
    configure: impl Fn(&mut Config),
) {
    let is_full = std::env::var("SLOTVM_FULL").as_deref() == Ok("1");
    let run = |seed: u64, n: i64| {
        let (mut store, module, instance) = instance(&engine(seed, &configure), source);
        let main = instance.get_typed_func::<i64, i64>(&store, "main").unwrap();
        assert_eq!(main.call(&mut store, n).unwrap(), expected(n), "seed {seed}");
        module.exits_taken() + 10 >= n as u64
    };
    // Code by most seeds is left less often.
    let seed = (0..20).find(|&seed| run(seed, 10_000)).expect("code is left each time");
    assert!(run(seed, if is_full { 10_000_000 } else { 100_000 }), "seed {seed}");
}

/// A loop whose round has two ways.
const LOOP: &str = "
    export \"main\" func main
    func main(n: i64) -> i64 {
      local sum: i64
    next:
      local.get n  i64.const 3  i64.and  i64.eqz  br_if other
      local.get sum  local.get n  i64.add  local.set sum
      br on
    other:
      local.get sum  i64.const 2  i64.mul  local.get n  i64.xor  local.set sum
    on:
      local.get n  i64.const 1  i64.sub  local.tee n  i64.const 0  i64.ne  br_if next
      local.get sum  return
    }";

fn sum(n: i64) -> i64 {
    let round = |sum: i64, n: i64| match n & 3 {
        0 => sum.wrapping_mul(2) ^ n,
        _ => sum.wrapping_add(n),
    };
    (1..=n).rev().fold(0, round)
}

#[test]
fn a_loop_is_left_and_entered_again() {
    take_many(LOOP, sum, |_| {});
}

/// Functions that call each other last: each leaves its native frame, or it would exhaust the native stack.
const TAIL_CALLS: &str = "
    export \"main\" func main
    func main(n: i64) -> i64 {
      local.get n  i64.const 0  return_call even
    }
    func even(n: i64, sum: i64) -> i64 {
      local.get n  i64.eqz  br_if end
      local.get n  i64.const 1  i64.sub  local.get sum  i64.const 3  i64.add  return_call odd
    end:
      local.get sum  return
    }
    func odd(n: i64, sum: i64) -> i64 {
      local.get n  i64.eqz  br_if end
      local.get n  i64.const 1  i64.sub  local.get sum  i64.const 5  i64.add  return_call even
    end:
      local.get sum  return
    }";

#[test]
fn the_native_stack_does_not_grow_with_exits() {
    for passes in ["all", "-inline"] {
        take_many(
            TAIL_CALLS,
            |n| n / 2 * 8,
            |config| {
                config.max_native_stack(128 << 10).passes(passes.parse().unwrap());
            },
        );
    }
}

/// A function whose frame is gone when the body that replaces its tail call is left, which has more parameters than itself.
const REPLACED: &str = "
    export \"main\" func main
    export \"narrow\" func narrow
    func main(n: i64) -> i64 {
      local sum: i64
    next:
      local.get sum  i64.const 3  i64.mul  local.get n  call narrow  i64.add  local.set sum
      local.get n  i64.const 1  i64.sub  local.tee n  i64.const 0  i64.ne  br_if next
      local.get sum  return
    }
    func narrow(n: i64) -> i64 {
      local.get n  i64.const 5  i64.const 7  return_call wide
    }
    func wide(a: i64, b: i64, c: i64) -> i64 {
      local d: i64
      local.get a  i64.const 7  i64.and  i64.eqz  br_if other
      local.get a  local.get b  i64.mul  local.get c  i64.add  return
    other:
      local.get c  local.get b  i64.sub  local.set d
      local.get a  local.get d  i64.xor  return
    }";

#[test]
fn bodies_that_replace_tail_calls_are_left() {
    let narrow = |n: i64| if n & 7 == 0 { n ^ 2 } else { n * 5 + 7 };
    let main = |n: i64| (1..=n).rev().fold(0_i64, |sum, n| sum.wrapping_mul(3) + narrow(n));
    assert!(taken(REPLACED, 40, main(40), |_| {}) > 0, "in the loop, while `main` waits");
    let mut n_taken = 0;
    for seed in 0..20 {
        let (mut store, module, instance) = instance(&engine(seed, |_| {}), REPLACED);
        let func = instance.get_typed_func::<i64, i64>(&store, "narrow").unwrap();
        for n in 0..100 {
            assert_eq!(func.call(&mut store, n).unwrap(), narrow(n), "seed {seed}");
        }
        n_taken += module.exits_taken();
    }
    assert!(n_taken > 0, "in the place of what the host has called");
}

/// Calls that are no tail calls, from native code to code that leaves its frame.
const RECURSION: &str = "
    export \"main\" func main
    func main(n: i64) -> i64 {
      local.get n  i64.const 2  i64.lt_s  br_if end
      local.get n  i64.const 1  i64.sub  call main
      local.get n  i64.const 2  i64.sub  call main
      i64.add  return
    end:
      local.get n  return
    }";

#[test]
fn frames_that_call_and_are_called_are_left() {
    for passes in ["all", "-inline"] {
        let n_taken = taken(RECURSION, 15, 610, |config| {
            config.passes(passes.parse().unwrap());
        });
        assert!(n_taken > 1_000, "{n_taken}");
    }
}

/// A store that was made when the code was there has never interpreted the function.
#[test]
fn a_function_that_was_native_from_the_start_is_left() {
    let mut n_taken = 0;
    for seed in 0..20 {
        let engine = engine(seed, |_| {});
        let (mut store, module, instance) = instance(&engine, RECURSION);
        let main = instance.get_typed_func::<i64, i64>(&store, "main").unwrap();
        assert_eq!(main.call(&mut store, 12).unwrap(), 144);
        let n_before = module.exits_taken();
        let mut store = Store::new(&engine, ());
        // So code of the interpreter is not that of the other store, where handlers end with jumps.
        store.interpret_by_loop();
        let instance = Linker::new(&engine).instantiate(&mut store, &module).unwrap();
        let main = instance.get_typed_func::<i64, i64>(&store, "main").unwrap();
        assert_eq!(main.call(&mut store, 12).unwrap(), 144);
        n_taken += module.exits_taken() - n_before;
    }
    assert!(n_taken > 1_000, "{n_taken}");
}

/// Threads make and leave the code of one module at once. What the slower one made may be called, too.
#[test]
fn threads_leave_the_code_of_one_module() {
    let mut n_taken = 0;
    for seed in 0..20 {
        let engine = engine(seed, |_| {});
        let module = Module::from_text(&engine, RECURSION).unwrap();
        let run = || {
            let mut store = Store::new(&engine, ());
            let instance = Linker::new(&engine).instantiate(&mut store, &module).unwrap();
            let main = instance.get_typed_func::<i64, i64>(&store, "main").unwrap();
            assert_eq!(main.call(&mut store, 15).unwrap(), 610, "seed {seed}");
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(run);
            }
        });
        n_taken += module.exits_taken();
    }
    assert!(n_taken > 4_000, "{n_taken}");
}

/// Values of all types, in locals and on the operand stack, are what they were.
#[test]
fn all_types_reach_the_frame() {
    let source = "
        export \"main\" func main
        memory m 1
        func g(a: i32, b: i64, c: f32, d: f64, v: v128, n: i64) -> (i64, f64, v128, i32, f32) {
          i32.const 7
          f64.const 2.5
          local.get v
          local.get n  i64.eqz  br_if zero
        one(i32, f64, v128):
          local.get b  i64.const 1  i64.add  local.set b
          br end
        zero(i32, f64, v128):
          local.get b  i64.const 2  i64.add  local.set b
        end(i32, f64, v128):
          local.set v  local.get d  f64.add  local.set d
          local.get a  i32.add  local.set a
          local.get b  local.get d  local.get v  local.get a  local.get c  return
        }
        func main(n: i64) -> i64 {
          local sum: i64
        next:
          i32.const 11  local.get sum  f32.const 1.5  f64.const 0.5
          v128.const i32x4 1 3 0 9
          local.get n  i64.const 1  i64.and
          call g
          f32.const 1.5  f32.ne  br_if wrong
          i32.const 18  i32.ne  br_if wrong2
          i64x2.extract_lane 0  i64.const 0x300000001  i64.ne  br_if wrong3
          f64.const 3  f64.ne  br_if wrong4
          local.set sum
          local.get n  i64.const 1  i64.sub  local.tee n  i64.const 0  i64.ne  br_if next
          local.get sum  return
        wrong(i64, f64, v128, i32):
          drop
        wrong2(i64, f64, v128):
          drop
        wrong3(i64, f64):
          drop
        wrong4(i64):
          drop  i64.const -1  return
        }";
    let n = 100;
    for passes in ["all", "-inline"] {
        let n_taken = taken(source, n, n / 2 * 3, |config| {
            config.passes(passes.parse().unwrap());
        });
        assert!(n_taken > 100, "{n_taken}");
    }
}

/// Where there is no room for the frame, the stack overflows at the start of the block.
#[test]
fn the_stack_may_overflow_where_code_is_left() {
    let mut n_at_exits = 0;
    for seed in 0..20 {
        let engine = engine(seed, |config| {
            config.limits(Limits { interp_cells_max: 500, ..Limits::default() });
        });
        let (mut store, module, instance) = instance(&engine, RECURSION);
        let main = instance.get_typed_func::<i64, i64>(&store, "main").unwrap();
        let error = main.call(&mut store, 1 << 40).unwrap_err();
        let Error::Trap(trap) = &error else { panic!("seed {seed}: {error}") };
        assert_eq!(trap.code, TrapCode::StackOverflow, "seed {seed}");
        // Calls overflow where they enter a function, at its start.
        let place = trap.frames()[0].offset;
        let blocks = &module.verified().body(0).expect("it is defined").blocks;
        assert!(blocks.iter().any(|block| block.start == place), "seed {seed}: {error}");
        n_at_exits += usize::from(place > 0);
        assert_eq!(main.call(&mut store, 10).unwrap(), 55);
    }
    assert!((1..20).contains(&n_at_exits), "{n_at_exits}");
}

/// The host is called, and calls back, between exits.
#[test]
fn host_functions_call_code_that_is_left() {
    let source = "
        import \"env\" \"again\" func again(i64) -> i64
        export \"main\" func main
        func main(n: i64) -> i64 {
          local.get n  i64.eqz  br_if end
          local.get n  i64.const 1  i64.and  i64.eqz  br_if even
          local.get n  i64.const 1  i64.sub  call again  i64.const 1  i64.add  return
        even:
          local.get n  i64.const 1  i64.sub  call again  i64.const 2  i64.add  return
        end:
          i64.const 0  return
        }";
    let mut n_taken = 0;
    for seed in 0..20 {
        let engine = engine(seed, |_| {});
        let module = Module::from_text(&engine, source).unwrap();
        let mut store = Store::new(&engine, None::<Instance>);
        let mut linker = Linker::new(&engine);
        let again = |mut caller: slotvm::Caller<'_, Option<Instance>>, n: i64| {
            let instance = caller.data().expect("it was instantiated");
            let main = instance.get_typed_func::<i64, i64>(&caller, "main")?;
            main.call(&mut caller, n)
        };
        let again = Func::wrap(&mut store, again).unwrap();
        linker.define(&store, "env", "again", again).unwrap();
        let instance = linker.instantiate(&mut store, &module).unwrap();
        *store.data_mut() = Some(instance);
        let main = instance.get_typed_func::<i64, i64>(&store, "main").unwrap();
        assert_eq!(main.call(&mut store, 40).unwrap(), 60, "seed {seed}");
        n_taken += module.exits_taken();
    }
    assert!(n_taken > 100, "{n_taken}");
}
