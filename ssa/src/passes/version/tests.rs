use slotvm_bytecode::{Op, TrapCode, VerifiedModule};

use super::*;
use crate::construction::build::BuildOptions;
use crate::construction::promote::{Scratch, promote};
use crate::ir::eval::Options;
use crate::ir::verify::effects::Effects;
use crate::ir::verify::{Form, verify};
use crate::tools::samples::{Run, module, run, slot_form};

/// The size of memory in bytes.
const BYTES: i64 = 1 << 16;
const FUEL: u64 = 900;

/// A loop from `i` on, which loads, mixes and stores, and goes on while `test` holds.
fn source(addresses: &[&str], step: i32, test: &str) -> String {
    let accesses: String = addresses
        .iter()
        .map(|address| {
            format!("{address}  local.get sum  i64.add  i64.const 7  i64.mul  local.set sum\n")
        })
        .collect();
    format!(
        "memory mem 1
        data d at i32.const 0 \"\\x01\\x02\\x03\\x04\"
        func f(i: i32, n: i32, base: i32) -> i64 {{
          local sum: i64
        again:
          {accesses}
          local.get base  local.get sum  i64.store8 0
          local.get i  i32.const {step}  i32.add  local.set i
          {test}  br_if again
          local.get sum  return
        }}"
    )
}

/// A function before and after the pass, with the fuel that both charge.
struct Versions {
    module: VerifiedModule,
    before: Function,
    after: Function,
    report: VersionReport,
}

impl Versions {
    fn new(source: &str) -> Versions {
        let module = module(source);
        let options = BuildOptions { fuel: true, stack_cells: false, polls: true, waits: false };
        let mut before = slot_form(&module, 0, &options);
        promote(&mut before, &mut Scratch::default());
        let mut after = before.clone();
        let effects = Effects::of(&after);
        let report = version(&mut after, &mut Analyses::default());
        verify(&after, Form::Ssa, &module).unwrap_or_else(|it| panic!("{it}\n{after}"));
        effects.check(&after).unwrap_or_else(|it| panic!("{it}\n{after}"));
        Versions { module, before, after, report }
    }

    fn run(&self, f: &Function, args: [i64; 3]) -> Run {
        let options = Options { fuel: Some(FUEL), ..Options::default() };
        let args = args.map(|arg| u128::from(arg as u32));
        run(&self.module, vec![f.clone()], &[args.to_vec()], &options)
    }

    /// Runs both, and returns whether the loop without checks ran.
    fn compare(&self, args: [i64; 3]) -> bool {
        let expected = self.run(&self.before, args);
        assert_eq!(self.run(&self.after, args), expected, "{args:?}\n{}", self.after);
        let (_, ends) = self.run(&self.without_copies(), args);
        !matches!(&ends[0].0, Err(trap) if trap.code == TrapCode::Unreachable)
    }

    /// The function after the pass, where copies of loops trap as soon as they start.
    fn without_copies(&self) -> Function {
        let mut f = self.after.clone();
        let guards = f.blocks().filter(|&block| is_guard(&f, block));
        let copies: Vec<Block> = guards
            .map(|guard| f.edge_dst(f.succ_edges(guard).next().expect("a guard branches")))
            .collect();
        assert_eq!(copies.len(), self.report.n_loops);
        for copy in copies {
            let first = f.insts(copy)[0];
            f.ops[first.index()] = Opcode::Op(Op::Unreachable);
            let start = f.blocks[copy.index()].insts.0;
            f.blocks[copy.index()].insts.1 = start + 1;
        }
        f
    }
}

/// Whether a block has the second part of a guard.
fn is_guard(f: &Function, block: Block) -> bool {
    f.insts(block).iter().any(|&inst| f.opcode(inst) == Opcode::Op(Op::MemorySize))
}

const BYTE: &str = "local.get i  i64.load8_u 0";

#[test]
fn rounds_end_where_the_test_says() {
    let limits = |step: i64| {
        let near = |at: i64| [at - 1, at, at + 1, at + step, at - step];
        [near(0), near(24), near(BYTES), near(i32::MAX.into()), near(i32::MIN.into())].concat()
    };
    let mut n_fast = 0;
    for step in [1, 2, 3, 4, 7, 24, -1, -2, -3, -8] {
        for test in ["ne", "lt_s", "lt_u", "le_s", "le_u", "gt_s", "gt_u", "ge_s", "ge_u", "eq"] {
            for (sides, not) in
                [("i n", ""), ("n i", ""), ("i n", "i32.eqz"), ("n i", "i32.eqz i32.eqz")]
            {
                let sides = sides.replace('i', "local.get i ").replace('n', "local.get n ");
                let test = format!("{sides}  i32.{test}  {not}");
                let versions = Versions::new(&source(&[BYTE], step, &test));
                if versions.report.n_loops == 0 {
                    continue;
                }
                for from in [0, 1, 100, BYTES - 3, BYTES, -1, i32::MAX.into(), i32::MIN.into()] {
                    for limit in limits(step.into()).into_iter().chain([from + 6 * i64::from(step)])
                    {
                        n_fast += usize::from(versions.compare([from, limit, 64]));
                    }
                }
            }
        }
    }
    assert!(n_fast > 500, "{n_fast}");
}

