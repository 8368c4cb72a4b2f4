//! Mistakes of users: bad files, bad options, and closed outputs.

use std::fs;
use std::io::Read;
use std::process::Stdio;

use crate::binary::{Folder, command, root, vmrun};
use crate::programs;

/// Commands that read a program; `PROGRAM` is replaced by its path.
const READERS: &[&str] = &[
    "PROGRAM",
    "run PROGRAM",
    "PROGRAM --jit",
    "asm PROGRAM --output OUTPUT",
    "dis PROGRAM",
    "opt PROGRAM --output OUTPUT",
    "verify PROGRAM",
    "dump PROGRAM --stage ssa",
    "bench PROGRAM --rounds 1",
];

#[test]
fn files_that_cannot_be_read_are_named() {
    let folder = Folder::new("unreadable_files");
    let directory = folder.path("");
    let directory = directory.to_str().expect("the path is UTF-8");
    let output = folder.path("output.bc");
    let fill = |line: &str, program: &str| -> Vec<String> {
        let output = output.display().to_string();
        line.split(' ')
            .map(|word| word.replace("PROGRAM", program).replace("OUTPUT", &output))
            .collect()
    };
    let mut readers = READERS.to_vec();
    readers.push("test PROGRAM");
    for reader in readers {
        let error = vmrun(&fill(reader, "no/such.bc")).error(1);
        let expected = "error: no/such.bc: No such file or directory (os error 2)\n";
        assert_eq!(error, expected, "{reader}");
        if !reader.starts_with("test") && !reader.starts_with("bench") {
            let error = vmrun(&fill(reader, directory)).error(1);
            let expected = format!("error: {directory}: Is a directory (os error 21)\n");
            assert_eq!(error, expected, "{reader}");
        }
    }
}

#[test]
fn bad_modules_are_refused_by_every_command() {
    let folder = Folder::new("bad_modules");
    let whole = fs::read(root().join("programs/fib_rec.bc")).expect("the program is there");
    let mut flipped = whole.clone();
    flipped[4] ^= 2;
    let bad = [
        ("truncated.bc", &whole[..200], "byte 0x"),
        ("magic.bc", &whole[..3], "byte 0x"),
        ("empty.bc", b"", "byte 0x"),
        ("flipped.bc", &flipped, "byte 0x4: unknown version "),
        ("text.bc", b"func f() { return }", "byte 0x"),
        ("binary.vasm", &whole[..200], "byte 0x"),
        ("latin1.vasm", b"; \xe9t\xe9\n", "neither a binary module nor UTF-8 text"),
    ];
    for (name, contents, message) in bad {
        let path = folder.write(name, contents);
        let path = path.to_str().expect("the path is UTF-8");
        for reader in READERS {
            let line = reader.replace("PROGRAM", path).replace("OUTPUT", "unused.bc");
            let error = vmrun(&line.split(' ').collect::<Vec<_>>()).error(1);
            let start = format!("error: {path}: {message}");
            assert!(error.starts_with(&start), "{reader} {name}: {error}");
            assert_eq!(error.lines().count(), 1, "{reader} {name}: {error}");
        }
    }
    assert!(!root().join("unused.bc").exists(), "what is bad is not assembled");
}

#[test]
fn errors_in_text_show_the_line_and_the_place() {
    let folder = Folder::new("text_errors");
    let path = folder
        .write("p.vasm", "func f() {\n  local count: i32\n  local.get cuont\n  drop return }\n");
    let path = path.to_str().expect("the path is UTF-8");
    for reader in READERS {
        let line = reader.replace("PROGRAM", path).replace("OUTPUT", "unused.bc");
        let error = vmrun(&line.split(' ').collect::<Vec<_>>()).error(1);
        assert!(error.starts_with("error: "), "{error}");
        assert!(error.contains(&format!("--> {path}:3:13\n")), "{error}");
        assert!(error.contains("3 |   local.get cuont\n"), "{error}");
        assert!(error.contains("count"), "{error}");
    }
}

