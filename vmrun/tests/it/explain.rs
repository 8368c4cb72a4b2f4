//! `vmrun explain`: the document, checked by what it says of itself and by `vmrun dump`; the text; the page.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::binary::{Folder, vmrun};
use crate::programs::check_all;
use crate::tools::text_of;

mod exits;

fn document(args: &[&str]) -> Value {
    let ran = vmrun(&[&["explain", "--json"], args].concat());
    serde_json::from_str(&ran.output()).expect("it is JSON")
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

fn numbers(value: &Value, key: &str) -> Vec<u64> {
    list(value, key).iter().map(number).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

/// The blocks of each stage by number: parameters, lines and successors, with those that a stage leaves alone.
type Blocks = BTreeMap<u64, (Vec<u64>, Vec<Value>, Vec<u64>)>;

fn stages(document: &Value) -> Vec<(String, bool, Blocks)> {
    let mut before = Blocks::new();
    list(document, "stages")
        .iter()
        .map(|stage| {
            let changed = stage["changed"].as_bool().expect("a flag");
            if changed {
                let blocks = list(stage, "blocks").iter().map(|block| {
                    let id = number(&block["id"]);
                    let (params, lines) = match block["same"].as_bool() {
                        Some(true) => (before[&id].0.clone(), before[&id].1.clone()),
                        _ => (numbers(block, "params"), list(block, "lines").to_vec()),
                    };
                    (id, (params, lines, numbers(block, "succs")))
                });
                before = blocks.collect();
            }
            (text(&stage["name"]).to_owned(), changed, before.clone())
        })
        .collect()
}

/// Checks what a document says of itself.
fn check_document(document: &Value) -> Result<(), String> {
    let n_locations = list(document, "locations").len() as u64;
    let n_values = list(document, "values").len() as u64;
    let n_blocks = list(document, "blocks").len() as u64;
    for (name, _, blocks) in stages(document) {
        for (id, (params, lines, succs)) in &blocks {
            let is_block = |id: &u64| blocks.contains_key(id);
            if *id >= n_blocks || !succs.iter().all(is_block) || lines.is_empty() {
                return Err(format!("{name}: block {id}"));
            }
            let of_lines = lines
                .iter()
                .flat_map(|line| [numbers(line, "defs"), numbers(line, "uses")].concat());
            if of_lines.chain(params.iter().copied()).any(|value| value >= n_values) {
                return Err(format!("{name}: a value of block {id}"));
            }
            if lines.iter().any(|line| number(&line["at"]) >= n_locations) {
                return Err(format!("{name}: a location of block {id}"));
            }
            let last = text(&lines[lines.len() - 1]["text"]);
            let targets: Vec<u64> = targets(last);
            if targets != *succs {
                return Err(format!("{name}: {last} leads to {succs:?}"));
            }
        }
    }
    check_native(document)?;
    check_films(document)
}

/// The blocks that the text of a terminator names.
fn targets(terminator: &str) -> Vec<u64> {
    let words = terminator.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter_map(|word| word.strip_prefix('b')?.parse().ok()).collect()
}

fn check_native(document: &Value) -> Result<(), String> {
    let mut next = 0;
    for line in list(document, "native") {
        if number(&line["address"]) != next {
            return Err(format!("native code has a gap before {line}"));
        }
        next += text(&line["bytes"]).len() as u64 / 2;
    }
    if next == 0 { Err("there is no native code".into()) } else { Ok(()) }
}

/// The films of each slot must find the same phis in all ways, those of the ledger, and renaming must define them.
fn check_films(document: &Value) -> Result<(), String> {
    let films = &document["films"];
    let mut placed: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for row in list(&document["ledger"], "rows").iter().filter(|row| row.get("slot").is_some()) {
        placed.insert(number(&row["slot"]), numbers(row, "phi_blocks").into_iter().collect());
    }
    for film in list(films, "placement") {
        let slot = number(&film["slot"]);
        let is_phi = |step: &&Value| step["do"] == "phi";
        let phis: BTreeSet<u64> =
            list(film, "steps").iter().filter(is_phi).map(|step| number(&step["to"])).collect();
        if phis != placed[&slot] {
            return Err(format!("s{slot} by {}: {phis:?} and {:?}", film["way"], placed[&slot]));
        }
    }
    for film in list(films, "renaming") {
        let (mut block, mut phis) = (0, BTreeMap::<u64, BTreeSet<u64>>::new());
        for step in list(film, "steps") {
            match text(&step["do"]) {
                "enter" => block = number(&step["block"]),
                "phi" => {
                    phis.entry(number(&step["slot"])).or_default().insert(block);
                }
                _ => {}
            }
        }
        let expected: BTreeMap<u64, BTreeSet<u64>> = placed
            .iter()
            .filter(|(_, blocks)| !blocks.is_empty())
            .map(|(s, b)| (*s, b.clone()))
            .collect();
        if phis != expected {
            return Err(format!("renaming by {}: {phis:?} and {expected:?}", film["way"]));
        }
    }
    Ok(())
}

#[test]
fn documents_of_all_programs_agree_with_themselves() {
    check_all(|program| check_document(&document(&[&program.path.display().to_string()])));
}

/// A block of `dump`, as the numbers of its parameters and of its instructions.
fn dumped(program: &str, func: &str, stage: &str) -> Vec<(usize, usize)> {
    let ran =
        vmrun(&["dump", program, "--func", func, "--stage", stage, "--passes", "-version,-bounds"]);
    let mut blocks: Vec<(usize, usize)> = vec![];
    for line in ran.output().lines() {
        let is_block = line.starts_with('b') && line.contains(':');
        let is_slot = line.trim_start().starts_with("slot ");
        if is_block {
            let params = line.split_once('(').map_or("", |(_, rest)| rest);
            let params = params.split_once(')').map_or("", |(params, _)| params);
            blocks.push((params.matches(": ").count(), 0));
        } else if line.starts_with("  ") && !is_slot {
            blocks.last_mut().expect("an instruction is in a block").1 += 1;
        }
    }
    blocks
}

#[test]
fn stages_have_the_blocks_that_dump_prints() {
    for (program, func) in [("collatz", "steps"), ("irreducible", "scan"), ("n_queens", "main")] {
        let path = format!("programs/{program}.bc");
        let document = document(&[&path, "--func", func]);
        for (i, (name, _, blocks)) in stages(&document).into_iter().enumerate() {
            let stage = &list(&document, "stages")[i];
            let order: Vec<u64> = match stage["changed"] == true {
                true => list(stage, "blocks").iter().map(|block| number(&block["id"])).collect(),
                false => continue,
            };
            let found: Vec<(usize, usize)> = order
                .iter()
                .enumerate()
                .map(|(i, id)| {
                    let (params, lines, _) = &blocks[id];
                    // The parameters of the entry stand in the function's first line.
                    (if i == 0 { 0 } else { params.len() }, lines.len())
                })
                .collect();
            assert_eq!(found, dumped(&path, func, &name), "{program} {func} after {name}");
        }
    }
}

#[test]
fn the_operand_stack_stands_beside_each_instruction() {
    let document = document(&["programs/collatz.bc", "--func", "steps"]);
    let lines: Vec<String> = list(&document, "bytecode")
        .iter()
        .map(|line| {
            let stack: Vec<&str> = list(line, "stack").iter().map(text).collect();
            format!("{} [{}]", text(&line["text"]), stack.join(" "))
        })
        .collect();
    assert_eq!(
        &lines[2..10],
        [
            "local.get x []",
            "i64.const 1 [v2]",
            "i64.eq [v2 v3]",
            "br_if wend1 [v4]",
            "local.get x []",
            "i32.wrap_i64 [v5]",
            "i32.const 1 [v6]",
            "i32.and [v6 v7]",
        ]
    );
}

#[test]
fn the_ledger_says_why_a_local_stays_in_memory() {
    let document = document(&["programs/address_taken.bc"]);
    let rows = list(&document["ledger"], "rows");
    let reasons: Vec<&str> = rows
        .iter()
        .filter(|row| row["promoted"] == false)
        .map(|row| text(&row["reason"]))
        .collect();
    assert!(!reasons.is_empty());
    assert!(reasons.iter().all(|reason| reason.starts_with("in memory: ")), "{reasons:?}");
    let forms = ["maximal", "minimal", "semi_pruned", "pruned"];
    for row in rows {
        let counts = forms.map(|form| number(&row["phis"][form]));
        assert!(counts.is_sorted_by(|a, b| a >= b), "{row}");
        assert_eq!(counts[3] as usize, list(row, "phi_blocks").len(), "{row}");
    }
}

#[test]
fn constructions_stand_side_by_side() {
    let all = "maximal,minimal,semi-pruned,pruned,braun,cranelift";
    let document = document(&["programs/collatz.bc", "--func", "steps", "--compare", all]);
    let comparisons = list(&document, "comparisons");
    let names: Vec<&str> = comparisons.iter().map(|other| text(&other["name"])).collect();
    assert_eq!(names.join(","), all);
    let phis: Vec<u64> = comparisons.iter().map(|other| number(&other["phis"])).collect();
    assert!(phis[..4].is_sorted_by(|a, b| a >= b), "{phis:?}");
    assert!(comparisons.iter().all(|other| list(other, "lines").len() > 5));
    // The pruned form is the one that compiles: its blocks and values have the numbers of the document.
    let pruned: Vec<&str> =
        list(&comparisons[3], "lines").iter().map(|line| text(&line["text"])).collect();
    let (_, _, ssa) = stages(&document).into_iter().find(|(name, ..)| name == "ssa").expect("ssa");
    for (_, (_, lines, _)) in ssa {
        let lines: Vec<String> =
            lines.iter().map(|line| format!("    {}", text(&line["text"]))).collect();
        let start = pruned.iter().position(|line| **line == lines[0]).expect("the block is there");
        assert_eq!(pruned[start..start + lines.len()], lines);
    }
}

#[test]
fn one_instruction_is_followed_through_all_stages() {
    let ran = vmrun(&["explain", "programs/collatz.bc", "--func", "steps", "--at", "@0018"]);
    let out = ran.output();
    for expected in [
        "@0018  i64.mul                          [v10 v11]",
        "=== slots",
        "v12 = i64.mul v10, v11",
        "=== ssa",
        "v12 = i64.mul v10, v25",
        "=== clif",
        "=== native",
    ] {
        assert!(out.contains(expected), "{expected}\n{out}");
    }
    let ran = vmrun(&["explain", "programs/collatz.bc", "--func", "steps", "--at", "17"]);
    let error = ran.error(2);
    assert!(
        error.contains("no instruction starts at @0017; the code goes from @0000 to @0032"),
        "{error}"
    );
    let ran = vmrun(&["explain", "programs/collatz.bc", "--at", "xyz"]);
    let error = ran.error(2);
    assert!(error.contains("expected a code offset such as 001c, found \"xyz\""), "{error}");
}

#[test]
fn the_text_has_all_stages() {
    let ran = vmrun(&["explain", "programs/collatz.bc", "--func", "steps", "--text"]);
    let out = ran.output();
    let titles: Vec<&str> = out
        .lines()
        .filter_map(|line| line.strip_prefix("=== ")?.split_once(": "))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(
        titles,
        [
            "bytecode",
            "slots",
            "devirtualise",
            "inline",
            "rotate",
            "roots",
            "pressure",
            "ssa",
            "forward",
            "peephole",
            "simplify_cfg",
            "if_convert",
            "clif",
            "native",
            "promotion",
        ]
    );
}

#[test]
fn unknown_functions_are_errors() {
    let ran = vmrun(&["explain", "programs/collatz.bc", "--func", "nothing"]);
    let error = ran.error(2);
    assert!(error.contains("the program defines no function `nothing`"), "{error}");
    let ran = vmrun(&["explain", "programs/collatz.bc", "--func", "0"]);
    let error = ran.error(2);
    assert!(error.contains("function `0` is imported; it has no code"), "{error}");
}

/// Names of a program that would end a script or start an element are not written as HTML.
#[test]
fn pages_are_single_files_without_the_names_of_the_program() {
    let folder = Folder::new("explain_page");
    let hostile = "</script><script>alert(1)</script>";
    let source = format!(
        "export \"main\" func main\nfunc main() -> i32 {{\n  local $\"{hostile}\": i32\n  local.get $\"{hostile}\"\n  return\n}}\n"
    );
    let path = folder.path("hostile.vasm");
    fs::write(&path, source).expect("it can be written");
    let page = folder.path("page.html");
    let display = |path: &Path| path.display().to_string();
    vmrun(&["explain", &display(&path), "-o", &display(&page)]).output();
    let page = fs::read_to_string(page).expect("it is there");
    assert!(!page.contains("alert(1)"));
    assert_eq!(page.matches("</script>").count(), 2, "the document and its reader");
    let without_namespace = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!without_namespace.contains("http"), "nothing is loaded");
    assert!(!page.contains("/*STYLE*/") && !page.contains("/*SCRIPT*/"));
    let document = document(&[&display(&path)]);
    assert_eq!(document["slots"][0]["name"], hostile);
}

/// Names are text of the program. In texts, each stands in one line, and controls no terminal.
#[test]
fn names_are_escaped_in_texts() {
    let folder = Folder::new("explain_names");
    let text = r#"(module (func $"f\1b[2J\0a" (export "main") (result i32)
        (local $"x\1b[1m\0a" i32) (block $"l\1b[2J" (br_if $"l\1b[2J" (local.get 0)) (local.set 0 (i32.const 7)))
        (local.get 0)))"#;
    let program = folder.write("p.wasm", wat::parse_str(text).expect("the text is right"));
    for args in [&["--text"][..], &["--at", "0"]] {
        let shown = vmrun(&[&["explain", text_of(&program)], args].concat()).output();
        assert!(!shown.contains('\u{1b}'), "{shown}");
        assert!(shown.starts_with("func f0 f\\u{1b}[2J\\u{a} of "), "{shown}");
    }
}

