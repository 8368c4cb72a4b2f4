//! Native code that is left in the body of a function that was inlined: each function has its frame in the interpreter.

use slotvm::{Config, Engine, Error, Limits, Tier, TierCompilation, TierThresholds, TrapCode};

use crate::exits::{self, instance, take_many};

/// A function with a way that is rare, one that calls it while operands wait that are locals, constants and results, and a
/// loop that calls that. The rare way of 1 divides by zero if `x` is 7.
fn source() -> String {
    let long = "local.get x  i64.const 5  i64.add  i64.const 9  i64.xor  local.set x ".repeat(6);
    format!(
        "export \"run\" func run
        func step(x: i64, way: i64) -> (i64, i64) {{
          local 3 f64
          local.get way  i64.eqz  br_if usual
          {long}
          local.get x  i64.const 1000  i64.const 7  local.get way  i64.sub  i64.div_s  return
        usual:
          local.get x  i64.const 1  i64.add  local.get way  return
        }}
        func middle(a: i64, way: i64) -> i64 {{
          local b: i64
          local.get a  i64.const 3  i64.mul  local.set b
          local.get b
          i64.const 77
          local.get a  local.get b  i64.xor
          local.get a  local.get way  call step
          i64.const 5  local.set b
          i64.add  i64.add  i64.sub  i64.xor
          local.get a  i64.add  return
        }}
        func run(n: i64, way: i64) -> i64 {{
          local acc: i64
        next:
          local.get acc
          i64.const 11
          local.get n
          local.get way  i64.const 0  local.get n  i64.const 1  i64.eq  select
          call middle
          i64.add  i64.xor  local.set acc
          local.get n  i64.const 1  i64.sub  local.tee n  i64.const 0  i64.ne  br_if next
          local.get acc  return
        }}"
    )
}

/// An engine of a tier that compiles at once, after 150 calls or rounds.
pub(crate) fn engine(tier: Tier, configure: impl Fn(&mut Config)) -> Engine {
    let mut config = Config::new();
    config.tier(tier).tier_compilation(TierCompilation::Synchronous);
    config.tier_thresholds(Some(TierThresholds { calls: 150, rounds: 150 }));
    configure(&mut config);
    Engine::new(&config).unwrap()
}

#[test]
fn frames_of_callers_are_left() {
    let [mut interpreted, mut tiered] = [Tier::Interpreter, Tier::Auto].map(|tier| {
        let (store, module, instance) = instance(&engine(tier, |_| {}), &source());
        let run = instance.get_typed_func::<(i64, i64), i64>(&store, "run").unwrap();
        (store, module, run)
    });
    // A division by zero, too.
    for (n, way) in [(1_000, 0), (1_000, 1), (2, 3), (500, 0), (7, 9), (1, 7), (3, 5)] {
        let before = tiered.1.exits_taken();
        let [expected, found] = [&mut interpreted, &mut tiered]
            .map(|(store, _, run)| format!("{:?}", run.call(store, (n, way))));
        assert_eq!(found, expected, "{n} {way}");
        assert_eq!(tiered.1.exits_taken() - before, u64::from(way != 0), "{n} {way}");
    }
}

/// A loop that calls a function with two ways.
const LOOP: &str = "
    export \"main\" func main
    func step(sum: i64, n: i64) -> i64 {
      local.get n  i64.const 3  i64.and  i64.eqz  br_if other
      local.get sum  local.get n  i64.add  return
    other:
      local.get sum  i64.const 2  i64.mul  local.get n  i64.xor  return
    }
    func main(n: i64) -> i64 {
      local sum: i64
    next:
      local.get sum  local.get n  call step  local.set sum
      local.get n  i64.const 1  i64.sub  local.tee n  i64.const 0  i64.ne  br_if next
      local.get sum  return
    }";

#[test]
fn stacks_do_not_grow_with_exits() {
    let round = |sum: i64, n: i64| match n & 3 {
        0 => sum.wrapping_mul(2) ^ n,
        _ => sum.wrapping_add(n),
    };
    let expected = |n: i64| (1..=n).rev().fold(0, round);
    take_many(LOOP, expected, |config| {
        let limits = Limits { interp_frames_max: 4, interp_cells_max: 40, ..Limits::default() };
        config.max_native_stack(128 << 10).limits(limits);
    });
}

