//! Tests of the builders: their modules pass the verifier, and each mistake has its own error.

use super::*;
use crate::inst::{CodeReader, Imm, Inst, labels};
use crate::module::{BranchHint, Shape, ShapeId, SourcePlace};
use crate::op::{ImmKind, Op};
use crate::types::ValType::{ExternRef, F64, FuncRef, I32, I64};
use crate::verify;

mod redefine;

/// Returns the function's instructions with their code offsets.
fn insts(func: &Func) -> Vec<(u32, Inst)> {
    let mut reader = CodeReader::new(&func.code, 0);
    std::iter::from_fn(|| {
        let offset = reader.offset();
        (!reader.is_at_end()).then(|| (offset, reader.read().expect("the builder writes code")))
    })
    .collect()
}

/// Appends an instruction.
type Emit = for<'a, 'm> fn(&'a mut FunctionBuilder<'m>) -> &'a mut FunctionBuilder<'m>;

/// Builds a module of one function `() -> results`.
fn build(
    results: &[ValType],
    emit: impl FnOnce(&mut FunctionBuilder<'_>),
) -> Result<Module, BuildError> {
    let mut module = ModuleBuilder::new();
    let func = module.declare_func("f", &[], results);
    let mut f = module.define(func);
    emit(&mut f);
    let finished = f.finish();
    let module = module.finish();
    assert_eq!(finished.err(), module.as_ref().err().cloned(), "both report the first mistake");
    module
}

fn accept(results: &[ValType], emit: impl FnOnce(&mut FunctionBuilder<'_>)) -> Module {
    let module = build(results, emit).expect("no mistake");
    verify(module).expect("what the builder accepts verifies").module().clone()
}

#[track_caller]
fn refuse(results: &[ValType], emit: impl FnOnce(&mut FunctionBuilder<'_>)) -> BuildRule {
    build(results, emit).expect_err("a mistake").rule
}

#[test]
fn forward_and_backward_branches_get_label_numbers_in_code_order() {
    let module = accept(&[I32], |f| {
        let (end, head, unused) = (f.named_label("end"), f.named_label("head"), f.label());
        let i = f.named_local("i", I32);
        f.bind(head);
        f.local_get(i).i32_const(10).op(Op::I32GeS).br_if(end);
        f.local_get(i).i32_const(1).op(Op::I32Add).local_set(i).br(head);
        f.bind(end).bind(unused).local_get(i).ret();
    });
    let func = &module.funcs[0];
    assert_eq!(func.locals, [(1, I32)]);
    assert_eq!(func.labels.len(), 2, "two labels at one place are one");
    let insts = insts(func);
    let branches: Vec<u32> = insts
        .iter()
        .filter(|(_, inst)| inst.op.imm_kind() == ImmKind::Label)
        .map(|(_, inst)| inst.imm.low())
        .collect();
    assert_eq!(branches, [1, 0]);
    assert_eq!(func.labels[1].offset, insts[9].0);
    assert_eq!(module.names.label(0, 0), Some("head"));
    assert_eq!(module.names.label(0, 1), Some("end"));
    assert_eq!(module.names.local(0, 0), Some("i"));
}

#[test]
fn labels_past_127_move_the_code_behind_them() {
    const N: usize = 300;
    let module = accept(&[], |f| {
        let targets: Vec<LabelId> = (0..N).map(|_| f.label()).collect();
        f.i32_const(7).br_table(&targets[1..], targets[0]);
        for (i, &target) in targets.iter().enumerate() {
            f.bind(target).line(i as u32).br(targets[N - 1 - i]);
        }
    });
    let func = &module.funcs[0];
    let insts = insts(func);
    let starts: Vec<u32> = insts[2..].iter().map(|&(offset, _)| offset).collect();
    let bound: Vec<u32> = func.labels.iter().map(|label| label.offset).collect();
    assert_eq!(bound, starts);
    let goals: Vec<u32> = insts[2..].iter().map(|(_, inst)| inst.imm.low()).collect();
    assert_eq!(goals, (0..N as u32).rev().collect::<Vec<_>>());
    let table: Vec<u32> = labels(&func.code, insts[1].1.imm).collect();
    assert_eq!(table, (1..N as u32).chain([0]).collect::<Vec<_>>());
    // Line 0 means "no line", which is also the initial state.
    assert_eq!(func.lines.len(), N - 1);
    assert!(func.lines.iter().zip(&starts[1..]).all(|(&(offset, _), &start)| offset == start));
}

#[test]
fn shapes_are_shared_and_numbered_in_the_order_of_first_use() {
    let mut module = ModuleBuilder::new();
    let first = module.declare_func("first", &[], &[]);
    let second = module.declare_func("second", &[], &[]);
    // Defined in reverse order: the table follows the order of the functions.
    for (func, stack) in [(second, &[I64, I32][..]), (first, &[I64][..])] {
        let mut f = module.define(func);
        let label = f.label();
        f.i64_const(1);
        if stack.len() > 1 {
            f.i32_const(2);
        }
        f.br(label).bind(label).unreachable();
        f.finish().expect("no mistake");
    }
    let module = module.finish().expect("no mistake");
    let shape = |parent, ty| Shape { parent: ShapeId(parent), ty };
    assert_eq!(module.shapes, [shape(0, I64), shape(1, I32)]);
    let shapes: Vec<Vec<ShapeId>> =
        module.funcs.iter().map(|f| f.labels.iter().map(|l| l.shape).collect()).collect();
    assert_eq!(shapes, [[ShapeId(1)], [ShapeId(2)]]);
    verify(module).expect("verifies");
}

#[test]
fn an_irreducible_loop_builds() {
    let module = accept(&[], |f| {
        let (a, b) = (f.label(), f.label());
        f.i32_const(1).br_if(b);
        f.bind(a).i32_const(0).br_if(b);
        f.op(Op::Nop);
        f.bind(b).br(a);
    });
    assert_eq!(module.funcs[0].labels.len(), 2);
}

#[test]
fn a_label_with_a_known_stack_can_be_bound_where_nothing_reaches() {
    let known = |f: &mut FunctionBuilder<'_>| {
        let (body, head) = (f.label(), f.label());
        f.br(body);
        f.bind_with_stack(head, &[I64, F64]).op(Op::Drop).op(Op::Drop).br(body);
        f.bind(body).i64_const(1).f64_const(2.0).br(head);
    };
    let module = accept(&[], known);
    assert_eq!(module.shapes.len(), 2);
    accept(&[I64], |f| {
        let label = f.label_with_stack(&[I64]);
        f.unreachable().bind(label);
        assert_eq!((f.depth(), f.operands().collect::<Vec<_>>()), (1, vec![I64]));
        f.ret();
    });
}

#[test]
fn the_operand_stack_can_be_asked_for() {
    accept(&[], |f| {
        let label = f.label();
        assert!(f.operands_at(label).is_none());
        f.i64_const(1).ref_null(ExternRef).i32_const(0).br_if(label);
        assert_eq!(f.operands().collect::<Vec<_>>(), [ExternRef, I64]);
        let at: Vec<ValType> = f.operands_at(label).expect("a branch goes there").collect();
        assert_eq!(at, [ExternRef, I64]);
        assert!(!f.is_bound(label) && f.is_reachable());
        f.unreachable();
        assert!(!f.is_reachable() && f.depth() == 0);
        f.bind(label);
        assert!(f.is_bound(label));
        f.unreachable();
    });
}

/// A module with every kind of entity and instruction passes the verifier.
#[test]
fn everything_builds() {
    let mut m = ModuleBuilder::new();
    m.name("all");
    let host = m.import_func("env", "host", &[I64], &[I32, F64]);
    let leaf = m.import_func_called("env", "leaf", &[I64], &[F64], ImportCall::Leaf);
    let _ = m.import_table("env", "their_table", ExternRef, 0, Some(9));
    let base = m.import_global("env", "base", I32, false);
    m.memory("memory", 1, Some(2));
    m.frame_stack(1024, 4096);
    let table = m.table("table", FuncRef, 4, None);
    let counter = m.global("counter", I64, true, ConstExpr::i64(5));
    let data = m.passive_data("d", "hello");
    m.data(
        "",
        ConstExpr::global_get(base.0).inst(Op::I32Const, Imm::i32(1)).inst(Op::I32Add, Imm::NONE),
        [1, 2],
    );
    let main = m.declare_func("main", &[I64], &[I64]);
    let elem = m.passive_elem("e", &[main, host]);
    m.elem("", table, ConstExpr::i32(1), &[main]);
    m.declared_elem("", &[host]);
    m.segment(
        "",
        SegmentMode::Passive,
        FuncRef,
        ElemItems::Exprs(vec![ConstExpr::ref_null(FuncRef), ConstExpr::ref_func(main.0)]),
    );
    let mut f = m.define(main);
    let n = f.param(0);
    let ty = f.module().func_type(&[I64], &[I64]);
    let x = f.named_local("x", F64);
    f.line(1).local_get(n).call(host).local_set(x).op(Op::Drop);
    f.line(2).i32_const(0).i32_const(0).i32_const(5).memory_init(data).data_drop(data);
    f.i32_const(0).i32_const(0).i32_const(1).table_init(elem, table).elem_drop(elem);
    f.i32_const(0).i32_const(1).i32_const(1).table_copy(table, table);
    f.i32_const(0).ref_func(main).table(Op::TableSet, table);
    f.i32_const(0).table(Op::TableGet, table).i32_const(1).table(Op::TableGrow, table);
    f.table(Op::TableSize, table).op(Op::I32Add).op(Op::Drop);
    f.i32_const(0).ref_null(FuncRef).i32_const(1).table(Op::TableFill, table);
    f.i32_const(8).i32_const(1).i32_const(1).memory(Op::MemoryFill);
    f.i32_const(8).i32_const(0).i32_const(1).memory(Op::MemoryCopy);
    f.memory(Op::MemorySize).memory(Op::MemoryGrow).op(Op::Drop);
    f.local_addr(x).load(Op::F64Load, 0).f32_const(1.5).op(Op::F64PromoteF32).op(Op::F64Add);
    f.op(Op::Drop).i32_const(16).local_get(n).store(Op::I64Store, 8);
    f.i32_const(16).i32_const(1).load_indexed(Op::I32Load8UIndexed, 2, 0).op(Op::Drop);
    f.line(3).global_get(counter).local_tee(n).global_set(counter);
    f.ref_null(ExternRef).op(Op::RefIsNull).op(Op::Drop);
    f.local_get(n).local_get(n).local_get(n).op(Op::Rot).op(Op::Swap).op(Op::Over).op(Op::Dup);
    f.i32_const(1).op(Op::Select).op(Op::I64Add).op(Op::I64Add).op(Op::I64Add);
    f.i32_const(0).call_indirect(ty, table).i32_const(0).return_call_indirect(ty, table);
    f.finish().expect("no mistake");
    m.export_func("main", main);
    m.export_memory("memory", MemoryId(0));
    m.export_table("table", table);
    m.export_global("counter", counter);
    let init = m.declare_func("init", &[], &[]);
    let mut f = m.define(init);
    f.i32_const(16).i32_const(1).i64_const(-1).store_indexed(Op::I64StoreIndexed, 8, 0);
    f.i64_const(0).call(main).op(Op::Drop).return_call(init);
    f.finish().expect("no mistake");
    m.start(init);
    let module = m.finish().expect("no mistake");
    assert_eq!(
        module.funcs[0].lines.iter().map(|&(_, place)| place.line).collect::<Vec<_>>(),
        [1, 2, 3]
    );
    let verified = verify(module).expect("verifies");
    assert_eq!(verified.func_name(0), "host");
    assert_eq!(verified.import_call(leaf.0), ImportCall::Leaf);
}

#[test]
fn equal_names_get_numbers() {
    let mut m = ModuleBuilder::new();
    for name in ["a", "a", "a.2", "a", ""] {
        let func = m.declare_func(name, &[I32, I32], &[]);
        let mut f = m.define(func);
        f.name_local(f.param(1), "x");
        f.name_local(f.param(0), "y");
        f.named_local("x", I64);
        f.ret();
        f.finish().expect("no mistake");
    }
    let module = m.finish().expect("no mistake");
    let names: Vec<&str> = module.names.funcs.iter().map(|(_, name)| &**name).collect();
    assert_eq!(names, ["a", "a.2", "a.2.2", "a.3"]);
    let locals: Vec<&str> = module.names.locals[4].1.iter().map(|(_, name)| &**name).collect();
    assert_eq!(locals, ["y", "x", "x.2"]);
    verify(module).expect("verifies");
}

#[test]
fn locals_of_one_type_are_one_run() {
    let module = accept(&[], |f| {
        for ty in [I32, I32, I64, I32] {
            f.local(ty);
        }
        f.ret();
    });
    assert_eq!(module.funcs[0].locals, [(2, I32), (1, I64), (1, I32)]);
}

#[test]
fn places_have_files_and_columns_and_traps_messages() {
    let mut m = ModuleBuilder::new();
    let files = ["a.c", "b.c", "a.c", ""].map(|name| m.source_file(name));
    assert_eq!(files, [1, 2, 1, 0]);
    m.trap_message(7, "first");
    m.trap_message(3, "no such key");
    m.trap_message(7, "second");
    m.trap_message(9, "");
    let func = m.declare_func("f", &[], &[]);
    let mut f = m.define(func);
    let place = SourcePlace { file: files[1], line: 4, column: 5 };
    f.source_place(place).op(Op::Nop).source_place(SourcePlace { line: 0, ..place }).trap(3);
    f.finish().unwrap();
    let module = verify(m.finish().unwrap()).unwrap();
    let names = &module.module().names;
    assert_eq!(names.traps, [(3, "no such key".to_owned()), (7, "second".to_owned())]);
    assert_eq!(names.files, [(1, "a.c".to_owned()), (2, "b.c".to_owned())]);
    assert_eq!(module.module().funcs[0].lines, [(0, place), (1, SourcePlace::NONE)]);
    assert_eq!(module.module().funcs[0].trap_number_at(1), Some(3));
    // A builder of a module that is there goes on with its numbers.
    let mut m = ModuleBuilder::of(&module);
    assert_eq!(["b.c", "c.c"].map(|name| m.source_file(name)), [2, 3]);
}

#[test]
fn lines_behind_the_code_and_repeated_ones_vanish() {
    let module = accept(&[], |f| {
        f.line(1).line(2).op(Op::Nop).line(2).op(Op::Nop).line(3).line(2).op(Op::Nop);
        f.line(0).ret().line(9);
    });
    assert_eq!(module.funcs[0].lines, [(0, SourcePlace::line(2)), (3, SourcePlace::NONE)]);
}

#[test]
fn hints_stand_at_their_branches() {
    let module = accept(&[], |f| {
        let (n, top, out) = (f.local(I32), f.label(), f.label());
        f.bind(top).local_get(n).br_if_hinted(out, Some(BranchHint::Unlikely));
        f.local_get(n).br_if(out).local_get(n).br_if_hinted(top, Some(BranchHint::Likely));
        f.local_get(n).br_if_hinted(top, None).bind(out).ret();
    });
    let hints = [(2, BranchHint::Unlikely), (10, BranchHint::Likely)];
    assert_eq!(module.funcs[0].hints, hints);
}

#[test]
fn operand_mistakes() {
    let operand = |rule| match rule {
        BuildRule::Operand { expected, stack } => (expected, stack),
        other => panic!("{other}"),
    };
    let rule = refuse(&[], |f| {
        f.i32_const(1).i64_const(2).op(Op::I32Add).ret();
    });
    assert_eq!(operand(rule), ("i32".into(), "[i32 i64]".into()));
    let rule = refuse(&[], |f| {
        f.op(Op::Drop);
    });
    assert_eq!(operand(rule), ("an operand".into(), "[]".into()));
    let rule = refuse(&[], |f| {
        f.i32_const(0).op(Op::RefIsNull);
    });
    assert_eq!(operand(rule), ("a reference".into(), "[i32]".into()));
    let rule = refuse(&[], |f| {
        f.i64_const(0).i32_const(0).i32_const(1).op(Op::Select);
    });
    assert_eq!(operand(rule), ("i32".into(), "[i64]".into()));
    let rule = refuse(&[], |f| {
        for _ in 0..10 {
            f.f64_const(0.0);
        }
        f.op(Op::I64Eqz);
    });
    let shown = format!("[2 more{}]", " f64".repeat(8));
    assert_eq!(operand(rule), ("i64".into(), shown));
}

#[test]
fn label_mistakes() {
    let label_stack = |label, expected: &str, stack: &str| BuildRule::LabelStack {
        label,
        expected: expected.into(),
        stack: stack.into(),
    };
    let rule = refuse(&[], |f| {
        let label = f.label();
        f.i32_const(0).br_if(label).i64_const(0).bind(label);
    });
    assert_eq!(rule, label_stack(0, "[]", "[i64]"));
    let rule = refuse(&[], |f| {
        let (a, b) = (f.label(), f.label_with_stack(&[I32]));
        f.i32_const(0).i32_const(0).i32_const(0).br_table(&[b], a);
    });
    assert_eq!(rule, label_stack(1, "[i32]", "[i32 i32]"));
    let rule = refuse(&[], |f| {
        let label = f.label();
        f.bind(label).op(Op::Nop).bind_with_stack(label, &[I64]);
    });
    assert_eq!(rule, label_stack(0, "[]", "[i64]"));
    let rule = refuse(&[], |f| {
        let label = f.label();
        f.ret().bind(label);
    });
    assert_eq!(rule, BuildRule::UnknownStack(0));
    let rule = refuse(&[], |f| {
        let label = f.label();
        f.bind(label).op(Op::Nop).bind(label);
    });
    assert_eq!(rule, BuildRule::Rebound(0));
    let rule = refuse(&[], |f| {
        let label = f.label();
        f.br(label);
    });
    assert_eq!(rule, BuildRule::Unbound(0));
    let rule = refuse(&[], |f| {
        f.br(LabelId(3));
    });
    assert_eq!(rule, BuildRule::NoSuch { what: "label", index: 3 });
}

#[test]
fn control_mistakes() {
    assert_eq!(
        refuse(&[], |f| {
            f.ret().op(Op::Nop);
        }),
        BuildRule::Unreachable
    );
    assert_eq!(
        refuse(&[], |f| {
            f.ret().ret();
        }),
        BuildRule::Unreachable
    );
    assert_eq!(
        refuse(&[], |f| {
            f.unreachable().br(LabelId(0));
        }),
        BuildRule::Unreachable
    );
    assert_eq!(refuse(&[], |_| ()), BuildRule::FallsOff);
    assert_eq!(
        refuse(&[], |f| {
            f.op(Op::Nop);
        }),
        BuildRule::FallsOff
    );
    let rule = refuse(&[I32], |f| {
        f.i64_const(1).ret();
    });
    assert_eq!(rule, BuildRule::Operand { expected: "i32".into(), stack: "[i64]".into() });
    // The operands below the results are dropped.
    accept(&[I32], |f| {
        f.i64_const(1).i32_const(1).ret();
    });
    let rule = refuse(&[I32], |f| {
        let callee = f.module().declare_func("callee", &[], &[I64]);
        f.return_call(callee);
    });
    assert_eq!(rule, BuildRule::TailResults { expected: "i32".into(), found: "i64".into() });
}

#[test]
fn a_branch_keeps_the_topmost_operands_and_the_lowest_ones() {
    let module = accept(&[I64, I32], |f| {
        let end = f.label_with_stack(&[I64, I32]);
        f.i64_const(1).i32_const(2).i32_const(0).br_if(end).i32_const(3).i64_const(4).i32_const(5);
        f.br_keep(end, 1).bind(end).ret();
    });
    let insts = insts(&module.funcs[0]);
    assert_eq!(insts[7].1, Inst { op: Op::BrKeep, imm: Imm::pair(0, 1) });
    let kept = |n, stack: &str| BuildRule::Kept {
        n,
        label: 0,
        expected: "[i64 i32]".into(),
        stack: stack.into(),
    };
    let cases: [(Emit, u32, &str); 6] = [
        // More than the label has, or the function; an operand kept twice; other types.
        (|f| f.i64_const(1).i64_const(1).i32_const(1), 3, "[i64 i64 i32]"),
        (|f| f, 1, "[]"),
        (|f| f.i32_const(1), 1, "[i32]"),
        (|f| f.i64_const(1).i32_const(1).i64_const(1), 1, "[i64 i32 i64]"),
        (|f| f.i32_const(1).i64_const(1).i32_const(1), 1, "[i32 i64 i32]"),
        (|f| f.i32_const(1).i32_const(1), 2, "[i32 i32]"),
    ];
    for (push, n, stack) in cases {
        let rule = refuse(&[I64, I32], |f| {
            let end = f.label_with_stack(&[I64, I32]);
            push(f);
            f.br_keep(end, n).bind(end).ret();
        });
        assert_eq!(rule, kept(n, stack));
    }
    let rule = refuse(&[], |f| {
        let end = f.label();
        f.br_keep(end, 0).bind(end).ret();
    });
    assert_eq!(rule, BuildRule::UnknownStack(0));
    let rule = refuse(&[], |f| {
        let end = f.label_with_stack(&[]);
        f.br_keep(end, limits::KEPT_OPERANDS_MAX as u32 + 1);
    });
    assert_eq!(rule, BuildRule::Limit("KEPT_OPERANDS_MAX"));
}

#[test]
fn indices_that_name_nothing() {
    let no_such = |what, index| BuildRule::NoSuch { what, index };
    let refuse = |emit: Emit| {
        refuse(&[], |f| {
            f.i32_const(0).i32_const(0).i32_const(0);
            emit(f);
        })
    };
    assert_eq!(refuse(|f| f.call(FuncId(1))), no_such("function", 1));
    assert_eq!(refuse(|f| f.ref_func(FuncId(9))), no_such("function", 9));
    assert_eq!(refuse(|f| f.local_get(LocalId(2))), no_such("local", 2));
    assert_eq!(refuse(|f| f.global_get(GlobalId(0))), no_such("global", 0));
    assert_eq!(refuse(|f| f.table(Op::TableSize, TableId(0))), no_such("table", 0));
    assert_eq!(refuse(|f| f.table_init(ElemId(0), TableId(0))), no_such("table", 0));
    assert_eq!(refuse(|f| f.elem_drop(ElemId(4))), no_such("element segment", 4));
    assert_eq!(refuse(|f| f.memory_init(DataId(4))), no_such("data segment", 4));
    assert_eq!(refuse(|f| f.data_drop(DataId(4))), no_such("data segment", 4));
    assert_eq!(
        refuse(|f| {
            let table = f.module().table("", FuncRef, 1, None);
            f.call_indirect(TypeId(7), table)
        }),
        no_such("type", 7)
    );
}

#[test]
fn instructions_by_the_wrong_method() {
    let wrong: [Emit; 9] = [
        |f| f.op(Op::I32Const),
        |f| f.inst(Op::Br, Imm::index(0)),
        |f| f.inst(Op::BrKeep, Imm::pair(0, 0)),
        |f| f.inst(Op::BrTable, Imm::index(0)),
        |f| f.load(Op::I32Store, 0),
        |f| f.store(Op::I32StoreIndexed, 0),
        |f| f.load_indexed(Op::I32Load, 1, 0),
        |f| f.memory(Op::Nop),
        |f| f.inst(Op::RefNull, Imm::index(0x7f)),
    ];
    for emit in wrong {
        assert_eq!(
            refuse(&[], |f| {
                emit(f);
            }),
            BuildRule::Immediates
        );
    }
    let rule = refuse(&[], |f| {
        f.load_indexed(Op::I32LoadIndexed, 3, 0);
    });
    assert_eq!(rule, BuildRule::Scale(3));
}

#[test]
fn other_mistakes() {
    let rule = refuse(&[], |f| {
        let global = f.module().global("", I32, false, ConstExpr::i32(0));
        f.i32_const(1).global_set(global);
    });
    assert_eq!(rule, BuildRule::Immutable(0));
    let rule = refuse(&[], |f| {
        let a = f.module().table("", FuncRef, 0, None);
        let b = f.module().table("", ExternRef, 0, None);
        f.i32_const(0).i32_const(0).i32_const(0).table_copy(a, b);
    });
    assert_eq!(rule, BuildRule::ElementTypes(FuncRef, ExternRef));
    let rule = refuse(&[], |f| {
        for _ in 0..=limits::LOCALS_MAX {
            f.local(I32);
        }
        f.ret();
    });
    assert_eq!(rule, BuildRule::Limit("LOCALS_MAX"));

    let mut m = ModuleBuilder::new();
    m.declare_func("late", &[], &[]);
    assert_eq!(m.finish().expect_err("a mistake").rule, BuildRule::Undefined);

    let mut m = ModuleBuilder::new();
    let f = m.import_func("env", "f", &[], &[]);
    m.define(f).ret();
    assert_eq!(m.define(f).finish().expect_err("a mistake").rule, BuildRule::NotDefinable);
    assert_eq!(m.define(FuncId(8)).finish().expect_err("a mistake").rule, BuildRule::NotDefinable);

    let mut m = ModuleBuilder::new();
    m.memory("", 0, None);
    m.import_memory("env", "memory", 0, None);
    assert_eq!(m.finish().expect_err("a mistake").rule, BuildRule::ImportAfterDefinition("memory"));

    // A late import must not disturb a function being built.
    let mut m = ModuleBuilder::new();
    let func = m.declare_func("", &[], &[]);
    let mut f = m.define(func);
    f.module().import_func("env", "f", &[], &[]);
    f.ret();
    f.finish().expect("the mistake is not in the function");
    assert_eq!(
        m.finish().expect_err("a mistake").rule,
        BuildRule::ImportAfterDefinition("function")
    );
}

#[test]
fn errors_name_function_instruction_and_line() {
    let error = build(&[], |f| {
        f.line(12).i32_const(0).op(Op::I64Eqz);
    })
    .expect_err("a mistake");
    assert_eq!(
        error.to_string(),
        "function `f`: instruction 1, `i64.eqz`: expected i64 on top of the operand stack, found [i32] \
         (source line 12)"
    );
}

#[test]
fn deep_stacks_with_many_labels_build_in_linear_time() {
    const N: u32 = 100_000;
    let module = accept(&[], |f| {
        for _ in 0..N {
            let label = f.label();
            f.i32_const(1).i32_const(1).br_if(label).bind(label);
        }
        f.unreachable();
    });
    assert_eq!((module.shapes.len(), module.funcs[0].labels.len()), (N as usize, N as usize));
}
