//! Violations of each rule of the verifier. Each module breaks a single rule, and verifies without that
//! defect.

use slotvm_bytecode::inst::{write_br_table, write_inst};
use slotvm_bytecode::limits;
use slotvm_bytecode::module::*;
use slotvm_bytecode::verified::{EscapeReason, Storage};
use slotvm_bytecode::verify::{Place, Rule, verify};
use slotvm_bytecode::{FuncType, Imm, Op, ValType};

/// Code under construction.
#[derive(Clone, Default)]
struct Code(Vec<u8>);

impl Code {
    fn op(self, op: Op) -> Code {
        self.imm(op, Imm::NONE)
    }

    fn imm(mut self, op: Op, imm: Imm) -> Code {
        write_inst(&mut self.0, op, imm);
        self
    }

    fn i32(self, value: i32) -> Code {
        self.imm(Op::I32Const, Imm::i32(value))
    }

    fn index(self, op: Op, index: u32) -> Code {
        self.imm(op, Imm::index(index))
    }
}

fn code() -> Code {
    Code::default()
}

/// Returns a module with one item of each kind. Function 0 takes an i32 and returns one.
fn base() -> Module {
    Module {
        types: vec![
            FuncType::new([ValType::I32], [ValType::I32]),
            FuncType::new([], []),
            FuncType::new([], [ValType::I64]),
        ],
        funcs: vec![
            func(code().index(Op::LocalGet, 0).op(Op::Return)),
            Func { ty: 1, code: code().op(Op::Return).0, ..Func::default() },
        ],
        tables: vec![
            TableType { elem: ValType::FuncRef, min: 4, max: Some(8) },
            TableType { elem: ValType::ExternRef, min: 0, max: None },
        ],
        memories: vec![MemoryType { min: 1, max: Some(2) }],
        globals: vec![
            global(ValType::I32, false, code().i32(1)),
            global(ValType::I32, true, code().index(Op::GlobalGet, 0).i32(2).op(Op::I32Add)),
        ],
        exports: vec![Export { name: "f".into(), kind: EntityKind::Func, index: 0 }],
        start: Some(1),
        elems: vec![Elem {
            mode: SegmentMode::Active { target: 0, offset: expr(code().i32(0)) },
            ty: ValType::FuncRef,
            items: ElemItems::Funcs(vec![0, 1]),
        }],
        datas: vec![Data { mode: SegmentMode::Passive, bytes: vec![1, 2, 3] }],
        shapes: vec![
            Shape { parent: ShapeId(0), ty: ValType::I32 },
            Shape { parent: ShapeId(1), ty: ValType::I64 },
        ],
        frame_stack: Some(FrameStack { base: 8, bytes: 1024 }),
        names: Names { funcs: vec![(0, "f".into())], ..Names::default() },
        ..Module::default()
    }
}

fn expr(code: Code) -> ConstExpr {
    ConstExpr { code: code.0 }
}

fn global(ty: ValType, mutable: bool, init: Code) -> Global {
    Global { ty: GlobalType { ty, mutable }, init: expr(init) }
}

fn func(code: Code) -> Func {
    Func { locals: vec![(1, ValType::I64)], code: code.0, ..Func::default() }
}

fn with(change: impl FnOnce(&mut Module)) -> Module {
    let mut module = base();
    change(&mut module);
    module
}

/// Returns the base module with other code in function 0.
fn with_code(code: Code) -> Module {
    with(|m| m.funcs[0] = func(code))
}

/// Returns the base module with a leaf import of a type.
fn with_leaf(ty: FuncType) -> Module {
    with(|m| {
        m.types.push(ty);
        let kind = ImportKind::Func(m.types.len() as u32 - 1, ImportCall::Leaf);
        m.imports.push(Import { module: "env".into(), name: "leaf".into(), kind });
    })
}

fn with_labels(code: Code, labels: &[(u32, u32)]) -> Module {
    let labels = labels.iter().map(|&(offset, shape)| Label { offset, shape: ShapeId(shape) });
    with(|m| m.funcs[0] = Func { labels: labels.collect(), ..func(code) })
}

