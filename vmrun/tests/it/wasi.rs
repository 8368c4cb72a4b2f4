//! WASI programs, and programs with unknown imports.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::binary::{ENGINES, Folder, Ran, command, vmrun, vmrun_line, vmrun_with_input};

/// A program that prints its arguments and its environment, each with a newline, and exits with the number of
/// arguments.
const PRINT: &str = r#"(module
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $args_sizes (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_sizes_get" (func $env_sizes (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_get" (func $env (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (func $print (param $at i32) (param $len i32) (local $i i32)
    (loop $next
      (if (i32.lt_u (local.get $i) (local.get $len)) (then
        (if (i32.eqz (i32.load8_u (i32.add (local.get $at) (local.get $i))))
          (then (i32.store8 (i32.add (local.get $at) (local.get $i)) (i32.const 10))))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $next))))
    (i32.store (i32.const 0) (local.get $at))
    (i32.store (i32.const 4) (local.get $len))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))
  (func (export "_start")
    (drop (call $args_sizes (i32.const 16) (i32.const 20)))
    (drop (call $args (i32.const 64) (i32.const 1024)))
    (call $print (i32.const 1024) (i32.load (i32.const 20)))
    (drop (call $env_sizes (i32.const 24) (i32.const 28)))
    (drop (call $env (i32.const 64) (i32.const 1024)))
    (call $print (i32.const 1024) (i32.load (i32.const 28)))
    (call $exit (i32.load (i32.const 16)))
    unreachable))"#;

/// A program that waits for its input, and copies it to its output.
const CAT: &str = r#"(module
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (func (export "_start") (local $n i32) (local $at i32)
    (loop $next
      ;; a subscription to standard input
      (i32.store8 (i32.const 72) (i32.const 1))
      (if (call $poll (i32.const 64) (i32.const 128) (i32.const 1) (i32.const 8)) (then unreachable))
      (i32.store (i32.const 0) (i32.const 65536))
      (i32.store (i32.const 4) (i32.const 5000))
      (if (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)) (then unreachable))
      (local.set $n (i32.load (i32.const 8)))
      (local.set $at (i32.const 65536))
      (br_if 1 (i32.eqz (local.get $n)))
      (loop $more
        (i32.store (i32.const 0) (local.get $at))
        (i32.store (i32.const 4) (local.get $n))
        (if (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)) (then unreachable))
        (local.set $at (i32.add (local.get $at) (i32.load (i32.const 8))))
        (br_if $more (local.tee $n (i32.sub (local.get $n) (i32.load (i32.const 8))))))
      (br $next))))"#;

/// A program that creates the file `out` in the first directory, and exits with the error number.
const TOUCH: &str = r#"(module
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_prestat_dir_name"
    (func $name (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 100) "out../out")
  (data (i32.const 32) "\40\00\00\00\01\00\00\00")
  (func $make (param $path i32) (param $len i32) (local $errno i32)
    (local.set $errno (call $open (i32.const 3) (i32.const 0) (local.get $path) (local.get $len)
      (i32.const 1) (i64.const 64) (i64.const 0) (i32.const 0) (i32.const 0)))
    (if (local.get $errno) (then (call $exit (local.get $errno))))
    ;; one byte of the name of the directory goes into the file
    (if (call $name (i32.const 3) (i32.const 64) (i32.const 1))
      (then (call $exit (i32.const 99))))
    (call $exit (call $write (i32.load (i32.const 0)) (i32.const 32) (i32.const 1) (i32.const 8))))
  (func (export "_start") (call $make (i32.const 100) (i32.const 3)))
  (func (export "leave") (call $make (i32.const 103) (i32.const 6))))"#;

fn program(folder: &Folder, source: &str) -> PathBuf {
    folder.write("prog.wat", source)
}

fn run(program: &Path, line: &str) -> Ran {
    vmrun_line(program, line)
}

#[test]
fn arguments_and_environment_are_passed_and_the_exit_code_comes_back() {
    let folder = Folder::new("wasi_print");
    let program = program(&folder, PRINT);
    for engine in ENGINES.into_iter().chain(["--lazy", "--slots memory --lazy"]) {
        let ran =
            run(&program, &format!("{engine} --env A=b --env EMPTY= --env C=d=e -- one -x --jit"));
        assert_eq!((ran.code, ran.stderr.as_str()), (4, ""), "{engine}");
        assert_eq!(ran.stdout, "prog.wat\none\n-x\n--jit\nA=b\nEMPTY=\nC=d=e\n", "{engine}");
    }
    let ran = command(&[program.to_str().unwrap(), "--env", "SLOTVM_TEST"])
        .env("SLOTVM_TEST", "inherited")
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(ran.stdout).unwrap(), "prog.wat\nSLOTVM_TEST=inherited\n");
    // As with wasmtime, what this process does not have the program does not have either. The last one of a name holds.
    for (options, printed) in [
        ("--env SLOTVM_NOT_THERE", "prog.wat\n"),
        ("--env A=1 --env B=2 --env A=3", "prog.wat\nB=2\nA=3\n"),
        ("--env A=1 --env A=", "prog.wat\nA=\n"),
        ("--argv0 -other -- x", "-other\nx\n"),
        ("--version -h --help -V x", "prog.wat\n--version\n-h\n--help\n-V\nx\n"),
    ] {
        assert_eq!(run(&program, options).stdout, printed, "{options}");
    }
    for option in ["--env =x", "--env ="] {
        let error = run(&program, option).error(2);
        assert!(error.contains("expected a name before the value"), "{option}: {error}");
    }
}

