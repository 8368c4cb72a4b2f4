//! Native code without the blocks that never ran, and the versions that are made when they do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use slotvm::compiler::{Executions, FunctionExecutions};
use slotvm::{
    Cache, CacheConfig, Config, Engine, Instance, Linker, Module, Store, Tier, TierCompilation,
    TierThresholds,
};
use slotvm_bytecode::Op;
use slotvm_runtime::{TraceEvent, TraceFn};

/// An engine that makes native code after so many calls or rounds.
fn engine(n: u32, configure: impl Fn(&mut Config)) -> Engine {
    let mut config = Config::new();
    config.tier(Tier::Auto).tier_thresholds(Some(TierThresholds { calls: n, rounds: n }));
    config.tier_compilation(TierCompilation::Synchronous);
    configure(&mut config);
    Engine::new(&config).unwrap()
}

/// Some instructions, and how often they stand in a way.
const LONG: &str =
    "local.get x  i64.const 5  i64.add  i64.const 9  i64.xor  i64.const 3  i64.mul  local.set x  ";
const N_LONG: usize = 8;

fn long(x: i64) -> i64 {
    (0..N_LONG).fold(x, |x, _| (x.wrapping_add(5) ^ 9).wrapping_mul(3))
}

/// A function with ways that its second parameter chooses, and a loop that goes them. Each way is longer than an exit.
fn ways() -> String {
    let ops = LONG.repeat(N_LONG);
    let source = "
        export \"step\" func step
        export \"run\" func run
        func step(x: i64, way: i32) -> i64 {
          local.get way  br_table [a b] c
        a:
          LONG local.get x  i64.const 1  i64.add  return
        b:
          LONG local.get x  i64.const 3  i64.mul  return
        c:
          LONG local.get x  i64.const 7  i64.xor  return
        }
        func run(n: i64, way: i32) -> i64 {
          local x: i64
        next:
          local.get way  br_table [a b] c
        a:
          LONG local.get x  i64.const 1  i64.add  local.set x  br on
        b:
          LONG local.get x  i64.const 3  i64.mul  local.set x  br on
        c:
          LONG local.get x  i64.const 7  i64.xor  local.set x
        on:
          local.get n  i64.const 1  i64.sub  local.tee n  i64.const 0  i64.ne  br_if next
          local.get x  return
        }";
    source.replace("LONG", &ops)
}

fn step(x: i64, way: i32) -> i64 {
    let x = long(x);
    match way {
        0 => x.wrapping_add(1),
        1 => x.wrapping_mul(3),
        _ => x ^ 7,
    }
}

struct Program {
    store: Store<()>,
    module: Module,
    instance: Instance,
}

impl Program {
    fn new(engine: &Engine) -> Program {
        Program::of(engine, Module::from_text(engine, &ways()).unwrap())
    }

    fn of(engine: &Engine, module: Module) -> Program {
        let mut store = Store::new(engine, ());
        let instance = Linker::new(engine).instantiate(&mut store, &module).unwrap();
        Program { store, module, instance }
    }

    /// Goes a way so many times, by calls. Returns how often code was left.
    fn call(&mut self, way: i32, n: i64) -> u64 {
        let before = self.module.exits_taken();
        let func = self.instance.get_typed_func::<(i64, i32), i64>(&self.store, "step").unwrap();
        for x in 0..n {
            assert_eq!(func.call(&mut self.store, (x, way)).unwrap(), step(x, way));
        }
        self.module.exits_taken() - before
    }

    /// The same in a loop.
    fn go_round(&mut self, way: i32, n: i64) -> u64 {
        let before = self.module.exits_taken();
        let func = self.instance.get_typed_func::<(i64, i32), i64>(&self.store, "run").unwrap();
        let expected = (0..n).fold(0, |x, _| step(x, way));
        assert_eq!(func.call(&mut self.store, (n, way)).unwrap(), expected);
        self.module.exits_taken() - before
    }
}

/// The exits of code of functions as small as these, before a newer version is made.
const N_EXITS: std::ops::RangeInclusive<u64> = 20..=400;

