//! Generates large functions, with any number of operations and locals, for tests and benchmarks of size.
//!
//! A function is a sequence of statements on its locals and the memory, in nested ifs and loops, as a simple
//! compiler would emit it. An irreducible one also has branches into the middle of loops, from just before
//! the loop and from far above. Every local is written in several places and read at the end. So all slots
//! are live almost everywhere, the hard case for promotion and for the code generator.
//!
//! No operation traps, and every function ends soon: a loop counts down from a small number, in a local
//! that loops at the same depth share. A branch into a loop skips the
//! start of the count, and continues with what an earlier loop has left in the local.

use slotvm_bytecode::ValType::{F64, I32, I64};
use slotvm_bytecode::builder::{FunctionBuilder, LabelId, LocalId, ModuleBuilder};
use slotvm_bytecode::{Imm, Module, Op, ValType};

use crate::choices::{Choices, random_bytes};

/// The name by which the function is exported; it takes two `i64` and returns one.
pub const NAME: &str = "large";
/// The minimum number of locals of a function.
pub const LOCALS_MIN: usize = 16;

/// Limit of the nesting of ifs and loops.
const NESTING_MAX: usize = 8;
/// Limit of the nesting of loops.
const LOOPS_MAX: usize = 4;
/// Number of iterations of loops.
const ROUNDS_MAX: usize = 3;
/// The addresses of 8 bytes inside of the memory's page.
const ADDRESS_MASK: i32 = 0xfff8;

/// The parameters of a generated function.
#[derive(Copy, Clone, Debug)]
pub struct Plan {
    /// Its control flow.
    pub control: Control,
    /// The number of its instructions, without the few that end it.
    pub n_ops: usize,
    /// The number of its locals, parameters included; at least [`LOCALS_MIN`].
    pub n_locals: usize,
    /// The seed of all other choices.
    pub seed: u64,
}

/// The control flow of a function.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// Ifs and loops.
    Structured,
    /// Ifs, loops and branches into loops.
    Irreducible,
}

impl Control {
    /// Both kinds.
    pub const ALL: [Control; 2] = [Control::Structured, Control::Irreducible];

    /// The name of the kind.
    pub const fn name(self) -> &'static str {
        match self {
            Control::Structured => "structured",
            Control::Irreducible => "irreducible",
        }
    }
}

/// A module with one such function and a memory, both exported.
///
/// # Panics
/// Panics if there are too few locals.
pub fn module(plan: Plan) -> Module {
    assert!(plan.n_locals >= LOCALS_MIN, "a large function has at least {LOCALS_MIN} locals");
    let mut module = ModuleBuilder::new();
    let memory = module.memory("memory", 1, Some(1));
    module.export_memory("memory", memory);
    let func = module.declare_func(NAME, &[I64, I64], &[I64]);
    module.export_func(NAME, func);
    let bytes = random_bytes(plan.seed, 4 * plan.n_ops);
    let mut writer = Writer::new(module.define(func), plan, &bytes);
    writer.body(plan.n_ops);
    writer.finish();
    module.finish().expect("large functions are well-typed")
}

/// An open if or loop.
enum Open {
    If {
        end: LabelId,
    },
    IfElse {
        otherwise: LabelId,
        end: LabelId,
    },
    /// Tests at the top.
    Loop {
        head: LabelId,
        exit: LabelId,
    },
    /// Tests at the bottom; these branches go into its middle.
    Entered {
        head: LabelId,
        middle: Vec<LabelId>,
    },
}

struct Writer<'m, 'c> {
    f: FunctionBuilder<'m>,
    choices: Choices<'c>,
    control: Control,
    /// Number of instructions so far.
    n_ops: usize,
    open: Vec<Open>,
    /// Number of open loops.
    n_loops: usize,
    /// The target of an earlier branch, to be placed in the middle of the next loop that can have one.
    far: Option<LabelId>,
    counters: Vec<LocalId>,
    i64s: Vec<LocalId>,
    i32s: Vec<LocalId>,
    f64s: Vec<LocalId>,
}

