//! Typing of one function's code: one forward pass.
//!
//! The operand stack is a shape of the shape table (`base`) with the operands pushed since on top of
//! it (`top`). At a branch or label `top` is compared with the last entries of the label's shape and
//! then folded into `base`, so that an operand is compared once however many branches it lives across
//! and the pass is linear even where stacks are deep.
//!
//! An operand that is the address of a local carries the local (its *token*). Each use of a token
//! other than a plain full access at offset 0 makes the local escape.

use super::error::{Place, Rule, VerifyError};
use super::{IndexSpaces, Shapes, check_limit};
use crate::inst::{CodeReader, Imm, Inst, labels};
use crate::limits;
use crate::module::{Func, Module, ShapeId};
use crate::op::{Access, Effect, ImmKind, Op};
use crate::types::{FuncType, ValType};
use crate::verified::{Block, Body, DirectAccess, EscapeReason, Local, Storage, WideOperands};

/// Marks a successor that is still a label and not yet a block.
const LABEL_BIT: u32 = 1 << 31;
const _: () = assert!(limits::LABELS_MAX < LABEL_BIT as usize);
const _: () = assert!(limits::CODE_BYTES_MAX < LABEL_BIT as usize);

/// What is reused from function to function, and what was found in all of them.
#[derive(Default)]
pub(super) struct Scratch {
    top: Vec<Operand>,
    escapes: Vec<Option<(u32, EscapeReason)>>,
    block_of_label: Vec<u32>,
    pub(super) found: Found,
}

/// What functions have that concerns the whole module.
#[derive(Default)]
pub(super) struct Found {
    /// Whether any function has an indexed access.
    pub(super) uses_indexed: bool,
    /// Whether any function has an instruction on vectors.
    pub(super) uses_vectors: bool,
    /// The functions that `ref.func` refers to, with repetitions.
    pub(super) referenced_funcs: Vec<u32>,
}

impl Found {
    /// Adds what was found in other functions.
    pub(super) fn add(&mut self, other: Found) {
        self.uses_indexed |= other.uses_indexed;
        self.uses_vectors |= other.uses_vectors;
        self.referenced_funcs.extend(other.referenced_funcs);
    }
}

/// An operand on the stack.
#[derive(Copy, Clone)]
struct Operand {
    ty: ValType,
    /// The local whose address it is, plus one; 0 for a plain value.
    token: u32,
}

struct Checker<'m, 's> {
    module: &'m Module,
    spaces: &'m IndexSpaces,
    shapes: &'m Shapes,
    /// Index in the function index space.
    func: u32,
    def: &'m Func,
    ty: &'m FuncType,
    locals: Vec<ValType>,
    scratch: &'s mut Scratch,
    base: ShapeId,
    stack_max: usize,
    /// The operands on the stack that take two cells.
    n_wide: usize,
    /// The most cells that the stack has taken while there were such.
    stack_cells_max: usize,
    wide: Vec<WideOperands>,
    /// The code offset of the instruction being checked.
    offset: u32,
    block: Block,
    blocks: Vec<Block>,
    succs: Vec<u32>,
    direct: Vec<DirectAccess>,
}

type Check<T = ()> = Result<T, VerifyError>;

