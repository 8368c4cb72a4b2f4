//! `vmrun explain --profile`: exits in the place of blocks that never ran, and after calls that are compared.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{check_document, document, list, stages, text};
use crate::binary::{Folder, vmrun};
use crate::tools::text_of;

/// A program that calls `work` N times. That calls one function by a table, and never runs its long block.
const SOURCE: &str = r#"
export "main" func main
table t funcref 3 3
elem e t at i32.const 0 func first, second, third
func first(x: i32) -> i32 { local.get x  i32.const 1  i32.add  return }
func second(x: i32) -> i32 { local.get x  i32.const 3  i32.mul  return }
func third(x: i64) -> i64 { local.get x  return }
func work(n: i32, slot: i32) -> i32 {
  local.get n  i32.const -1  i32.eq  br_if rare
  local.get n  local.get slot  call_indirect (i32) -> i32, t
  i32.const 7  i32.add
  return
rare:
  LONG
  local.get n  return
}
func inlines(n: i32) -> i32 {
  local.get n  call small  return
}
func small(n: i32) -> i32 {
  local.get n  i32.const -1  i32.eq  br_if rare
  local.get n  return
rare:
  LONG
  local.get n  return
}
func main() -> i32 {
  local i: i32
again:
  local.get i  local.get i  i32.const MASK  i32.and  call work  drop
  local.get i  call inlines  drop
  local.get i  i32.const 1  i32.add  local.tee i
  i32.const N  i32.lt_s  br_if again
  i32.const 0
  return
}
"#;

/// The program, and its profile, where `work` is called `n` times and calls the first function, or by `mask` 1 both in turn.
fn profiled(folder: &Folder, n: u32, mask: u32) -> (String, Value) {
    let long = "local.get n  i32.const 1000003  i32.mul  local.set n\n".repeat(6);
    let source = SOURCE.replace("LONG", &long).replace("MASK", &mask.to_string());
    let program = folder.write("p.vasm", source.replace('N', &n.to_string()));
    let program = text_of(&program).to_owned();
    let profile = folder.path("p.json");
    vmrun(&["profile", &program, "--json", text_of(&profile)]).output();
    (program, read(&profile))
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("it is there")).expect("it is JSON")
}

fn of_func<'v>(profile: &'v mut Value, name: &str) -> &'v mut Value {
    let functions = profile["functions"].as_array_mut().expect("a list");
    functions.iter_mut().find(|function| function["name"] == name).expect("it was called")
}

/// The lines of the last stage, of the native code, and of Cranelift's IR.
fn lines(document: &Value) -> [String; 3] {
    let (_, _, blocks) = stages(document).pop().expect("there are stages");
    let of_stage = blocks.values().flat_map(|(_, lines, _)| lines);
    let texts = |lines: &[Value]| {
        lines.iter().map(|line| text(&line["text"])).collect::<Vec<_>>().join("\n")
    };
    let of_stage: Vec<&str> = of_stage.map(|line| text(&line["text"])).collect();
    let [native, clif] = ["native", "clif"].map(|key| texts(list(document, key)));
    [of_stage.join("\n"), native, clif]
}

