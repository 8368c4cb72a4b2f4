//! One function: structured control becomes labels and branches, in one pass and without recursion.
//!
//! The operand stack stays what it is, so the results of a block are operands at its end label, and
//! [`crate::builder`] finds the shapes. What is different:
//!
//! * A branch of WebAssembly forgets the operands between those it takes along and those below the
//!   block that it leaves; ours takes the whole stack. Where there are such operands, those taken along
//!   are saved in locals, the others dropped ([`Translator::unwind`]).
//! * Code that nothing reaches is validated and left out.
//! * The body is a block whose end returns.

use wasmparser::{BlockType, BrTable, FuncValidator, Operator, WasmModuleResources};

use super::lines::LineCursor;
use super::{Error, Types, ops};
use crate::builder::{FunctionBuilder, LabelId, LocalId, TableId, TypeId};
use crate::inst::Imm;
use crate::limits;
use crate::op::Op;
use crate::types::{FuncType, ValType};

/// A block that is open.
#[derive(Debug)]
struct Block {
    kind: BlockKind,
    ty: BlockType,
    /// Where branches to the block go: the start of a loop, the end of anything else.
    label: LabelId,
    /// Whether a branch goes to the label.
    is_target: bool,
    /// The depth of the operand stack below the parameters.
    height: u32,
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
    /// Where a `br_table` reaches an outer block by way of code that unwinds: depth and label.
    detours: Vec<(u32, LabelId)>,
    /// For each depth that the `br_table` names, its label. Cleared behind it.
    by_depth: Vec<Option<LabelId>>,
    /// Operands that branches have dropped so far, in all functions.
    n_unwound: u64,
}

impl Scratch {
    /// The number of operands that branches have dropped, in all functions since this was called before.
    pub(super) fn take_n_unwound(&mut self) -> u64 {
        std::mem::take(&mut self.n_unwound)
    }
}

