//! Parsing of code: function bodies, constant expressions and instructions.

use std::ops::Range;

use super::cursor::{Parse, Ref};
use super::error::{DIAGNOSTICS_MAX, Problem, suggest};
use super::lexer::{Token, TokenKind};
use super::parse::Parser;
use super::pending::{ExprPlace, PendingFunc, PendingImm, PendingInst, PendingLabel, Place};
use super::space::{Space, SpaceKind};
use super::{literal, words};
use crate::inst::{Imm, check_lane};
use crate::limits;
use crate::module::{BranchHint, Func, ShapeId, SourcePlace};
use crate::op::{ImmKind, Op};
use crate::types::ValType;

/// The function body being parsed.
pub(super) struct Body<'s> {
    locals: Space<'s>,
    /// Runs of locals that are not parameters.
    runs: Vec<(u32, ValType)>,
    n_declared: usize,
    labels: Space<'s>,
    pending: PendingFunc,
}

impl<'s> Parser<'s> {
    /// `func NAME signature { … }`
    pub(super) fn func(&mut self) -> Parse<()> {
        let func = self.define(SpaceKind::Func, false)?;
        let name = self.cursor.last();
        let signature = self.signature()?;
        self.cursor.expect_punct(b'{')?;
        let mut body = Body {
            locals: signature.locals,
            runs: Vec::new(),
            n_declared: 0,
            labels: Space::default(),
            pending: PendingFunc::new(self.pending.insts.len(), name),
        };
        while !self.cursor.take_punct(b'}') {
            self.check_open(name)?;
            let line = self.cursor.peek().line;
            if let Err(problem) = self.statement(&mut body) {
                self.problems.push(problem);
                self.cursor.skip_line(line.max(self.cursor.last().line));
            }
            if self.is_hopeless() {
                return Ok(());
            }
        }
        self.finish_body(func, signature.ty, body);
        Ok(())
    }

    /// Rejects the end of the text, or an item, inside a body.
    fn check_open(&self, func: Token) -> Parse<()> {
        let token = self.cursor.peek();
        let is_item = token.kind == TokenKind::Word
            && self.cursor.is_at_line_start()
            && !self.cursor.is_label()
            && words::is_item(self.cursor.text(token));
        if is_item || self.cursor.is_at_end() {
            let message = format!("missing `}}` of function `{}`", self.cursor.text(func));
            return Err(self.cursor.problem(token, message));
        }
        Ok(())
    }

    fn finish_body(&mut self, func: u32, ty: u32, body: Body<'s>) {
        let Body { locals, runs, labels, mut pending, .. } = body;
        pending.insts.end = self.pending.insts.len();
        self.resolve_labels(pending.insts.clone(), &labels);
        self.module.funcs.push(Func { ty, locals: runs, ..Func::default() });
        self.pending.funcs.push(pending);
        let names = &mut self.module.names;
        for (list, space) in [(&mut names.locals, locals), (&mut names.labels, labels)] {
            if !space.names.is_empty() {
                list.push((func, space.names));
            }
        }
    }

    /// Resolves label names to numbers, which are known at the end of the function.
    fn resolve_labels(&mut self, insts: Range<usize>, labels: &Space<'s>) {
        let cursor = &self.cursor;
        let problems = &mut self.problems;
        let mut resolve = |label: &mut Ref| match labels.resolve(cursor, *label, "label") {
            Ok(number) => *label = Ref::Number(number),
            Err(problem) if problems.len() < DIAGNOSTICS_MAX => problems.push(problem),
            Err(_) => {}
        };
        for inst in &mut self.pending.insts[insts] {
            match &mut inst.imm {
                PendingImm::One(label) if inst.op.imm_kind() == ImmKind::Label => resolve(label),
                PendingImm::LabelCount(label, _) => resolve(label),
                PendingImm::Labels { start, end } => {
                    self.pending.labels[*start as usize..*end as usize]
                        .iter_mut()
                        .for_each(&mut resolve);
                }
                _ => {}
            }
        }
    }

