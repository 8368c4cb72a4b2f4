//! The commands that look at programs: `asm`, `dis`, `verify`, `dump`, `ops`, `test`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use slotvm_bytecode::Op;

use crate::binary::{Folder, vmrun};
use crate::programs::check_all;

pub(crate) fn text_of(path: &Path) -> &str {
    path.to_str().expect("the path is UTF-8")
}

#[test]
fn assembling_and_disassembling_are_inverse_on_all_programs() {
    check_all(|program| {
        let folder = Folder::new(&format!("inverse_{}", program.name));
        let binary = fs::read(program.path.with_extension("bc")).map_err(|e| e.to_string())?;
        let (printed, assembled) = (folder.path("printed.vasm"), folder.path("printed.bc"));
        let original = program.path.with_extension("bc");
        vmrun(&["dis", text_of(&original), "-o", text_of(&printed)]).output();
        // Without `--output`, the binary is written beside the text.
        vmrun(&["asm", text_of(&printed)]).output();
        if fs::read(&assembled).map_err(|e| e.to_string())? != binary {
            return Err("is another module after `dis` and `asm`".into());
        }
        // Text with code offsets in comments assembles to the same binary, and so does the source.
        let commented = vmrun(&["dis", "--offsets", text_of(&original)]).output();
        let commented = folder.write("commented.vasm", commented);
        vmrun(&["asm", text_of(&commented)]).output();
        if fs::read(folder.path("commented.bc")).map_err(|e| e.to_string())? != binary {
            return Err("is another module after `dis --offsets` and `asm`".into());
        }
        vmrun(&["asm", text_of(&program.path), "--output", text_of(&assembled)]).output();
        if fs::read(&assembled).map_err(|e| e.to_string())? != binary {
            return Err("is stale: run `vmrun asm`".into());
        }
        Ok(())
    });
}

#[rustfmt::skip]
const STAGES: [&str; 19] = [
    "bytecode", "cfg", "dom", "loops", "frontiers", "liveness", "phis", "promotion", "slots", "ssa", "peephole",
    "simplify", "simplify_cfg", "if_convert", "version", "bounds", "destruct", "clif", "asm",
];

/// What `dump` shows. Of passes with nothing to do it says so besides.
fn dumped(args: &[&str]) -> String {
    let ran = vmrun(args);
    let is_known = ran.stderr.is_empty() || ran.stderr.contains("is not run, since guard pages");
    assert!(ran.code == 0 && is_known, "{args:?}: {}", ran.stderr);
    ran.stdout
}

#[test]
fn every_stage_of_every_program_can_be_shown() {
    check_all(|program| {
        let path = program.path.with_extension("bc");
        for stage in STAGES {
            let all = dumped(&["dump", text_of(&path), "--stage", stage]);
            let main = dumped(&["dump", text_of(&path), "--stage", stage, "--func", "main"]);
            if main.is_empty() || !all.contains(&main) {
                return Err(format!("`main` is not in the dump of stage {stage}"));
            }
        }
        Ok(())
    });
}

#[test]
fn stages_show_what_they_are() {
    let dump = |rest: &str| {
        let line = format!("dump programs/collatz.bc --func steps {rest}");
        vmrun(&line.split(' ').collect::<Vec<_>>()).output()
    };
    for (stage, start, part) in [
        ("bytecode", "func steps(", "; @0000"),
        ("cfg", "func f", "b0 -> b1"),
        ("dom", "func f", "b0 idom - level 0"),
        ("loops", "func f", "loop b1: depth 1, entered at b1, back from b5,"),
        ("frontiers", "func f", "b3 frontier b5"),
        ("liveness", "func f", "b0 in -, out s0.x s1.count"),
        ("phis", "func f", "phi in b5: live in, in the frontier of b3, b4"),
        ("slots", "func f", "slot.get s0.x"),
        ("promotion", "func f", "s0.x: i64"),
        ("ssa", "func f", "b2(v"),
        ("clif", "function u0:", "block0(v0: i64"),
        ("asm", "", "block0:"),
    ] {
        let shown = dump(&format!("--stage {stage}"));
        assert!(shown.starts_with(start) && shown.contains(part), "{stage}: {shown}");
    }
    assert!(!dump("--stage ssa").contains("slot.get"));
    let memory = dump("--stage clif --slots memory");
    assert!(memory.contains("explicit_slot"), "{memory}");
    assert!(!dump("--stage clif --slots ssa").contains("explicit_slot"));
}

