//! Random modules that verify: the input of the comparison of engines.
//!
//! A module has a few functions that call each other and two host functions, a memory with a frame
//! stack, tables, globals of every type, and segments. A function is a list of labelled blocks of
//! random shapes, which jump anywhere (so most graphs are irreducible), partly counted down by a
//! local, so that many programs end by themselves; fuel ends the others. Memory is mostly accessed
//! inside its bounds, divisors are mostly not zero, but not always.
//!
//! Everything is exported, so that results can be compared: memory `memory`, globals `g0`, `g1` …,
//! table `table`. `main` is function 2.

use std::collections::HashMap;

use slotvm_bytecode::inst::{write_br_table, write_inst};
use slotvm_bytecode::module::*;
use slotvm_bytecode::{Effect, FuncType, Imm, ImmKind, Op, ValType};

use crate::choices::Choices;

/// The imported functions: `env.mix` and `env.note`.
pub const N_HOST_FUNCS: u32 = 2;
/// The function that is exported as `main`.
pub const MAIN: u32 = N_HOST_FUNCS;

const FUNCS_MAX: usize = 4;
const BLOCKS_MAX: usize = 10;
const OPS_PER_BLOCK_MAX: usize = 12;
const TABLE_LEN: u32 = 8;
const FRAME_STACK: FrameStack = FrameStack { base: 1024, bytes: 512 };

/// A generated module with a call of its `main`.
#[derive(Clone, Debug)]
pub struct Case {
    /// The module; it verifies.
    pub module: Module,
    /// The arguments of `main`, as cells.
    pub args: Vec<u64>,
    /// The fuel to run it with.
    pub fuel: u64,
}

/// Generates a case from bytes.
pub fn generate(bytes: &[u8]) -> Case {
    let mut choices = Choices::new(bytes);
    let fuel = match choices.below(4) {
        0 => 20_000,
        1 => choices.below(400) as u64,
        _ => 4_000,
    };
    let mut generator = Generator::new(choices);
    generator.items();
    for func in 0..generator.n_funcs {
        generator.func(func);
    }
    let Generator { mut module, mut choices, .. } = generator;
    let main = &module.types[module.funcs[0].ty as usize];
    let params = main.params.clone();
    let args = params.iter().map(|&ty| argument(&mut choices, ty)).collect();
    module.exports.push(Export { name: "main".into(), kind: EntityKind::Func, index: MAIN });
    Case { module, args, fuel }
}

fn argument(choices: &mut Choices<'_>, ty: ValType) -> u64 {
    if ty.is_ref() { 0 } else { constant(choices, ty).0 }
}

/// A constant of a numeric type: small, at an edge, or any.
fn constant(choices: &mut Choices<'_>, ty: ValType) -> Imm {
    const EDGES_32: [u32; 8] =
        [0x8000_0000, 0x7fff_ffff, !0, 0x7fc0_0000, 0xff80_0000, 0x4f00_0000, 0x3f00_0000, 0xffff];
    const EDGES_64: [u64; 8] = [
        1 << 63,
        (1 << 63) - 1,
        !0,
        0x7ff8 << 48,
        0xfff0 << 48,
        0x41e0 << 48,
        0x3fe0 << 48,
        0xffff_ffff,
    ];
    let kind = choices.below(4);
    Imm(match (ty, kind) {
        (ValType::I32 | ValType::I64, 0 | 1) => choices.below(17) as u64,
        (ValType::F32, 0 | 1) => u64::from((choices.below(33) as f32 / 4.0 - 4.0).to_bits()),
        (ValType::F64, 0 | 1) => (choices.below(33) as f64 / 4.0 - 4.0).to_bits(),
        (ValType::I32 | ValType::F32, 2) => u64::from(choices.pick(&EDGES_32)),
        (_, 2) => choices.pick(&EDGES_64),
        (ValType::I32 | ValType::F32, _) => choices.bits() & 0xffff_ffff,
        _ => choices.bits(),
    })
}

const ALL_TYPES: &[ValType] = &ValType::ALL;
const NUM_TYPES: &[ValType] = &[ValType::I32, ValType::I64, ValType::F64, ValType::F32];

struct Generator<'a> {
    choices: Choices<'a>,
    module: Module,
    shapes: HashMap<Shape, ShapeId>,
    n_funcs: usize,
    numeric: Vec<Op>,
    loads: Vec<Op>,
    stores: Vec<Op>,
    // The function being generated.
    locals: Vec<ValType>,
    stack: Vec<ValType>,
    code: Vec<u8>,
}

