//! Rejection of unsupported features by the name of their proposal.

use slotvm_bytecode::wasm::{self, Error};

use crate::{binary, refuse};

#[track_caller]
fn check(wat: &str, expected: &[&str]) {
    let error = refuse(wat);
    let Error::Unsupported { proposals, .. } = &error else { panic!("{error}\n{wat}") };
    assert_eq!(proposals, expected, "{error}");
    let start = format!("WebAssembly proposal not supported: {}, ", expected.join(", "));
    assert!(error.to_string().starts_with(&start), "{error}");
}

#[test]
fn relaxed_simd() {
    let relaxed = "(func (param v128) local.get 0 local.get 0 i8x16.relaxed_swizzle drop)";
    check(&format!("(module {relaxed})"), &["relaxed SIMD"]);
}

#[test]
fn multiple_memories() {
    check("(module (memory 1) (memory 1))", &["multiple memories"]);
    let store = "(func i32.const 0 i32.const 1 i32.store 1)";
    check(&format!("(module (memory 1) (memory 1) {store})"), &["multiple memories"]);
}

#[test]
fn memory64() {
    check("(module (memory i64 1))", &["64-bit memories"]);
    check("(module (table i64 1 funcref))", &["64-bit memories"]);
}

#[test]
fn exceptions() {
    check("(module (tag))", &["exception handling"]);
    let body = "block $h try_table (catch $t $h) throw $t end end";
    check(&format!("(module (tag $t) (func {body}))"), &["exception handling"]);
    check("(module (func try catch_all end))", &["legacy exception handling"]);
}

#[test]
fn garbage_collection() {
    check("(module (type (struct (field i32))))", &["garbage collection"]);
    check("(module (type (array i8)))", &["garbage collection"]);
    check("(module (func (param anyref)))", &["garbage collection"]);
    check("(module (func i32.const 1 ref.i31 drop))", &["garbage collection"]);
}

/// Finding out which other proposals such a module needs would take too much memory.
#[test]
fn large_recursive_groups() {
    let group = |n: usize| format!("(module (rec {}) (tag))", "(type (struct))".repeat(n));
    check(&group(10_000), &["exception handling", "garbage collection"]);
    check(&group(10_001), &["garbage collection"]);
    let groups = "(rec (type (struct)) (type (struct)))".repeat(5_001);
    check(&format!("(module {groups} (tag))"), &["garbage collection"]);
}

#[test]
fn function_references() {
    let call = "(type $t (func)) (func (param (ref $t)) local.get 0 call_ref $t)";
    check(&format!("(module {call})"), &["typed function references"]);
    check("(module (func (param (ref func))))", &["typed function references"]);
    check(
        "(module (func (param funcref) local.get 0 ref.as_non_null drop))",
        &["typed function references"],
    );
}

#[test]
fn threads() {
    check("(module (memory 1 1 shared))", &["threads"]);
    let add = "(func (param i32) (result i32) local.get 0 i32.const 1 i32.atomic.rmw.add)";
    check(&format!("(module (memory 1) {add})"), &["threads"]);
    check("(module (func atomic.fence))", &["threads"]);
}

#[test]
fn components() {
    for wat in ["(component)", "(component (core module (func)))"] {
        let error = refuse(wat);
        let expected = "WebAssembly proposal not supported: components, needed at offset 0x4: a \
                        component, not a module";
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn others() {
    check("(module (memory 1 (pagesize 1)))", &["custom page sizes"]);
    check("(module (type $f (func)) (type $c (cont $f)))", &["stack switching"]);
}

#[test]
fn several_at_once() {
    let fence = "(func atomic.fence)";
    check(&format!("(module (memory i64 1) {fence})"), &["64-bit memories", "threads"]);
    let three = "(memory 1 1 shared) (memory 1) (tag)";
    check(&format!("(module {three})"), &["multiple memories", "threads", "exception handling"]);
    // Proposals that others build on are not named in addition.
    check("(module (tag) (type (struct)))", &["exception handling", "garbage collection"]);
}

#[test]
fn the_place_is_the_first_that_needs_it() {
    let wat = "(module (func nop nop atomic.fence))";
    let bytes = binary(wat);
    let place =
        bytes.windows(2).position(|pair| pair == [0xfe, 0x03]).expect("the bytes are present");
    match wasm::import(&bytes) {
        Err(Error::Unsupported { offset, message, .. }) => {
            assert_eq!(offset, place as u64);
            assert!(message.contains("threads"), "{message}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_wrong_by_all_proposals_is_invalid() {
    let error = refuse("(module (func (result i32)))");
    assert!(matches!(error, Error::Invalid { .. }), "{error}");
    let start = "invalid WebAssembly at offset 0x";
    assert!(error.to_string().starts_with(start), "{error}");
    // This also holds after a feature that needs a proposal.
    let error = refuse("(module (memory 1) (memory 1) (func (result i32)))");
    assert!(matches!(error, Error::Invalid { .. }), "{error}");
}

#[test]
fn custom_descriptors() {
    let types = "(type $a (descriptor $b) (struct)) (type $b (describes $a) (struct))";
    check(&format!("(module (rec {types}))"), &["custom descriptors"]);
}

#[test]
fn proposals_of_newer_drafts() {
    check(r#"(module (import "m" (item "a" (func)) (item "b" (func))))"#, &["compact imports"]);
    let discard = "(func i32.const 0 i32.const 0 memory.discard)";
    check(&format!("(module (memory 1) {discard})"), &["memory control"]);
    check("(module (func atomic.fence acqrel))", &["acquire-release atomics"]);
    check("(module (type (shared (func))))", &["shared-everything threads"]);
    check("(module (global (shared mut i32) (i32.const 0)))", &["shared-everything threads"]);
    let load = "local.get 0 local.get 1 i32.load (type $a) drop";
    check(
        &format!("(module (type $a (array (mut i8))) (func (param (ref $a) i32) {load}))"),
        &["multibyte array access"],
    );
}

#[test]
fn what_is_malformed_is_so_before_it_is_unsupported() {
    let memory = |limits: &[u8]| {
        let section = [&[5, limits.len() as u8 + 1, 1], limits].concat();
        wasm::import(&[b"\0asm\x01\0\0\0", &section[..]].concat()).unwrap_err().to_string()
    };
    let shared = memory(&[3, 0, 1]);
    assert!(shared.contains("not supported: threads"), "{shared}");
    // Memories are shared by bit 1 of their flags, and then must have a maximum, which is bit 0.
    let invalid = "invalid WebAssembly at offset 0xb: ";
    assert_eq!(memory(&[2, 0]), format!("{invalid}shared memory must have maximum size"));
    assert_eq!(memory(&[0x10, 0]), format!("{invalid}invalid memory limits flags"));
}