/// Blocks of all stages have one place, and none covers another.
#[test]
fn drawings_have_room_for_all_blocks() {
    for program in ["irreducible", "json", "brainfuck"] {
        let document = document(&[&format!("programs/{program}.bc")]);
        let mut drawn = 0;
        for level in list(&document["graph"], "levels") {
            let place = |node: &Value| (number(&node["x"]), number(&node["y"]));
            let nodes = list(level, "nodes");
            drawn += nodes.iter().filter(|node| node.get("level").is_none()).count();
            let (width, height) = (number(&level["width"]), number(&level["height"]));
            let mut rows: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
            for (x, y) in nodes.iter().map(place) {
                assert!(x <= width && y <= height, "{program}");
                rows.entry(y).or_default().push(x);
            }
            for xs in rows.values_mut() {
                xs.sort_unstable();
                assert!(xs.windows(2).all(|pair| pair[1] - pair[0] >= 118), "{program}: {xs:?}");
            }
        }
        assert_eq!(drawn, list(&document, "blocks").len(), "{program}");
    }
}

#[test]
fn profiles_stand_beside_the_code_that_they_are_of() {
    let folder = Folder::new("explain_profile");
    let profile = folder.path("profile.json").display().to_string();
    vmrun(&["profile", "programs/collatz.bc", "100", "--json", &profile]).output();
    let args = ["programs/collatz.bc", "--func", "steps", "--profile", &profile];
    let counts: Vec<(u64, u64)> = list(&document(&args), "profile")
        .iter()
        .map(|pair| (number(&pair[0]), number(&pair[1])))
        .collect();
    assert_eq!(
        counts,
        [(0, 99), (4, 3216), (11, 3117), (20, 998), (32, 2119), (39, 3117), (48, 99)]
    );

    let other = ["explain", "programs/brainfuck.bc", "--func", "2", "--profile", &profile];
    let error = vmrun(&other).error(1);
    assert!(error.contains("function 2 is no `steps` in this program"), "{error}");
    fs::write(&profile, "{}").expect("it can be written");
    let error = vmrun(&[&["explain"], &args[..]].concat()).error(1);
    assert!(
        error.contains("expected what `vmrun profile --json` writes: missing field"),
        "{error}"
    );
}

