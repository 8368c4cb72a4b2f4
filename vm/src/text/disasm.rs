//! Disassembly of functions and instructions.

use std::fmt::Write as _;

use super::literal::{write_f32, write_f64};
use super::name_table::NameTable;
use super::print::{PrintError, PrintOptions, Printer, write_inner_names, write_separator};
use crate::inst::{CodeReader, Imm, Inst, labels, vector};
use crate::module::{Func, ShapeId, names_of};
use crate::op::{ImmKind, Op};
use crate::types::ValType;

/// A function whose instructions can be printed.
pub struct FuncPrinter<'p, 'm> {
    printer: &'p Printer<'m>,
    func: u32,
    /// The function, if it is defined in the module.
    body: Option<&'m Func>,
    locals: NameTable<'m>,
    labels: NameTable<'m>,
}

impl<'p, 'm> FuncPrinter<'p, 'm> {
    pub(super) fn new(printer: &'p Printer<'m>, func: u32) -> FuncPrinter<'p, 'm> {
        let module = printer.module;
        let defined = func.checked_sub(printer.n_imported_funcs());
        let body = defined.and_then(|i| module.funcs.get(i as usize));
        let ty = match body {
            Some(body) => Some(body.ty),
            None => printer.imported_funcs.get(func as usize).copied(),
        };
        let names_params = ty.is_some_and(|ty| printer.inline_type(ty).is_some());
        let n_params =
            ty.and_then(|ty| module.types.get(ty as usize)).map_or(0, |ty| ty.params.len());
        let n_locals = n_params as u64 + body.map_or(0, Func::n_declared_locals);
        let local_names = NameTable::new(names_of(&module.names.locals, func), |local| {
            let local = u64::from(local);
            body.is_some() && local < n_locals && (names_params || local >= n_params as u64)
        });
        let label_names = NameTable::new(names_of(&module.names.labels, func), |label| {
            body.is_some_and(|body| (label as usize) < body.labels.len())
        });
        FuncPrinter { printer, func, body, locals: local_names, labels: label_names }
    }

    /// Calls `f` with the offset of each instruction.
    pub(super) fn for_each_inst(&self, mut f: impl FnMut(u32, Inst)) -> Result<(), PrintError> {
        let Some(body) = self.body else { return Ok(()) };
        let mut reader = CodeReader::new(&body.code, 0);
        while !reader.is_at_end() {
            let offset = reader.offset();
            let inst = reader.read().map_err(|error| PrintError::Code {
                func: self.func,
                name: self.printer.module.names.func(self.func).map(str::to_string),
                offset,
                error,
            })?;
            f(offset, inst);
        }
        Ok(())
    }

    /// Returns the function as text; empty if it is imported.
    ///
    /// # Errors
    /// Fails if its code does not consist of instructions.
    pub fn text(&self, options: PrintOptions) -> Result<String, PrintError> {
        let mut out = String::new();
        self.write(&mut out, options)?;
        Ok(out)
    }

    /// Returns an instruction of the function as text.
    pub fn inst(&self, inst: Inst) -> String {
        let mut out = String::new();
        self.write_inst(&mut out, self.body.map_or(&[], |body| &body.code), inst);
        out
    }

    pub(super) fn write(&self, out: &mut String, options: PrintOptions) -> Result<(), PrintError> {
        let Some(body) = self.body else { return Ok(()) };
        self.write_header(out, body.ty);
        out.push_str(" {\n");
        self.write_locals(out, body);
        let mut marks = Marks::new(self, body);
        self.for_each_inst(|offset, inst| {
            marks.write_up_to(out, offset, inst.op == Op::BrIf);
            let start = out.len();
            out.push_str("  ");
            self.write_inst(out, &body.code, inst);
            if options.offsets {
                let width = out.len() - start;
                let padding = 40usize.saturating_sub(width).max(2);
                let _ = write!(out, "{:padding$}; @{offset:04x}", "");
            }
            out.push('\n');
        })?;
        marks.write_rest(out);
        out.push_str("}\n");
        Ok(())
    }