/// The function that is being translated.
pub(super) struct Translator<'t, 'm> {
    f: FunctionBuilder<'m>,
    types: &'t Types,
    scratch: &'t mut Scratch,
    /// Locals that hold what a branch takes along, by type: as many as any branch has needed.
    saved: [Vec<LocalId>; ValType::ALL.len()],
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
        let saved = Default::default();
        Translator { f, types, scratch, saved, n_unreachable: 0 }
    }

    /// Validates and translates a body of the type `ty` of the module.
    pub(super) fn translate<R: WasmModuleResources>(
        mut self,
        ty: u32,
        body: &wasmparser::FunctionBody<'_>,
        validator: &mut FuncValidator<R>,
        lines: &mut LineCursor<'_>,
    ) -> Result<(), Error> {
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
        let label = self.f.label();
        let ty = BlockType::FuncType(ty);
        let body_block = Block { kind: BlockKind::Block, ty, label, is_target: false, height: 0 };
        self.scratch.blocks.push(body_block);
        let mut operators = body.get_operators_reader()?;
        while !operators.eof() {
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
            Operator::Br { relative_depth } => self.br(relative_depth)?,
            Operator::BrIf { relative_depth } => self.br_if(relative_depth)?,
            Operator::BrTable { ref targets } => self.br_table(targets)?,
            Operator::Return => {
                self.unwind(0, self.f.ty().results.len() as u32)?;
                self.f.ret();
            }
            Operator::ReturnCall { function_index } => {
                let n_params = self.types.of_func(function_index).params.len() as u32;
                self.unwind(0, n_params)?;
                self.f.inst(Op::ReturnCall, Imm::index(function_index));
            }
            Operator::ReturnCallIndirect { type_index, table_index } => {
                let ty: TypeId = self.types.id(type_index);
                // The index into the table comes along, too.
                let n_taken = self.types.get(type_index).params.len() as u32 + 1;
                self.unwind(0, n_taken)?;
                self.f.return_call_indirect(ty, TableId(table_index));
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
        let label = self.f.label();
        let height = self.f.depth() - self.n_params(ty);
        self.scratch.blocks.push(Block { kind, ty, label, is_target: false, height });
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
        if block.is_target && !matches!(block.kind, BlockKind::Loop) {
            self.f.bind(block.label);
        }
        if self.scratch.blocks.is_empty() && self.f.is_reachable() {
            self.f.ret();
        }
    }

    fn br(&mut self, depth: u32) -> Result<(), Error> {
        let (label, height, n_taken) = self.target(depth);
        self.unwind(height, n_taken)?;
        self.f.br(label);
        Ok(())
    }

    fn br_if(&mut self, depth: u32) -> Result<(), Error> {
        let (label, height, n_taken) = self.target(depth);
        if self.f.depth() - 1 == height + n_taken {
            self.f.br_if(label);
            return Ok(());
        }
        let stay = self.f.label();
        self.f.op(Op::I32Eqz).br_if(stay);
        self.unwind(height, n_taken)?;
        self.f.br(label).bind(stay);
        Ok(())
    }

    fn br_table(&mut self, table: &BrTable<'_>) -> Result<(), Error> {
        let mut targets = std::mem::take(&mut self.scratch.targets);
        let mut detours = std::mem::take(&mut self.scratch.detours);
        targets.clear();
        detours.clear();
        self.scratch.by_depth.resize(self.scratch.blocks.len(), None);
        for depth in table.targets() {
            targets.push(self.table_target(depth?, &mut detours));
        }
        let default = self.table_target(table.default(), &mut detours);
        self.f.br_table(&targets, default);
        for &(depth, detour) in &detours {
            self.scratch.by_depth[depth as usize] = None;
            self.f.bind(detour);
            self.br(depth)?;
        }
        (self.scratch.targets, self.scratch.detours) = (targets, detours);
        Ok(())
    }

    /// Where a `br_table` goes to reach the block at `depth`. The index is on the stack still.
    fn table_target(&mut self, depth: u32, detours: &mut Vec<(u32, LabelId)>) -> LabelId {
        let (label, height, n_taken) = self.target(depth);
        if self.f.depth() - 1 == height + n_taken {
            return label;
        }
        if let Some(detour) = self.scratch.by_depth[depth as usize] {
            return detour;
        }
        let detour = self.f.label();
        self.scratch.by_depth[depth as usize] = Some(detour);
        detours.push((depth, detour));
        detour
    }

    /// The label of the block at `depth`, the height of the stack below what a branch to it takes
    /// along, and how many operands that is.
    fn target(&mut self, depth: u32) -> (LabelId, u32, u32) {
        let block = self.block(depth);
        block.is_target = true;
        let (label, height, ty) = (block.label, block.height, block.ty);
        let n_taken = match block.kind {
            BlockKind::Loop => self.n_params(ty),
            _ => self.n_results(ty),
        };
        (label, height, n_taken)
    }

    /// Drops all operands between the lowest `height` and the topmost `n_taken`.
    fn unwind(&mut self, height: u32, n_taken: u32) -> Result<(), Error> {
        let n_unwound = self.f.depth() - n_taken - height;
        if n_unwound == 0 {
            return Ok(());
        }
        // What is taken along is counted, too: it is saved and restored.
        self.scratch.n_unwound += u64::from(n_unwound) + u64::from(n_taken);
        if self.scratch.n_unwound > limits::UNWOUND_OPERANDS_MAX {
            return Err(Error::Limit("UNWOUND_OPERANDS_MAX"));
        }
        let taken: Vec<ValType> = self.f.operands().take(n_taken as usize).collect();
        let mut n_saved = [0; ValType::ALL.len()];
        let mut locals = Vec::with_capacity(taken.len());
        for &ty in &taken {
            let local = self.saved_local(ty, n_saved[ty.index()]);
            n_saved[ty.index()] += 1;
            self.f.local_set(local);
            locals.push(local);
        }
        for _ in 0..n_unwound {
            self.f.op(Op::Drop);
        }
        for &local in locals.iter().rev() {
            self.f.local_get(local);
        }
        Ok(())
    }

    /// The local that holds the `n`th operand of a type that a branch takes along.
    fn saved_local(&mut self, ty: ValType, n: usize) -> LocalId {
        let locals = &mut self.saved[ty.index()];
        if n == locals.len() {
            locals.push(self.f.local(ty));
        }
        locals[n]
    }

    fn func_type(&self, ty: u32) -> &FuncType {
        self.types.get(ty)
    }

    fn n_params(&self, ty: BlockType) -> u32 {
        match ty {
            BlockType::FuncType(ty) => self.func_type(ty).params.len() as u32,
            _ => 0,
        }
    }

    fn n_results(&self, ty: BlockType) -> u32 {
        match ty {
            BlockType::Empty => 0,
            BlockType::Type(_) => 1,
            BlockType::FuncType(ty) => self.func_type(ty).results.len() as u32,
        }
    }
}
