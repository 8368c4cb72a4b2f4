//! WebAssembly on the command line.

use std::fs;
use std::path::Path;

use crate::binary::{ENGINES, Folder, vmrun, vmrun_line};

const SQUARES: &str = r#"(module $squares
  (import "env" "print_i64" (func $print (param i64)))
  (import "env" "print_char" (func $char (param i32)))
  (func $main (export "main") (param $n i32) (result i32)
    (local $i i64)
    (loop $next
      (call $print (i64.mul (local.get $i) (local.get $i)))
      (call $char (i32.const 10))
      (local.set $i (i64.add (local.get $i) (i64.const 1)))
      (br_if $next (i64.lt_s (local.get $i) (i64.extend_i32_s (local.get $n)))))
    (i32.const 7))
  (func $inner (param $d i32) (result i32) (i32.div_u (i32.const 1) (local.get $d)))
  (func (export "reciprocal") (param i32) (result i32) (call $inner (local.get 0))))"#;

#[test]
fn text_and_binary_run_in_every_engine_and_can_be_converted() {
    let folder = Folder::new("wasm_runs");
    let text = folder.write("squares.wat", SQUARES);
    let binary = folder.write("squares.wasm", wat::parse_str(SQUARES).expect("the text is valid"));
    let converted = folder.path("squares.bc");
    vmrun(&["convert", binary.to_str().expect("UTF-8")]).output();
    let disassembled = folder.path("squares.vasm");
    let paths = [&converted, &disassembled].map(|path| path.to_str().expect("UTF-8"));
    vmrun(&["dis", paths[0], "-o", paths[1]]).output();
    for program in [&text, &binary, &converted, &disassembled] {
        for engine in ENGINES {
            let ran = vmrun_line(program, &format!("{engine} -- 4"));
            assert_eq!((ran.code, ran.stdout.as_str()), (7, "0\n1\n4\n9\n"), "{ran:?}");
        }
    }
    let names = fs::read_to_string(&disassembled).expect("it has been written");
    for name in ["module \"squares\"", "func main", "func inner", "d: i32"] {
        assert!(names.contains(name), "{name} is lost:\n{names}");
    }
}

#[test]
fn a_trap_names_the_functions_and_places() {
    let folder = Folder::new("wasm_traps");
    let program = folder.write("squares.wat", SQUARES);
    for engine in ENGINES {
        let error = vmrun_line(&program, &format!("{engine} --invoke reciprocal 0")).error(134);
        let file = program.display();
        let expected = format!(
            "error: integer division by zero
    at squares!inner (offset 0x0004, {file}:12:45)
    at squares!reciprocal (offset 0x0002, {file}:13:57)\n"
        );
        assert_eq!(error, expected, "{engine}");
    }
}

#[test]
fn a_trap_of_a_compiled_module_is_in_a_file_of_its_source() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vm/tests/wasm/places");
    let traps = [("1 7", "inc/checks.h:3:5"), ("1 0", "places.c:5:12")];
    for (module, folder_of_unit) in [("places.dwarf4.wasm", ""), ("places.dwarf5.wasm", "/src/")] {
        for ((values, place), engine) in traps.iter().flat_map(|trap| ENGINES.map(|e| (trap, e))) {
            let program = folder.join(module);
            let ran = vmrun_line(&program, &format!("{engine} --invoke quotient {values}"));
            let error = ran.error(134);
            assert!(error.contains(&format!(", {folder_of_unit}{place})\n")), "{engine}: {error}");
        }
    }
}

#[test]
fn what_is_not_supported_or_not_valid_is_refused_by_name() {
    let folder = Folder::new("wasm_refused");
    let cases = [
        ("fence.wat", "(module (func atomic.fence))", "threads"),
        ("memories.wat", "(module (memory 1) (memory 1))", "multiple memories"),
        ("text.wat", "(module (func (result i32)", "text.wat:1"),
        ("type.wat", "(module (func (result i32) (i64.const 1)))", "type mismatch"),
        ("cut.wasm", "\0asm\x01\0", "cut.wasm"),
        ("empty.wasm", "", "empty.wasm"),
    ];
    for (name, source, expected) in cases {
        let program = folder.write(name, source);
        let error = vmrun(&[&program]).error(1);
        assert!(error.contains(expected), "{name}: {error}");
    }
}

#[test]
fn imports_that_nobody_provides_are_named_with_their_kind() {
    let folder = Folder::new("wasm_imports");
    for (import, expected) in [
        ("(func (param i32) (result i64))", "function (i32) -> (i64)"),
        ("(table 1 2 externref)", "table externref 1 2"),
        ("(memory 3)", "memory 3"),
        ("(global (mut f32))", "global mut f32"),
    ] {
        let source = format!(r#"(module (import "a" "b" {import}) (func (export "main")))"#);
        let program = folder.write("import.wat", source);
        for engine in ENGINES {
            let error = vmrun_line(&program, engine).error(1);
            let name = "error: import `a` `b`: nothing has this name";
            assert_eq!(error, format!("{name}, expected {expected}\n"), "{engine}");
        }
    }
}

const SCRIPT: &str = r#"
(module (func (export "one") (result i32) (i32.const 1)) (func (export "trap") unreachable))
(assert_return (invoke "one") (i32.const 1))
(assert_return (invoke "one") (i32.const 2))
(assert_trap (invoke "trap") "unreachable")
(assert_trap (invoke "trap") "integer overflow")
(module (func (export "vector") (param v128) (result v128) (i8x16.relaxed_swizzle (local.get 0) (local.get 0))))
(assert_return (invoke "vector" (v128.const i64x2 1 2)) (v128.const i64x2 1 2))
(assert_return (invoke "missing"))
(assert_invalid (module (func (result i32) (i64.const 1))) "type mismatch")
(assert_invalid (module (func (result i32) (i32.const 1))) "type mismatch")
(assert_invalid (module (func (param v128) (result i64) (i8x16.relaxed_swizzle (local.get 0) (local.get 0)))) "type mismatch")
"#;

#[test]
fn scripts_count_what_passes_fails_and_is_refused() {
    let folder = Folder::new("wasm_script");
    let script = folder.write("script.wast", SCRIPT);
    for engine in ENGINES {
        let ran =
            vmrun_line(std::path::Path::new("wast"), &format!("{engine} {}", script.display()));
        assert_eq!(ran.code, 1, "{ran:?}");
        // Directives that use the refused module are refused. One that is invalid by all proposals is invalid.
        let counts: Vec<&str> = ran.stdout.lines().last().unwrap_or_default().split('|').collect();
        let counts: Vec<&str> = counts.iter().skip(2).map(|cell| cell.trim()).collect();
        assert_eq!(counts, ["5", "3", "3", ""], "{ran:?}");
        for place in [":4:", ":6:", ":7: not supported: relaxed SIMD", ":9: not supported"] {
            assert!(ran.stderr.contains(place), "{place} is not in {}", ran.stderr);
        }
    }
    let good = folder.write("good.wast", "(module)\n(assert_malformed (module quote \"(\") \"\")");
    vmrun(&["wast", good.to_str().expect("UTF-8")]).output();
    let bad = folder.write("bad.wast", "(assert_nothing)");
    assert!(vmrun(&["wast", bad.to_str().expect("UTF-8")]).error(1).contains("bad.wast"));
}