#[test]
fn a_block_that_never_ran_and_other_callees_become_exits() {
    let folder = Folder::new("explain_exits");
    let (program, _) = profiled(&folder, 150, 0);
    let profile = text_of(&folder.path("p.json")).to_owned();
    let args = [&*program, "--func", "work", "--profile", &profile];
    let with = document(&args);
    check_document(&with).expect("the document is consistent");
    let without = document(&args[..3]);
    let call = list(&with, "bytecode").iter().find(|line| {
        let line = text(&line["text"]);
        line.starts_with("call_indirect")
    });
    let rare = list(&with, "bytecode").iter().find(|line| line["label"] == "rare");
    let offset = |line: Option<&Value>| line.expect("the line is there")["offset"].clone();
    let expected = json!([
        {"offset": offset(call), "kind": "call", "callees": [0]},
        {"offset": offset(rare), "kind": "block"},
    ]);
    assert_eq!(with["exits"], expected);
    assert!(list(&with, "functions").contains(&json!([0, "first"])), "{}", with["functions"]);

    let [ssa, native, clif] = lines(&with);
    assert_eq!([ssa.matches("exit f3").count(), ssa.matches("ref.is_func f0").count()], [2, 1]);
    assert!(!ssa.contains("i32.mul"), "the block is left out: {ssa}");
    assert!(!native.contains("mul"), "the block is left out: {native}");
    assert_eq!(clif.matches("0x7ffe_0000_0001").count(), 2, "the second exit: {clif}");
    let [ssa, native, _] = lines(&without);
    assert_eq!(["exit f", "i32.mul"].map(|what| ssa.contains(what)), [false, true], "{ssa}");
    assert!(native.contains("mul"), "{native}");

    let is_left_out = |line: &&Value| line["left_out"] == true;
    let left_out: Vec<&Value> = list(&with, "bytecode").iter().filter(is_left_out).collect();
    assert_eq!((left_out.len(), &left_out[0]["label"]), (26, &json!("rare")));
    assert!(!list(&without, "bytecode").iter().any(|line| is_left_out(&line)));
    // Results of the call are those of the call that was seen.
    let add = list(&with, "bytecode").iter().find(|line| line["text"] == "i32.add");
    let operand = text(&list(add.expect("it is there"), "stack")[0]);
    let direct = format!("{operand}: i32 = call f0(");
    let (_, _, slots) = stages(&with).into_iter().next().expect("there are stages");
    let is_direct = |line: &Value| text(&line["text"]).starts_with(&direct);
    assert!(slots.values().any(|(_, lines, _)| lines.iter().any(is_direct)), "{direct}");

    let shown = vmrun(&[&["explain", "--text"], &args[..]].concat()).output();
    let call = format!(
        "  @{:04x}  after calls of functions other than f0 first",
        expected[0]["offset"].as_u64().unwrap()
    );
    assert!(
        shown
            .contains(&format!("\n=== exits: where the code leaves for the interpreter\n{call}\n")),
        "{shown}"
    );
    assert_eq!(document(&args), with, "nothing depends on addresses");
}

#[test]
fn a_call_of_two_functions_is_compared_with_both() {
    let folder = Folder::new("explain_two_callees");
    let (program, _) = profiled(&folder, 301, 1);
    let profile = folder.path("p.json");
    let args = [&*program, "--func", "work", "--profile", text_of(&profile)];
    let with = document(&args);
    check_document(&with).expect("the document is consistent");
    assert_eq!(with["exits"][0]["callees"], json!([0, 1]));
    let [ssa, ..] = lines(&with);
    assert_eq!(["ref.is_func f0", "ref.is_func f1"].map(|what| ssa.matches(what).count()), [1, 1]);
    // The operand is what both calls lead to.
    let add = list(&with, "bytecode").iter().find(|line| line["text"] == "i32.add");
    let operand = text(&list(add.expect("it is there"), "stack")[0]);
    let join = |(params, ..): &(Vec<u64>, Vec<Value>, Vec<u64>)| {
        params.iter().any(|value| format!("v{value}") == operand)
    };
    let (_, _, slots) = stages(&with).into_iter().next().expect("there are stages");
    assert!(slots.values().any(join), "{operand}");
    let compared = document(&[&args[..], &["--compare", "pruned,cranelift"]].concat());
    for comparison in list(&compared, "comparisons") {
        let lines = list(comparison, "lines");
        let leaves = |line: &Value| {
            let line = text(&line["text"]);
            line.contains("exit f3") || line.contains("return_call_indirect")
        };
        assert!(lines.iter().any(leaves), "{comparison}");
    }
}

/// The bodies of functions that are inlined have exits, too; they are in the stages only.
#[test]
fn bodies_have_exits() {
    let folder = Folder::new("explain_bodies");
    let (program, _) = profiled(&folder, 150, 0);
    let profile = folder.path("p.json");
    let with = document(&[&program, "--func", "inlines", "--profile", text_of(&profile)]);
    check_document(&with).expect("the document is consistent");
    assert_eq!(with.get("exits"), None);
    let [ssa, ..] = lines(&with);
    assert!(ssa.contains("exit f5 at ") && !ssa.contains("i32.mul"), "{ssa}");
}

#[test]
fn what_ran_too_rarely_has_no_exits() {
    let folder = Folder::new("explain_few_runs");
    let (program, _) = profiled(&folder, 99, 0);
    let profile = folder.path("p.json");
    let mut with = document(&[&program, "--func", "work", "--profile", text_of(&profile)]);
    let counts = with.as_object_mut().expect("an object").remove("profile").expect("counts");
    assert_eq!(counts[0], json!([0, 99]));
    assert_eq!(with, document(&[&program, "--func", "work"]));
}

