//! Texts that expand from few bytes, or are not modules at all.

/// Makes a text of about the given size in bytes.
type Make = fn(usize) -> String;

pub(crate) const CASES: &[(&str, Make)] = &[
    ("functions", |n| lines(n, |i| format!("func {i}(){{return}}\n"))),
    ("functions with names", |n| lines(n, |i| format!("func f{i}(){{return}}\n"))),
    ("labels with names", |n| body(n, |i| format!("l{i}:nop\n"))),
    ("labels with numbers", |n| body(n, |i| format!("{i}:nop\n"))),
    ("labels at a place", |n| body(n, |i| format!("l{i}:"))),
    ("instructions", |n| body(n, |i| ["dup ", "i32.const 0 "][usize::from(i == 0)].to_owned())),
    ("vectors", |n| body(n, |_| "v128.const 0 drop ".to_owned())),
    ("targets of a table", targets),
    ("runs of locals", |n| {
        body(n.min(600_000), |i| format!("local {}", ["i32\n", "i64\n"][i % 2]))
    }),
    ("lines", |n| body(n, |i| format!(".line {i}\nnop\n"))),
    ("shapes", |n| {
        body(n, |i| format!("unreachable {i}({}{}):", "i32 ".repeat(i % 99), "i64 ".repeat(i / 99)))
    }),
    ("types", |n| lines(n, |i| format!("type {i}=()\n"))),
    ("types of calls", |n| {
        body(n, |i| format!("call_indirect({}{})\n", "i32 ".repeat(i % 99), "i64 ".repeat(i / 99)))
    }),
    ("imports", |n| lines(n, |i| format!("import \"\"\"\"func {i}()\n"))),
    ("exports", |n| {
        body(1, |_| "nop".to_owned()) + &lines(n, |i| format!("export\"{i}\"func f\n"))
    }),
    ("globals", |n| lines(n, |i| format!("global {i} i32=i32.const 0\n"))),
    ("functions of a segment", |n| {
        format!("{} elem 0 func {}0", body(1, |_| "nop".to_owned()), "0,".repeat(n / 2))
    }),
    ("expressions of a segment", |n| {
        format!("elem 0 funcref {}", vec!["[ref.null funcref]"; n / 19].join(","))
    }),
    ("empty expressions of a segment", |n| {
        format!("elem 0 funcref {}", "[],".repeat(n / 3) + "[]")
    }),
    ("data segments", |n| lines(n, |i| format!("data {i}\"\"\n"))),
    ("strings of a segment", |n| format!("data 0 {}", "\"\"".repeat(n / 2))),
    ("bytes of a segment", |n| format!("data 0 \"{}\"", "\\0".repeat(n / 2))),
    ("names", |n| lines(n, |i| format!("func {i}(){{return}}name func {i}\"a\"\n"))),
    ("names of locals", |n| {
        lines(n, |i| format!("func {i}(i32){{return}}name local {i} 0\"a\"\n"))
    }),
];

/// Texts that are rejected, some of them at every byte.
pub(crate) const REFUSED: &[(&str, Make)] = &[
    ("brackets", |n| "(".repeat(n)),
    ("characters of no token", |n| "@".repeat(n)),
    ("quotes that are not closed", |n| "\"\n".repeat(n / 2)),
    ("words", |n| "a ".repeat(n / 2)),
    ("unknown instructions", |n| body(n, |_| "a\n".to_owned())),
    ("unknown labels", |n| body(n, |_| "br a\n".to_owned())),
    ("comments", |n| ";\n".repeat(n / 2) + "("),
    ("unknown names on one line", |n| format!("func f(){{{}}}", "call g ".repeat(n / 7))),
];

/// Concatenates lines that are made from their numbers.
fn lines(n: usize, line: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for i in 0.. {
        if text.len() >= n {
            break;
        }
        text += &line(i);
    }
    text
}

/// Returns a function with these lines.
fn body(n: usize, line: impl Fn(usize) -> String) -> String {
    format!("func f() {{\n{}\nreturn}}\n", lines(n, line))
}

fn targets(n: usize) -> String {
    format!("func f() {{ i32.const 0 br_table[{}]a\na: return }}", "a ".repeat(n / 2))
}

/// A report has a bounded length, whatever the text is.
#[test]
fn reports_do_not_grow_with_the_text() {
    for &(name, make) in REFUSED {
        let error = slotvm_bytecode::text::parse(&make(100_000)).expect_err(name);
        assert!((1..=20).contains(&error.diagnostics().len()), "{name}");
        let report = error.to_string();
        assert!(report.len() < 40_000 && report.lines().count() <= 200, "{name}: {}", report.len());
    }
}