impl<'m, 'c> Writer<'m, 'c> {
    fn new(mut f: FunctionBuilder<'m>, plan: Plan, bytes: &'c [u8]) -> Writer<'m, 'c> {
        let counters: Vec<LocalId> = (0..LOOPS_MAX).map(|_| f.local(I32)).collect();
        let (mut i64s, mut i32s, mut f64s) = (vec![f.param(0), f.param(1)], vec![], vec![]);
        for i in f.locals().len()..plan.n_locals {
            match i % 4 {
                0 => f64s.push(f.local(F64)),
                1 => i32s.push(f.local(I32)),
                _ => i64s.push(f.local(I64)),
            }
        }
        Writer {
            f,
            choices: Choices::new(bytes),
            control: plan.control,
            n_ops: 0,
            open: Vec::new(),
            n_loops: 0,
            far: None,
            counters,
            i64s,
            i32s,
            f64s,
        }
    }

    fn body(&mut self, n_ops: usize) {
        while self.n_ops < n_ops {
            match self.choices.below(16) {
                0..=8 => self.statement(),
                9 => self.branch_far(),
                10..=12 => self.begin(),
                _ => self.end(),
            }
        }
    }

    /// Ends all open ifs and loops, and returns a number that depends on every local.
    fn finish(mut self) {
        while !self.open.is_empty() {
            self.end();
        }
        if let Some(far) = self.far {
            self.f.bind(far);
        }
        self.i64_const(1);
        for (i, ty) in self.f.locals().to_vec().into_iter().enumerate() {
            self.i64_const(31).op(Op::I64Mul).get(LocalId(i as u32));
            match ty {
                I32 => self.op(Op::I64ExtendI32U),
                F64 => self.op(Op::I64ReinterpretF64),
                _ => &mut self,
            }
            .op(Op::I64Add);
        }
        self.f.ret();
        self.f.finish().expect("large functions are well-typed");
    }

    // --- Instructions ------------------------------------------------------------------------------

    fn inst(&mut self, op: Op, imm: Imm) -> &mut Self {
        self.f.inst(op, imm);
        self.n_ops += 1;
        self
    }

    fn op(&mut self, op: Op) -> &mut Self {
        self.inst(op, Imm::NONE)
    }

    fn get(&mut self, local: LocalId) -> &mut Self {
        self.inst(Op::LocalGet, Imm::index(local.0))
    }

    fn set(&mut self, local: LocalId) -> &mut Self {
        self.inst(Op::LocalSet, Imm::index(local.0))
    }

    fn i32_const(&mut self, value: i32) -> &mut Self {
        self.inst(Op::I32Const, Imm::i32(value))
    }

    fn i64_const(&mut self, value: i64) -> &mut Self {
        self.inst(Op::I64Const, Imm::i64(value))
    }

    fn f64_const(&mut self, value: f64) -> &mut Self {
        self.f.f64_const(value);
        self.n_ops += 1;
        self
    }

    fn br(&mut self, label: LabelId) {
        self.f.br(label);
        self.n_ops += 1;
    }

    fn br_if(&mut self, label: LabelId) {
        self.f.br_if(label);
        self.n_ops += 1;
    }

    // --- Statements --------------------------------------------------------------------------------

    fn any(&mut self, ty: ValType) -> LocalId {
        let locals = match ty {
            I64 => &self.i64s,
            I32 => &self.i32s,
            _ => &self.f64s,
        };
        self.choices.pick(locals)
    }

    fn statement(&mut self) {
        let (x, y, z) = (self.any(I64), self.any(I64), self.any(I64));
        let (i, j) = (self.any(I32), self.any(I32));
        match self.choices.below(10) {
            0..=2 => {
                let op = self.choices.pick(&[Op::I64Add, Op::I64Sub, Op::I64Mul, Op::I64Xor]);
                self.get(x).get(y).op(op).set(z);
            }
            3 => {
                let op = self.choices.pick(&[Op::I64Rotl, Op::I64ShrS, Op::I64DivS, Op::I64RemU]);
                self.get(x).i64_const(7).op(op).get(y).op(Op::I64Xor).set(z);
            }
            4 => {
                let op = self.choices.pick(&[Op::I32Add, Op::I32Mul, Op::I32Or, Op::I32Shl]);
                self.get(i).i32_const(5).op(op).set(j);
            }
            5 => {
                let (f, g, h) = (self.any(F64), self.any(F64), self.any(F64));
                // Absolute values do not grow, so that there are no NaNs.
                self.get(f).f64_const(0.5).op(Op::F64Mul);
                self.get(g).f64_const(0.25).op(Op::F64Mul).op(Op::F64Sub).set(h);
            }
            6 => {
                let f = self.any(F64);
                self.get(x).op(Op::I32WrapI64).set(i);
                self.get(j).op(Op::F64ConvertI32S).set(f);
            }
            7 => {
                let f = self.any(F64);
                self.get(f).op(Op::I64TruncSatF64S).get(x).op(Op::I64Add).set(y);
            }
            8 => {
                self.address(i).inst(Op::I64Load, Imm::mem(0)).set(x);
            }
            _ => {
                self.address(i).get(y).inst(Op::I64Store, Imm::mem(0));
            }
        }
    }

