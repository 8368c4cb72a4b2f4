//! Indirect calls that native code compares with the functions that they have called so far.

use slotvm::{
    Config, Engine, Func, Linker, Module, Store, Tier, TierCompilation, TierThresholds, Val,
};

use crate::exits::instance;
use crate::inlined_exits::engine;

/// A loop that calls a function by its place in a table, while operands and a local wait. The last round calls another one.
/// All of them divide by `y`; their frames are inlined.
const SOURCE: &str = "
    table t funcref 6 6
    export \"t\" table t
    export \"run\" func run
    elem some t at i32.const 0 func add, sub, xor
    elem other t at i32.const 4 func unlike
    func add(x: i64, y: i64) -> i64 {
      local.get x  local.get x  local.get y  i64.div_s  i64.add  return
    }
    func sub(x: i64, y: i64) -> i64 {
      local.get x  local.get x  local.get y  i64.div_s  i64.sub  return
    }
    func xor(x: i64, y: i64) -> i64 {
      local.get x  local.get x  local.get y  i64.div_s  i64.xor  return
    }
    func unlike(x: i64) -> i64 { local.get x  return }
    func apply(x: i64, y: i64, at: i64) -> i64 {
      local twice: i64
      local.get x  i64.const 2  i64.mul  local.set twice
      local.get twice  i64.const 5
      local.get x  local.get y  local.get at  i32.wrap_i64  call_indirect (i64, i64) -> i64, t
      i64.xor  local.set twice  i64.const 1  i64.add
      local.get twice  i64.add  return
    }
    func run(n: i64, at: i64, last: i64, y: i64) -> i64 {
      local sum: i64
    next:
      local.get sum
      local.get n
      local.get y
      local.get at  local.get last  local.get n  i64.const 1  i64.ne  select
      call apply
      i64.xor  local.set sum
      local.get n  i64.const 1  i64.sub  local.tee n  i64.const 0  i64.ne  br_if next
      local.get sum  return
    }";

type Args = (i64, i64, i64, i64);

/// Calls `run` in the interpreter and in tiers. The outcomes are the same. Returns how often native code was left each time.
fn compare(calls: &[Args], configure: impl Fn(&mut Config)) -> Vec<u64> {
    let [mut interpreted, mut tiered] = [Tier::Interpreter, Tier::Auto].map(|tier| {
        let (store, module, instance) = instance(&engine(tier, &configure), SOURCE);
        let run = instance.get_typed_func::<Args, i64>(&store, "run").unwrap();
        (store, module, run)
    });
    let outcome = |&args: &Args| {
        let before = tiered.1.exits_taken();
        let [expected, found] = [&mut interpreted, &mut tiered]
            .map(|(store, _, run)| format!("{:?}", run.call(store, args)));
        assert_eq!(found, expected, "{args:?}");
        tiered.1.exits_taken() - before
    };
    calls.iter().map(outcome).collect()
}

#[test]
fn code_is_left_after_calls_of_others() {
    let n_exits = compare(
        &[(1_000, 0, 0, 3), (1_000, 0, 0, 1), (500, 0, 1, 2), (2, 0, 2, 3), (1, 0, 0, 7)],
        |_| {},
    );
    assert_eq!(n_exits, [0, 0, 1, 1, 0]);
}

#[test]
fn calls_of_two_functions_are_compared_with_both() {
    let n_exits = compare(
        &[(1_000, 0, 1, 3), (100, 1, 0, 3), (1_000, 1, 0, 3), (50, 0, 2, 1), (50, 1, 2, 1)],
        // The first call has seen both functions before there is code of `run`.
        |config| {
            config.tier_thresholds(Some(TierThresholds { calls: 1_001, rounds: 1_001 }));
        },
    );
    assert_eq!(n_exits, [0, 0, 0, 1, 1]);
}

/// Each trap has its code and its place, in all frames.
#[test]
fn what_is_called_traps_as_before() {
    for warm in [(1_000, 0, 0, 3), (1_000, 0, 1, 3)] {
        // Division by zero in a function that is inlined, and in another one; null, another type, and no entry.
        let last = [(50, 0, 0, 0), (50, 2, 2, 0), (50, 0, 3, 3), (50, 0, 4, 3), (50, 0, 9, 3)];
        for trapping in last {
            let n_exits = compare(&[warm, trapping, (1, 0, 0, 3), trapping], |_| {});
            let of_warm = u64::from(warm.1 != warm.2);
            assert_eq!(n_exits, [of_warm, 0, 0, 0], "{trapping:?}");
        }
    }
}

/// Newer versions compare with more functions, and at last with none.
#[test]
fn code_that_is_left_often_learns_of_others() {
    let n_exits = compare(
        &[
            (1_000, 0, 0, 3),
            (5_000, 1, 1, 3),
            (5_000, 1, 0, 3),
            (5_000, 0, 1, 3),
            (5_000, 2, 2, 3),
            (5_000, 2, 1, 3),
            (5_000, 0, 2, 3),
        ],
        |_| {},
    );
    assert_eq!(n_exits[0], 0);
    assert!((1..100).contains(&n_exits[1]), "{n_exits:?}");
    assert!((1..100).contains(&n_exits[4]), "{n_exits:?}");
    // The code of the function is left when it is called, and that of its loop, which is newer, goes on.
    for known in [2, 3, 5, 6] {
        assert!(n_exits[known] <= 1, "{n_exits:?}");
    }
}