/// Texts with all operands of all instructions would be quadratic.
#[test]
fn deep_operand_stacks_are_cut() {
    let folder = Folder::new("explain_deep");
    let n = 5_000;
    let pushes = "  i32.const 1\n".repeat(n);
    let sums = "  i32.add\n".repeat(n - 1);
    let source = format!("func deep() -> i32 {{\n{pushes}{sums}  return\n}}\n");
    let path = folder.write("deep.vasm", source);
    let document = document(&[&path.display().to_string()]);
    let lines = list(&document, "bytecode");
    assert_eq!(lines.len(), 2 * n);
    assert!(lines.iter().all(|line| list(line, "stack").len() <= 25));
    let stack: Vec<&str> = list(&lines[n], "stack").iter().map(text).collect();
    assert_eq!((stack[0], stack[24]), ("…4976", "v4999"));
}

/// A function whose blocks lead to many others, each of which writes and reads some of the slots, so that promotion would
/// need phis of most slots in most blocks.
fn with_phis(n_blocks: usize, n_locals: usize) -> String {
    let locals: String = (0..n_locals).map(|i| format!("  local x{i}: i32\n")).collect();
    let block = |b: usize| {
        let mut text = format!(
            "l{b}:\n  local.get n i32.const {b} i32.and br_if l{}\n",
            (b * 7 + 3) % n_blocks
        );
        for j in 0..6 {
            let s = (b * j + j) % n_locals;
            let (next, to) = ((s + 1) % n_locals, (s * 3 + 1) % n_locals);
            text += &format!("  local.get x{s} local.get x{next} i32.add local.set x{to}\n");
        }
        text
    };
    let blocks: String = (0..n_blocks).map(block).collect();
    format!("func f(n: i32) -> i32 {{\n{locals}{blocks}  local.get x0 return\n}}\n")
}

