//! A small valid module that has every section and every kind of entry.

use slotvm_bytecode::builder::{MemoryId, ModuleBuilder};
use slotvm_bytecode::module::{ConstExpr, ElemItems, Module, SegmentMode};
use slotvm_bytecode::{Imm, Op, ValType};

pub(crate) fn module() -> Module {
    use ValType::{ExternRef, F32, F64, FuncRef, I32, I64};
    let mut m = ModuleBuilder::new();
    m.name("sample");
    let print = m.import_func("env", "print", &[I64], &[]);
    m.import_table("env", "objects", ExternRef, 1, Some(200));
    let limit = m.import_global("env", "limit", I32, false);
    m.memory("memory", 1, Some(300));
    m.frame_stack(1024, 256);
    let table = m.table("table", FuncRef, 4, None);
    let count = m.global("count", I64, true, ConstExpr::i64(-300));
    m.global("ratio", F32, false, ConstExpr::f32(0.5));
    m.global("scale", F64, false, ConstExpr::f64(-2.25));
    let doubled = ConstExpr::global_get(limit.0).inst(Op::I32Const, Imm::i32(2));
    m.data("greeting", doubled.inst(Op::I32Mul, Imm::NONE), "hello");
    let later = m.passive_data("later", [0, 255]);
    let main = m.declare_func("main", &[I64, I32], &[I64]);
    let init = m.declare_func("init", &[], &[]);
    m.elem("handlers", table, ConstExpr::i32(1), &[main, print]);
    m.passive_elem("", &[init]);
    m.declared_elem("", &[print]);
    let items = ElemItems::Exprs(vec![ConstExpr::ref_null(FuncRef), ConstExpr::ref_func(init.0)]);
    m.segment("mixed", SegmentMode::Passive, FuncRef, items);

    let mut f = m.define(main);
    let (n, flag) = (f.param(0), f.param(1));
    f.name_local(n, "n");
    let (sum, address) = (f.named_local("sum", I64), f.local(I32));
    f.local(I32);
    let (body, done, other) = (f.named_label("body"), f.named_label("done"), f.label());
    f.line(10).local_get(n).local_get(flag).br_if(body);
    f.line(300).bind(body).local_addr(sum).local_tee(address).op(Op::Drop);
    f.i32_const(70000).local_get(flag).br_table(&[done, other, done], other);
    f.bind(other).line(11).br(done);
    f.bind(done).op(Op::Drop).call(print).global_get(count).ret();
    f.finish().expect("no mistakes");

    let mut f = m.define(init);
    f.i32_const(0).i32_const(0).i32_const(2).memory_init(later).data_drop(later).ret();
    f.finish().expect("no mistakes");

    m.start(init);
    m.export_func("main", main);
    m.export_table("table", table);
    m.export_memory("memory", MemoryId(0));
    m.export_global("count", count);
    m.finish().expect("no mistakes")
}

/// Returns the offsets of the sections of a module of less than 16 KiB, and its end.
pub(crate) fn section_starts(bytes: &[u8]) -> Vec<usize> {
    let mut starts = vec![8];
    while let Some(&start) = starts.last().filter(|&&start| start < bytes.len()) {
        let (low, high) = (usize::from(bytes[start + 1]), usize::from(bytes[start + 2]));
        let contents =
            if low < 0x80 { start + 2 + low } else { start + 3 + (low & 0x7f) + (high << 7) };
        starts.push(contents);
    }
    starts
}