    /// `func NAME(parameters) -> results`
    pub(super) fn write_header(&self, out: &mut String, ty: u32) {
        out.push_str("func ");
        self.printer.funcs.write(out, self.func);
        let Some(ty) = self.printer.inline_type(ty) else {
            let _ = write!(out, " type {ty}");
            return;
        };
        out.push('(');
        for (i, param) in (0..).zip(&ty.params) {
            out.push_str(if i == 0 { "" } else { ", " });
            if self.locals.get(i).is_some() {
                self.locals.write(out, i);
                out.push_str(": ");
            }
            out.push_str(param.name());
        }
        out.push(')');
        write_results(out, &ty.results);
    }

    fn write_locals(&self, out: &mut String, body: &Func) {
        let n_params =
            self.printer.module.types.get(body.ty as usize).map_or(0, |ty| ty.params.len() as u64);
        let mut line = LocalLine { out, n_items: 0 };
        let mut start = n_params;
        for &(count, ty) in &body.locals {
            let end = start + u64::from(count);
            for &(local, _) in self.locals.range(start, end) {
                line.unnamed(u64::from(local) - start, ty);
                let out = line.item();
                self.locals.write(out, local);
                let _ = write!(out, ": {ty}");
                start = u64::from(local) + 1;
            }
            line.unnamed(end - start, ty);
            start = end;
        }
        line.end();
    }

    /// `name` lines for names that no other line shows.
    pub(super) fn write_extra_names(&self, out: &mut String) {
        write_inner_names(out, "local", self.func, self.locals.extra.iter().copied());
        write_inner_names(out, "label", self.func, self.labels.extra.iter().copied());
    }

