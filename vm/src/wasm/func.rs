//! Translation of one function: structured control becomes labels and branches, in one pass and without
//! recursion.
//!
//! The operand stack is unchanged, so the results of a block are operands at its end label. The differences:
//!
//! * A WebAssembly branch drops the operands between those that it takes along and those below the block
//!   that it leaves. Of our branches only `br_keep` does, and it is unconditional. So conditional branches
//!   go to a `br_keep` ([`Detour`]), which all branches with the same operand stack share.
//! * Unreachable code is validated and left out.
//! * The body is a block whose end returns.

use std::collections::HashMap;

use wasmparser::{BlockType, BrTable, FuncValidator, FunctionBody, Operator, ValidatorResources};

use super::emit::Emitter;
use super::hints::HintCursor;
use super::lines::LineCursor;
use super::{Error, Types, ops};
use crate::builder::LabelId;
use crate::inst::Imm;
use crate::limits;
use crate::module::{BranchHint, Func};
use crate::op::Op;
use crate::stacks::StackId;
use crate::types::ValType;
use crate::verified::Body;
use crate::verify::Found;

/// An open block.
#[derive(Copy, Clone, Debug)]
struct Block {
    kind: BlockKind,
    ty: BlockType,
    /// The target of branches to the block: the start of a loop, the end of any other block.
    label: LabelId,
    /// Whether a branch goes to the label.
    is_target: bool,
    /// The depth of the operand stack below the parameters.
    height: u32,
    /// The last of its detours, as an index into [`Scratch::pending`].
    last_detour: Option<u32>,
}

#[derive(Copy, Clone, Debug)]
enum BlockKind {
    /// The body, or a `block`.
    Block,
    Loop,
    /// The first arm of an `if`, with the label of the second arm.
    If(LabelId),
    /// The second arm of an `if`.
    Else,
}

/// Buffers that are reused from function to function.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) emitter: Emitter,
    blocks: Vec<Block>,
    /// The targets of a `br_table`.
    targets: Vec<LabelId>,
    /// The detours of branches that drop operands, by target label and operand stack.
    detours: HashMap<(LabelId, StackId), LabelId>,
    /// All detours, in linked lists by block.
    pending: Vec<Detour>,
    /// The types of all locals, parameters first.
    locals: Vec<ValType>,
    /// The locals that are declared, in runs.
    declared: Vec<(u32, ValType)>,
    /// What is found in all functions.
    pub(super) found: Found,
}

impl Scratch {
    /// Returns the function that has been translated, and what the verifier will find out about it, as
    /// [`Emitter::finish`] does.
    pub(super) fn finish(
        &mut self,
        types: &Types,
        ty: u32,
        body: &FunctionBody<'_>,
    ) -> (Func, Option<Body>) {
        let (func, facts) = self.emitter.finish(&self.locals);
        let source_bytes = source_bytes(body.as_bytes().len());
        let func = Func { ty: types.id(ty).0, locals: self.declared.clone(), source_bytes, ..func };
        (func, facts.filter(|_| !types.has_vectors))
    }
}

/// The bytes that a module has for a function whose body has so many.
pub(super) fn source_bytes(body_bytes: usize) -> u32 {
    // The length before the body and the function's type take at least one byte each.
    u32::try_from(2 + body_bytes).unwrap_or(u32::MAX)
}

/// The target of conditional branches that drop operands: a `br_keep` at the end of the block that they
/// leave. All branches with the same operand stack share it.
#[derive(Copy, Clone, Debug)]
struct Detour {
    label: LabelId,
    /// The operands that come with the branches.
    stack: StackId,
    /// The previous detour of the same block.
    previous: Option<u32>,
}

/// Translates a function.
pub(super) struct Translator<'t> {
    types: &'t Types,
    validator: FuncValidator<ValidatorResources>,
    scratch: &'t mut Scratch,
    /// The number of blocks that are open in unreachable code.
    n_unreachable: u32,
    /// The hint of the branch being translated.
    hint: Option<BranchHint>,
}