/// Programs of another compiler, with loops, switches and many calls.
#[test]
fn documents_of_real_programs_are_consistent() {
    let folder = Folder::new("explain_real_exits");
    for (program, callee_counts, with_exits) in [
        // It is called once, so its compared calls go on.
        ("programs/wasm/callbacks.O0.wasm", &[][..], "total_area"),
        ("programs/wasm/expression.O2.wasm", &[0, 0], "parse_primary"),
    ] {
        let path = folder.path("p.json");
        vmrun(&["profile", program, "300", "--json", text_of(&path)]).output();
        for function in list(&read(&path), "functions") {
            let name = text(&function["name"]);
            let with = document(&[program, "--func", name, "--profile", text_of(&path)]);
            check_document(&with).unwrap_or_else(|error| panic!("{program} {name}: {error}"));
            if name == with_exits {
                let n_callees = list(&with, "exits").iter().map(|exit| list(exit, "callees").len());
                assert_eq!(n_callees.collect::<Vec<_>>(), callee_counts, "{program} {name}");
            }
        }
    }
}

/// A call of which others are known to have been called is not compared.
#[test]
fn calls_with_unknown_callees_are_not_compared() {
    let folder = Folder::new("explain_unknown_callees");
    let (program, mut profile) = profiled(&folder, 150, 0);
    let call = &mut of_func(&mut profile, "work")["calls"][0];
    call["count"] = json!(151);
    let path = folder.write("q.json", profile.to_string());
    let with = document(&[&program, "--func", "work", "--profile", text_of(&path)]);
    let kinds: Vec<&str> = list(&with, "exits").iter().map(|exit| text(&exit["kind"])).collect();
    assert_eq!(kinds, ["block"]);
}

/// A profile without calls is one of an earlier build.
#[test]
fn damaged_and_foreign_profiles_are_refused() {
    let folder = Folder::new("explain_foreign");
    let (program, profile) = profiled(&folder, 150, 0);
    let explained = |profile: &Value| {
        let path = folder.write("q.json", profile.to_string());
        vmrun(&["explain", &program, "--func", "work", "--text", "--profile", text_of(&path)])
    };
    let mut old = profile.clone();
    let work = of_func(&mut old, "work").as_object_mut().expect("an object");
    work.remove("calls").expect("there is a call");
    assert!(explained(&old).output().contains("in the place of the block"));

    let callee = |func: u32| json!([{"func": func, "count": 1}]);
    for (key, value, message) in [
        ("offset", json!(0), "function 3 has no indirect call at @0000"),
        ("offset", json!(9999), "function 3 has no indirect call at @270f"),
        ("callees", callee(77), "function 3 calls function 77, which the program does not define"),
        ("callees", callee(2), "function 3 calls function 2, which has another type"),
        (
            "callees",
            json!([{"func": 1, "count": 1}, {"func": 1, "count": 2}]),
            "function 3 lists function 1 twice",
        ),
        ("callees", json!([{"func": 1}]), "missing field `count`"),
        ("callees", json!(7), "invalid type: integer `7`, expected a sequence"),
        ("count", json!(-1), "invalid value: integer `-1`, expected u64"),
    ] {
        let mut damaged = profile.clone();
        of_func(&mut damaged, "work")["calls"][0][key] = value;
        let error = explained(&damaged).error(1);
        assert!(error.contains(message), "{error}");
    }
    let mut other = profile.clone();
    of_func(&mut other, "small")["func"] = json!(4);
    let error = explained(&other).error(1);
    assert!(error.contains("function 4 is no `small` in this program"), "{error}");
    let mut other = profile.clone();
    of_func(&mut other, "small")["blocks"][1]["offset"] = json!(1);
    let error = explained(&other).error(1);
    assert!(error.contains("no block of function 5 starts at @0001"), "{error}");
    let mut twice = profile.clone();
    let small = of_func(&mut twice, "small").clone();
    twice["functions"].as_array_mut().expect("a list").push(small);
    let error = explained(&twice).error(1);
    assert!(error.contains("function 5 has two entries"), "{error}");
}