/// Two functions that call each other, where the second one is inlined into the first.
const RECURSION: &str = "
    export \"main\" func main
    func main(n: i64) -> i64 {
      local.get n  i64.const 2  i64.lt_s  br_if end
      i64.const 0  local.get n  call both  i64.add  return
    end:
      local.get n  return
    }
    func both(n: i64) -> i64 {
      local.get n  i64.const 1  i64.and  i64.eqz  br_if even
      local.get n  i64.const 1  i64.sub  call main
      local.get n  i64.const 2  i64.sub  call main
      i64.add  return
    even:
      local.get n  i64.const 2  i64.sub  call main
      local.get n  i64.const 1  i64.sub  call main
      i64.add  return
    }";

/// Where there is no room for one of the frames, all of them are named.
#[test]
fn the_stack_may_overflow_where_frames_of_callers_are_left() {
    let mut n_at_exits = 0;
    for seed in 0..40 {
        let engine = exits::engine(seed, |config| {
            let interp_cells_max = 500 + seed as u32 % 8;
            config.limits(Limits { interp_cells_max, ..Limits::default() });
        });
        let (mut store, module, instance) = instance(&engine, RECURSION);
        let main = instance.get_typed_func::<i64, i64>(&store, "main").unwrap();
        assert_eq!(main.call(&mut store, 10).unwrap(), 55);
        let error = main.call(&mut store, 1 << 40).unwrap_err();
        let Error::Trap(trap) = &error else { panic!("seed {seed}: {error}") };
        assert_eq!(trap.code, TrapCode::StackOverflow, "seed {seed}");
        let alternate = trap.frames().windows(2).all(|pair| pair[0].func != pair[1].func);
        assert!(alternate, "seed {seed}: {error}");
        let calls = trap.frames()[1..].iter().all(|frame| {
            let body = module.verified().body(frame.func).expect("it is defined");
            body.blocks.iter().all(|block| block.start != frame.offset)
        });
        assert!(calls, "seed {seed}: {error}");
        n_at_exits += usize::from(trap.frames()[0].offset > 0);
        assert_eq!(main.call(&mut store, 10).unwrap(), 55);
    }
    assert!((1..40).contains(&n_at_exits), "{n_at_exits}");
}

/// A generator of functions that call those before them, with operands of all kinds waiting.
struct Generator {
    state: u64,
    text: String,
    depth: usize,
}

const LOCALS: [&str; 4] = ["p", "q", "2", "3"];

/// The results of functions, by whether their numbers are odd.
const RESULTS: [&str; 2] = ["i64", "(i64, i64)"];

/// The first of the functions that have loops.
const LOOPS: u64 = 4;