/// Returns a module with code that ends with a branch that keeps `n` operands, to a label of this shape.
/// Another label has shape 2, `i32 i64`; shape 4 is `i64 i64`.
fn keeping(code: Code, n: u32, shape: u32) -> Module {
    let code = code.imm(Op::BrKeep, Imm::pair(0, n));
    let end = code.0.len() as u32;
    let code = code.op(Op::Unreachable).op(Op::Unreachable);
    let mut module = with_labels(code, &[(end, shape), (end + 1, 2)]);
    let i64_on = |parent| Shape { parent: ShapeId(parent), ty: ValType::I64 };
    module.shapes.extend([i64_on(0), i64_on(3)]);
    module
}

/// Returns code with `i32 i64` on the stack, which a branch to a label has compared with its shape.
fn on_shape() -> Code {
    code().i32(0).index(Op::LocalGet, 1).i32(0).index(Op::BrIf, 1)
}

fn broken() -> Vec<(Rule, Module)> {
    use Op::*;
    vec![
        (Rule::Limit, with(|m| m.funcs[0].locals = vec![(u32::MAX, ValType::I64)])),
        (Rule::Limit, with(|m| m.memories.push(MemoryType { min: 0, max: None }))),
        (Rule::Limit, with(|m| m.types[1].params = vec![ValType::I32; limits::PARAMS_MAX + 1])),
        (Rule::TypeIndex, with(|m| m.funcs[1].ty = 3)),
        (
            Rule::TypeIndex,
            with_code(code().i32(0).i32(0).imm(CallIndirect, Imm::pair(3, 0)).op(Return)),
        ),
        (Rule::FuncIndex, with_code(code().i32(0).index(Call, 2).op(Return))),
        (Rule::FuncIndex, with(|m| m.exports[0].index = 2)),
        (Rule::TableIndex, with_code(code().index(TableSize, 2).op(Return))),
        (Rule::MemoryIndex, with_code(code().i32(0).imm(I32Load, Imm::pair(0, 1)).op(Return))),
        (Rule::GlobalIndex, with_code(code().index(GlobalGet, 2).op(Return))),
        (Rule::ElemIndex, with_code(code().index(ElemDrop, 1).i32(0).op(Return))),
        (Rule::DataIndex, with_code(code().index(DataDrop, 1).i32(0).op(Return))),
        (Rule::LocalIndex, with_code(code().index(LocalGet, 2).op(Return))),
        (Rule::LabelIndex, with_code(code().index(Br, 0))),
        (Rule::LabelIndex, with_code(code().imm(BrKeep, Imm::pair(0, 0)))),
        (Rule::Limit, keeping(code(), limits::KEPT_OPERANDS_MAX as u32 + 1, 0)),
        (Rule::LeafType, with_leaf(FuncType::new([ValType::I32], [ValType::I32; 2]))),
        (Rule::LeafType, with_leaf(FuncType::new([ValType::ExternRef], []))),
        (Rule::LeafType, with_leaf(FuncType::new([], [ValType::V128]))),
        (Rule::TableType, with(|m| m.tables[0].max = Some(3))),
        (Rule::TableType, with(|m| m.tables[1].elem = ValType::I32)),
        (Rule::MemoryType, with(|m| m.memories[0] = MemoryType { min: 2, max: Some(1) })),
        (Rule::ConstExpr, with(|m| m.globals[0].init = expr(code().i32(1).i32(2)))),
        (Rule::ConstExpr, with(|m| m.globals[0].init = expr(code().index(GlobalGet, 1)))),
        (Rule::ConstExpr, with(|m| m.globals[0].init = expr(code().i32(1).op(I32Eqz)))),
        (Rule::ConstExpr, with(|m| m.globals[0].init = expr(code().imm(I64Const, Imm::i64(1))))),
        (Rule::ExportName, with(|m| m.exports.push(m.exports[0].clone()))),
        (Rule::StartType, with(|m| m.start = Some(0))),
        (Rule::SegmentMode, with(|m| m.datas[0].mode = SegmentMode::Declared)),
        (Rule::ElemType, with(|m| m.elems[0].ty = ValType::ExternRef)),
        (Rule::FrameStack, with(|m| m.frame_stack = Some(FrameStack { base: 4, bytes: 8 }))),
        (Rule::FrameStack, with(|m| m.frame_stack = Some(FrameStack { base: 65536, bytes: 8 }))),
        (
            Rule::FrameStack,
            with(|m| {
                m.memories.clear();
            }),
        ),
        (Rule::ShapeOrder, with(|m| m.shapes[1].parent = ShapeId(2))),
        (Rule::ShapeUnique, with(|m| m.shapes[1] = m.shapes[0])),
        (Rule::Names, with(|m| m.names.funcs.push((0, "g".into())))),
        (Rule::Names, with(|m| m.names.funcs.push((1, "f".into())))),
        (Rule::Names, with(|m| m.names.locals = vec![(0, vec![(2, "x".into())])])),
        (Rule::Lines, with(|m| m.funcs[0].lines = vec![(0, line(1)), (2, line(1))])),
        (
            Rule::Lines,
            with(|m| m.funcs[0].lines = vec![(0, SourcePlace { column: 3, ..SourcePlace::NONE })]),
        ),
        // At no branch, inside one, behind the code, twice, and out of order.
        (Rule::Hints, with_hints(&[0])),
        (Rule::Hints, with_hints(&[3])),
        (Rule::Hints, with_hints(&[2, 5])),
        (Rule::Hints, with_hints(&[2, 6, 10])),
        (Rule::Hints, with_hints(&[2, 2])),
        (Rule::Hints, with_hints(&[6, 2])),
        (Rule::Names, with(|m| m.names.traps = vec![(7, "a".into()), (7, "b".into())])),
        (Rule::Names, with(|m| m.names.traps = vec![(7, String::new())])),
        (Rule::Names, with(|m| m.names.files = vec![(1, "a".into()), (2, "a".into())])),
        (Rule::Inst, with_code(Code(vec![0xff]))),
        // An unknown lane, an unknown opcode, and a truncated vector.
        (Rule::Inst, with_code(Code(vec![0xfd, 0x1b, 4]))),
        (Rule::Inst, with_code(Code(vec![0xfd, 0x9a]))),
        (Rule::Inst, with_code(Code(vec![0xfd, 0x0c, 1, 2, 3]))),
        (Rule::Inst, with_code(Code(vec![Op::LocalGet.code() as u8, 0x80, 0x00]))),
        (Rule::LabelOrder, with_labels(code().i32(0).op(Return), &[(2, 1), (2, 1)])),
        (Rule::LabelOrder, with_labels(code().i32(0).op(Return), &[(3, 1)])),
        (Rule::LabelBoundary, with_labels(code().i32(0).op(Return), &[(1, 0)])),
        (Rule::LabelShape, with_labels(code().i32(0).op(Return), &[(2, 3)])),
        (Rule::UnreachableCode, with_code(code().op(Unreachable).op(Unreachable))),
        (Rule::CodeEnd, with_code(code().op(Nop))),
        (Rule::CodeEnd, with_code(code())),
        (Rule::StackUnderflow, with_code(code().op(I32Eqz).op(Return))),
        (Rule::OperandType, with_code(code().index(LocalGet, 1).op(I32Eqz).op(Return))),
        (Rule::OperandType, with_code(code().index(LocalGet, 0).op(RefIsNull).op(Return))),
        (Rule::ShapeMismatch, with_labels(code().i32(0).op(Return), &[(2, 0)])),
        (
            Rule::ShapeMismatch,
            with_labels(code().i32(0).index(LocalGet, 1).index(Br, 0), &[(0, 0)]),
        ),
        (Rule::ShapeMismatch, {
            let mut c = code().i32(7).i32(0).0;
            write_br_table(&mut c, &[0, 1], 0);
            let (a, b) = (c.len() as u32, c.len() as u32 + 1);
            with_labels(Code(c).op(Return).op(Unreachable), &[(a, 1), (b, 0)])
        }),
        // More kept operands than the label has; kept operands of another type, above the shape that an
        // earlier label gave, on both sides of it and below; missing kept operands, also at the bottom.
        // Different operands below the kept ones, above that shape and below it.
        (Rule::KeptOperands, keeping(code().i32(0).i32(0), 2, 1)),
        (Rule::KeptOperands, keeping(code().i32(0).index(LocalGet, 1).index(LocalGet, 1), 1, 1)),
        (Rule::KeptOperands, keeping(on_shape().i32(0), 2, 2)),
        (Rule::KeptOperands, keeping(on_shape(), 1, 1)),
        (Rule::KeptOperands, keeping(code(), 1, 1)),
        (Rule::KeptOperands, keeping(code().index(LocalGet, 1), 1, 2)),
        (Rule::KeptOperands, keeping(code().index(LocalGet, 1).index(LocalGet, 1), 1, 2)),
        (Rule::KeptOperands, keeping(on_shape().index(LocalGet, 1), 1, 4)),
        (Rule::OperandType, with_code(code().i32(0).index(LocalGet, 1).op(Return))),
        (Rule::ReturnStack, with_code(code().op(Return))),
        (Rule::TailCallType, with(|m| m.funcs[1].code = code().i32(0).index(ReturnCall, 0).0)),
        (Rule::GlobalMutable, with_code(code().i32(0).index(GlobalSet, 0).i32(0).op(Return))),
        (
            Rule::CallTable,
            with_code(code().i32(0).i32(0).imm(CallIndirect, Imm::pair(0, 1)).op(Return)),
        ),
        (
            Rule::LocalAddr,
            with(|m| {
                m.frame_stack = None;
                m.funcs[0] = func(code().index(LocalAddr, 0).op(Return));
            }),
        ),
    ]
}

