use std::fmt::Write;

use crate::passes::forward::tests::check_same_for;
use crate::tools::testing::Rng;

/// A function that runs a body for `i` from the start on, `n` rounds long, in steps.
fn in_loop(start: &str, step: i32, body: &str) -> String {
    format!(
        "import \"env\" \"host\" func host()
        memory m 1
        func f(n: i32) -> i32 {{
          local i: i32, sum: i32, x: i32, a: i32, b: i32, wide: i64, k: i32
          i32.const 400  local.set a
          i32.const 2000  local.set b
          {start}  local.set i
        again:
          {body}
          local.get i  i32.const {step}  i32.add  local.set i
          local.get k  i32.const 1  i32.add  local.tee k
          local.get n  i32.lt_s  br_if again
          local.get sum  return
        }}"
    )
}

/// The address of word `i + by` of an array.
fn word(array: &str, by: i32) -> String {
    format!(
        "local.get {array}  local.get i  i32.const {by}  i32.add  i32.const 2  i32.shl  i32.add"
    )
}

fn add(load: &str) -> String {
    format!("{load}  local.get sum  i32.add  local.set sum")
}

/// Checks that a body does the same after the pass, at an ordinary start, near both ends of the memory, and where
/// addresses wrap. Returns the number of loads that are carried.
fn n_carried(step: i32, body: &str) -> usize {
    let starts = [3, 16280, 16383, -101, -100, -99, 1 << 30, -500, (1 << 30) - 102];
    let n = starts.map(|start| {
        let source = in_loop(&format!("i32.const {start}"), step, body);
        check_same_for(&source, &[0, 1, 2, 5, 300]).n_carried
    });
    assert_eq!(n, [n[0]; 9], "{body}");
    n[0]
}

/// `a[i] = a[i - 1] + i`.
fn running_sum() -> String {
    let (to, from) = (word("a", 0), word("a", -1));
    format!("{to}  {from}  i32.load 0  local.get i  i32.add  i32.store 0")
}

#[test]
fn what_the_round_before_stored_is_a_value() {
    assert_eq!(n_carried(1, &running_sum()), 1);
    let backwards = running_sum().replace("i32.const -1", "i32.const 1");
    assert_eq!(n_carried(-1, &backwards), 1);
    // The same with another step has another address.
    assert_eq!(n_carried(2, &running_sum()), 0);
    assert_eq!(n_carried(-1, &running_sum()), 0);
    // A static offset is added without wrapping, so the addresses may differ.
    assert_eq!(n_carried(1, &running_sum().replace("i32.store 0", "i32.store 4")), 0);
}

#[test]
fn what_the_round_before_loaded_is_a_value() {
    let [before, at, after] = [-1, 0, 1].map(|by| add(&format!("{}  i32.load 0", word("a", by))));
    assert_eq!(n_carried(1, &format!("{before}  {at}  {after}")), 2);
    assert_eq!(n_carried(1, &format!("{after}  {at}  {before}")), 2);
    assert_eq!(n_carried(-1, &format!("{after}  {at}  {before}")), 2);
    // What stays the same is loaded once.
    assert_eq!(n_carried(1, &add("local.get a  i32.load 0")), 1);
    // Narrow loads return what equal loads did.
    let narrow = |op: &str| add(&format!("local.get a  local.get i  i32.add  {op} 0"));
    let both = |a, b| {
        let next = narrow(b).replace("local.get i", "local.get i  i32.const 1  i32.add");
        n_carried(1, &format!("{}  {next}", narrow(a)))
    };
    assert_eq!(both("i32.load8_u", "i32.load8_u"), 1);
    assert_eq!(both("i32.load8_s", "i32.load8_u"), 0);
    assert_eq!(both("i32.load16_u", "i32.load8_u"), 0);
}

#[test]
fn other_widths_and_types_are_loaded() {
    let sum = running_sum();
    assert_eq!(n_carried(1, &sum.replace("i32.store 0", "i32.store16 0")), 0);
    assert_eq!(n_carried(1, &sum.replace("i32.load 0", "i32.load16_s 0")), 0);
    let to = word("a", 0);
    let float = format!("{to}  {}  f32.load 0  i32.reinterpret_f32  i32.store 0", word("a", -1));
    assert_eq!(n_carried(1, &float), 0);
}

