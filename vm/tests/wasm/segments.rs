//! Import of everything except code: types, imports, exports, memories, tables, globals, segments, start.

use slotvm_bytecode::module::{
    ConstExpr, Data, ElemItems, EntityKind, GlobalType, ImportCall, ImportKind, MemoryType,
    SegmentMode, TableType,
};
use slotvm_bytecode::wasm::Error;
use slotvm_bytecode::{Imm, Op, ValType, wasm};

use crate::{flat, import};

#[test]
fn imports_keep_their_order_and_kinds() {
    let module = import(
        "(module (import \"a\" \"g\" (global (mut i64))) (import \"a\" \"f\" (func (param i32)))
            (import \"b\" \"m\" (memory 1 2)) (import \"b\" \"t\" (table 3 externref))
            (import \"b\" \"f\" (func (param i32))))",
    );
    let found: Vec<_> = module.imports.iter().map(|i| (&*i.module, &*i.name, &i.kind)).collect();
    let table = TableType { elem: ValType::ExternRef, min: 3, max: None };
    assert_eq!(
        found,
        [
            ("a", "g", &ImportKind::Global(GlobalType { ty: ValType::I64, mutable: true })),
            ("a", "f", &ImportKind::Func(0, ImportCall::Ordinary)),
            ("b", "m", &ImportKind::Memory(MemoryType { min: 1, max: Some(2) })),
            ("b", "t", &ImportKind::Table(table)),
            ("b", "f", &ImportKind::Func(0, ImportCall::Ordinary)),
        ]
    );
}

#[test]
fn exports_and_the_start_function_survive() {
    let module = import(
        "(module (func $f) (memory 0) (table 0 funcref) (global i32 (i32.const 1))
            (export \"\" (func 0)) (export \"f\" (func 0)) (export \"m\" (memory 0))
            (export \"t\" (table 0)) (export \"g\" (global 0)) (start $f))",
    );
    let found: Vec<_> = module.exports.iter().map(|e| (&*e.name, e.kind, e.index)).collect();
    assert_eq!(
        found,
        [
            ("", EntityKind::Func, 0),
            ("f", EntityKind::Func, 0),
            ("m", EntityKind::Memory, 0),
            ("t", EntityKind::Table, 0),
            ("g", EntityKind::Global, 0),
        ]
    );
    assert_eq!(module.start, Some(0));
}

#[test]
fn equal_types_become_one() {
    let module = import(
        "(module (type $a (func (param i32))) (type $b (func (param i32))) (table 1 funcref)
            (func (type $a)) (func (type $b) (call_indirect (type $b) (i32.const 1) (i32.const 0))))",
    );
    assert_eq!(module.types.len(), 1);
    assert!(module.funcs.iter().all(|func| func.ty == 0));
    assert!(flat(&module).contains("call_indirect (i32);"), "{}", flat(&module));
}

#[test]
fn globals_have_constant_expressions() {
    let module = import(
        "(module (import \"e\" \"base\" (global i32)) (func $f)
            (global i64 (i64.const -1)) (global f32 (f32.const nan:0x200000))
            (global (mut f64) (f64.const -0)) (global funcref (ref.func $f))
            (global externref (ref.null extern)) (global funcref (ref.null func))
            (global i32 (i32.add (global.get 0) (i32.mul (i32.const 2) (i32.const 3))))
            (elem declare func $f))",
    );
    let inits: Vec<_> = module.globals.iter().map(|global| global.init.clone()).collect();
    let nan = ConstExpr::default().inst(Op::F32Const, Imm::index(0x7fa0_0000));
    let zero = ConstExpr::default().inst(Op::F64Const, Imm(1 << 63));
    let i32 = |n| (Op::I32Const, Imm::i32(n));
    let sum = [i32(2), i32(3), (Op::I32Mul, Imm::NONE), (Op::I32Add, Imm::NONE)];
    let sum = sum.iter().fold(ConstExpr::global_get(0), |expr, &(op, imm)| expr.inst(op, imm));
    assert_eq!(
        inits,
        [
            ConstExpr::i64(-1),
            nan,
            zero,
            ConstExpr::ref_func(0),
            ConstExpr::ref_null(ValType::ExternRef),
            ConstExpr::ref_null(ValType::FuncRef),
            sum,
        ]
    );
    assert!(module.globals[2].ty.mutable && !module.globals[1].ty.mutable);
}

#[test]
fn segments_of_every_mode_survive() {
    let module = import(
        "(module (memory 1) (table $t 4 funcref) (table $u 4 externref) (func $f)
            (elem (i32.const 1) func $f $f) (elem (table $t) (offset (i32.const 2)) funcref (ref.null func))
            (elem func $f) (elem declare func $f) (elem (table $u) (i32.const 0) externref)
            (elem externref (ref.null extern))
            (data (i32.const 8) \"ab\" \"c\") (data \"passive\") (data (i32.const 0)))",
    );
    let active = |target, offset| SegmentMode::Active { target, offset: ConstExpr::i32(offset) };
    let modes: Vec<_> = module.elems.iter().map(|elem| elem.mode.clone()).collect();
    assert_eq!(
        modes,
        [
            active(0, 1),
            active(0, 2),
            SegmentMode::Passive,
            SegmentMode::Declared,
            active(1, 0),
            SegmentMode::Passive,
        ]
    );
    assert_eq!(module.elems[0].items, ElemItems::Funcs(vec![0, 0]));
    let null = ConstExpr::ref_null(ValType::FuncRef);
    assert_eq!(module.elems[1].items, ElemItems::Exprs(vec![null]));
    assert_eq!(module.elems[4].ty, ValType::ExternRef);
    assert_eq!(
        module.datas,
        [
            Data { mode: active(0, 8), bytes: b"abc".into() },
            Data { mode: SegmentMode::Passive, bytes: b"passive".into() },
            Data { mode: active(0, 0), bytes: Vec::new() },
        ]
    );
}

#[test]
fn code_uses_segments_that_come_behind_it() {
    let wat = "(module (memory 1) (table 1 funcref)
        (func (memory.init 1 (i32.const 0) (i32.const 0) (i32.const 1)) (data.drop 0)
            (table.init 0 (i32.const 0) (i32.const 0) (i32.const 0)) (elem.drop 0))
        (elem func) (data \"a\") (data $d \"b\"))";
    let code = flat(&import(wat));
    for op in ["memory.init d;", "data.drop 0;", "table.init 0 0;", "elem.drop 0;"] {
        assert!(code.contains(op), "{op}\n{code}");
    }
}

#[test]
fn accesses_of_memory_keep_their_offsets() {
    let wat = "(module (memory 1) (func (result i64)
        i32.const 0 i32.const 1 i32.store8 offset=4294967295 align=1
        i32.const 0 i64.load32_u offset=7 i32.const 0 f64.load i64.trunc_sat_f64_u i64.add
        memory.size memory.grow drop))";
    let code = flat(&import(wat));
    let expected = "i32.const 0; i32.const 1; i32.store8 4294967295; i32.const 0; \
                    i64.load32_u 7; i32.const 0; f64.load; i64.trunc_sat_f64_u; i64.add; \
                    memory.size; memory.grow; drop; return";
    assert!(code.contains(expected), "{code}");
}

#[test]
fn tables_may_declare_any_size() {
    import("(module (table 0xffffffff funcref) (table 0xffffffff 0xffffffff externref))");
}

#[test]
fn a_count_of_data_segments_without_segments_is_invalid() {
    let mut bytes = crate::binary("(module)");
    bytes.extend([12, 5, 0xff, 0xff, 0xff, 0xff, 0x0f]);
    let error = wasm::import(&bytes).expect_err("there are no segments");
    assert!(matches!(error, Error::Invalid { .. }), "{error}");
}

#[test]
fn counts_without_bytes_for_the_items_are_refused_before_room_is_made() {
    // 100,000 segments: these 13 bytes once took 10 MB.
    let bytes = b"\0asm\x01\0\0\0\x0c\x03\xa0\x8d\x06";
    let error = slotvm_bytecode::wasm::import(bytes).unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid WebAssembly at offset 0xa: 100000 items of a section do not fit in 3 bytes",
    );
    // 1,000,000 exports, for which the validator would reserve 100 MB.
    let bytes = b"\0asm\x01\0\0\0\x07\x03\xc0\x84\x3d";
    let error = slotvm_bytecode::wasm::import(bytes).unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid WebAssembly at offset 0xa: 1000000 items of a section do not fit in 3 bytes",
    );
    // 1,000,000 tags, which are validated only to find out the proposal.
    let bytes = b"\0asm\x01\0\0\0\x0d\x03\xc0\x84\x3d";
    let error = slotvm_bytecode::wasm::import(bytes).unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid WebAssembly at offset 0xa: 1000000 items of a section do not fit in 3 bytes",
    );
    // 1,000,000 types of a recursive group, for which the validator would reserve 90 MB.
    let bytes = b"\0asm\x01\0\0\0\x01\x05\x01\x4e\xc0\x84\x3d";
    let error = slotvm_bytecode::wasm::import(bytes).unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid WebAssembly at offset 0xf: 1000000 items of a recursive group do not fit in 0 bytes",
    );
    // The largest count for these bytes.
    let whole = b"\0asm\x01\0\0\0\x0c\x01\x02\x0b\x05\x02\x01\0\x01\0";
    assert_eq!(slotvm_bytecode::wasm::import(whole).unwrap().datas.len(), 2);
}
