//! The command line as users of other runtimes type it.

use std::fs::{self, File};
use std::io::Read;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::binary::{ENGINES, Folder, command, root, vmrun, vmrun_line};
use crate::progress::terminal;

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

#[test]
fn arguments_follow_the_program_without_dashes() {
    for line in [
        "programs/fib_rec.bc 10",
        "programs/fib_rec.bc 10 --jit",
        "programs/fib_rec.bc --jit 10",
        "--jit programs/fib_rec.bc 10 ignored",
        "run programs/fib_rec.bc 10",
        "programs/fib_rec.bc --jit -- 10",
    ] {
        assert_eq!(vmrun(&words(line)).output(), "fib(10) = 55\n", "{line}");
    }
    let error = vmrun(&["programs/fib_rec.bc", "-n"]).error(2);
    assert!(error.contains("the first program argument \"-n\" is not a size"), "{error}");
    assert!(!vmrun(&["programs/collatz.bc", "--jit"]).output().is_empty());
}

#[test]
fn functions_are_invoked_as_by_wasmtime() {
    for line in [
        "run --invoke fib programs/fib_rec.bc 20",
        "--invoke fib programs/fib_rec.bc 20",
        "run --invoke=fib programs/fib_rec.bc 20",
        "run --jit --invoke fib programs/fib_rec.bc 20",
        "run --invoke fib --jit programs/fib_rec.bc 20",
        "programs/fib_rec.bc --invoke fib 20",
        "programs/fib_rec.bc 20 --invoke fib",
        "programs/fib_rec.bc --invoke fib -- 20",
        "--invoke fib programs/fib_rec.bc -- 20",
    ] {
        assert_eq!(vmrun(&words(line)).output(), "6765\n", "{line}");
    }
    let error = vmrun(&words("run --invoke fib")).error(2);
    assert!(error.contains("required arguments were not provided"), "{error}");
    let agrees = vmrun(&words("crosscheck programs/fib_rec.bc 5 --invoke fib")).output();
    assert!(agrees.contains("agrees with the interpreter"), "{agrees}");
}

#[test]
fn commands_of_other_tools_are_named_with_what_is_meant() {
    for (line, message) in [
        ("explore prog.wasm", "unknown command `explore`; use `vmrun explain`"),
        ("completion bash", "unknown command `completion`; use `vmrun completions`"),
        (
            "wizer prog.wasm -o x",
            "unknown command `wizer`; slotvm takes no snapshots of \
          initialised programs; `vmrun compile` keeps native code",
        ),
        (
            "serve",
            "unknown command `serve`; slotvm runs commands of WASI preview 1, no HTTP \
          handlers; use `vmrun run`",
        ),
        ("validate x", "unknown command `validate`; use `vmrun verify`"),
        ("dissasm prog.bc", "unknown command `dissasm`; did you mean `vmrun dis`?"),
        ("setings", "unknown command `setings`; did you mean `vmrun settings`?"),
        ("qqq", "unknown command `qqq`, and no such file; see `vmrun --help`"),
    ] {
        assert_eq!(vmrun(&words(line)).error(2), format!("error: {message}\n"), "{line}");
    }
    // A file of such a name is a program.
    let folder = Folder::new("named_like_a_command");
    folder.write("explore", fs::read(root().join("programs/fib_rec.bc")).expect("it is there"));
    let ran = command(&["explore", "5"]).current_dir(folder.path("")).output();
    assert_eq!(ran.expect("the binary runs").stdout, b"fib(5) = 5\n");
}

#[test]
fn a_file_that_is_no_program_says_so() {
    let expected = "not a slotvm program; expected a binary module (.bc), assembler text (.vasm), a \
                    WebAssembly module (.wasm, .wat) or a precompiled program (.vmc)";
    let folder = Folder::new("no_programs");
    for (name, content) in [
        ("passwd", "root:x:0:0:root:/root:/bin/bash\n"),
        ("script.sh", "#!/bin/sh\necho\n"),
        ("data.json", "{\"a\": 1}\n"),
        ("elf", "\u{7f}ELF\u{2}\u{1}"),
    ] {
        let path = folder.write(name, content);
        let path = path.to_str().expect("the path is UTF-8");
        let cached = format!("run --cache={}", folder.path("cache").display());
        for command in ["run", "dis", "verify", "objdump", "compile", &cached] {
            let mut line = words(command);
            line.push(path);
            let error = vmrun(&line).error(1);
            assert_eq!(error, format!("error: {path}: {expected}\n"), "{command}");
        }
    }
    // What is meant to be a module has the error of its format.
    let text = folder.write("typo.vasm", "fnuc f() { return }");
    assert!(vmrun(&[&text]).error(1).contains("expected an item"));
}