/// Checks function `index` of [`Module::funcs`].
pub(super) fn check(
    module: &Module,
    spaces: &IndexSpaces,
    shapes: &Shapes,
    index: usize,
    scratch: &mut Scratch,
) -> Check<Body> {
    let func = spaces.n_imported_funcs + index as u32;
    let def = &module.funcs[index];
    let ty = &module.types[def.ty as usize];
    let n_locals = ty.params.len() as u64 + def.n_declared_locals();
    let place = Place::Func(func);
    check_limit(place.clone(), n_locals as usize, limits::LOCALS_MAX, "LOCALS_MAX")?;
    check_limit(place.clone(), def.labels.len(), limits::LABELS_MAX, "LABELS_MAX")?;
    check_limit(place, def.code.len(), limits::CODE_BYTES_MAX, "CODE_BYTES_MAX")?;
    let mut locals = ty.params.clone();
    for &(n, ty) in &def.locals {
        locals.resize(locals.len() + n as usize, ty);
    }
    scratch.top.clear();
    scratch.escapes.clear();
    scratch.escapes.resize(locals.len(), None);
    scratch.block_of_label.clear();
    let checker = Checker {
        module,
        spaces,
        shapes,
        func,
        def,
        ty,
        locals,
        scratch,
        base: ShapeId::EMPTY,
        stack_max: 0,
        n_wide: 0,
        stack_cells_max: 0,
        wide: Vec::new(),
        offset: 0,
        block: Block {
            start: 0,
            end: 0,
            cost: 0,
            shape: ShapeId::EMPTY,
            label: None,
            polls: true,
            succ_start: 0,
        },
        blocks: Vec::new(),
        succs: Vec::new(),
        direct: Vec::new(),
    };
    checker.check()
}

