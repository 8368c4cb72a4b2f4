//! Programs in all engines, beside a direct evaluator of the syntax tree; errors; and random programs.

mod errors;
mod evaluate;
mod generate;
mod mutations;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use slotvm::{Config, Engine, Error, SlotMode, Tier, TrapCode};
use slotvm_bytecode::{text, verify};
use slotvm_filetests::check::check;
use slotvm_filetests::choices::random_bytes;
use slotvm_filetests::generate::Case;
use slotvm_filetests::seeds;
use slotvm_ssa::construction::build::{BuildOptions, BuildScratch, build};
use slotvm_ssa::construction::promote::report::{Fate, locals};
use slotvm_ssa::construction::promote::{Scratch, promote};
use slotvm_ssa::ir::SlotOrigin;

use crate::{Compiled, compile, parse, show};
use evaluate::{Stop, evaluate};

/// Random programs that every run of the tests checks in all engines.
const SEEDS_USUAL: u64 = 150;

/// The programs of the repository, in order.
fn programs() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs/wend");
    let entries = std::fs::read_dir(folder)
        .expect("the folder exists")
        .map(|entry| entry.expect("it can be read").path());
    let mut paths: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|name| name == "wend")).collect();
    paths.sort();
    paths
}

/// The output of a program.
#[derive(Clone, Default)]
struct Output(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no writer panics").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The interpreter, and native code in all slot modes.
fn engines() -> Vec<(String, Engine)> {
    let engine = |config: &mut Config| Engine::new(config).expect("the configuration is supported");
    let interpreter = ("interpreter".to_owned(), engine(Config::new().tier(Tier::Interpreter)));
    let native = |slots| engine(Config::new().tier(Tier::Jit).slots(slots));
    let native = SlotMode::ALL.map(|slots| (slots.to_string(), native(slots)));
    [interpreter].into_iter().chain(native).collect()
}

/// The output of a program, and the trap if there is one.
fn run(engine: &Engine, compiled: &Compiled) -> (Vec<u8>, Option<Error>) {
    let output = Output::default();
    let error = crate::run(engine, compiled, output.clone()).err();
    (std::mem::take(&mut *output.0.lock().expect("no writer panics")), error)
}

/// Compares a program in these engines with the evaluator.
fn check_output(what: &str, source: &str, engines: &[(String, Engine)]) -> Vec<u8> {
    let main =
        parse::parse(source).unwrap_or_else(|error| panic!("{}", error.render(what, source)));
    let compiled = compile(source).unwrap_or_else(|error| panic!("{}", error.render(what, source)));
    let (expected, stop) = evaluate(&main);
    for (name, engine) in engines {
        let (printed, error) = run(engine, &compiled);
        let found = error.map(|error| match error {
            Error::Trap(trap) if trap.code == TrapCode::IntegerDivisionByZero => {
                Stop::DivisionByZero
            }
            Error::Trap(trap) if trap.code == TrapCode::IntegerOverflow => Stop::Overflow,
            error => panic!("{what} in {name}: {error}\n{source}"),
        });
        let texts = [&printed, &expected].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        assert_eq!((&texts[0], found), (&texts[1], stop), "{what} in {name}\n{source}");
    }
    expected
}

#[test]
fn programs_print_what_is_expected_in_all_engines() {
    let engines = engines();
    let programs = programs();
    assert!(programs.len() >= 12, "{programs:?}");
    for path in programs {
        let source = std::fs::read_to_string(&path).expect("it can be read");
        let printed = check_output(&path.display().to_string(), &source, &engines);
        let expected = std::fs::read(path.with_extension("expected")).expect("it can be read");
        assert_eq!(
            String::from_utf8_lossy(&printed),
            String::from_utf8_lossy(&expected),
            "{}",
            path.display()
        );
    }
}

/// Checks that promotion leaves exactly those locals in memory whose address is passed to a call, and all others not.
fn check_promotion(what: &str, source: &str) -> usize {
    let compiled = compile(source).expect("it compiles");
    let module = verify(compiled.module).expect("it verifies");
    let mut in_memory = BTreeSet::new();
    for func in module.n_imported_funcs()..module.n_funcs() {
        let mut function =
            build(&module, func, &BuildOptions::default(), &mut BuildScratch::default());
        let mut scratch = Scratch::default();
        let report = promote(&mut function, &mut scratch);
        for local in locals(&function, &module, &report, &scratch) {
            match (local.fate, local.origin) {
                (Fate::Promoted(_), _) => {}
                (Fate::Escapes { .. }, SlotOrigin::Local(local)) => {
                    in_memory.insert((func, local));
                }
                (fate, origin) => panic!("{what}: {origin:?} of function {func}: {fate}"),
            }
        }
    }
    assert_eq!(in_memory, compiled.captured, "{what}\n{source}");
    in_memory.len()
}

#[test]
fn exactly_the_captured_variables_stay_in_memory() {
    for path in programs() {
        let source = std::fs::read_to_string(&path).expect("it can be read");
        check_promotion(&path.display().to_string(), &source);
    }
    // Nothing calls the function that would need `x`.
    assert_eq!(check_promotion("unused", "main() { int x; f() { x = 1; } x = 2; println x; }"), 0);
    assert_eq!(
        check_promotion("used", "main() { int x; int y; f() { x = 1; } f(); println y; }"),
        1
    );
}

/// Except for what LLVM makes, which only has to be there.
#[test]
fn the_documentation_shows_what_programs_become() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |path| std::fs::read_to_string(root.join(path)).expect("it is there");
    let (document, source) = (read("docs/wend.md"), read("programs/wend/fibonacci.wend"));
    let compiled = compile(&source).expect("it is right");
    let module = verify(compiled.module.clone()).expect("it is valid");
    let shown = |stage| show(&module, stage).expect("it is small");
    let listing = text::print(&compiled.module).expect("it can be printed");
    let lines = listing.split_inclusive('\n');
    let listing = lines.filter(|line| !line.starts_with("  .line ")).collect();
    // Functions inside of others are indented.
    let source = source.replace("\n    ", "\n");
    let texts = [source, listing, shown("ssa"), shown("promotion")];
    let (_, section) = document.split_once("## Before and after promotion").expect("it is there");
    let blocks = section.split("```text\n").skip(1).map(|block| block.split("```").next());
    let blocks: Vec<&str> = blocks.map(|block| block.expect("it has an end")).collect();
    let (llvm, others): (Vec<&str>, Vec<&str>) =
        blocks.iter().partition(|block| block.starts_with("define "));
    assert_eq!((llvm.len(), others.len()), (1, texts.len()));
    for (block, text) in others.iter().zip(&texts) {
        assert!(text.contains(block), "{block}\nis not in\n{text}");
    }
}