#[test]
fn addresses_change_by_constant_and_by_invariant_amounts() {
    let sum = |a: &str, b: &str| format!("{a}  {b}  i32.add");
    let base = "local.get base";
    let scaled = ["local.get i  i32.const 4  i32.mul", "local.get i  i32.const 3  i32.shl"];
    let addresses = [
        sum(base, "local.get i"),
        sum(base, scaled[0]),
        sum(scaled[1], base),
        format!("{base}  local.get i  i32.sub"),
        format!("local.get i  {base}  i32.mul"),
        "local.get i  local.get n  i32.mul  i32.const 2  i32.mul".to_owned(),
        "i32.const 65528".to_owned(),
        base.to_owned(),
    ];
    let mut loads: Vec<String> = Vec::new();
    for address in &addresses {
        loads.push(format!("{address}  i64.load 0"));
        loads.push(format!("{address}  i64.load 40"));
    }
    for (base, index, scale) in [
        (base, "local.get i", 8),
        ("i32.const 0", "local.get i", 1),
        ("local.get i", base, 4),
        ("local.get i", "local.get i", 2),
        (base, "i32.const 100  local.get i  i32.sub", 8),
    ] {
        loads.push(format!("{base}  {index}  i64.load_indexed {scale} 8"));
    }
    let mut n_fast = 0;
    for load in &loads {
        for (step, test) in [(1, "i32.lt_s"), (1, "i32.ne"), (-1, "i32.ge_s"), (2, "i32.le_u")] {
            let test = format!("local.get i  local.get n  {test}");
            let versions = Versions::new(&source(&[load, BYTE], step, &test));
            assert_eq!(versions.report.n_loops, 1, "{load}");
            for from in [0, 10, 100, 8100, BYTES - 50, BYTES / 4, BYTES / 8 - 12, -3, -9000] {
                for base in [0, 8, 4096, BYTES - 8, BYTES - 60, -8, -4096] {
                    for limit in [from + 5 * i64::from(step), from - 1, 10] {
                        n_fast += usize::from(versions.compare([from, limit, base]));
                    }
                }
            }
        }
    }
    assert!(n_fast > 2_000, "{n_fast}");
}

/// Values of one loop are used in the next one, by its guard and as an operand, and after both.
const IN_A_ROW: &str = "
    memory mem 1
    func f(i: i32, n: i32, base: i32) -> i64 {
      local sum: i64, j: i32
    first:
      local.get i  i64.load8_u 0  local.get sum  i64.add  local.set sum
      local.get i  local.get base  i32.store8 7
      local.get i  i32.const 1  i32.add  local.tee i
      local.get n  i32.lt_s  br_if first
    second:
      local.get j  local.get base  i32.add  i64.load8_u 0  local.get sum  i64.add
      local.get i  i64.extend_i32_u  i64.add  local.set sum
      local.get j  i32.const 1  i32.add  local.tee j
      local.get i  i32.lt_s  br_if second
      local.get sum  local.get j  i64.extend_i32_u  i64.add  return
    }";

#[test]
fn values_are_used_after_their_loops() {
    let versions = Versions::new(IN_A_ROW);
    assert_eq!(versions.report, VersionReport { n_loops: 2, n_in_bounds: 3 });
    assert!(!versions.after.has_slot_accesses());
    assert_eq!(versions.after.slots.len(), versions.before.slots.len());
    let mut n_fast = 0;
    for [from, n] in [[0, 9], [5, 6], [BYTES - 20, BYTES - 8], [BYTES - 20, BYTES]] {
        for base in [0, 50, 65_500, 65_527, 65_528, -1] {
            n_fast += usize::from(versions.compare([from, n, base]));
        }
    }
    assert!((1..24).contains(&n_fast), "{n_fast}");
}

#[test]
fn loops_that_cannot_gain_stay() {
    let test = "local.get i  local.get n  i32.lt_s";
    let calls = source(&["call g"], 1, test) + "func g() -> i64 { i64.const 1  return }";
    let changing = "local.get i  local.get n  i32.xor  i64.load8_u 0";
    for (text, n_loops) in [
        (source(&[BYTE], 1, test), 1),
        (calls, 0),
        // The limit changes.
        (source(&["local.get n  i32.const 2  i32.add  local.tee n  i64.load8_u 0"], 1, test), 0),
        (source(&[changing], 1, test), 1),
        (
            source(&[changing], 1, test).replace(
                "local.get base  local.get sum",
                "local.get sum  i32.wrap_i64  local.get sum",
            ),
            0,
        ),
        // The counter goes away from the limit.
        (source(&[BYTE], -1, test), 0),
        (source(&[BYTE], 1, "local.get i  local.get n  i32.eq"), 0),
        (source(&[BYTE], 1, "local.get sum  i64.eqz"), 0),
    ] {
        assert_eq!(Versions::new(&text).report.n_loops, n_loops, "{text}");
    }
    // Two blocks lead back.
    let two = "memory mem 1
        func f(i: i32, n: i32, base: i32) -> i64 {
        again:
          local.get i  i32.const 1  i32.add  local.tee i  i32.load8_u 0  br_if again
          local.get i  local.get n  i32.lt_s  br_if again
          i64.const 0  return
        }";
    assert_eq!(Versions::new(two).report.n_loops, 0);
}