impl<'m> Checker<'m, '_> {
    fn error(&self, rule: Rule, detail: String) -> VerifyError {
        let name = self.module.names.func(self.func).map(str::to_owned);
        let line = self.def.line_at(self.offset);
        Place::Code { func: self.func, name, offset: self.offset, line }.error(rule, detail)
    }

    fn check(mut self) -> Check<Body> {
        self.check_lines()?;
        self.check_labels()?;
        let def = self.def;
        let mut reader = CodeReader::new(&def.code, 0);
        let mut falls_in = true;
        while !reader.is_at_end() {
            self.offset = reader.offset();
            self.enter(falls_in)?;
            let inst = reader.read().map_err(|e| self.error(Rule::Inst, e.to_string()))?;
            self.block.cost += 1;
            self.inst(inst)?;
            falls_in = true;
            if inst.op.is_terminator() {
                falls_in = inst.op == Op::BrIf;
                self.end_block(reader.offset());
            }
        }
        self.offset = reader.offset();
        if falls_in {
            return Err(self.error(Rule::CodeEnd, "control runs off the end of the code".into()));
        }
        if let Some(label) = def.labels.get(self.scratch.block_of_label.len()) {
            self.offset = label.offset;
            return Err(
                self.error(Rule::LabelBoundary, "the label is inside an instruction".into())
            );
        }
        Ok(self.finish())
    }

    fn check_lines(&mut self) -> Check {
        let mut previous: Option<(u32, u32)> = None;
        for &(offset, line) in &self.def.lines {
            self.offset = offset;
            let ordered = previous.is_none_or(|(o, l)| o < offset && l != line);
            if !ordered || offset as usize >= self.def.code.len() {
                return Err(self.error(Rule::Lines, format!("line {line} is out of place")));
            }
            previous = Some((offset, line));
        }
        Ok(())
    }

    fn check_labels(&mut self) -> Check {
        let mut next = 0;
        for (i, label) in self.def.labels.iter().enumerate() {
            self.offset = label.offset;
            if label.offset < next || label.offset as usize >= self.def.code.len() {
                return Err(self.error(Rule::LabelOrder, format!("label {i} is out of place")));
            }
            next = label.offset + 1;
            if label.shape.0 as usize >= self.shapes.depths.len() {
                let detail = format!("label {i} has shape {}", label.shape.0);
                return Err(self.error(Rule::LabelShape, detail));
            }
        }
        Ok(())
    }

    /// Before an instruction: starts a new block at a label, or refuses code that nothing reaches.
    fn enter(&mut self, falls_in: bool) -> Check {
        let n_passed = self.scratch.block_of_label.len();
        match self.def.labels.get(n_passed) {
            Some(label) if label.offset < self.offset => {
                self.offset = label.offset;
                Err(self.error(Rule::LabelBoundary, "the label is inside an instruction".into()))
            }
            Some(label) if label.offset == self.offset => {
                if falls_in {
                    self.flow_to(n_passed as u32, label.shape)?;
                    // A block without instructions is one that the label's block takes the place of.
                    if self.block.cost > 0 {
                        self.succs.push(self.blocks.len() as u32 + 1);
                        self.end_block(self.offset);
                    }
                } else {
                    self.scratch.top.clear();
                    self.base = label.shape;
                    self.n_wide = self.shapes.n_wide(label.shape) as usize;
                }
                self.block.label = Some(n_passed as u32);
                self.block.shape = label.shape;
                self.scratch.block_of_label.push(self.blocks.len() as u32);
                self.grown()
            }
            _ if !falls_in => {
                let detail = "the instruction is neither reached nor at a label".into();
                Err(self.error(Rule::UnreachableCode, detail))
            }
            _ => Ok(()),
        }
    }

    /// Ends the current block before `end` and prepares the next one, into which control falls.
    fn end_block(&mut self, end: u32) {
        for i in 0..self.scratch.top.len() {
            self.escape(self.scratch.top[i], EscapeReason::LeavesBlock);
            self.scratch.top[i].token = 0;
        }
        self.block.end = end;
        self.blocks.push(self.block);
        self.block = Block {
            start: end,
            end,
            cost: 0,
            shape: self.base,
            label: None,
            polls: false,
            succ_start: self.succs.len() as u32,
        };
    }

    /// Checks that the operand stack is exactly `shape` and folds it into `base`.
    fn flow_to(&mut self, label: u32, shape: ShapeId) -> Check {
        let mut below = shape;
        for i in (0..self.scratch.top.len()).rev() {
            let entry = below.0.checked_sub(1).map(|s| self.module.shapes[s as usize]);
            match entry {
                Some(entry) if entry.ty == self.scratch.top[i].ty => below = entry.parent,
                _ => return Err(self.shape_mismatch(label, shape)),
            }
        }
        if below != self.base {
            return Err(self.shape_mismatch(label, shape));
        }
        for i in 0..self.scratch.top.len() {
            self.escape(self.scratch.top[i], EscapeReason::LeavesBlock);
        }
        self.scratch.top.clear();
        self.base = shape;
        Ok(())
    }

    fn shape_mismatch(&self, label: u32, shape: ShapeId) -> VerifyError {
        let label = self.label_name(label);
        let found = self.describe(self.base, &self.scratch.top);
        let expected = self.describe(shape, &[]);
        let detail = format!("label {label} has the stack ({expected}), found ({found})");
        self.error(Rule::ShapeMismatch, detail)
    }

    /// The name of a label, or else its number.
    fn label_name(&self, label: u32) -> String {
        let name = self.module.names.label(self.func, label);
        name.map_or_else(|| label.to_string(), |name| format!("`{name}`"))
    }

    /// The operand stack as text, cut where it is deep.
    fn describe(&self, mut shape: ShapeId, top: &[Operand]) -> String {
        const SHOWN_MAX: usize = 16;
        let mut types: Vec<&str> = top.iter().rev().take(SHOWN_MAX).map(|o| o.ty.name()).collect();
        while types.len() < SHOWN_MAX && shape != ShapeId::EMPTY {
            let entry = self.module.shapes[shape.0 as usize - 1];
            types.push(entry.ty.name());
            shape = entry.parent;
        }
        if top.len() > SHOWN_MAX || shape != ShapeId::EMPTY {
            types.push("…");
        }
        types.reverse();
        types.join(" ")
    }

    #[inline]
    fn depth(&self) -> usize {
        self.shapes.depths[self.base.0 as usize] as usize + self.scratch.top.len()
    }

    #[inline]
    fn push(&mut self, ty: ValType) -> Check {
        self.push_operand(Operand { ty, token: 0 })
    }

    #[inline]
    fn push_operand(&mut self, operand: Operand) -> Check {
        self.scratch.top.push(operand);
        self.n_wide += operand.ty.cells() - 1;
        self.grown()
    }

    #[inline]
    fn grown(&mut self) -> Check {
        let depth = self.depth();
        if self.n_wide > 0 {
            self.stack_cells_max = self.stack_cells_max.max(depth + self.n_wide);
        }
        if depth > self.stack_max {
            self.stack_max = depth;
            if depth > limits::STACK_OPERANDS_MAX {
                let max = limits::STACK_OPERANDS_MAX;
                let detail = format!("{depth} operands exceed STACK_OPERANDS_MAX = {max}");
                return Err(self.error(Rule::Limit, detail));
            }
        }
        Ok(())
    }

    #[inline]
    fn pop_any(&mut self) -> Check<Operand> {
        if let Some(operand) = self.scratch.top.pop() {
            self.n_wide -= operand.ty.cells() - 1;
            return Ok(operand);
        }
        let Some(entry) = self.base.0.checked_sub(1) else {
            return Err(self.error(Rule::StackUnderflow, "the operand stack is empty".into()));
        };
        let entry = self.module.shapes[entry as usize];
        self.base = entry.parent;
        self.n_wide -= entry.ty.cells() - 1;
        Ok(Operand { ty: entry.ty, token: 0 })
    }

    #[inline]
    fn pop_expecting(&mut self, ty: ValType) -> Check<Operand> {
        let operand = self.pop_any()?;
        if operand.ty != ty {
            let detail = format!("the operand is {}, not {ty}", operand.ty);
            return Err(self.error(Rule::OperandType, detail));
        }
        Ok(operand)
    }

    /// Pops an operand that the instruction consumes as a plain value.
    #[inline]
    fn pop(&mut self, ty: ValType) -> Check {
        let operand = self.pop_expecting(ty)?;
        self.escape(operand, EscapeReason::Consumed);
        Ok(())
    }

    #[inline]
    fn escape(&mut self, operand: Operand, reason: EscapeReason) {
        if let Some(local) = operand.token.checked_sub(1) {
            self.scratch.escapes[local as usize].get_or_insert((self.offset, reason));
        }
    }

    fn pop_all(&mut self, types: &[ValType]) -> Check {
        types.iter().rev().try_for_each(|&ty| self.pop(ty))
    }

    fn push_all(&mut self, types: &[ValType]) -> Check {
        types.iter().try_for_each(|&ty| self.push(ty))
    }

    /// Checks an instruction: its immediates, its operands, where it goes.
    fn inst(&mut self, inst: Inst) -> Check {
        let Inst { op, imm } = inst;
        self.check_indices(op.imm_kind(), imm)?;
        self.scratch.found.uses_vectors |= op.is_vector();
        match op {
            _ if op.access().is_some() => self.access(op.access().expect("just tested"), imm),
            Op::Drop | Op::Dup | Op::Swap | Op::Over | Op::Rot => self.shuffle(op),
            Op::LocalGet | Op::LocalSet | Op::LocalTee | Op::LocalAddr => self.local(op, imm.low()),
            Op::Select => {
                self.pop(ValType::I32)?;
                let b = self.pop_any()?;
                self.escape(b, EscapeReason::Consumed);
                self.pop(b.ty)?;
                self.note_wide(&[b]);
                self.push(b.ty)
            }
            Op::GlobalGet => self.push(self.spaces.globals[imm.low() as usize].ty),
            Op::GlobalSet => {
                let global = self.spaces.globals[imm.low() as usize];
                if !global.mutable {
                    let detail = format!("global {} is immutable", imm.low());
                    return Err(self.error(Rule::GlobalMutable, detail));
                }
                self.pop(global.ty)
            }
            Op::RefNull => self.push(imm.as_ref_type()),
            Op::RefFunc => {
                self.scratch.found.referenced_funcs.push(imm.low());
                self.push(ValType::FuncRef)
            }
            Op::RefIsNull => {
                let operand = self.pop_any()?;
                if !operand.ty.is_ref() {
                    let detail = format!("the operand is {}, not a reference", operand.ty);
                    return Err(self.error(Rule::OperandType, detail));
                }
                self.push(ValType::I32)
            }
            Op::TableGet
            | Op::TableSet
            | Op::TableGrow
            | Op::TableFill
            | Op::TableCopy
            | Op::TableInit => self.table(op, imm),
            Op::Call => {
                let ty = self.func_type(imm.low());
                self.pop_all(&ty.params)?;
                self.push_all(&ty.results)
            }
            Op::CallIndirect => {
                let ty = self.indirect_type(imm)?;
                self.pop(ValType::I32)?;
                self.pop_all(&ty.params)?;
                self.push_all(&ty.results)
            }
            _ if op.effect() == Effect::Control => self.control(op, imm),
            _ => {
                let sig = op.signature().expect("all others have fixed signatures");
                self.pop_all(sig.params)?;
                self.push_all(sig.results)
            }
        }
    }

    fn check_indices(&mut self, kind: ImmKind, imm: Imm) -> Check {
        let spaces = self.spaces;
        let (low, high) = (imm.low(), imm.high());
        let (n_tables, n_memories) = (spaces.tables.len(), spaces.memories.len());
        match kind {
            ImmKind::None
            | ImmKind::I32
            | ImmKind::I64
            | ImmKind::F32
            | ImmKind::F64
            | ImmKind::V128
            | ImmKind::Lanes
            | ImmKind::Lane
            | ImmKind::RefType => Ok(()),
            ImmKind::Local => self.index(Rule::LocalIndex, low, self.locals.len()),
            ImmKind::Global => self.index(Rule::GlobalIndex, low, spaces.globals.len()),
            ImmKind::Func => self.index(Rule::FuncIndex, low, spaces.funcs.len()),
            ImmKind::Label | ImmKind::LabelCount => {
                self.index(Rule::LabelIndex, low, self.def.labels.len())
            }
            ImmKind::Labels => {
                let def = self.def;
                labels(&def.code, imm)
                    .try_for_each(|label| self.index(Rule::LabelIndex, label, def.labels.len()))
            }
            ImmKind::TypeTable => {
                self.index(Rule::TypeIndex, low, self.module.types.len())?;
                self.index(Rule::TableIndex, high, n_tables)
            }
            ImmKind::Table => self.index(Rule::TableIndex, low, n_tables),
            ImmKind::TableTable => {
                self.index(Rule::TableIndex, low, n_tables)?;
                self.index(Rule::TableIndex, high, n_tables)
            }
            ImmKind::ElemTable => {
                self.index(Rule::ElemIndex, low, self.module.elems.len())?;
                self.index(Rule::TableIndex, high, n_tables)
            }
            ImmKind::Elem => self.index(Rule::ElemIndex, low, self.module.elems.len()),
            ImmKind::Memory => self.index(Rule::MemoryIndex, low, n_memories),
            ImmKind::MemoryMemory => {
                self.index(Rule::MemoryIndex, low, n_memories)?;
                self.index(Rule::MemoryIndex, high, n_memories)
            }
            ImmKind::DataMemory => {
                self.index(Rule::DataIndex, low, self.module.datas.len())?;
                self.index(Rule::MemoryIndex, high, n_memories)
            }
            ImmKind::Data => self.index(Rule::DataIndex, low, self.module.datas.len()),
            ImmKind::Mem | ImmKind::Indexed | ImmKind::MemLane => {
                self.index(Rule::MemoryIndex, imm.memory(), n_memories)
            }
        }
    }

    #[inline]
    fn index(&self, rule: Rule, index: u32, len: usize) -> Check {
        if (index as usize) < len {
            return Ok(());
        }
        Err(self.error(rule, format!("index {index} is not below {len}")))
    }

    /// A load or store; through a token it may be an access of the local itself.
    fn access(&mut self, access: Access, imm: Imm) -> Check {
        if access.store {
            let value = self.pop_expecting(access.ty)?;
            self.escape(value, EscapeReason::Stored);
        }
        if access.indexed {
            self.scratch.found.uses_indexed = true;
            let index = self.pop_expecting(ValType::I32)?;
            self.escape(index, EscapeReason::Stored);
        }
        let address = self.pop_expecting(ValType::I32)?;
        if let Some(local) = address.token.checked_sub(1) {
            let same_type = access.ty == self.locals[local as usize] && access.is_full();
            let reason = match () {
                () if access.indexed => Some(EscapeReason::Stored),
                () if !same_type => Some(EscapeReason::OtherType),
                () if imm.offset() != 0 => Some(EscapeReason::Offset),
                () => None,
            };
            match reason {
                Some(reason) => self.escape(address, reason),
                None => self.direct.push(DirectAccess { offset: self.offset, local }),
            }
        }
        if access.store { Ok(()) } else { self.push(access.ty) }
    }

    /// Notes which operands of the instruction, topmost first, take two cells; of a `select`, its values.
    #[inline]
    fn note_wide(&mut self, operands: &[Operand]) {
        let bit = |(i, operand): (usize, &Operand)| ((operand.ty.cells() - 1) << i) as u8;
        let wide = operands.iter().enumerate().map(bit).fold(0, |all, bit| all | bit);
        if wide != 0 {
            self.wide.push(WideOperands { offset: self.offset, operands: wide });
        }
    }

    /// Stack shuffles move and copy tokens.
    fn shuffle(&mut self, op: Op) -> Check {
        match op {
            Op::Drop => {
                let a = self.pop_any()?;
                self.note_wide(&[a]);
                self.escape(a, EscapeReason::Consumed);
                Ok(())
            }
            Op::Dup => {
                let a = self.pop_any()?;
                self.note_wide(&[a]);
                self.push_operand(a)?;
                self.push_operand(a)
            }
            Op::Swap => {
                let (b, a) = (self.pop_any()?, self.pop_any()?);
                self.note_wide(&[b, a]);
                self.push_operand(b)?;
                self.push_operand(a)
            }
            Op::Over => {
                let (b, a) = (self.pop_any()?, self.pop_any()?);
                self.note_wide(&[b, a]);
                self.push_operand(a)?;
                self.push_operand(b)?;
                self.push_operand(a)
            }
            Op::Rot => {
                let (c, b, a) = (self.pop_any()?, self.pop_any()?, self.pop_any()?);
                self.note_wide(&[c, b, a]);
                self.push_operand(b)?;
                self.push_operand(c)?;
                self.push_operand(a)
            }
            _ => unreachable!("{op:?} is no stack shuffle"),
        }
    }

    fn local(&mut self, op: Op, local: u32) -> Check {
        let ty = self.locals[local as usize];
        match op {
            Op::LocalGet => self.push(ty),
            Op::LocalSet => self.pop(ty),
            Op::LocalTee => {
                self.pop(ty)?;
                self.push(ty)
            }
            Op::LocalAddr => {
                if self.module.frame_stack.is_none() {
                    let detail = "the module has no frame stack".into();
                    return Err(self.error(Rule::LocalAddr, detail));
                }
                // Each local has 8 bytes of the frame stack.
                if !ty.is_num() || ty.bytes() > 8 {
                    let detail = format!("local {local} is {ty}");
                    return Err(self.error(Rule::LocalAddr, detail));
                }
                self.push_operand(Operand { ty: ValType::I32, token: local + 1 })
            }
            _ => unreachable!("{op:?} is no local access"),
        }
    }

    fn table(&mut self, op: Op, imm: Imm) -> Check {
        let elem_of = |table: u32| self.spaces.tables[table as usize].elem;
        let elem = elem_of(if op == Op::TableInit { imm.high() } else { imm.low() });
        let (params, results): (&[ValType], &[ValType]) = match op {
            Op::TableGet => (&[ValType::I32], &[elem]),
            Op::TableSet => (&[ValType::I32, elem], &[]),
            Op::TableGrow => (&[elem, ValType::I32], &[ValType::I32]),
            Op::TableFill => (&[ValType::I32, elem, ValType::I32], &[]),
            Op::TableCopy | Op::TableInit => {
                let source = match op {
                    Op::TableCopy => elem_of(imm.high()),
                    _ => self.module.elems[imm.low() as usize].ty,
                };
                if source != elem {
                    let detail = format!("elements of {source} go to a table of {elem}");
                    return Err(self.error(Rule::OperandType, detail));
                }
                (&[ValType::I32; 3], &[])
            }
            _ => unreachable!("{op:?} is no table access"),
        };
        self.pop_all(params)?;
        self.push_all(results)
    }

    fn func_type(&self, func: u32) -> &'m FuncType {
        &self.module.types[self.spaces.funcs[func as usize] as usize]
    }

    fn indirect_type(&self, imm: Imm) -> Check<&'m FuncType> {
        let elem = self.spaces.tables[imm.high() as usize].elem;
        if elem != ValType::FuncRef {
            let detail = format!("table {} holds {elem}", imm.high());
            return Err(self.error(Rule::CallTable, detail));
        }
        Ok(&self.module.types[imm.low() as usize])
    }

    /// An instruction that ends a block.
    fn control(&mut self, op: Op, imm: Imm) -> Check {
        match op {
            Op::Unreachable => Ok(()),
            Op::Br => self.branch(imm.low()),
            Op::BrKeep => self.branch_keeping(imm.low(), imm.high()),
            Op::BrIf => {
                self.pop(ValType::I32)?;
                self.branch(imm.low())?;
                self.succs.push(self.blocks.len() as u32 + 1);
                Ok(())
            }
            Op::BrTable => {
                self.pop(ValType::I32)?;
                let def = self.def;
                labels(&def.code, imm).try_for_each(|label| self.branch(label))
            }
            Op::Return => self.leave(&self.ty.results, "results"),
            Op::ReturnCall => self.tail_call(self.func_type(imm.low())),
            Op::ReturnCallIndirect => {
                let ty = self.indirect_type(imm)?;
                self.pop(ValType::I32)?;
                self.tail_call(ty)
            }
            _ => unreachable!("{op:?} does not end a block"),
        }
    }

    fn branch(&mut self, label: u32) -> Check {
        self.flow_to(label, self.def.labels[label as usize].shape)?;
        self.succs.push(label | LABEL_BIT);
        Ok(())
    }

    /// A branch that takes the topmost `n` operands along.
    fn branch_keeping(&mut self, label: u32, n: u32) -> Check {
        let max = limits::KEPT_OPERANDS_MAX;
        if n as usize > max {
            let detail = format!("{n} operands exceed KEPT_OPERANDS_MAX = {max}");
            return Err(self.error(Rule::Limit, detail));
        }
        let shape = self.def.labels[label as usize].shape;
        if !self.keeps(n as usize, shape) {
            let found = self.describe(self.base, &self.scratch.top);
            let expected = self.describe(shape, &[]);
            let label = self.label_name(label);
            let detail = format!(
                "label {label} has the stack ({expected}), which the topmost {n} operands and the \
                 lowest of ({found}) are not"
            );
            return Err(self.error(Rule::KeptOperands, detail));
        }
        self.succs.push(label | LABEL_BIT);
        Ok(())
    }

    /// Whether the `n` topmost operands are those of a shape, and its other operands the lowest on the stack.
    /// Takes time for the former and for what was pushed on top of `base`, which no later block sees.
    fn keeps(&self, n: usize, shape: ShapeId) -> bool {
        let top = &self.scratch.top;
        let n_lowest = match (self.shapes.depths[shape.0 as usize] as usize).checked_sub(n) {
            Some(n_lowest) if self.depth() >= n_lowest + n => n_lowest,
            _ => return false,
        };
        let (mut expected, mut found) = (shape, self.base);
        let pop = |shape: &mut ShapeId| {
            let entry = self.module.shapes[shape.0 as usize - 1];
            *shape = entry.parent;
            entry.ty
        };
        let n_of_top = n.min(top.len());
        let mut kept = top[top.len() - n_of_top..].iter().rev();
        let is_kept = (0..n).all(|_| {
            let ty = kept.next().map_or_else(|| pop(&mut found), |operand| operand.ty);
            ty == pop(&mut expected)
        });
        // What is left of `expected` reaches as high as `base`, or into what is on top of that.
        let n_in_top = n_lowest.saturating_sub(self.shapes.depths[self.base.0 as usize] as usize);
        let mut lowest = top[..n_in_top].iter().rev();
        is_kept
            && lowest.all(|operand| operand.ty == pop(&mut expected))
            && self.shapes.below(self.module, self.base, n_lowest as u32) == expected
    }

    fn tail_call(&mut self, callee: &FuncType) -> Check {
        if callee.results != self.ty.results {
            let detail = format!("the callee is {callee}, the caller {}", self.ty);
            return Err(self.error(Rule::TailCallType, detail));
        }
        self.leave(&callee.params, "parameters")
    }

    /// Leaves the function with the topmost operands, which are of these types.
    fn leave(&mut self, types: &[ValType], what: &str) -> Check {
        if self.depth() < types.len() {
            let detail = format!("{} operands instead of {} {what}", self.depth(), types.len());
            return Err(self.error(Rule::ReturnStack, detail));
        }
        self.pop_all(types)
    }

    fn finish(self) -> Body {
        let Scratch { escapes, block_of_label, .. } = self.scratch;
        let mut succs = self.succs;
        for succ in &mut succs {
            if *succ & LABEL_BIT != 0 {
                *succ = block_of_label[(*succ & !LABEL_BIT) as usize];
            }
        }
        let mut blocks = self.blocks;
        mark_polls(&mut blocks, &succs);
        let mut frame_bytes = 0;
        let mut locals = Vec::with_capacity(self.locals.len());
        for (&ty, escape) in self.locals.iter().zip(&*escapes) {
            let storage = match *escape {
                None => Storage::Promotable,
                Some((at, reason)) => {
                    let frame_offset = frame_bytes;
                    frame_bytes += 8;
                    Storage::Escapes { frame_offset, at, reason }
                }
            };
            locals.push(Local { ty, storage });
        }
        let mut direct = self.direct;
        direct.retain(|access| escapes[access.local as usize].is_none());
        let stack_max = self.stack_max.max(self.stack_cells_max) as u32;
        let (wide, wide_locals) = (self.wide, wide_runs(&self.locals));
        Body { locals, wide_locals, stack_max, wide, blocks, succs, direct, frame_bytes }
    }
}

/// The runs of locals that take two cells, as [`Body::wide_locals`] has them.
fn wide_runs(locals: &[ValType]) -> Vec<(u32, u32, u32)> {
    let mut runs: Vec<(u32, u32, u32)> = Vec::new();
    for (i, ty) in (0..).zip(locals).filter(|(_, ty)| ty.cells() > 1) {
        debug_assert_eq!(ty.cells(), 2);
        match runs.last_mut() {
            Some((_, end, _)) if *end == i => *end += 1,
            last => {
                let before = last.map_or(0, |&mut (start, end, n)| n + (end - start));
                runs.push((i, i + 1, before));
            }
        }
    }
    runs
}

/// Finds the blocks that branches lead back to.
fn mark_polls(blocks: &mut [Block], succs: &[u32]) {
    for source in 0..blocks.len() {
        let end = blocks.get(source + 1).map_or(succs.len(), |next| next.succ_start as usize);
        for &target in &succs[blocks[source].succ_start as usize..end] {
            blocks[target as usize].polls |= target as usize <= source;
        }
    }
}
