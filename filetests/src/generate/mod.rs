//! Generates random modules that verify, the input of the comparison of engines.
//!
//! A module has a few functions that call each other and functions of the host, a memory (mostly with
//! a frame stack), tables, globals of every type, and segments; some of it may be imported. A function
//! is a list of labelled blocks of random shapes which jump anywhere, so that most graphs are
//! irreducible (`control`), with random instructions inside (`insts`) and short sequences that front
//! ends emit (`idioms`).
//!
//! Programs should do much and then end, so backward jumps and recursive calls are mostly counted down by a
//! local or a global. How often instructions may trap, or loops may never end, is drawn once for each module:
//! never, seldom or often.
//!
//! [`generate`] makes short programs, which the slowest engines can run. [`generate_hot`] makes programs that repeat
//! themselves, as tiers and inlining need them: loops of thousands of rounds, small functions called in them, tail
//! calls of a function itself and of its neighbours.

mod control;
mod idioms;
mod insts;
mod refs;

use std::collections::HashMap;

use slotvm::{MemoryPlan, SlotMode};
use slotvm_bytecode::module::*;
use slotvm_bytecode::{Effect, FuncType, Imm, ImmKind, Op, ValType};

use crate::choices::Choices;

/// The number of imported functions: `env.mix`, `env.note` and one of any type, `env.any`.
pub const N_HOST_FUNCS: u32 = 3;
/// The function that is exported as `main`.
pub const MAIN: u32 = N_HOST_FUNCS;

const FUNCS_MAX: usize = 4;
/// The functions of a program that repeats itself, at least: the one that is called, and two that tail call each other.
const HOT_FUNCS_MIN: usize = 3;
const TABLE_LEN: u32 = 8;
/// Number of bytes of a data segment, all below the frame stack.
const DATA_BYTES: usize = 1024;

/// A module, and the settings to run it with.
#[derive(Clone, Debug)]
pub struct Case {
    /// The module; it verifies.
    pub module: Module,
    /// The function to call.
    pub func: u32,
    /// Its arguments, as cells.
    pub args: Vec<u128>,
    /// The fuel to run it with.
    pub fuel: u64,
    /// Part of a call's fuel, in 65536ths, that a first call gets, so that it runs out somewhere; 0 for no such call.
    pub cut: u16,
    /// The address space of memories where native code relies on it; `None` is the default.
    pub memory: Option<MemoryPlan>,
    /// The mode that also runs without fuel and without a deterministic call stack.
    pub bare: SlotMode,
}

impl Case {
    /// A case that calls a function of a module, with default settings.
    pub fn new(module: Module, func: u32, args: Vec<u128>) -> Case {
        Case { module, func, args, fuel: 4_000, cut: 0, memory: None, bare: SlotMode::Ssa }
    }
}

/// Generates a case from bytes.
pub fn generate(bytes: &[u8]) -> Case {
    generate_as(bytes, false)
}

/// Generates a case from bytes whose program repeats itself.
pub fn generate_hot(bytes: &[u8]) -> Case {
    generate_as(bytes, true)
}

fn generate_as(bytes: &[u8], is_hot: bool) -> Case {
    let mut choices = Choices::new(bytes);
    let mut for_args = choices.split(24);
    let fuel = choices.pick(match is_hot {
        false => &[6_000, 6_000, 6_000, 20_000],
        true => &[60_000, 60_000, 400_000, 4_000_000],
    });
    let cut = u16::from_be_bytes([choices.byte(), choices.byte()]);
    let memory = choices.pick(&[
        None,
        // Covers plain accesses only.
        Some(MemoryPlan::PLAIN),
    ]);
    let bare = choices.pick(&SlotMode::ALL);
    // A byte that decides nothing else: other modules stay as they are.
    let shares_types = cut & 3 == 3;
    let refs = cut & 12 == 12;
    let has_hints = cut & 48 == 48;
    let mut generator =
        Generator { shares_types, refs, has_hints, ..Generator::new(choices, is_hot) };
    generator.items();
    for func in 0..generator.n_funcs {
        generator.func(func);
    }
    let module = generator.module;
    let main = &module.types[module.funcs[0].ty as usize];
    let args = main.params.iter().map(|&ty| argument(&mut for_args, ty)).collect();
    Case { fuel, cut, memory, bare, ..Case::new(module, MAIN, args) }
}

