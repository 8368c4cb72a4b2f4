//! Random modules of all forms that the binary form can represent, valid or not.

use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use slotvm_bytecode::module::{
    BranchHint, ConstExpr, Data, Elem, ElemItems, EntityKind, Export, FrameStack, Func, Global,
    GlobalType, Import, ImportCall, ImportKind, Label, MemoryType, Module, Names, SegmentMode,
    Shape, ShapeId, SourcePlace, TableType,
};
use slotvm_bytecode::{FuncType, ValType, limits};

/// Numbers of all encoded lengths.
fn number() -> impl Strategy<Value = u32> {
    (any::<u32>(), 0..32u32).prop_map(|(number, shift)| number >> shift)
}

fn up_to(max: u32) -> impl Strategy<Value = u32> {
    number().prop_map(move |number| number % (max + 1))
}

fn val_type() -> impl Strategy<Value = ValType> {
    prop::sample::select(&ValType::ALL[..])
}

fn func_type() -> impl Strategy<Value = FuncType> {
    (vec(val_type(), 0..5), vec(val_type(), 0..3))
        .prop_map(|(params, results)| FuncType { params, results })
}

fn table_type() -> impl Strategy<Value = TableType> {
    (val_type(), number(), prop::option::of(number())).prop_map(|(elem, min, max)| TableType {
        elem,
        min,
        max,
    })
}

fn memory_type() -> impl Strategy<Value = MemoryType> {
    let pages = || up_to(limits::MEMORY_PAGES_MAX);
    (pages(), prop::option::of(pages())).prop_map(|(min, max)| MemoryType { min, max })
}

fn global_type() -> impl Strategy<Value = GlobalType> {
    (val_type(), any::<bool>()).prop_map(|(ty, mutable)| GlobalType { ty, mutable })
}

fn import() -> impl Strategy<Value = Import> {
    let kind = prop_oneof![
        (number(), 0..3usize).prop_map(|(ty, call)| {
            let calls = [ImportCall::Ordinary, ImportCall::Leaf, ImportCall::Cold];
            ImportKind::Func(ty, calls[call])
        }),
        table_type().prop_map(ImportKind::Table),
        memory_type().prop_map(ImportKind::Memory),
        global_type().prop_map(ImportKind::Global),
    ];
    (any::<String>(), any::<String>(), kind).prop_map(|(module, name, kind)| Import {
        module,
        name,
        kind,
    })
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..200)
}

fn const_expr() -> impl Strategy<Value = ConstExpr> {
    vec(any::<u8>(), 0..12).prop_map(|code| ConstExpr { code })
}

fn global() -> impl Strategy<Value = Global> {
    (global_type(), const_expr()).prop_map(|(ty, init)| Global { ty, init })
}

fn export() -> impl Strategy<Value = Export> {
    let kinds = [EntityKind::Func, EntityKind::Table, EntityKind::Memory, EntityKind::Global];
    (any::<String>(), prop::sample::select(kinds.to_vec()), number())
        .prop_map(|(name, kind, index)| Export { name, kind, index })
}

fn active() -> impl Strategy<Value = SegmentMode> {
    (number(), const_expr()).prop_map(|(target, offset)| SegmentMode::Active { target, offset })
}

fn elem() -> impl Strategy<Value = Elem> {
    let mode = prop_oneof![Just(SegmentMode::Passive), active(), Just(SegmentMode::Declared)];
    let items = prop_oneof![
        vec(number(), 0..4).prop_map(ElemItems::Funcs),
        vec(const_expr(), 0..4).prop_map(ElemItems::Exprs),
    ];
    (mode, val_type(), items).prop_map(|(mode, ty, items)| Elem { mode, ty, items })
}

fn data() -> impl Strategy<Value = Data> {
    let mode = prop_oneof![Just(SegmentMode::Passive), active()];
    (mode, bytes()).prop_map(|(mode, bytes)| Data { mode, bytes })
}

fn shape() -> impl Strategy<Value = Shape> {
    (number(), val_type()).prop_map(|(parent, ty)| Shape { parent: ShapeId(parent), ty })
}