    fn address(&mut self, i: LocalId) -> &mut Self {
        self.get(i).i32_const(ADDRESS_MASK).op(Op::I32And)
    }

    fn condition(&mut self) {
        match self.choices.below(3) {
            0 => {
                let i = self.any(I32);
                self.get(i).i32_const(2).op(Op::I32And);
            }
            1 => {
                let (x, y) = (self.any(I64), self.any(I64));
                self.get(x).get(y).op(Op::I64LtS);
            }
            _ => {
                let f = self.any(F64);
                self.get(f).f64_const(1.5).op(Op::F64Gt);
            }
        }
    }

    // --- Ifs and loops -----------------------------------------------------------------------------

    fn begin(&mut self) {
        if self.open.len() == NESTING_MAX {
            return self.statement();
        }
        match self.choices.below(4) {
            2 if self.n_loops < LOOPS_MAX => self.begin_loop(),
            1 => {
                self.condition();
                let (otherwise, end) = (self.f.label(), self.f.label());
                self.br_if(otherwise);
                self.open.push(Open::IfElse { otherwise, end });
            }
            _ => {
                self.condition();
                let end = self.f.label();
                self.br_if(end);
                self.open.push(Open::If { end });
            }
        }
    }

    fn begin_loop(&mut self) {
        let counter = self.counters[self.n_loops];
        let rounds = 1 + self.choices.below(ROUNDS_MAX);
        self.i32_const(rounds as i32).set(counter);
        let head = self.f.label();
        if self.control == Control::Irreducible && self.choices.percent(50) {
            let middle = self.f.label();
            self.condition();
            self.br_if(middle);
            self.f.bind(head);
            let middle = self.far.take().into_iter().chain([middle]).collect();
            self.open.push(Open::Entered { head, middle });
        } else {
            let exit = self.f.label();
            self.f.bind(head);
            self.get(counter).i32_const(0).op(Op::I32LeS).br_if(exit);
            self.open.push(Open::Loop { head, exit });
        }
        self.n_loops += 1;
    }

    /// Branches into the middle of a later loop, across any code between.
    fn branch_far(&mut self) {
        if self.control == Control::Structured || self.far.is_some() {
            return self.statement();
        }
        let far = self.f.label();
        self.condition();
        self.br_if(far);
        self.far = Some(far);
    }

    /// Ends the innermost open if or loop, or its first part.
    fn end(&mut self) {
        match self.open.pop() {
            None => self.statement(),
            Some(Open::If { end }) => {
                self.f.bind(end);
            }
            Some(Open::IfElse { otherwise, end }) => {
                self.br(end);
                self.f.bind(otherwise);
                self.open.push(Open::If { end });
            }
            Some(Open::Loop { head, exit }) => {
                self.count_down();
                self.br(head);
                self.f.bind(exit);
            }
            Some(Open::Entered { head, middle }) if middle.is_empty() => {
                let counter = self.count_down();
                self.get(counter).i32_const(0).op(Op::I32GtS).br_if(head);
            }
            Some(Open::Entered { head, middle }) => {
                for label in middle {
                    self.f.bind(label);
                }
                self.open.push(Open::Entered { head, middle: Vec::new() });
            }
        }
    }

    /// Closes the innermost loop, and decrements its counter. Returns the counter.
    fn count_down(&mut self) -> LocalId {
        self.n_loops -= 1;
        let counter = self.counters[self.n_loops];
        self.get(counter).i32_const(1).op(Op::I32Sub).set(counter);
        counter
    }
}
