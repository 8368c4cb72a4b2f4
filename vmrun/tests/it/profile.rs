//! `vmrun profile`: counts of blocks and of paths of calls.

use std::fs;

use serde_json::{Value, json};

use crate::binary::{Folder, vmrun};
use crate::tools::text_of;

const COLLATZ: &str = "programs/collatz.bc";

/// 6, 3, 10, 5, 16, 8, 4, 2, 1: eight steps, of which two are from an odd number.
const STEPS: [&str; 5] = ["profile", COLLATZ, "--invoke", "steps", "6"];

/// The lines of a report that show a block, as count and the rest without share.
fn blocks(report: &str) -> Vec<(u64, &str)> {
    let blocks = report.lines().filter_map(|line| {
        let (figures, block) = line.split_once('%')?;
        let count = figures.split_whitespace().next()?.parse().ok()?;
        Some((count, block.trim()))
    });
    blocks.collect()
}

#[test]
fn blocks_of_the_bytecode_are_counted() {
    let folder = Folder::new("profile_json");
    let path = folder.path("p.json");
    let report = vmrun(&[&STEPS[..], &["--json", text_of(&path)]].concat()).output();
    let counts: Vec<u64> = blocks(&report).into_iter().map(|(count, _)| count).collect();
    assert_eq!(counts, [1, 9, 8, 2, 6, 8, 1], "{report}");
    let json: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!((&json["schema"], &json["version"]), (&json!("slotvm-profile"), &json!(1)));
    let [function] = &json["functions"].as_array().unwrap()[..] else { panic!("{json}") };
    assert_eq!((&function["func"], &function["name"]), (&json!(2), &json!("steps")));
    assert_eq!(function["blocks"][1], json!({"offset": 4, "count": 9, "instructions": 36}));
    assert_eq!(function["instructions"], json["instructions"]);
}

/// Calls of the host are executions of the call, and have no callee.
#[test]
fn callees_of_indirect_calls_are_counted() {
    let folder = Folder::new("profile_callees");
    let source = r#"
        import "env" "print_i64" func host(i64)
        export "main" func main
        table t funcref 4 4
        elem e t at i32.const 0 func first, second, first, host
        func first(x: i64) { return }
        func second(x: i64) { local.get x  return_call_indirect_of_first }
        func main() -> i32 {
          local i: i32
        again:
          local.get i  i64.extend_i32_u
          local.get i  i32.const 3  i32.and
          call_indirect (i64), t
          local.get i  i32.const 1  i32.add  local.tee i
          i32.const 10  i32.lt_u  br_if again
          i32.const 0
          return
        }"#;
    let tail_call = "i32.const 0  return_call_indirect (i64), t";
    let source = source.replace("return_call_indirect_of_first", tail_call);
    let program = folder.write("p.vasm", source);
    let path = folder.path("p.json");
    let args = ["profile", text_of(&program), "--json", text_of(&path)];
    let report = vmrun(&args).output();
    let line = report.lines().find(|line| line.contains("call_indirect (i64) ")).expect("a call");
    assert!(line.ends_with("calls first 5, second 3, others 2"), "{report}");
    let json: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let functions = json["functions"].as_array().unwrap();
    let calls: Vec<Option<&Value>> =
        functions.iter().map(|function| function.get("calls")).collect();
    let (offset, _) = report_offset(line);
    let callees = json!([{"func": 1, "count": 5}, {"func": 2, "count": 3}]);
    let expected = json!([{"offset": offset, "count": 10, "callees": callees}]);
    assert_eq!(calls, [None, None, Some(&expected)]);
}

/// The code offset in a line of a report, and the rest of the line.
fn report_offset(line: &str) -> (u32, &str) {
    let (_, rest) = line.split_once("; @").expect("the line has an offset");
    let (offset, rest) = rest.split_at(4);
    (u32::from_str_radix(offset, 16).expect("it is hexadecimal"), rest)
}

