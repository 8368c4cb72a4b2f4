//! Functions that are made when they are asked for.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use slotvm_bytecode::VerifiedModule;
use slotvm_bytecode::load::{LoadOptions, load};

use crate::{binary, load_lazily};

#[test]
fn programs_are_the_same_in_any_order() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs/wasm");
    let mut n_lazy = 0;
    for folder in [folder.clone(), folder.join("wasi")] {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "wasm") {
                continue;
            }
            let bytes = fs::read(&path).unwrap();
            let at_once = load(&bytes, LoadOptions::default()).unwrap().verify(false).unwrap();
            let lazy = load_lazily(&bytes).unwrap();
            n_lazy += usize::from(lazy.is_lazy());
            for func in (0..lazy.n_funcs()).rev() {
                assert_eq!(lazy.func_name(func), at_once.func_name(func));
                let (Some(body), Some(expected)) = (lazy.body(func), at_once.body(func)) else {
                    assert!(lazy.func(func).is_none() && at_once.func(func).is_none());
                    continue;
                };
                let (code, expected_code) = (lazy.func(func).unwrap(), at_once.func(func).unwrap());
                assert_eq!((&code.code, &code.lines), (&expected_code.code, &expected_code.lines));
                assert_eq!(body.succs, expected.succs, "{}", path.display());
                for (block, expected) in body.blocks.iter().zip(&expected.blocks) {
                    let (mut shape, mut expected) = (block.shape, expected.shape);
                    assert_eq!(lazy.shape_depth(shape), at_once.shape_depth(expected));
                    while let (Some(found), Some(top)) =
                        (lazy.shape_top(shape), at_once.shape_top(expected))
                    {
                        assert_eq!(found.1, top.1);
                        (shape, expected) = (found.0, top.0);
                    }
                }
            }
            assert_eq!(lazy.completed().module(), at_once.module(), "{}", path.display());
            // With other users, after that, and before anything was made.
            let options = LoadOptions { is_lazy: true, ..LoadOptions::default() };
            let untouched = load(&bytes, options).unwrap().verify(false).unwrap();
            let used = VerifiedModule::clone(&untouched);
            assert_eq!(untouched.into_completed().module(), at_once.module());
            assert_eq!(used.into_completed().module(), at_once.module());
            let lazy = Arc::into_inner(lazy).expect("there are no other users");
            assert_eq!(lazy.into_completed().module(), at_once.module());
        }
    }
    assert!(n_lazy > 50, "{n_lazy}");
}

#[test]
fn what_concerns_the_module_includes_what_code_may_refer_to() {
    let lazy = load_lazily(&binary(
        r#"(module
            (table 4 funcref)
            (elem declare func $b)
            (elem (i32.const 0) $c $d)
            (global funcref (ref.func $e))
            (func $a)
            (func $b (param $named i32) (local $other i64) (drop (ref.func $b)))
            (func $c (table.set (i32.const 0) (ref.func $d)))
            (func $d)
            (func $e)
            (func (export "f") (drop (ref.func 5))))"#,
    ));
    let lazy = lazy.unwrap();
    assert!(lazy.is_lazy());
    assert_eq!(lazy.referenced_funcs(), [1, 2, 3, 4, 5]);
    assert_eq!(lazy.constant_entries(0, 0), None);
    assert_eq!(lazy.completed().referenced_funcs(), [1, 3, 5]);
    assert_eq!(lazy.completed().module().names.local(1, 1), Some("other"));
    assert_eq!(lazy.func_name(2), "c");
}

#[test]
fn tables_that_no_function_writes_are_constant() {
    let writers = [
        ("", true),
        ("(drop (table.get $t (i32.const 0)))", true),
        ("(table.set $u (i32.const 0) (ref.null func))", true),
        ("(table.copy $u $t (i32.const 0) (i32.const 0) (i32.const 0))", true),
        ("(table.init $u $s (i32.const 0) (i32.const 0) (i32.const 0))", true),
        ("(memory.fill (i32.const 0) (i32.const 0) (i32.const 0))", true),
        ("(table.set $t (i32.const 0) (ref.null func))", false),
        ("(drop (table.grow $t (ref.null func) (i32.const 0)))", false),
        ("(table.fill $t (i32.const 0) (ref.null func) (i32.const 0))", false),
        ("(table.copy $t $u (i32.const 0) (i32.const 0) (i32.const 0))", false),
        ("(table.init $t $s (i32.const 0) (i32.const 0) (i32.const 0))", false),
    ];
    for (writer, is_constant) in writers {
        let wasm = binary(&format!(
            r#"(module
                (memory 1)
                (table $u 4 funcref)
                (table $t 4 funcref)
                (elem (table $t) (i32.const 1) func $a $b)
                (elem $s func $a)
                (func $a)
                (func $b {writer})
                (func (export "f") (call_indirect $t (i32.const 1))))"#,
        ));
        let all = LoadOptions { is_lazy: true, ..LoadOptions::default() };
        for options in [all, LoadOptions { is_validated: true, ..all }] {
            let lazy = Arc::new(load(&wasm, options).unwrap().verify(false).unwrap());
            assert!(lazy.is_lazy());
            assert_eq!(lazy.private_tables(), [0, 1]);
            assert_eq!(lazy.is_constant_table(1), is_constant, "{writer}");
            let entries = lazy.constant_entries(1, lazy.func_type_index(0));
            assert_eq!(entries, lazy.completed().constant_entries(1, 0));
            assert_eq!(entries.map(<[_]>::len), is_constant.then_some(2), "{writer}");
        }
    }
}

#[test]
fn modules_whose_functions_may_exceed_a_limit_are_translated_at_once() {
    let is_lazy = |wat: &str| load_lazily(&binary(wat)).unwrap().is_lazy();
    assert!(is_lazy("(module (func (param i32 i32) (result i32) local.get 0))"));
    assert!(!is_lazy("(module (func (result i32 i32) unreachable))"));
    assert!(!is_lazy("(module (func (param v128)))"));
    assert!(!is_lazy("(module (func (local v128)))"));
    assert!(!is_lazy("(module (func (drop (i32x4.splat (i32.const 1)))))"));
    assert!(!is_lazy("(module (global v128 (v128.const i64x2 0 0)))"));
    let long = format!("(module (func {}))", "(drop (i32.const 1))".repeat(700_000));
    assert!(!is_lazy(&long));
}
