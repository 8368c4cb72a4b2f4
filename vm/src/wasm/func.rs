//! One function: structured control becomes labels and branches, in one pass and without recursion.
//!
//! The operand stack stays what it is, so the results of a block are operands at its end label, and
//! [`crate::builder`] finds the shapes. What is different:
//!
//! * A branch of WebAssembly forgets the operands between those it takes along and those below the
//!   block that it leaves. Of ours only `br_keep` does, which always goes; so conditional branches go to one
//!   ([`Detour`]), and all that have the same operand stack to the same one.
//! * Code that nothing reaches is validated and left out.
//! * The body is a block whose end returns.

use std::collections::HashMap;

use wasmparser::{BlockType, BrTable, FuncValidator, Operator, WasmModuleResources};

use super::lines::LineCursor;
use super::{Error, Types, ops};
use crate::builder::{FunctionBuilder, LabelId, StackId, TableId};
use crate::limits;
use crate::op::Op;
use crate::types::ValType;

/// A block that is open.
#[derive(Copy, Clone, Debug)]
struct Block {
    kind: BlockKind,
    ty: BlockType,
    /// Where branches to the block go: the start of a loop, the end of anything else.
    label: LabelId,
    /// Whether a branch goes to the label.
    is_target: bool,
    /// The depth of the operand stack below the parameters, and that stack.
    height: u32,
    below: StackId,
    /// The last one of its detours, by its place in [`Scratch::pending`].
    last_detour: Option<u32>,
}

#[derive(Copy, Clone, Debug)]
enum BlockKind {
    /// The body, or a `block`.
    Block,
    Loop,
    /// The first arm of an `if`; the label is where the other one starts.
    If(LabelId),
    /// The second arm.
    Else,
}

/// What is kept from function to function, to be used again.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    blocks: Vec<Block>,
    /// The targets of a `br_table`.
    targets: Vec<LabelId>,
    /// What branches go to that drop operands, by the label that they get to and their operand stack.
    detours: HashMap<(LabelId, StackId), LabelId>,
    /// All of them, in lists by block.
    pending: Vec<Detour>,
}

/// Where a conditional branch goes that drops operands: to a `br_keep` that stands at the end of the block
/// which it leaves, one for all branches with the same operand stack.
#[derive(Debug)]
struct Detour {
    label: LabelId,
    /// The one before it that leaves the same block.
    previous: Option<u32>,
}

/// The function that is being translated.
pub(super) struct Translator<'t, 'm> {
    f: FunctionBuilder<'m>,
    types: &'t Types,
    scratch: &'t mut Scratch,
    /// The number of blocks that are open in code that nothing reaches.
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

    /// Validates and translates a body of the type `ty` of the module.
    pub(super) fn translate<R: WasmModuleResources>(
        mut self,
        ty: u32,
        body: &wasmparser::FunctionBody<'_>,
        validator: &mut FuncValidator<R>,
        lines: &mut LineCursor<'_>,
    ) -> Result<(), Error> {
        // The body has its length before it, and the function a type; each has a byte at least.
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
            ref other => unreachable!("the validator takes no {other:?}"),
        }
        Ok(())
    }

    /// What stands behind an instruction that does not go on.
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

    /// The block at a depth, 0 being the innermost.
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

    /// Ends the first arm of an `if`, from which control may or may not go on.
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

    /// Ends a block, from whose end control may or may not go on.
    fn close(&mut self) {
        let block = self.scratch.blocks.pop().expect("the validator balances blocks");
        if let BlockKind::If(other) = block.kind {
            // The other arm is empty: its parameters are the results.
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

    /// Emits what the branches go to that leave a block and drop operands.
    fn bind_detours(&mut self, block: &Block) {
        let mut next = block.last_detour;
        while let Some(detour) = next {
            let Detour { label, previous } = self.scratch.pending[detour as usize];
            self.f.bind(label);
            self.br_keep(block);
            next = previous;
        }
    }

    /// Goes to the label of a block, and drops the operands between those that the branch takes along and
    /// those below the block.
    fn br_keep(&mut self, block: &Block) {
        let taken = self.taken(block);
        self.f.give_stack(block.label, block.below, taken);
        self.f.br_keep(block.label, taken.len() as u32);
    }

    /// The types of what a branch to a block takes along.
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

    /// The block at `depth`, by its place, to which a branch goes.
    fn target(&mut self, depth: u32) -> usize {
        let i = self.scratch.blocks.len() - 1 - depth as usize;
        self.scratch.blocks[i].is_target = true;
        i
    }

    /// Where a `br_if` or `br_table`, whose selector is on the stack still, goes to get to the block at
    /// `depth`.
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