    /// Appends an instruction that was read from `code`.
    pub(super) fn write_inst(&self, out: &mut String, code: &[u8], inst: Inst) {
        let Inst { op, imm } = inst;
        let printer = self.printer;
        out.push_str(op.mnemonic());
        let one = |out: &mut String, names: &NameTable<'_>, index: u32| {
            out.push(' ');
            names.write(out, index);
        };
        match op.imm_kind() {
            ImmKind::None => {}
            ImmKind::I32 => {
                let _ = write!(out, " {}", imm.low() as i32);
            }
            ImmKind::I64 => {
                let _ = write!(out, " {}", imm.0 as i64);
            }
            ImmKind::F32 => {
                out.push(' ');
                write_f32(out, imm.low());
            }
            ImmKind::F64 => {
                out.push(' ');
                write_f64(out, imm.0);
            }
            ImmKind::Local => one(out, &self.locals, imm.low()),
            ImmKind::Global => one(out, &printer.globals, imm.low()),
            ImmKind::Func => one(out, &printer.funcs, imm.low()),
            ImmKind::Label => one(out, &self.labels, imm.low()),
            ImmKind::LabelCount => {
                one(out, &self.labels, imm.low());
                let _ = write!(out, " {}", imm.high());
            }
            ImmKind::Labels => self.write_labels(out, code, imm),
            ImmKind::TypeTable => self.write_type_and_table(out, imm),
            ImmKind::RefType => {
                let _ = write!(out, " {}", imm.as_ref_type());
            }
            ImmKind::Table => one(out, &printer.tables, imm.low()),
            ImmKind::TableTable => {
                one(out, &printer.tables, imm.low());
                one(out, &printer.tables, imm.high());
            }
            ImmKind::Elem => one(out, &printer.elems, imm.low()),
            ImmKind::ElemTable => {
                one(out, &printer.elems, imm.low());
                one(out, &printer.tables, imm.high());
            }
            ImmKind::Data => one(out, &printer.datas, imm.low()),
            ImmKind::Memory if imm.low() == 0 => {}
            ImmKind::Memory => one(out, &printer.memories, imm.low()),
            ImmKind::MemoryMemory if imm.0 == 0 => {}
            ImmKind::MemoryMemory => {
                one(out, &printer.memories, imm.low());
                one(out, &printer.memories, imm.high());
            }
            ImmKind::DataMemory => {
                one(out, &printer.datas, imm.low());
                if imm.high() != 0 {
                    one(out, &printer.memories, imm.high());
                }
            }
            ImmKind::Mem | ImmKind::Indexed | ImmKind::MemLane => self.write_access(out, inst),
            ImmKind::V128 => {
                let _ = write!(out, " {:#034x}", vector(code, imm));
            }
            ImmKind::Lanes => {
                for lane in vector(code, imm).to_le_bytes() {
                    let _ = write!(out, " {lane}");
                }
            }
            ImmKind::Lane | ImmKind::Number => {
                let _ = write!(out, " {}", imm.low());
            }
        }
    }

    fn write_labels(&self, out: &mut String, code: &[u8], imm: Imm) {
        out.push_str(" [");
        let n = imm.low() as usize;
        for (i, label) in labels(code, imm).enumerate() {
            match i {
                _ if i == n => out.push_str("] "),
                0 => {}
                _ => write_separator(out, i, 16),
            }
            self.labels.write(out, label);
        }
    }

    fn write_type_and_table(&self, out: &mut String, imm: Imm) {
        let (ty, table) = (imm.low(), imm.high());
        // A type written out in a constant expression, which has no calls, would count as a first use.
        let inline = self.body.and_then(|_| self.printer.inline_type(ty));
        match inline {
            Some(ty) => {
                out.push_str(" (");
                write_types(out, &ty.params);
                out.push(')');
                write_results(out, &ty.results);
            }
            None => {
                let _ = write!(out, " {ty}");
            }
        }
        if table != 0 {
            out.push_str(if inline.is_some() { ", " } else { " " });
            self.printer.tables.write(out, table);
        }
    }

    fn write_access(&self, out: &mut String, inst: Inst) {
        let Inst { op, imm } = inst;
        let is_indexed = op.imm_kind() == ImmKind::Indexed;
        let shows_memory = imm.memory() != 0;
        if shows_memory {
            out.push(' ');
            self.printer.memories.write(out, imm.memory());
        }
        if is_indexed {
            let _ = write!(out, " {}", 1 << imm.scale_log2());
        } else if op.imm_kind() == ImmKind::MemLane {
            let _ = write!(out, " {}", imm.access_lane());
        }
        // A single number would be the offset, so a memory needs one after it.
        if imm.offset() != 0 || shows_memory {
            let _ = write!(out, " {}", imm.offset());
        }
    }

    /// `(types)`, `(#shape type)` or `(#shape)`, or nothing for the empty one.
    fn write_shape(&self, out: &mut String, shape: ShapeId) {
        if shape == ShapeId::EMPTY {
            return;
        }
        out.push('(');
        if let Some(types) = self.printer.inline_shape(shape) {
            write_types(out, &types);
        } else if let Some(parent) = self.printer.regular_shape(shape) {
            let ty = self.printer.module.shapes[shape.0 as usize - 1].ty;
            let _ = write!(out, "#{} {ty}", parent.0);
        } else {
            let _ = write!(out, "#{}", shape.0);
        }
        out.push(')');
    }
}

/// ` -> results`, or nothing if there are none.
fn write_results(out: &mut String, results: &[ValType]) {
    match results {
        [] => {}
        [result] => {
            let _ = write!(out, " -> {result}");
        }
        _ => {
            out.push_str(" -> (");
            write_types(out, results);
            out.push(')');
        }
    }
}

fn write_types(out: &mut String, types: &[ValType]) {
    for (i, ty) in types.iter().enumerate() {
        out.push_str(if i == 0 { "" } else { ", " });
        out.push_str(ty.name());
    }
}

/// State of the `local` lines being written.
struct LocalLine<'o> {
    out: &'o mut String,
    n_items: u32,
}

