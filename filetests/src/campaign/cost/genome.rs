//! Genomes: bytes that encode functions of any shape, which the cost search varies.
//!
//! A genome is a list of genes of four bytes. The first two are the head: how large the function is to be,
//! its locals, and how the module is compiled. The others are steps, in phases; each phase repeats its steps
//! until the function has the phase's share of its bytes. A step is an instruction with operands, a branch,
//! or the start or end of a loop or of code that a branch skips. Missing operands of the right type, and
//! missing ends, are added. So all bytes encode functions that verify, and genomes that differ in one gene
//! encode functions that differ in one kind of place.
//!
//! All remaining values are stored to globals, since the optimiser would remove unused computations. The
//! function returns at once if its parameter is not 0.

use slotvm_bytecode::ValType::{F32, F64, I32, I64, V128};
use slotvm_bytecode::builder::{
    FuncId, FunctionBuilder, GlobalId, LabelId, LocalId, ModuleBuilder, TableId, TypeId,
};
use slotvm_bytecode::module::ConstExpr;
use slotvm_bytecode::op::Signature;
use slotvm_bytecode::{Imm, ImmKind, Module, Op, ValType};

/// Number of bytes of a gene.
pub const GENE: usize = 4;
/// Number of genes of the head.
pub const HEAD: usize = 2;
/// The name by which the function is exported.
pub const NAME: &str = "cost";

const TYPES: [ValType; 5] = [I32, I64, F32, F64, V128];
/// Sizes of functions, in bytes of code.
const SIZES: [usize; 4] = [2 << 10, 8 << 10, 16 << 10, 1 << 10];
/// Numbers of copies of the function in a module.
const COPIES: [usize; 4] = [1, 64, 1, 16];
/// Numbers of locals of each type.
const LOCALS: [usize; 8] = [1, 4, 16, 64, 200, 600, 2, 8];
/// Limit of the operand stack.
const STACK_MAX: usize = 600;
/// Limit of nested loops and skips.
const OPEN_MAX: usize = 300;
/// Number of parameters and results of the called functions.
const WIDTHS: [usize; 4] = [0, 6, 32, 200];

/// Settings under which a genome is compiled, and the number of copies of its function.
#[derive(Copy, Clone, Debug)]
pub struct Head {
    /// A number that chooses the slot mode.
    pub mode: u8,
    /// Bits that choose other settings.
    pub settings: u8,
    /// Number of copies of the function.
    pub n_copies: usize,
    func_bytes: usize,
    n_locals: usize,
    first_share: u8,
}

impl Head {
    /// The head of a genome.
    pub fn of(genome: &[u8]) -> Head {
        let byte = |at: usize| genome.get(at).copied().unwrap_or(0);
        Head {
            mode: byte(0),
            settings: byte(1),
            func_bytes: SIZES[byte(2) as usize % SIZES.len()],
            n_copies: COPIES[byte(3) as usize % COPIES.len()],
            n_locals: LOCALS[byte(4) as usize % LOCALS.len()],
            first_share: byte(5),
        }
    }
}

/// The module of a genome. It begins with the function of the genome, in as many copies as the head states.
///
/// # Panics
/// Panics if the module is not well-typed, which would be a bug in this file.
pub fn module(genome: &[u8]) -> Module {
    let head = Head::of(genome);
    let mut module = ModuleBuilder::new();
    let func = module.declare_func("", &[I32], &[I64]);
    module.export_func(NAME, func);
    let surroundings = Surroundings::new(&mut module);
    let mut f = module.define(func);
    let locals = TYPES.map(|ty| (0..head.n_locals).map(|_| f.local(ty)).collect());
    let leave = f.label_with_stack(&[]);
    f.local_get(LocalId(0)).br_if(leave);
    let mut writer =
        Writer { f, surroundings, locals, stack: vec![], open: vec![], n_bytes: 0, round: 0 };
    let steps = genome.get(HEAD * GENE..).unwrap_or(&[]);
    writer
        .phases(&head, &steps.as_chunks::<GENE>().0.iter().copied().map(Step).collect::<Vec<_>>());
    writer.close_all();
    writer.spill_all();
    let mut f = writer.f;
    f.bind(leave);
    f.i64_const(0).ret();
    f.finish().expect("genomes are well-typed");
    let mut module = module.finish().expect("genomes are well-typed");
    for _ in 1..head.n_copies {
        module.funcs.push(module.funcs[0].clone());
    }
    module
}