/// The case of a seed whose program repeats itself.
pub fn hot_case_of_seed(seed: u64) -> Case {
    generate_hot(&bytes_of_seed(seed))
}

/// The case of a seed.
pub fn case_of_seed(seed: u64) -> Case {
    generate(&bytes_of_seed(seed))
}

/// The bytes that the case of a seed is generated from.
pub fn bytes_of_seed(seed: u64) -> Vec<u8> {
    crate::choices::random_bytes(seed, 200 + (seed % 3_000) as usize * 97 % 3_000)
}

fn argument(choices: &mut Choices<'_>, ty: ValType) -> u128 {
    match ty {
        ValType::FuncRef => 0,
        ValType::ExternRef => choices.below(2) as u128,
        // No object.
        ValType::Ref if choices.percent(50) => 0,
        ValType::Ref => u128::from(choices.bits() | 1),
        ValType::V128 => vector_constant(choices),
        _ => constant(choices, ty).0.into(),
    }
}

/// A constant of a numeric type: small, an edge case, or any.
fn constant(choices: &mut Choices<'_>, ty: ValType) -> Imm {
    if choices.percent(50) {
        return rich_constant(choices, ty);
    }
    Imm(match ty {
        ValType::I32 if choices.percent(40) => Imm::i32(choices.below(16) as i32 - 16).0,
        ValType::I32 | ValType::I64 => choices.below(17) as u64,
        ValType::F32 => u64::from((choices.below(33) as f32 / 4.0 - 4.0).to_bits()),
        _ => (choices.below(33) as f64 / 4.0 - 4.0).to_bits(),
    })
}

/// A constant of a numeric type: an edge case, or any.
fn rich_constant(choices: &mut Choices<'_>, ty: ValType) -> Imm {
    const EDGES_32: [u32; 9] = [
        0x8000_0000,
        0x7fff_ffff,
        !0,
        0x7fc0_0000,
        0xff80_0000,
        0x4f00_0000,
        0x3f00_0000,
        0xffff,
        0x7fc0_0000,
    ];
    const EDGES_64: [u64; 9] = [
        1 << 63,
        (1 << 63) - 1,
        !0,
        0x7ff8 << 48,
        0xfff0 << 48,
        0x41e0 << 48,
        0x3fe0 << 48,
        0xffff_ffff,
        0x7ff8 << 48,
    ];
    let is_edge = choices.percent(40);
    Imm(match ty {
        ValType::I32 | ValType::F32 if is_edge => u64::from(choices.pick(&EDGES_32)),
        _ if is_edge => choices.pick(&EDGES_64),
        ValType::I32 | ValType::F32 => choices.bits() & 0xffff_ffff,
        _ => choices.bits(),
    })
}

/// A constant vector: of lanes of a type, or any.
fn vector_constant(choices: &mut Choices<'_>) -> u128 {
    match choices.below(4) {
        0 => u128::from_le_bytes([choices.byte(); 16]),
        1 => {
            let lane = constant(choices, ValType::F32).0;
            let other = rich_constant(choices, ValType::F32).0;
            u128::from(lane << 32 | other) | u128::from(lane) << 96
        }
        2 => {
            let lane = constant(choices, ValType::F64).0;
            u128::from(lane) | u128::from(rich_constant(choices, ValType::F64).0) << 64
        }
        _ => u128::from(choices.bits()) << 64 | u128::from(choices.bits()),
    }
}

/// All types except references into the embedder's heap, which come last.
const ALL_TYPES: &[ValType] = ValType::ALL.split_at(7).0;
/// And except vectors.
const SCALAR_TYPES: &[ValType] = ValType::ALL.split_at(6).0;
const NUM_TYPES: &[ValType] = &[ValType::I32, ValType::I64, ValType::F64, ValType::F32];
const NUM_TYPES_AND_VECTORS: &[ValType] =
    &[ValType::I32, ValType::I64, ValType::F64, ValType::F32, ValType::V128, ValType::V128];