    /// A label, a directive or an instruction.
    fn statement(&mut self, body: &mut Body<'s>) -> Parse<()> {
        if self.cursor.is_label() {
            let name = self.cursor.entity("a label")?;
            return self.label(body, name, Place::Inst(self.pending.insts.len()));
        }
        if self.cursor.take_word("local") {
            return self.local_line(body);
        }
        if self.cursor.take_word(".line") {
            let line = self.source_place()?;
            let place = self.place()?;
            body.pending.lines.push((place, line));
            return Ok(());
        }
        for (word, hint) in [(".likely", BranchHint::Likely), (".unlikely", BranchHint::Unlikely)] {
            if self.cursor.take_word(word) {
                let token = self.cursor.last();
                let place = self.place()?;
                body.pending.hints.push((place, hint, token));
                return Ok(());
            }
        }
        if self.cursor.take_word("label") {
            let name = self.cursor.entity("a label")?;
            if !self.cursor.take_word("at") {
                return Err(self.cursor.unexpected("`at`"));
            }
            let place = Place::Offset(self.cursor.number("a code offset")?);
            return self.label(body, name, place);
        }
        self.inst(Some(body))
    }

    /// `at` and a code offset, or the place of the next instruction.
    fn place(&mut self) -> Parse<Place> {
        Ok(match self.cursor.take_word("at") {
            true => Place::Offset(self.cursor.number("a code offset")?),
            false => Place::Inst(self.pending.insts.len()),
        })
    }

    /// `line[:column][, file]`.
    fn source_place(&mut self) -> Parse<SourcePlace> {
        let mut place = SourcePlace::line(self.cursor.number("a line number")?);
        if self.cursor.take_punct(b':') {
            place.column = self.cursor.number("a column number")?;
        }
        if self.cursor.take_punct(b',') {
            place.file = self.cursor.number("the number of a file")?;
        }
        Ok(place)
    }

    /// `[(shape)]:` after the name of a label.
    fn label(&mut self, body: &mut Body<'s>, name: Ref, place: Place) -> Parse<()> {
        body.labels.define(&self.cursor, name, "label")?;
        self.check_count(body.labels.count as usize, limits::LABELS_MAX, "labels in a function")?;
        let shape = self.shape()?;
        self.cursor.expect_punct(b':')?;
        body.pending.labels.push(PendingLabel { place, shape });
        Ok(())
    }

    /// `(types)`, `(#shape)`, `(#shape types)` or nothing.
    fn shape(&mut self) -> Parse<ShapeId> {
        let mut shape = ShapeId::EMPTY;
        if !self.cursor.take_punct(b'(') {
            return Ok(shape);
        }
        if self.cursor.take_punct(b'#') {
            shape = ShapeId(self.cursor.number("the number of a shape")?);
            self.cursor.take_punct(b',');
        }
        while !self.cursor.take_punct(b')') {
            let ty = self.cursor.val_type()?;
            shape = self.tables.push(shape, ty);
            self.list_separator(b')')?;
        }
        self.check_count(self.tables.shapes.len(), limits::SHAPES_MAX, "shapes")?;
        Ok(shape)
    }

    /// Locals, separated by commas: `type`, `name: type`, `count type`.
    fn local_line(&mut self, body: &mut Body<'s>) -> Parse<()> {
        loop {
            let is_named = self.cursor.peek_second().kind == TokenKind::Punct(b':');
            let is_run = self.cursor.peek().kind == TokenKind::Number && !is_named;
            let (count, ty) = match is_run {
                true => (self.cursor.number("the number of locals")?, self.cursor.val_type()?),
                false => (1, self.param(&mut body.locals)?),
            };
            body.n_declared += count as usize;
            self.check_count(body.n_declared, limits::LOCALS_MAX, "locals in a function")?;
            body.locals.count += if is_run { count } else { 0 };
            body.declare(count, ty);
            if !self.cursor.take_punct(b',') {
                return Ok(());
            }
        }
    }

    /// A constant expression: instructions up to the first other token.
    pub(super) fn const_expr(&mut self, place: ExprPlace) -> Parse<()> {
        let start = self.pending.insts.len();
        loop {
            let token = self.cursor.peek();
            let text = self.cursor.text(token);
            let is_op = token.kind == TokenKind::Word && words::op_of(text).is_some();
            let is_misspelt = token.kind == TokenKind::Word
                && self.cursor.is_on_same_line()
                && !words::is_reserved(text);
            if !is_op && !is_misspelt {
                break;
            }
            self.inst(None)?;
        }
        let insts = start..self.pending.insts.len();
        self.resolve_labels(insts.clone(), &Space::default());
        self.pending.exprs.push((place, insts));
        Ok(())
    }

