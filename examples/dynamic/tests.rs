use super::*;

/// Returns the output of a program in the interpreter, which must be that of native code.
fn output(source: &str) -> String {
    let mut heap = Heap::new();
    let program = parse::parse(source, &mut heap).expect("it is a program");
    let (_, native) = run_native(&program, heap.clone()).expect("it runs");
    let (interpreted, _) = run_interpreter(&program, heap).expect("it runs");
    assert_eq!(native.output, interpreted);
    interpreted
}

/// Returns the failure of a program in the interpreter, and the first line of the failure in native code.
fn failures(source: &str) -> (String, String) {
    let mut heap = Heap::new();
    let program = parse::parse(source, &mut heap).expect("it is a program");
    let native = run_native(&program, heap.clone()).err().expect("it fails").to_string();
    let interpreted = run_interpreter(&program, heap).expect_err("it fails").to_string();
    (interpreted, native.lines().next().unwrap_or_default().to_owned())
}

fn syntax_error(source: &str) -> String {
    parse::parse(source, &mut Heap::new()).expect_err("it is wrong").to_string()
}

#[test]
fn the_demonstration_prints_what_is_known() {
    let expected = "\
75025
(17647 278)
(9592 2 99991)
2432902008176640000
1.5511210043330986e25
dynamic typing
";
    assert_eq!(output(include_str!("demo.dyn")), expected);
}

#[test]
fn integers_become_floats_where_they_overflow() {
    let most = (1i64 << 62) - 1;
    let least = -(1i64 << 62);
    assert_eq!(
        output(&format!("(print (+ {most} 0)) (print (- {least} 0))")),
        format!("{most}\n{least}\n")
    );
    assert_eq!(output(&format!("(print (+ {most} 1))")), "4.611686018427388e18\n");
    assert_eq!(output(&format!("(print (- {least} 1))")), "-4.611686018427388e18\n");
    assert_eq!(output(&format!("(print (/ {least} -1))")), "4.611686018427388e18\n");
    assert_eq!(output("(print (* 2147483648 2147483648))"), "4.611686018427388e18\n");
    assert_eq!(output("(print (* 1073741823 -1073741824))"), "-1152921503533105152\n");
}

#[test]
fn operators_take_all_types_that_they_should() {
    assert_eq!(
        output("(print (/ -7 2)) (print (% -7 2)) (print (/ 7 -2)) (print (% 7 -2))"),
        "-3\n-1\n-3\n1\n"
    );
    assert_eq!(
        output("(print (+ 1 0.5)) (print (< 1 1.5)) (print (= 2 2.0))"),
        "1.5\ntrue\ntrue\n"
    );
    assert_eq!(
        output(r#"(print (< "a" "b")) (print (= "a" "a")) (print (= nil false))"#),
        "true\ntrue\nfalse\n"
    );
    assert_eq!(output("(print (list 1 (list 2.5 nil) true))"), "(1 (2.5 nil) true)\n");
    assert_eq!(output("(let l (list)) (push l l) (print (= l (get l 0)))"), "true\n");
}

#[test]
fn what_goes_wrong_is_said_by_both() {
    for (source, expected) in [
        ("(+ 1 nil)", "+ cannot be applied to 1 and nil"),
        ("(< (list) 1)", "< cannot be applied to () and 1"),
        ("(/ 1 0)", "division by zero"),
        ("(get (list 1 2) 2)", "index 2 is out of bounds of a list of 2"),
        ("(push 1 2)", "push needs a list, not 1"),
    ] {
        let (interpreted, native) = failures(source);
        assert_eq!(interpreted, expected);
        assert_eq!(native, expected);
    }
    let (interpreted, native) = failures("(define (f n) (+ (f n) 1)) (f 1)");
    assert_eq!(interpreted, "calls are nested more than 2000 deep");
    assert!(native.starts_with("call stack exhausted"), "{native}");
}

#[test]
fn syntax_errors_name_the_line() {
    assert_eq!(syntax_error("(print 1\n(print 2)"), "line 1: the parenthesis is never closed");
    assert_eq!(syntax_error("\n)"), "line 2: no parenthesis is open");
    assert_eq!(syntax_error("(print x)"), "line 1: unknown variable `x`");
    assert_eq!(syntax_error("(f 1)"), "line 1: unknown function `f`");
    assert_eq!(syntax_error("(+ 1)"), "line 1: `+` takes 2 operands, not 1");
    assert_eq!(syntax_error("(define (f a a) a)"), "line 1: there is a parameter `a` already");
    assert_eq!(syntax_error(&"(".repeat(1_000_000)), "line 1: more than 200 parentheses are open");
}
