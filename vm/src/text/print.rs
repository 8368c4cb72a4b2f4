//! What the disassembler knows of a module, to print it or parts of it.
//!
//! Does not rely on verification: dangling indices are printed as numbers, and names that cannot be printed at their
//! entities get `name` lines. Items are printed by [`super::print_module`], functions by [`super::disasm`].

use std::fmt::Write as _;

use super::literal::write_text;
use super::name_table::NameTable;
use super::tables::Tables;
use crate::inst::InstError;
use crate::module::{EntityKind, ImportKind, Module, ShapeId};
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
    pub(super) is_type_inline: Vec<bool>,
    /// Whether a shape is the first equal entry, and its parent comes before it.
    pub(super) is_shape_regular: Vec<bool>,
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
pub(super) fn kind_of(kind: &ImportKind) -> EntityKind {
    match kind {
        ImportKind::Func(..) => EntityKind::Func,
        ImportKind::Table(_) => EntityKind::Table,
        ImportKind::Memory(_) => EntityKind::Memory,
        ImportKind::Global(_) => EntityKind::Global,
    }
}

pub(super) fn n_imported(module: &Module, kind: EntityKind) -> u32 {
    module.imports.iter().filter(|import| kind_of(&import.kind) == kind).count() as u32
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