impl Generator {
    fn below(&mut self, n: u64) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.state >> 33) % n
    }

    fn op(&mut self, text: &str, change: isize) {
        self.text.push_str(text);
        self.text.push_str("  ");
        self.depth = self.depth.strict_add_signed(change);
    }

    /// Calls a function by the table, or one before it of the same type, which depends on a local. Seldom others are called, and
    /// what is no function of the type.
    fn indirect(&mut self, callee: u64, local: &str) {
        let (is_odd, n_before) = (callee % 2, callee / 2);
        let (mask, stride) = match self.below(60) {
            0 => (1, 8),
            1 => (1, 4),
            _ => ([0, 1, 1, 3][n_before as usize], 1),
        };
        let (first, results) = (4 * is_odd, RESULTS[is_odd as usize]);
        let call = format!(
            "local.get {local}  i64.const {mask}  i64.and  i64.const {stride}  i64.mul
             i64.const {first}  i64.add  i32.wrap_i64  call_indirect (i64, i64) -> {results}, t"
        );
        self.op(&call, -1 + is_odd as isize);
    }

    /// Some instructions that neither branch nor leave operands.
    fn line(&mut self, func: u64) {
        // The first functions are small enough to be inlined into the loops of the last ones.
        let more = if func < LOOPS { 3 } else { 12 };
        for _ in 0..3 + self.below(more) {
            let local = LOCALS[self.below(4) as usize];
            match (self.below(9), self.depth) {
                (0 | 1, _) | (_, 0) => self.op(&format!("local.get {local}"), 1),
                (2, _) => self.op(&format!("i64.const {}", func * 7 + 3), 1),
                (3, _) => self.op(&format!("local.set {local}"), -1),
                (4, _) => self.op(&format!("local.tee {local}"), 0),
                (5, 2..) if func > 0 => {
                    let callee = self.below(func);
                    match self.below(2) {
                        0 => self.op(&format!("call f{callee}"), -1 + (callee % 2) as isize),
                        _ => self.indirect(callee, local),
                    }
                }
                (6, 2..) => {
                    let (op, change) =
                        [("swap", 0), ("over", 1), ("i64.xor", -1)][func as usize % 3];
                    self.op(op, change);
                }
                (7, 2..) => self.op("i64.add", -1),
                _ => self.op("dup  i64.eqz  i64.extend_i32_u", 1),
            }
        }
        while self.depth > 0 {
            self.op("local.get q  i64.xor  local.set q", -1);
        }
        self.text.push('\n');
    }

    /// A function of two parameters, with one or two results by its number. The last ones have loops.
    fn func(&mut self, func: u64) {
        let results = RESULTS[func as usize % 2];
        self.text += &format!("func f{func}(p: i64, q: i64) -> {results} {{ local 3 i64\n");
        let (has_loop, n_blocks) = (func >= LOOPS, 1 + self.below(2));
        if has_loop {
            self.text.push_str("i64.const 3  local.set 4\nround: ");
        }
        for block in 0..n_blocks {
            self.line(func);
            let bit = 1 + self.below(15);
            self.text +=
                &format!("local.get p  i64.const {bit}  i64.and  i64.eqz  br_if l{block}\n");
            self.line(func);
            self.text += &format!("l{block}: ");
        }
        if has_loop {
            let next =
                "local.get 4  i64.const 1  i64.sub  local.tee 4  i64.eqz  i32.eqz  br_if round\n";
            self.text.push_str(next);
        }
        let more = ["", "local.get 3  "][func as usize % 2];
        self.text += &format!("{more}local.get q  local.get 2  i64.add  return }}\n");
    }

    fn module(seed: u64) -> String {
        let text = "export \"f\" func f6
            table t funcref 9 9
            export \"t\" table t
            elem even t at i32.const 0 func f0, f2, f4, f6
            elem odd t at i32.const 4 func f1, f3, f5\n"
            .to_owned();
        let mut generator = Generator { state: seed, text, depth: 0 };
        (0..7).for_each(|func| generator.func(func));
        generator.text
    }
}

#[test]
fn generated_functions_do_the_same() {
    let mut n_exits = 0;
    for seed in 0..150 {
        let text = Generator::module(seed);
        let configure = |config: &mut Config| {
            let is_charged = seed % 3 == 0;
            let cells = is_charged.then_some(60 + seed);
            config.consume_fuel(is_charged).deterministic_stack(cells);
            config.tier_thresholds(None).tier_seed(seed).tier_exits(seed, seed % 2 == 0);
        };
        let mut outcomes = [Tier::Interpreter, Tier::Auto].map(|tier| {
            let engine = engine(tier, configure);
            let (mut store, module, instance) = instance(&engine, &text);
            let f = instance.get_typed_func::<(i64, i64), i64>(&store, "f").unwrap();
            let outcomes: Vec<String> = (0..300)
                .map(|i| {
                    if seed % 3 == 0 {
                        store.set_fuel(2_000 - i as u64).unwrap();
                    }
                    let result = f.call(&mut store, (i, i * 3 % 17));
                    let fuel = (seed % 3 == 0).then(|| store.get_fuel().unwrap());
                    format!("{result:?} {fuel:?}")
                })
                .collect();
            n_exits += module.exits_taken();
            outcomes
        });
        let tiered = outcomes[1].split_off(0);
        assert!(outcomes[0] == tiered, "seed {seed}:\n{text}");
    }
    assert!(n_exits > 10_000, "{n_exits}");
}