struct Generator<'a> {
    choices: Choices<'a>,
    module: Module,
    shapes: HashMap<Shape, ShapeId>,
    n_funcs: usize,
    /// Whether the program repeats itself.
    is_hot: bool,
    /// Whether many functions have the type of the one before, so that indirect calls reach several.
    shares_types: bool,
    /// Whether there are references into the embedder's heap.
    refs: bool,
    /// Whether branches have hints, right or wrong.
    has_hints: bool,
    /// Percentage of choices that may trap or never end.
    wildness: usize,
    /// Whether there are vectors.
    vectors: bool,
    /// Whether values are integers, and all arithmetic is on them.
    integers: bool,
    /// The results of functions of a program that repeats itself: few, so that functions can tail call each other.
    results: [Vec<ValType>; 2],
    /// All globals except `budget`.
    globals: Vec<GlobalType>,
    /// The global that counts down calls which may recurse.
    budget: u32,
    numeric: Vec<Op>,
    /// The operations on vectors alone.
    on_vectors: Vec<Op>,
    loads: Vec<Op>,
    stores: Vec<Op>,
    // The function being generated.
    func: usize,
    locals: Vec<ValType>,
    /// The local that counts down jumps back.
    counter: u32,
    stack: Vec<ValType>,
    /// The offset of the last label.
    block_start: u32,
    code: Vec<u8>,
    hints: Vec<(u32, BranchHint)>,
}

