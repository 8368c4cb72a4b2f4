//! `-` for standard input and output.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use crate::binary::{Folder, command, root, vmrun};

/// The standard output of a command with this input; the command succeeds.
#[track_caller]
fn piped(line: &str, input: &[u8]) -> Vec<u8> {
    let args: Vec<&str> = line.split(' ').collect();
    let mut child = command(&args).stdin(Stdio::piped()).spawn().expect("the binary starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.write_all(input).expect("it is read");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{line}: {said}");
    output.stdout
}

fn file(path: &str) -> Vec<u8> {
    fs::read(root().join(path)).expect("it is there")
}

const WAT: &[u8] = b";; squares\n(module (func (export \"f\") (param i32) (result i32)
  (i32.mul (local.get 0) (local.get 0))))";

#[test]
fn programs_of_every_format_come_from_standard_input() {
    let folder = Folder::new("stdin");
    let compiled = folder.path("fib_rec.vmc");
    vmrun(&["compile", "programs/fib_rec.bc", "-o", compiled.to_str().expect("UTF-8")]).output();
    let binary = file("programs/fib_rec.bc");
    let compiled = fs::read(compiled).expect("it was written");
    for program in [&binary, &file("programs/fib_rec.vasm"), &compiled] {
        assert_eq!(piped("- 10", program), b"fib(10) = 55\n");
        assert_eq!(piped("run - 10", program), b"fib(10) = 55\n");
    }
    assert_eq!(piped("- 10 --jit", &binary), b"fib(10) = 55\n");
    assert_eq!(piped("run --invoke fib - 20", &binary), b"6765\n");
    assert_eq!(piped("- --invoke f 7", WAT), b"49\n");
    assert_eq!(piped("verify -", WAT), b"");
    for (line, of_file) in [
        ("dis -", "dis programs/fib_rec.bc"),
        ("dump - --stage ssa", "dump programs/fib_rec.bc --stage ssa"),
        ("objdump -", "objdump programs/fib_rec.bc"),
        ("objdump - --json", "objdump programs/fib_rec.bc --json"),
    ] {
        assert!(piped(line, &binary) == piped(of_file, b""), "{line}");
    }
    let script = b"(assert_return (invoke \"f\") (i32.const 1))";
    let script =
        [b"(module (func (export \"f\") (result i32) i32.const 1))\n".as_slice(), script].concat();
    let table = String::from_utf8(piped("wast -", &script)).expect("it is text");
    assert!(table.contains("| -    |      2 |"), "{table}");
}

#[test]
fn files_go_to_standard_output() {
    let binary = file("programs/fib_rec.bc");
    let text = file("programs/fib_rec.vasm");
    assert_eq!(piped("asm programs/fib_rec.vasm -o -", b""), binary);
    assert_eq!(piped("asm -", &text), binary);
    assert_eq!(piped("asm - -o -", &text), binary);
    assert_eq!(piped("dis - -o -", &binary), piped("dis -", &binary));
    let converted = piped("convert -", WAT);
    assert_eq!(piped("- --invoke f 9", &converted), b"81\n");
    let optimised = piped("opt - -o -", &binary);
    assert_eq!(piped("- 10", &optimised), b"fib(10) = 55\n");
    let compiled = piped("compile -", &binary);
    assert_eq!(piped("- 10", &compiled), b"fib(10) = 55\n");
    assert!(!root().join("-").exists() && !root().join("-.bc").exists());
}

#[test]
fn a_program_from_standard_input_has_none_of_its_own() {
    let source = b"import \"env\" \"read_line\" func read_line(i32, i32) -> i32
memory m 1
export \"main\" func main
func main() -> i32 { i32.const 0 i32.const 100 call read_line return }";
    assert_eq!(piped("-", source), b"");
}

#[test]
fn errors_of_standard_input_name_it() {
    let error = vmrun(&["verify", "-"]).error(1);
    assert!(error.starts_with("error: -: byte 0x0: "), "{error}");
}
