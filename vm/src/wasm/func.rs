//! Translation of one function: structured control becomes labels and branches, in one pass and without
//! recursion.
//!
//! The operand stack is unchanged, so the results of a block are operands at its end label, and
//! [`crate::builder`] finds the shapes. The differences:
//!
//! * A WebAssembly branch drops the operands between those that it takes along and those below the block
//!   that it leaves. Of our branches only `br_keep` does, and it is unconditional. So conditional branches
//!   go to a `br_keep` ([`Detour`]), which all branches with the same operand stack share.
//! * Unreachable code is validated and left out.
//! * The body is a block whose end returns.

use std::collections::HashMap;

use wasmparser::{BlockType, BrTable, FuncValidator, Operator, WasmModuleResources};

use super::lines::LineCursor;
use super::{Error, Types, ops};
use crate::builder::{FunctionBuilder, LabelId, StackId, TableId};
use crate::limits;
use crate::op::Op;
use crate::types::ValType;

/// An open block.
#[derive(Copy, Clone, Debug)]
struct Block {
    kind: BlockKind,
    ty: BlockType,
    /// The target of branches to the block: the start of a loop, the end of any other block.
    label: LabelId,
    /// Whether a branch goes to the label.
    is_target: bool,
    /// The depth of the operand stack below the parameters, and the stack itself.
    height: u32,
    below: StackId,
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
    blocks: Vec<Block>,
    /// The targets of a `br_table`.
    targets: Vec<LabelId>,
    /// The detours of branches that drop operands, by target label and operand stack.
    detours: HashMap<(LabelId, StackId), LabelId>,
    /// All detours, in linked lists by block.
    pending: Vec<Detour>,
}

/// The target of conditional branches that drop operands: a `br_keep` at the end of the block that they
/// leave. All branches with the same operand stack share it.
#[derive(Debug)]
struct Detour {
    label: LabelId,
    /// The previous detour of the same block.
    previous: Option<u32>,
}

/// Translates a function.
pub(super) struct Translator<'t, 'm> {
    f: FunctionBuilder<'m>,
    types: &'t Types,
    scratch: &'t mut Scratch,
    /// The number of blocks that are open in unreachable code.
    n_unreachable: u32,
}

impl<'t, 'm> Translator<'t, 'm> {
    pub(super) fn new(
        f: FunctionBuilder<'m>,
        types: &'t Types,
        scratch: &'t mut Scratch,
    ) -> Translator<'t, 'm> {
        scratch.blocks.clear();
        scratch.detours.clear();
        scratch.pending.clear();
        Translator { f, types, scratch, n_unreachable: 0 }
    }

    /// Validates and translates a body of type `ty` of the module.
    pub(super) fn translate<R: WasmModuleResources>(
        mut self,
        ty: u32,
        body: &wasmparser::FunctionBody<'_>,
        validator: &mut FuncValidator<R>,
        lines: &mut LineCursor<'_>,
    ) -> Result<(), Error> {
        // The length before the body and the function's type take at least one byte each.
        self.f.set_source_bytes(2 + body.as_bytes().len());
        let mut locals = body.get_locals_reader()?;
        for _ in 0..locals.get_count() {
            let offset = locals.original_position();
            let (count, ty) = locals.read()?;
            validator.define_locals(offset, count, ty)?;
            let ty = super::val_type(ty);
            for _ in 0..count {
                self.f.local(ty);
            }
        }
        self.open_at(0, BlockKind::Block, BlockType::FuncType(ty));
        let n_stacks_max = limits::IMPORT_STACKS_MAX + body.as_bytes().len();
        let mut operators = body.get_operators_reader()?;
        while !operators.eof() {
            if self.f.n_stacks() > n_stacks_max {
                return Err(Error::Limit("IMPORT_STACKS_MAX"));
            }
            let offset = operators.original_position();
            let operator = operators.read()?;
            validator.op(offset, &operator)?;
            if let Some(line) = lines.at(offset) {
                self.f.line(line);
            }
            self.operator(&operator)?;
        }
        operators.finish()?;
        self.f.finish().map_err(Error::from)
    }

