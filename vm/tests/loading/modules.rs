//! WebAssembly modules that expand from few bytes, or name the same item many times.

use wasm_encoder::{
    CodeSection, CustomSection, ElementSection, Elements, EntityType, ExportKind, ExportSection,
    Function, FunctionSection, ImportSection, Module, TypeSection, ValType,
};

/// Makes an input of about the given size in bytes.
type Make = fn(usize) -> Vec<u8>;

pub(crate) const CASES: &[(&str, Make)] = &[
    ("types", types),
    ("types that a group announces", |n| group(n, &vec![0; n])),
    ("empty structures of one group", |n| group(n / 2, &[0x5f, 0].repeat(n / 2))),
    ("groups of an empty structure", |n| type_section(n / 4, &[0x4e, 1, 0x5f, 0].repeat(n / 4))),
    ("groups that differ in length", groups),
    ("structures that differ", structures),
    ("imports of a wide type", imports),
    ("functions of a wide type", functions),
    ("locals of many functions", locals),
    ("calls of a wide function", |n| calls(n, 1, &[])),
    ("calls of a wide function that nothing reaches", unreachable_calls),
    ("calls of wide functions on each other", |n| calls(n, 100, &[Dropped::AtOnce])),
    ("labels on wide stacks", |n| calls(n, 100, &[Dropped::BehindLabel])),
    ("exports", exports),
    ("element segments", segments),
    ("subsections of function names", subsections),
    ("function names", |n| names(1, n)),
    ("local names of one function", |n| names(2, n)),
];

fn wide() -> TypeSection {
    let mut types = TypeSection::new();
    types.ty().function([], []);
    types.ty().function([ValType::I32; 1_000], []);
    types
}

fn types(n: usize) -> Vec<u8> {
    let mut types = TypeSection::new();
    for i in 0..n / 6 {
        let ty = |bit: usize| {
            [ValType::I32, ValType::I64, ValType::F32][i / 3_usize.pow(bit as u32) % 3]
        };
        types.ty().function([], (0..(i % 4)).map(ty));
    }
    let mut module = Module::new();
    module.section(&types);
    module.finish()
}

/// Returns a module with a type section of these entries.
fn type_section(n: usize, entries: &[u8]) -> Vec<u8> {
    let contents = [&leb(n)[..], entries].concat();
    [&b"\0asm\x01\0\0\0\x01"[..], &leb(contents.len()), &contents].concat()
}

/// Returns a recursive group of `n` types.
fn group(n: usize, types: &[u8]) -> Vec<u8> {
    type_section(1, &[&[0x4e][..], &leb(n), types].concat())
}

/// Returns groups of empty structures, each with one more than the previous group.
fn groups(n: usize) -> Vec<u8> {
    let n_groups = n.isqrt();
    let group = |n: usize| [&[0x4e][..], &leb(n), &[0x5f, 0].repeat(n)].concat();
    type_section(n_groups, &(0..n_groups).flat_map(group).collect::<Vec<u8>>())
}

/// Returns structures of six fields, each of one of four types.
fn structures(n: usize) -> Vec<u8> {
    let n = n / 14;
    let field = |i: usize, place: u32| [0x7f - (i / 4_usize.pow(place) % 4) as u8, 0];
    let structure =
        |i: usize| [&[0x5f, 6][..], &[0, 1, 2, 3, 4, 5].map(|p| field(i, p)).concat()].concat();
    type_section(n, &(0..n).flat_map(structure).collect::<Vec<u8>>())
}

fn imports(n: usize) -> Vec<u8> {
    let mut imports = ImportSection::new();
    for _ in 0..n / 4 {
        imports.import("", "", EntityType::Function(1));
    }
    let mut module = Module::new();
    module.section(&wide()).section(&imports);
    module.finish()
}

/// Returns a function whose calls, which nothing reaches, leave 1,000 results each.
fn unreachable_calls(n: usize) -> Vec<u8> {
    let mut functions = FunctionSection::new();
    functions.function(0).function(1);
    let mut body = Function::new([]);
    let mut insts = body.instructions();
    insts.unreachable();
    for _ in 0..n / 2 {
        insts.call(1);
    }
    insts.unreachable().end();
    let mut wide = Function::new([]);
    wide.instructions().unreachable().end();
    let mut code = CodeSection::new();
    code.function(&body).function(&wide);
    let mut module = Module::new();
    module.section(&self::wide()).section(&functions).section(&code);
    module.finish()
}

/// The way in which operands are dropped.
#[derive(Copy, Clone, PartialEq)]
enum Dropped {
    AtOnce,
    BehindLabel,
}

