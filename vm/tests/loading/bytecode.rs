//! Binary modules whose sections and functions expand from few bytes.

use slotvm_bytecode::inst::{write_br_table, write_inst};
use slotvm_bytecode::module::{
    ConstExpr, Data, Elem, ElemItems, EntityKind, Export, FrameStack, Func, Global, GlobalType,
    Import, ImportKind, Label, MemoryType, Module, Names, SegmentMode, Shape, ShapeId, SourcePlace,
};
use slotvm_bytecode::types::FuncType;
use slotvm_bytecode::{Imm, Op, ValType, encode};

/// Makes a module of about the given size in bytes.
type Make = fn(usize) -> Module;

pub(crate) const CASES: &[(&str, Make)] = &[
    ("types", |n| Module { types: vec![FuncType::default(); n / 2], ..Module::default() }),
    ("types of many parameters", |n| {
        let ty = FuncType::new([ValType::I32; 1_000], [ValType::I32; 1_000]);
        Module { types: vec![ty; n / 2_004], ..Module::default() }
    }),
    ("imports", imports),
    ("functions", |n| functions(n / 7, &Func { code: vec![Op::Return as u8], ..Func::default() })),
    ("functions without code", |n| functions(n / 4, &Func::default())),
    ("locals", |n| locals(n, 1)),
    ("locals of many functions", |n| functions(33, &locals(n, 60_000).funcs[0])),
    ("globals", |n| globals(n, ConstExpr::i32(0))),
    ("globals of empty expressions", |n| globals(n, ConstExpr::default())),
    ("exports", exports),
    ("element segments", |n| elements((n / 4).min(100_000), ElemItems::Funcs(Vec::new()))),
    ("functions of a segment", |n| elements(1, ElemItems::Funcs(vec![0; n]))),
    ("expressions of a segment", |n| {
        elements(1, ElemItems::Exprs(vec![ConstExpr::ref_null(ValType::FuncRef); n / 3]))
    }),
    ("empty expressions of a segment", |n| {
        elements(1, ElemItems::Exprs(vec![ConstExpr::default(); n]))
    }),
    ("data segments", |n| {
        let data = Data { mode: SegmentMode::Passive, bytes: Vec::new() };
        Module { datas: vec![data; (n / 2).min(100_000)], ..Module::default() }
    }),
    ("shapes", shapes),
    ("labels", labels),
    ("labels of shapes", labels_of_shapes),
    ("instructions", |n| code(n, &[(Op::Dup, 0), (Op::Drop, 0)])),
    ("blocks", |n| code(n, &[(Op::BrIf, 0), (Op::LocalGet, 0)])),
    ("addresses of locals", |n| code(n, &[(Op::LocalAddr, 0), (Op::I32Load, 0), (Op::Drop, 0)])),
    ("calls of a wide function", calls),
    ("targets of a table", targets),
    ("tables of targets", tables),
    ("branches that keep operands", branches),
    ("function names", |n| {
        let module = functions(n / 11, &Func { code: vec![Op::Return as u8], ..Func::default() });
        Module { names: Names { funcs: names(n / 11), ..Names::default() }, ..module }
    }),
    ("local names", |n| {
        let names = vec![(0, names((n / 6).min(60_000)))];
        Module { names: Names { locals: names, ..Names::default() }, ..locals(2, 60_000) }
    }),
    ("functions with local names", |n| {
        let module = functions(n / 12, &locals(2, 1).funcs[0]);
        let names = (0..n as u32 / 12).map(|i| (i, names(1))).collect();
        Module { names: Names { locals: names, ..Names::default() }, ..module }
    }),
    ("lines", lines),
];

/// Returns the binary form of a case.
pub(crate) fn bytes(make: Make, n: usize) -> Vec<u8> {
    encode(&make(n))
}

fn imports(n: usize) -> Module {
    let import = Import {
        module: String::new(),
        name: String::new(),
        kind: ImportKind::Global(GlobalType { ty: ValType::I32, mutable: false }),
    };
    Module { imports: vec![import; n / 5], ..Module::default() }
}

/// Returns a module with `n` copies of a function without parameters.
fn functions(n: usize, func: &Func) -> Module {
    let types = vec![FuncType::default()];
    Module { types, funcs: vec![func.clone(); n], ..Module::default() }
}

fn function(func: Func) -> Module {
    functions(1, &func)
}

/// Returns a function with runs of `of` locals each.
fn locals(n: usize, of: u32) -> Module {
    let n_runs = (n / 2).min(60_000 / of as usize);
    let run = |i: usize| (of, [ValType::I32, ValType::I64][i % 2]);
    let locals = (0..n_runs).map(run).collect();
    function(Func { locals, code: vec![Op::Return as u8], ..Func::default() })
}

fn globals(n: usize, init: ConstExpr) -> Module {
    let ty = GlobalType { ty: ValType::I32, mutable: false };
    let n = n / (3 + init.code.len());
    Module { globals: vec![Global { ty, init }; n], ..Module::default() }
}

fn exports(n: usize) -> Module {
    let name = |i: usize| format!("{i:05x}");
    let export = |i| Export { name: name(i), kind: EntityKind::Func, index: 0 };
    let module = function(Func { code: vec![Op::Return as u8], ..Func::default() });
    Module { exports: (0..n / 8).map(export).collect(), ..module }
}

fn elements(n: usize, items: ElemItems) -> Module {
    let elem = Elem { mode: SegmentMode::Passive, ty: ValType::FuncRef, items };
    let module = function(Func { code: vec![Op::Return as u8], ..Func::default() });
    Module { elems: vec![elem; n], ..module }
}

