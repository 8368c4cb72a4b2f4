//! Builder of one function.
//!
//! Labels are numbered in the order of binding, which is that of the label table. The label number of a
//! forward branch is not yet known. So branches are emitted without labels; [`FunctionBuilder::finish`]
//! inserts them and adjusts code offsets.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::stacks::{StackId, Stacks};
use super::{
    BuildError, BuildRule, DataId, ElemId, FuncId, GlobalId, LocalId, ModuleBuilder, NameSpace,
    TableId, TypeId,
};
use crate::inst::{Imm, check_lane, write_inst, write_op, write_vector};
use crate::leb;
use crate::limits;
use crate::module::{Func, Label, ShapeId};
use crate::op::{ImmKind, Op};
use crate::types::{FuncType, ValType};

mod typing;

/// A label of the function being built.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelId(pub u32);

/// Emits the code of a function; see [`crate::builder`].
///
/// Each emitter returns the builder, so that calls can be chained.
#[derive(Debug)]
pub struct FunctionBuilder<'m> {
    module: &'m mut ModuleBuilder,
    id: FuncId,
    /// Its index among the functions that the builder defines.
    place: usize,
    ty: Arc<FuncType>,
    /// Whether the function already has code, which `finish` replaces.
    replaces: bool,
    locals: Vec<ValType>,
    local_names: BTreeMap<u32, String>,
    labels: Vec<LabelInfo>,
    /// All operand stacks that the function has had.
    stacks: Stacks,
    /// The operand stack, or `None` in unreachable code.
    stack: Option<StackId>,
    /// The code without the labels of branches, which belong at the offsets in `label_uses`.
    code: Vec<u8>,
    label_uses: Vec<(u32, LabelId)>,
    /// The code offsets of bound labels with their stacks, each offset once, in ascending order.
    bound: Vec<(u32, StackId)>,
    lines: Vec<(u32, u32)>,
    source_bytes: u32,
    n_insts: u32,
    error: Option<BuildError>,
}

#[derive(Debug, Default)]
struct LabelInfo {
    name: String,
    stack: Option<StackId>,
    /// The number in the label table, once it is bound.
    number: Option<u32>,
}

/// Marks a mistake, which the emitter has recorded.
struct Failed;

type Emit<T = ()> = Result<T, Failed>;