/// Runs of locals, in which neighbours have different types.
fn locals() -> impl Strategy<Value = Vec<(u32, ValType)>> {
    vec((1..=9_000u32, val_type()), 0..5).prop_map(|mut runs| {
        runs.dedup_by_key(|&mut (_, ty)| ty);
        runs
    })
}

fn labels() -> impl Strategy<Value = Vec<Label>> {
    btree_map(number(), number(), 0..5).prop_map(|labels| {
        let label = |(offset, shape)| Label { offset, shape: ShapeId(shape) };
        labels.into_iter().map(label).collect()
    })
}

/// Source places, in which neighbours differ. The first may have line 0, which means "no place".
fn lines() -> impl Strategy<Value = Vec<(u32, SourcePlace)>> {
    let column_and_file = prop_oneof![Just((0, 0)), (number(), number())];
    let place = (number(), column_and_file).prop_map(|(line, (column, file))| SourcePlace {
        file,
        line,
        column,
    });
    btree_map(number(), place, 0..5).prop_map(|lines| {
        let mut lines: Vec<(u32, SourcePlace)> = lines.into_iter().collect();
        lines.dedup_by_key(|&mut (_, place)| place);
        lines
    })
}

fn hints() -> impl Strategy<Value = Vec<(u32, BranchHint)>> {
    let hint = prop::sample::select(BranchHint::ALL.to_vec());
    btree_map(number(), hint, 0..5).prop_map(|hints| hints.into_iter().collect())
}

fn func() -> impl Strategy<Value = Func> {
    (number(), locals(), labels(), bytes(), lines(), hints()).prop_map(
        |(ty, locals, labels, code, lines, hints)| Func {
            ty,
            locals,
            labels,
            code,
            lines,
            hints,
            source_bytes: 0,
        },
    )
}

fn name_list(min: usize) -> impl Strategy<Value = Vec<(u32, String)>> {
    btree_map(number(), any::<String>(), min..4).prop_map(|names| names.into_iter().collect())
}

fn names_by_func() -> impl Strategy<Value = Vec<(u32, Vec<(u32, String)>)>> {
    (btree_set(number(), 0..3), vec(name_list(1), 3))
        .prop_map(|(funcs, names)| funcs.into_iter().zip(names).collect())
}

fn names() -> impl Strategy<Value = Names> {
    let lists =
        (name_list(0), name_list(0), name_list(0), name_list(0), name_list(0), name_list(0));
    let inner = (names_by_func(), names_by_func(), name_list(0), name_list(0));
    (prop::option::of(any::<String>()), lists, inner).prop_map(
        |(
            module,
            (funcs, tables, memories, globals, elems, datas),
            (locals, labels, traps, files),
        )| Names {
            module,
            funcs,
            tables,
            memories,
            globals,
            elems,
            datas,
            locals,
            labels,
            traps,
            files,
        },
    )
}

pub(crate) fn module() -> impl Strategy<Value = Module> {
    let outside = (vec(func_type(), 0..4), vec(import(), 0..4), vec(export(), 0..4));
    let inside = (vec(table_type(), 0..3), vec(memory_type(), 0..=1), vec(global(), 0..3));
    let segments = (vec(elem(), 0..3), vec(data(), 0..3));
    let frame_stack = (number(), number()).prop_map(|(base, bytes)| FrameStack { base, bytes });
    let rest = (
        prop::option::of(number()),
        vec(shape(), 0..4),
        prop::option::of(frame_stack),
        prop_oneof![Just(Names::default()), names()],
    );
    (outside, vec(func(), 0..4), inside, segments, rest).prop_map(
        |(outside, funcs, inside, segments, rest)| {
            let (types, imports, exports) = outside;
            let (tables, memories, globals) = inside;
            let (elems, datas) = segments;
            let (start, shapes, frame_stack, names) = rest;
            Module {
                types,
                imports,
                funcs,
                tables,
                memories,
                globals,
                exports,
                start,
                elems,
                datas,
                shapes,
                frame_stack,
                names,
            }
        },
    )
}