#[test]
fn a_function_that_is_compiled_with_less_effort_says_so() {
    let folder = Folder::new("explain_effort");
    let path = folder.write("effort.vasm", with_phis(3_000, 300)).display().to_string();
    let document = document(&[&path]);
    let effort = text(&document["function"]["effort"]);
    assert!(effort.starts_with("CLIF and native code are made of the slot form"), "{effort}");
    let usual = document_of_steps();
    assert_eq!(usual["function"].get("effort"), None);
}

fn document_of_steps() -> Value {
    document(&["programs/collatz.bc", "--func", "steps"])
}

#[test]
fn a_function_that_is_not_promoted_is_no_fault_of_a_stage() {
    let folder = Folder::new("explain_too_large");
    let path = folder.write("large.vasm", with_phis(40_000, 300)).display().to_string();
    let error = vmrun(&["dump", &path, "--stage", "ssa"]).error(1);
    assert!(error.contains("too large for promotion, so it stays in slot form"), "{error}");
    let error = vmrun(&["dump", &path, "--stage", "if_convert"]).error(1);
    assert!(error.contains("too large for promotion"), "{error}");
    // The rows before promotion are there.
    assert!(vmrun(&["dump", &path, "--stage", "rotate"]).output().starts_with("func f0 f("));
}