fn line(line: u32) -> SourcePlace {
    SourcePlace::line(line)
}

#[test]
fn the_base_module_verifies() {
    verify(base()).expect("the base module verifies");
}

#[test]
fn branches_keep_operands_wherever_they_are() {
    let i64s = |code: Code, n: usize| (0..n).fold(code, |code, _| code.index(Op::LocalGet, 1));
    let cases = [
        (code(), 0, 0),
        (on_shape(), 0, 0),
        (on_shape(), 0, 1),
        // All operands of a shape are kept: in place, from above those that a branch compared, and from
        // both sides.
        (on_shape(), 2, 2),
        (on_shape().i32(5).index(Op::LocalGet, 1), 2, 2),
        (on_shape().op(Op::Drop).i32(5).index(Op::LocalGet, 1), 2, 2),
        (i64s(on_shape(), 1), 2, 4),
        (i64s(code().i32(0), 3), 1, 2),
        (i64s(on_shape(), 3), 1, 2),
        (i64s(on_shape(), 1000).i32(0).index(Op::LocalGet, 1), 1, 2),
    ];
    for (i, (code, n, shape)) in cases.into_iter().enumerate() {
        let module = verify(keeping(code, n, shape)).unwrap_or_else(|e| panic!("case {i}: {e}"));
        let body = module.body(0).expect("it is defined");
        let branch = body.blocks.len() - 3;
        assert_eq!(body.succs(branch), [branch as u32 + 1], "case {i}");
    }
    // The address of a local leaves its block, whether it is dropped or kept.
    for n in [0, 1] {
        let code = code().index(Op::LocalAddr, 0).i32(0).imm(Op::BrKeep, Imm::pair(0, n));
        let end = code.0.len() as u32;
        let module =
            verify(with_labels(code.op(Op::Unreachable), &[(end, n)])).expect("it verifies");
        let storage = module.body(0).expect("it is defined").locals[0].storage;
        assert!(matches!(storage, Storage::Escapes { reason: EscapeReason::LeavesBlock, .. }));
    }
}