/// The entities that functions refer to.
struct Surroundings {
    globals: [GlobalId; 5],
    table: TableId,
    /// Functions that have equally many parameters and results of a type.
    callees: Vec<(ValType, usize, FuncId, TypeId)>,
}

impl Surroundings {
    fn new(module: &mut ModuleBuilder) -> Surroundings {
        module.memory("", 1, Some(2));
        let table = module.table("", ValType::FuncRef, 8, None);
        let globals = TYPES.map(|ty| module.global("", ty, true, zero(ty)));
        let mut callees = Vec::new();
        for ty in [I32, F64, V128] {
            for n in WIDTHS {
                let types = vec![ty; n];
                let func = module.declare_func("", &types, &types);
                let mut f = module.define(func);
                for i in 0..n as u32 {
                    f.local_get(LocalId(i));
                }
                f.ret();
                f.finish().expect("it returns what it takes");
                callees.push((ty, n, func, module.func_type(&types, &types)));
            }
        }
        Surroundings { globals, table, callees }
    }
}

fn zero(ty: ValType) -> ConstExpr {
    match ty {
        I32 => ConstExpr::i32(0),
        V128 => ConstExpr::v128(0),
        _ => ConstExpr::default().inst(const_op(ty), Imm(0)),
    }
}

fn const_op(ty: ValType) -> Op {
    match ty {
        I32 => Op::I32Const,
        I64 => Op::I64Const,
        F32 => Op::F32Const,
        _ => Op::F64Const,
    }
}

/// The number of a type.
fn index(ty: ValType) -> usize {
    TYPES.iter().position(|&t| t == ty).expect("operands have no references")
}

/// A gene after the head.
#[derive(Copy, Clone)]
struct Step([u8; GENE]);

/// The kind of step that begins another phase.
const BEGINS_PHASE: u8 = 31;

impl Step {
    fn kind(self) -> u8 {
        self.0[0] % 32
    }

    fn number(self) -> usize {
        usize::from(u16::from_le_bytes([self.0[1], self.0[2]]))
    }

    fn ty(self) -> ValType {
        TYPES[self.0[3] as usize % TYPES.len()]
    }

    /// A second choice from the same gene.
    fn variant(self) -> usize {
        self.0[3] as usize / TYPES.len()
    }
}

/// An open loop or skip. Branches go to `label`, where only the lowest operands are on the stack.
struct Open {
    label: LabelId,
    depth: usize,
    is_loop: bool,
}

struct Writer<'m> {
    f: FunctionBuilder<'m>,
    surroundings: Surroundings,
    locals: [Vec<LocalId>; 5],
    stack: Vec<ValType>,
    open: Vec<Open>,
    /// A lower bound of the bytes of code.
    n_bytes: usize,
    /// The number of times that the steps of the phase were repeated.
    round: usize,
}

impl<'m> Writer<'m> {
    fn phases(&mut self, head: &Head, steps: &[Step]) {
        let phases: Vec<&[Step]> = steps.split(|step| step.kind() == BEGINS_PHASE).collect();
        let begins = steps.iter().filter(|step| step.kind() == BEGINS_PHASE).map(|step| step.0[1]);
        let shares: Vec<usize> =
            [head.first_share].into_iter().chain(begins).map(|share| 1 + share as usize).collect();
        let (sum, mut end) = (shares.iter().sum::<usize>(), 0);
        for (phase, share) in phases.into_iter().zip(shares) {
            end += head.func_bytes * share / sum;
            self.round = 0;
            while self.n_bytes < end && !phase.is_empty() {
                let before = self.n_bytes;
                phase.iter().for_each(|&step| self.step(step));
                self.round += 1;
                if self.n_bytes == before {
                    break;
                }
            }
        }
    }

