//! Typing of one function's code in one forward pass.
//!
//! The operand stack is a shape of the shape table (`base`) and, on top of it, the operands pushed since
//! (`top`). At a branch or label, `top` is compared with the last entries of the label's shape and then
//! folded into `base`. So each operand is compared once, regardless of the number of branches that it lives
//! across, and the pass is linear even with deep stacks.
//!
//! An operand that is the address of a local carries the local (its *token*). Each use of a token
//! other than a plain full access at offset 0 makes the local escape.

use super::blocks::Blocks;
use super::error::{Place, Rule, VerifyError};
use super::found::Found;
use super::{IndexSpaces, Shapes, check_limit};
use crate::inst::CodeReader;
use crate::limits;
use crate::module::{Func, Module, ShapeId, SourcePlace};
use crate::op::Op;
use crate::types::{FuncType, ValType};
use crate::verified::{Body, DirectAccess, EscapeReason, Local, Storage, WideOperands};

mod control;
mod insts;
mod stack;
mod typing;

/// Buffers reused between functions, and facts found in all of them.
#[derive(Default)]
pub(super) struct Scratch {
    top: Vec<Operand>,
    escapes: Vec<Option<(u32, EscapeReason)>>,
    blocks: Blocks,
    pub(super) found: Found,
}

/// An operand on the stack.
#[derive(Copy, Clone)]
struct Operand {
    ty: ValType,
    /// The local plus one if this is the address of a local; 0 for a plain value.
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
    /// Number of operands on the stack that take two cells.
    n_wide: usize,
    /// Maximum number of cells of the stack while it held such operands.
    stack_cells_max: usize,
    wide: Vec<WideOperands>,
    /// Whether an operand was a reference into the embedder's heap.
    has_refs: bool,
    /// The code offset of the instruction being checked.
    offset: u32,
    direct: Vec<DirectAccess>,
}

type Check<T = ()> = Result<T, VerifyError>;

/// Checks the size of function `index` of [`Module::funcs`].
pub(super) fn check_limits(module: &Module, spaces: &IndexSpaces, index: usize) -> Check {
    let def = &module.funcs[index];
    let n_params = module.types[def.ty as usize].params.len() as u64;
    let n_locals = (n_params + def.n_declared_locals()) as usize;
    let place = Place::Func(spaces.n_imported_funcs + index as u32);
    check_limit(place.clone(), n_locals, limits::LOCALS_MAX, "LOCALS_MAX")?;
    check_limit(place.clone(), def.labels.len(), limits::LABELS_MAX, "LABELS_MAX")?;
    check_limit(place, def.code.len(), limits::CODE_BYTES_MAX, "CODE_BYTES_MAX")
}