#[test]
fn the_ir_is_written_for_llvm_too() {
    let dump = |rest: &str| {
        let line = format!("dump programs/collatz.bc --format llvm {rest}");
        vmrun(&line.split(' ').collect::<Vec<_>>()).output()
    };
    let slots = dump("--stage slots");
    assert!(slots.starts_with("define tailcc ") && slots.contains("\n\ndeclare "), "{slots}");
    let steps = dump("--stage slots --func steps");
    assert!(slots.contains(&steps), "{steps}");
    assert!(steps.contains("%s1.count = alloca i32\n") && !steps.contains(" phi "), "{steps}");
    let steps = dump("--stage ssa --passes none --func steps");
    assert!(steps.contains(" = phi i32 [ 0, %b0 ], ") && !steps.contains("alloca"), "{steps}");
}

#[test]
fn functions_go_by_name_and_by_number() {
    let by_name =
        vmrun(&["dump", "programs/fib_rec.bc", "--stage", "ssa", "--func", "fib"]).output();
    let by_number =
        vmrun(&["dump", "programs/fib_rec.bc", "--stage", "ssa", "--func", "4"]).output();
    assert!(by_name.starts_with("func f4 fib("), "{by_name}");
    assert_eq!(by_name, by_number);
}

#[test]
fn graphs_are_shown_in_dot() {
    for stage in ["cfg", "dom", "ssa"] {
        let line = ["dump", "programs/collatz.bc", "--stage", stage, "--dot"];
        let dot = vmrun(&line).output();
        let lines: Vec<&str> = dot.lines().filter(|line| !line.is_empty()).collect();
        let n_graphs = lines.iter().filter(|line| line.starts_with("digraph \"")).count();
        assert!(n_graphs >= 2, "{dot}");
        assert_eq!(lines.iter().filter(|&&line| line == "}").count(), n_graphs);
        let mut nodes = BTreeSet::new();
        for line in lines {
            let statement = line.trim_end_matches(';');
            if let Some((from, to)) = statement.split_once(" -> ") {
                // In a tree, each node comes before the edge to it; in a graph, it need not.
                assert!(stage != "dom" || nodes.contains(to.trim()), "{stage}: {dot}");
                assert!(nodes.contains(from.trim()), "{stage}: {dot}");
            } else if let Some((node, label)) = statement.trim().split_once(" [label=\"") {
                assert!(label.starts_with(node) && label.ends_with(']'), "{line}");
                assert!(label.contains("\\lbr") || label.contains("\\lreturn"), "{line}");
                nodes.insert(node.to_owned());
            }
        }
    }
}

#[test]
fn graphs_are_drawn_as_svg() {
    for (program, func, stage) in [
        ("programs/collatz.bc", "steps", "cfg"),
        ("programs/collatz.bc", "steps", "dom"),
        ("programs/irreducible.bc", "scan", "ssa"),
        ("programs/irreducible.bc", "duff", "cfg"),
        ("programs/wasm/sha256.O2.wasm", "run", "version"),
    ] {
        let graph =
            |format: &str| dumped(&["dump", program, "--func", func, "--stage", stage, format]);
        let (svg, dot) = (graph("--svg"), graph("--dot"));
        assert_eq!(svg, graph("--svg"), "the drawing depends on the program alone");
        let document = roxmltree::Document::parse(&svg).unwrap_or_else(|e| panic!("{e}: {svg}"));
        let root = document.root_element();
        assert_eq!(root.tag_name().name(), "svg");
        let title = root.children().find(|node| node.has_tag_name(svg_name("title")));
        assert_eq!(title.and_then(|title| title.text()), Some(func));
        let blocks = root.children().filter(|node| node.has_tag_name(svg_name("g"))).count();
        let edges = root.children().filter(|node| node.has_tag_name(svg_name("path"))).count();
        assert_eq!(blocks, dot.matches(" [label=").count(), "{program} {stage}");
        assert_eq!(edges, dot.matches(" -> ").count(), "{program} {stage}");
        // Each block has its instructions, the last of which is a terminator.
        for block in root.children().filter(|node| node.has_tag_name(svg_name("g"))) {
            let texts = block.children().filter(|node| node.has_tag_name(svg_name("text")));
            let lines: Vec<&str> = texts.filter_map(|node| node.text()).collect();
            assert!(lines[0].starts_with(block.attribute("id").expect("an id")), "{lines:?}");
            let last = lines.last().expect("a terminator");
            assert!(
                ["br", "return", "unreachable"].iter().any(|op| last.starts_with(op)),
                "{last}"
            );
        }
    }
    let irreducible =
        vmrun(&["dump", "programs/irreducible.bc", "--func", "duff", "--stage", "cfg", "--svg"]);
    assert!(irreducible.output().contains("class=\"block irreducible\""));
}

