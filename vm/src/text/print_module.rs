//! The disassembler, which prints a [`Module`](crate::module::Module) as text that assembles to the same module.
//!
//! Prints items in the order of their sections, functions last, one instruction per line.

use std::fmt::Write as _;

use super::disasm::FuncPrinter;
use super::literal::{write_bytes, write_text};
use super::name_table::write_number;
use super::print::*;
use super::tables::Tables;
use crate::inst::CodeReader;
use crate::module::{
    ConstExpr, Data, Elem, ElemItems, EntityKind, GlobalType, Import, ImportCall, ImportKind,
    MemoryType, SegmentMode, ShapeId, TableType,
};
use crate::op::ImmKind;
use crate::types::ValType;

impl<'m> Printer<'m> {
    /// Returns a printer for a function and its instructions.
    pub fn func(&self, func: u32) -> FuncPrinter<'_, 'm> {
        FuncPrinter::new(self, func)
    }

    /// Returns the whole module as text.
    ///
    /// # Errors
    /// Fails if code does not consist of instructions.
    pub fn module(&self, options: PrintOptions) -> Result<String, PrintError> {
        let module = self.module;
        let mut out = String::new();
        let mut extra = String::new();
        if let Some(name) = &module.names.module {
            out.push_str("module ");
            write_text(&mut out, name);
            out.push('\n');
        }
        self.table_lines(&mut out)?;
        self.imports(&mut out, &mut extra);
        self.definitions(&mut out)?;
        self.exports(&mut out);
        self.elem_segments(&mut out)?;
        self.data_segments(&mut out)?;
        for i in 0..module.funcs.len() as u32 {
            if !out.is_empty() {
                out.push('\n');
            }
            let func = self.func(self.n_imported_funcs() + i);
            func.write(&mut out, options)?;
            func.write_extra_names(&mut extra);
        }
        self.extra_names(&mut extra);
        if !extra.is_empty() {
            out.push('\n');
            out.push_str(&extra);
        }
        Ok(out)
    }

    /// `type` and `shape` lines, where the order of first use would result in other tables.
    fn table_lines(&self, out: &mut String) -> Result<(), PrintError> {
        if self.needs_type_lines()? {
            for (i, ty) in self.module.types.iter().enumerate() {
                let _ = writeln!(out, "type {i} = {ty}");
            }
        }
        if self.needs_shape_lines() {
            for (i, shape) in self.module.shapes.iter().enumerate() {
                let _ = writeln!(out, "shape {} = ({} {})", i + 1, shape.parent.0, shape.ty);
            }
        }
        Ok(())
    }

    /// Whether `type` lines are needed. Interns types as the assembler would, and compares the tables.
    fn needs_type_lines(&self) -> Result<bool, PrintError> {
        if self.is_type_inline.contains(&false) {
            return Ok(true);
        }
        let mut tables = Tables::default();
        let mut use_type = |id: u32| match self.inline_type(id) {
            Some(ty) => tables.use_type(ty) == id,
            None => true,
        };
        if !self.imported_funcs.iter().copied().all(&mut use_type) {
            return Ok(true);
        }
        for (i, func) in self.module.funcs.iter().enumerate() {
            let mut in_order = use_type(func.ty);
            self.func(self.n_imported_funcs() + i as u32).for_each_inst(|_, inst| {
                if inst.op.imm_kind() == ImmKind::TypeTable {
                    in_order &= use_type(inst.imm.low());
                }
            })?;
            if !in_order {
                return Ok(true);
            }
        }
        Ok(tables.types.len() != self.module.types.len())
    }

    /// Whether `shape` lines are needed. Interns shapes as the assembler would, and compares the tables.
    fn needs_shape_lines(&self) -> bool {
        let mut tables = Tables::default();
        for label in self.module.funcs.iter().flat_map(|func| &func.labels) {
            let Some(types) = self.inline_shape(label.shape) else { return true };
            let shape = types.iter().fold(ShapeId::EMPTY, |shape, &ty| tables.push(shape, ty));
            if shape != label.shape {
                return true;
            }
        }
        tables.shapes.len() != self.module.shapes.len()
    }

