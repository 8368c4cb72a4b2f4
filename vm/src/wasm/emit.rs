//! The code of a function while it is translated, with what the verifier would find out about it.
//!
//! The validator has typed each operator before it comes here, so nothing is typed again. Operand stacks are known by
//! their depth; only those of labels are spelt out, from the operands of the validator.

use wasmparser::{FuncValidator, ValidatorResources};

use super::val_type;
use crate::builder::{Draft, LabelId};
use crate::inst::{Imm, write_inst, write_vector};
use crate::module::{BranchHint, Func, ShapeId, SourcePlace};
use crate::op::Op;
use crate::stacks::{StackId, Stacks};
use crate::types::ValType;
use crate::verified::{Body, Local, Storage};
use crate::verify::Blocks;

/// The validator of a function, which has its operands.
pub(super) type Operands = FuncValidator<ValidatorResources>;

/// Writes the code of a function.
#[derive(Debug, Default)]
pub(super) struct Emitter {
    draft: Draft,
    blocks: Blocks,
    /// The stacks of labels, those below them, and those that branches with operands to drop leave.
    pub(super) stacks: Stacks,
    /// The stacks of the lowest 0, 1, 2, … operands, as far as they have been asked for and are still the same.
    known: Vec<StackId>,
    /// The depth of the operand stack where code can be reached.
    depth: u32,
    is_reachable: bool,
    depth_max: u32,
    has_vectors: bool,
}

impl Emitter {
    /// Starts a function.
    pub(super) fn start(&mut self) {
        self.draft.clear();
        self.blocks.clear();
        self.stacks.clear();
        self.known.clear();
        self.known.push(StackId::EMPTY);
        self.depth = 0;
        self.is_reachable = true;
        self.depth_max = 0;
        self.has_vectors = false;
    }

    pub(super) fn is_reachable(&self) -> bool {
        self.is_reachable
    }

    /// The number of operands on the stack.
    pub(super) fn depth(&self) -> u32 {
        self.depth
    }

    /// Sets the number of operands after an operator, which has pushed the topmost `n_pushed` of them.
    pub(super) fn set_depth(&mut self, depth: u32, n_pushed: u32) {
        self.depth = depth;
        self.depth_max = self.depth_max.max(depth);
        self.forget_above(depth.saturating_sub(n_pushed));
    }

    /// Notes that operands above the lowest `depth` may have changed.
    pub(super) fn forget_above(&mut self, depth: u32) {
        self.known.truncate(depth as usize + 1);
    }

    /// The stack of the lowest `depth` operands of the validator.
    pub(super) fn stack(&mut self, depth: u32, operands: &Operands) -> StackId {
        let height = operands.operand_stack_height();
        for i in self.known.len() as u32 - 1..depth {
            let from_top = (height - 1 - i) as usize;
            let ty = operands.get_operand_type(from_top).flatten();
            let ty = val_type(ty.expect("reachable operands have types"));
            let below = self.known[i as usize];
            self.known.push(self.stacks.push(below, ty));
        }
        self.known[depth as usize]
    }

    /// Creates a label.
    pub(super) fn label(&mut self) -> LabelId {
        self.draft.label()
    }

    /// Binds a label with this stack to the next instruction.
    pub(super) fn bind(&mut self, label: LabelId, stack: StackId) {
        let offset = self.draft.offset();
        if self.draft.bind(label, stack) {
            self.blocks.label(offset, ShapeId::EMPTY);
        }
        self.depth = self.stacks.depth(stack);
        self.depth_max = self.depth_max.max(self.depth);
        self.is_reachable = true;
    }

    /// Sets the source place of the following instructions.
    pub(super) fn place(&mut self, place: SourcePlace) {
        self.draft.place(place);
    }

    /// Emits an instruction that is no branch to a label.
    pub(super) fn inst(&mut self, op: Op, imm: Imm) {
        write_inst(&mut self.draft.code, op, imm);
        self.has_vectors |= op.is_vector();
        self.blocks.inst();
        if op.is_terminator() {
            self.end();
        }
    }

    /// Emits an instruction with the 16 bytes of a vector.
    pub(super) fn vector(&mut self, op: Op, bytes: u128) {
        write_vector(&mut self.draft.code, op, bytes);
        self.has_vectors = true;
        self.blocks.inst();
    }

    pub(super) fn br(&mut self, label: LabelId) {
        self.draft.branch(Op::Br, label);
        self.blocks.inst();
        self.blocks.branch(label.0);
        self.end();
    }

    pub(super) fn br_if(&mut self, label: LabelId, hint: Option<BranchHint>) {
        if let Some(hint) = hint {
            self.draft.hint(hint);
        }
        self.draft.branch(Op::BrIf, label);
        self.blocks.inst();
        self.blocks.branch(label.0);
        self.blocks.falls_through();
        self.end();
        self.is_reachable = true;
    }

    pub(super) fn br_keep(&mut self, label: LabelId, n: u32) {
        self.draft.br_keep(label, n);
        self.blocks.inst();
        self.blocks.branch(label.0);
        self.end();
    }

    pub(super) fn br_table(&mut self, labels: &[LabelId], default: LabelId) {
        self.draft.br_table(labels, default);
        self.blocks.inst();
        labels.iter().chain([&default]).for_each(|label| self.blocks.branch(label.0));
        self.end();
    }

    fn end(&mut self) {
        self.blocks.end(self.draft.offset(), ShapeId::EMPTY);
        self.is_reachable = false;
    }

    /// The name of a limit that the code exceeds.
    pub(super) fn exceeds(&self) -> Option<&'static str> {
        self.draft.exceeds()
    }

    /// Returns the code of a function with these locals, and what the verifier will find out about it. That is left to
    /// the verifier where it concerns vectors. The shapes of labels are numbers of stacks; those of blocks are not set.
    pub(super) fn finish(&mut self, locals: &[ValType]) -> (Func, Option<Body>) {
        let draft = &self.draft;
        let number = |label| draft.number(LabelId(label)).expect("all labels are bound");
        let (mut blocks, succs) = self.blocks.finish(number);
        let func = draft.lay_out(blocks.iter_mut().map(|block| &mut block.start));
        let is_vector = |&ty: &ValType| ty.cells() > 1;
        if self.has_vectors || locals.iter().any(is_vector) {
            return (func, None);
        }
        let mut end = func.code.len() as u32;
        for block in blocks.iter_mut().rev() {
            block.end = std::mem::replace(&mut end, block.start);
        }
        let local = |&ty: &ValType| Local { ty, storage: Storage::Promotable };
        let locals = locals.iter().map(local).collect();
        let body = Body { locals, stack_max: self.depth_max, blocks, succs, ..Body::default() };
        (func, Some(body))
    }
}
