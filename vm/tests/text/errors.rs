//! Messages and places of errors.

use slotvm_bytecode::text;

/// Checks the line, column and message of the first error.
#[track_caller]
fn check(source: &str, line: usize, column: usize, message: &str) {
    let error = text::parse(source).expect_err(source);
    assert_eq!((error.line(), error.column(), error.message()), (line, column, message), "{error}");
}

#[test]
fn errors_show_the_line_and_the_nearest_name() {
    let source =
        "; a comment\nfunc fib(n: i64) -> i64 {\n  local.get n\n  call fibb ; é\n  return\n}\n";
    let error = text::parse(source).expect_err("there is no `fibb`").with_path("fib.vasm");
    let expected = "\
error: unknown function `fibb`
 --> fib.vasm:4:8
  |
4 |   call fibb ; é
  |        ^^^^
  |
  = help: did you mean `fib`?";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn several_errors_are_reported() {
    let source = "func f(\nfunc g() {\n  drp\n  i64.const\n  nop\n  local.get x\n}\nglobal h i6";
    let error = text::parse(source).expect_err("all of it is wrong");
    let places: Vec<_> = error.diagnostics().iter().map(|d| (d.line(), d.column())).collect();
    assert_eq!(places, [(2, 1), (3, 3), (4, 3), (6, 13), (8, 10)]);
    assert_eq!(error.diagnostics()[1].help(), Some("did you mean `drop`?"));
    assert_eq!(error.to_string().matches("error:").count(), 5);
}

#[test]
fn errors_are_limited() {
    let error = text::parse(&"\u{1}\n".repeat(1_000)).expect_err("no tokens");
    assert_eq!(error.diagnostics().len(), 20);
    let calls = "  call nowhere br nowhere\n".repeat(100_000);
    let error = text::parse(&format!("func f() {{\n{calls}}}")).expect_err("no names");
    assert_eq!(error.diagnostics().len(), 20);
}

#[test]
fn long_lines_are_cut() {
    let nops = "nop ".repeat(50_000);
    let source = format!("func f() {{ {nops} call é {nops} }}");
    let error = text::parse(&source).expect_err("é is no name");
    assert_eq!((error.line(), error.column()), (1, 12 + 200_000 + 6));
    assert!(error.to_string().len() < 2_000, "{error}");
    // The report gives the column in the whole line, not in the excerpt that is shown.
    assert!(error.to_string().contains(" --> <text>:1:200018\n"), "{error}");
}

#[test]
fn hints_without_a_branch() {
    let message = "expected `br_if` after `.likely`";
    check("func f() {\n  .likely\n  nop return }", 2, 3, message);
    check(
        "func f() {\n  return .likely }\nfunc g() { l: i32.const 0 br_if l return }",
        2,
        10,
        message,
    );
    check("func f() {\n  .likely at\n  return }", 3, 3, "expected a code offset, found `return`");
}

#[test]
fn tokens() {
    check("func f() {\n  ^\n}", 2, 3, "unexpected character '^'");
    check("module \"abc\n", 1, 8, "missing closing quote on this line");
    check("module \"a\\q\"", 1, 10, "unknown escape");
    check("module \"\\xff\"", 1, 8, "a name must be valid UTF-8");
    check("data 0 \"\\0f\"", 1, 9, "ambiguous `\\0` before a digit; write `\\x00`");
    check("é", 1, 1, "unexpected character 'é'");
}

#[test]
fn items() {
    check("functon f() {}", 1, 1, "expected an item, found `functon`");
    check("}", 1, 1, "expected an item, found `}`");
    check("module \"a\"\nmodule \"b\"", 2, 1, "duplicate module name");
    check("type 1 = () -> ()", 1, 6, "expected type 0, found 1");
    check("shape 0 = (0 i64)", 1, 7, "expected shape 1, found 0");
    check("memory 0 1 memory m 1", 1, 19, "too many memories; at most 1");
    check("memory 0 65537", 1, 10, "too many pages in a memory; at most 65536");
    check("export \"a\" func f", 1, 17, "unknown function `f`");
    check("start f", 1, 7, "unknown function `f`");
    check("func f() {} start f start f", 1, 21, "duplicate start function");
    check("frame_stack 0 8 frame_stack 0 8", 1, 17, "duplicate frame stack");
    check("data d t at i32.const 0 \"\"", 1, 8, "unknown memory `t`");
    check("data d m \"\"", 1, 10, "expected `at`, found a string");
    check("elem e func g, f", 1, 13, "unknown function `g`");
    check("elem e funcref [ref.func f", 1, 27, "expected `]`, found the end of the text");
    check(
        "name func 0 \"a\" func b() {}",
        1,
        1,
        "`name` line for an entity that already has a name",
    );
    let message = "expected `func`, `table`, `memory` or `global`, found `fnc`";
    check("import \"a\" \"b\" fnc g()", 1, 16, message);
    check("import \"a\" \"b\" leaf memory m 1", 1, 21, "expected `func`, found `memory`");
    let message = "expected imported functions before defined functions";
    check("func f() {}\nimport \"a\" \"b\" func g()", 2, 21, message);
}