#[test]
fn what_never_ran_is_left_out_until_it_runs() {
    for go in [Program::call, Program::go_round] {
        let mut program = Program::new(&engine(150, |_| {}));
        assert_eq!(go(&mut program, 0, 1_000), 0, "the way that ran is in the code");
        assert_eq!(go(&mut program, 1, 10), 10, "each time");
        let n = go(&mut program, 1, 10_000);
        assert!(N_EXITS.contains(&n), "{n}: then the way is in a newer version");
        // The code of the function that a call enters is not that of its loop.
        assert!(go(&mut program, 0, 1_000) + go(&mut program, 1, 1_000) <= 2);
        let n = go(&mut program, 2, 10_000);
        assert!(N_EXITS.contains(&n), "{n}: the last version has all ways");
    }
}

#[test]
fn after_some_versions_code_is_not_left() {
    let mut source = ways().replace("br_table [a b] c", "br_table [a b c] d");
    source = source.replace(" c:\n", " d:\n i64.const 5  local.set x\n c:\n");
    let engine = engine(150, |_| {});
    let mut program = Program::of(&engine, Module::from_text(&engine, &source).unwrap());
    for (way, is_left) in [(0, false), (1, true), (2, true)] {
        assert_eq!(program.call(way, 10_000) > 0, is_left, "way {way}");
    }
    let func = program.instance.get_typed_func::<(i64, i32), i64>(&program.store, "step").unwrap();
    let before = program.module.exits_taken();
    assert_eq!(func.call(&mut program.store, (1, 3)).unwrap(), step(5, 2));
    assert_eq!(program.module.exits_taken(), before, "the third version has no exits");
}

/// Blocks that never run and are shorter than an exit.
#[test]
fn short_blocks_are_in_the_code() {
    let source = "
        export \"step\" func step
        func step(x: i64, way: i32) -> i64 {
          local.get way  br_if other
          local.get x  i64.const 1  i64.add  return
        other:
          local.get x  i64.const 2  i64.add  return
        }";
    let engine = engine(150, |_| {});
    let program = Program::of(&engine, Module::from_text(&engine, source).unwrap());
    let Program { mut store, module, instance } = program;
    let func = instance.get_typed_func::<(i64, i32), i64>(&store, "step").unwrap();
    for i in 0..2_000 {
        let way = i / 1_000;
        assert_eq!(func.call(&mut store, (1, way)).unwrap(), 2 + i64::from(way));
    }
    assert_eq!(module.exits_taken(), 0);
}

#[test]
fn code_of_what_has_run_little_is_whole() {
    for go in [Program::call, Program::go_round] {
        let mut program = Program::new(&engine(50, |_| {}));
        assert_eq!(go(&mut program, 0, 1_000) + go(&mut program, 1, 1_000), 0);
    }
}

/// A function that is called twice, and a loop in it that has gone round often: what follows the loop may run yet.
#[test]
fn code_after_a_loop_is_in_the_code_of_the_loop() {
    let mut program = Program::new(&engine(150, |_| {}));
    for _ in 0..10 {
        assert_eq!(program.go_round(0, 1_000), 0);
    }
}

/// A loop in a loop, of which only the inner one is hot: its code leaves after it, until there is code of the loop around.
#[test]
fn code_of_a_loop_inside_another_leaves_until_there_is_code_of_that() {
    let source = "
        export \"run\" func run
        func run(n: i64, m: i64) -> i64 {
          local j: i64
          local x: i64
          i64.const 0  local.set x
        outer:
          local.get m  local.set j
        inner:
          local.get x  local.get j  i64.add  local.set x
          local.get j  i64.const 1  i64.sub  local.tee j  i64.const 0  i64.ne  br_if inner
          local.get n  i64.const 1  i64.sub  local.tee n  i64.const 0  i64.ne  br_if outer
          local.get x  return
        }";
    let engine = engine(5_000, |_| {});
    let program = Program::of(&engine, Module::from_text(&engine, source).unwrap());
    let Program { mut store, module, instance } = program;
    let func = instance.get_typed_func::<(i64, i64), i64>(&store, "run").unwrap();
    let (n, m) = (4_000, 6_000);
    let expected = n * m * (m + 1) / 2;
    assert_eq!(func.call(&mut store, (n, m)).unwrap(), expected);
    let exits = module.exits_taken();
    // The loop around was not hot by itself.
    assert!(N_EXITS.contains(&exits), "{exits}");
    assert_eq!(func.call(&mut store, (n, m)).unwrap(), expected);
    assert!(module.exits_taken() <= exits + 1, "the loop around is entered when it goes round");
}

