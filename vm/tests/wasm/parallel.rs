//! Equality of imports and verification with one and with several threads.

use std::fmt::Write as _;

use slotvm_bytecode::{verify, verify_in_parallel, wasm};
use wat::GenerateDwarf;

const FUNCS: usize = 2_500;

/// Returns a module of functions with source lines. Most have blocks with parameters and results of many
/// types, which are left with more operands on the stack; some have `bad` in the middle.
fn module(bad: &[(usize, &str)]) -> Vec<u8> {
    let mut text = String::from(
        "(module (memory 1) (table 10 funcref) (data \"a passive one\")
           (type $t (func (param i32) (result i32)))\n",
    );
    for i in 0..FUNCS {
        let types: Vec<&str> =
            (0..i % 7).map(|j| ["i32", "i64", "f32", "f64"][(i >> (2 * j)) & 3]).collect();
        let list = types.join(" ");
        let consts: String = types.iter().map(|ty| format!("({ty}.const {i})\n")).collect();
        let drops = "drop\n".repeat(types.len());
        let body = format!(
            "{consts} (block (param {list}) (result {list})
               (drop (loop (result i32) (i32.load offset={i} (local.get 0))))
               {consts} (br_table 0 0 0 (local.get 0)))
             {drops} {}
             (call_indirect (type $t) (local.get 0) (local.get 0)) drop
             (i32.add (call $f{} (i32.const {i})) (local.get 0))",
            bad.iter().find(|&&(at, _)| at == i).map_or("", |&(_, code)| code),
            (i * 31) % FUNCS,
        );
        writeln!(text, "(func $f{i} (param i32) (result i32)\n {body})")
            .expect("writing to a string cannot fail");
    }
    text.push(')');
    let mut parser = wat::Parser::new();
    let binary = parser.generate_dwarf(GenerateDwarf::Lines).parse_str(None, &text);
    binary.unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a check in thread pools of several sizes.
fn in_pools(check: impl Fn() + Sync) {
    for n_threads in [1, 2, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(&check);
    }
}

#[test]
fn threads_import_and_verify_what_one_does() {
    let binary = module(&[]);
    let expected = wasm::import(&binary).unwrap();
    let n_code_bytes: usize = expected.funcs.iter().map(|func| func.code.len()).sum();
    assert!(n_code_bytes > 150_000, "{n_code_bytes} bytes of code are too few for several threads");
    assert!(expected.shapes.len() > 500);
    assert!(expected.funcs.iter().all(|func| func.lines.len() > 4));
    let verified = format!("{:?}", verify(expected.clone()).unwrap());
    in_pools(|| {
        let module = wasm::import_in_parallel(&binary).unwrap();
        assert!(module == expected);
        assert!(format!("{:?}", verify_in_parallel(module).unwrap()) == verified);
    });
}

#[test]
fn the_first_function_that_is_invalid_is_the_error() {
    let binary = module(&[(301, "i64.add"), (300, "f32.add"), (1_999, "local.get 9")]);
    let expected = wasm::import(&binary).unwrap_err();
    in_pools(|| assert_eq!(wasm::import_in_parallel(&binary).as_ref(), Err(&expected)));
    let message = expected.to_string();
    assert!(message.contains("expected f32"), "{message}");
}

#[test]
fn the_first_function_that_breaks_a_rule_is_the_error() {
    let mut module = wasm::import(&module(&[])).unwrap();
    for i in [1_700, 900, 901] {
        let code = &mut module.funcs[i].code;
        code.truncate(code.len() - 1);
    }
    let expected = verify(module.clone()).unwrap_err();
    in_pools(|| assert_eq!(verify_in_parallel(module.clone()).err(), Some(expected.clone())));
    assert!(expected.to_string().contains("900"), "{expected}");
}
