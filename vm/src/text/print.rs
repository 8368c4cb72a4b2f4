//! The disassembler, which prints a [`Module`] as text that assembles to the same module.
//!
//! Prints items in the order of their sections, functions last, one instruction per line. Does not rely on
//! verification: dangling indices are printed as numbers, and names that cannot be printed at their entities
//! get `name` lines. Functions are in [`super::disasm`].

use std::fmt::Write as _;

use super::disasm::FuncPrinter;
use super::literal::{write_bytes, write_text};
use super::name_table::{NameTable, write_number};
use super::tables::Tables;
use crate::inst::{CodeReader, InstError};
use crate::module::{
    ConstExpr, Data, Elem, ElemItems, EntityKind, GlobalType, Import, ImportKind, MemoryType,
    Module, SegmentMode, ShapeId, TableType,
};
use crate::op::ImmKind;
use crate::printable::Printable;
use crate::types::{FuncType, ValType};

/// Options of the disassembler.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct PrintOptions {
    /// Whether each instruction gets its code offset as a comment: `; @000c`.
    pub offsets: bool,
}

/// Error for a module that has no text form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrintError {
    /// The code of a function does not consist of instructions.
    #[error("function {func}{}, offset {offset:#06x}: {error}", quoted(name.as_deref()))]
    Code {
        /// The function, in the function index space.
        func: u32,
        /// Its name.
        name: Option<String>,
        /// The code offset of the bytes that are not an instruction.
        offset: u32,
        /// The error at that offset.
        error: InstError,
    },
    /// A constant expression does not consist of instructions.
    #[error("constant expression of {place}, offset {offset}: {error}")]
    ConstExpr {
        /// The owner of the expression.
        place: String,
        /// The code offset of the bytes that are not an instruction.
        offset: u32,
        /// The error at that offset.
        error: InstError,
    },
    /// A data segment has the mode "declared", which only element segments can have.
    #[error("declared data segment {0}; expected active or passive")]
    DeclaredData(u32),
}

fn quoted(name: Option<&str>) -> String {
    name.map_or_else(String::new, |name| format!(" `{}`", Printable(name)))
}

/// A type with more parameters and results than this is printed only once, in a `type` line.
const SHORT_TYPE_MAX: usize = 32;

/// A shape deeper than this is printed as its topmost operand on top of the shape below.
pub(super) const SHORT_SHAPE_MAX: usize = 8;

/// Facts about a module that the disassembler needs to print it or parts of it.
pub struct Printer<'m> {
    pub(super) module: &'m Module,
    /// The types of the imported functions.
    pub(super) imported_funcs: Vec<u32>,
    pub(super) funcs: NameTable<'m>,
    pub(super) tables: NameTable<'m>,
    pub(super) memories: NameTable<'m>,
    pub(super) globals: NameTable<'m>,
    pub(super) elems: NameTable<'m>,
    pub(super) datas: NameTable<'m>,
    /// Whether a type, written out, denotes this entry: it is short, and the first equal entry.
    is_type_inline: Vec<bool>,
    /// Whether a shape is the first equal entry, and its parent comes before it.
    is_shape_regular: Vec<bool>,
}

impl<'m> Printer<'m> {
    /// Collects facts about the module, except its code.
    pub fn new(module: &'m Module) -> Printer<'m> {
        let imported = |kind| u64::from(n_imported(module, kind));
        let names = &module.names;
        let table = |names: &'m [(u32, String)], imported: u64, defined: usize| {
            NameTable::new(names, |index| u64::from(index) < imported + defined as u64)
        };
        let mut known = Tables::default();
        let is_type_inline = module.types.iter().enumerate().map(|(i, ty)| {
            let is_short = ty.params.len() + ty.results.len() <= SHORT_TYPE_MAX;
            known.use_type(ty) == i as u32 && known.types.len() == i + 1 && is_short
        });
        let is_type_inline = is_type_inline.collect();
        let is_shape_regular = module.shapes.iter().enumerate().map(|(i, shape)| {
            let is_first = known.find_shape(*shape).is_none();
            known.define_shape(*shape);
            is_first && shape.parent.0 <= i as u32
        });
        let is_shape_regular = is_shape_regular.collect();
        Printer {
            module,
            imported_funcs: module.imported_funcs().collect(),
            funcs: table(&names.funcs, imported(EntityKind::Func), module.funcs.len()),
            tables: table(&names.tables, imported(EntityKind::Table), module.tables.len()),
            memories: table(&names.memories, imported(EntityKind::Memory), module.memories.len()),
            globals: table(&names.globals, imported(EntityKind::Global), module.globals.len()),
            elems: table(&names.elems, 0, module.elems.len()),
            datas: table(&names.datas, 0, module.datas.len()),
            is_type_inline,
            is_shape_regular,
        }
    }

    pub(super) fn n_imported_funcs(&self) -> u32 {
        self.imported_funcs.len() as u32
    }

    /// Returns the type if it can be written out for this entry of the table.
    pub(super) fn inline_type(&self, ty: u32) -> Option<&'m FuncType> {
        let is_inline = self.is_type_inline.get(ty as usize).copied().unwrap_or(false);
        is_inline.then(|| &self.module.types[ty as usize])
    }

    /// Returns the operands of a shape, deepest first, if they can be written out for this entry of the
    /// table: there must be few of them.
    pub(super) fn inline_shape(&self, shape: ShapeId) -> Option<Vec<ValType>> {
        let mut types = Vec::new();
        let mut shape = shape;
        while shape != ShapeId::EMPTY {
            let parent = self.regular_shape(shape)?;
            if types.len() == SHORT_SHAPE_MAX {
                return None;
            }
            types.push(self.module.shapes[shape.0 as usize - 1].ty);
            shape = parent;
        }
        types.reverse();
        Some(types)
    }

    /// Returns the parent of a shape that can be written as its parent and topmost operand.
    pub(super) fn regular_shape(&self, shape: ShapeId) -> Option<ShapeId> {
        let i = shape.0.checked_sub(1)? as usize;
        let is_regular = self.is_shape_regular.get(i).copied().unwrap_or(false);
        is_regular.then(|| self.module.shapes[i].parent)
    }

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
                ImportKind::Func(ty) => {
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

/// `name` lines for locals or labels of a function.
pub(super) fn write_inner_names<'a>(
    out: &mut String,
    word: &str,
    func: u32,
    names: impl IntoIterator<Item = (u32, &'a str)>,
) {
    for (index, name) in names {
        let _ = write!(out, "name {word} {func} {index} ");
        write_text(out, name);
        out.push('\n');
    }
}

/// The index space of an import.
fn kind_of(kind: &ImportKind) -> EntityKind {
    match kind {
        ImportKind::Func(_) => EntityKind::Func,
        ImportKind::Table(_) => EntityKind::Table,
        ImportKind::Memory(_) => EntityKind::Memory,
        ImportKind::Global(_) => EntityKind::Global,
    }
}

fn n_imported(module: &Module, kind: EntityKind) -> u32 {
    module.imports.iter().filter(|import| kind_of(&import.kind) == kind).count() as u32
}

fn write_max(out: &mut String, max: Option<u32>) {
    if let Some(max) = max {
        out.push(' ');
        write_number(out, max);
    }
}

/// Appends the separator before element `i` of a list: a comma, and a new line after every `per_line`
/// elements.
pub(super) fn write_separator(out: &mut String, i: usize, per_line: usize) {
    match i {
        0 => out.push(' '),
        _ if i.is_multiple_of(per_line) => out.push_str(",\n    "),
        _ => out.push_str(", "),
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