/// Returns a deep stack, in which each shape adds one operand to the previous one.
fn shapes(n: usize) -> Module {
    let shape = |i: usize| Shape { parent: ShapeId(i as u32), ty: ValType::V128 };
    Module { shapes: (0..n / 4).map(shape).collect(), ..Module::default() }
}

fn labels(n: usize) -> Module {
    let label = |i: usize| Label { offset: i as u32, shape: ShapeId::EMPTY };
    let mut code = vec![Op::Nop as u8; n / 3];
    code.push(Op::Return as u8);
    function(Func { labels: (0..n / 3).map(label).collect(), code, ..Func::default() })
}

/// Returns code in which each instruction pushes an operand and has a label with a shape of its own.
fn labels_of_shapes(n: usize) -> Module {
    let n = n / 12;
    let (mut code, mut labels) = (Vec::new(), Vec::new());
    for i in 0..n {
        labels.push(Label { offset: code.len() as u32, shape: ShapeId(i as u32) });
        write_inst(&mut code, Op::I32Const, Imm::i32(0));
    }
    code.push(Op::Return as u8);
    let shape = |i: usize| Shape { parent: ShapeId(i as u32), ty: ValType::I32 };
    let module = function(Func { labels, code, ..Func::default() });
    Module { shapes: (0..n).map(shape).collect(), ..module }
}

/// Returns code that repeats the same instructions, starting with an `i32` on the stack and with a label at
/// the end.
fn code(n: usize, insts: &[(Op, u32)]) -> Module {
    let mut code = Vec::new();
    write_inst(&mut code, Op::LocalGet, Imm::index(0));
    let start = code.len();
    for &(op, index) in insts {
        write_inst(&mut code, op, Imm::index(index));
    }
    let round = code.split_off(start);
    code.extend(round.repeat(n / round.len()));
    write_inst(&mut code, Op::Drop, Imm::NONE);
    let offset = code.len() as u32;
    write_inst(&mut code, Op::Return, Imm::NONE);
    let labels = vec![Label { offset, shape: ShapeId::EMPTY }];
    let uses_label = insts.iter().any(|&(op, _)| op == Op::BrIf);
    let module = function(Func {
        locals: vec![(1, ValType::I32)],
        labels: if uses_label { labels } else { Vec::new() },
        code,
        ..Func::default()
    });
    let frame_stack = Some(FrameStack { base: 0, bytes: 64 });
    Module { memories: vec![MemoryType { min: 1, max: None }], frame_stack, ..module }
}

/// Returns calls of 2 bytes that push 1,000 operands each, up to the deepest allowed stack, and then the
/// same again.
fn calls(n: usize) -> Module {
    let mut code = Vec::new();
    for _ in 0..1_000 {
        write_inst(&mut code, Op::Call, Imm::index(1));
    }
    code.push(Op::Return as u8);
    let caller = Func { code, ..Func::default() };
    let mut module = functions(n / 2_010, &caller);
    module.types.push(FuncType::new([], [ValType::I32; 1_000]));
    module.funcs[1] = Func { ty: 1, code: vec![Op::Unreachable as u8], ..Func::default() };
    module
}

/// Returns one table with many targets, all of them the same label.
fn targets(n: usize) -> Module {
    table_of(n, 1)
}

/// Returns many tables with few targets each.
fn tables(n: usize) -> Module {
    table_of(5, n / 10)
}

fn table_of(n_targets: usize, n_tables: usize) -> Module {
    let (mut code, mut labels) = (Vec::new(), Vec::new());
    for i in 0..n_tables {
        write_inst(&mut code, Op::LocalGet, Imm::index(0));
        let label = i as u32;
        write_br_table(&mut code, &vec![label; n_targets], label);
        labels.push(Label { offset: code.len() as u32, shape: ShapeId::EMPTY });
    }
    code.push(Op::Return as u8);
    function(Func { locals: vec![(1, ValType::I32)], labels, code, ..Func::default() })
}

/// Returns branches of four bytes, each of which keeps 1,000 operands above a dropped one.
fn branches(n: usize) -> Module {
    // All branches go to the last label.
    let last = n as u32 / 12;
    let (mut code, mut labels) = (Vec::new(), Vec::new());
    let deep = |code: &Vec<u8>| Label { offset: code.len() as u32, shape: ShapeId(1_001) };
    for _ in 0..1_001 {
        write_inst(&mut code, Op::I32Const, Imm::i32(0));
    }
    write_inst(&mut code, Op::LocalGet, Imm::index(0));
    for i in 0..last {
        write_inst(&mut code, Op::BrIf, Imm::index(i));
        write_inst(&mut code, Op::BrKeep, Imm::pair(last, 1_000));
        labels.push(deep(&code));
        write_inst(&mut code, Op::LocalGet, Imm::index(0));
    }
    write_inst(&mut code, Op::Unreachable, Imm::NONE);
    labels.push(Label { offset: code.len() as u32, shape: ShapeId(1_000) });
    write_inst(&mut code, Op::Return, Imm::NONE);
    let shape = |i: usize| Shape { parent: ShapeId(i as u32), ty: ValType::I32 };
    let locals = vec![(1, ValType::I32)];
    let module = function(Func { locals, labels, code, ..Func::default() });
    Module { shapes: (0..1_001).map(shape).collect(), ..module }
}

/// Returns names for the first `n` indices.
fn names(n: usize) -> Vec<(u32, String)> {
    (0..n as u32).map(|i| (i, format!("{i:x}"))).collect()
}

/// Returns a function with a source line for each instruction.
fn lines(n: usize) -> Module {
    let mut code = vec![Op::Nop as u8; n / 3];
    code.push(Op::Return as u8);
    let lines = (0..n as u32 / 3).map(|i| (i, SourcePlace::line(1 + i % 2))).collect();
    function(Func { code, lines, ..Func::default() })
}