    fn imports(&self, out: &mut String, extra: &mut String) {
        let mut counts = [0u32; 4];
        for Import { module, name, kind } in &self.module.imports {
            let index = counts[kind_of(kind) as usize];
            counts[kind_of(kind) as usize] += 1;
            out.push_str("import ");
            write_text(out, module);
            out.push(' ');
            write_text(out, name);
            out.push(' ');
            match kind {
                ImportKind::Func(ty, call) => {
                    if *call != ImportCall::Ordinary {
                        out.push_str(call.word());
                        out.push(' ');
                    }
                    let func = self.func(index);
                    func.write_header(out, *ty);
                    func.write_extra_names(extra);
                }
                ImportKind::Table(ty) => self.table(out, index, ty),
                ImportKind::Memory(ty) => self.memory(out, index, ty),
                ImportKind::Global(ty) => self.global(out, index, ty),
            }
            out.push('\n');
        }
    }

    fn table(&self, out: &mut String, index: u32, ty: &TableType) {
        out.push_str("table ");
        self.tables.write(out, index);
        let _ = write!(out, " {} {}", ty.elem, ty.min);
        write_max(out, ty.max);
    }

    fn memory(&self, out: &mut String, index: u32, ty: &MemoryType) {
        out.push_str("memory ");
        self.memories.write(out, index);
        let _ = write!(out, " {}", ty.min);
        write_max(out, ty.max);
    }

    fn global(&self, out: &mut String, index: u32, ty: &GlobalType) {
        out.push_str("global ");
        self.globals.write(out, index);
        let _ = write!(out, ": {}{}", if ty.mutable { "mut " } else { "" }, ty.ty);
    }

    /// Tables, memories, globals and the frame stack.
    fn definitions(&self, out: &mut String) -> Result<(), PrintError> {
        let module = self.module;
        for (index, ty) in (n_imported(module, EntityKind::Table)..).zip(&module.tables) {
            self.table(out, index, ty);
            out.push('\n');
        }
        for (index, ty) in (n_imported(module, EntityKind::Memory)..).zip(&module.memories) {
            self.memory(out, index, ty);
            out.push('\n');
        }
        for (index, global) in (n_imported(module, EntityKind::Global)..).zip(&module.globals) {
            self.global(out, index, &global.ty);
            out.push_str(" =");
            self.const_expr(out, &global.init, || format!("global {index}"))?;
            out.push('\n');
        }
        if let Some(frame_stack) = module.frame_stack {
            let _ = writeln!(out, "frame_stack {} {}", frame_stack.base, frame_stack.bytes);
        }
        Ok(())
    }

    /// The instructions of a constant expression, with a space before each.
    fn const_expr(
        &self,
        out: &mut String,
        expr: &ConstExpr,
        place: impl Fn() -> String,
    ) -> Result<(), PrintError> {
        // No function has this index, so locals and labels are printed as numbers.
        let nowhere = self.func(u32::MAX);
        let mut reader = CodeReader::new(&expr.code, 0);
        while !reader.is_at_end() {
            let offset = reader.offset();
            let inst = reader.read().map_err(|error| PrintError::ConstExpr {
                place: place(),
                offset,
                error,
            })?;
            out.push(' ');
            nowhere.write_inst(out, &expr.code, inst);
        }
        Ok(())
    }

    fn exports(&self, out: &mut String) {
        for export in &self.module.exports {
            out.push_str("export ");
            write_text(out, &export.name);
            let (word, names) = match export.kind {
                EntityKind::Func => (" func ", &self.funcs),
                EntityKind::Table => (" table ", &self.tables),
                EntityKind::Memory => (" memory ", &self.memories),
                EntityKind::Global => (" global ", &self.globals),
            };
            out.push_str(word);
            names.write(out, export.index);
            out.push('\n');
        }
        if let Some(start) = self.module.start {
            out.push_str("start ");
            self.funcs.write(out, start);
            out.push('\n');
        }
    }