/// A name in the namespace of SVG.
fn svg_name(name: &str) -> (&str, &str) {
    ("http://www.w3.org/2000/svg", name)
}

#[test]
fn stages_agree_in_names_numbers_and_offsets() {
    let dump = |rest: &str| {
        let line = format!("dump programs/collatz.bc {rest}");
        vmrun(&line.split(' ').collect::<Vec<_>>()).output()
    };
    let steps = |stage: &str| dump(&format!("--func steps --stage {stage}"));
    assert!(steps("slots").contains("  slot s1.count: i32 = local 1\n"));
    assert!(steps("promotion").contains("  s1.count: i32"));
    assert!(steps("phis").contains("  s1.count: i32  written in b0 b5, read in b5 b6;"));
    assert!(steps("liveness").contains("  b6 in s1.count, out -"));
    let ssa = steps("ssa");
    assert!(ssa.contains(".count: i32)") && !ssa.contains("  slot "), "{ssa}");
    // The addition to `count`, in each form.
    assert!(steps("bytecode").contains("i32.add                               ; @002b"));
    assert!(
        ssa.lines().any(|l| l.contains(".count = i32.add v") && l.ends_with("; @002b")),
        "{ssa}"
    );
    let clif = steps("clif");
    let sum = clif.lines().find(|line| line.starts_with("@002b") && line.contains("iadd"));
    assert!(sum.is_some_and(|line| line.ends_with(" is count")), "{clif}");
    let memory = dump("--func steps --stage clif --slots memory");
    assert!(memory.contains(": s1.count\n") && memory.contains(": s0.x\n"), "{memory}");
    // Inlined instructions have the offset of the call, and the chain of places.
    let main = dump("--func main --stage clif");
    let inlined = main.lines().find(|line| line.contains("; f2@002b < @0016"));
    assert!(inlined.is_some_and(|line| line.starts_with("@0016 ")), "{main}");
}

#[test]
fn irreducible_loops_are_marked() {
    let loops = vmrun(&["dump", "programs/irreducible.bc", "--func", "halves", "--stage", "loops"])
        .output();
    let expected = "func f4 halves  ; 1 loop, 1 irreducible
  loop b1: irreducible, depth 1, entered at b1 b2, back from b2, blocks b1 b2  ; label right @0020
";
    assert_eq!(loops, expected);
}

#[test]
fn the_opcode_reference_has_every_opcode() {
    let reference = vmrun(&["ops"]).output();
    for op in Op::ALL {
        assert!(reference.contains(&format!("`{}`", op.mnemonic())), "{op:?} is missing");
    }
}