    /// An instruction of a function or constant expression.
    fn inst(&mut self, body: Option<&mut Body<'s>>) -> Parse<()> {
        let token = self.cursor.peek();
        let op = match token.kind {
            TokenKind::Word => words::op_of(self.cursor.text(token)),
            _ => None,
        };
        let Some(op) = op else { return Err(self.unknown_inst()) };
        self.cursor.take();
        let imm = self.imm(op, body.as_deref())?;
        self.pending.insts.push(PendingInst { op, token, imm });
        Ok(())
    }

    fn unknown_inst(&self) -> Problem {
        let token = self.cursor.peek();
        if token.kind != TokenKind::Word {
            return self.cursor.unexpected("an instruction");
        }
        let text = self.cursor.text(token);
        let help = suggest(text, Op::ALL.iter().map(|op| op.mnemonic()));
        self.cursor.problem(token, format!("unknown instruction `{text}`")).with_help(help)
    }

    fn imm(&mut self, op: Op, body: Option<&Body<'s>>) -> Parse<PendingImm> {
        use PendingImm::{One, Ready, Two};
        let cursor = &mut self.cursor;
        Ok(match op.imm_kind() {
            ImmKind::None => Ready(Imm::NONE),
            ImmKind::I32 => Ready(Imm::i32(self.integer("an `i32`", literal::parse_i32)?)),
            ImmKind::I64 => Ready(Imm::i64(self.integer("an `i64`", literal::parse_i64)?)),
            ImmKind::F32 => Ready(Imm::index(self.float("an `f32`", literal::parse_f32)?)),
            ImmKind::F64 => Ready(Imm(self.float("an `f64`", literal::parse_f64)?)),
            ImmKind::Number => {
                cursor.expect_same_line("a number")?;
                Ready(Imm::index(cursor.number("a number")?))
            }
            ImmKind::Local => {
                let local = cursor.operand("a local")?;
                let none = Space::default();
                let locals = body.map_or(&none, |body| &body.locals);
                Ready(Imm::index(locals.resolve(cursor, local, "local")?))
            }
            ImmKind::Global => One(cursor.operand("a global")?),
            ImmKind::Func => One(cursor.operand("a function")?),
            ImmKind::Label => One(cursor.operand("a label")?),
            ImmKind::Elem => One(cursor.operand("an element segment")?),
            ImmKind::Data => One(cursor.operand("a data segment")?),
            ImmKind::Table => One(self.optional("a table")?),
            ImmKind::Memory => One(self.optional("a memory")?),
            ImmKind::LabelCount => {
                let label = cursor.operand("a label")?;
                cursor.expect_same_line("a number of operands")?;
                PendingImm::LabelCount(label, cursor.number("a number of operands")?)
            }
            ImmKind::Labels => self.labels()?,
            ImmKind::TypeTable => self.type_and_table()?,
            ImmKind::RefType => {
                cursor.expect_same_line("`funcref` or `externref`")?;
                Ready(Imm::ref_type(cursor.ref_type()?))
            }
            ImmKind::TableTable => self.both_or_none("a table")?,
            ImmKind::MemoryMemory => self.both_or_none("a memory")?,
            ImmKind::ElemTable => {
                let segment = cursor.operand("an element segment")?;
                cursor.take_punct(b',');
                Two(segment, self.optional("a table")?)
            }
            ImmKind::DataMemory => {
                let segment = cursor.operand("a data segment")?;
                cursor.take_punct(b',');
                Two(segment, self.optional("a memory")?)
            }
            ImmKind::Mem => self.plain_access()?,
            ImmKind::Indexed => self.indexed_access()?,
            ImmKind::V128 => PendingImm::Vector(self.vector()?),
            ImmKind::Lanes => PendingImm::Vector(self.lanes(op)?),
            ImmKind::Lane => Ready(Imm::lane(self.lane(op)?)),
            ImmKind::MemLane => self.lane_access(op)?,
        })
    }