#[test]
fn writes_between_forbid_it() {
    let sum = running_sum();
    let unknown = "local.get x  i32.const 7  i32.store 0";
    for other in [
        unknown,
        "call host",
        "i32.const 1  memory.grow  drop",
        "local.get a  i32.const 5  i32.const 8  memory.fill",
        &format!("{}  i32.const 9  i32.store8 3", word("a", 0)),
        &format!("{}  i64.const 9  i64.store 0", word("a", -1)),
        "local.get a  local.get i  i32.const 3  i32.store_indexed 4",
    ] {
        // The place where `x` points is known to the evaluator alone.
        let set = add("local.get sum  i32.const 2047  i32.and  local.set x  i32.const 0");
        let after = format!("{set}  {sum}  {other}");
        assert_eq!(n_carried(1, &after), 0, "{after}");
    }
    for other in [
        format!("{}  i32.const 9  i32.store8 0", word("a", 1)),
        format!("{}  i32.const 9  i32.store8 4", word("a", 0)),
        format!("{}  i64.const 9  i64.store 0", word("b", 0)),
        "i32.const 3  global.set g".to_owned(),
    ] {
        let source = format!("{sum}  {other}");
        if other.contains("global") {
            let source = in_loop("i32.const 3", 1, &source);
            let source =
                source.replace("memory m 1", "memory m 1\nglobal g: mut i32 = i32.const 0");
            assert_eq!(check_same_for(&source, &[1, 5]).n_carried, 1);
        } else {
            assert_eq!(n_carried(1, &source), 1, "{other}");
        }
    }
}

/// A store to the address of the load in the same round comes before the load.
#[test]
fn a_write_in_the_round_itself_is_loaded() {
    let early = format!("{}  i32.const 7  i32.store 0", word("a", -1));
    assert_eq!(n_carried(1, &format!("{early}  {}", running_sum())), 0);
}

/// In front of the loop, nothing may be loaded that the first round would not load, or would load after something else
/// was done.
#[test]
fn what_the_first_round_may_not_load_stays() {
    let sum = running_sum();
    let odd = "local.get i  i32.const 1  i32.and";
    for (body, n) in [
        // A condition that is passed by.
        (
            format!(
                "{odd}  br_if skip  {}  skip: nop  {sum}",
                add(&format!("{}  i32.load 0", word("a", -1)))
            ),
            0,
        ),
        // An effect before.
        (format!("local.get b  i32.const 1  i32.store 0  {sum}"), 0),
        // A way out before.
        (format!("{odd}  br_if out  {sum}"), 0),
        // A load under a condition before, which may trap.
        (format!("{odd}  br_if skip  local.get x  i32.load 0  drop  skip: nop  {sum}"), 0),
        // Other loads before, which are loaded twice.
        (format!("{}  {sum}", add("local.get x  i32.load 7")), 1),
        (format!("local.get k  i32.const 3  i32.div_u  drop  {sum}"), 1),
        // An operation that traps before.
        (format!("i32.const 3  local.get i  i32.div_u  local.set x  {sum}"), 1),
        // A branch without effects before, and a second load after the first one.
        (
            format!(
                "{odd}  br_if skip  i32.const 3  local.set x  skip: nop  {sum}  {}",
                add(&format!("{}  i32.load 0", word("a", -1)))
            ),
            2,
        ),
    ] {
        let source = in_loop("i32.const 3", 1, &body)
            .replace("local.get sum  return", "out: local.get sum  return");
        let source = if body.contains("br_if out") { source } else { source.replace("out: ", "") };
        for start in ["i32.const 3", "i32.const 16283", "i32.const -101", "i32.const 0"] {
            let source =
                source.replace("i32.const 3  local.set i", &format!("{start}  local.set i"));
            assert_eq!(check_same_for(&source, &[0, 1, 5, 40]).n_carried, n, "{source}");
        }
    }
}

/// Without room for the values, loads stay.
#[test]
fn a_loop_with_many_values_stays() {
    let mut body = running_sum();
    let mut locals = String::new();
    for i in 0..12 {
        write!(locals, ", v{i}: i32").unwrap();
        write!(body, "  local.get v{i}  local.get sum  i32.xor  local.set v{i}").unwrap();
        write!(body, "  local.get v{i}  local.get sum  i32.add  local.set sum").unwrap();
    }
    let source = in_loop("i32.const 3", 1, &body).replace("k: i32\n", &format!("k: i32{locals}\n"));
    assert_eq!(check_same_for(&source, &[1, 5]).n_carried, 0);
}