/// A program that never ends, and one that grows its memory by ten pages and a table by a hundred elements.
const ENDLESS: &str = "export \"main\" func main\nfunc main() {\nagain: br again }";
const GROWS: &str = "export \"main\" func main
memory m 1
table t funcref 1
func main() -> i32 {
  i32.const 10 memory.grow
  ref.null funcref i32.const 100 table.grow t
  i32.const 16 i32.shl i32.or
  return
}
export \"both\" func both
func both() -> (i32, i32) {
  i32.const 10 memory.grow
  ref.null funcref i32.const 100 table.grow t
  return
}";

#[test]
fn time_and_memory_are_limited_in_every_engine() {
    let folder = Folder::new("time_and_memory");
    let endless = folder.write("endless.vasm", ENDLESS);
    let grows = folder.write("grows.vasm", GROWS);
    for engine in ENGINES.into_iter().chain(["--interp", "--lazy"]) {
        let error = vmrun_line(&endless, &format!("--timeout 50ms {engine}")).error(134);
        let file = endless.display();
        let expected = format!(
            "error: interrupted after 50ms, as --timeout asks\n    at main (offset 0x0000, {file}:3)\n"
        );
        assert_eq!(error, expected, "{engine}");
        let both = |options: &str| {
            vmrun_line(&grows, &format!("--invoke both {options} {engine}")).output()
        };
        assert_eq!(both(""), "1\n1\n", "{engine}");
        assert_eq!(both("--max-memory 1M"), "1\n1\n", "{engine}");
        assert_eq!(both("--max-memory 64k"), "-1\n1\n", "{engine}");
        let error = vmrun_line(&grows, &format!("--max-memory 60K {engine}")).error(1);
        let limit = "limit memory_bytes_total_max (61440) exceeded: 65536 wanted";
        assert_eq!(error, format!("error: {limit}; --max-memory allows 61440 bytes\n"));
    }
    let without_memory =
        GROWS.replace("memory m 1\n", "").replace("i32.const 10 memory.grow", "i32.const 0");
    let tables = folder.write("tables.vasm", without_memory);
    let table =
        |size: &str| vmrun_line(&tables, &format!("--invoke both --max-memory {size}")).output();
    assert_eq!((table("800").as_str(), table("808").as_str()), ("0\n-1\n", "0\n1\n"));
    assert_eq!(vmrun_line(&tables, "--timeout 1m --invoke both").output(), "0\n1\n");
    // The time is that of all calls.
    let twice = ENDLESS.replace("func main() {", "export \"_initialize\" func wait\nfunc main() {");
    let wait = "func wait() { local n: i64 again: local.get n i64.const 1 i64.add local.tee n
        i64.const 1000000000 i64.lt_u br_if again return }";
    let twice = folder.write("twice.vasm", format!("{twice}\n{wait}"));
    let start = Instant::now();
    let error = vmrun_line(&twice, "--interp --timeout 300ms").error(134);
    assert!(error.starts_with("error: interrupted after 300ms"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(3));
    for (option, message) in [
        ("--timeout 0", "expected a number above zero, of seconds or with a unit"),
        ("--timeout soon", "expected a number above zero, of seconds or with a unit"),
        ("--timeout -1s", "invalid value '-1s' for '--timeout <DURATION>'"),
        ("--max-memory much", "expected a number of bytes"),
        ("--max-memory -1", "invalid value '-1' for '--max-memory <SIZE>'"),
        ("--fuel -1", "invalid value '-1' for '--fuel <N>'"),
    ] {
        let error = vmrun_line(&tables, option).error(2);
        assert!(error.contains(message) && !error.contains("tip"), "{option}: {error}");
    }
    assert_eq!(vmrun_line(&tables, "--timeout 60 --invoke both").output(), "0\n1\n");
}

