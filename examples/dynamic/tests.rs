//! Output and errors of programs, in every tier. A stressed collector runs at each allocation, and overwrites the space that it
//! leaves.

use std::io;
use std::sync::{Arc, Mutex};

use slotvm::{Config, SlotMode, Tier, TierCompilation, TierThresholds};

use crate::heap::Output;
use crate::session::{Session, report};

/// The output of a program so far.
#[derive(Clone, Debug, Default)]
struct Printed(Arc<Mutex<String>>);

impl Output for Printed {
    fn print(&mut self, line: &str) -> io::Result<()> {
        let mut printed = self.0.lock().expect("no thread has panicked");
        printed.push_str(line);
        printed.push('\n');
        Ok(())
    }
}

/// All tiers, slots in memory, and code with exits that is made again.
fn configs() -> Vec<(String, Config)> {
    let mut configs = Vec::new();
    for &tier in Tier::ALL {
        let mut config = Config::new();
        config.tier(tier);
        configs.push((tier.name().to_owned(), config.clone()));
        if tier == Tier::Jit {
            configs.push((
                "slots in memory".to_owned(),
                config.clone().slots(SlotMode::Memory).clone(),
            ));
            config.signals_based_traps(false);
            configs.push(("without signals".to_owned(), config));
        } else if tier == Tier::Auto {
            for n in [1, 2, 3] {
                let mut config = config.clone();
                config.tier_thresholds(Some(TierThresholds { calls: n, rounds: n }));
                config.tier_compilation(TierCompilation::Synchronous);
                configs.push((format!("tiers from {n} on"), config.clone()));
                config.tier_exits(n.into(), n == 3);
                configs.push((format!("tiers from {n} on, with exits"), config));
            }
        }
    }
    configs
}

/// Runs programs that share their globals, and returns what they print and the values or errors that they end with.
fn run_with(config: &Config, is_stressed: bool, sources: &[&str]) -> String {
    let printed = Printed::default();
    let session = Session::new(config, is_stressed, Box::new(printed.clone()));
    let mut session = session.expect("an engine of this kind exists");
    for source in sources {
        let line = match session.run("test", source) {
            Ok(None) => continue,
            Ok(Some(value)) => value,
            Err(error) => report(&error),
        };
        printed.clone().print(&line).expect("a string takes it");
    }
    printed.0.lock().expect("no thread has panicked").clone()
}

/// Checks what programs print, everywhere.
#[track_caller]
fn check_all(sources: &[&str], expected: &str) {
    for (name, config) in configs() {
        for is_stressed in [false, true] {
            let found = run_with(&config, is_stressed, sources);
            assert_eq!(found.trim_end(), expected.trim(), "{name}, stress: {is_stressed}");
        }
    }
}

#[track_caller]
fn check(source: &str, expected: &str) {
    check_all(&[source], expected);
}

/// Checks what is wrong with a text.
#[track_caller]
fn check_syntax(source: &str, expected: &str) {
    let found = run_with(&Config::new(), false, &[source]);
    assert_eq!(found.trim_end(), format!("error: test:{expected}"));
}