/// Two edges back, and a loop around another one.
#[test]
fn other_shapes_of_loops_stay() {
    let two = format!("{}  local.get i  i32.const 7  i32.and  i32.eqz  br_if early", running_sum());
    let source = in_loop("i32.const 3", 1, &two).replace(
        "local.get sum  return",
        "local.get sum  return
        early: local.get i  i32.const 5  i32.add  local.set i
          local.get k  i32.const 1  i32.add  local.tee k
          local.get n  i32.lt_s  br_if again  local.get sum  return",
    );
    assert_eq!(check_same_for(&source, &[1, 5, 50]).n_carried, 0);
    let inner = format!(
        "i32.const 0  local.set x  inner: {}  local.get x  i32.const 1  i32.add  local.tee x
        i32.const 3  i32.lt_s  br_if inner  {}",
        add("local.get b  local.get x  i32.store 0  i32.const 1"),
        running_sum()
    );
    assert_eq!(n_carried(1, &inner), 0);
}

/// A count in memory whose address is a sum of its own for each access, so that no other pass knows what is loaded.
#[test]
fn what_a_round_stores_and_loads_again_is_the_next_value() {
    let place = "local.get a  i32.const 4  i32.add";
    let count = format!("{place}  {place}  i32.load 0  i32.const 1  i32.add  i32.store 0");
    let again = add(&format!("{place}  i32.load 0"));
    assert_eq!(n_carried(1, &format!("{count}  {again}")), 1);
    assert_eq!(n_carried(1, &format!("{again}  {count}  {again}")), 2);
    assert_eq!(n_carried(1, &format!("{again}  {again}")), 2);
}

/// A statement whose addresses go with the round, or stay.
fn random_statement(rng: &mut Rng, stays: bool, text: &mut String) {
    let array = ["a", "a", "a", "a", "b", "b", "b", "x"][rng.below(8) as usize];
    let (by, offset) = (rng.below(5) as i32 - 2, rng.below(8) as usize);
    // A sum of its own for each access, so that no other pass sees which are equal.
    let (address, offset) = match stays {
        true => (format!("local.get a  i32.const {}  i32.add", 4 * by.signum()), 0),
        false => (word(array, by), [0, 0, 0, 0, 0, 0, 4, 2][offset]),
    };
    match rng.below(16) {
        0..=2 => writeln!(text, "{address}  local.get sum  i32.store {offset}"),
        3 => writeln!(text, "{address}  local.get k  i32.store8 {offset}"),
        4 => writeln!(text, "{address}  local.get wide  i64.store {offset}"),
        5 => writeln!(text, "local.get a  local.get i  i32.load_indexed 4  local.set x"),
        6 => writeln!(
            text,
            "local.get b  local.get i  i32.const 1  i32.add  local.get sum  i32.store_indexed 4"
        ),
        7 => writeln!(text, "{}", add(&format!("{address}  i32.load8_u {offset}"))),
        8 => writeln!(text, "{address}  i64.load {offset}  local.set wide"),
        _ => writeln!(text, "{}", add(&format!("{address}  i32.load {offset}"))),
    }
    .unwrap();
}

#[test]
fn random_loops_do_the_same() {
    let mut rng = Rng(11);
    let mut n_carried = 0;
    for _ in 0..1_500 {
        let mut body = String::from("nop\n");
        let stays = rng.one_in(3);
        for block in 0..3 {
            for _ in 0..rng.below(4) {
                random_statement(&mut rng, stays, &mut body);
            }
            if rng.one_in(6) {
                writeln!(body, "local.get i  i32.const 1  i32.and  br_if l{block}").unwrap();
                random_statement(&mut rng, stays, &mut body);
            }
            writeln!(body, "l{block}: nop").unwrap();
        }
        if rng.one_in(2) {
            body.push_str(&running_sum());
        }
        let start = [3, 3, 16283, -100, 500, 15883][rng.below(6) as usize];
        let step = [1, 1, -1, 2][rng.below(4) as usize];
        let source = in_loop(&format!("i32.const {start}"), step, &body);
        n_carried += check_same_for(&source, &[0, 1, 5, 40]).n_carried;
    }
    assert!(n_carried > 200, "{n_carried}");
}