#[test]
fn functions() {
    check("func f() {}\nfunc f() {}", 2, 6, "the function `f` is defined twice");
    check("func 1() {}", 1, 6, "expected function 0, found 1");
    check("func f type 0(i64) {}", 1, 14, "signature differs from type 0");
    check("func f(i64 i32) {}", 1, 12, "expected `,` or `)`, found `i32`");
    check("func f(a: i6) {}", 1, 11, "expected a type, found `i6`");
    check("func f(a: i64, a: i64) {}", 1, 16, "the local `a` is defined twice");
    check("func f() {\nfunc g() {}", 2, 1, "missing `}` of function `f`");
    check("func f() {\n  nop", 2, 6, "missing `}` of function `f`");
    check("func f() {\nm(i64) }", 2, 8, "expected `:`, found `}`");
    check("func f() { br_table [0 }", 1, 24, "expected a label, found `}`");
}

#[test]
fn constant_expressions() {
    check("global g: i64 = i64.cons 5", 1, 17, "unknown instruction `i64.cons`");
    check("global g: i64 = global.get h", 1, 28, "unknown global `h`");
    check("global g: i64 = local.get h", 1, 27, "unknown local `h`");
    check("global g: i64 = br h", 1, 20, "unknown label `h`");
    let message = "expected an `i64` after `i64.const` on the same line";
    check("global g: i64 = i64.const\n5", 1, 17, message);
}

#[test]
fn instructions() {
    let check = |inst: &str, column: usize, message: &str| {
        check(&format!("func f(n: i64) {{\nl:\n{inst}\n}}"), 3, column, message);
    };
    check("i64.ad", 1, "unknown instruction `i64.ad`");

    check("drop 3", 6, "expected an instruction, found `3`");
    check("call", 1, "expected a function after `call` on the same line");
    check("call (", 6, "expected a function, found `(`");
    check("local.get m", 11, "unknown local `m`");
    check("br m", 4, "unknown label `m`");
    check("br_table l", 10, "expected `[`, found `l`");
    check("br_keep l", 9, "expected a number of operands after `l` on the same line");
    check("br_keep l l", 11, "expected a number of operands, found `l`");
    check("br_table [l]", 12, "expected the default label after `]` on the same line");
    check("global.get g", 12, "unknown global `g`");
    check("table.get t", 11, "unknown table `t`");
    check("memory.init d", 13, "unknown data segment `d`");
    check("elem.drop e", 11, "unknown element segment `e`");
    check("i32.const 4294967296", 11, "integer does not fit `i32`");
    check("i32.const 1.5", 11, "malformed integer");
    check("i32.const x", 11, "expected an `i32`, found `x`");
    check("i32.const 'ab'", 11, "expected one character in a character literal");
    check("f32.const 1e40", 11, "the number is too large for `f32`");
    check("f64.const nan:0x0", 11, "invalid NaN payload; expected 1 to 0xfffffffffffff");
    check("i32.load -8", 10, "malformed integer");
    check("i32.load_indexed 3", 18, "invalid scale; expected 1, 2, 4 or 8");
    check("i32.load_indexed", 1, "expected a scale after `i32.load_indexed` on the same line");
    check(
        "v128.const 0x1_00000000_00000000_00000000_00000000",
        12,
        "integer does not fit 128 bits",
    );
    check(
        "v128.const i32x5 1",
        12,
        "expected a number of 128 bits or lanes such as `i32x4`, found `i32x5`",
    );
    check("v128.const i8x16 1 256", 20, "the lane does not fit 8 bits");
    check("v128.const i16x8 -32769", 18, "the lane does not fit 16 bits");
    check("v128.const i64x2 1", 18, "expected an `i64` after `1` on the same line");
    check("i32x4.extract_lane 4", 20, "lane 4 out of range; expected less than 4");
    check("i8x16.shuffle 32", 15, "lane 32 out of range; expected less than 32");
    check("v128.load64_lane 2", 18, "lane 2 out of range; expected less than 2");
    check("v128.load8_lane", 1, "expected a lane after `v128.load8_lane` on the same line");
    check("call_indirect f", 15, "expected the number of a type or `(`, found `f`");
    check("ref.null i64", 10, "expected a reference type");
    check("l:", 1, "the label `l` is defined twice");
    check("5:", 1, "expected label 1, found 5");
    check("local 60001 i64", 13, "too many locals in a function; at most 60000");
    check(".line x", 7, "expected a line number, found `x`");
}

/// A report may be written to a terminal, so it contains no control characters.
#[test]
fn reports_do_not_control_a_terminal() {
    for text in ["\u{1b}[2J", "\u{9b}2J", "\u{202e}", "\u{7}", "\u{7f}", "\u{200b}"] {
        for source in
            [format!("func {text}"), format!("func f() {{ {text}\n}}"), format!("\"{text}\" x")]
        {
            let report = slotvm_bytecode::text::parse(&source).expect_err(text).to_string();
            let shown = slotvm_bytecode::printable::Lines(&report).to_string();
            assert_eq!(report, shown, "{report:?}");
        }
    }
}

/// Names cannot add lines that look like another place in the report.
#[test]
fn names_do_not_forge_lines_of_reports() {
    let source = "func f() { call $\"g`\\n --> other:7:7\\n\" }";
    let report =
        slotvm_bytecode::text::parse(source).expect_err("there is no such function").to_string();
    assert!(!report.lines().any(|line| line.trim_start().starts_with("--> other")), "{report}");
}
