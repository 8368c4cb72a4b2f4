//! Running programs: exit codes, arguments, host functions, fuel, traces and times.

use crate::binary::{ENGINES, Folder, vmrun, vmrun_line, vmrun_with_input};

#[test]
fn the_programs_exit_code_is_passed_on() {
    let folder = Folder::new("exit_codes");
    let source = "export \"main\" func main  func main(n: i32) -> i32 { local.get n return }";
    let program = folder.write("p.vasm", source);
    for (arg, code) in [("0", 0), ("3", 3), ("255", 255), ("256", 0), ("-1", 255)] {
        for engine in ENGINES {
            let ran = vmrun_line(&program, &format!("{engine} -- {arg}"));
            assert_eq!((ran.code, ran.stderr.as_str()), (code, ""), "{arg} {engine}");
        }
    }
}

#[test]
fn main_may_have_other_types() {
    let folder = Folder::new("types_of_main");
    let program = folder.write("none.vasm", "export \"main\" func f  func f() { return }");
    assert_eq!(vmrun(&[&program]).output(), "");
    let source = "export \"main\" func f  func f() -> i64 { i64.const 5 return }";
    let program = folder.write("i64.vasm", source);
    assert_eq!(vmrun(&[&program]).output(), "");
    let program = folder.write("f64.vasm", "export \"main\" func f  func f(x: f64) { return }");
    let error = vmrun(&[&program]).error(2);
    assert_eq!(error, "error: `main` has type (f64) -> (); expected no parameters or one i32\n");
    let program = folder.write("lib.vasm", "export \"f\" func f  func f() { return }");
    let error = vmrun(&[&program]).error(2);
    let message = "the program exports no function `main`; call another one with --invoke";
    assert_eq!(error, format!("error: {message}\n"));
}

#[test]
fn the_size_is_the_first_argument_or_the_default() {
    let with_size = vmrun(&["programs/fib_rec.bc", "--jit", "--", "10", "ignored"]);
    assert_eq!(with_size.output(), "fib(10) = 55\n");
    let error = vmrun(&["programs/fib_rec.bc", "--", "ten"]).error(2);
    assert_eq!(error, "error: the first program argument \"ten\" is not a size; expected an i32\n");
    let source = "export \"main\" func main  func main(n: i32) { return }";
    let program = Folder::new("no_default_size").write("p.vasm", source);
    let error = vmrun(&[&program]).error(2);
    assert_eq!(error, "error: `main` takes an i32; write it after the program\n");
}

/// A program that prints the arguments, then each line of the input after its length.
const ECHO: &str = r#"
import "env" "print_i32" func print_i32(i32)
import "env" "print_str" func print_str(i32, i32)
import "env" "print_char" func print_char(i32)
import "env" "read_line" func read_line(i32, i32) -> i32
import "env" "args" func args(i32, i32) -> i32
memory mem 1
export "main" func main
func main() {
  local n: i32
  i32.const 0  i32.const 8  call args  local.tee n  call print_i32
  i32.const 58  call print_char
  i32.const 0  i32.const 8  call print_str
  i32.const 10  call print_char
next:
  i32.const 100  i32.const 5  call read_line  local.tee n
  i32.eqz
  br_if end
  local.get n  call print_i32
  i32.const 100  local.get n  call print_str
  br next
end:
  return
}"#;

#[test]
fn programs_read_their_arguments_and_their_input() {
    let program = Folder::new("echo").write("echo.vasm", ECHO);
    let program = program.to_str().expect("the path is UTF-8");
    for engine in ["", "--interp", "--jit"] {
        let mut args: Vec<&str> = engine.split_whitespace().collect();
        args.extend([program, "--", "ab", "--jit", "-x"]);
        let ran = vmrun_with_input(&args, "one\n\nlonger\nend");
        // The buffer for arguments is too small for all of them. The one for lines holds five bytes.
        let printed = "12:ab\0--jit\n4one\n1\n5longe2r\n3end";
        assert_eq!(ran.output(), printed, "{engine}");
    }
    assert_eq!(vmrun(&[program]).output(), "0:\0\0\0\0\0\0\0\0\n");
}

#[test]
fn numbers_and_characters_are_printed() {
    let source = r#"
import "env" "print_i32" func print_i32(i32)
import "env" "print_i64" func print_i64(i64)
import "env" "print_f64" func print_f64(f64)
import "env" "print_char" func print_char(i32)
export "main" func main
func main() {
  i32.const 0xffffffff  call print_i32  i32.const 32  call print_char
  i64.const 0x8000000000000000  call print_i64  i32.const 0x1f600  call print_char
  f64.const 0.1  call print_f64  i32.const 0xd800  call print_char
  f64.const 1e21  call print_f64
  return
}"#;
    let program = Folder::new("printing").write("p.vasm", source);
    for engine in ["", "--interp", "--jit"] {
        let printed = "-1 -9223372036854775808\u{1f600}0.1\u{fffd}1000000000000000000000";
        assert_eq!(vmrun_line(&program, engine).output(), printed, "{engine}");
    }
}