#[test]
fn numbers_are_doubles_however_they_are_kept() {
    check(
        "print(1 + 2) print(7 / 2) print(6 / 2) print(0.1 + 0.2) print(1e3) print(-7 // 2) print(-7 % 3) print(7 // -2)
         print(7 % -3) print(2147483647 + 1) print(-2147483648 - 1) print(65536 * 65536) print(3 * 1.5)
         print(5.5 // 1) print(5.5 % 2) print(1 / 0) print(-1 / 0) print(floor(-1.5)) print(floor(1e10 + 0.5))
         print(sqrt(16)) print(-(3)) print(floor(7)) print(9007199254740992 + 1)",
        "3\n3.5\n3\n0.30000000000000004\n1000\n-4\n2\n-4\n-2\n2147483648\n-2147483649\n4294967296\n4.5\n5\n1.5\ninf\n-inf\n\
         -2\n10000000000\n4\n-3\n7\n9007199254740992",
    );
    // The opposite of 0, and its products with negative numbers, are -0.
    check(
        "fn inverse(x) { return 1 / x } let zero = 0
         print(inverse(-zero)) print(inverse(zero * -5)) print(inverse(-5 * zero)) print(inverse(zero * 5))
         print(inverse(zero - zero)) print(inverse(zero // -5)) print(inverse(-4 % 2)) print(-zero == zero)",
        "-inf\n-inf\n-inf\ninf\ninf\n-inf\ninf\ntrue",
    );
}

#[test]
fn trees_of_operators_take_any_numbers() {
    check(
        "fn f(a, b, c) { return (a * b + c) % 1000003 - a // 7 }
         print(f(3, 4, 5)) print(f(3.5, 4, 5)) print(f(100000, 100000, 7)) print(f(-3, 4, 5)) print(f(1e9, 1e9, 0.5))
         fn eighths(n) { return [n % 8, n // 8, n % 1, n // 1, n % 5, n // 5] }
         print(eighths(13)) print(eighths(-13)) print(eighths(-13.5)) print(eighths(-2147483648))
         fn g(a, b, c) { return a * b * c + a * a - b }
         print(g(70000, 70000, 70000)) print(g(1, 2, 3)) print(g(0.5, 2, 3))
         fn h(a, b) { return a + 1 < b * 2 and a - b != 3 }
         print(h(1, 2)) print(h(5, 2)) print(h(0.5, 0.75)) print(h(7, 4))",
        "17\n19\n955725\n999997\n-142857142\n[5, 1, 0, 13, 3, 2]\n[3, -2, 0, -13, 2, -3]\n\
         [2.5, -2, 0.5, -14, 1.5, -3]\n[0, -268435456, 0, -2147483648, 2, -429496730]\n343004899930000\n5\n1.25\ntrue\nfalse\nfalse\nfalse",
    );
}

#[test]
fn comparisons_and_equality() {
    check(
        r#"print(1 < 2) print(2 <= 1.5) print("a" < "b") print("b" > "abc") print("a" >= "a") print(1 == 1.0)
           print("ab" == "a" .. "b") print(nil == false) print([] == []) print("1" == 1) print(0 == -0)
           let nan = 0 / 0 print(nan == nan) print(nan != nan) print(nan < 1) let a = [1] print(a == a)
           fn same(x, y) { return x == y } print(same(2, 2.0)) print(same(2.5, 2.5))
           print(same(2, "2")) print(same(nil, nil))"#,
        "true\nfalse\ntrue\ntrue\ntrue\ntrue\ntrue\nfalse\nfalse\nfalse\ntrue\nfalse\ntrue\nfalse\ntrue\ntrue\ntrue\n\
         false\ntrue",
    );
}

#[test]
fn conditions_and_loops() {
    check(
        "fn kind(n) { if n < 0 { return \"negative\" } else if n == 0 { return \"zero\" } else { return \"positive\" } }
         print(kind(-1)) print(kind(0)) print(kind(1))
         print(nil or 2) print(false and 1) print(0 and 3) print(not nil) print(not (1 < 2 and (2 < 1 or not false)))
         let i = 0 let sum = 0
         while true { i = i + 1 if i == 5 { continue } if i > 8 { break } sum = sum + i }
         print(sum)
         for j = 2 to 5 { if j == 3 { continue } print(j) }
         for j = 0.0 to -1 { print(j) }
         for j = 2147483645 to 2147483647 { print(j) }
         for j = 0 to 4 { j = j + 1 print(j) }",
        "negative\nzero\npositive\n2\nfalse\n3\ntrue\nfalse\n31\n2\n4\n2147483645\n2147483646\n1\n2\n3\n4",
    );
}

#[test]
fn functions_and_closures() {
    check(
        "fn fib(n) { if n < 2 { return n } return fib(n - 1) + fib(n - 2) }
         print(fib(15))
         fn counter() { let n = 0 return {next: fn() { n = n + 1 return n }, reset: fn(to) { n = to }} }
         let a = counter() let b = counter()
         a.next() a.next() b.next()
         print(a.next()) a.reset(10) print(a.next()) print(b.next())
         let fs = []
         for i = 0 to 3 { push(fs, fn() { return i }) }
         print(fs[0]() + fs[1]() * 10 + fs[2]() * 100)
         fn outer(x) { let odd = nil
           fn even(n) { if n == 0 { return true } return odd(n - 1) }
           odd = fn(n) { if n == 0 { return false } return even(n - 1) }
           print(even(7))
           return fn(y) { return fn(z) { return x + y * z } } }
         print(outer(1)(2)(3))
         fn nested(n) { fn down(k) { if k == 0 { return n } return down(k - 1) } return down(n) }
         print(nested(5)) print(fib)
         let twice = fn(f) { return fn(x) { return f(f(x)) } }
         print(twice(twice(fn(x) { return x * 2 }))(1))
         fn main() { 1 } print(main())",
        "610\n3\n11\n2\n210\nfalse\n7\n5\nfunction\n16\nnil",
    );
}

#[test]
fn arrays() {
    check(
        "let a = [1, 2.5, \"x\", nil, true, [3, []]] print(a) print(len(a)) print([])
         a[1] = a[0] + a[1] print(a[1]) print(a[1.0]) push(a, 7) print(pop(a)) print(pop([]))
         let b = [] for i = 0 to 100 { push(b, [i]) } let sum = 0 for i = 0 to len(b) { sum = sum + b[i][0] } print(sum)
         b[3] = b print(b[3][3][4]) print(len(str(b)) < 100000)",
        "[1, 2.5, x, nil, true, [3, []]]\n6\n[]\n3.5\n3.5\n7\nnil\n4950\n[4]\ntrue",
    );
}

#[test]
fn objects_change_their_shapes() {
    check(
        "let p = {x: 1, y: {z: 2}} print(p) print(p.x + p.y.z) print(p.none)
         p.x = 5 p.w = 6 print(p)
         let many = {} for i = 0 to 1 { many.a = 1 many.b = 2 many.c = 3 many.d = 4 many.e = 5 many.f = 6 many.g = 7
           many.h = 8 many.i = 9 many.j = 10 many.k = 11 many.l = 12 many.m = 13 many.n = 14 }
         many.n = many.n + many.e print(many)
         fn x_of(o) { return o.x }
         print(x_of({x: 1}) + x_of({y: 0, x: 2}) + x_of({x: 3}) + x_of({a: 0, b: 0, c: 0, d: 0, x: 4})) print(x_of(many))
         let literal = {a: 1, b: 2, c: 3, d: 4, e: 5, f: 6} print(literal.f + many.f) print(literal.e + many.e)",
        "{x: 1, y: {z: 2}}\n3\nnil\n{x: 5, y: {z: 2}, w: 6}\n\
         {a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7, h: 8, i: 9, j: 10, k: 11, l: 12, m: 13, n: 19}\n10\nnil\n12\n10",
    );
}

#[test]
fn fields_have_limits() {
    let fields: String = (0..251).map(|i| format!("o.f{i} = {i}\n")).collect();
    check_one(
        &format!("let o = {{}}\n{fields}"),
        "error: an object has at most 250 fields; use a map\n    at main (test:252:1)",
    );
    // Nine fields in all orders.
    let assign: String = (0..9).map(|i| format!("if i == {i} {{ o.f{i} = 0 }}\n")).collect();
    check_one(
        &format!(
            "fn set(o, i) {{\n{assign}}}
             fn all(order, used) {{
               if len(order) == 9 {{ let o = {{}} for i = 0 to 9 {{ set(o, order[i]) }} return }}
               for i = 0 to 9 {{
                 if not used[i] {{ used[i] = true push(order, i) all(order, used) pop(order) used[i] = false }}
               }}
             }}
             fn run() {{ all([], [nil, nil, nil, nil, nil, nil, nil, nil, nil]) }}
             print(try(run, fn(e) {{ return e }}))"
        ),
        "fields are added in too many orders; use maps",
    );
}

#[test]
fn maps_have_strings_and_numbers_as_keys() {
    check(
        r#"let m = map() m["a"] = 1 m["b"] = 2 m[1] = "one" m[1.5] = "half" m[-0.0] = "zero"
           print(m["a"] + m["b"]) print(m[1.0] .. m[3 / 2] .. m[0]) print(m["c"]) print(m) print(len(m)) print(m[[]])
           for i = 0 to 200 { m[i * 1024] = i m["k" .. i] = -i }
           let sum = 0 for i = 0 to 200 { sum = sum + m[i * 1024] - m["k" .. i] } print(sum) print(len(m))
           let names = keys(m) print(len(names)) let total = 0
           for i = 0 to len(names) { if m[names[i]] != nil { total = total + 1 } } print(total)"#,
        "3\nonehalfzero\nnil\nmap of 5\n5\nnil\n39800\n404\n404\n404",
    );
}

#[test]
fn strings() {
    check(
        r#"let s = "hello" .. " " .. 1 .. "/" .. 2.5 print(s) print(len(s)) print(substring(s, 1, 4))
           print(substring(s, 3, 99))
           print(byte(s, 0)) print(byte(s, 99)) print(char(955)) print(str([1, nil]) .. "!") print(num(" 12.5 ") + 1)
           print(num("x"))
           let t = "" for i = 0 to 50 { t = t .. char(97 + i % 26) } print(t) print("a\n\"b\\")"#,
        "hello 1/2.5\n11\nell\nlo 1/2.5\n104\nnil\nλ\n[1, nil]!\n13.5\nnil\n\
         abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwx\na\n\"b\\",
    );
}

#[test]
fn errors_have_a_place_and_the_functions_that_were_active() {
    check(
        "fn half(x) {\n  return x / 2\n}\nfn outer(x) { return half(x) + 1 }\nouter(nil)",
        "error: expected a number, found nil\n    at half (test:2:10)\n    at outer (test:4:26)\n    at main (test:5:6)",
    );
    check(
        "fn raise(n) {\n  if n == 0 { error({code: 7}) }\n  raise(n - 1)\n}\nraise(5)",
        "error: {code: 7}\n    at raise (test:2:15)\n    at raise (test:3:8)\n    ... 4 times more\n    at main (test:5:6)",
    );
    for (source, message, place) in [
        ("nil + 1", "expected a number, found nil", "1:1"),
        ("1 < {}", "expected a number, found an object", "1:5"),
        ("[] < {}", "an array cannot be compared with an object", "1:4"),
        ("-true", "expected a number, found a boolean", "1:2"),
        ("let a = [1] a[1]", "index 1 is out of bounds of an array of 1", "1:14"),
        ("let a = [1] a[-1] = 2", "index -1 is out of bounds of an array of 1", "1:13"),
        ("let a = [1] a[0.5]", "index 0.5 of an array is not an integer", "1:14"),
        ("let a = [1] a[\"x\"]", "expected an integer as the index, found a string", "1:14"),
        ("nil[0]", "expected an array or a map, found nil", "1:4"),
        ("let n = 5 n.x", "expected an object, found a number", "1:12"),
        ("let n = 5 n.x = 1", "expected an object, found a number", "1:11"),
        ("let n = 5 n(1)", "expected a function, found a number", "1:11"),
        (
            "let f = fn(x) { return x } f()",
            "the function takes another number of arguments",
            "1:29",
        ),
        ("len(5)", "expected a string, an array or a map, found a number", "1:1"),
        ("push(nil, 1)", "expected an array, found nil", "1:1"),
        ("map()[[]] = 1", "expected a string or a number as the key, found an array", ""),
        ("for i = 0 to 1e10 { }", "expected an integer of 32 bits, found a number", "1:14"),
        ("\"a\" .. nil", "expected a string or a number, found nil", "1:5"),
        ("floor(\"a\")", "expected a number, found a string", "1:1"),
        ("sqrt(\"a\")", "expected a number, found a string", "1:6"),
        ("char(-1)", "expected the number of a character", "1:1"),
        ("try(1, 2)", "expected a function, found a number", "1:1"),
    ] {
        let place = if place.is_empty() { "1:1" } else { place };
        check(source, &format!("error: {message}\n    at main (test:{place})"));
    }
}

#[test]
fn errors_are_caught() {
    check(
        "print(try(fn() { return 1 }, fn(e) { return 2 }))
         print(try(fn() { error({code: 7}) }, fn(e) { return e.code }))
         print(try(fn() { return nil + 1 }, fn(e) { return \"caught: \" .. e }))
         fn deep(n) { return try(fn() { if n == 0 { error(\"bottom\") } return deep(n - 1) }, fn(e) { error(e .. n) }) }
         print(try(fn() { return deep(3) }, fn(e) { return e }))
         print(try(fn() { return (fn(x) { })() }, fn(e) { return e }))
         fn endless(n) { return endless(n + 1) + 1 }
         print(try(fn() { return endless(0) }, fn(e) { return e }))
         print(try(fn() { error(0.0) }, fn(e) { return e }))
         fn again(n) { return try(fn() { return again(n + 1) }, fn(e) { return e }) }
         print(again(0))
         try(fn() { error(1) }, fn() { })",
        "1\n7\ncaught: expected a number, found nil\nbottom0123\nthe function takes another number of arguments\n\
         call stack exhausted\n0\nlimit host_calls_max (100) exceeded: 101 wanted\n\
         error: the function takes another number of arguments\n    at main (test:12:10)",
    );
}

#[test]
fn lines_of_a_dialogue_share_globals() {
    check_all(
        &[
            "let a = 1",
            "fn f(x) { return x + a }",
            "f(2)",
            "let a = a * 10",
            "f(2)",
            "fn g(x) { return f(x) * 2 }",
            "g(1)",
            "fn f(x) { return x * 100 }",
            "g(1)",
            "let o = {x: 1} let m = map() m[\"k\"] = \"v\"",
            "o.x = o.x + 1  m[2] = [o]",
            "[o, m[\"k\"], m[2]]",
            "error(\"stop\")",
            "let h = fn() { a = a + 1 return a }",
            "h() + h()",
            "let a = \"again\"",
            "h()",
            "undeclared",
        ],
        "3\n12\n22\n200\n[{x: 2}, v, [{x: 2}]]\nerror: stop\n    at main (test:1:1)\n23\n\
         error: expected a number, found a string\n    at fn (test:1:20)\n    at main (test:1:2)\n\
         error: test:1:1: unknown variable `undeclared`",
    );
}

#[test]
fn syntax_errors_name_the_place_and_the_rule() {
    check_syntax("print(1", "1:8: expected `,`, found the end");
    check_syntax("\nlet = 1", "2:5: expected a name, found `=`");
    check_syntax("print(x)", "1:7: unknown variable `x`");
    check_syntax("x = 1", "1:1: unknown variable `x`");
    check_syntax("fn f() { } f = 1", "1:12: `f` is a function and cannot be assigned");
    check_syntax("let a = 1 let a = 2", "1:15: `a` is declared already");
    check_syntax("let len = 1", "1:5: `len` is a function of the library");
    check_syntax("len()", "1:1: `len` takes 1 arguments, found 0");
    check_syntax("fn f(a, a) { }", "1:9: there is a parameter `a` already");
    check_syntax("{a: 1, a: 2}", "1:8: there is a field `a` already");
    let fields: Vec<String> = (0..251).map(|i| format!("f{i}: 0")).collect();
    check_syntax(
        &format!("{{{}}}", fields.join(", ")),
        "1:2142: an object has at most 250 fields; use a map",
    );
    check_syntax("break", "1:1: `break` outside a loop");
    check_syntax("1 = 2", "1:1: this cannot be assigned");
    check_syntax("if true { 1", "1:12: expected `}`, found the end");
    check_syntax("\"abc", "1:1: the string does not end on its line");
    check_syntax("\"\\x\"", "1:1: expected `n`, `\"` or `\\` after `\\` in a string");
    check_syntax("1 $ 2", "1:3: unexpected character `$`");
    check_syntax("1e", "1:1: expected digits of the exponent");
    check_syntax(&"(".repeat(100_000), "1:201: nested more than 200 deep");
    check_syntax(&"-".repeat(100_000), "1:201: nested more than 200 deep");
    check_syntax(&["1"; 100_000].join(" + "), "1:799: nested more than 200 deep");
    check_syntax(&"if true {".repeat(100_000), "1:1804: nested more than 200 deep");
}

#[test]
fn long_programs_take_no_time_for_each_variable_before() {
    let many: String = (0..3000).map(|i| format!("let v{i} = {i} ")).collect();
    let sum: String = (0..3000).map(|i| format!("sum = sum + v{i}\n")).collect();
    check_one(&format!("fn f() {{ let sum = 0 {many}\n{sum} return sum }} print(f())"), "4498500");
    check_one(&format!("{many} let sum = 0 {sum} print(sum)"), "4498500");
}

#[track_caller]
fn check_one(source: &str, expected: &str) {
    assert_eq!(run_with(&Config::new(), false, &[source]).trim_end(), expected);
}

#[test]
fn under_stress_each_allocation_collects() {
    let mut session =
        Session::new(&Config::new(), true, Box::new(Printed::default())).expect("it is an engine");
    session.run("test", "for i = 0 to 1000 { let garbage = [i] }").expect("it runs");
    assert!(session.n_collections() >= 1000);
}

/// More is alive than a space has room for at first, and most of what is made is not used any more.
#[test]
fn spaces_grow() {
    check_one(
        "let all = [] for i = 0 to 300000 { push(all, {i: i, text: \"t\" .. i}) let garbage = [i, i, i] }
         let sum = 0 for i = 0 to len(all) { sum = sum + all[i].i + len(all[i].text) } print(sum)",
        "45001838890",
    );
}

#[test]
fn the_demonstration_and_the_programs_print_what_is_known() {
    check_one(
        include_str!("demo.dyn"),
        "fib(20) is 6765\nprimes: [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]\nthe: 3, fox: 1, dog: 1\n1 2 3\n\
         caught: no area of a triangle\n78.53981633974483",
    );
    for (program, expected) in [
        (include_str!("programs/recursion.dyn"), "9227465\n2045"),
        (include_str!("programs/loops.dyn"), "410011\n29999839"),
        (include_str!("programs/arrays.dyn"), "148933\n148933\n148933\n148933\n0\n70013\n139967"),
        (include_str!("programs/floats.dyn"), "96625\n1274223985"),
        (include_str!("programs/closures.dyn"), "30000000\n516518\n10000\n135"),
        (include_str!("programs/maps.dyn"), "11700\n3023794200"),
        (include_str!("programs/trees.dyn"), "1015808\n1046528\n1048448\n1048568\n131071"),
        (include_str!("programs/fields.dyn"), "-166525\n11666664"),
    ] {
        check_one(program, expected);
    }
}

/// The blocks of a kind of the guide's chapter, each with the block after it.
fn blocks(kind: &str) -> Vec<(&'static str, &'static str)> {
    let chapter = include_str!("../../docs/guide/src/language.md");
    let blocks: Vec<_> = chapter
        .split("```")
        .skip(1)
        .step_by(2)
        .filter_map(|block| block.split_once('\n'))
        .collect();
    let next = blocks.iter().skip(1).map(|(_, text)| *text).chain([""]);
    let pairs = blocks.iter().zip(next).filter(|((found, _), _)| *found == kind);
    pairs.map(|((_, text), next)| (*text, next)).collect()
}

#[test]
fn the_chapter_shows_code_of_these_files() {
    let files = [
        include_str!("collector.rs"),
        include_str!("heap.rs"),
        include_str!("library.rs"),
        include_str!("session.rs"),
        include_str!("value.rs"),
        include_str!("compile/arithmetic.rs"),
        include_str!("compile/function.rs"),
        include_str!("compile/objects.rs"),
    ];
    let plain =
        |text: &str| text.lines().map(|line| line.trim().to_owned() + "\n").collect::<String>();
    let files = files.map(plain);
    let excerpts = blocks("rs");
    assert!(excerpts.len() >= 8);
    for (excerpt, _) in excerpts {
        assert!(files.iter().any(|file| file.contains(&plain(excerpt))), "no file has\n{excerpt}");
    }
}

#[test]
fn the_programs_of_the_chapter_print_what_stands_below_them() {
    let programs = blocks("dyn");
    assert!(programs.len() >= 3);
    for (program, expected) in programs {
        let found = run_with(&Config::new(), false, &[program]);
        assert_eq!(found.replace("(test:", "(chapter:"), expected);
    }
    for (dialogue, _) in blocks("console") {
        let lines: Vec<&str> =
            dialogue.lines().filter_map(|line| line.strip_prefix("> ")).collect();
        let expected: String = dialogue
            .lines()
            .filter(|line| !line.starts_with("> "))
            .map(|line| line.to_owned() + "\n")
            .collect();
        let found = run_with(&Config::new(), false, &lines);
        assert_eq!(found.replace("(test:", "(line 4:"), expected);
    }
}
