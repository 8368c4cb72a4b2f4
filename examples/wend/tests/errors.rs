//! Errors in programs: each message, and its place.

use crate::compile;

/// The place and the message of the error of a program.
fn error(source: &str) -> String {
    let error = compile(source).expect_err(source);
    let (line, column) = error.position(source);
    format!("{line}:{column}: {}", error.message)
}

#[test]
fn programs_that_do_not_follow_the_grammar_are_refused() {
    for (source, expected) in [
        ("", "1:1: expected a declaration"),
        (
            "main() { println 1 }",
            "1:20: expected `&&`, `;`, `||`, a comparison or an arithmetic operator",
        ),
        ("main() {\n  x = (1 + ;\n}", "2:12: expected an expression"),
        ("main() { int x println x; }", "1:16: expected `(` or `;`"),
        ("main() { println 1; int x; }", "1:21: expected `}`, a name or a statement"),
        ("main() { x = 1 < 2 < 3; }", "1:20: expected `&&`, `;`, `||` or an arithmetic operator"),
        ("main() { if true { } else if true { } }", "1:27: expected `{`"),
        ("main() { while = 3; }", "1:16: expected an expression"),
        ("main() { int while; }", "1:14: expected a name"),
        ("main() { println !!true; }", "1:19: expected an expression"),
        ("main() { } other() { }", "1:12: expected the end of the program"),
        ("main() { /* no */ }", "1:10: expected `}`, a declaration, a name, a statement or a type"),
        ("main() {\n  println \"a\\\";\n}\n", "2:11: unterminated text"),
        ("main() { println 2147483649; }", "1:18: number 2147483649 out of range"),
        (
            "main() { println 99999999999999999999; }",
            "1:18: number 99999999999999999999 out of range",
        ),
    ] {
        assert_eq!(error(source), expected, "{source}");
    }
    assert!(compile("main() { println -2147483648; println \"\\\\\"; } // the end").is_ok());
}

#[test]
fn names_and_types_that_do_not_fit_are_refused() {
    for (body, expected) in [
        ("println x;", "2:9: unknown variable `x`"),
        ("x = 1;", "2:1: unknown variable `x`"),
        ("f(1);", "2:1: unknown function `f`"),
        ("int x; bool x;", "2:13: duplicate variable `x`"),
        ("f(int a, bool a) { }", "2:15: duplicate variable `a`"),
        ("f(int a) { int a; }", "2:16: duplicate variable `a`"),
        ("f(int a) { } int f(int b) { return b; }", "2:18: duplicate function f(int)"),
        ("f(int a) { } f(bool a) { } f();", "2:28: no function f() among the overloads"),
        (
            "int f(int a) { return a; } println f(true);",
            "2:36: no function f(bool) among the overloads",
        ),
        ("int x; x = true;", "2:12: wrong type of the assigned value: expected int, found bool"),
        ("if 1 { }", "2:4: wrong type of the condition: expected bool, found int"),
        ("while 0 { }", "2:7: wrong type of the condition: expected bool, found int"),
        ("println 1 + true;", "2:13: wrong type of the operand of `+`: expected int, found bool"),
        (
            "println 1 + 2 == true;",
            "2:18: wrong type of the operand of `==`: expected int, found bool",
        ),
        (
            "println true < false;",
            "2:9: wrong type of the operand of `<`: expected int, found bool",
        ),
        ("println 1 && true;", "2:9: wrong type of the operand of `&&`: expected bool, found int"),
        ("println !1;", "2:10: wrong type of the operand of `!`: expected bool, found int"),
        ("println -true;", "2:10: wrong type of the operand of `-`: expected int, found bool"),
        (
            "int f() { return true; }",
            "2:18: wrong type of the returned value: expected int, found bool",
        ),
        ("f() { return 1; }", "2:14: wrong type of the returned value: expected void, found int"),
        ("int f() { return; }", "2:11: expected a value of type int to return"),
        ("int f() { }", "2:11: missing return in a function of type int"),
        (
            "bool f(bool b) { if b { return b; } }",
            "2:37: missing return in a function of type bool",
        ),
        ("f() { } println f();", "2:17: cannot print a call without a value"),
        ("int x; f() { } x = f();", "2:20: expected a value, found a call without one"),
        ("int x; x = \"text\";", "2:12: only `print` and `println` take texts"),
        ("f(int x) { } f(\"text\");", "2:16: only `print` and `println` take texts"),
        ("f() { int hidden; } println hidden;", "2:29: unknown variable `hidden`"),
        ("f() { g() { } } g();", "2:17: unknown function `g`"),
    ] {
        let source = format!("main() {{\n{body}\n}}");
        assert_eq!(error(&source), expected, "{body}");
    }
    for source in ["int main() { return 1; }", "main(int x) { }", "start() { }"] {
        assert!(error(source).ends_with("expected a function `main()` without a type"), "{source}");
    }
}

#[test]
fn functions_that_always_return_need_no_return_at_their_end() {
    let bodies = [
        "if b { return 1; } else { return 2; }",
        "while true { if b { return 3; } }",
        "return 4; println 5;",
        "if b { return 1; } return 2;",
    ];
    for body in bodies {
        let source = format!("main() {{ int f(bool b) {{ {body} }} println f(true); }}");
        assert!(compile(&source).is_ok(), "{body}");
    }
}

#[test]
fn reports_show_the_source_and_what_may_help() {
    let source = "main() {\n  f(int a, bool b) { }\n  f(bool c) { }\n  f(1);\n}\n";
    let report = compile(source).expect_err("it has a bad call").render("bad.wend", source);
    let expected = "error: no function f(int) among the overloads
 --> bad.wend:4:3
  |
4 |   f(1);
  |   ^
  |
  = help: known are f(bool), f(int, bool)";
    assert_eq!(report, expected);
    let source = "main() {\n  int a;\n  int a;\n}\n";
    let report = compile(source).expect_err("it has a duplicate").render("bad.wend", source);
    assert!(
        report.contains("2 |   int a;\n  |       - first declared here\n3 |   int a;\n  |       ^"),
        "{report}"
    );
}

#[test]
fn programs_that_are_too_large_are_refused() {
    let nested = |n: usize| format!("main() {{ println {}1{}; }}", "(".repeat(n), ")".repeat(n));
    assert!(compile(&nested(99)).is_ok());
    assert_eq!(error(&nested(100)), "1:117: more than 100 open braces and parentheses");
    assert_eq!(error(&nested(100_000)), "1:117: more than 100 open braces and parentheses");
    // A long list of operators does not nest.
    let sum = format!("main() {{ println 0{}; }}", " + 1".repeat(100_000));
    assert!(compile(&sum).is_ok());
    // 2,000 functions that need 1,000 variables each.
    let variables: String = (0..1_000).map(|i| format!("int v{i};")).collect();
    let uses: String = (0..1_000).map(|i| format!("v{i} = 0;")).collect();
    let functions: String = (0..2_000).map(|i| format!("f{i}() {{ used(); }}")).collect();
    let source = format!("main() {{ {variables} used() {{ {uses} }} {functions} }}");
    let message = "functions use more than 1048576 variables of their surroundings (NEEDS_MAX)";
    assert!(error(&source).ends_with(message), "{}", error(&source));
    // One function that is called often.
    let calls = "used();".repeat(2_000);
    let source = format!("main() {{ {variables} used() {{ {uses} }} {calls} }}");
    let message = "calls pass more than 1048576 variables of their surroundings (NEEDS_MAX)";
    assert!(error(&source).ends_with(message), "{}", error(&source));
}