/// Fuel is one unit for each instruction, and is counted by other means.
#[test]
fn instructions_and_paths_add_up_to_the_fuel() {
    let folder = Folder::new("profile_folded");
    let (path, json_path) = (folder.path("p.folded"), folder.path("p.json"));
    for (program, size, stack) in [
        (COLLATZ, "100", "main;steps "),
        ("programs/fib_rec.bc", "12", "main;fib;fib;fib "),
        ("programs/tail_calls.bc", "50", "main;"),
    ] {
        let fuel = ["--interp", "--fuel", "100000000", "--time", "--", size];
        let run = vmrun(&[&[program][..], &fuel].concat());
        let used = run.stderr.lines().find_map(|line| line.trim().strip_prefix("fuel")).unwrap();
        let used: u64 = used.split_whitespace().next().unwrap().parse().unwrap();
        let files = ["--folded", text_of(&path), "--json", text_of(&json_path), "--", size];
        let profiled = vmrun(&[&["profile", program][..], &files].concat());
        assert_eq!(profiled.code, run.code, "{profiled:?}");
        assert!(profiled.stdout.starts_with(&run.stdout), "the program's output comes first");
        assert!(profiled.stdout.contains(&format!("Executed instructions: {used}\n")));
        let folded = fs::read_to_string(&path).unwrap();
        assert!(folded.lines().any(|line| line.starts_with(stack)), "{stack}: {folded}");
        let weights = folded.lines().map(|line| line.rsplit_once(' ').unwrap().1);
        assert_eq!(weights.map(|weight| weight.parse::<u64>().unwrap()).sum::<u64>(), used);
        let json: Value = serde_json::from_str(&fs::read_to_string(&json_path).unwrap()).unwrap();
        assert_eq!(json["instructions"], used, "{program}");
    }
}

#[test]
fn blocks_of_other_forms_are_counted_by_native_code() {
    for slots in ["ssa", "memory", "variables"] {
        let args = ["--stage", "ssa", "--passes", "none", "--slots", slots];
        let report = vmrun(&[&STEPS[..], &args].concat()).output();
        let found = blocks(&report);
        assert_eq!(found.iter().map(|&(n, _)| n).collect::<Vec<_>>(), [1, 9, 8, 2, 6, 8, 1]);
        assert!(found[1].1.starts_with("b1"), "{report}");
    }
    let report = vmrun(&[&STEPS[..], &["--stage", "ssa"]].concat()).output();
    assert!(blocks(&report).iter().any(|&(n, block)| n == 8 && block.starts_with('b')), "{report}");
    let report = vmrun(&[&STEPS[..], &["--stage", "clif", "--func", "steps"]].concat()).output();
    let found = blocks(&report);
    assert!(found[0].0 == 1 && found[0].1.starts_with("block0("), "{report}");
    assert!(found.iter().any(|&(n, block)| n == 8 && block.starts_with("block")), "{report}");
}

#[test]
fn a_program_that_traps_has_a_profile() {
    let folder = Folder::new("profile_trap");
    let program = folder.write(
        "trap.vasm",
        "export \"main\" func main\nfunc main() { i32.const 1 i32.const 0 i32.div_s drop return }\n",
    );
    for (stage, count) in [("bytecode", 1), ("ssa", 1)] {
        let ran = vmrun(&["profile", text_of(&program), "--stage", stage]);
        assert_eq!(ran.code, 134, "{ran:?}");
        assert_eq!(blocks(&ran.stdout)[0].0, count, "{ran:?}");
        assert!(ran.stderr.contains("division by zero"), "{ran:?}");
    }
}

#[test]
fn wrong_usage_is_refused() {
    for (args, message) in [
        (&["--stage", "ssa", "--folded", "x"][..], "error: --json and --folded have the counts of"),
        (&["--func", "nothing"], "error: the program defines no function `nothing`"),
        (&["--stage", "cfg"], "error: invalid value 'cfg' for '--stage <STAGE>'"),
    ] {
        let error = vmrun(&[&STEPS[..2], args].concat()).error(2);
        assert!(error.starts_with(message), "{error}");
    }
}