#[test]
fn every_rule_is_broken_by_a_module_of_its_own() {
    for (i, (rule, module)) in broken().into_iter().enumerate() {
        match verify(module) {
            Ok(_) => panic!("case {i} for {rule} verifies"),
            Err(error) => {
                assert_eq!(error.rule(), rule, "case {i}: {error}");
                assert!(error.to_string().contains(rule.name()), "{error}");
            }
        }
    }
    for rule in Rule::ALL {
        assert!(broken().iter().any(|(broken, _)| broken == rule), "no case breaks {rule}");
    }
}

#[test]
fn errors_name_function_and_offset() {
    let error = verify(with_code(code().i32(5).op(Op::I64Eqz).op(Op::Return))).unwrap_err();
    let place = Place::Code { func: 0, name: Some("f".into()), offset: 2, line: None };
    assert_eq!(*error.place(), place);
    assert!(error.to_string().starts_with("function 0 `f` @0002: "), "{error}");
}

/// A function with branches at the offsets 2 and 6, and hints at some offsets.
fn with_hints(offsets: &[u32]) -> Module {
    let c = code().index(Op::LocalGet, 0).index(Op::BrIf, 0); // 0, 2
    let c = c.index(Op::LocalGet, 0).index(Op::BrIf, 0); // 4, 6
    let mut module = with_labels(c.index(Op::LocalGet, 0).op(Op::Return), &[(8, 0)]);
    module.funcs[0].hints = offsets.iter().map(|&offset| (offset, BranchHint::Likely)).collect();
    module
}

