//! Values of a loop that change by the same amount in each round, modulo 2^32.
//!
//! Such a value is a phi of the header that a constant or invariant amount is added to, or a sum, difference, product or
//! shift of such values. A pure operation on values that stay the same stays the same. Values are visited in the order
//! of the code, so none is visited before its operands.

use slotvm_bytecode::{Effect, Op};

use crate::ir::Function;
use crate::ir::entity::{Block, Edge, Inst, Value};
use crate::ir::irop::Opcode;

/// The amount that is added to a value in each round, modulo 2^32.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Step {
    Constant(i32),
    /// The product of an invariant value and a constant other than zero.
    Times(Value, i32),
}

impl Step {
    pub(super) const NONE: Step = Step::Constant(0);

    /// The invariant value that it depends on.
    pub(super) fn factor(self) -> Option<Value> {
        match self {
            Step::Times(factor, _) => Some(factor),
            Step::Constant(_) => None,
        }
    }

    fn plus(self, other: Step) -> Option<Step> {
        match (self, other) {
            (Step::Constant(a), Step::Constant(b)) => Some(Step::Constant(a.wrapping_add(b))),
            (step, Step::NONE) | (Step::NONE, step) => Some(step),
            _ => None,
        }
    }

    fn times(self, factor: i32) -> Option<Step> {
        match self {
            Step::Constant(a) => Some(Step::Constant(a.wrapping_mul(factor))),
            Step::Times(value, a) => match a.checked_mul(factor)? {
                0 => Some(Step::NONE),
                product => Some(Step::Times(value, product)),
            },
        }
    }
}

/// An operand of an access: a value and its step.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Affine {
    pub(super) value: Value,
    pub(super) step: Step,
}

/// Definitions and steps of the values of a function. Steps are found one loop after the other; no value is in two of
/// the loops.
pub(super) struct Values {
    /// The instruction that defines each value, unless it is a parameter.
    defs: Vec<Option<Inst>>,
    /// The number of the loop that each value was found in, or 0.
    loop_of: Vec<u32>,
    /// The number of the loop at hand.
    loop_number: u32,
    /// The steps of the values of loops, where they are known.
    steps: Vec<Option<Step>>,
    /// Whether the first round of a value's loop is asked for.
    is_needed: Vec<bool>,
}

impl Values {
    /// Nothing is known of any loop yet.
    pub(super) fn new(f: &Function) -> Values {
        let n = f.n_values();
        let mut defs = vec![None; n];
        for &inst in &f.layout {
            f.results(inst).for_each(|result| defs[result.index()] = Some(inst));
        }
        Values {
            defs,
            loop_of: vec![0; n],
            loop_number: 0,
            steps: vec![None; n],
            is_needed: vec![false; n],
        }
    }

    /// Goes over to a loop, of which `latch` is the only edge back to the header.
    pub(super) fn analyse(&mut self, f: &Function, blocks: &[Block], latch: Edge) {
        self.loop_number += 1;
        for &block in blocks {
            let results = f.insts(block).iter().flat_map(|&inst| f.results(inst));
            for value in f.params(block).iter().copied().chain(results) {
                self.loop_of[value.index()] = self.loop_number;
            }
        }
        for (&param, &next) in f.params(blocks[0]).iter().zip(f.edge_args(latch)) {
            self.steps[param.index()] = self.step_of_phi(f, param, next);
        }
        for &inst in blocks.iter().flat_map(|&block| f.insts(block)) {
            if let Opcode::Op(op) = f.opcode(inst)
                && f.results(inst).len() == 1
            {
                self.steps[f.result(inst).index()] = self.step_of_inst(f, op, inst);
            }
        }
    }

    /// Whether a value is defined in the loop at hand.
    fn is_inside(&self, value: Value) -> bool {
        self.loop_of[value.index()] == self.loop_number
    }

    /// The amount that is added to a value in each round, if it is known.
    pub(super) fn step(&self, value: Value) -> Option<Step> {
        if self.is_inside(value) { self.steps[value.index()] } else { Some(Step::NONE) }
    }

    /// An operand of an access.
    pub(super) fn affine(&self, value: Value) -> Option<Affine> {
        Some(Affine { value, step: self.step(value)? })
    }

    /// The operation that defines a value, unless it is a parameter.
    pub(super) fn op(&self, f: &Function, value: Value) -> Option<(Op, Inst)> {
        let inst = self.defs[value.index()]?;
        let Opcode::Op(op) = f.opcode(inst) else { return None };
        Some((op, inst))
    }

    fn constant(&self, f: &Function, value: Value) -> Option<i32> {
        let (op, inst) = self.op(f, value)?;
        (op == Op::I32Const).then(|| f.imm(inst).low() as i32)
    }

    /// The step of a phi of the header, which is `next` in the next round.
    fn step_of_phi(&self, f: &Function, param: Value, next: Value) -> Option<Step> {
        if next == param {
            return Some(Step::NONE);
        }
        let (op, inst) = self.op(f, next)?;
        let &[a, b] = f.operands(inst) else { return None };
        match op {
            Op::I32Add if a == param => self.amount(f, b),
            Op::I32Add if b == param => self.amount(f, a),
            Op::I32Sub if a == param => self.amount(f, b)?.times(-1),
            _ => None,
        }
    }

    /// A constant or invariant value as a step.
    fn amount(&self, f: &Function, value: Value) -> Option<Step> {
        match self.constant(f, value) {
            Some(constant) => Some(Step::Constant(constant)),
            None => (!self.is_inside(value)).then_some(Step::Times(value, 1)),
        }
    }

    fn step_of_inst(&self, f: &Function, op: Op, inst: Inst) -> Option<Step> {
        let operands = f.operands(inst);
        if op.effect() != Effect::Pure {
            return None;
        }
        if operands.iter().all(|&operand| self.step(operand) == Some(Step::NONE)) {
            return Some(Step::NONE);
        }
        let &[a, b] = operands else { return None };
        let steps = || Some((self.step(a)?, self.step(b)?));
        match op {
            Op::I32Add => steps().and_then(|(a, b)| a.plus(b)),
            Op::I32Sub => steps().and_then(|(a, b)| a.plus(b.times(-1)?)),
            Op::I32Mul => match steps()? {
                (step, Step::NONE) => self.product(f, step, b),
                (Step::NONE, step) => self.product(f, step, a),
                _ => None,
            },
            Op::I32Shl => self.step(a)?.times(1_i32.wrapping_shl(self.constant(f, b)? as u32)),
            _ => None,
        }
    }

    /// The step of a product of something with a step and an invariant value.
    fn product(&self, f: &Function, step: Step, factor: Value) -> Option<Step> {
        match (self.constant(f, factor), step) {
            (Some(factor), step) => step.times(factor),
            (None, Step::Constant(step)) if step != 0 => Some(Step::Times(factor, step)),
            _ => None,
        }
    }

    /// The instructions of the loop at hand that compute these values, in their order. Each of the values has a step, so
    /// nothing but pure instructions and phis of the header define it.
    pub(super) fn of_first_round(
        &mut self,
        f: &Function,
        blocks: &[Block],
        values: impl Iterator<Item = Value>,
    ) -> Vec<Inst> {
        values.for_each(|value| self.is_needed[value.index()] = true);
        let mut insts = Vec::new();
        for &inst in blocks.iter().rev().flat_map(|&block| f.insts(block).iter().rev()) {
            if f.results(inst).any(|result| self.is_needed[result.index()]) {
                f.operands(inst).iter().for_each(|value| self.is_needed[value.index()] = true);
                insts.push(inst);
            }
        }
        insts.reverse();
        insts
    }
}