#[test]
fn random_programs_agree_with_the_evaluator_and_in_all_engines() {
    let engines = engines();
    let n = seeds::count_or(SEEDS_USUAL);
    let (mut n_stopped, mut n_captured, mut n_printed) = (0, 0, 0);
    for seed in 0..n {
        let source = generate::generate(&random_bytes(seed, 1_500));
        let what = format!("seed {seed}");
        let printed = check_output(&what, &source, &engines);
        n_captured += check_promotion(&what, &source);
        n_printed += usize::from(!printed.is_empty());
        let compiled = compile(&source).expect("it compiles");
        n_stopped += u64::from(run(&engines[0].1, &compiled).1.is_some());
        let main = compiled.module.imports.len() as u32;
        let case = Case { fuel: 200_000, ..Case::new(compiled.module, main, Vec::new()) };
        check(&case).unwrap_or_else(|difference| panic!("{what}: {difference}\n{source}"));
    }
    println!("{n} programs, {n_stopped} trap, {n_captured} captured variables, {n_printed} print");
    assert!(n_captured as u64 > n && n_printed as u64 > n / 2 && n_stopped < n / 2);
}

#[test]
fn traps_name_the_lines_and_the_calls() {
    let division = "main() {\n  int zero;\n  f(int a) {\n    println a\n      / zero;\n  }\n  println 1;\n  f(2);\n}\n";
    let recursion = "main() {\n  int n;\n  f() { n = n + 1;\n    f();\n  }\n  f();\n}\n";
    for (name, engine) in engines() {
        let compiled = compile(division).expect("it compiles");
        let (printed, error) = run(&engine, &compiled);
        let error = error.expect("it traps").to_string();
        let lines: Vec<&str> = error.lines().collect();
        assert_eq!((printed, lines[0]), (b"1\n".to_vec(), "integer division by zero"), "{name}");
        assert!(
            lines[1].contains("wend!main.f(int) (") && lines[1].ends_with("line 5)"),
            "{name}: {error}"
        );
        assert!(
            lines[2].contains("wend!main() (") && lines[2].ends_with("line 8)"),
            "{name}: {error}"
        );

        let (_, error) = run(&engine, &compile(recursion).expect("it compiles"));
        let error = error.expect("it traps").to_string();
        assert!(
            error.starts_with("call stack exhausted") && error.contains("line 4)"),
            "{name}: {error}"
        );
    }
}
