//! The operand stack before each instruction of the bytecode.
//!
//! An operand is written as the value that it is in the slot form: an instruction that computes something pushes its
//! results, and one that moves operands moves these. An operand that comes from another block is written by its depth
//! and type. The typing of instructions is that of [`slotvm_bytecode::typing`].

use std::collections::BTreeMap;

use slotvm_bytecode::module::ShapeId;
use slotvm_bytecode::typing::{VerifiedStack, apply_verified};
use slotvm_bytecode::verified::{Block, Body};
use slotvm_bytecode::{Imm, Op, ValType, VerifiedModule};
use slotvm_ssa::ir::Function;

use super::exits::is_exit;

/// An operand: its type, and its text.
type Operand = (ValType, usize);

/// Follows the operand stack of a function.
pub(super) struct Stacks<'a> {
    module: &'a VerifiedModule,
    body: &'a Body,
    func: u32,
    /// The values that the slot form computes at each code offset.
    results: BTreeMap<u32, Vec<u32>>,
    texts: Vec<String>,
    stack: Vec<Operand>,
    /// The operands of other blocks that were not popped yet, below `stack`, and their number.
    below: ShapeId,
    n_below: u32,
    /// The operands that the current instruction pushes, as places in `texts`.
    pushed: Vec<usize>,
}

/// The number of operands that are shown, from the top. All operands of all instructions would be quadratic.
const SHOWN_OPERANDS_MAX: usize = 24;

impl<'a> Stacks<'a> {
    /// Starts with the slot form of a function.
    pub(super) fn new(module: &'a VerifiedModule, slots: &Function) -> Stacks<'a> {
        let body = module.body(slots.func).expect("the module defines the function");
        let mut results: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        // Where the form leaves for the interpreter, it reads what is there.
        for block in slots.blocks().filter(|&block| !is_exit(slots, block)) {
            for &inst in slots.insts(block) {
                let location = slots.locs[slots.loc(inst).index()];
                let values = slots.results(inst).map(|value| value.0);
                results.entry(location.offset).or_default().extend(values);
            }
        }
        // The results of a call that is compared with several functions.
        for block in slots.blocks().filter(|&block| block != Function::ENTRY) {
            let values = slots.params(block).iter().map(|value| value.0);
            results.entry(slots.block_offset(block)).or_default().extend(values);
        }
        Stacks {
            module,
            body,
            func: slots.func,
            results,
            texts: vec![],
            stack: vec![],
            below: ShapeId::EMPTY,
            n_below: 0,
            pushed: vec![],
        }
    }

    /// Starts a block, with the operands that it inherits.
    pub(super) fn start_block(&mut self, block: &Block) {
        self.stack.clear();
        self.texts.clear();
        self.below = block.shape;
        self.n_below = self.module.shape_depth(block.shape);
    }

    /// The topmost operands, the topmost last, after `…` and the number of those that are left out.
    pub(super) fn operands(&self) -> Vec<String> {
        let own = self.stack.iter().rev().map(|&(_, text)| self.texts[text].clone());
        let mut shown: Vec<String> = own.take(SHOWN_OPERANDS_MAX).collect();
        let (mut shape, mut depth) = (self.below, self.n_below);
        while shown.len() < SHOWN_OPERANDS_MAX
            && let Some((parent, ty)) = self.module.shape_top(shape)
        {
            (shape, depth) = (parent, depth - 1);
            shown.push(inherited(ty, depth));
        }
        let n_left = self.stack.len() + self.n_below as usize - shown.len();
        if n_left > 0 {
            shown.push(format!("…{n_left}"));
        }
        shown.reverse();
        shown
    }

    fn pop_operand(&mut self) -> Operand {
        self.stack.pop().unwrap_or_else(|| {
            let top = self.module.shape_top(self.below);
            let (parent, ty) = top.expect("verified code does not underflow");
            self.below = parent;
            self.n_below -= 1;
            self.texts.push(inherited(ty, self.n_below));
            (ty, self.texts.len() - 1)
        })
    }

    /// Executes an instruction. The last one of a block may leave any stack, since what it leaves is not shown.
    pub(super) fn execute(&mut self, offset: u32, op: Op, imm: Imm) {
        self.pushed.clear();
        match op.signature() {
            Some(signature) => {
                signature.params.iter().for_each(|_| {
                    self.pop_operand();
                });
                signature.results.iter().for_each(|&ty| self.push_text(ty, ty.to_string()));
            }
            // The operand stays where it is.
            None if op == Op::LocalTee => {}
            None => apply_verified(self, op, imm),
        }
        // Operands of other blocks are read first, where they are first used.
        let values = self.results.get(&offset).map_or(&[][..], |values| values);
        for (&text, value) in self.pushed.iter().rev().zip(values.iter().rev()) {
            self.texts[text] = format!("v{value}");
        }
    }

    fn push_text(&mut self, ty: ValType, text: String) {
        self.stack.push((ty, self.texts.len()));
        self.pushed.push(self.texts.len());
        self.texts.push(text);
    }
}

/// An operand that comes from another block.
fn inherited(ty: ValType, depth: u32) -> String {
    format!("{ty}#{depth}")
}

impl<'a> VerifiedStack<'a> for Stacks<'a> {
    type Operand = Operand;

    fn module(&self) -> &'a VerifiedModule {
        self.module
    }

    fn func(&self) -> u32 {
        self.func
    }

    fn body(&self) -> &'a Body {
        self.body
    }

    fn pop(&mut self) {
        self.pop_operand();
    }

    fn pop_any(&mut self) -> Operand {
        self.pop_operand()
    }

    fn type_of(&self, operand: Operand) -> ValType {
        operand.0
    }

    fn push(&mut self, ty: ValType) {
        self.push_text(ty, ty.to_string());
    }

    fn push_again(&mut self, operand: Operand) {
        self.stack.push(operand);
    }

    fn push_address(&mut self, local: u32) {
        let names = &self.module.module().names;
        let name = names.local(self.func, local).map_or(format!("local{local}"), str::to_owned);
        self.push_text(ValType::I32, format!("&{name}"));
    }
}