impl<'a> Generator<'a> {
    fn new(choices: Choices<'a>, is_hot: bool) -> Generator<'a> {
        let is_numeric = |op: &Op| {
            op.imm_kind() == ImmKind::None
                && !op.is_vector()
                && !matches!(op, Op::RefReinterpretI64 | Op::I64ReinterpretRef)
                && op.signature().is_some()
                && matches!(op.effect(), Effect::Pure | Effect::Trap)
        };
        let is_on_vectors = |op: &Op| op.is_vector() && op.access_bytes().is_none();
        let accesses = |store: bool| {
            let effect = if store { Effect::Write } else { Effect::Read };
            let wanted = move |op: &Op| op.access_bytes().is_some() && op.effect() == effect;
            Op::ALL.iter().copied().filter(move |op| wanted(op)).collect()
        };
        Generator {
            choices,
            module: Module::default(),
            shapes: HashMap::new(),
            n_funcs: 0,
            is_hot,
            shares_types: false,
            refs: false,
            has_hints: false,
            wildness: 0,
            vectors: false,
            integers: false,
            results: [Vec::new(), Vec::new()],
            globals: Vec::new(),
            budget: 0,
            numeric: Op::ALL.iter().copied().filter(is_numeric).collect(),
            on_vectors: Op::ALL.iter().copied().filter(is_on_vectors).collect(),
            loads: accesses(false),
            stores: accesses(true),
            func: 0,
            locals: Vec::new(),
            counter: 0,
            stack: Vec::new(),
            block_start: 0,
            code: Vec::new(),
            hints: Vec::new(),
        }
    }

    /// Generates everything except the functions' code.
    fn items(&mut self) {
        use ValType::{F64, I32, I64};
        self.wildness = self.choices.pick(&[0, 5, 10, 20]);
        self.integers = self.is_hot && self.choices.percent(40);
        self.vectors = !self.integers && self.choices.percent(30);
        if !self.vectors {
            self.loads.retain(|op| !op.is_vector());
            self.stores.retain(|op| !op.is_vector());
        }
        if self.integers {
            let is_integer = |op: &Op| {
                let sig = op.signature().expect("operations and accesses have signatures");
                let mut types = sig.params.iter().chain(sig.results);
                types.all(|ty| matches!(ty, ValType::I32 | ValType::I64))
            };
            [&mut self.numeric, &mut self.loads, &mut self.stores]
                .into_iter()
                .for_each(|ops| ops.retain(is_integer));
        }
        if self.is_hot {
            let n = 1 + self.choices.below(2);
            self.results = [0, n].map(|n| (0..n).map(|_| self.any_type()).collect());
        }
        let mut any = self.func_type();
        if self.refs {
            any = Generator::object_func_type();
        }
        let host = [FuncType::new([I32, I64], [I64]), FuncType::new([F64], []), any];
        let any_call = if self.is_hot { ImportCall::Cold } else { ImportCall::Ordinary };
        let calls = [ImportCall::Ordinary, ImportCall::Cold, any_call];
        for ((ty, name), call) in host.into_iter().zip(["mix", "note", "any"]).zip(calls) {
            let ty = self.type_index(ty);
            self.import(name, ImportKind::Func(ty, call));
        }
        self.n_funcs = match self.is_hot {
            false => 1 + self.choices.below(FUNCS_MAX),
            true => HOT_FUNCS_MIN + self.choices.below(FUNCS_MAX),
        };
        for _ in 0..self.n_funcs {
            let ty = match self.module.funcs.last() {
                Some(before) if self.shares_types && self.choices.percent(60) => before.ty,
                _ => {
                    let ty = match self.is_hot && self.choices.percent(80) {
                        false => self.func_type(),
                        true => self.hot_func_type(),
                    };
                    self.type_index(ty)
                }
            };
            self.module.funcs.push(Func { ty, ..Func::default() });
        }
        self.memory();
        self.tables();
        self.global_items();
        self.segments();
        let export = Export { name: "main".into(), kind: EntityKind::Func, index: MAIN };
        self.module.exports.push(export);
        let is_start = |func: &Func| self.module.types[func.ty as usize] == FuncType::new([], []);
        if let Some(start) = self.module.funcs.iter().position(is_start)
            && self.choices.percent(50)
        {
            self.module.start = Some(MAIN + start as u32);
        }
    }

    fn import(&mut self, name: &str, kind: ImportKind) {
        self.module.imports.push(Import { module: "env".into(), name: name.into(), kind });
    }

    fn memory(&mut self) {
        let max = self.choices.pick(&[3, 1, 5]);
        let ty = MemoryType { min: 1, max: Some(max) };
        if self.choices.percent(12) {
            self.import("memory", ImportKind::Memory(ty));
        } else {
            self.module.memories.push(ty);
            let bytes = self.choices.pick(&[512, 4096, 256, 32]);
            self.module.frame_stack = Some(FrameStack { base: DATA_BYTES as u32, bytes });
        }
    }

    fn tables(&mut self) {
        // Code treats the length of a table that cannot grow as a constant.
        let is_fixed = self.choices.percent(30);
        let (min, max) = (TABLE_LEN, Some(if is_fixed { TABLE_LEN } else { TABLE_LEN + 8 }));
        let ty = TableType { elem: ValType::FuncRef, min, max };
        match self.choices.percent(12) {
            true => self.import("table", ImportKind::Table(ty)),
            false => self.module.tables.push(ty),
        }
        self.module.tables.push(TableType { elem: ValType::ExternRef, min: 2, max: Some(4) });
        if self.refs {
            self.ref_table();
        }
    }

    fn global_items(&mut self) {
        if self.choices.percent(20) {
            for i in 0..1 + self.choices.below(3) {
                let ty = GlobalType { ty: self.any_type(), mutable: self.choices.percent(50) };
                self.import(&format!("global{i}"), ImportKind::Global(ty));
                self.globals.push(ty);
            }
        }
        let types = if self.vectors { ALL_TYPES } else { SCALAR_TYPES };
        let mut types: Vec<_> = types.iter().map(|&ty| (ty, true)).collect();
        types.extend([(ValType::I64, false), (ValType::I32, false)]);
        for (ty, mutable) in types {
            let init = match ty {
                ValType::V128 => ConstExpr::v128(vector_constant(&mut self.choices)),
                _ if ty.is_ref() => ConstExpr::ref_null(ty),
                _ => ConstExpr::default().inst(const_op(ty), constant(&mut self.choices, ty)),
            };
            let ty = GlobalType { ty, mutable };
            self.module.globals.push(Global { ty, init });
            self.globals.push(ty);
        }
        if self.refs {
            self.ref_globals();
        }
        self.budget = self.globals.len() as u32;
        let init = ConstExpr::i32(self.choices.pick(match self.is_hot {
            false => &[10, 3, 20, 60],
            true => &[100, 10, 1_000, 3_000],
        }));
        let ty = GlobalType { ty: ValType::I32, mutable: true };
        self.module.globals.push(Global { ty, init });
    }

    fn segments(&mut self) {
        let in_table = (0..TABLE_LEN - 2).map(|i| self.in_table(i)).collect();
        let segment =
            |mode, funcs| Elem { mode, ty: ValType::FuncRef, items: ElemItems::Funcs(funcs) };
        let active = SegmentMode::Active { target: 0, offset: ConstExpr::i32(0) };
        self.module.elems.push(segment(active.clone(), in_table));
        self.module.elems.push(segment(SegmentMode::Passive, vec![MAIN, 0, MAIN]));
        let bytes = crate::choices::random_bytes(1, DATA_BYTES);
        self.module.datas.push(Data { mode: active, bytes: bytes.clone() });
        self.module.datas.push(Data { mode: SegmentMode::Passive, bytes });
    }

    /// The initial function of an entry of table 0: any function defined here, or `mix`.
    fn in_table(&self, entry: u32) -> u32 {
        match entry % (self.n_funcs as u32 + 1) {
            i if i < self.n_funcs as u32 => MAIN + i,
            _ => 0,
        }
    }

    fn func_type(&mut self) -> FuncType {
        // A few functions have more results than registers can return.
        let n_results = if self.choices.percent(8) { 9 } else { self.choices.below(4) };
        let n_params = if self.choices.percent(8) { 12 } else { self.choices.below(4) };
        let params: Vec<ValType> = (0..n_params).map(|_| self.any_type()).collect();
        let results: Vec<ValType> = (0..n_results).map(|_| self.any_type()).collect();
        FuncType::new(params, results)
    }

    /// The type of a function that others can tail call.
    fn hot_func_type(&mut self) -> FuncType {
        let n_params = self.choices.below(4);
        let params: Vec<ValType> = (0..n_params).map(|_| self.any_type()).collect();
        let results = self.results[self.choices.below(2)].clone();
        FuncType::new(params, results)
    }

    fn any_type(&mut self) -> ValType {
        if self.refs && self.choices.percent(25) {
            return ValType::Ref;
        }
        if self.integers {
            return self.choices.pick(&[ValType::I32, ValType::I64]);
        }
        let is_any = self.choices.percent(10);
        self.choices.pick(match (self.vectors, is_any) {
            (false, true) => SCALAR_TYPES,
            (false, false) => NUM_TYPES,
            (true, true) => ALL_TYPES,
            (true, false) => NUM_TYPES_AND_VECTORS,
        })
    }

    fn type_index(&mut self, ty: FuncType) -> u32 {
        if let Some(i) = self.module.types.iter().position(|t| *t == ty) {
            return i as u32;
        }
        self.module.types.push(ty);
        self.module.types.len() as u32 - 1
    }

    fn shape_id(&mut self, types: &[ValType]) -> ShapeId {
        let mut id = ShapeId::EMPTY;
        for &ty in types {
            let shape = Shape { parent: id, ty };
            let shapes = &mut self.module.shapes;
            id = *self.shapes.entry(shape).or_insert_with(|| {
                shapes.push(shape);
                ShapeId(shapes.len() as u32)
            });
        }
        id
    }

    fn type_of(&self, func: u32) -> u32 {
        match func.checked_sub(N_HOST_FUNCS) {
            Some(defined) => self.module.funcs[defined as usize].ty,
            None => self.module.imported_funcs().nth(func as usize).expect("an import"),
        }
    }

    fn callee_type(&self, func: u32) -> &FuncType {
        &self.module.types[self.type_of(func) as usize]
    }

    /// Whether to do something that may trap or never end.
    fn is_wild(&mut self) -> bool {
        self.choices.percent(self.wildness)
    }
}

fn const_op(ty: ValType) -> Op {
    match ty {
        ValType::I32 => Op::I32Const,
        ValType::I64 => Op::I64Const,
        ValType::F32 => Op::F32Const,
        _ => Op::F64Const,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slotvm_bytecode::verify;

    #[test]
    fn all_generated_modules_verify() {
        for seed in 0..5_000 {
            for case in [case_of_seed(seed), hot_case_of_seed(seed)] {
                if let Err(error) = verify(case.module) {
                    panic!("seed {seed}: {error}");
                }
            }
        }
    }

    #[test]
    fn the_empty_input_gives_a_small_module() {
        let case = generate(&[]);
        assert_eq!(case.module.funcs.len(), 1);
        verify(case.module).expect("verifies");
    }

    #[test]
    fn every_opcode_occurs() {
        let mut seen = std::collections::HashSet::new();
        for seed in 0..2_000 {
            let module = verify(case_of_seed(seed).module).expect("verifies");
            for func in MAIN..module.n_funcs() {
                for block in &module.body(func).expect("defined").blocks {
                    seen.extend(module.insts(func, block).map(|(_, inst)| inst.op));
                }
            }
        }
        let missing: Vec<_> = Op::ALL.iter().filter(|op| !seen.contains(op)).collect();
        assert!(missing.is_empty(), "never generated: {missing:?}");
    }
}