impl LocalLine<'_> {
    /// Starts an item, on a new line after every eight.
    fn item(&mut self) -> &mut String {
        self.out.push_str(match self.n_items {
            0 => "  local ",
            n if n.is_multiple_of(8) => "\n  local ",
            _ => ", ",
        });
        self.n_items += 1;
        self.out
    }

    /// Locals without names.
    fn unnamed(&mut self, count: u64, ty: ValType) {
        match count {
            0 => {}
            1 => self.item().push_str(ty.name()),
            _ => {
                let _ = write!(self.item(), "{count} {ty}");
            }
        }
    }

    fn end(self) {
        if self.n_items > 0 {
            self.out.push('\n');
        }
    }
}

/// Labels, source lines and branch hints not yet printed.
struct Marks<'a, 'p, 'm> {
    printer: &'a FuncPrinter<'p, 'm>,
    body: &'m Func,
    next_label: usize,
    next_line: usize,
    next_hint: usize,
}

impl<'a, 'p, 'm> Marks<'a, 'p, 'm> {
    fn new(printer: &'a FuncPrinter<'p, 'm>, body: &'m Func) -> Marks<'a, 'p, 'm> {
        Marks { printer, body, next_label: 0, next_line: 0, next_hint: 0 }
    }

    /// Prints the labels, lines and hints at or before an instruction.
    fn write_up_to(&mut self, out: &mut String, offset: u32, is_br_if: bool) {
        while let Some(label) = self.body.labels.get(self.next_label)
            && label.offset <= offset
        {
            self.write_label(out, label.offset == offset);
        }
        while let Some(&(start, _)) = self.body.lines.get(self.next_line)
            && start <= offset
        {
            self.write_line(out, start == offset);
        }
        while let Some(&(at, _)) = self.body.hints.get(self.next_hint)
            && at <= offset
        {
            self.write_hint(out, at == offset && is_br_if);
        }
    }

    /// Prints the remaining labels, lines and hints at the end of the code.
    fn write_rest(&mut self, out: &mut String) {
        let end = self.body.code.len();
        while let Some(label) = self.body.labels.get(self.next_label) {
            self.write_label(out, label.offset as usize == end);
        }
        while let Some(&(start, _)) = self.body.lines.get(self.next_line) {
            self.write_line(out, start as usize == end);
        }
        while self.next_hint < self.body.hints.len() {
            self.write_hint(out, false);
        }
    }

    /// Prints the next label, with its offset if that is not here.
    fn write_label(&mut self, out: &mut String, is_here: bool) {
        let label = self.body.labels[self.next_label];
        out.push_str(if is_here { "" } else { "  label " });
        self.printer.labels.write(out, self.next_label as u32);
        if !is_here {
            let _ = write!(out, " at {}", label.offset);
        }
        self.printer.write_shape(out, label.shape);
        out.push_str(":\n");
        self.next_label += 1;
    }

    /// Prints the next branch hint, with its offset if the next instruction is not its branch.
    fn write_hint(&mut self, out: &mut String, is_here: bool) {
        let (offset, hint) = self.body.hints[self.next_hint];
        let _ = write!(out, "  .{}", hint.name());
        if !is_here {
            let _ = write!(out, " at {offset}");
        }
        out.push('\n');
        self.next_hint += 1;
    }

    /// Prints the next source line, with its offset if that is not here or if the assembler would merge it
    /// with the previous line.
    fn write_line(&mut self, out: &mut String, is_here: bool) {
        let (offset, line) = self.body.lines[self.next_line];
        let before = self.next_line.checked_sub(1).map(|i| self.body.lines[i]);
        let joins = before.is_some_and(|(start, before)| start == offset || before == line);
        let _ = write!(out, "  .line {line}");
        if line.file != 0 {
            let _ = write!(out, ", {}", line.file);
        }
        if !is_here || joins {
            let _ = write!(out, " at {offset}");
        }
        out.push('\n');
        self.next_line += 1;
    }
}