    fn operator(&mut self, operator: &Operator<'_>) -> Result<(), Error> {
        if !self.f.is_reachable() {
            self.unreachable_operator(operator);
            return Ok(());
        }
        if let Some((op, imm)) = ops::plain(operator) {
            match op {
                Op::CallIndirect => {
                    self.f.call_indirect(self.types.id(imm.low()), TableId(imm.high()))
                }
                Op::ReturnCallIndirect => {
                    self.f.return_call_indirect(self.types.id(imm.low()), TableId(imm.high()))
                }
                _ => self.f.inst(op, imm),
            };
            return Ok(());
        }
        if let Some((op, bytes)) = ops::vector(operator) {
            self.f.vector(op, bytes);
            return Ok(());
        }
        match *operator {
            Operator::Nop => {}
            Operator::Unreachable => {
                self.f.unreachable();
            }
            Operator::Block { blockty } => self.open(BlockKind::Block, blockty),
            Operator::Loop { blockty } => {
                self.open(BlockKind::Loop, blockty);
                let label = self.block(0).label;
                self.f.bind(label);
            }
            Operator::If { blockty } => {
                let other = self.f.label();
                self.f.op(Op::I32Eqz).br_if(other);
                self.open(BlockKind::If(other), blockty);
            }
            Operator::Else => self.start_other_arm(),
            Operator::End => self.close(),
            Operator::Br { relative_depth } => self.br(relative_depth),
            Operator::BrIf { relative_depth } => {
                let label = self.conditional_target(relative_depth);
                self.f.br_if(label);
            }
            Operator::BrTable { ref targets } => self.br_table(targets)?,
            Operator::Return => {
                self.f.ret();
            }
            ref other => unreachable!("the validator rejects {other:?}"),
        }
        Ok(())
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
        self.open_at(self.f.depth() - self.params(ty).len() as u32, kind, ty);
    }

    fn open_at(&mut self, height: u32, kind: BlockKind, ty: BlockType) {
        let label = self.f.label();
        let below = self.f.stack_below(self.f.depth() - height);
        let last_detour = None;
        let block = Block { kind, ty, label, is_target: false, height, below, last_detour };
        self.scratch.blocks.push(block);
    }

    /// Ends the first arm of an `if`, whose end may be unreachable.
    fn start_other_arm(&mut self) {
        let goes_on = self.f.is_reachable();
        let block = self.block(0);
        let BlockKind::If(other) = block.kind else { unreachable!("`else` belongs to an `if`") };
        block.kind = BlockKind::Else;
        block.is_target |= goes_on;
        let end = block.label;
        if goes_on {
            self.f.br(end);
        }
        self.f.bind(other);
    }

    /// Ends a block, whose end may be unreachable.
    fn close(&mut self) {
        let block = self.scratch.blocks.pop().expect("the validator balances blocks");
        if let BlockKind::If(other) = block.kind {
            // The second arm is empty: its parameters are the results.
            self.f.bind(other);
        }
        let is_loop = matches!(block.kind, BlockKind::Loop);
        if block.last_detour.is_some() {
            let end = if is_loop { self.f.label() } else { block.label };
            let goes_on = self.f.is_reachable();
            if goes_on {
                self.f.br(end);
            }
            self.bind_detours(&block);
            if goes_on && is_loop {
                self.f.bind(end);
            }
        }
        if block.is_target && !is_loop {
            self.f.bind(block.label);
        }
        if self.scratch.blocks.is_empty() && self.f.is_reachable() {
            self.f.ret();
        }
    }

    /// Emits the detours of a block.
    fn bind_detours(&mut self, block: &Block) {
        let mut next = block.last_detour;
        while let Some(detour) = next {
            let Detour { label, previous } = self.scratch.pending[detour as usize];
            self.f.bind(label);
            self.br_keep(block);
            next = previous;
        }
    }

    /// Branches to the label of a block. Drops the operands between those that the branch takes along and
    /// those below the block.
    fn br_keep(&mut self, block: &Block) {
        let taken = self.taken(block);
        self.f.give_stack(block.label, block.below, taken);
        self.f.br_keep(block.label, taken.len() as u32);
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
        if self.f.depth() == block.height + self.taken(&block).len() as u32 {
            self.f.br(block.label);
        } else {
            self.br_keep(&block);
        }
    }

    fn br_table(&mut self, table: &BrTable<'_>) -> Result<(), Error> {
        let mut targets = std::mem::take(&mut self.scratch.targets);
        targets.clear();
        for depth in table.targets() {
            targets.push(self.conditional_target(depth?));
        }
        let default = self.conditional_target(table.default());
        self.f.br_table(&targets, default);
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
        if self.f.depth() - 1 == block.height + self.taken(block).len() as u32 {
            return block.label;
        }
        let Scratch { blocks, detours, pending, .. } = &mut *self.scratch;
        let block = &mut blocks[i];
        *detours.entry((block.label, self.f.stack_below(1))).or_insert_with(|| {
            let label = self.f.label();
            pending.push(Detour { label, previous: block.last_detour });
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