    fn integer<T>(
        &mut self,
        what: &str,
        parse: impl Fn(&str) -> Result<T, &'static str>,
    ) -> Parse<T>
    where
        T: TryFrom<u32>,
    {
        self.cursor.expect_same_line(what)?;
        let token = self.cursor.peek();
        let text = self.cursor.text(token);
        match token.kind {
            TokenKind::Number => {
                self.cursor.take();
                parse(text).map_err(|message| self.cursor.problem(token, message))
            }
            TokenKind::Char => {
                self.cursor.take();
                let number = literal::unescape_char(&text[1..text.len() - 1])
                    .map_err(|(_, message)| self.cursor.problem(token, message))?;
                T::try_from(number).map_err(|_| self.cursor.problem(token, "invalid character"))
            }
            _ => Err(self.cursor.unexpected(what)),
        }
    }

    fn float<T>(&mut self, what: &str, parse: impl Fn(&str) -> Result<T, String>) -> Parse<T> {
        self.cursor.expect_same_line(what)?;
        let token = self.cursor.peek();
        let text = self.cursor.text(token);
        let is_word = token.kind == TokenKind::Word && matches!(text, "inf" | "nan");
        if token.kind != TokenKind::Number && !is_word {
            return Err(self.cursor.unexpected(what));
        }
        self.cursor.take();
        parse(text).map_err(|message| self.cursor.problem(token, message))
    }

    /// An optional operand, entity 0 by default.
    fn optional(&mut self, what: &str) -> Parse<Ref> {
        if self.cursor.is_optional_ref() {
            return self.cursor.entity(what);
        }
        Ok(Ref::Number(0))
    }

    fn both_or_none(&mut self, what: &str) -> Parse<PendingImm> {
        if !self.cursor.is_optional_ref() {
            return Ok(PendingImm::Two(Ref::Number(0), Ref::Number(0)));
        }
        let first = self.cursor.entity(what)?;
        self.cursor.take_punct(b',');
        Ok(PendingImm::Two(first, self.cursor.operand(what)?))
    }

    /// `[labels] default`
    fn labels(&mut self) -> Parse<PendingImm> {
        self.cursor.expect_same_line("`[`")?;
        self.cursor.expect_punct(b'[')?;
        let start = self.pending.labels.len() as u32;
        while !self.cursor.take_punct(b']') {
            let label = self.cursor.entity("a label")?;
            self.pending.labels.push(label);
            self.cursor.take_punct(b',');
        }
        let default = self.cursor.operand("the default label")?;
        self.pending.labels.push(default);
        Ok(PendingImm::Labels { start, end: self.pending.labels.len() as u32 })
    }

    /// A type, by number or written out, and an optional table, 0 by default.
    fn type_and_table(&mut self) -> Parse<PendingImm> {
        self.cursor.expect_same_line("a type")?;
        let ty = if self.cursor.is_punct(b'(') {
            let ty = self.func_type()?;
            self.use_type(&ty)?
        } else {
            self.cursor.number("the number of a type or `(`")?
        };
        if self.cursor.take_punct(b',') {
            return Ok(PendingImm::Type(ty, self.cursor.operand("a table")?));
        }
        Ok(PendingImm::Type(ty, self.optional("a table")?))
    }

    /// `[memory] [offset]`: a single number is the offset.
    fn plain_access(&mut self) -> Parse<PendingImm> {
        let (memory, numbers) = self.access_operands(1)?;
        let offset = numbers.first().copied().unwrap_or(0);
        Ok(PendingImm::Access(memory, Imm::mem(offset)))
    }

    /// `[memory] scale [offset]`: a third number is the memory.
    fn indexed_access(&mut self) -> Parse<PendingImm> {
        self.cursor.expect_same_line("a scale")?;
        let (memory, numbers) = self.access_operands(2)?;
        let scale = match numbers.first() {
            Some(1) => 0,
            Some(2) => 1,
            Some(4) => 2,
            Some(8) => 3,
            Some(_) => {
                let message = "invalid scale; expected 1, 2, 4 or 8";
                return Err(self.cursor.problem(self.cursor.last(), message));
            }
            None => return Err(self.cursor.unexpected("a scale")),
        };
        let offset = numbers.get(1).copied().unwrap_or(0);
        Ok(PendingImm::Access(memory, Imm::indexed(offset, scale)))
    }

