//! Last phase of the assembler: resolves forward references and encodes the code.

use std::mem;
use std::ops::Range;

use super::ParseOptions;
use super::cursor::{Parse, Ref};
use super::parse::Parser;
use super::pending::*;
use super::space::SpaceKind;
use crate::inst::{Imm, MEMORY_END, write_br_table, write_inst, write_vector};
use crate::limits;
use crate::module::{ConstExpr, ElemItems, Label, SegmentMode, SourcePlace};
use crate::op::{ImmKind, Op};

impl Parser<'_> {
    /// Resolves and encodes everything that is pending. Problems may remain.
    pub(super) fn link(&mut self, options: ParseOptions) {
        let pending = mem::take(&mut self.pending);
        for (i, func) in pending.funcs.iter().enumerate() {
            self.link_func(i, func, &pending, options);
            if self.is_hopeless() {
                return;
            }
        }
        for (place, insts) in &pending.exprs {
            let code = self.encode(insts.clone(), &pending, |_, _| {});
            if let Some(expr) = self.expr_at(*place) {
                expr.code = code;
            }
        }
        for (elem, funcs) in pending.elem_funcs {
            let funcs =
                funcs.into_iter().map(|func| self.resolved(SpaceKind::Func, func)).collect();
            self.module.elems[elem as usize].items = ElemItems::Funcs(funcs);
        }
        for (target, name) in pending.targets {
            self.link_target(target, name);
        }
        for (i, name) in pending.exports.into_iter().enumerate() {
            let kind = SpaceKind::of(self.module.exports[i].kind);
            self.module.exports[i].index = self.resolved(kind, name);
        }
        self.module.start = pending.start.map(|name| self.resolved(SpaceKind::Func, name));
        self.finish_names();
    }

    fn link_func(
        &mut self,
        index: usize,
        func: &PendingFunc,
        pending: &Pending,
        options: ParseOptions,
    ) {
        let first = func.insts.start;
        let mut offsets = Vec::with_capacity(func.insts.len() + 1);
        let code = self.encode(func.insts.clone(), pending, |_, offset| offsets.push(offset));
        if code.len() > limits::CODE_BYTES_MAX {
            let message =
                format!("too much code in a function; at most {} bytes", limits::CODE_BYTES_MAX);
            self.problems.push(self.cursor.problem(func.name, message));
            return;
        }
        if !self.problems.is_empty() {
            return;
        }
        offsets.push(code.len() as u32);
        let offset_of = |place| match place {
            Place::Inst(inst) => offsets[inst - first],
            Place::Offset(offset) => offset,
        };
        let label =
            |label: &PendingLabel| Label { offset: offset_of(label.place), shape: label.shape };
        let mut lines = Vec::new();
        for &(place, line) in &func.lines {
            match place {
                Place::Inst(_) => add_line(&mut lines, offset_of(place), line),
                Place::Offset(offset) => lines.push((offset, line)),
            }
        }
        if options.record_lines && func.lines.is_empty() {
            for (inst, &offset) in pending.insts[func.insts.clone()].iter().zip(&offsets) {
                add_line(&mut lines, offset, SourcePlace::line(inst.token.line));
            }
        }
        let mut hints = Vec::with_capacity(func.hints.len());
        for &(place, hint, token) in &func.hints {
            if let Place::Inst(inst) = place
                && !(func.insts.contains(&inst) && pending.insts[inst].op == Op::BrIf)
            {
                let message = format!("expected `br_if` after `.{}`", hint.name());
                self.problems.push(self.cursor.problem(token, message));
                return;
            }
            hints.push((offset_of(place), hint));
        }
        let target = &mut self.module.funcs[index];
        target.labels = func.labels.iter().map(label).collect();
        target.lines = lines;
        target.hints = hints;
        target.code = code;
    }

    /// Encodes a range of instructions. Calls `at` with the offset of each.
    fn encode(
        &mut self,
        insts: Range<usize>,
        pending: &Pending,
        mut at: impl FnMut(&PendingInst, u32),
    ) -> Vec<u8> {
        let mut code = Vec::new();
        for inst in &pending.insts[insts] {
            if self.is_hopeless() {
                break;
            }
            at(inst, code.len() as u32);
            if let PendingImm::Labels { start, end } = inst.imm {
                let labels = &pending.labels[start as usize..end as usize];
                let labels: Vec<u32> = labels.iter().map(|&label| label_number(label)).collect();
                let (default, labels) = labels.split_last().expect("there is a default");
                write_br_table(&mut code, labels, *default);
                continue;
            }
            if let PendingImm::Vector(bytes) = inst.imm {
                write_vector(&mut code, inst.op, bytes);
                continue;
            }
            match self.link_imm(inst) {
                Ok(imm) => write_inst(&mut code, inst.op, imm),
                Err(problem) => self.problems.push(problem),
            }
        }
        code
    }

    fn link_imm(&self, inst: &PendingInst) -> Parse<Imm> {
        let kind = inst.op.imm_kind();
        Ok(match inst.imm {
            PendingImm::Ready(imm) => imm,
            PendingImm::One(label) if kind == ImmKind::Label => Imm::index(label_number(label)),
            PendingImm::LabelCount(label, count) => Imm::pair(label_number(label), count),
            PendingImm::One(name) => Imm::index(self.resolve(spaces_of(kind).0, name)?),
            PendingImm::Two(low, high) => {
                let (low_space, high_space) = spaces_of(kind);
                Imm::pair(self.resolve(low_space, low)?, self.resolve(high_space, high)?)
            }
            PendingImm::Type(ty, table) => Imm::pair(ty, self.resolve(SpaceKind::Table, table)?),
            PendingImm::Access(memory, rest) => {
                let memory = self.resolve(SpaceKind::Memory, memory)?;
                if memory >= MEMORY_END {
                    return Err(self.cursor.problem(inst.token, "memory number too large"));
                }
                Imm(rest.0 | u64::from(memory) << 32)
            }
            PendingImm::Labels { .. } | PendingImm::Vector(_) => {
                unreachable!("`encode` writes the labels of a br_table, and vectors")
            }
        })
    }

    fn resolve(&self, kind: SpaceKind, name: Ref) -> Parse<u32> {
        self.spaces[kind as usize].resolve(&self.cursor, name, kind.what())
    }

    /// Returns the entity's number. Reports an unknown entity and returns 0.
    fn resolved(&mut self, kind: SpaceKind, name: Ref) -> u32 {
        if self.is_hopeless() {
            return 0;
        }
        self.resolve(kind, name).unwrap_or_else(|problem| {
            self.problems.push(problem);
            0
        })
    }

    fn link_target(&mut self, target: Target, name: Ref) {
        if self.is_hopeless() {
            return;
        }
        let (kind, mode) = match target {
            Target::Elem(elem) => (SpaceKind::Table, &mut self.module.elems[elem as usize].mode),
            Target::Data(data) => (SpaceKind::Memory, &mut self.module.datas[data as usize].mode),
        };
        match (self.spaces[kind as usize].resolve(&self.cursor, name, kind.what()), mode) {
            (Ok(number), SegmentMode::Active { target, .. }) => *target = number,
            (Ok(_), _) => unreachable!("only active segments have a target"),
            (Err(problem), _) => self.problems.push(problem),
        }
    }

    /// Returns the constant expression at a place.
    fn expr_at(&mut self, place: ExprPlace) -> Option<&mut ConstExpr> {
        let offset = |mode| match mode {
            &mut SegmentMode::Active { ref mut offset, .. } => Some(offset),
            _ => None,
        };
        match place {
            ExprPlace::Global(i) => Some(&mut self.module.globals[i as usize].init),
            ExprPlace::DataOffset(i) => offset(&mut self.module.datas[i as usize].mode),
            ExprPlace::ElemOffset(i) => offset(&mut self.module.elems[i as usize].mode),
            ExprPlace::ElemItem(i, j) => match &mut self.module.elems[i as usize].items {
                ElemItems::Exprs(exprs) => exprs.get_mut(j as usize),
                ElemItems::Funcs(_) => None,
            },
        }
    }
}

