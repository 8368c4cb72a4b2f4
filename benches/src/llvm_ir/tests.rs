use super::*;
use crate::graph_text::write;

/// The graphs of a module, and the first error.
fn import(text: &str) -> (String, Option<String>) {
    let mut graphs = String::new();
    for function in functions(text) {
        match function {
            Ok(function) => graphs += &write(&function.graph),
            Err(error) => return (graphs, Some(error.to_string())),
        }
    }
    (graphs, None)
}

#[test]
fn variables_that_are_only_loaded_and_stored_are_slots() {
    let text = "\
@g = global i32 0

define dso_local i32 @sum(i32 noundef %n) #0 {
entry:
  %n.addr = alloca i32, align 4
  %s = alloca i32, align 4
  %escapes = alloca i32, align 4
  %copied = alloca ptr, align 8
  store i32 %n, ptr %n.addr, align 4
  call void @llvm.dbg.declare(metadata ptr %n.addr, metadata !1, metadata !2), !dbg !3
    #dbg_declare(ptr %s, !1, !2, !3)
  call void @llvm.lifetime.start.p0(i64 4, ptr %s)
  store i32 0, ptr %s, align 4
  call void @f(ptr noundef %escapes)
  store ptr %escapes, ptr %copied, align 8
  br label %while.cond, !llvm.loop !4

while.cond:                                       ; preds = %while.body, %entry
  %0 = load i32, ptr %n.addr, align 4
  %tobool = icmp ne i32 %0, 0
  br i1 %tobool, label %while.body, label %while.end

while.body:                                       ; preds = %while.cond
  %1 = load i32, ptr %n.addr, align 4
  store i32 %1, ptr %s, align 4
  br label %while.cond

while.end:                                        ; preds = %while.cond
  %2 = load i32, ptr %s, align 4
  ret i32 %2
}
";
    let expected = "\
function sum
slots 3
block 0 -> 1
  w 0
  w 1
  w 2
block 1 -> 2 3
  r 0
block 2 -> 1
  r 0
  w 1 r1
block 3
  r 1
";
    assert_eq!(import(text), (expected.to_owned(), None));
    let imported = functions(text).next().unwrap().unwrap();
    assert_eq!(imported.slots, ["n.addr", "s", "copied"]);
    assert_eq!(imported.written, ["%n", "0", "%escapes", "%1"]);
}

/// The slots of a function whose entry has these instructions, in the type `i32`.
fn slots(insts: &str) -> Vec<String> {
    let text = format!("define void @f() {{\n  %a = alloca i32\n  %b = alloca i32\n{insts}}}\n");
    let function = functions(&text).next().unwrap().unwrap();
    function.slots.iter().map(|&slot| slot.to_owned()).collect()
}

#[test]
fn variables_that_are_used_otherwise_are_none() {
    for inst in [
        "%x = load volatile i32, ptr %a, align 4",
        "store volatile i32 1, ptr %a",
        "%x = load i16, ptr %a, align 4",
        "%x = load <{ i32 }>, ptr %a, align 4",
        "store i64 1, ptr %a",
        "store ptr %a, ptr %p",
        "store ptr %a, ptr %b",
        "%x = getelementptr i8, ptr %a, i64 0",
        "%x = phi ptr [ %a, %c ], [ %p, %d ]",
        "call void @f(i32 1, ptr %a)",
        "%x = cmpxchg ptr %a, i32 0, i32 1 seq_cst seq_cst",
        "ret ptr %a",
    ] {
        assert!(!slots(&format!("  {inst}\n")).contains(&"a".to_owned()), "{inst}");
    }
    for inst in [
        "%x = load i32, ptr %a, align 4, !dbg !7",
        "%x = load i32, i32* %a, align 4",
        "%x = load atomic i32, ptr %a seq_cst, align 4",
        "store i32 ptrtoint (ptr @\"%a\" to i32), ptr %a",
        "call void @f(ptr %a.b, ptr %\"a\", ptr @a) ; %a",
    ] {
        assert_eq!(slots(&format!("  {inst}\n")), ["a", "b"], "{inst}");
    }
    // Variables of other blocks are not promoted.
    assert_eq!(slots("c:\n  %d = alloca i32\n  store i32 0, ptr %d\n"), ["a", "b"]);
}

#[test]
fn all_terminators_are_understood() {
    let text = "\
define void @\"a #b\"() personality ptr @p {
  switch i32 %x, label %\"d e\" [
    i32 0, label %1
    i32 7, label %1
  ]

1:                                                ; preds = %0
  %2 = invoke i32 @g(ptr @h)
          to label %3 unwind label %4

3:
  indirectbr ptr %p, [label %1, label %\"d e\"]

4:
  %5 = landingpad { ptr, i32 }
          catch ptr null
  resume { ptr, i32 } %5

\"d e\":
  unreachable
}
declare i32 @g(ptr)
define void @c() {
  ret void
}
";
    let expected = "\
function \"a__b\"
slots 0
block 0 -> 4 1 1
block 1 -> 2 3
block 2 -> 1 4
block 3
block 4
function c
slots 0
block 0
";
    assert_eq!(import(text), (expected.to_owned(), None));
}

#[test]
fn errors_name_the_line_and_the_rule() {
    for (body, error) in [
        ("  br label %a\n}", "line 2: unknown block `a`"),
        ("a:\n  br label %a\n}", "line 3: no edge goes to the entry"),
        ("a:\n  ret void\na:\n}", "line 4: there are two blocks `a`"),
        ("  ret void\n", "line 1: the function does not end"),
        ("}", "line 1: the function f has no block"),
        ("what?\n}", "line 2: expected a label or `}`"),
        ("  %x = alloca ?\n}", "line 2: expected a type"),
        ("  callbr void asm \"\", \"\"()\n}", "line 2: `callbr` is not supported"),
    ] {
        let text = format!("define void @f() {{\n{body}");
        assert_eq!(import(&text), (String::new(), Some(error.to_owned())), "{body}");
    }
    let error = "line 1: expected the name of the function".to_owned();
    assert_eq!(import("define void f() {\n}\n"), (String::new(), Some(error)));
}