#[test]
fn the_clock_does_not_go_back() {
    let source = r#"
import "env" "clock_ns" func clock_ns() -> i64
export "main" func main
func main() -> i32 {
  local start: i64, n: i32
  call clock_ns  local.set start
again:
  call clock_ns  local.get start  i64.lt_s
  br_if back
  local.get n  i32.const 1  i32.add  local.tee n
  i32.const 1000  i32.lt_s
  br_if again
  ; Some time has passed, but less than a minute.
  call clock_ns  local.get start  i64.sub  i64.const 60_000_000_000  i64.ge_s
  call clock_ns  i64.eqz
  i32.or
  return
back:
  i32.const 2
  return
}"#;
    let program = Folder::new("clock").write("p.vasm", source);
    for engine in ["", "--interp", "--jit"] {
        assert_eq!(vmrun_line(&program, engine).output(), "", "{engine}");
    }
}

#[test]
fn host_functions_trap_at_the_call_and_fail_without_a_memory() {
    let folder = Folder::new("host_failures");
    let print = |memory: &str| {
        format!(
            "import \"env\" \"print_str\" func print_str(i32, i32)\n{memory}\n\
             export \"main\" func main\n\
             func main() {{ i32.const -1 i32.const -1\ncall print_str return }}"
        )
    };
    let out_of_bounds = folder.write("bounds.vasm", print("memory mem 1"));
    let no_memory = folder.write("memory.vasm", print(""));
    for engine in ENGINES {
        let error = vmrun_line(&out_of_bounds, engine).error(134);
        let file = out_of_bounds.display();
        let expected =
            format!("error: out of bounds memory access\n    at main (offset 0x0004, {file}:5)\n");
        assert_eq!(error, expected, "{engine}");
        let error = vmrun_line(&no_memory, engine).error(1);
        let file = no_memory.display();
        let expected =
            format!("error: the program has no memory\n    at main (offset 0x0004, {file}:5)\n");
        assert_eq!(error, expected, "{engine}");
    }
}

#[test]
fn imports_must_be_known_and_fit() {
    let folder = Folder::new("imports");
    let missing = folder.write("missing.vasm", "import \"env\" \"exit\" func exit(i32)");
    let error = vmrun(&[&missing]).error(1);
    let name = "error: import `env` `exit`: nothing has this name";
    assert_eq!(error, format!("{name}, expected function (i32) -> ()\n"));
    let other = folder.write("other.vasm", "import \"env\" \"print_i32\" func print(i64)");
    let error = vmrun_line(&other, "--jit").error(1);
    assert!(error.starts_with("error: import `env` `print_i32`: expected "), "{error}");
}

#[test]
fn fuel_limits_every_engine_in_the_same_way() {
    let folder = Folder::new("fuel");
    let source = "export \"main\" func main
func main(n: i32) -> i32 {
again:
  local.get n  i32.const 1  i32.sub  local.tee n
  br_if again
  i32.const 0  return
}";
    let program = folder.write("p.vasm", source);
    for engine in ENGINES {
        // Ten iterations of five instructions, and two more.
        assert_eq!(vmrun_line(&program, &format!("--fuel 52 {engine} -- 10")).output(), "");
        for (fuel, place) in [("51", ("0x0009", 6)), ("0", ("0x0000", 4))] {
            let error = vmrun_line(&program, &format!("--fuel {fuel} {engine} -- 10")).error(134);
            let ((offset, line), file) = (place, program.display());
            let place = format!("    at main (offset {offset}, {file}:{line})\n");
            assert_eq!(error, format!("error: all fuel consumed\n{place}"));
        }
    }
    let error = vmrun_line(&program, "--fuel many").error(2);
    assert!(error.contains("invalid value 'many' for '--fuel <N>'"), "{error}");
}

