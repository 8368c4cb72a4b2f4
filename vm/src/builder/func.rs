//! Builder of one function: it types instructions as they are emitted, and writes them into a [`Draft`].

use std::collections::BTreeMap;
use std::sync::Arc;

use super::draft::Draft;
pub use super::draft::LabelId;
use super::{
    BuildError, BuildRule, DataId, ElemId, FuncId, GlobalId, LocalId, ModuleBuilder, NameSpace,
    TableId, TypeId,
};
use crate::inst::{Imm, check_lane, write_inst, write_vector};
use crate::limits;
use crate::module::{BranchHint, Func, SourcePlace};
use crate::op::{ImmKind, Op};
use crate::stacks::{StackId, Stacks};
use crate::types::{FuncType, ValType};

mod typing;

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
    /// The names and stacks of labels.
    labels: Vec<LabelInfo>,
    /// All operand stacks that the function has had.
    stacks: Stacks,
    /// The operand stack, or `None` in unreachable code.
    stack: Option<StackId>,
    draft: Draft,
    n_insts: u32,
    error: Option<BuildError>,
}

#[derive(Debug, Default)]
struct LabelInfo {
    name: String,
    stack: Option<StackId>,
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
            draft: Draft::default(),
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
        self.draft.label()
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
            let known = f.label_info(None, label)?.stack;
            if f.draft.number(label).is_some() {
                return f.fail(None, BuildRule::Rebound(label.0));
            }
            let stack = match (known, f.stack) {
                (None, None) => return f.fail(None, BuildRule::UnknownStack(label.0)),
                (Some(known), None) => known,
                (_, Some(_)) => f.flow_to(None, label)?,
            };
            // Another label bound here has the same stack, since control continues from it.
            f.draft.bind(label, stack);
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

    /// Sets the source line of the following instructions, without a file or a column; 0 means "no line".
    pub fn line(&mut self, line: u32) -> &mut Self {
        self.source_place(SourcePlace::line(line))
    }

    /// Sets the source place of the following instructions. Its file is a number of
    /// [`ModuleBuilder::source_file`](crate::builder::ModuleBuilder::source_file), or 0.
    pub fn source_place(&mut self, place: SourcePlace) -> &mut Self {
        self.draft.place(place);
        self
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
            write_vector(&mut f.draft.code, op, bytes);
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

    /// Emits `trap`. The module may have a message for the number, see
    /// [`ModuleBuilder::trap_message`](crate::builder::ModuleBuilder::trap_message).
    pub fn trap(&mut self, number: u32) -> &mut Self {
        self.inst(Op::Trap, Imm::index(number))
    }

    /// Emits `br`.
    pub fn br(&mut self, label: LabelId) -> &mut Self {
        self.emit(Some(Op::Br), |f| {
            f.apply_branch(Op::Br, label, 0)?;
            f.draft.branch(Op::Br, label);
            Ok(())
        })
    }

    /// Emits `br_keep`, which keeps the topmost `n` operands and the lowest ones that the label has below
    /// these, and drops those between. The operand stack of the label must be known, from an earlier branch
    /// or [`FunctionBuilder::label_with_stack`].
    pub fn br_keep(&mut self, label: LabelId, n: u32) -> &mut Self {
        self.emit(Some(Op::BrKeep), |f| {
            f.apply_branch(Op::BrKeep, label, n)?;
            f.draft.br_keep(label, n);
            Ok(())
        })
    }

    /// Emits `br_if`.
    pub fn br_if(&mut self, label: LabelId) -> &mut Self {
        self.br_if_hinted(label, None)
    }

    /// Emits `br_if`, with a hint whether it is mostly taken.
    pub fn br_if_hinted(&mut self, label: LabelId, hint: Option<BranchHint>) -> &mut Self {
        self.emit(Some(Op::BrIf), |f| {
            f.apply_branch(Op::BrIf, label, 0)?;
            if let Some(hint) = hint {
                f.draft.hint(hint);
            }
            f.draft.branch(Op::BrIf, label);
            Ok(())
        })
    }

    /// Emits `br_table`; indices out of range go to the default.
    pub fn br_table(&mut self, labels: &[LabelId], default: LabelId) -> &mut Self {
        self.emit(Some(Op::BrTable), |f| {
            f.apply_table(labels, default)?;
            f.draft.br_table(labels, default);
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
        self.draft.number(label).is_some()
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
        self.module.stacks.take_labels(&mut layout.labels, &self.stacks);
        self.module.spare_stacks = std::mem::take(&mut self.stacks);
        let func = &mut self.module.module.funcs[self.place];
        *func = Func { ty: func.ty, ..layout };
        self.module.defined[self.place] = true;
        Ok(())
    }

    fn check_end(&mut self) -> Emit {
        if self.stack.is_some() {
            return self.fail(None, BuildRule::FallsOff);
        }
        if let Some(label) = self.draft.unbound() {
            return self.fail(None, BuildRule::Unbound(label.0));
        }
        if self.locals.len() > limits::LOCALS_MAX {
            return self.fail(None, BuildRule::Limit("LOCALS_MAX"));
        }
        match self.draft.exceeds() {
            Some(limit) => self.fail(None, BuildRule::Limit(limit)),
            None => Ok(()),
        }
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
        for (id, label) in (0..).zip(&self.labels).filter(|(_, label)| !label.name.is_empty()) {
            if let Some(number) = self.draft.number(LabelId(id)) {
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

    /// Returns the function with labels inserted.
    fn lay_out(&self) -> Func {
        let declared = &self.locals[self.ty.params.len()..];
        let runs = declared.chunk_by(|a, b| a == b).map(|run| (run.len() as u32, run[0]));
        Func { locals: runs.collect(), ..self.draft.lay_out(std::iter::empty()) }
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
        let line = self.draft.current_place().line;
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
        write_inst(&mut self.draft.code, op, imm);
        Ok(())
    }
}