#[test]
fn file_tests_run_and_can_be_rewritten() {
    let folder = Folder::new("file_tests");
    let input = "; stages: cfg\n; why: it shows\nfunc f() -> i32 {\n  i32.const 7\n  return\n}\n";
    let printed = "func f0 f\n  b0 -> -  ; @0000\n";
    let good = format!("{input}; run: f() == 7\n\n=== cfg\n{printed}");
    let path = folder.write("good.vasm", &good);
    assert_eq!(vmrun(&["test", text_of(&path)]).output(), "1 passed, 0 failed\n");

    // For a stale section, the report has a diff and the command that runs the case again.
    let stale = folder.write("stale.vasm", good.replace("b0 -> -", "b0 -> b1"));
    let ran = vmrun(&["test", text_of(&folder.path(""))]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, "1 passed, 1 failed\n"), "{ran:?}");
    let error = ran.stderr;
    assert!(
        error.contains("\n func f0 f\n-  b0 -> b1  ; @0000\n+  b0 -> -  ; @0000\n\n"),
        "{error}"
    );
    let again = format!("run again: cargo run --bin vmrun -- test {}", stale.display());
    assert!(error.contains(&again), "{error}");
    assert_eq!(vmrun(&["test", "--bless", text_of(&stale)]).output(), "1 passed, 0 failed\n");
    assert_eq!(fs::read_to_string(&stale).expect("it is there"), good);

    // A case whose runs disagree is not rewritten.
    let wrong = good.replace("== 7", "== 8").replace("b0 -> -", "b0 -> b1");
    let path = folder.write("wrong.vasm", &wrong);
    let ran = vmrun(&["test", "--bless", text_of(&path)]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, "0 passed, 1 failed\n"));
    assert!(ran.stderr.contains("line 7: "), "{}", ran.stderr);
    assert_eq!(fs::read_to_string(&path).expect("it is there"), wrong);

    let empty = Folder::new("file_tests_none");
    let ran = vmrun(&["test", text_of(&empty.path(""))]);
    assert_eq!(ran.code, 1);
    assert_eq!(ran.stderr, "error: no file tests found\n");
}

#[test]
fn file_tests_can_fail() {
    const BRANCH: &str = "func f(x: i32) -> i32 {
  local.get x
  br_if end
  nop
end:
  local.get x
  i32.const 100
  i32.div_u
  return
}
";
    let case = |directives: &str| format!("; why: it fails\n{BRANCH}{directives}\n");
    let folder = Folder::new("file_tests_that_fail");
    for (i, (text, message)) in [
        (
            case("; run: f(200) == 3"),
            "line 12: evaluator on the function after slots: f(…) returned 2, expected 3",
        ),
        (
            case("; run: f(200) traps integer overflow @0008"),
            "line 12: evaluator on the function after slots: returned 2",
        ),
        (case("; run: g(1) == 0"), "line 12: the module defines no function \"g\""),
        (case("; run: f() == 0"), "line 12: expected 1 values, found 0"),
        (case("; idom: b1 <- b0"), "; idom: b1 <- b0, b2 <- b0"),
        (case("; idom: b1 <- b0, b2 <- b1"), "; idom: b1 <- b0, b2 <- b0"),
        (case("; idom: b1 <- b0, b2 <- b0, b3 <- b0"), "; idom: b1 <- b0, b2 <- b0"),
        (
            case("; error: operand-type"),
            "expected the error \"operand-type\", but the module verifies",
        ),
        (case("; stages: ssa"), "the sections differ from those that `stages:` lists"),
        (
            case("; stages: tokens"),
            "unknown stage \"tokens\"; expected bytecode, cfg, dom, loops, frontiers, liveness, phis, promotion,",
        ),
        (case("; stages: clif"), "the stage `clif` depends on the machine; expected `; target: …`"),
        (case("; target: any\n; stages: clif registers"), "unknown slot mode `registers`"),
        (case("; run: f(0) = 0"), "line 12: expected `run: f(arguments) == results`"),
        (case(""), "expected stages, runs, `idom:` or an error"),
        (BRANCH.to_owned(), "missing `; why: …`"),
        ("; why: x\nfunc f() { drp }\nnop ; error: drop\n".into(), "more than one error"),
        ("; why: x\nfunc f() {\n  drp\n  ; error: drop\n}\n".into(), "on line 4, found on line 3"),
    ]
    .into_iter()
    .enumerate()
    {
        let path = folder.write(&format!("{i}.vasm"), &text);
        let ran = vmrun(&["test", text_of(&path)]);
        assert_eq!((ran.code, ran.stdout.as_str()), (1, "0 passed, 1 failed\n"), "{text}");
        assert!(ran.stderr.contains(message), "{text}\n{}", ran.stderr);
    }
}