#[test]
fn the_trace_shows_each_instruction_with_its_operands() {
    let source = "export \"main\" func main
func double(x: i64) -> i64 { local.get x i64.const 2 i64.mul return }
func main() { i64.const 21 call double drop return }";
    let program = Folder::new("trace").write("p.vasm", source);
    let ran = vmrun_line(&program, "--trace");
    let expected = "  \
  0 main @0000  i64.const 21                 ;
  0 main @0002  call double                  ; 0x15
  1 double @0000  local.get x                  ;
  1 double @0002  i64.const 2                  ; 0x15
  1 double @0004  i64.mul                      ; 0x15 0x2
  1 double @0005  return                       ; 0x2a
  0 main @0004  drop                         ; 0x2a
  0 main @0005  return                       ;
";
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "", expected));
    for engine in &ENGINES[1..] {
        let error = vmrun_line(&program, &format!("--trace {engine}")).error(2);
        assert!(error.contains("cannot be used with"), "{error}");
    }
}

/// The names in the lines of `--time`. Checks that each line is a name, a number and a unit.
fn stages(stderr: &str) -> Vec<&str> {
    let stage = |line: &'_ str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, time, "ms"] = words[..] else { panic!("{line:?} is no line of a stage") };
        time.parse::<f64>().expect("a time is a number");
    };
    stderr
        .lines()
        .inspect(|line| stage(line))
        .map(|line| line.split_whitespace().next().expect("it has words"))
        .collect()
}

#[test]
fn times_are_shown_by_stage_and_in_all() {
    let ran = vmrun(&["programs/fib_rec.bc", "--time", "--", "10"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "fib(10) = 55\n"));
    assert_eq!(stages(&ran.stderr), ["load", "verify", "instantiate", "run", "total", "CPU"]);
    let ran = vmrun(&["programs/fib_rec.bc", "--time", "--jit", "--", "10"]);
    let passes = [
        "inline",
        "rotate",
        "roots",
        "pressure",
        "ssa",
        "forward",
        "peephole",
        "simplify_cfg",
        "if_convert",
        "version",
        "bounds",
    ];
    let mut native = vec!["load", "verify", "slots", "devirtualise"];
    native.extend(passes);
    native.extend(["clif", "asm", "place", "instantiate", "run", "total", "CPU"]);
    assert_eq!(stages(&ran.stderr), native);
    let ran = vmrun(&["programs/fib_rec.bc", "--time", "--fuel", "1000", "--", "1"]);
    let fuel = ran.stderr.lines().last().expect("there are lines");
    assert_eq!(fuel.split_whitespace().collect::<Vec<_>>(), ["fuel", "22", "used,", "978", "left"]);
}

#[test]
fn text_runs_wherever_binary_does() {
    for engine in ENGINES {
        let mut args = vec!["programs/mandelbrot.vasm"];
        args.extend(engine.split_whitespace());
        args.extend(["--", "20"]);
        let text = vmrun(&args).output();
        args[0] = "programs/mandelbrot.bc";
        assert_eq!(vmrun(&args).output(), text, "{engine}");
    }
    let explicit = vmrun(&["run", "programs/fib_rec.vasm", "--", "5"]);
    assert_eq!(explicit.output(), "fib(5) = 5\n");
}

/// A function that begins with a loop is made after the loop, in which the program waits, and has a line of its own.
#[test]
fn the_log_of_tiers_says_what_was_made_when_and_why() {
    let source = "export \"main\" func main\n
        func sum(n: i64) -> i64 {
          local sum: i64
        again:
          local.get sum  local.get n  i64.add  local.set sum
          local.get n  i64.const 1  i64.sub  local.tee n  i64.eqz  i32.eqz  br_if again
          local.get sum  return
        }
        func main(n: i32) {
          local.get n  i64.extend_i32_s  call sum  drop  return
        }";
    let program = Folder::new("tier_log").write("p.vasm", source);
    let ran = vmrun_line(&program, "1000000000 --tier-log");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{ran:?}");
    let lines: Vec<&str> = ran.stderr.lines().collect();
    let [of_loop, of_func, end] = lines[..] else { panic!("{ran:?}") };
    assert!(of_loop.contains("`sum`, loop at 0x0000, after "), "{of_loop}");
    assert!(of_loop.contains(" rounds: compiled in "), "{of_loop}");
    assert!(of_func.contains("`sum`, which begins with a loop: compiled in "), "{of_func}");
    assert_eq!(end, "tier: 2 compiled");
    let ms = |line: &str, before: &str| -> f64 {
        let (_, rest) = line.split_once(before).expect("there is a time");
        let figure = rest.trim_start().split([' ', ')']).next();
        figure.and_then(|ms| ms.parse().ok()).expect("it is a number")
    };
    let since_loop = ms(of_func, "tier:") - ms(of_loop, "tier:");
    let own = ms(of_func, "compiled in ") + ms(of_func, "waited ");
    assert!(own <= since_loop + 0.1, "its time is its own: {of_loop}\n{of_func}");
}