/// Returns a function that calls functions with 1,000 results. The function types differ in the pattern of
/// seven types that their results repeat, and each takes at least 1,000 bytes. Operands are dropped for two
/// calls at a time, so that each pair of calls makes different stacks.
fn calls(n: usize, n_types: u32, dropped: &[Dropped]) -> Vec<u8> {
    let (mut types, mut functions) = (TypeSection::new(), FunctionSection::new());
    types.ty().function([], []);
    functions.function(0);
    for i in 0..n_types {
        let ty = |bit: u32| [ValType::I32, ValType::I64][(i >> bit & 1) as usize];
        types.ty().function([], (0..1_000).map(|place| ty(place % 7)));
        functions.function(1 + i);
    }
    let mut body = Function::new([]);
    let mut insts = body.instructions();
    for i in 0..(n / [2, 9][dropped.len()]) as u32 {
        match dropped {
            [] => drop(insts.call(1)),
            [dropped] => {
                insts.block(wasm_encoder::BlockType::Empty);
                insts.call(1 + i % n_types).call(1 + i / n_types % n_types);
                if *dropped == Dropped::BehindLabel {
                    insts.loop_(wasm_encoder::BlockType::Empty);
                    insts.i32_const(0).br_if(0).end();
                }
                insts.br(0).end();
            }
            _ => unreachable!("operands are dropped once"),
        }
    }
    insts.unreachable().end();
    let mut code = CodeSection::new();
    code.function(&body);
    for _ in 0..n_types {
        let mut body = Function::new([]);
        body.instructions().unreachable().end();
        code.function(&body);
    }
    let mut module = Module::new();
    module.section(&types).section(&functions).section(&code);
    module.finish()
}

/// Returns a module with `n` functions of a type, all with the same body.
fn with_functions(n: usize, ty: u32, body: &Function) -> Module {
    let (mut functions, mut code) = (FunctionSection::new(), CodeSection::new());
    for _ in 0..n {
        functions.function(ty);
        code.function(body);
    }
    let mut module = Module::new();
    module.section(&wide()).section(&functions).section(&code);
    module
}

fn empty(locals: Option<(u32, ValType)>) -> Function {
    let mut body = Function::new(locals);
    body.instructions().end();
    body
}

fn functions(n: usize) -> Vec<u8> {
    with_functions(n / 4, 1, &empty(None)).finish()
}

/// Each function takes a few bytes, but 50,000 bytes in an importer that trusts its locals.
fn locals(n: usize) -> Vec<u8> {
    with_functions(n / 8, 0, &empty(Some((50_000, ValType::I64)))).finish()
}

fn exports(n: usize) -> Vec<u8> {
    let (mut functions, mut exports, mut code) =
        (FunctionSection::new(), ExportSection::new(), CodeSection::new());
    functions.function(0);
    code.function(&empty(None));
    for i in 0..n / 8 {
        exports.export(&format!("{i:05}"), ExportKind::Func, 0);
    }
    let mut module = Module::new();
    module.section(&wide()).section(&functions).section(&exports).section(&code);
    module.finish()
}

fn segments(n: usize) -> Vec<u8> {
    let mut elements = ElementSection::new();
    for _ in 0..(n / 3).min(100_000) {
        elements.passive(Elements::Functions((&[][..]).into()));
    }
    let mut module = Module::new();
    module.section(&elements);
    module.finish()
}

pub(crate) fn leb(mut n: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while n >= 0x80 {
        bytes.push(n as u8 | 0x80);
        n >>= 7;
    }
    bytes.push(n as u8);
    bytes
}

fn with_name_section(mut module: Vec<u8>, contents: &[u8]) -> Vec<u8> {
    use wasm_encoder::Section;
    CustomSection { name: "name".into(), data: contents.into() }.append_to(&mut module);
    module
}

fn subsection(id: u8, contents: &[u8]) -> Vec<u8> {
    [&[id][..], &leb(contents.len()), contents].concat()
}

/// Returns a few names, followed by subsections that name nothing.
fn subsections(n: usize) -> Vec<u8> {
    let n_named = n / 16;
    let mut map = leb(n_named);
    for i in 0..n_named {
        map.extend(leb(i));
        map.extend([1, b'f']);
    }
    let mut contents = subsection(1, &map);
    contents.extend(subsection(1, &[0]).repeat(n / 2 / 3));
    with_name_section(with_functions(n_named, 0, &empty(None)).finish(), &contents)
}

/// Returns one name for one function, or for one local of a function, repeated.
fn names(id: u8, n: usize) -> Vec<u8> {
    let n_names = n / 3;
    let mut map = if id == 2 { vec![1, 0] } else { Vec::new() };
    map.extend(leb(n_names));
    map.extend([0, 1, b'f'].repeat(n_names));
    with_name_section(
        with_functions(1, 0, &empty(Some((1, ValType::I32)))).finish(),
        &subsection(id, &map),
    )
}

/// The limit is checked before any local is built.
#[test]
fn too_many_locals_are_refused_by_the_import() {
    let limit = slotvm_bytecode::wasm::Error::Limit("MODULE_LOCALS_MAX");
    assert_eq!(slotvm_bytecode::wasm::import(&locals(200_000)), Err(limit));
    assert!(slotvm_bytecode::wasm::import(&locals(320)).is_ok());
}