#[test]
fn names_are_written_as_in_their_source() {
    let source = r#"(module
        (func $_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE (param i32) (result i32)
          (i32.div_s (i32.const 1) (local.get 0)))
        (func $_ZN5space3fooEibc (export "main") (result i32)
          (call $_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE (i32.const 0))))"#;
    let folder = Folder::new("mangled");
    let program = folder.write("p.wat", source);
    let names = ["core::fmt::Formatter::write_str", "space::foo(int, bool, char)"];
    let error = vmrun(&[&program]).error(134);
    for (name, place) in names.iter().zip(error.lines().skip(1)) {
        assert!(place.starts_with(&format!("    at {name} (offset ")), "{error}");
    }
    let dumped = vmrun(&["objdump".as_ref(), program.as_os_str()]).output();
    let traced = vmrun_line(&program, "--trace").stderr;
    for name in names {
        assert!(dumped.contains(&format!("<{name}>: function ")), "{dumped}");
        assert!(traced.contains(&format!(" {name} @")), "{traced}");
    }
    // Text that is read back has the names themselves.
    let text = vmrun(&["dis".as_ref(), program.as_os_str()]).output();
    assert!(text.contains("func _ZN5space3fooEibc()"), "{text}");
}

#[test]
fn traces_have_files_where_they_are_known() {
    let folder = Folder::new("files");
    let source = "export \"main\" func main\nfunc main() {\n  unreachable }";
    let text = folder.write("p.vasm", source);
    let place = |line: &str| line.lines().nth(1).expect("there is a place").to_owned();
    let in_file = format!("    at main (offset 0x0000, {}:3)", text.display());
    assert_eq!(place(&vmrun(&[&text]).error(134)), in_file);
    // The binary form has lines alone, and so has a text with lines of another source.
    let binary = folder.path("p.bc");
    vmrun(&["asm".as_ref(), text.as_os_str(), "-o".as_ref(), binary.as_os_str()]).output();
    let line_alone = "    at main (offset 0x0000, line 3)";
    assert_eq!(place(&vmrun(&[&binary]).error(134)), line_alone);
    let others = vmrun(&["dis".as_ref(), binary.as_os_str()]).output();
    assert!(others.contains(".line"), "{others}");
    assert_eq!(place(&vmrun(&[folder.write("q.vasm", others)]).error(134)), line_alone);
    // WebAssembly text gets DWARF, which a kept binary keeps.
    let wat = folder.write("p.wat", "(module\n  (func (export \"main\")\n    unreachable))");
    let in_wat = format!("    at main (offset 0x0000, {}:3:5)", wat.display());
    for options in ["", "--jit", "--lazy", "--interp"] {
        assert_eq!(place(&vmrun_line(&wat, options).error(134)), in_wat, "{options}");
    }
}

#[test]
fn what_is_compiled_while_a_program_runs_is_shown_with_its_time() {
    let ran = vmrun(&words("programs/fib_rec.bc 10 --lazy --time"));
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "fib(10) = 55\n"));
    let line = ran.stderr.lines().find(|line| line.contains("compiled")).expect("there is a line");
    let [_, ms, "ms", "of", "that,", "2", "functions"] =
        line.split_whitespace().collect::<Vec<_>>()[..]
    else {
        panic!("{line}")
    };
    assert!(ms.parse::<f64>().is_ok_and(|ms| ms > 0.0), "{line}");
    // What is not called is not compiled; stages before the run have compiled nothing.
    let one = vmrun(&words("programs/fib_rec.bc --invoke fib 3 --lazy --time")).stderr;
    assert!(one.contains(" 1 functions"), "{one}");
    assert!(!one.contains(" 0.000 ms"), "{one}");
}