impl<'t> Translator<'t> {
    pub(super) fn new(
        types: &'t Types,
        validator: FuncValidator<ValidatorResources>,
        scratch: &'t mut Scratch,
    ) -> Translator<'t> {
        scratch.emitter.start();
        scratch.blocks.clear();
        scratch.detours.clear();
        scratch.pending.clear();
        scratch.locals.clear();
        scratch.declared.clear();
        Translator { types, validator, scratch, n_unreachable: 0, hint: None }
    }

    /// Validates and translates a body of type `ty` of the module, which [`Scratch::finish`] returns. Returns the
    /// validator.
    pub(super) fn translate(
        mut self,
        ty: u32,
        body: &FunctionBody<'_>,
        (lines, hints): &mut (LineCursor<'_>, HintCursor<'_>),
    ) -> Result<FuncValidator<ValidatorResources>, Error> {
        self.locals(ty, body)?;
        self.open_at(0, BlockKind::Block, BlockType::FuncType(ty));
        let n_stacks_max = limits::IMPORT_STACKS_MAX + body.as_bytes().len();
        let mut operators = body.get_operators_reader()?;
        while !operators.eof() {
            // The operands in code that cannot be reached count, too.
            let height = self.validator.operand_stack_height() as usize;
            if self.scratch.emitter.stacks.len().max(height) > n_stacks_max {
                return Err(Error::Limit("IMPORT_STACKS_MAX"));
            }
            let offset = operators.original_position();
            let operator = operators.read()?;
            if let Operator::BrTable { .. } = operator {
                self.before_br_table();
            }
            self.validator.op(offset, &operator)?;
            if let Some(place) = lines.at(offset) {
                self.scratch.emitter.place(place);
            }
            if let Operator::If { .. } | Operator::BrIf { .. } = operator {
                self.hint = hints.at(offset);
            }
            self.operator(&operator)?;
        }
        operators.finish()?;
        Ok(self.validator)
    }

    /// Reads the locals.
    fn locals(&mut self, ty: u32, body: &FunctionBody<'_>) -> Result<(), Error> {
        let Scratch { locals, declared, .. } = &mut *self.scratch;
        locals.extend_from_slice(&self.types.get(ty).params);
        let mut reader = body.get_locals_reader()?;
        for _ in 0..reader.get_count() {
            let offset = reader.original_position();
            let (count, ty) = reader.read()?;
            self.validator.define_locals(offset, count, ty)?;
            let ty = super::val_type(ty);
            locals.resize(locals.len() + count as usize, ty);
            match declared.last_mut() {
                _ if count == 0 => {}
                Some((n, last)) if *last == ty => *n += count,
                _ => declared.push((count, ty)),
            }
        }
        Ok(())
    }

    /// The operands of the validator end at a `br_table`, and detours need them.
    fn before_br_table(&mut self) {
        let emitter = &mut self.scratch.emitter;
        if let Some(depth) = emitter.depth().checked_sub(1).filter(|_| emitter.is_reachable()) {
            emitter.stack(depth, &self.validator);
        }
    }

    /// Translates an operator that has just been validated.
    fn operator(&mut self, operator: &Operator<'_>) -> Result<(), Error> {
        if !self.scratch.emitter.is_reachable() {
            self.unreachable_operator(operator);
            return Ok(());
        }
        let depth = self.validator.operand_stack_height();
        if let Some((op, imm)) = ops::plain(operator) {
            self.plain(op, imm, depth);
            return Ok(());
        }
        let emitter = &mut self.scratch.emitter;
        if let Some((op, bytes)) = ops::vector(operator) {
            emitter.vector(op, bytes);
            emitter.set_depth(depth, 1);
            self.scratch.found.note(op, Imm::NONE);
            return Ok(());
        }
        match *operator {
            Operator::Nop => {}
            Operator::Unreachable => emitter.inst(Op::Unreachable, Imm::NONE),
            Operator::Block { blockty } => self.open(BlockKind::Block, blockty),
            Operator::Loop { blockty } => {
                self.open(BlockKind::Loop, blockty);
                let (label, emitter) = (self.block(0).label, &mut self.scratch.emitter);
                let stack = emitter.stack(depth, &self.validator);
                emitter.bind(label, stack);
            }
            Operator::If { blockty } => {
                let other = emitter.label();
                emitter.inst(Op::I32Eqz, Imm::NONE);
                // It branches where the `if` does not take its first arm.
                emitter.br_if(other, self.hint.map(BranchHint::inverted));
                emitter.set_depth(depth, 0);
                self.open(BlockKind::If(other), blockty);
            }
            Operator::Else => self.start_other_arm(),
            Operator::End => self.close(),
            Operator::Br { relative_depth } => self.br(relative_depth),
            Operator::BrIf { relative_depth } => {
                let label = self.conditional_target(relative_depth);
                let emitter = &mut self.scratch.emitter;
                emitter.br_if(label, self.hint);
                emitter.set_depth(depth, 0);
            }
            Operator::BrTable { ref targets } => self.br_table(targets)?,
            Operator::Return => emitter.inst(Op::Return, Imm::NONE),
            ref other => unreachable!("the validator rejects {other:?}"),
        }
        Ok(())
    }

    /// Translates an operator with an equivalent instruction. `depth` is the depth of the stack after it.
    fn plain(&mut self, op: Op, imm: Imm, depth: u32) {
        let types = self.types;
        let (imm, n_pushed) = match op {
            Op::Call => (imm, types.of_func(imm.low()).results.len() as u32),
            Op::CallIndirect | Op::ReturnCallIndirect => {
                let ty = imm.low();
                (Imm::pair(types.id(ty).0, imm.high()), types.get(ty).results.len() as u32)
            }
            _ => (imm, op.signature().map_or(1, |signature| signature.results.len() as u32)),
        };
        let Scratch { emitter, found, .. } = &mut *self.scratch;
        found.note(op, imm);
        emitter.inst(op, imm);
        if emitter.is_reachable() {
            emitter.set_depth(depth, n_pushed);
        }
    }

    /// Translates an operator in unreachable code.
    fn unreachable_operator(&mut self, operator: &Operator<'_>) {
        match operator {
            Operator::Block { .. } | Operator::Loop { .. } | Operator::If { .. } => {
                self.n_unreachable += 1;
            }
            Operator::Else if self.n_unreachable == 0 => self.start_other_arm(),
            Operator::End => match self.n_unreachable.checked_sub(1) {
                Some(n) => self.n_unreachable = n,
                None => self.close(),
            },
            _ => {}
        }
    }

    /// Returns the block at a depth; 0 is the innermost.
    fn block(&mut self, depth: u32) -> &mut Block {
        let blocks = &mut self.scratch.blocks;
        let i = blocks.len() - 1 - depth as usize;
        &mut blocks[i]
    }

    fn open(&mut self, kind: BlockKind, ty: BlockType) {
        let depth = self.scratch.emitter.depth();
        self.open_at(depth - self.params(ty).len() as u32, kind, ty);
    }

    fn open_at(&mut self, height: u32, kind: BlockKind, ty: BlockType) {
        let label = self.scratch.emitter.label();
        let last_detour = None;
        let block = Block { kind, ty, label, is_target: false, height, last_detour };
        self.scratch.blocks.push(block);
    }

    /// Binds a label whose stack is that below a block with operands of these types.
    fn bind(&mut self, label: LabelId, height: u32, types: &[ValType]) {
        let emitter = &mut self.scratch.emitter;
        let below = emitter.stack(height, &self.validator);
        let stack = emitter.stacks.push_all(below, types);
        emitter.bind(label, stack);
    }

    /// Ends the first arm of an `if`, whose end may be unreachable.
    fn start_other_arm(&mut self) {
        let goes_on = self.scratch.emitter.is_reachable();
        let block = self.block(0);
        let BlockKind::If(other) = block.kind else { unreachable!("`else` belongs to an `if`") };
        block.kind = BlockKind::Else;
        block.is_target |= goes_on;
        let Block { label, height, ty, .. } = *block;
        if goes_on {
            self.scratch.emitter.br(label);
        }
        self.scratch.emitter.forget_above(height);
        self.bind(other, height, self.params(ty));
    }

    /// Ends a block, whose end may be unreachable.
    fn close(&mut self) {
        let block = self.scratch.blocks.pop().expect("the validator balances blocks");
        self.scratch.emitter.forget_above(block.height);
        let (height, results) = (block.height, self.results(block.ty));
        if let BlockKind::If(other) = block.kind {
            // The second arm is empty: its parameters are the results.
            self.bind(other, height, results);
        }
        let is_loop = matches!(block.kind, BlockKind::Loop);
        if block.last_detour.is_some() {
            let emitter = &mut self.scratch.emitter;
            let end = if is_loop { emitter.label() } else { block.label };
            let goes_on = emitter.is_reachable();
            if goes_on {
                emitter.br(end);
            }
            self.bind_detours(&block);
            if goes_on && is_loop {
                self.bind(end, height, results);
            }
        }
        if block.is_target && !is_loop {
            self.bind(block.label, height, results);
        }
        if self.scratch.blocks.is_empty() && self.scratch.emitter.is_reachable() {
            self.scratch.emitter.inst(Op::Return, Imm::NONE);
        }
    }

    /// Emits the detours of a block.
    fn bind_detours(&mut self, block: &Block) {
        let n = self.taken(block).len() as u32;
        let Scratch { emitter, pending, .. } = &mut *self.scratch;
        let mut next = block.last_detour;
        while let Some(detour) = next {
            let Detour { label, stack, previous } = pending[detour as usize];
            emitter.bind(label, stack);
            emitter.br_keep(block.label, n);
            next = previous;
        }
    }

    /// Returns the types of the operands that a branch to a block takes along.
    fn taken(&self, block: &Block) -> &'t [ValType] {
        match block.kind {
            BlockKind::Loop => self.params(block.ty),
            _ => self.results(block.ty),
        }
    }

    fn br(&mut self, depth: u32) {
        let i = self.target(depth);
        let block = self.scratch.blocks[i];
        let n = self.taken(&block).len() as u32;
        let emitter = &mut self.scratch.emitter;
        match emitter.depth() == block.height + n {
            true => emitter.br(block.label),
            // It drops the operands between those that it takes along and those below the block.
            false => emitter.br_keep(block.label, n),
        }
    }

    fn br_table(&mut self, table: &BrTable<'_>) -> Result<(), Error> {
        let mut targets = std::mem::take(&mut self.scratch.targets);
        targets.clear();
        for depth in table.targets() {
            targets.push(self.conditional_target(depth?));
        }
        let default = self.conditional_target(table.default());
        self.scratch.emitter.br_table(&targets, default);
        self.scratch.targets = targets;
        Ok(())
    }

    /// Marks the block at `depth` as a branch target and returns its index.
    fn target(&mut self, depth: u32) -> usize {
        let i = self.scratch.blocks.len() - 1 - depth as usize;
        self.scratch.blocks[i].is_target = true;
        i
    }

    /// Returns the label that a `br_if` or `br_table` uses to reach the block at `depth`. The selector is
    /// still on the stack.
    fn conditional_target(&mut self, depth: u32) -> LabelId {
        let i = self.target(depth);
        let block = &self.scratch.blocks[i];
        let stack_depth = self.scratch.emitter.depth() - 1;
        if stack_depth == block.height + self.taken(block).len() as u32 {
            return block.label;
        }
        let Scratch { emitter, blocks, detours, pending, .. } = &mut *self.scratch;
        let stack = emitter.stack(stack_depth, &self.validator);
        let block = &mut blocks[i];
        *detours.entry((block.label, stack)).or_insert_with(|| {
            let label = emitter.label();
            pending.push(Detour { label, stack, previous: block.last_detour });
            block.last_detour = Some(pending.len() as u32 - 1);
            label
        })
    }

    fn params(&self, ty: BlockType) -> &'t [ValType] {
        match ty {
            BlockType::FuncType(ty) => &self.types.get(ty).params,
            _ => &[],
        }
    }

    fn results(&self, ty: BlockType) -> &'t [ValType] {
        match ty {
            BlockType::Empty => &[],
            BlockType::Type(ty) => {
                let types: &'static [ValType] = &ValType::ALL;
                let i = super::val_type(ty).index();
                &types[i..=i]
            }
            BlockType::FuncType(ty) => &self.types.get(ty).results,
        }
    }
}
