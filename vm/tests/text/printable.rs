//! Random modules with decodable code and small numbers, so that many of their references are valid and
//! some are not.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;
use slotvm_bytecode::inst::{write_br_table, write_inst, write_vector};
use slotvm_bytecode::module::{
    ConstExpr, ElemItems, ImportKind, Label, Module, Names, SegmentMode, ShapeId,
};
use slotvm_bytecode::{CodeReader, Imm, ImmKind, Op, ValType};

use crate::arbitrary;

/// Names that are words of the text form, need quotes, or are hard to tell from the following text.
const NAMES: &[&str] = &[
    "a",
    "b",
    "loop",
    "a-",
    "$",
    "$x",
    ".L1",
    "x.y!?",
    "drop",
    "i32.load",
    "call_indirect",
    "func",
    "start",
    "i64",
    "funcref",
    "mut",
    "at",
    "declared",
    "local",
    "label",
    ".line",
    "nan",
    "inf",
    "type",
    "",
    "3",
    "-",
    "->",
    "a b",
    "é",
    "\"",
    "\\",
    "\n",
    "\u{200b}",
    "a:",
    "nan:0x1",
];

/// An instruction, and the numbers from which its immediates are made.
type Draft = (Op, u64, u32);

fn draft() -> impl Strategy<Value = Draft> {
    let bits = (any::<u64>(), 0..64u32).prop_map(|(bits, shift)| bits >> shift);
    (prop::sample::select(Op::ALL), bits, any::<u32>())
}

fn write(out: &mut Vec<u8>, (op, bits, more): Draft) {
    use ImmKind::*;
    // Sometimes use an index that does not exist.
    let index = |number: u32| if number % 16 == 15 { number } else { number % 6 };
    let (low, high) = (index(bits as u32), index(more));
    // Lanes need the high bits.
    let memory = if more % 8 == 7 { more >> 6 } else { 0 };
    let imm = match op.imm_kind() {
        None => Imm::NONE,
        I32 | F32 | Number => Imm::index(bits as u32),
        I64 | F64 => Imm(bits),
        Local | Global | Func | Label | Table | Elem | Memory | Data => Imm::index(low),
        TypeTable | TableTable | ElemTable | MemoryMemory | DataMemory => Imm::pair(low, high),
        LabelCount => Imm::pair(low, more),
        RefType if more % 2 == 0 => Imm::ref_type(ValType::FuncRef),
        RefType => Imm::ref_type(ValType::ExternRef),
        Mem => Imm::pair(bits as u32, memory),
        Indexed => Imm(Imm::pair(bits as u32, memory).0 | u64::from(more & 3) << 62),
        Lane => Imm::lane(more % op.n_lanes().expect("the opcode has a lane")),
        MemLane => {
            let lane = more % op.n_lanes().expect("the opcode has a lane");
            Imm(Imm::mem_lane(bits as u32, lane).0 | u64::from(memory) << 32)
        }
        V128 => return write_vector(out, op, u128::from(bits) << (more % 65)),
        Lanes => {
            let lanes: [u8; 16] = std::array::from_fn(|i| (more >> i) as u8 % 32);
            return write_vector(out, op, u128::from_le_bytes(lanes));
        }
        Labels => {
            let labels: Vec<u32> = (0..more % 40).map(|i| index(more >> (i % 16))).collect();
            return write_br_table(out, &labels, low);
        }
    };
    write_inst(out, op, imm);
}

fn code() -> impl Strategy<Value = Vec<u8>> {
    vec(draft(), 0..30).prop_map(|drafts| {
        let mut code = Vec::new();
        drafts.into_iter().for_each(|draft| write(&mut code, draft));
        code
    })
}

/// Returns the offsets of the instructions, and the end of the last one.
fn places(code: &[u8]) -> Vec<u32> {
    let mut reader = CodeReader::new(code, 0);
    let mut places = vec![0];
    while !reader.is_at_end() {
        reader.read().expect("the code decodes");
        places.push(reader.offset());
    }
    places
}

/// Moves offsets to instructions, except one in eight.
fn move_to_places(offsets: impl Iterator<Item = u32>, places: &[u32]) -> BTreeSet<u32> {
    let place = |offset: u32| match offset % 8 {
        7 => offset,
        _ => places[offset as usize % places.len()],
    };
    offsets.map(place).collect()
}