#[test]
fn figures_are_printed_as_json() {
    let folder = Folder::new("json");
    let ran = vmrun(&words("programs/fib_rec.bc 10 --lazy --time --json --fuel 100000"));
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "fib(10) = 55\n"));
    let times: Value = serde_json::from_str(&ran.stderr).expect("it is JSON");
    let names: Vec<_> = times["stages"].as_array().expect("stages").iter().collect();
    assert_eq!(names.last().expect("there are some")["name"], "run");
    assert!(times["total_ns"].as_u64().is_some_and(|ns| ns > 0));
    assert_eq!(times["compiled"]["functions"], 2);
    let fuel = |what: &str| times["fuel"][what].as_u64().expect("a number");
    assert_eq!(fuel("used") + fuel("left"), 100_000);
    let error = vmrun(&words("programs/fib_rec.bc --json")).error(2);
    assert!(error.contains("--time"), "{error}");

    let script = "(module (func (export \"f\") (result i32) i32.const 1))
        (assert_return (invoke \"f\") (i32.const 1))";
    let script = folder.write("s.wast", script);
    let args = ["wast".as_ref(), script.as_os_str(), "--json".as_ref()];
    let counts: Value = serde_json::from_str(&vmrun(&args).output()).expect("it is JSON");
    assert_eq!((&counts[0]["passed"], &counts[0]["failed"]), (&2.into(), &0.into()));
    let case = folder
        .write("c.vasm", "; why: x\nfunc f() -> i32 { i32.const 1 return }\n; run: f() == 1\n");
    let args = ["test".as_ref(), case.as_os_str(), "--json".as_ref()];
    let counts: Value = serde_json::from_str(&vmrun(&args).output()).expect("it is JSON");
    assert_eq!(counts, serde_json::json!({ "passed": 1, "failed": 0 }));
}

#[test]
fn colours_are_for_terminals_or_on_demand() {
    let red = "\u{1b}[1;31merror\u{1b}[0m: ";
    let error = |line: &str| vmrun(&words(line)).error(2);
    assert!(error("qqq").starts_with("error: "));
    assert!(error("--color never qqq").starts_with("error: "));
    for line in ["--color always qqq", "run --color=always programs/fib_rec.bc ten"] {
        assert!(error(line).starts_with(red), "{line}");
    }
    assert!(error("--color always --frobnicate").contains("\u{1b}["));
    assert!(error("--color red qqq").contains("invalid value 'red' for '--color <WHEN>'"));
    let syntax = Folder::new("colours").write("p.vasm", "func f() { retrun }");
    let error = vmrun_line(&syntax, "--color always").error(1);
    assert!(error.starts_with("\u{1b}[1;31merror\u{1b}[0m"), "{error}");
    let on_terminal = |no_color: &str| {
        let (ours, theirs) = terminal();
        let mut command = command(&["qqq"]);
        command.env("TERM", "xterm").env("NO_COLOR", no_color).stderr(theirs);
        let status = command.status().expect("the binary runs");
        drop(command);
        let mut shown = [0; 1024];
        let n = File::from(ours).read(&mut shown).expect("it was written");
        assert_eq!(status.code(), Some(2));
        String::from_utf8_lossy(&shown[..n]).into_owned()
    };
    assert!(on_terminal("").starts_with(red));
    assert!(on_terminal("1").starts_with("error: "));
    // The program's own arguments are not looked at.
    let own = vmrun(&words("programs/fib_rec.bc -- 5 --color always")).output();
    assert_eq!(own, "fib(5) = 5\n");
}

#[test]
fn shells_get_completions() {
    for (shell, expected) in [
        ("bash", "complete -F _vmrun"),
        ("zsh", "#compdef vmrun"),
        ("fish", "complete -c vmrun"),
        ("powershell", "Register-ArgumentCompleter"),
        ("elvish", "edit:completion:arg-completer[vmrun]"),
    ] {
        let script = vmrun(&["completions", shell]).output();
        assert!(script.contains(expected), "{shell}: {script}");
        for word in ["objdump", "settings", "max-memory", "timeout"] {
            assert!(script.contains(word), "{shell} lacks {word}");
        }
        assert!(!script.contains('\u{1b}'));
    }
    let error = vmrun(&["completions", "tcsh"]).error(2);
    assert!(error.contains("[possible values: bash, elvish, fish, powershell, zsh]"), "{error}");
}

#[test]
fn the_help_names_habits_that_do_not_work_here() {
    let help = vmrun(&["--help"]).output();
    for text in ["For those who know wasmtime:", "vmrun prog.wasm -- -v --jit", "not  -W fuel=N"] {
        assert!(help.contains(text), "{text}");
    }
}

/// Profilers find the names of native functions in a file that is named after the process.
#[test]
fn profilers_are_told_the_names_of_native_functions() {
    let folder = Folder::new("profilers");
    let program = root().join("programs/fib_rec.bc");
    let program = program.to_str().expect("the path is UTF-8");
    for (how, start) in [("perfmap", "/tmp/perf-"), ("jitdump", "jit-")] {
        let mut command = command(&[program, "10", "--jit", "--profile", how]);
        let child = command.current_dir(folder.path("")).spawn().expect("it starts");
        let id = child.id();
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let end = if how == "perfmap" { "map" } else { "dump" };
        let path = folder.path("").join(format!("{start}{id}.{end}"));
        let bytes = fs::read(&path).expect("the file is there");
        assert!(bytes.windows(3).any(|name| name == b"fib"), "{how} names fib");
        fs::remove_file(path).expect("it can be removed");
    }
    let error = vmrun(&["programs/fib_rec.bc", "--profile", "guest"]).error(2);
    assert!(error.contains("[possible values: perfmap, jitdump]"), "{error}");
}