#[test]
fn broken_rules_name_function_offset_line_and_rule() {
    let folder = Folder::new("broken_rules");
    let path =
        folder.write("p.vasm", "func f(x: i64) -> i32 {\n  local.get x\n  i32.eqz\n  return }\n");
    let path = path.to_str().expect("the path is UTF-8");
    // `dis` also shows modules that do not verify.
    for reader in READERS.iter().filter(|reader| !reader.starts_with("dis ")) {
        let line = reader.replace("PROGRAM", path).replace("OUTPUT", "unused.bc");
        let error = vmrun(&line.split(' ').collect::<Vec<_>>()).error(1);
        let start = format!("error: {path}: function 0 `f` @0002, line 3: ");
        assert!(error.starts_with(&start), "{error}");
        assert!(error.contains("(rule operand-type: "), "{error}");
    }
}

#[test]
fn verify_goes_on_after_a_bad_module_and_counts() {
    let good = "programs/fib_rec.bc";
    assert_eq!(vmrun(&["verify", good, "programs/collatz.vasm"]).output(), "");
    let error = vmrun(&["verify", "a.bc", good, "b.bc"]).error(1);
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines.len(), 3, "{error}");
    assert!(lines[0].starts_with("error: a.bc: ") && lines[1].starts_with("error: b.bc: "));
    assert_eq!(lines[2], "error: bad modules: 2 of 3");
}

#[test]
fn wrong_usage_exits_with_two() {
    for (line, message) in [
        ("--frobnicate", "unexpected argument '--frobnicate'"),
        ("run", "required arguments were not provided"),
        ("run --jit", "required arguments were not provided"),
        ("frobnicate programs/fib_rec.bc", "unknown command `frobnicate`"),
        (
            "programs/fib_rec.bc --slots registers",
            "[possible values: memory, memory-opt, memory-forwarded, variables, ssa]",
        ),
        ("programs/fib_rec.bc --fuel -1", "invalid value '-1' for '--fuel <N>'"),
        ("dump programs/fib_rec.bc", "--stage <STAGE>"),
        (
            "dump programs/fib_rec.bc --stage tokens",
            "[possible values: bytecode, cfg, dom, loops, frontiers, liveness, phis, promotion, slots, devirtualise, inline, \
             rotate, roots, pressure, ssa, forward, peephole, simplify, simplify_cfg, if_convert, version, bounds, destruct, clif, asm]",
        ),
        (
            "dump programs/fib_rec.bc --stage phis --dot",
            "--dot requires one of the stages cfg, dom, slots,",
        ),
        (
            "dump programs/fib_rec.bc --stage clif --func fib --svg",
            "--svg requires one of the stages cfg, dom, slots,",
        ),
        (
            "dump programs/collatz.bc --stage cfg --svg",
            "--svg draws one function, not 2; name it with --func",
        ),
        (
            "dump programs/collatz.bc --stage ssa --svg --func main --format llvm",
            "--svg requires --format text",
        ),
        (
            "dump programs/collatz.bc --stage cfg --svg --dot",
            "the argument '--svg' cannot be used with '--dot'",
        ),
        (
            "dump programs/fib_rec.bc --stage cfg --format llvm",
            "--format llvm requires one of the stages slots, devirtualise, inline, rotate, roots, pressure, ssa, forward, peephole, \
             simplify, simplify_cfg, if_convert, version, bounds, destruct",
        ),
        (
            "dump programs/fib_rec.bc --stage ssa --func nope",
            "defines no function `nope`; it defines `fib`, `main`",
        ),
        (
            "dump programs/fib_rec.bc --stage ssa --func 99",
            "defines no function `99`; it defines `fib`, `main`",
        ),
        ("dump programs/fib_rec.bc --stage ssa --func 0", "function `0` is imported"),
        (
            "dump programs/fib_rec.bc --stage ssa --func print_i32",
            "function `print_i32` is imported",
        ),
        ("asm programs/fib_rec.bc", "would be overwritten"),
        ("asm programs/fib_rec.vasm --output programs/fib_rec.vasm", "would be overwritten"),
        ("verify", "required arguments were not provided"),
        ("test", "required arguments were not provided"),
        ("bench", "required arguments were not provided"),
        ("bench programs/fib_rec.bc --rounds many", "invalid value 'many'"),
        ("bench programs/fib_rec.bc --rounds 0", "invalid value '0' for '--rounds <N>'"),
    ] {
        let error = vmrun(&line.split(' ').collect::<Vec<_>>()).error(2);
        assert!(error.starts_with("error: ") && error.contains(message), "{line}: {error}");
    }
    let help = vmrun(&[] as &[&str]).error(2);
    assert!(help.contains("Usage: vmrun"), "{help}");
}