    /// `[memory] lane [offset]`: a third number is the memory.
    fn lane_access(&mut self, op: Op) -> Parse<PendingImm> {
        self.cursor.expect_same_line("a lane")?;
        let (memory, numbers) = self.access_operands(2)?;
        let Some(&lane) = numbers.first() else { return Err(self.cursor.unexpected("a lane")) };
        check_lane(op, lane)
            .map_err(|error| self.cursor.problem(self.cursor.last(), error.to_string()))?;
        let offset = numbers.get(1).copied().unwrap_or(0);
        Ok(PendingImm::Access(memory, Imm::mem_lane(offset, lane)))
    }

    fn lane(&mut self, op: Op) -> Parse<u32> {
        self.cursor.expect_same_line("a lane")?;
        let lane = self.cursor.number("a lane")?;
        check_lane(op, lane)
            .map_err(|error| self.cursor.problem(self.cursor.last(), error.to_string()))?;
        Ok(lane)
    }

    /// The 16 lanes of a shuffle.
    fn lanes(&mut self, op: Op) -> Parse<u128> {
        let mut lanes = [0; 16];
        for lane in &mut lanes {
            *lane = self.lane(op)? as u8;
        }
        Ok(u128::from_le_bytes(lanes))
    }

    /// A vector: a 128-bit number, or a lane type and one number for each lane, lane 0 first.
    fn vector(&mut self) -> Parse<u128> {
        const WHAT: &str = "a number of 128 bits or lanes such as `i32x4`";
        self.cursor.expect_same_line(WHAT)?;
        let token = self.cursor.peek();
        let text = self.cursor.text(token);
        if token.kind == TokenKind::Number {
            self.cursor.take();
            return literal::parse_u128(text)
                .map_err(|message| self.cursor.problem(token, message));
        }
        let lane_bits = match text {
            "i8x16" => 8,
            "i16x8" => 16,
            "i32x4" | "f32x4" => 32,
            "i64x2" | "f64x2" => 64,
            _ => return Err(self.cursor.unexpected(WHAT)),
        };
        self.cursor.take();
        let mut vector = 0;
        for i in 0..128 / lane_bits {
            let lane: u64 = match text {
                "f32x4" => self.float("an `f32`", literal::parse_f32)?.into(),
                "f64x2" => self.float("an `f64`", literal::parse_f64)?,
                "i64x2" => self.integer("an `i64`", literal::parse_i64)? as u64,
                _ => self.narrow_lane(lane_bits)?.into(),
            };
            vector |= u128::from(lane) << (i * lane_bits);
        }
        Ok(vector)
    }

    /// A lane of up to 32 bits, as a signed or unsigned number.
    fn narrow_lane(&mut self, bits: u32) -> Parse<u32> {
        let value = self.integer("a lane", literal::parse_i32)?;
        let unused = 32 - bits;
        let fits = value << unused >> unused == value || value as u32 >> (bits - 1) >> 1 == 0;
        if !fits {
            let message = format!("the lane does not fit {bits} bits");
            return Err(self.cursor.problem(self.cursor.last(), message));
        }
        Ok(value as u32 & (u32::MAX >> unused))
    }

    /// A memory and up to `max` numbers. The memory is a name, or the first of `max + 1` numbers.
    fn access_operands(&mut self, max: usize) -> Parse<(Ref, Vec<u32>)> {
        let mut memory = Ref::Number(0);
        let mut numbers = Vec::new();
        let is_name = self.cursor.peek().kind != TokenKind::Number;
        if is_name && self.cursor.is_optional_ref() {
            memory = self.cursor.entity("a memory")?;
        }
        while numbers.len() <= max {
            let has_any = !numbers.is_empty() || !matches!(memory, Ref::Number(_));
            let comma = has_any && self.cursor.take_punct(b',');
            match self.cursor.optional_number()? {
                Some(number) => numbers.push(number),
                None if comma => return Err(self.cursor.unexpected("a number")),
                None => break,
            }
        }
        if numbers.len() > max {
            if !matches!(memory, Ref::Number(_)) {
                return Err(self.cursor.problem(self.cursor.last(), "too many operands"));
            }
            memory = Ref::Number(numbers.remove(0));
        }
        Ok((memory, numbers))
    }
}

impl Body<'_> {
    /// Declares locals; neighbours of the same type form one run.
    fn declare(&mut self, count: u32, ty: ValType) {
        match self.runs.last_mut() {
            Some((n, last)) if *last == ty => *n += count,
            _ if count == 0 => {}
            _ => self.runs.push((count, ty)),
        }
    }
}