#[test]
fn hints_at_branches_verify_and_others_are_named() {
    verify(with_hints(&[2, 6])).expect("both are at branches");
    verify(with_hints(&[6])).expect("it is at a branch");
    let message = |offsets: &[u32]| verify(with_hints(offsets)).unwrap_err().to_string();
    assert!(
        message(&[2, 5]).starts_with("function 0 `f` @0005: the hint `likely` is not at a `br_if`"),
        "{}",
        message(&[2, 5])
    );
    let twice = message(&[2, 2]);
    let expected = "function 0 `f` @0002: the hint `likely` follows one at @0002 (rule hints: ";
    assert!(twice.starts_with(expected), "{twice}");
}

#[test]
fn errors_name_the_source_line_that_the_module_knows() {
    let mut module = with_code(code().i32(5).op(Op::I64Eqz).op(Op::Return));
    module.funcs[0].lines = vec![(0, line(10)), (2, line(11)), (3, line(12))];
    let error = verify(module).unwrap_err();
    assert!(error.to_string().starts_with("function 0 `f` @0002, line 11: "), "{error}");
}

#[test]
fn blocks_and_successors_follow_the_code() {
    // 0: local.get 0; 2: br_if 1 -> 7; 4: nop; 5: br 0 -> 0; 7: i32.const 1; 9: return. A loop and an exit.
    let c = code()
        .index(Op::LocalGet, 0) // 0
        .index(Op::BrIf, 1) // 2
        .op(Op::Nop) // 4
        .index(Op::Br, 0) // 5
        .i32(1) // 7
        .op(Op::Return); // 9
    let module = verify(with_labels(c, &[(0, 0), (7, 0)])).expect("verifies");
    let body = module.body(0).expect("defined");
    let ranges: Vec<_> = body.blocks.iter().map(|b| (b.start, b.end, b.cost, b.label)).collect();
    assert_eq!(ranges, [(0, 4, 2, Some(0)), (4, 7, 2, None), (7, 10, 2, Some(1))]);
    assert_eq!(body.succs(0), [2, 1]);
    assert_eq!(body.succs(1), [0]);
    assert_eq!(body.succs(2), [0; 0]);
}