#[test]
fn a_second_store_follows_to_the_newer_version() {
    let engine = engine(150, |_| {});
    let mut first = Program::new(&engine);
    first.call(0, 1_000);
    let mut second = Program::of(&engine, first.module.clone());
    // So its code of the interpreter is another one.
    second.store.interpret_by_loop();
    second.call(0, 1_000);
    assert!(N_EXITS.contains(&first.call(1, 10_000)));
    let n = second.call(1, 10_000);
    assert!(n <= *N_EXITS.end(), "{n}");
    assert_eq!(second.call(1, 1_000), 0);
}

/// A function that goes a way of its own each time, and one that changes its way each thousand times, with 2,000 ways, or
/// 10,000 with `SLOTVM_FULL=1`.
#[test]
fn what_hostile_programs_have_compiled_is_bounded() {
    let is_full = std::env::var("SLOTVM_FULL").as_deref() == Ok("1");
    let n = if is_full { 10_000 } else { 2_000 };
    let labels = |to| (0..to).map(|i| format!("w{i} ")).collect::<String>();
    let ops = LONG.repeat(N_LONG);
    let way = |i| format!("w{i}: {ops} local.get x i64.const {i} i64.xor local.set x br on\n");
    let source = format!(
        "export \"step\" func step
         func step(x: i64, way: i32) -> i64 {{
           local.get way  br_table [{}] w{}
           {} on: local.get x  return
         }}",
        labels(n - 1),
        n - 1,
        (0..n).map(way).collect::<String>()
    );
    let whole = {
        let mut config = Config::new();
        config.tier(Tier::Jit);
        Module::from_text(&Engine::new(&config).unwrap(), &source).unwrap().code_bytes()
    };
    for steps in [1, 1_000] {
        let engine = engine(150, |_| {});
        let mut program = Program::of(&engine, Module::from_text(&engine, &source).unwrap());
        let func =
            program.instance.get_typed_func::<(i64, i32), i64>(&program.store, "step").unwrap();
        for i in 0..10 * n {
            let way = if i < 1_000 { 0 } else { i / steps % n };
            let result = func.call(&mut program.store, (1, way)).unwrap();
            assert_eq!(result, long(1) ^ i64::from(way));
        }
        assert!(program.module.exits_taken() > 0);
        assert!(program.module.compile_stats().compiled() <= 3);
        let bytes = program.module.code_bytes();
        assert!(bytes <= 4 * whole, "{bytes} of {whole}");
    }
}

/// Threads that run one module see what ran, make code, leave it, and make newer versions, all at once.
#[test]
fn threads_share_what_ran_and_the_versions() {
    for compilation in [TierCompilation::Synchronous, TierCompilation::Background] {
        let engine = engine(150, |config| _ = config.tier_compilation(compilation));
        let module = Module::from_text(&engine, &ways()).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let (engine, module) = (&engine, &module);
                scope.spawn(move || {
                    let mut program = Program::of(engine, module.clone());
                    for i in 0..300 {
                        program.call(i / 100, 100);
                        program.go_round(i / 100, 1_000);
                    }
                });
            }
        });
        if compilation == TierCompilation::Synchronous {
            assert!(module.exits_taken() > 0);
            let mut program = Program::of(&engine, module);
            assert_eq!([0, 1, 2].map(|way| program.call(way, 100)), [0; 3], "ways gone often");
            // Code of the function was entered less often than that of its loop.
            let n = [0, 1, 2].map(|way| program.go_round(way, 1_000));
            assert!(n.iter().all(|&n| n <= 1), "{n:?}");
        }
    }
}

/// Code that goes to a file has no exits, which only this process has.
#[test]
fn code_that_is_kept_is_whole() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(150, |config| {
        let cache = Cache::new(CacheConfig::new().with_directory(directory.path()));
        config.cache(Some(cache.unwrap()));
    });
    let mut program = Program::of(&engine, Module::new(&engine, ways()).unwrap());
    assert_eq!(program.call(0, 1_000) + program.call(1, 1_000), 0);
}

/// The executions of a run that is interpreted.
#[derive(Default)]
struct Observed {
    executions: Executions,
    /// The frame and the place of the last instruction, if it is an indirect call.
    calling: Option<(usize, u32, u32)>,
}