impl<'a> Generator<'a> {
    fn new(choices: Choices<'a>) -> Generator<'a> {
        let is_numeric = |op: &Op| {
            op.imm_kind() == ImmKind::None
                && op.signature().is_some()
                && matches!(op.effect(), Effect::Pure | Effect::Trap)
        };
        let accesses = |store: bool| {
            let wanted = move |op: &Op| op.access().is_some_and(|a| a.store == store);
            Op::ALL.iter().copied().filter(move |op| wanted(op)).collect()
        };
        Generator {
            choices,
            module: Module::default(),
            shapes: HashMap::new(),
            n_funcs: 0,
            numeric: Op::ALL.iter().copied().filter(is_numeric).collect(),
            loads: accesses(false),
            stores: accesses(true),
            locals: Vec::new(),
            stack: Vec::new(),
            code: Vec::new(),
        }
    }

    /// Everything but the functions' code.
    fn items(&mut self) {
        use ValType::{ExternRef, F64, FuncRef, I32, I64};
        let host = [FuncType::new([I32, I64], [I64]), FuncType::new([F64], [])];
        for (ty, name) in host.into_iter().zip(["mix", "note"]) {
            let ty = self.type_index(ty);
            let kind = ImportKind::Func(ty);
            self.module.imports.push(Import { module: "env".into(), name: name.into(), kind });
        }
        self.n_funcs = 1 + self.choices.below(FUNCS_MAX);
        for _ in 0..self.n_funcs {
            let ty = self.func_type();
            let ty = self.type_index(ty);
            self.module.funcs.push(Func { ty, ..Func::default() });
        }
        self.module.memories.push(MemoryType { min: 1, max: Some(3) });
        self.module.frame_stack = Some(FRAME_STACK);
        self.module.tables.push(TableType {
            elem: FuncRef,
            min: TABLE_LEN,
            max: Some(TABLE_LEN + 8),
        });
        self.module.tables.push(TableType { elem: ExternRef, min: 2, max: Some(4) });
        for &ty in ALL_TYPES {
            let mut init = ConstExpr::default();
            match ty.is_ref() {
                true => write_inst(&mut init.code, Op::RefNull, Imm::ref_type(ty)),
                false => write_inst(&mut init.code, const_op(ty), constant(&mut self.choices, ty)),
            }
            self.module.globals.push(Global { ty: GlobalType { ty, mutable: true }, init });
        }
        self.segments();
        let export = |name: String, kind, index| Export { name, kind, index };
        self.module.exports.push(export("memory".into(), EntityKind::Memory, 0));
        self.module.exports.push(export("table".into(), EntityKind::Table, 0));
        for i in 0..ALL_TYPES.len() as u32 {
            self.module.exports.push(export(format!("g{i}"), EntityKind::Global, i));
        }
    }

    fn segments(&mut self) {
        let mut zero = ConstExpr::default();
        write_inst(&mut zero.code, Op::I32Const, Imm::i32(0));
        let n_funcs = self.n_funcs as u32;
        let in_table = (0..TABLE_LEN - 2).map(|i| MAIN + i % n_funcs).collect();
        let segment =
            |mode, funcs| Elem { mode, ty: ValType::FuncRef, items: ElemItems::Funcs(funcs) };
        let active = SegmentMode::Active { target: 0, offset: zero.clone() };
        self.module.elems.push(segment(active, in_table));
        self.module.elems.push(segment(SegmentMode::Passive, vec![MAIN, 0, MAIN]));
        let bytes: Vec<u8> = (0..64).map(|i| (i * 37 + 11) as u8).collect();
        let active = SegmentMode::Active { target: 0, offset: zero };
        self.module.datas.push(Data { mode: active, bytes: bytes.clone() });
        self.module.datas.push(Data { mode: SegmentMode::Passive, bytes });
    }

    fn func_type(&mut self) -> FuncType {
        // A few functions have more results than registers can return.
        let n_results = if self.choices.percent(8) { 9 } else { self.choices.below(4) };
        let n_params = if self.choices.percent(8) { 12 } else { self.choices.below(4) };
        let params: Vec<ValType> = (0..n_params).map(|_| self.any_type()).collect();
        let results: Vec<ValType> = (0..n_results).map(|_| self.any_type()).collect();
        FuncType::new(params, results)
    }

    fn any_type(&mut self) -> ValType {
        if self.choices.percent(10) {
            self.choices.pick(ALL_TYPES)
        } else {
            self.choices.pick(NUM_TYPES)
        }
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

    // --- Functions ---------------------------------------------------------------------------

    fn func(&mut self, func: usize) {
        let ty = self.module.types[self.module.funcs[func].ty as usize].clone();
        self.locals = ty.params;
        // Local `counter` bounds the loops; the others are for anything.
        let counter = self.locals.len() as u32;
        self.locals.push(ValType::I32);
        for _ in 0..1 + self.choices.below(7) {
            let ty = self.any_type();
            self.locals.push(ty);
        }
        let declared = self.locals[counter as usize..].chunk_by(|a, b| a == b);
        let declared = declared.map(|run| (run.len() as u32, run[0])).collect();
        let n_blocks = 1 + self.choices.below(BLOCKS_MAX);
        let mut shapes: Vec<Vec<ValType>> = vec![Vec::new()];
        for _ in 1..n_blocks {
            let depth = if self.choices.percent(40) { self.choices.below(4) } else { 0 };
            shapes.push((0..depth).map(|_| self.any_type()).collect());
        }
        self.code = Vec::new();
        let mut labels = Vec::new();
        for block in 0..n_blocks {
            let shape = self.shape_id(&shapes[block]);
            labels.push(Label { offset: self.code.len() as u32, shape });
            self.stack = shapes[block].clone();
            if block == 0 {
                let rounds = 1 + self.choices.below(20) as i32;
                self.const_i32(rounds);
                self.raw(Op::LocalSet, Imm::index(counter));
                self.stack.pop();
            }
            for _ in 0..self.choices.below(OPS_PER_BLOCK_MAX) {
                self.step();
            }
            self.end_block(block, &shapes, counter, &ty.results);
        }
        let def = &mut self.module.funcs[func];
        def.locals = declared;
        def.labels = labels;
        def.code = std::mem::take(&mut self.code);
    }

    fn end_block(
        &mut self,
        block: usize,
        shapes: &[Vec<ValType>],
        counter: u32,
        results: &[ValType],
    ) {
        let n_blocks = shapes.len();
        // Conditional branches may follow each other; what is between them is a block without label.
        while self.choices.percent(45) {
            let target = self.choices.below(n_blocks);
            self.morph(&shapes[target]);
            if target <= block && self.choices.percent(80) {
                self.raw(Op::LocalGet, Imm::index(counter));
                self.raw(Op::I32Const, Imm::i32(1));
                self.raw(Op::I32Sub, Imm::NONE);
                self.raw(Op::LocalTee, Imm::index(counter));
            } else {
                self.value(ValType::I32);
                self.stack.pop();
            }
            self.raw(Op::BrIf, Imm::index(target as u32));
            for _ in 0..self.choices.below(3) {
                self.step();
            }
        }
        match self.choices.below(12) {
            0 | 1 if block + 1 == n_blocks => self.leave(results),
            0..=4 if block + 1 < n_blocks => {
                self.morph(&shapes[block + 1]);
                // A label must not stand at the end of the code or twice at one place.
                self.raw(Op::Nop, Imm::NONE);
            }
            5 | 6 => {
                let target = self.choices.below(n_blocks);
                self.morph(&shapes[target]);
                self.raw(Op::Br, Imm::index(target as u32));
            }
            7 => self.br_table(shapes),
            8 if self.choices.percent(20) => self.raw(Op::Unreachable, Imm::NONE),
            9 => self.tail_call(results),
            _ => self.leave(results),
        }
    }

    fn leave(&mut self, results: &[ValType]) {
        self.morph(results);
        self.raw(Op::Return, Imm::NONE);
    }

    fn br_table(&mut self, shapes: &[Vec<ValType>]) {
        let default = self.choices.below(shapes.len());
        let same: Vec<u32> =
            (0..shapes.len()).filter(|&b| shapes[b] == shapes[default]).map(|b| b as u32).collect();
        let targets: Vec<u32> =
            (0..self.choices.below(5)).map(|_| self.choices.pick(&same)).collect();
        self.morph(&shapes[default]);
        self.value(ValType::I32);
        write_br_table(&mut self.code, &targets, default as u32);
    }

    fn tail_call(&mut self, results: &[ValType]) {
        let fits = |f: &u32| self.callee_type(*f).results == results;
        let candidates: Vec<u32> = (0..N_HOST_FUNCS + self.n_funcs as u32).filter(fits).collect();
        if candidates.is_empty() {
            return self.leave(results);
        }
        let callee = self.choices.pick(&candidates);
        let params = self.callee_type(callee).params.clone();
        self.morph(&params);
        if self.choices.percent(30) {
            self.value(ValType::I32);
            let ty = self.type_of(callee);
            self.raw(Op::ReturnCallIndirect, Imm::pair(ty, 0));
        } else {
            self.raw(Op::ReturnCall, Imm::index(callee));
        }
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

    /// Makes the operand stack exactly this.
    fn morph(&mut self, shape: &[ValType]) {
        let common = self.stack.iter().zip(shape).take_while(|(a, b)| a == b).count();
        while self.stack.len() > common {
            self.raw(Op::Drop, Imm::NONE);
            self.stack.pop();
        }
        for &ty in &shape[common..] {
            self.value(ty);
        }
    }

    // --- Instructions ------------------------------------------------------------------------

    /// Appends an instruction; the caller keeps the stack.
    fn raw(&mut self, op: Op, imm: Imm) {
        write_inst(&mut self.code, op, imm);
    }

    fn const_i32(&mut self, value: i32) {
        self.raw(Op::I32Const, Imm::i32(value));
        self.stack.push(ValType::I32);
    }

    /// Pushes some value of a type.
    fn value(&mut self, ty: ValType) {
        let locals: Vec<u32> =
            (0..self.locals.len() as u32).filter(|&l| self.locals[l as usize] == ty).collect();
        match self.choices.below(4) {
            0 | 1 if !locals.is_empty() => {
                let local = self.choices.pick(&locals);
                self.raw(Op::LocalGet, Imm::index(local));
            }
            2 => self.raw(Op::GlobalGet, Imm::index(ty.index() as u32)),
            _ => match ty {
                ValType::FuncRef if self.choices.percent(50) => {
                    let func = MAIN + self.choices.below(self.n_funcs) as u32;
                    self.raw(Op::RefFunc, Imm::index(func));
                }
                _ if ty.is_ref() => self.raw(Op::RefNull, Imm::ref_type(ty)),
                _ => {
                    let imm = constant(&mut self.choices, ty);
                    self.raw(const_op(ty), imm);
                }
            },
        }
        self.stack.push(ty);
    }

    /// Puts these operands on the stack, those that are there already if they fit.
    fn operands(&mut self, types: &[ValType]) {
        if self.stack.ends_with(types) && self.choices.percent(70) {
            return;
        }
        for &ty in types {
            self.value(ty);
        }
    }

    fn apply(&mut self, op: Op, imm: Imm, params: &[ValType], results: &[ValType]) {
        self.operands(params);
        self.raw(op, imm);
        self.stack.truncate(self.stack.len() - params.len());
        self.stack.extend_from_slice(results);
    }

    /// An address, mostly inside the first page.
    fn address(&mut self) {
        self.value(ValType::I32);
        if !self.choices.percent(6) {
            self.raw(Op::I32Const, Imm::i32(0x3ff8));
            self.raw(Op::I32And, Imm::NONE);
        }
    }

    fn offset(&mut self) -> u32 {
        match self.choices.below(12) {
            10 => self.choices.pick(&[0xffff, 0x10000, 0x7fff_ffff, 0xffff_fff8, 0xffff_ffff]),
            n => [0, 0, 0, 1, 4, 8, 16, 100, 1000, 4096, 0, 60000][n],
        }
    }

    fn step(&mut self) {
        match self.choices.below(20) {
            0..=4 => {
                let op = self.numeric[self.choices.below(self.numeric.len())];
                let sig = op.signature().expect("numeric operations have signatures");
                self.apply(op, Imm::NONE, sig.params, sig.results);
            }
            5..=8 => self.local(),
            9 | 10 => self.shuffle(),
            11 => self.load(),
            12 => self.store(),
            13 => self.global(),
            14 => self.call(),
            15 => self.local_address(),
            16 => self.bulk(),
            17 => self.table(),
            18 => self.select(),
            _ => {
                let ty = self.any_type();
                self.value(ty);
            }
        }
    }

    fn local(&mut self) {
        let local = self.choices.below(self.locals.len()) as u32;
        let ty = self.locals[local as usize];
        match self.choices.below(3) {
            0 => self.apply(Op::LocalGet, Imm::index(local), &[], &[ty]),
            1 => self.apply(Op::LocalSet, Imm::index(local), &[ty], &[]),
            _ => self.apply(Op::LocalTee, Imm::index(local), &[ty], &[ty]),
        }
    }

    fn global(&mut self) {
        let ty = self.any_type();
        let imm = Imm::index(ty.index() as u32);
        match self.choices.below(2) {
            0 => self.apply(Op::GlobalGet, imm, &[], &[ty]),
            _ => self.apply(Op::GlobalSet, imm, &[ty], &[]),
        }
    }

    fn shuffle(&mut self) {
        let n = self.stack.len();
        let (op, needed) = self.choices.pick(&[
            (Op::Drop, 1),
            (Op::Dup, 1),
            (Op::Swap, 2),
            (Op::Over, 2),
            (Op::Rot, 3),
            (Op::Nop, 0),
        ]);
        if n < needed {
            return;
        }
        self.raw(op, Imm::NONE);
        match op {
            Op::Drop => drop(self.stack.pop()),
            Op::Dup => self.stack.push(self.stack[n - 1]),
            Op::Swap => self.stack.swap(n - 1, n - 2),
            Op::Over => self.stack.push(self.stack[n - 2]),
            Op::Rot => self.stack[n - 3..].rotate_left(1),
            _ => {}
        }
    }

    fn select(&mut self) {
        let ty = self.any_type();
        self.apply(Op::Select, Imm::NONE, &[ty, ty, ValType::I32], &[ty]);
    }

    fn access_imm(&mut self, op: Op) -> Imm {
        let offset = self.offset();
        match op.imm_kind() {
            ImmKind::Indexed => Imm::indexed(offset, self.choices.below(4) as u32),
            _ => Imm::mem(offset),
        }
    }

    fn access_address(&mut self, op: Op) {
        self.address();
        if op.imm_kind() == ImmKind::Indexed {
            self.value(ValType::I32);
            if !self.choices.percent(10) {
                self.raw(Op::I32Const, Imm::i32(0xff));
                self.raw(Op::I32And, Imm::NONE);
            }
            self.stack.pop();
        }
        self.stack.pop();
    }

    fn load(&mut self) {
        let op = self.loads[self.choices.below(self.loads.len())];
        let imm = self.access_imm(op);
        self.access_address(op);
        self.raw(op, imm);
        self.stack.push(op.access().expect("a load").ty);
    }

    fn store(&mut self) {
        let op = self.stores[self.choices.below(self.stores.len())];
        let imm = self.access_imm(op);
        self.access_address(op);
        self.value(op.access().expect("a store").ty);
        self.stack.pop();
        self.raw(op, imm);
    }

    fn call(&mut self) {
        let callee = self.choices.below(N_HOST_FUNCS as usize + self.n_funcs) as u32;
        let FuncType { params, results } = self.callee_type(callee).clone();
        if self.choices.percent(25) {
            let ty = self.type_of(callee);
            self.operands(&params);
            self.value(ValType::I32);
            self.stack.pop();
            if self.choices.percent(90) {
                self.raw(Op::I32Const, Imm::i32(7));
                self.raw(Op::I32And, Imm::NONE);
            }
            self.raw(Op::CallIndirect, Imm::pair(ty, 0));
            self.stack.truncate(self.stack.len() - params.len());
            self.stack.extend_from_slice(&results);
        } else {
            self.apply(Op::Call, Imm::index(callee), &params, &results);
        }
    }

    /// Accesses of a numeric local through its address: mostly its own type, sometimes not.
    fn local_address(&mut self) {
        let numeric: Vec<u32> =
            (0..self.locals.len() as u32).filter(|&l| self.locals[l as usize].is_num()).collect();
        let local = self.choices.pick(&numeric);
        let ty = self.locals[local as usize];
        self.raw(Op::LocalAddr, Imm::index(local));
        let (load, store) = match ty {
            ValType::I32 => (Op::I32Load, Op::I32Store),
            ValType::I64 => (Op::I64Load, Op::I64Store),
            ValType::F32 => (Op::F32Load, Op::F32Store),
            _ => (Op::F64Load, Op::F64Store),
        };
        match self.choices.below(6) {
            0 | 1 => {
                self.raw(load, Imm::mem(0));
                self.stack.push(ty);
            }
            2 => {
                // The address moves below the value and back.
                self.stack.push(ValType::I32);
                self.value(ty);
                self.stack.truncate(self.stack.len() - 2);
                self.raw(store, Imm::mem(0));
            }
            3 => {
                self.raw(Op::Dup, Imm::NONE);
                self.raw(load, Imm::mem(0));
                self.raw(store, Imm::mem(0));
            }
            4 => {
                self.raw(Op::I32Load8S, Imm::mem(0));
                self.stack.push(ValType::I32);
            }
            // The address itself stays on the stack.
            _ => self.stack.push(ValType::I32),
        }
    }

    fn bulk(&mut self) {
        let op = self.choices.pick(&[
            Op::MemorySize,
            Op::MemoryFill,
            Op::MemoryCopy,
            Op::MemoryInit,
            Op::DataDrop,
            Op::MemoryGrow,
        ]);
        let n = |g: &mut Self, max: usize| {
            let value = if g.choices.percent(4) { -1 } else { g.choices.below(max) as i32 };
            g.raw(Op::I32Const, Imm::i32(value));
        };
        match op {
            Op::MemorySize => self.apply(op, Imm::NONE, &[], &[ValType::I32]),
            Op::MemoryGrow => {
                n(self, 3);
                self.raw(op, Imm::NONE);
                self.stack.push(ValType::I32);
            }
            Op::DataDrop if self.choices.percent(80) => {}
            Op::DataDrop => self.raw(op, Imm::index(1)),
            _ => {
                self.address();
                self.stack.pop();
                match op {
                    Op::MemoryFill => {
                        n(self, 256);
                        n(self, 300);
                    }
                    Op::MemoryCopy => {
                        n(self, 2000);
                        n(self, 500);
                    }
                    _ => {
                        n(self, 40);
                        n(self, 40);
                    }
                }
                let imm = if op == Op::MemoryInit { Imm::pair(1, 0) } else { Imm::NONE };
                self.raw(op, imm);
            }
        }
    }

    fn table(&mut self) {
        use ValType::{FuncRef, I32};
        let n = |g: &mut Self, max: usize| {
            let value = g.choices.below(max) as i32;
            g.raw(Op::I32Const, Imm::i32(value));
        };
        let len = TABLE_LEN as usize;
        match self.choices.below(9) {
            0 => self.apply(Op::TableSize, Imm::NONE, &[], &[I32]),
            1 => {
                n(self, len + 1);
                self.raw(Op::TableGet, Imm::NONE);
                self.stack.push(FuncRef);
            }
            2 => {
                n(self, len + 1);
                self.value(FuncRef);
                self.stack.pop();
                self.raw(Op::TableSet, Imm::NONE);
            }
            3 => {
                self.value(FuncRef);
                self.stack.pop();
                n(self, 3);
                self.raw(Op::TableGrow, Imm::NONE);
                self.stack.push(I32);
            }
            4 => {
                n(self, len);
                self.value(FuncRef);
                self.stack.pop();
                n(self, 4);
                self.raw(Op::TableFill, Imm::NONE);
            }
            5 => {
                (0..3).for_each(|_| n(self, len / 2 + 1));
                self.raw(Op::TableCopy, Imm::pair(0, 0));
            }
            6 => {
                n(self, len);
                (0..2).for_each(|_| n(self, 3));
                self.raw(Op::TableInit, Imm::pair(1, 0));
            }
            7 if self.choices.percent(20) => self.raw(Op::ElemDrop, Imm::index(1)),
            _ => self.apply(Op::RefIsNull, Imm::NONE, &[FuncRef], &[I32]),
        }
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
    use crate::choices::random_bytes;
    use slotvm_bytecode::verify;

    #[test]
    fn all_generated_modules_verify() {
        for seed in 0..3_000 {
            let case = generate(&random_bytes(seed, 50 + seed as usize % 2_000));
            if let Err(error) = verify(case.module) {
                panic!("seed {seed}: {error}");
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
        for seed in 0..1_500 {
            let case = generate(&random_bytes(seed, 2_000));
            let module = verify(case.module).expect("verifies");
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