/// Returns the index spaces of the one or two entities of an instruction.
fn spaces_of(kind: ImmKind) -> (SpaceKind, SpaceKind) {
    match kind {
        ImmKind::Func => (SpaceKind::Func, SpaceKind::Func),
        ImmKind::Global => (SpaceKind::Global, SpaceKind::Global),
        ImmKind::Table | ImmKind::TableTable => (SpaceKind::Table, SpaceKind::Table),
        ImmKind::Elem | ImmKind::ElemTable => (SpaceKind::Elem, SpaceKind::Table),
        ImmKind::Memory | ImmKind::MemoryMemory => (SpaceKind::Memory, SpaceKind::Memory),
        ImmKind::Data | ImmKind::DataMemory => (SpaceKind::Data, SpaceKind::Memory),
        _ => unreachable!("the immediate names no entity of the module"),
    }
}

/// Returns the number of a label, resolved at the end of its function. Unresolved names were reported there.
fn label_number(label: Ref) -> u32 {
    match label {
        Ref::Number(number) => number,
        Ref::Name(_) => 0,
    }
}

/// Records that instructions from `offset` on belong to a place, in the form of
/// [`crate::module::Func::lines`].
fn add_line(lines: &mut Vec<(u32, SourcePlace)>, offset: u32, line: SourcePlace) {
    while lines.last().is_some_and(|&(last, _)| last == offset) {
        lines.pop();
    }
    if lines.last().is_none_or(|&(_, last)| last != line) {
        lines.push((offset, line));
    }
}