/// Checks function `index` of [`Module::funcs`].
pub(super) fn check(
    module: &Module,
    spaces: &IndexSpaces,
    shapes: &Shapes,
    index: usize,
    scratch: &mut Scratch,
) -> Check<Body> {
    check_limits(module, spaces, index)?;
    let func = spaces.n_imported_funcs + index as u32;
    let def = &module.funcs[index];
    let ty = &module.types[def.ty as usize];
    let mut locals = ty.params.clone();
    for &(n, ty) in &def.locals {
        locals.resize(locals.len() + n as usize, ty);
    }
    scratch.top.clear();
    scratch.escapes.clear();
    scratch.escapes.resize(locals.len(), None);
    scratch.blocks.clear();
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
        has_refs: false,
        offset: 0,
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
        self.check_hints()?;
        let def = self.def;
        let mut reader = CodeReader::new(&def.code, 0);
        let mut hints = def.hints.iter().peekable();
        let mut falls_in = true;
        while !reader.is_at_end() {
            self.offset = reader.offset();
            self.enter(falls_in)?;
            let inst = reader.read().map_err(|e| self.error(Rule::Inst, e.to_string()))?;
            self.scratch.blocks.inst();
            self.inst(inst)?;
            falls_in = true;
            if inst.op.is_terminator() {
                falls_in = inst.op == Op::BrIf;
                if falls_in {
                    hints.next_if(|&&(offset, _)| offset == self.offset);
                }
                self.end_block(reader.offset());
            }
        }
        self.offset = reader.offset();
        if falls_in {
            return Err(self.error(Rule::CodeEnd, "control runs off the end of the code".into()));
        }
        if let Some(&&(offset, hint)) = hints.peek() {
            self.offset = offset;
            let detail = format!("the hint `{}` is not at a `br_if`", hint.name());
            return Err(self.error(Rule::Hints, detail));
        }
        if let Some(label) = def.labels.get(self.scratch.blocks.n_labels()) {
            self.offset = label.offset;
            return Err(
                self.error(Rule::LabelBoundary, "the label is inside an instruction".into())
            );
        }
        Ok(self.finish())
    }

    fn check_lines(&mut self) -> Check {
        let mut previous: Option<(u32, SourcePlace)> = None;
        for &(offset, place) in &self.def.lines {
            self.offset = offset;
            let ordered = previous.is_none_or(|(o, l)| o < offset && l != place);
            if !ordered || offset as usize >= self.def.code.len() {
                return Err(self.error(Rule::Lines, format!("misplaced line {place}")));
            }
            if place.line == 0 && !place.is_plain() {
                return Err(self.error(Rule::Lines, "file or column without a line".into()));
            }
            previous = Some((offset, place));
        }
        Ok(())
    }

    /// Checks the order of hints. Where branches are is not known yet.
    fn check_hints(&mut self) -> Check {
        for pair in self.def.hints.windows(2) {
            let [(before, _), (offset, hint)] = pair else { unreachable!("there are two") };
            if before >= offset {
                self.offset = *offset;
                let detail = format!("the hint `{}` follows one at @{before:04x}", hint.name());
                return Err(self.error(Rule::Hints, detail));
            }
        }
        Ok(())
    }

    fn check_labels(&mut self) -> Check {
        let mut next = 0;
        for (i, label) in self.def.labels.iter().enumerate() {
            self.offset = label.offset;
            if label.offset < next || label.offset as usize >= self.def.code.len() {
                return Err(self.error(Rule::LabelOrder, format!("misplaced label {i}")));
            }
            next = label.offset + 1;
            if label.shape.0 as usize >= self.shapes.depths.len() {
                let detail = format!("label {i} has unknown shape {}", label.shape.0);
                return Err(self.error(Rule::LabelShape, detail));
            }
        }
        Ok(())
    }

    /// Starts a new block if there is a label before the instruction, and rejects unreachable code.
    fn enter(&mut self, falls_in: bool) -> Check {
        let n_passed = self.scratch.blocks.n_labels();
        match self.def.labels.get(n_passed) {
            Some(label) if label.offset < self.offset => {
                self.offset = label.offset;
                Err(self.error(Rule::LabelBoundary, "the label is inside an instruction".into()))
            }
            Some(label) if label.offset == self.offset => {
                if falls_in {
                    self.flow_to(n_passed as u32, label.shape)?;
                } else {
                    self.scratch.top.clear();
                    self.base = label.shape;
                    self.n_wide = self.shapes.n_wide(label.shape) as usize;
                }
                self.scratch.blocks.label(self.offset, label.shape);
                self.grown()
            }
            _ if !falls_in => {
                let detail = "unreachable instruction without a label".into();
                Err(self.error(Rule::UnreachableCode, detail))
            }
            _ => Ok(()),
        }
    }

    /// Ends the current block at `end`.
    fn end_block(&mut self, end: u32) {
        for i in 0..self.scratch.top.len() {
            self.escape(self.scratch.top[i], EscapeReason::LeavesBlock);
            self.scratch.top[i].token = 0;
        }
        self.scratch.blocks.end(end, self.base);
    }

    fn finish(self) -> Body {
        let (blocks, succs) = self.scratch.blocks.finish(|label| label);
        let escapes = &self.scratch.escapes;
        let mut frame_bytes = 0;
        let mut locals = Vec::with_capacity(self.locals.len());
        for (&ty, escape) in self.locals.iter().zip(escapes) {
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
        let has_refs = self.has_refs || self.locals.contains(&ValType::Ref);
        Body { locals, wide_locals, stack_max, wide, blocks, succs, direct, has_refs, frame_bytes }
    }
}

/// Returns the runs of locals that take two cells, in the form of [`Body::wide_locals`].
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