#[test]
fn programs_poll_at_function_entry_and_where_branches_lead_back() {
    let c = code()
        .index(Op::LocalGet, 0) // 0
        .index(Op::BrIf, 1) // 2, into the middle of a loop
        .op(Op::Nop) // 4, the loop
        .index(Op::Br, 2) // 5
        .index(Op::LocalGet, 0) // 7
        .index(Op::BrIf, 0) // 9, back
        .index(Op::Br, 2) // 11
        .index(Op::LocalGet, 0) // 13, a loop of one block
        .index(Op::BrIf, 2) // 15, back
        .i32(1) // 17
        .op(Op::Return); // 19
    let module = verify(with_labels(c, &[(4, 0), (7, 0), (13, 0)])).expect("verifies");
    let blocks = &module.body(0).expect("defined").blocks;
    let polls: Vec<_> = blocks.iter().map(|block| (block.start, block.polls)).collect();
    let expected = [(0, true), (4, true), (7, false), (11, false), (13, true), (17, false)];
    assert_eq!(polls, expected);
}

mod promotable {
    use super::*;
    use slotvm_bytecode::verified::{DirectAccess, EscapeReason, Storage};

    fn storage(code: Code) -> (Storage, Vec<DirectAccess>) {
        let module = verify(with_code(code)).expect("verifies");
        let body = module.body(0).expect("defined");
        (body.locals[0].storage, body.direct.clone())
    }

    fn reason(code: Code) -> Option<EscapeReason> {
        match storage(code).0 {
            Storage::Promotable => None,
            Storage::Escapes { reason, frame_offset, .. } => {
                assert_eq!(frame_offset, 0);
                Some(reason)
            }
        }
    }

    fn addr() -> Code {
        code().index(Op::LocalAddr, 0)
    }

    #[test]
    fn plain_accesses_of_the_own_type_promote() {
        let c =
            addr().i32(5).op(Op::I32Store).index(Op::LocalAddr, 0).op(Op::I32Load).op(Op::Return);
        let (storage, direct) = storage(c);
        assert_eq!(storage, Storage::Promotable);
        let offsets: Vec<_> = direct.iter().map(|d| (d.offset, d.local)).collect();
        assert_eq!(offsets, [(4, 0), (9, 0)]);
    }

    #[test]
    fn shuffled_addresses_promote() {
        let c = addr().op(Op::Dup).op(Op::I32Load).i32(1).op(Op::Swap).op(Op::Drop);
        let c = c.op(Op::I32Store).i32(0).op(Op::Return);
        // The dropped operand is the loaded value; the address goes to the store.
        assert_eq!(reason(c), None);
    }

    #[test]
    fn every_other_use_escapes() {
        let load = |op, offset| addr().imm(op, Imm::mem(offset));
        let cases = [
            (addr().op(Op::Return), EscapeReason::Consumed),
            (addr().op(Op::Drop).i32(0).op(Op::Return), EscapeReason::Consumed),
            (addr().op(Op::I32Eqz).op(Op::Return), EscapeReason::Consumed),
            (addr().index(Op::LocalTee, 0).op(Op::Return), EscapeReason::Consumed),
            (
                load(Op::F32Load, 0).op(Op::I32ReinterpretF32).op(Op::Return),
                EscapeReason::OtherType,
            ),
            (load(Op::I32Load8U, 0).op(Op::Return), EscapeReason::OtherType),
            (load(Op::I32Load, 4).op(Op::Return), EscapeReason::Offset),
            (
                addr().i32(0).imm(Op::I32LoadIndexed, Imm::indexed(0, 2)).op(Op::Return),
                EscapeReason::Stored,
            ),
            (
                code().i32(0).index(Op::LocalAddr, 0).op(Op::I32Store).i32(0).op(Op::Return),
                EscapeReason::Stored,
            ),
        ];
        for (i, (c, expected)) in cases.into_iter().enumerate() {
            assert_eq!(reason(c), Some(expected), "case {i}");
        }
    }

