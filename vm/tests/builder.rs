//! Modules that the builder accepts verify, whatever a front end does.

use proptest::collection::vec;
use proptest::prelude::*;
use slotvm_bytecode::builder::{BuildError, FunctionBuilder, LabelId, LocalId, ModuleBuilder};
use slotvm_bytecode::module::ConstExpr;
use slotvm_bytecode::{Imm, ImmKind, Module, Op, ValType, decode, encode, verify};

/// A step of a front end. Numbers are taken modulo the number of existing items.
#[derive(Clone, Debug)]
enum Step {
    /// An instruction with its immediates.
    Inst(Op, u32, u32),
    Local(ValType),
    Label,
    Bind(u32),
    Br(u32),
    BrIf(u32),
    BrTable(Vec<u32>, u32),
    Line(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let label = 0..6u32;
    prop_oneof![
        20 => (prop::sample::select(Op::ALL), 0..4u32, 0..3u32).prop_map(|(op, a, b)| Step::Inst(op, a, b)),
        1 => prop::sample::select(&ValType::ALL[..]).prop_map(Step::Local),
        2 => Just(Step::Label),
        3 => label.clone().prop_map(Step::Bind),
        2 => label.clone().prop_map(Step::Br),
        3 => label.clone().prop_map(Step::BrIf),
        1 => (vec(label.clone(), 0..5), label).prop_map(|(l, d)| Step::BrTable(l, d)),
        1 => (0..4u32).prop_map(Step::Line),
    ]
}

/// Returns a module of two functions `(i64) -> (i32)`, the second with this code.
fn module(emit: impl FnOnce(&mut FunctionBuilder<'_>)) -> Result<Module, BuildError> {
    let mut m = ModuleBuilder::new();
    m.memory("", 1, None);
    m.frame_stack(0, 1024);
    let table = m.table("", ValType::FuncRef, 1, None);
    m.global("", ValType::I64, true, ConstExpr::i64(0));
    m.passive_data("", "data");
    let first = m.declare_func("first", &[ValType::I64], &[ValType::I32]);
    let second = m.declare_func("second", &[ValType::I64], &[ValType::I32]);
    m.passive_elem("", &[first]);
    m.elem("", table, ConstExpr::i32(0), &[second]);
    let mut f = m.define(first);
    f.i32_const(1).ret();
    f.finish().expect("no mistakes");
    let mut f = m.define(second);
    emit(&mut f);
    let _ = f.finish();
    m.finish()
}

fn imm(op: Op, a: u32, b: u32) -> Imm {
    match op.imm_kind() {
        ImmKind::RefType => Imm::ref_type([ValType::FuncRef, ValType::ExternRef][a as usize % 2]),
        ImmKind::Indexed => Imm::indexed(a, b),
        ImmKind::Mem => Imm::mem(a),
        ImmKind::MemLane => Imm::mem_lane(a, b % 16),
        _ => Imm::pair(a, if op.imm_kind() == ImmKind::I64 { b } else { 0 }),
    }
}

/// Applies the steps unchanged, which soon is a mistake.
fn careless(f: &mut FunctionBuilder<'_>, steps: &[Step]) {
    for step in steps {
        match *step {
            Step::Inst(op, a, b) => {
                match op.imm_kind() {
                    // Some of the lanes do not exist.
                    ImmKind::V128 | ImmKind::Lanes => f.vector(op, a.into()),
                    _ => f.inst(op, imm(op, a, b)),
                };
            }
            Step::Local(ty) => {
                f.local(ty);
            }
            Step::Label => {
                f.label();
            }
            Step::Bind(l) => {
                f.bind(LabelId(l));
            }
            Step::Br(l) => {
                f.br(LabelId(l));
            }
            Step::BrIf(l) => {
                f.br_if(LabelId(l));
            }
            Step::BrTable(ref labels, d) => {
                let labels: Vec<LabelId> = labels.iter().map(|&l| LabelId(l)).collect();
                f.br_table(&labels, LabelId(d));
            }
            Step::Line(line) => {
                f.line(line);
            }
        }
    }
}

/// A front end that looks at the operand stack and makes no mistakes.
struct Careful<'f, 'm> {
    f: &'f mut FunctionBuilder<'m>,
    labels: Vec<LabelId>,
}

impl Careful<'_, '_> {
    fn constant(&mut self, ty: ValType) {
        match ty {
            ValType::I32 => self.f.i32_const(0),
            ValType::I64 => self.f.i64_const(-1),
            ValType::F32 => self.f.f32_const(1.0),
            ValType::F64 => self.f.f64_const(f64::NAN),
            ValType::V128 => self.f.v128_const(3),
            ty => self.f.ref_null(ty),
        };
    }

    fn constants(&mut self, types: &[ValType]) {
        for &ty in types {
            self.constant(ty);
        }
    }

    /// Makes the operand stack exactly these types.
    fn settle(&mut self, types: &[ValType]) {
        while self.f.depth() > 0 {
            self.f.op(Op::Drop);
        }
        self.constants(types);
    }

    /// Returns the types at a label, deepest first.
    fn stack_at(&self, label: LabelId) -> Option<Vec<ValType>> {
        let mut types: Vec<ValType> = self.f.operands_at(label)?.collect();
        types.reverse();
        Some(types)
    }

    fn label(&mut self, number: u32) -> LabelId {
        if self.labels.is_empty() {
            self.labels.push(self.f.label());
        }
        self.labels[number as usize % self.labels.len()]
    }

    /// Makes the operand stack match the label, if its stack is known.
    fn settle_for(&mut self, label: LabelId) {
        if let Some(types) = self.stack_at(label) {
            self.settle(&types);
        }
    }

    /// Binds a label in unreachable code: code after a terminator starts at a label.
    fn revive(&mut self) {
        if !self.f.is_reachable() {
            let label = self.f.label();
            self.f.bind_with_stack(label, &[ValType::I64, ValType::F32]);
            self.labels.push(label);
        }
    }

    fn inst(&mut self, op: Op, a: u32, b: u32) {
        if let Some(signature) = op.signature() {
            self.constants(signature.params);
            // There is one entity of each kind; only constants can have any value.
            let free =
                matches!(op.imm_kind(), ImmKind::I32 | ImmKind::I64 | ImmKind::F32 | ImmKind::F64)
                    || op.access().is_some();
            match op.imm_kind() {
                ImmKind::V128 => self.f.vector(op, u128::from(a) << 64 | u128::from(b)),
                ImmKind::Lanes => self.f.vector(op, u128::from(a) & 0x1f1f),
                _ => self.f.inst(op, if free { imm(op, a, b) } else { Imm::NONE }),
            };
            return;
        }
        let locals = self.f.locals();
        let local = LocalId(a % locals.len() as u32);
        let ty = locals[local.0 as usize];
        match op {
            Op::Drop | Op::Dup | Op::Swap | Op::Over | Op::Rot => {
                self.constants(&[ty, ValType::I64, ValType::ExternRef][..]);
                self.f.op(op);
            }
            Op::Select => {
                self.constants(&[ty, ty, ValType::I32]);
                self.f.op(op);
            }
            Op::LocalGet => {
                self.f.local_get(local);
            }
            Op::LocalSet | Op::LocalTee => {
                self.constant(ty);
                self.f.inst(op, Imm::index(local.0));
            }
            Op::LocalAddr if ty.is_num() && ty != ValType::V128 => {
                self.f.local_addr(local);
            }
            Op::GlobalGet | Op::GlobalSet => {
                self.constant(ValType::I64);
                self.f.inst(op, Imm::NONE);
            }
            Op::RefNull | Op::RefIsNull => {
                self.f.inst(Op::RefNull, imm(Op::RefNull, a, b)).op(Op::RefIsNull);
            }
            Op::TableGet => {
                self.constants(&[ValType::I32]);
                self.f.inst(op, Imm::NONE);
            }
            Op::TableSet => {
                self.constants(&[ValType::I32, ValType::FuncRef]);
                self.f.inst(op, Imm::NONE);
            }
            Op::TableGrow => {
                self.constants(&[ValType::FuncRef, ValType::I32]);
                self.f.inst(op, Imm::NONE);
            }
            Op::TableFill => {
                self.constants(&[ValType::I32, ValType::FuncRef, ValType::I32]);
                self.f.inst(op, Imm::NONE);
            }
            Op::Call | Op::CallIndirect => {
                self.constants(&[ValType::I64, ValType::I32][..1 + usize::from(op != Op::Call)]);
                self.f.inst(op, Imm::NONE);
            }
            Op::ReturnCall | Op::ReturnCallIndirect => {
                self.settle(&[ValType::I64, ValType::I32][..1 + usize::from(op != Op::ReturnCall)]);
                self.f.inst(op, Imm::NONE);
            }
            Op::Return => {
                self.settle(&[ValType::I32]);
                self.f.ret();
            }
            Op::Unreachable => {
                self.f.unreachable();
            }
            _ => {}
        }
    }

    fn step(&mut self, step: &Step) {
        self.revive();
        match *step {
            Step::Inst(op, a, b) => self.inst(op, a, b),
            Step::Local(ty) => {
                self.f.local(ty);
            }
            Step::Label => self.labels.push(self.f.label()),
            Step::Bind(l) => {
                let label = self.label(l);
                if !self.f.is_bound(label) {
                    self.settle_for(label);
                    self.f.bind(label);
                }
            }
            Step::Br(l) => {
                let label = self.label(l);
                self.settle_for(label);
                self.f.br(label);
            }
            Step::BrIf(l) => {
                let label = self.label(l);
                self.settle_for(label);
                self.f.i32_const(1).br_if(label);
            }
            Step::BrTable(ref labels, d) => {
                let default = self.label(d);
                self.settle_for(default);
                let stack: Vec<ValType> = self.f.operands().collect();
                let mut fitting: Vec<LabelId> = labels.iter().map(|&l| self.label(l)).collect();
                fitting.retain(|&label| {
                    self.f.operands_at(label).is_none_or(|types| types.eq(stack.iter().copied()))
                });
                self.f.i32_const(1).br_table(&fitting, default);
            }
            Step::Line(line) => {
                self.f.line(line);
            }
        }
    }

    /// Binds the unbound labels, and ends the code.
    fn end(&mut self) {
        for i in 0..self.labels.len() {
            self.revive();
            if !self.f.is_bound(self.labels[i]) {
                self.settle_for(self.labels[i]);
                self.f.bind(self.labels[i]);
            }
        }
        self.revive();
        self.f.unreachable();
    }
}

proptest! {
    #[test]
    fn careful_front_ends_make_valid_modules(steps in vec(step(), 0..120)) {
        let module = module(|f| {
            let mut front_end = Careful { f, labels: Vec::new() };
            for step in &steps {
                front_end.step(step);
            }
            front_end.end();
        });
        let module = module.expect("no mistakes");
        prop_assert_eq!(decode(&encode(&module)), Ok(module.clone()));
        prop_assert_eq!(verify(module).err(), None);
    }

    #[test]
    fn careless_front_ends_get_an_error_or_a_valid_module(steps in vec(step(), 0..12)) {
        if let Ok(module) = module(|f| careless(f, &steps)) {
            prop_assert_eq!(verify(module).err(), None);
        }
    }
}