#[test]
fn the_program_is_not_overwritten() {
    let folder = Folder::new("explain_overwrite");
    let bytes = fs::read(crate::binary::root().join("programs/collatz.bc")).expect("it is there");
    let path = folder.write("c.bc", &bytes).display().to_string();
    let json = ["profile", path.as_str(), "10", "--json", path.as_str()];
    for args in [&["explain", &path, "-o", &path][..], &json, &["bench", &path, "--html", &path]] {
        let error = vmrun(args).error(2);
        assert!(error.contains("would be overwritten; name another file"), "{error}");
        assert_eq!(fs::read(&path).expect("it is there"), bytes);
    }
}

/// Nothing runs for minutes to fail at the end.
#[test]
fn outputs_need_a_folder() {
    let program = "programs/collatz.bc";
    let bench = ["bench", program, "--html", "no/such/r.html"];
    for args in [&["profile", program, "--folded", "no/such/r.folded"][..], &bench] {
        let ran = vmrun(args);
        assert_eq!(ran.stdout, "");
        let error = ran.error(1);
        assert!(error.ends_with(": No such file or directory (os error 2)\n"), "{error}");
        assert!(error.starts_with("error: no/such/r."), "{error}");
    }
}

#[test]
fn profiles_go_through_standard_streams() {
    let profile =
        vmrun(&["profile", "programs/collatz.bc", "--invoke", "steps", "6", "--json", "-"]);
    let args = ["explain", "programs/collatz.bc", "--func", "steps", "--json", "--profile", "-"];
    let explained = crate::binary::vmrun_with_input(&args, &profile.output()).output();
    let document: Value = serde_json::from_str(&explained).expect("it is JSON");
    assert_eq!(list(&document, "profile").len(), 7);
    let other = vmrun(&["profile", "programs/fib_rec.bc", "5", "--json", "-"]).output();
    let json = &other[other.find('{').expect("there is an object")..];
    let error = crate::binary::vmrun_with_input(&args, json).error(1);
    assert!(error.contains(" in this program"), "{error}");
}