fn tame_names(names: &mut Vec<(u32, String)>) {
    let tame = |(index, name): (u32, String)| {
        let known = NAMES[(index as usize / 8) % NAMES.len()];
        (index % 8, if name.len() % 4 == 0 { name } else { known.to_string() })
    };
    let tamed: BTreeMap<u32, String> = names.drain(..).map(tame).collect();
    names.extend(tamed);
}

fn tame_names_by_func(names: &mut Vec<(u32, Vec<(u32, String)>)>) {
    let tamed: BTreeMap<u32, _> = names.drain(..).map(|(func, names)| (func % 6, names)).collect();
    names.extend(tamed);
    names.iter_mut().for_each(|(_, names)| tame_names(names));
}

fn tame_all_names(names: &mut Names) {
    for list in [
        &mut names.funcs,
        &mut names.tables,
        &mut names.memories,
        &mut names.globals,
        &mut names.elems,
        &mut names.datas,
    ] {
        tame_names(list);
    }
    tame_names_by_func(&mut names.locals);
    tame_names_by_func(&mut names.labels);
}

/// Replaces all code, and makes most numbers small.
fn tame(module: &mut Module, codes: &[Vec<u8>]) {
    let mut codes = codes.iter().cycle();
    tame_indices(module);
    let n_types = module.types.len() as u32;
    let n_shapes = module.shapes.len() as u32;
    for func in &mut module.funcs {
        func.ty %= n_types + 1;
        func.code.clone_from(codes.next().expect("`codes` is not empty"));
        let places = places(&func.code);
        let offsets = move_to_places(func.labels.iter().map(|label| label.offset), &places);
        let shapes = func.labels.iter().map(|label| ShapeId(label.shape.0 % (n_shapes + 2)));
        let labels = offsets.into_iter().zip(shapes);
        func.labels = labels.map(|(offset, shape)| Label { offset, shape }).collect();
        let offsets = move_to_places(func.lines.iter().map(|&(offset, _)| offset), &places);
        func.lines = offsets.into_iter().zip(func.lines.iter().map(|&(_, line)| line)).collect();
        let offsets = move_to_places(func.hints.iter().map(|&(offset, _)| offset), &places);
        func.hints = offsets.into_iter().zip(func.hints.iter().map(|&(_, hint)| hint)).collect();
    }
    for expr in exprs(module) {
        let code = codes.next().expect("`codes` is not empty");
        let places = places(code);
        expr.code = code[..places[places.len().min(5) - 1] as usize].to_vec();
    }
    tame_all_names(&mut module.names);
}

fn tame_indices(module: &mut Module) {
    let n_types = module.types.len() as u32;
    let n_shapes = module.shapes.len() as u32;
    for import in &mut module.imports {
        if let ImportKind::Func(ty, _) = &mut import.kind {
            *ty %= n_types + 1;
        }
    }
    for elem in &mut module.elems {
        if let ElemItems::Funcs(funcs) = &mut elem.items {
            funcs.iter_mut().for_each(|func| *func %= 6);
        }
    }
    let modes = module.elems.iter_mut().map(|elem| &mut elem.mode);
    for mode in modes.chain(module.datas.iter_mut().map(|data| &mut data.mode)) {
        if let SegmentMode::Active { target, .. } = mode {
            *target %= 3;
        }
    }
    module.exports.iter_mut().for_each(|export| export.index %= 6);
    module.start = module.start.map(|start| start % 6);
    module.shapes.iter_mut().for_each(|shape| shape.parent.0 %= n_shapes + 2);
}

/// Returns the module's constant expressions.
fn exprs(module: &mut Module) -> Vec<&mut ConstExpr> {
    let mut exprs: Vec<_> = module.globals.iter_mut().map(|global| &mut global.init).collect();
    for elem in &mut module.elems {
        if let ElemItems::Exprs(items) = &mut elem.items {
            exprs.extend(items);
        }
        if let SegmentMode::Active { offset, .. } = &mut elem.mode {
            exprs.push(offset);
        }
    }
    for data in &mut module.datas {
        if let SegmentMode::Active { offset, .. } = &mut data.mode {
            exprs.push(offset);
        }
    }
    exprs
}

pub(crate) fn module() -> impl Strategy<Value = Module> {
    (arbitrary::module(), vec(code(), 1..6)).prop_map(|(mut module, codes)| {
        tame(&mut module, &codes);
        module
    })
}