/// Names of functions are text of the program.
#[test]
fn names_are_escaped() {
    let folder = Folder::new("profile_names");
    let text = "(module (func $\"a;b\\1b[1m \" (export \"main\") (nop)))";
    let program = folder.write("p.wasm", wat::parse_str(text).expect("the text is right"));
    let path = folder.path("p.folded");
    let report = vmrun(&["profile", text_of(&program), "--folded", text_of(&path)]).output();
    assert!(!report.contains('\u{1b}') && report.contains("a;b\\u{1b}[1m"), "{report}");
    let folded = fs::read_to_string(path).unwrap();
    let (stack, weight) = folded.trim_end().rsplit_once(' ').unwrap();
    assert!(!stack.contains([';', '\u{1b}']) && weight.parse::<u64>().is_ok(), "{folded}");
}

/// An engine with guard pages has no use for some passes, and the counts are of the form that is lowered without them.
#[test]
fn the_form_is_that_which_is_lowered() {
    let args = ["profile", "programs/matmul.bc", "8", "--stage", "ssa"];
    let report = vmrun(&args).output();
    let without = vmrun(&[&args[..], &["--passes", "-version,-bounds"]].concat()).output();
    assert_eq!(report, without);
    for stage in ["version", "bounds"] {
        let dump = ["dump", "programs/matmul.bc", "--stage", stage];
        let ran = vmrun(&dump);
        let note = "is not run, since guard pages make checks of accesses needless";
        assert!(ran.stderr.starts_with(&format!("`{stage}` {note}")), "{ran:?}");
        let without = vmrun(&[&dump[..], &["--passes", "-version,-bounds"]].concat()).output();
        assert_eq!(ran.stdout, without);
    }
}

/// Machine code has the counts of the IR that it is made of, through inlined calls too.
#[test]
fn machine_code_has_the_counts_of_its_ir() {
    let stage = ["--stage", "asm", "--func", "steps"];
    let report = vmrun(&[&STEPS[..], &stage].concat()).output();
    let counts: Vec<(u64, &str)> = report
        .lines()
        .filter_map(|line| {
            let count = line.get(..13)?.trim().parse().ok()?;
            Some((count, line.rsplit_once('@')?.1))
        })
        .collect();
    // The test of the loop stands at its start and at its end; the parity in its only block.
    assert!(counts.contains(&(9, "0009")), "{report}");
    assert!(counts.contains(&(8, "0012")), "{report}");
    let inlined = vmrun(&["profile", COLLATZ, "100", "--stage", "asm", "--func", "main"]).output();
    let parity = inlined.lines().find(|line| line.trim_end().ends_with("f2@0012 < @0016"));
    assert_eq!(parity.map(|line| line[..13].trim()), Some("3117"), "{inlined}");
}

#[test]
fn what_a_profiled_program_uses_is_limited() {
    let folder = Folder::new("profile_limits");
    let source = "export \"main\" func main\nmemory m 1\nfunc main() {\nagain: br again }";
    let endless = folder.write("endless.vasm", source);
    for stage in ["bytecode", "ssa", "asm"] {
        let run = |limit: &[&str]| {
            let ran = vmrun(&[&["profile", text_of(&endless), "--stage", stage], limit].concat());
            (ran.code, ran.stdout.contains("instructions"), ran.stderr)
        };
        for (limit, code, message) in [
            (["--fuel", "1000"], 134, "error: all fuel consumed"),
            (["--timeout", "50ms"], 134, "error: interrupted after 50ms, as --timeout asks"),
            (["--max-memory", "60K"], 1, "error: limit memory_bytes_total_max (61440) exceeded"),
        ] {
            let (got, is_shown, error) = run(&limit);
            assert_eq!((got, is_shown), (code, code == 134), "{stage} {limit:?}: {error}");
            assert!(error.starts_with(message), "{stage} {limit:?}: {error}");
        }
    }
}