/// A program that prints lines forever.
const ENDLESS: &str = r#"
import "env" "print_i32" func print_i32(i32)
import "env" "print_char" func print_char(i32)
export "main" func main
func main() {
again:
  i32.const 1234567  call print_i32  i32.const 10  call print_char
  br again
}"#;

#[test]
fn output_to_a_closed_pipe_ends_quietly() {
    let program = Folder::new("closed_pipe").write("endless.vasm", ENDLESS);
    let program = program.to_str().expect("the path is UTF-8");
    // An endless program ends as if by a signal. Commands whose text is not read to its end succeed.
    for (line, code) in [
        (program.to_owned(), 141),
        (format!("{program} --jit"), 141),
        (format!("{program} --trace"), 141),
        ("ops".to_owned(), 0),
        ("--help".to_owned(), 0),
        ("dis programs/locals200.bc".to_owned(), 0),
        ("dump programs/locals200.bc --stage slots".to_owned(), 0),
        ("programs/mandelbrot.bc --invoke nope".to_owned(), 2),
        ("verify a.bc b.bc".to_owned(), 1),
        ("test programs/fib_rec.vasm".to_owned(), 1),
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        // Both pipes are closed before anything is written.
        let mut child = command(&args).spawn().expect("the binary starts");
        drop(child.stdout.take());
        let mut stderr = child.stderr.take().expect("it is piped");
        let mut said = String::new();
        if !line.ends_with("--trace") {
            stderr.read_to_string(&mut said).expect("it is text");
        }
        drop(stderr);
        let status = child.wait().expect("it ends");
        assert_eq!(status.code(), Some(code), "{line}: {said}");
        assert!(code != 141 || said.is_empty(), "{line}: {said}");
    }
    // The same with standard error closed.
    for line in ["verify a.bc", "programs/fib_rec.bc --time", "programs/fib_rec.bc --fuel 3"] {
        let args: Vec<&str> = line.split(' ').collect();
        let mut child = command(&args).spawn().expect("the binary starts");
        drop(child.stderr.take());
        drop(child.stdout.take());
        let code = child.wait().expect("it ends").code();
        assert!(code.is_some_and(|code| code != 101), "{line}: {code:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn output_to_a_full_device_is_an_error() {
    for line in ["ops", "programs/fib_rec.bc -- 5", "dis programs/fib_rec.bc"] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
        let args: Vec<&str> = line.split(' ').collect();
        let output = command(&args).stdout(Stdio::from(full)).output().expect("the binary runs");
        let error = String::from_utf8(output.stderr).expect("it is text");
        assert_eq!(output.status.code(), Some(1), "{line}: {error}");
        assert_eq!(error, "error: cannot write: No space left on device (os error 28)\n", "{line}");
    }
}

#[test]
fn truncated_programs_are_never_run() {
    // Every program is truncated at some places only: another test covers all prefixes.
    programs::check_all(|program| {
        let bytes = fs::read(program.path.with_extension("bc")).map_err(|e| e.to_string())?;
        let folder = Folder::new(&format!("truncated_{}", program.name));
        for len in [1, 8, bytes.len() / 2, bytes.len() - 1] {
            let path = folder.write("p.bc", &bytes[..len]);
            let ran = vmrun(&[path.as_os_str(), "--jit".as_ref()]);
            if (ran.code, ran.stdout.as_str()) != (1, "") && ran.code != 2 {
                return Err(format!("{len} bytes: {ran:?}"));
            }
        }
        Ok(())
    });
}