/// A large loop, one with many addresses, and many loops whose values are used later.
#[test]
fn growth_is_bounded() {
    let test = "local.get i  local.get n  i32.lt_s";
    let many: Vec<String> =
        (0..30).map(|k| format!("local.get i  i32.const {k}  i32.mul  i64.load8_u 0")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let report = Versions::new(&source(&many, 1, test)).report;
    assert_eq!(report, VersionReport { n_loops: 1, n_in_bounds: GUARDED_MAX });
    let long = vec![BYTE; LOOP_INSTS_MAX / 4];
    assert_eq!(Versions::new(&source(&long, 1, test)).report.n_loops, 0);

    let n = 2 * LIVE_OUT_MAX;
    let mut text = "memory mem 1 func f(i: i32, n: i32, base: i32) -> i64 {".to_owned();
    text += &(0..n).map(|k| format!(" local x{k}: i32\n")).collect::<String>();
    for k in 0..n {
        text += &format!(
            "l{k}: local.get x{k}  i32.load8_u 0  drop
            local.get x{k}  i32.const 1  i32.add  local.tee x{k}
            local.get n  i32.lt_s  br_if l{k}\n"
        );
    }
    text += "i64.const 0";
    text +=
        &(0..n).map(|k| format!(" local.get x{k} i64.extend_i32_u i64.add")).collect::<String>();
    let report = Versions::new(&(text + " return }")).report;
    assert_eq!(report.n_loops, LIVE_OUT_MAX);
}

/// A counter that goes up by a variable, as in a sieve.
#[test]
fn counters_may_change_by_an_invariant_amount() {
    let up = |source: String| {
        source.replace("i32.const 1  i32.add  local.set i", "local.get base  i32.add  local.set i")
    };
    let twice = "local.get i  i32.const 2  i32.shl  i64.load8_u 0";
    let mut n_fast = 0;
    for (test, n_loops) in
        [("lt_s", 1), ("lt_u", 1), ("le_s", 1), ("le_u", 1), ("ne", 0), ("gt_s", 0), ("ge_u", 0)]
    {
        let test = format!("local.get i  local.get n  i32.{test}");
        let versions = Versions::new(&up(source(&[BYTE], 1, &test)));
        assert_eq!(versions.report.n_loops, n_loops, "{test}");
        // An address with another step keeps its check.
        let other = Versions::new(&up(source(&[BYTE, twice], 1, &test)));
        assert_eq!(other.report, versions.report, "{test}");
        for from in [0, 1, 100, BYTES - 40, -1, i32::MAX.into(), i32::MIN.into()] {
            for amount in [0, 1, 2, 3, 7, 9, 1000, 1 << 30, (1 << 30) + 1, i32::MIN.into(), -1] {
                for limit in [
                    from,
                    from + 5 * amount,
                    from + 6 * amount + 1,
                    BYTES - 1,
                    BYTES,
                    BYTES + 8,
                    i32::MAX.into(),
                    -1,
                ] {
                    n_fast += usize::from(versions.compare([from, limit, amount]));
                    other.compare([from, limit, amount]);
                }
            }
        }
    }
    assert!(n_fast > 50, "{n_fast}");
}

/// Copies that charge something else, or lose a store, are found by the comparison of effects.
#[test]
fn effects_of_copies_are_compared() {
    let source = source(&[BYTE], 1, "local.get i  local.get n  i32.lt_s");
    let versions = Versions::new(&source);
    let effects = Effects::of(&versions.before);
    let first_new = versions.before.n_insts();
    let copy_of = |op: Opcode| {
        let insts = versions.after.layout.iter().copied();
        let is_it = |&inst: &Inst| inst.index() >= first_new && versions.after.opcode(inst) == op;
        insts.rev().find(is_it).expect("the copy has one")
    };
    let mut charges = versions.after.clone();
    charges.imms[copy_of(Opcode::Ir(IrOp::Fuel)).index()].0 += 1;
    let mut loses = versions.after.clone();
    loses.ops[copy_of(Opcode::Op(Op::I64Store8)).index()] = Opcode::Op(Op::Nop);
    for changed in [charges, loses] {
        assert!(effects.check(&changed).is_err(), "{changed}");
    }
    effects.check(&versions.after).expect("nothing was changed");
}