#[test]
fn exit_codes_have_eight_bits() {
    let folder = Folder::new("wasi_exit");
    for (code, expected) in [(0, 0), (1, 1), (125, 125), (255, 255), (256, 0), (-1, 255)] {
        let source = format!(
            "(module (import \"wasi_snapshot_preview1\" \"proc_exit\" (func $exit (param i32)))
               (func (export \"_start\") (call $exit (i32.const {code}))))"
        );
        let program = program(&folder, &source);
        for engine in ENGINES {
            let ran = run(&program, engine);
            assert_eq!((ran.code, ran.stderr.as_str()), (expected, ""), "{code} {engine}");
        }
    }
}

#[test]
fn pipes_are_copied_from_end_to_end() {
    let folder = Folder::new("wasi_cat");
    let program = program(&folder, CAT);
    let text: String = (0..100_000).map(|i| format!("line {i}\n")).collect();
    for engine in ["", "--interp", "--jit", "--lazy"] {
        let mut args = vec![program.to_str().unwrap()];
        args.extend(engine.split_whitespace());
        assert_eq!(vmrun_with_input(&args, "").output(), "");
        // More than a pipe holds, so the output must be read while the program runs.
        let mut child = command(&args).stdin(Stdio::piped()).spawn().unwrap();
        let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let copied = std::thread::scope(|scope| {
            scope.spawn(|| {
                input.write_all(text.as_bytes()).unwrap();
                drop(input);
            });
            let mut copied = String::new();
            output.read_to_string(&mut copied).unwrap();
            copied
        });
        assert!(copied == text, "{engine}: {} bytes", copied.len());
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn what_is_asked_for_is_answered_before_the_input_ends() {
    let folder = Folder::new("wasi_dialogue");
    let program = program(&folder, CAT);
    for engine in ["", "--interp", "--jit"] {
        let mut args = vec![program.to_str().unwrap()];
        args.extend(engine.split_whitespace());
        let mut child = command(&args).stdin(Stdio::piped()).spawn().unwrap();
        let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        for question in ["one", "two"] {
            input.write_all(question.as_bytes()).unwrap();
            let mut answer = [0; 3];
            output.read_exact(&mut answer).unwrap();
            assert_eq!(answer, question.as_bytes());
        }
        drop(input);
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn files_are_below_the_directories_that_are_given() {
    const BADF: i32 = 8;
    const PERM: i32 = 63;
    let folder = Folder::new("wasi_dir");
    let program = program(&folder, TOUCH);
    let data = folder.path("data");
    for engine in ENGINES {
        let _ = fs::remove_dir_all(&data);
        fs::create_dir(&data).unwrap();
        assert_eq!(run(&program, engine).code, BADF, "no directory is given");
        let dir = data.display();
        let ran = run(&program, &format!("{engine} --dir {dir}::G"));
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{engine}");
        assert_eq!(fs::read_to_string(data.join("out")).unwrap(), "G", "{engine}");
        let ran = run(&program, &format!("{engine} --dir {dir}::G --invoke leave"));
        assert_eq!((ran.code, ran.stderr.as_str()), (PERM, ""), "{engine}");
        assert!(!folder.path("out").exists());
    }
    let missing = folder.path("missing");
    let error = run(&program, &format!("--dir {}", missing.display())).error(1);
    assert!(error.starts_with(&format!("error: {}: No such file", missing.display())), "{error}");
    // Without a guest name, a directory has its host name.
    let line = format!("--dir {}", data.display());
    assert_eq!(run(&program, &line).code, 99, "the name is longer than one byte");
}

#[test]
fn what_traps_traps() {
    let folder = Folder::new("wasi_trap");
    let program = program(&folder, "(module (func (export \"_start\") unreachable))");
    for engine in ENGINES {
        let ran = run(&program, engine);
        assert_eq!(ran.code, 134, "{engine}");
        assert!(ran.stderr.contains("unreachable"), "{}", ran.stderr);
    }
}

#[test]
fn start_comes_before_main_and_initialize_before_others() {
    let folder = Folder::new("wasi_entries");
    let source = r#"(module
      (import "env" "print_i32" (func $print (param i32)))
      (import "env" "print_char" (func $char (param i32)))
      (func $say (param i32) (call $print (local.get 0)) (call $char (i32.const 10)))
      ENTRIES
      (func (export "main") (call $say (i32.const 2)))
      (func (export "other") (call $say (i32.const 3))))"#;
    let start = "(func (export \"_start\") (call $say (i32.const 1)))";
    let initialize = "(func (export \"_initialize\") (call $say (i32.const 0)))";
    for (entries, line, printed) in [
        ("", "", "2\n"),
        (start, "", "1\n"),
        (start, "--invoke other", "3\n"),
        (initialize, "", "0\n2\n"),
        (initialize, "--invoke other", "0\n3\n"),
    ] {
        let program = program(&folder, &source.replace("ENTRIES", entries));
        for engine in ["", "--interp", "--jit"] {
            assert_eq!(run(&program, &format!("{line} {engine}")).output(), printed, "{line}");
        }
    }
    let program = program(&folder, "(module (func (export \"_start\") (param i32)))");
    let error = run(&program, "").error(2);
    assert_eq!(error, "error: `_start` has type (i32) -> (); expected () -> ()\n");
}

#[test]
fn output_by_wasi_and_by_env_keeps_its_order() {
    let folder = Folder::new("wasi_order");
    let source = r#"(module
      (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
      (import "env" "print_i32" (func $print (param i32)))
      (memory (export "memory") 1)
      (data (i32.const 0) "\10\00\00\00\01\00\00\00")
      (data (i32.const 16) "-")
      (func (export "_start")
        (call $print (i32.const 1))
        (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
        (call $print (i32.const 2))))"#;
    assert_eq!(run(&program(&folder, source), "").output(), "1-2");
}

#[test]
fn unknown_imports_do_what_is_asked_for() {
    let folder = Folder::new("unknown_imports");
    let source = r#"(module
      (import "bench" "start" (func $start))
      (import "bench" "numbers" (func $numbers (param i64) (result i32 i64 f32 f64 funcref)))
      (import "env" "print_i32" (func $print (param i32)))
      (func (export "unused"))
      (func (export "_start")
        call $start
        (call $numbers (i64.const 7))
        ref.is_null call $print
        f64.const 0 f64.eq call $print
        f32.const 0 f32.eq call $print
        i64.eqz call $print
        i32.eqz call $print))"#;
    let program = program(&folder, source);
    for engine in ENGINES {
        let error = run(&program, engine).error(1);
        assert!(
            error.starts_with("error: import `bench` `start`: nothing has this name"),
            "{error}"
        );
        let ran = run(&program, &format!("{engine} --unknown-imports zero"));
        assert_eq!(ran.output(), "11111", "{engine}");
        let error = run(&program, &format!("{engine} --unknown-imports trap")).error(134);
        let message = "the program called its import `bench` `start`, which is not defined";
        let place = format!("{}:7:9", program.display());
        let expected = format!("error: {message}\n    at _start (offset 0x0000, {place})\n");
        assert_eq!(error, expected, "{engine}");
        let line = format!("{engine} --unknown-imports trap --invoke unused");
        assert_eq!(run(&program, &line).output(), "");
    }
    // What is missing is found before native code is made, of which this would be too much.
    let types = vec!["i64"; 1_000].join(", ");
    let params: Vec<_> = (0..1_000).map(|i| format!("p{i}: i64")).collect();
    let gets: String = (0..1_000).map(|i| format!("local.get p{i}\n")).collect();
    let costly = format!(
        "import \"bench\" \"start\" func start()
        export \"main\" func main
        func wide({}) -> ({types}) {{ {gets} return }}
        func main() {{ call start {} {} {} return }}",
        params.join(", "),
        "i64.const 1\n".repeat(1_000),
        "call wide\n".repeat(4_000),
        "drop\n".repeat(1_000),
    );
    let costly = folder.write("costly.vasm", costly);
    for command in ["--jit", "--slots memory"] {
        let error = run(&costly, command).error(1);
        assert!(error.starts_with("error: import `bench` `start`: nothing"), "{command}: {error}");
        let error = run(&costly, &format!("{command} --unknown-imports zero")).error(1);
        assert!(error.contains("cannot be compiled"), "{command}: {error}");
    }
    // Unknown memories, tables and globals are never defined.
    let source = r#"(module (import "env" "m" (memory 1)) (func (export "_start")))"#;
    let program = folder.write("memory.wat", source);
    let error = vmrun(&[program.to_str().unwrap(), "--unknown-imports", "zero"]).error(1);
    assert!(error.starts_with("error: import `env` `m`: nothing has this name"), "{error}");
}