impl<'m> FunctionBuilder<'m> {
    pub(super) fn new(
        module: &'m mut ModuleBuilder,
        id: FuncId,
        replaces: bool,
    ) -> FunctionBuilder<'m> {
        let known = module.func_types.get(id.0 as usize);
        let ty = known.map_or_else(Arc::default, |ty| Arc::clone(&module.types[ty.0 as usize]));
        let place = id.0.wrapping_sub(module.first_func) as usize;
        let definable = module.defined.get(place) == Some(&replaces);
        let mut builder = FunctionBuilder {
            id,
            place,
            locals: ty.params.clone(),
            ty,
            replaces,
            local_names: BTreeMap::new(),
            labels: Vec::new(),
            stacks: module.spare_stacks.take_empty(),
            stack: Some(StackId::EMPTY),
            code: Vec::new(),
            label_uses: Vec::new(),
            bound: Vec::new(),
            lines: Vec::new(),
            source_bytes: 0,
            n_insts: 0,
            error: None,
            module,
        };
        if !definable {
            builder.record(None, BuildRule::NotDefinable);
        }
        builder
    }

    /// Returns the module builder, to declare types, functions and segments that the function needs.
    pub fn module(&mut self) -> &mut ModuleBuilder {
        self.module
    }

    /// The type of the function.
    pub fn ty(&self) -> &FuncType {
        &self.ty
    }

    /// Returns a parameter.
    pub fn param(&self, index: u32) -> LocalId {
        LocalId(index)
    }

    /// Adds a local, which starts as zero or null.
    pub fn local(&mut self, ty: ValType) -> LocalId {
        self.locals.push(ty);
        LocalId(self.locals.len() as u32 - 1)
    }

    /// Adds a local with a name.
    pub fn named_local(&mut self, name: &str, ty: ValType) -> LocalId {
        let local = self.local(ty);
        self.name_local(local, name);
        local
    }

    /// Names a parameter or local. If the name is taken, a number is appended.
    pub fn name_local(&mut self, local: LocalId, name: &str) {
        if self.local_ty(None, local).is_ok() {
            self.local_names.insert(local.0, name.to_owned());
        }
    }

    /// The types of all locals, parameters first.
    pub fn locals(&self) -> &[ValType] {
        &self.locals
    }

    /// Creates a label. [`FunctionBuilder::bind`] sets its position. Its operand stack is that of the first
    /// branch to it, or else that of the code that falls into it.
    pub fn label(&mut self) -> LabelId {
        self.labels.push(LabelInfo::default());
        LabelId(self.labels.len() as u32 - 1)
    }

    /// Creates a label with a name.
    pub fn named_label(&mut self, name: &str) -> LabelId {
        let label = self.label();
        name.clone_into(&mut self.labels[label.0 as usize].name);
        label
    }

    /// Creates a label with a known operand stack, deepest operand first.
    pub fn label_with_stack(&mut self, stack: &[ValType]) -> LabelId {
        let label = self.label();
        let stack = self.stacks.push_all(StackId::EMPTY, stack);
        self.labels[label.0 as usize].stack = Some(stack);
        label
    }

    /// Binds a label to the next instruction. Several labels may share a position.
    pub fn bind(&mut self, label: LabelId) -> &mut Self {
        self.emit(None, |f| {
            let info = f.label_info(None, label)?;
            let (known, number) = (info.stack, info.number);
            if number.is_some() {
                return f.fail(None, BuildRule::Rebound(label.0));
            }
            let stack = match (known, f.stack) {
                (None, None) => return f.fail(None, BuildRule::UnknownStack(label.0)),
                (Some(known), None) => known,
                (_, Some(_)) => f.flow_to(None, label)?,
            };
            let offset = f.code.len() as u32;
            // Another label bound here has the same stack, since control continues from it.
            if f.bound.last().is_none_or(|&(place, _)| place < offset) {
                f.bound.push((offset, stack));
            }
            f.labels[label.0 as usize].number = Some(f.bound.len() as u32 - 1);
            f.stack = Some(stack);
            Ok(())
        })
    }

    /// Binds a label with this operand stack, deepest operand first, to the next instruction. This is for
    /// labels that only later branches reach.
    pub fn bind_with_stack(&mut self, label: LabelId, stack: &[ValType]) -> &mut Self {
        self.emit(None, |f| {
            let stack = f.stacks.push_all(StackId::EMPTY, stack);
            f.meet(None, label, stack)
        });
        self.bind(label)
    }

    /// Sets the source line of the following instructions; 0 means "no line".
    pub fn line(&mut self, line: u32) -> &mut Self {
        let offset = self.code.len() as u32;
        if self.lines.last().is_some_and(|&(o, _)| o == offset) {
            self.lines.pop();
        }
        if self.current_line() != line {
            self.lines.push((offset, line));
        }
        self
    }

    /// Sets the size in bytes of the function that this one is translated from.
    #[cfg(feature = "wasm")]
    pub(crate) fn set_source_bytes(&mut self, n_bytes: usize) {
        self.source_bytes = u32::try_from(n_bytes).unwrap_or(u32::MAX);
    }

    /// Emits an instruction without immediates.
    pub fn op(&mut self, op: Op) -> &mut Self {
        self.emit(Some(op), |f| {
            if op.imm_kind() != ImmKind::None {
                return f.fail(Some(op), BuildRule::Immediates);
            }
            f.plain(op, Imm::NONE)
        })
    }

    /// Emits any instruction except those with methods of their own. These are the branches, which need
    /// labels ([`FunctionBuilder::br`], [`FunctionBuilder::br_keep`], [`FunctionBuilder::br_if`] and
    /// [`FunctionBuilder::br_table`]), and the instructions with the 16 bytes of a vector
    /// ([`FunctionBuilder::vector`]).
    pub fn inst(&mut self, op: Op, imm: Imm) -> &mut Self {
        self.emit(Some(op), |f| {
            let is_elsewhere = matches!(
                op.imm_kind(),
                ImmKind::Label
                    | ImmKind::LabelCount
                    | ImmKind::Labels
                    | ImmKind::V128
                    | ImmKind::Lanes
            );
            let lane = match op.imm_kind() {
                ImmKind::Lane => Some(imm.low()),
                ImmKind::MemLane => Some(imm.access_lane()),
                _ => None,
            };
            if is_elsewhere || lane.is_some_and(|lane| check_lane(op, lane).is_err()) {
                return f.fail(Some(op), BuildRule::Immediates);
            }
            f.plain(op, imm)
        })
    }

    /// Emits `v128.const` or `i8x16.shuffle` with its 16 bytes, as a little-endian number.
    pub fn vector(&mut self, op: Op, bytes: u128) -> &mut Self {
        self.emit(Some(op), |f| {
            let fits = match op.imm_kind() {
                ImmKind::V128 => true,
                ImmKind::Lanes => {
                    let mut lanes = bytes.to_le_bytes().into_iter();
                    lanes.all(|lane| check_lane(op, lane.into()).is_ok())
                }
                _ => false,
            };
            if !fits {
                return f.fail(Some(op), BuildRule::Immediates);
            }
            f.live(op)?;
            f.apply(op, Imm::NONE)?;
            write_vector(&mut f.code, op, bytes);
            Ok(())
        })
    }

    /// Emits `i32.const`.
    pub fn i32_const(&mut self, value: i32) -> &mut Self {
        self.inst(Op::I32Const, Imm::i32(value))
    }

    /// Emits `i64.const`.
    pub fn i64_const(&mut self, value: i64) -> &mut Self {
        self.inst(Op::I64Const, Imm::i64(value))
    }

    /// Emits `f32.const`.
    pub fn f32_const(&mut self, value: f32) -> &mut Self {
        self.inst(Op::F32Const, Imm::index(value.to_bits()))
    }

    /// Emits `f64.const`.
    pub fn f64_const(&mut self, value: f64) -> &mut Self {
        self.inst(Op::F64Const, Imm(value.to_bits()))
    }

    /// Emits `v128.const`.
    pub fn v128_const(&mut self, value: u128) -> &mut Self {
        self.vector(Op::V128Const, value)
    }

    /// Emits `local.get`.
    pub fn local_get(&mut self, local: LocalId) -> &mut Self {
        self.inst(Op::LocalGet, Imm::index(local.0))
    }

    /// Emits `local.set`.
    pub fn local_set(&mut self, local: LocalId) -> &mut Self {
        self.inst(Op::LocalSet, Imm::index(local.0))
    }

    /// Emits `local.tee`.
    pub fn local_tee(&mut self, local: LocalId) -> &mut Self {
        self.inst(Op::LocalTee, Imm::index(local.0))
    }

    /// Emits `local.addr`.
    pub fn local_addr(&mut self, local: LocalId) -> &mut Self {
        self.inst(Op::LocalAddr, Imm::index(local.0))
    }

    /// Emits `global.get`.
    pub fn global_get(&mut self, global: GlobalId) -> &mut Self {
        self.inst(Op::GlobalGet, Imm::index(global.0))
    }

    /// Emits `global.set`.
    pub fn global_set(&mut self, global: GlobalId) -> &mut Self {
        self.inst(Op::GlobalSet, Imm::index(global.0))
    }

    /// Emits `ref.null`.
    pub fn ref_null(&mut self, ty: ValType) -> &mut Self {
        self.inst(Op::RefNull, Imm::ref_type(ty))
    }

    /// Emits `ref.func`.
    pub fn ref_func(&mut self, func: FuncId) -> &mut Self {
        self.inst(Op::RefFunc, Imm::index(func.0))
    }

    /// Emits `table.get`, `table.set`, `table.size`, `table.grow` or `table.fill`.
    pub fn table(&mut self, op: Op, table: TableId) -> &mut Self {
        self.checked(op, op.imm_kind() == ImmKind::Table, Imm::index(table.0))
    }

    /// Emits `table.copy`.
    pub fn table_copy(&mut self, destination: TableId, source: TableId) -> &mut Self {
        self.inst(Op::TableCopy, Imm::pair(destination.0, source.0))
    }

    /// Emits `table.init`.
    pub fn table_init(&mut self, elem: ElemId, table: TableId) -> &mut Self {
        self.inst(Op::TableInit, Imm::pair(elem.0, table.0))
    }

    /// Emits `elem.drop`.
    pub fn elem_drop(&mut self, elem: ElemId) -> &mut Self {
        self.inst(Op::ElemDrop, Imm::index(elem.0))
    }

    /// Emits `memory.size`, `memory.grow`, `memory.fill` or `memory.copy` of memory 0.
    pub fn memory(&mut self, op: Op) -> &mut Self {
        let fits = matches!(op.imm_kind(), ImmKind::Memory | ImmKind::MemoryMemory);
        self.checked(op, fits, Imm::NONE)
    }

    /// Emits `memory.init` of memory 0.
    pub fn memory_init(&mut self, data: DataId) -> &mut Self {
        self.inst(Op::MemoryInit, Imm::pair(data.0, 0))
    }

    /// Emits `data.drop`.
    pub fn data_drop(&mut self, data: DataId) -> &mut Self {
        self.inst(Op::DataDrop, Imm::index(data.0))
    }

    /// Emits a plain load of memory 0 with a static offset.
    pub fn load(&mut self, op: Op, offset: u32) -> &mut Self {
        let fits = op.access().is_some_and(|access| !access.store && !access.indexed);
        self.checked(op, fits, Imm::mem(offset))
    }

    /// Emits a plain store to memory 0 with a static offset.
    pub fn store(&mut self, op: Op, offset: u32) -> &mut Self {
        let fits = op.access().is_some_and(|access| access.store && !access.indexed);
        self.checked(op, fits, Imm::mem(offset))
    }

    /// Emits an indexed load of memory 0 with a scale of 1, 2, 4 or 8.
    pub fn load_indexed(&mut self, op: Op, scale: u32, offset: u32) -> &mut Self {
        self.indexed(op, false, scale, offset)
    }

    /// Emits an indexed store to memory 0 with a scale of 1, 2, 4 or 8.
    pub fn store_indexed(&mut self, op: Op, scale: u32, offset: u32) -> &mut Self {
        self.indexed(op, true, scale, offset)
    }

    /// Emits `call`.
    pub fn call(&mut self, func: FuncId) -> &mut Self {
        self.inst(Op::Call, Imm::index(func.0))
    }

    /// Emits `call_indirect`.
    pub fn call_indirect(&mut self, ty: TypeId, table: TableId) -> &mut Self {
        self.inst(Op::CallIndirect, Imm::pair(ty.0, table.0))
    }

    /// Emits `return_call`.
    pub fn return_call(&mut self, func: FuncId) -> &mut Self {
        self.inst(Op::ReturnCall, Imm::index(func.0))
    }

    /// Emits `return_call_indirect`.
    pub fn return_call_indirect(&mut self, ty: TypeId, table: TableId) -> &mut Self {
        self.inst(Op::ReturnCallIndirect, Imm::pair(ty.0, table.0))
    }

    /// Emits `return`.
    pub fn ret(&mut self) -> &mut Self {
        self.op(Op::Return)
    }

    /// Emits `unreachable`.
    pub fn unreachable(&mut self) -> &mut Self {
        self.op(Op::Unreachable)
    }

    /// Emits `br`.
    pub fn br(&mut self, label: LabelId) -> &mut Self {
        self.emit(Some(Op::Br), |f| {
            f.apply_branch(Op::Br, label, 0)?;
            f.branch_to(Op::Br, &[label]);
            Ok(())
        })
    }

    /// Emits `br_keep`, which keeps the topmost `n` operands and the lowest ones that the label has below
    /// these, and drops those between. The operand stack of the label must be known, from an earlier branch
    /// or [`FunctionBuilder::label_with_stack`].
    pub fn br_keep(&mut self, label: LabelId, n: u32) -> &mut Self {
        self.emit(Some(Op::BrKeep), |f| {
            f.apply_branch(Op::BrKeep, label, n)?;
            f.branch_to(Op::BrKeep, &[label]);
            leb::write_u32(&mut f.code, n);
            Ok(())
        })
    }

    /// Emits `br_if`.
    pub fn br_if(&mut self, label: LabelId) -> &mut Self {
        self.emit(Some(Op::BrIf), |f| {
            f.apply_branch(Op::BrIf, label, 0)?;
            f.branch_to(Op::BrIf, &[label]);
            Ok(())
        })
    }

    /// Emits `br_table`; indices out of range go to the default.
    pub fn br_table(&mut self, labels: &[LabelId], default: LabelId) -> &mut Self {
        self.emit(Some(Op::BrTable), |f| {
            f.apply_table(labels, default)?;
            write_op(&mut f.code, Op::BrTable);
            leb::write_u32(&mut f.code, labels.len() as u32);
            let place = f.code.len() as u32;
            f.label_uses.extend(labels.iter().chain([&default]).map(|&label| (place, label)));
            Ok(())
        })
    }

    /// Whether the next instruction is reachable. If not, a label must be bound first.
    pub fn is_reachable(&self) -> bool {
        self.stack.is_some()
    }

    /// Number of operands on the stack; 0 in unreachable code.
    pub fn depth(&self) -> u32 {
        self.stack.map_or(0, |stack| self.stacks.depth(stack))
    }

    /// Number of distinct operand stacks that the function has had.
    #[cfg(feature = "wasm")]
    pub(crate) fn n_stacks(&self) -> usize {
        self.stacks.len()
    }

    /// The operand stack below the topmost `n` operands. It must have that many.
    #[cfg(feature = "wasm")]
    pub(crate) fn stack_below(&self, n: u32) -> StackId {
        let stack = self.stack.unwrap_or(StackId::EMPTY);
        self.stacks.below(stack, self.depth() - n)
    }

    /// Sets the operand stack of a label to these operands on top of `below`, unless it is already known.
    #[cfg(feature = "wasm")]
    pub(crate) fn give_stack(&mut self, label: LabelId, below: StackId, types: &[ValType]) {
        let info = &mut self.labels[label.0 as usize];
        if info.stack.is_none() {
            info.stack = Some(self.stacks.push_all(below, types));
        }
    }

    /// The types of the operands, topmost first.
    pub fn operands(&self) -> impl Iterator<Item = ValType> + '_ {
        self.stacks.types(self.stack.unwrap_or(StackId::EMPTY))
    }

    /// The types of the operands at a label, topmost first, if they are known yet.
    pub fn operands_at(&self, label: LabelId) -> Option<impl Iterator<Item = ValType> + '_> {
        let stack = self.labels.get(label.0 as usize)?.stack?;
        Some(self.stacks.types(stack))
    }

    /// Whether a label is already bound.
    pub fn is_bound(&self, label: LabelId) -> bool {
        self.labels.get(label.0 as usize).is_some_and(|info| info.number.is_some())
    }

    /// Returns the first mistake in the function so far, if any.
    pub fn error(&self) -> Option<&BuildError> {
        self.error.as_ref()
    }

    /// Adds the function to the module.
    ///
    /// # Errors
    /// Returns the first mistake in the function; [`ModuleBuilder::finish`] returns it, too.
    pub fn finish(mut self) -> Result<(), BuildError> {
        self.emit(None, Self::check_end);
        if let Some(error) = self.error {
            self.module.fail_with(error.clone());
            return Err(error);
        }
        self.name_all();
        let mut layout = self.lay_out();
        self.settle_shapes(&mut layout.labels);
        let func = &mut self.module.module.funcs[self.place];
        *func = Func { ty: func.ty, ..layout };
        self.module.defined[self.place] = true;
        Ok(())
    }

    fn check_end(&mut self) -> Emit {
        if self.stack.is_some() {
            return self.fail(None, BuildRule::FallsOff);
        }
        let unbound = |&(_, label): &(u32, LabelId)| !self.is_bound(label);
        if let Some((_, label)) = self.label_uses.iter().copied().find(unbound) {
            return self.fail(None, BuildRule::Unbound(label.0));
        }
        if self.locals.len() > limits::LOCALS_MAX {
            return self.fail(None, BuildRule::Limit("LOCALS_MAX"));
        }
        if self.bound.len() > limits::LABELS_MAX {
            return self.fail(None, BuildRule::Limit("LABELS_MAX"));
        }
        // The missing labels take at most 4 bytes each.
        let code_bytes = self.code.len() + 4 * self.label_uses.len();
        if code_bytes > limits::CODE_BYTES_MAX {
            return self.fail(None, BuildRule::Limit("CODE_BYTES_MAX"));
        }
        Ok(())
    }

    /// Adds the names of locals and labels to the module.
    fn name_all(&mut self) {
        let mut locals = Vec::new();
        let mut space = NameSpace::default();
        for (&local, name) in &self.local_names {
            space.add(&mut locals, local, name);
        }
        // Labels at the same position share a number; the first one names it.
        let mut by_number = BTreeMap::new();
        for label in self.labels.iter().filter(|label| !label.name.is_empty()) {
            if let Some(number) = label.number {
                by_number.entry(number).or_insert(&label.name);
            }
        }
        let mut labels = Vec::new();
        let mut space = NameSpace::default();
        for (number, name) in by_number {
            space.add(&mut labels, number, name);
        }
        let names = &mut self.module.module.names;
        for (list, of_func) in [(&mut names.locals, locals), (&mut names.labels, labels)] {
            if self.replaces || !of_func.is_empty() {
                list.push((self.id.0, of_func));
            }
        }
    }

    /// Replaces the shapes of labels by numbers of the stacks of all labels of the module. Releases the other
    /// stacks of the function.
    fn settle_shapes(&mut self, labels: &mut [Label]) {
        if labels.iter().any(|label| label.shape != ShapeId::EMPTY) {
            let of_labels = &mut self.module.stacks;
            self.stacks.renumber(labels.iter_mut(), |below, ty| {
                of_labels.push(StackId::from_shape(below), ty).to_shape()
            });
        }
        self.module.spare_stacks = std::mem::take(&mut self.stacks);
    }

    /// Returns the function with labels inserted.
    fn lay_out(&self) -> Func {
        let mut code = Vec::with_capacity(self.code.len() + self.label_uses.len());
        let mut labels = Vec::with_capacity(self.bound.len());
        let mut lines = Vec::with_capacity(self.lines.len());
        let mut uses = self.label_uses.iter().peekable();
        let mut bound = self.bound.iter().peekable();
        let mut marks = self.lines.iter().peekable();
        let mut copied = 0;
        loop {
            // The next position in the code. Labels of a branch come before marks after it.
            let next_use = uses.peek().map(|&&(place, _)| place);
            let next_mark = [bound.peek().map(|&&(p, _)| p), marks.peek().map(|&&(p, _)| p)];
            let Some(place) = next_mark.into_iter().chain([next_use]).flatten().min() else {
                break;
            };
            code.extend_from_slice(&self.code[copied..place as usize]);
            copied = place as usize;
            while let Some((_, label)) = uses.next_if(|&&(p, _)| p == place) {
                let number = self.labels[label.0 as usize].number;
                leb::write_u32(&mut code, number.expect("checked by `check_end`"));
            }
            let offset = code.len() as u32;
            if let Some((_, stack)) = bound.next_if(|&&(p, _)| p == place) {
                labels.push(Label { offset, shape: stack.to_shape() });
            }
            if let Some(&(_, line)) = marks.next_if(|&&(p, _)| p == place) {
                lines.push((offset, line));
            }
        }
        code.extend_from_slice(&self.code[copied..]);
        // A line set after the last instruction has no instruction.
        lines.retain(|&(offset, _)| (offset as usize) < code.len());
        let declared = &self.locals[self.ty.params.len()..];
        let runs = declared.chunk_by(|a, b| a == b).map(|run| (run.len() as u32, run[0]));
        Func { ty: 0, locals: runs.collect(), labels, code, lines, source_bytes: self.source_bytes }
    }

    fn current_line(&self) -> u32 {
        self.lines.last().map_or(0, |&(_, line)| line)
    }

    /// Runs an emitter, unless a mistake has been recorded.
    fn emit(&mut self, op: Option<Op>, emit: impl FnOnce(&mut Self) -> Emit) -> &mut Self {
        if self.error.is_none() && emit(self).is_ok() && op.is_some() {
            self.n_insts += 1;
        }
        self
    }

    fn fail<T>(&mut self, op: Option<Op>, rule: BuildRule) -> Emit<T> {
        self.record(op, rule);
        Err(Failed)
    }

    /// Records the first mistake.
    #[cold]
    fn record(&mut self, op: Option<Op>, rule: BuildRule) {
        let name = self.module.module.names.func(self.id.0).map(str::to_owned);
        let line = self.current_line();
        let inst = op.map(|op| (self.n_insts, op));
        let error = BuildError { inst, line, ..BuildError::in_func(self.id, name, rule) };
        self.error.get_or_insert(error);
    }

    fn checked(&mut self, op: Op, fits: bool, imm: Imm) -> &mut Self {
        self.emit(Some(op), |f| {
            if !fits {
                return f.fail(Some(op), BuildRule::Immediates);
            }
            f.plain(op, imm)
        })
    }

    fn indexed(&mut self, op: Op, store: bool, scale: u32, offset: u32) -> &mut Self {
        self.emit(Some(op), |f| {
            if !op.access().is_some_and(|access| access.store == store && access.indexed) {
                return f.fail(Some(op), BuildRule::Immediates);
            }
            if !matches!(scale, 1 | 2 | 4 | 8) {
                return f.fail(Some(op), BuildRule::Scale(scale));
            }
            f.plain(op, Imm::indexed(offset, scale.trailing_zeros()))
        })
    }

    /// Emits an instruction that has no labels.
    fn plain(&mut self, op: Op, imm: Imm) -> Emit {
        self.live(op)?;
        self.apply(op, imm)?;
        write_inst(&mut self.code, op, imm);
        Ok(())
    }

    fn branch_to(&mut self, op: Op, labels: &[LabelId]) {
        write_op(&mut self.code, op);
        let place = self.code.len() as u32;
        self.label_uses.extend(labels.iter().map(|&label| (place, label)));
    }
}