    fn elem_segments(&self, out: &mut String) -> Result<(), PrintError> {
        for (i, Elem { mode, ty, items }) in (0..).zip(&self.module.elems) {
            let place = || format!("element segment {i}");
            out.push_str("elem ");
            self.elems.write(out, i);
            match mode {
                SegmentMode::Passive => {}
                SegmentMode::Declared => out.push_str(" declared"),
                SegmentMode::Active { target, offset } => {
                    out.push(' ');
                    self.tables.write(out, *target);
                    out.push_str(" at");
                    self.const_expr(out, offset, place)?;
                }
            }
            match items {
                ElemItems::Funcs(funcs) => {
                    if *ty != ValType::FuncRef {
                        let _ = write!(out, " {ty}");
                    }
                    out.push_str(" func");
                    for (j, &func) in funcs.iter().enumerate() {
                        write_separator(out, j, 12);
                        self.funcs.write(out, func);
                    }
                }
                ElemItems::Exprs(exprs) => {
                    let _ = write!(out, " {ty}");
                    for (j, expr) in exprs.iter().enumerate() {
                        write_separator(out, j, 4);
                        out.push('[');
                        let before = out.len();
                        self.const_expr(out, expr, place)?;
                        if out.len() > before {
                            out.remove(before);
                        }
                        out.push(']');
                    }
                }
            }
            out.push('\n');
        }
        Ok(())
    }

    fn data_segments(&self, out: &mut String) -> Result<(), PrintError> {
        for (i, Data { mode, bytes }) in (0..).zip(&self.module.datas) {
            out.push_str("data ");
            self.datas.write(out, i);
            match mode {
                SegmentMode::Passive => {}
                SegmentMode::Declared => return Err(PrintError::DeclaredData(i)),
                SegmentMode::Active { target, offset } => {
                    if *target != 0 {
                        out.push(' ');
                        self.memories.write(out, *target);
                    }
                    out.push_str(" at");
                    self.const_expr(out, offset, || format!("data segment {i}"))?;
                }
            }
            write_data(out, bytes);
            out.push('\n');
        }
        Ok(())
    }

    /// `name` lines for names that no other line shows.
    fn extra_names(&self, out: &mut String) {
        let spaces = [
            ("func", &self.funcs),
            ("table", &self.tables),
            ("memory", &self.memories),
            ("global", &self.globals),
            ("elem", &self.elems),
            ("data", &self.datas),
        ];
        for (word, names) in spaces {
            for (index, name) in &names.extra {
                let _ = write!(out, "name {word} {index} ");
                write_text(out, name);
                out.push('\n');
            }
        }
        for (word, list) in [("trap", &self.module.names.traps), ("file", &self.module.names.files)]
        {
            for (number, name) in list {
                let _ = write!(out, "name {word} {number} ");
                write_text(out, name);
                out.push('\n');
            }
        }
        let n_funcs = u64::from(self.n_imported_funcs()) + self.module.funcs.len() as u64;
        let names = &self.module.names;
        for (word, list) in [("local", &names.locals), ("label", &names.labels)] {
            for (func, names) in list {
                if u64::from(*func) >= n_funcs {
                    let names = names.iter().map(|(index, name)| (*index, name.as_str()));
                    write_inner_names(out, word, *func, names);
                }
            }
        }
    }
}
fn write_max(out: &mut String, max: Option<u32>) {
    if let Some(max) = max {
        out.push(' ');
        write_number(out, max);
    }
}

/// The bytes of a data segment: on the same line if there are few, else on separate lines.
fn write_data(out: &mut String, bytes: &[u8]) {
    const LINE: usize = 64;
    if bytes.len() <= LINE {
        out.push(' ');
        return write_bytes(out, bytes);
    }
    for (i, line) in bytes.chunks(LINE).enumerate() {
        out.push_str(if i == 0 { "\n  " } else { ",\n  " });
        write_bytes(out, line);
    }
}