/// Threads that run one module note what they call, make code, leave it, and make newer versions, all at once.
#[test]
fn threads_share_what_was_called() {
    let calls: Vec<Args> = (0..200).map(|i| (200, i % 3, i / 40 % 3, 1 + i % 5)).collect();
    let outcomes = |engine: &Engine, module: &Module| -> Vec<i64> {
        let mut store = Store::new(engine, ());
        let instance = Linker::new(engine).instantiate(&mut store, module).unwrap();
        let run = instance.get_typed_func::<Args, i64>(&store, "run").unwrap();
        calls.iter().map(|&args| run.call(&mut store, args).unwrap()).collect()
    };
    let interpreter = engine(Tier::Interpreter, |_| {});
    let expected = outcomes(&interpreter, &Module::from_text(&interpreter, SOURCE).unwrap());
    for compilation in [TierCompilation::Synchronous, TierCompilation::Background] {
        let engine = engine(Tier::Auto, |config| _ = config.tier_compilation(compilation));
        let module = Module::from_text(&engine, SOURCE).unwrap();
        std::thread::scope(|scope| {
            let threads = [(); 4].map(|()| scope.spawn(|| outcomes(&engine, &module)));
            for thread in threads {
                assert_eq!(thread.join().unwrap(), expected);
            }
        });
    }
}

/// Functions of another instance and of the host are never compared with.
#[test]
fn functions_of_others_are_called_as_before() {
    let outcomes = [Tier::Interpreter, Tier::Auto].map(|tier| {
        let engine = engine(tier, |_| {});
        let (mut store, module, instance) = instance(&engine, SOURCE);
        let run = instance.get_typed_func::<Args, i64>(&store, "run").unwrap();
        let table = instance.get_table(&store, "t").unwrap();
        let other = Linker::new(&engine).instantiate(&mut store, &module).unwrap();
        let host = Func::wrap(&mut store, |x: i64, y: i64| x * 100 + y).unwrap();
        let own = table.get(&mut store, 0).unwrap();
        let others = other.get_table(&store, "t").unwrap().get(&mut store, 0).unwrap();
        let host = Val::FuncRef(Some(host));
        let mut outcomes = Vec::new();
        for callee in [own, host, own, others, own] {
            table.set(&mut store, 0, callee).unwrap();
            outcomes.push(run.call(&mut store, (1_000, 0, 0, 3)).unwrap());
        }
        (outcomes, module.exits_taken())
    });
    let [(expected, _), (found, n_exits)] = outcomes;
    assert_eq!(found, expected);
    assert_eq!(found[0], found[3], "it does the same");
    assert_ne!(found[0], found[1]);
    // The next version calls as before.
    assert!((1..100).contains(&n_exits), "{n_exits}");
}

/// A function with many calls of functions that change each thousand times.
#[test]
fn what_programs_that_change_their_mind_have_compiled_is_bounded() {
    let add = |n: u32| "local.get x  i64.const 1  i64.add  local.set x ".repeat(n as usize);
    for n_locals in [0, 60] {
        let locals = "local i64 ".repeat(n_locals);
        let call = "local.get x  local.get at  call_indirect (i64) -> i64, t  local.set x\n";
        let writes: String =
            (0..n_locals).map(|i| format!("local.get x  local.set {}\n", i + 2)).collect();
        let reads: String = (0..n_locals)
            .map(|i| format!("local.get x  local.get {}  i64.xor  local.set x\n", i + 2))
            .collect();
        let funcs: String = (0..4)
            .map(|i| format!("func g{i}(x: i64) -> i64 {{ {} local.get x  return }}\n", add(5 + i)))
            .collect();
        let source = format!(
            "table t funcref 4 4
             export \"t\" table t
             export \"step\" func step
             elem all t at i32.const 0 func g0, g1, g2, g3
             {funcs}
             func step(x: i64, at: i32) -> i64 {{ {locals} {writes} {} {reads} local.get x  return }}",
            call.repeat(300)
        );
        let whole = {
            let mut config = Config::new();
            config.tier(Tier::Jit);
            Module::from_text(&Engine::new(&config).unwrap(), &source).unwrap().code_bytes()
        };
        let (mut store, module, instance) = instance(&engine(Tier::Auto, |_| {}), &source);
        let step = instance.get_typed_func::<(i64, i32), i64>(&store, "step").unwrap();
        for i in 0..16_000 {
            let at = i / 1_000 % 4;
            // The locals all hold 1, and there is an even number of them.
            let expected = 1 + 300 * i64::from(5 + at);
            assert_eq!(step.call(&mut store, (1, at)).unwrap(), expected);
        }
        assert!(module.exits_taken() > 0);
        let bytes = module.code_bytes();
        assert!(bytes <= 4 * whole, "{bytes} of {whole}");
    }
}