    fn step(&mut self, step: Step) {
        match step.kind() {
            0..=13 => self.operation(step),
            14 | 15 => {
                let local = self.local(step.ty(), step);
                self.get(step.ty(), local);
            }
            16 | 17 => self.set(step),
            18 => self.constant(step),
            19 | 20 => self.shuffle(step),
            21 => self.begin(true),
            22 => self.begin(false),
            23 => self.end(),
            24 => self.branch(step),
            25 => self.switch(step),
            26 => self.call(step),
            27 => self.global(step),
            28 => self.branch_keeping(step),
            29 => self.define(step),
            _ => drop(self.code(1).op(Op::Nop)),
        }
        while self.stack.len() > STACK_MAX.max(self.floor()) {
            self.drop_top();
        }
    }

    /// The builder, for an instruction of this many bytes.
    fn code(&mut self, n_bytes: usize) -> &mut FunctionBuilder<'m> {
        self.n_bytes += n_bytes;
        &mut self.f
    }

    /// The stack height below which operands belong to open loops and skips.
    fn floor(&self) -> usize {
        self.open.last().map_or(0, |open| open.depth)
    }

    /// The operands that steps may consume.
    fn free(&self) -> &[ValType] {
        &self.stack[self.floor()..]
    }

    fn local(&self, ty: ValType, step: Step) -> LocalId {
        let locals = &self.locals[index(ty)];
        let at = if step.variant().is_multiple_of(2) { self.round } else { step.number() };
        locals[at % locals.len()]
    }

    fn get(&mut self, ty: ValType, local: LocalId) {
        self.code(2).local_get(local);
        self.stack.push(ty);
    }

    fn drop_top(&mut self) {
        self.code(1).op(Op::Drop);
        self.stack.pop();
    }

    /// An instruction with fixed operands and results.
    fn operation(&mut self, step: Step) {
        let ops = operations();
        let op = ops[step.number() % ops.len()];
        let signature = op.signature().expect("operations have one");
        let way = step.variant();
        match way % 4 {
            // The operands on the stack, if they fit.
            0 | 1 if self.free().ends_with(signature.params) => {}
            // Copies of the topmost operand for all of its type; it may stay on the stack.
            0..=2 => {
                for (i, &ty) in signature.params.iter().enumerate() {
                    match self.free().last() == Some(&ty) {
                        true if i == 0 && way % 4 != 2 => {}
                        true => {
                            self.code(1).op(Op::Dup);
                            self.stack.push(ty);
                        }
                        false => self.get(ty, self.local(ty, step)),
                    }
                }
            }
            _ => signature.params.iter().for_each(|&ty| self.get(ty, self.local(ty, step))),
        }
        self.emit_operation(op, step);
        self.stack.truncate(self.stack.len() - signature.params.len());
        self.stack.extend(signature.results);
        if let &[ty] = signature.results
            && way / 4 % 3 == 2
        {
            let local = self.local(ty, step);
            self.code(2).local_set(local);
            self.stack.pop();
        }
    }

    fn emit_operation(&mut self, op: Op, step: Step) {
        let lanes = op.n_lanes().unwrap_or(1);
        let lane = u32::from(step.0[2]) % lanes;
        let offset = if step.variant().is_multiple_of(3) { self.round as u32 * 8 } else { 0 };
        let n_bytes = 1 + usize::from(op.code() > 0xff);
        match op.imm_kind() {
            ImmKind::Lanes => {
                let bytes = u128::from_le_bytes(std::array::from_fn(|i| {
                    step.0[2].wrapping_add(i as u8 * 3) % 32
                }));
                self.code(n_bytes + 16).vector(op, bytes);
            }
            ImmKind::Lane => drop(self.code(n_bytes + 1).inst(op, Imm::lane(lane))),
            ImmKind::MemLane => {
                self.code(n_bytes + 3).inst(op, Imm::mem_lane(offset, lane));
            }
            ImmKind::Mem => drop(self.code(n_bytes + 2).inst(op, Imm::mem(offset))),
            ImmKind::Indexed => {
                self.code(n_bytes + 3).inst(op, Imm::indexed(offset, lane % 4));
            }
            ImmKind::Memory | ImmKind::MemoryMemory => drop(self.code(n_bytes + 1).memory(op)),
            _ => drop(self.code(n_bytes).op(op)),
        }
    }

    fn set(&mut self, step: Step) {
        let Some(&ty) = self.free().last() else { return };
        let local = self.local(ty, step);
        if step.kind() == 16 {
            self.code(2).local_set(local);
            self.stack.pop();
        } else {
            self.code(2).local_tee(local);
        }
    }

    fn constant(&mut self, step: Step) {
        let ty = step.ty();
        let value = match step.variant() % 4 {
            0 => step.number() as u64 % 64,
            1 => self.round as u64,
            2 => (self.round as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            _ => 1 << (step.number() % 64),
        };
        match ty {
            V128 => drop(self.code(18).v128_const(u128::from(value) << 32 | u128::from(value))),
            I64 | F64 => {
                self.code(if value < 64 { 2 } else { 10 }).inst(const_op(ty), Imm(value));
            }
            I32 => drop(self.code(3).i32_const(value as i32)),
            _ => drop(self.code(5).inst(const_op(ty), Imm(value & 0xffff_ffff))),
        }
        self.stack.push(ty);
    }

    /// Stack shuffles, drops and selects.
    fn shuffle(&mut self, step: Step) {
        let n = self.stack.len();
        let n_free = self.free().len();
        match (step.number() % 6, n_free) {
            (0 | 1, 1..) => {
                self.code(1).op(Op::Dup);
                self.stack.push(self.stack[n - 1]);
            }
            (2, 2..) => {
                self.code(1).op(Op::Swap);
                self.stack.swap(n - 1, n - 2);
            }
            (3, 2..) => {
                self.code(1).op(Op::Over);
                self.stack.push(self.stack[n - 2]);
            }
            (4, 3..) => {
                self.code(1).op(Op::Rot);
                self.stack[n - 3..].rotate_left(1);
            }
            (5, 2..) if self.stack[n - 1] == self.stack[n - 2] => {
                let local = self.local(I32, step);
                self.code(3).local_get(local).op(Op::Select);
                self.stack.pop();
            }
            (_, 1..) if step.variant() == 0 => self.drop_top(),
            _ => {}
        }
    }

    fn begin(&mut self, is_loop: bool) {
        if self.open.len() >= OPEN_MAX {
            return;
        }
        let label = self.f.label_with_stack(&self.stack.clone());
        self.open.push(Open { label, depth: self.stack.len(), is_loop });
        if is_loop {
            self.code(4).bind(label);
        } else {
            let local = self.locals[0][self.round % self.locals[0].len()];
            self.code(6).local_get(local).br_if(label);
        }
    }

    fn end(&mut self) {
        let Some(Open { label, depth, is_loop }) = self.open.pop() else { return };
        while self.stack.len() > depth {
            self.store_top();
        }
        if is_loop {
            let local = self.locals[0][self.round % self.locals[0].len()];
            self.code(4).local_get(local).br_if(label);
        } else {
            self.code(2).bind(label);
        }
    }

    fn target(&self, step: Step) -> Option<(LabelId, usize)> {
        let n = self.open.len();
        let open = &self.open[n.checked_sub(1 + step.number() % n.max(1))?];
        Some((open.label, open.depth))
    }

    /// A conditional branch to an open loop or skip, if the stack holds no other operands.
    fn branch(&mut self, step: Step) {
        let Some((label, depth)) = self.target(step) else { return };
        if depth == self.stack.len() {
            let local = self.local(I32, step);
            self.code(4).local_get(local).br_if(label);
        } else {
            self.branch_keeping(step);
        }
    }

    /// A branch, conditional or not, that keeps the topmost operands if they fit.
    fn branch_keeping(&mut self, step: Step) {
        let Some((label, depth)) = self.target(step) else { return };
        let n = depth.min(step.variant() % 8 * 8);
        let n = if self.stack.ends_with(&self.stack[depth - n..depth]) { n } else { 0 };
        let next = self.f.label_with_stack(&self.stack.clone());
        let local = self.local(I32, step);
        self.code(11).local_get(local).br_if(next).br_keep(label, n as u32).bind(next);
    }

    fn switch(&mut self, step: Step) {
        let depth = self.stack.len();
        let here = self.open.iter().rev().take_while(|open| open.depth == depth);
        let mut labels: Vec<LabelId> = here.map(|open| open.label).take(32).collect();
        let next = self.f.label_with_stack(&self.stack.clone());
        labels.push(next);
        let n_targets = 1 + step.number() % 500;
        let targets: Vec<LabelId> = labels.iter().copied().cycle().take(n_targets).collect();
        let local = self.local(I32, step);
        self.code(6 + n_targets).local_get(local).br_table(&targets, next).bind(next);
    }

    fn call(&mut self, step: Step) {
        let callees = &self.surroundings.callees;
        let (ty, n, func, sig) = callees[step.number() % callees.len()];
        let table = self.surroundings.table;
        while !self.free().ends_with(&vec![ty; n]) {
            self.get(ty, self.local(ty, step));
        }
        if step.variant().is_multiple_of(2) {
            self.code(2).call(func);
        } else {
            let local = self.local(I32, step);
            self.code(5).local_get(local).call_indirect(sig, table);
        }
    }

    fn global(&mut self, step: Step) {
        if step.variant().is_multiple_of(2) {
            let global = self.surroundings.globals[index(step.ty())];
            self.code(2).global_get(global);
            self.stack.push(step.ty());
        } else if !self.free().is_empty() {
            self.store_top();
        }
    }

    /// Assigns a distinct value to a local.
    fn define(&mut self, step: Step) {
        let ty = step.ty();
        let local = self.local(ty, step);
        let global = self.surroundings.globals[index(ty)];
        self.code(4).global_get(global).local_set(local);
    }

    fn store_top(&mut self) {
        let ty = self.stack.pop().expect("the caller looks");
        let global = self.surroundings.globals[index(ty)];
        self.code(2).global_set(global);
    }

    fn close_all(&mut self) {
        while !self.open.is_empty() {
            self.end();
        }
    }

    fn spill_all(&mut self) {
        while !self.stack.is_empty() {
            self.store_top();
        }
        for ty in TYPES {
            let global = self.surroundings.globals[index(ty)];
            for &local in &self.locals[index(ty)] {
                self.f.local_get(local).global_set(global);
            }
        }
    }
}

/// Instructions whose opcode determines operands and results.
fn operations() -> &'static [Op] {
    static OPERATIONS: std::sync::LazyLock<Vec<Op>> = std::sync::LazyLock::new(|| {
        let is_one = |op: &&Op| {
            let kinds = [
                ImmKind::None,
                ImmKind::Lanes,
                ImmKind::Lane,
                ImmKind::Mem,
                ImmKind::MemLane,
                ImmKind::Indexed,
                ImmKind::Memory,
                ImmKind::MemoryMemory,
            ];
            let is_of_types = |s: &Signature| {
                let mut types = s.params.iter().chain(s.results);
                !s.params.is_empty() && types.all(|ty| TYPES.contains(ty))
            };
            kinds.contains(&op.imm_kind()) && op.signature().as_ref().is_some_and(is_of_types)
        };
        Op::ALL.iter().filter(is_one).copied().collect()
    });
    &OPERATIONS
}
