//! Names of a hostile module in the output of commands: none of them can control a terminal.

use std::path::Path;

use slotvm_bytecode::printable::Lines;
use slotvm_bytecode::{encode, text};

use crate::binary::{Folder, vmrun};

/// Clears the screen in two ways, reverses the text direction, rings, and returns to the start of the line.
const HOSTILE: [&str; 6] = ["\u{1b}[2J", "\u{9b}2J", "\u{202e}", "\u{7}", "\u{7f}", "a\rb\nc"];

/// A program whose every name is hostile, and which traps in a function that `main` calls.
fn program(hostile: &str) -> String {
    let escaped: String = hostile.chars().map(|c| format!("\\u{{{:x}}}", u32::from(c))).collect();
    let name = |kind: &str| format!("$\"{kind}{escaped}\"");
    let [func, local, label, global, data] = ["f", "x", "l", "g", "d"].map(name);
    format!(
        "module \"{escaped}\"
         import \"env{escaped}\" \"missing{escaped}\" func {missing}(i32)
         memory {memory} 1
         global {global} mut i32 = i32.const 0
         export \"main\" func main
         export \"{escaped}\" func {func}
         data {data} \"{escaped}\"
         func {func}({local}: i32) -> i32 {{
           local.get {local} br_if {label}
           i32.const 0 local.set {local}
         {label}:
           local.get {local} i32.const 0 i32.div_s return
         }}
         func main() -> i32 {{ i32.const 1 call {func} return }}\n",
        missing = name("m"),
        memory = name("memory"),
    )
}

/// Runs a command, and checks both output streams.
#[track_caller]
fn check(args: &[&str], program: &Path) -> String {
    let args: Vec<_> = args
        .iter()
        .map(|&arg| if arg == "-" { program.as_os_str() } else { arg.as_ref() })
        .collect();
    let ran = vmrun(&args);
    for out in [&ran.stdout, &ran.stderr] {
        assert_eq!(*out, Lines(out).to_string(), "{args:?}");
        // Names cannot forge lines.
        assert!(!out.lines().any(|line| line == "c" || line.starts_with("c`")), "{args:?}: {out}");
    }
    ran.stdout + &ran.stderr
}

#[test]
fn no_command_writes_what_controls_a_terminal() {
    let folder = Folder::new("terminal");
    for (i, hostile) in HOSTILE.into_iter().enumerate() {
        let module = text::parse(&program(hostile)).expect("the program is well-formed");
        let path = folder.write(&format!("{i}.bc"), encode(&module));
        // The disassembled text is the same program.
        let source = check(&["dis", "-"], &path);
        assert_eq!(text::parse(&source).expect("it is a text"), module);
        check(&["dis", "--offsets", "-"], &path);
        check(&["verify", "-"], &path);
        for stage in [
            "bytecode",
            "cfg",
            "dom",
            "loops",
            "frontiers",
            "liveness",
            "phis",
            "slots",
            "promotion",
            "ssa",
            "clif",
            "asm",
        ] {
            let dumped = check(&["dump", "-", "--stage", stage], &path);
            assert!(dumped.lines().count() >= 3, "{dumped}");
        }
        for stage in ["cfg", "dom"] {
            check(&["dump", "-", "--stage", stage, "--dot"], &path);
            let svg = check(&["dump", "-", "--stage", stage, "--func", "1", "--svg"], &path);
            let document =
                roxmltree::Document::parse(&svg).unwrap_or_else(|e| panic!("{e}: {svg}"));
            assert!(document.descendants().any(|node| node.attribute("id") == Some("b1")), "{svg}");
        }
        check(&["dump", "-", "--stage", "ssa", "--format", "llvm"], &path);
        check(&["dump", "-", "--func", "none"], &path);
        check(&["bench", "-", "--rounds", "1"], &path);
        // First an import is missing; then it is defined, and the program traps with a backtrace.
        let missing = check(&["-"], &path);
        assert!(missing.contains("missing"), "{missing}");
        check(&["-", "--invoke", "none"], &path);
        for engine in ["--trace", "--jit", "--time"] {
            let trapped = check(&["-", "--unknown-imports", "trap", engine], &path);
            assert!(trapped.contains("division by zero"), "{trapped}");
        }
        // Malformed text, truncated binaries, scripts.
        let broken =
            folder.write(&format!("{i}.vasm"), format!("export \"{hostile}\" func {hostile}"));
        check(&["verify", "-"], &broken);
        let mut cut = encode(&module);
        cut.truncate(cut.len() - 1);
        check(&["verify", "-"], &folder.write("cut.bc", cut));
        let script = format!(
            "(module (func (export \"{i}\"))) (assert_invalid (module (func (export \"a\")) (func (export \"a\"))) \"\")"
        );
        check(&["wast", "-"], &folder.write(&format!("{hostile}.wast").replace('\n', " "), script));
        let wasm = format!(
            r#"(module (func $f) (export "x{0}" (func $f)) (export "x{0}" (func $f)))"#,
            wat_string(hostile)
        );
        let refused = check(&["-"], &folder.write(&format!("{i}.wat"), wasm));
        assert!(refused.contains("duplicate"), "{refused}");
    }
}

/// Escapes text for a quoted string in WebAssembly's text form.
fn wat_string(text: &str) -> String {
    text.bytes().map(|byte| format!("\\{byte:02x}")).collect()
}