impl Observed {
    fn add(&mut self, event: &TraceEvent<'_>) {
        let functions = &mut self.executions.functions;
        if let Some((_, caller, site)) = self.calling.take().filter(|at| at.0 + 1 == event.depth) {
            let caller = functions.get_mut(&caller).unwrap();
            let callees = caller.callees.entry(site).or_default();
            if !callees.contains(&event.func) {
                callees.push(event.func);
            }
        }
        let function = functions.entry(event.func).or_insert_with(|| {
            let blocks = &event.module.body(event.func).unwrap().blocks;
            let blocks = blocks.iter().map(|block| (block.start, 0)).collect();
            FunctionExecutions { blocks, callees: BTreeMap::new() }
        });
        if let Some(count) = function.blocks.get_mut(&event.offset) {
            *count += 1;
        }
        if event.inst.op == Op::CallIndirect {
            self.calling = Some((event.depth, event.func, event.offset));
        }
    }
}

/// Calls the function `step` of a program.
fn call_steps(program: &mut Program, n: i64, ways: &[i32]) {
    let func = program.instance.get_typed_func::<(i64, i32), i64>(&program.store, "step").unwrap();
    for x in 0..n {
        let way = ways[x as usize % ways.len()];
        func.call(&mut program.store, (x, way)).unwrap();
    }
}

/// The executions of a program that takes these ways in turn, in `n` calls.
fn executions(source: &str, n: i64, ways: &[i32]) -> Executions {
    let engine = Engine::new(Config::new().tier(Tier::Interpreter)).unwrap();
    let mut program = Program::of(&engine, Module::from_text(&engine, source).unwrap());
    let observed = Arc::new(Mutex::new(Observed::default()));
    let trace: TraceFn = {
        let observed = observed.clone();
        Arc::new(move |event| observed.lock().unwrap().add(event))
    };
    program.store.set_trace(Some(trace));
    call_steps(&mut program, n, ways);
    observed.lock().unwrap().executions.clone()
}

/// A function that calls others by a table, one of which has a way that it never goes.
fn calls() -> String {
    let source = "
        export \"step\" func step
        table t funcref 3 3
        elem e t at i32.const 0 func one, two, three
        func one(x: i64) -> i64 { local.get x  i64.const 1  i64.add  return }
        func two(x: i64) -> i64 {
          local.get x  i64.const -1  i64.eq  br_if rare
          local.get x  i64.const 2  i64.mul  return
        rare:
          LONG local.get x  return
        }
        func three(x: i64) -> i64 { local.get x  return }
        func step(x: i64, way: i32) -> i64 {
          local.get x  local.get way  call_indirect (i64) -> i64, t
          local.get x  i64.add  return
        }";
    source.replace("LONG", &LONG.repeat(3))
}

/// Compares the code that is shown of a function after a run with the code that the run gets.
#[test]
fn a_profile_gives_the_exits_that_a_run_gives() {
    // Each way is gone often enough, if there are three.
    let n = 400;
    let in_jit = Engine::new(Config::new().tier(Tier::Jit)).unwrap();
    for (source, ways, n_exits) in [
        (ways(), &[0][..], 2),
        (ways(), &[0, 1], 1),
        (ways(), &[0, 1, 2], 0),
        (calls(), &[0], 1),
        // The body that is inlined has one, too.
        (calls(), &[1], 2),
        (calls(), &[0, 1], 2),
        (calls(), &[0, 1, 2], 0),
    ] {
        let engine = engine(n, |_| {});
        let mut program = Program::of(&engine, Module::from_text(&engine, &source).unwrap());
        // One call more, at which the code is made.
        call_steps(&mut program, i64::from(n) + 1, ways);
        let infos = program.module.functions();
        let made = infos.iter().find(|info| info.name == "step").expect("it was compiled");

        let shown = Module::from_text(&in_jit, &source).unwrap();
        let executions = executions(&source, i64::from(n), ways);
        let plan = shown.exits_after(&executions, made.func);
        assert_eq!(plan.is_some(), n_exits > 0, "{ways:?}");
        let Some(plan) = plan else { continue };
        let (clif, code) = shown.code_with_exits(made.func, &plan).unwrap().unwrap();
        // On aarch64, the length of code depends on the addresses in it.
        if cfg!(target_arch = "x86_64") {
            assert_eq!(code.bytes.len(), made.sizes.code_bytes, "{ways:?}\n{clif}");
        }
        let found = clif.matches("iconst.i64 0x7ffe_0000_000").count();
        assert_eq!(found, n_exits, "{ways:?}\n{clif}");
        assert!(shown.exits_after(&Executions::default(), made.func).is_none());
    }
}