    #[test]
    fn an_address_that_leaves_its_block_escapes() {
        let c = addr().op(Op::I32Load).op(Op::Return);
        let mut module = with_labels(c, &[(2, 1)]);
        module.shapes.truncate(1);
        let module = verify(module).expect("verifies");
        let storage = module.body(0).expect("defined").locals[0].storage;
        assert!(matches!(
            storage,
            Storage::Escapes { reason: EscapeReason::LeavesBlock, at: 2, .. }
        ));
        assert_eq!(module.body(0).expect("defined").frame_bytes, 8);
        assert!(module.body(0).expect("defined").direct.is_empty());
    }
}

#[test]
fn the_locals_of_all_functions_are_limited_together() {
    const N_FUNCS: usize = 1_000;
    const N_LOCALS: usize = limits::MODULE_LOCALS_MAX / N_FUNCS;
    const { assert!(N_LOCALS * N_FUNCS == limits::MODULE_LOCALS_MAX) };
    let many = Func {
        ty: 1,
        locals: vec![(N_LOCALS as u32, ValType::I64)],
        code: code().op(Op::Return).0,
        ..Func::default()
    };
    let mut module = Module {
        types: vec![FuncType::new([ValType::I32], []), FuncType::new([], [])],
        funcs: vec![many; N_FUNCS],
        ..Module::default()
    };
    assert!(verify(module.clone()).is_ok());
    // Parameters count, too.
    module.funcs.push(Func { ty: 0, code: code().op(Op::Return).0, ..Func::default() });
    let error = verify(module).map(drop).expect_err("there is one local too many");
    assert_eq!((error.rule(), error.place()), (Rule::Limit, &Place::Module));
    assert!(error.to_string().contains("MODULE_LOCALS_MAX"), "{error}");
}

#[test]
fn functions_are_named_by_name_export_import_or_number() {
    let import = |name: &str| Import {
        module: "env".into(),
        name: name.into(),
        kind: ImportKind::Func(0, ImportCall::Ordinary),
    };
    let export = |name: &str, kind, index| Export { name: name.into(), kind, index };
    let func = Func { ty: 0, code: code().op(Op::Return).0, ..Func::default() };
    let mut module = Module {
        types: vec![FuncType::new([], [])],
        imports: vec![import("a"), import("b")],
        memories: vec![MemoryType { min: 1, max: None }],
        funcs: vec![func.clone(); 3],
        exports: vec![
            export("memory", EntityKind::Memory, 0),
            export("second", EntityKind::Func, 3),
            export("again", EntityKind::Func, 3),
            export("named", EntityKind::Func, 2),
            export("b of env", EntityKind::Func, 1),
        ],
        ..Module::default()
    };
    module.names.funcs = vec![(2, "first".into())];
    let verified = verify(module.clone()).expect("verifies");
    let names: Vec<String> = (0..5).map(|func| verified.func_name(func)).collect();
    assert_eq!(names, ["env.a", "b of env", "first", "second", "f4"]);

    // Many functions: a search for each name would take minutes.
    const MANY: u32 = 200_000;
    module.funcs = vec![func; MANY as usize];
    module.exports = (0..MANY).map(|i| export(&format!("e{i}"), EntityKind::Func, i + 2)).collect();
    module.names.funcs.clear();
    let verified = verify(module).expect("verifies");
    assert!((0..MANY).all(|i| verified.func_name(i + 2) == format!("e{i}")));
}

#[test]
fn deep_stacks_are_linear() {
    // A label after every push: 100,000 labels of shapes 1 to 100,000 deep.
    const DEPTH: u32 = 100_000;
    let mut c = code();
    let mut labels = Vec::new();
    for i in 0..DEPTH {
        c = c.i32(0);
        labels.push((c.0.len() as u32, i + 1));
    }
    c = c.op(Op::Unreachable);
    let mut module = with_labels(c, &labels);
    module.shapes = (0..DEPTH).map(|i| Shape { parent: ShapeId(i), ty: ValType::I32 }).collect();
    let module = verify(module).expect("verifies");
    assert_eq!(module.body(0).expect("defined").stack_max, DEPTH);
}
