//! Decoder of the binary form, which `docs/bytecode.md` specifies.
//!
//! The decoder checks the form. Every module has exactly one encoding; any other is rejected, so
//! `encode(&decode(bytes)?) == bytes`. It does not check the meaning of the module, nor whether its code
//! consists of instructions: [`crate::verify()`] does. The input is untrusted. Memory stays proportional to
//! its length, since each count is compared with the number of bytes left before use.

use crate::leb;
use crate::module::{
    BranchHint, ConstExpr, Data, Elem, ElemItems, EntityKind, Export, FrameStack, Func, Global,
    GlobalType, Import, ImportCall, ImportKind, Label, MemoryType, Module, Names, SegmentMode,
    Shape, ShapeId, SourcePlace, TableType,
};
use crate::section::{
    ACTIVE, COLD_FUNC, DECLARED, ITEM_EXPRS, ITEM_FUNCS, LEAF_FUNC, NameSection, PASSIVE, Section,
    tagged_entity, tagged_hint,
};
use crate::types::{FuncType, ValType};

mod error;
mod reader;

pub use error::{DecodeError, DecodeRule};
use reader::{Ascending, Reader, limit};

type Result<T, E = DecodeError> = std::result::Result<T, E>;

/// Decodes a module.
///
/// # Errors
/// Fails with the first violated rule of the form.
pub fn decode(bytes: &[u8]) -> Result<Module> {
    let mut reader = Reader { bytes, pos: 0, end: bytes.len(), section: None };
    reader.check_limit(0, bytes.len(), limit!(MODULE_BYTES_MAX))?;
    reader.header()?;
    let mut module = Module::default();
    let mut n_bodies = 0;
    let mut least = 0;
    while reader.pos < reader.end {
        let section = reader.section_id(least, Section::from_tag)?;
        least = section.tag() + 1;
        reader.section = Some(section);
        reader.sized(|reader| reader.section(section, &mut module, &mut n_bodies))?;
        reader.section = None;
    }
    if n_bodies != module.funcs.len() {
        let detail = format!("{} functions without code", module.funcs.len());
        return reader.fail(DecodeRule::CodeCount, detail);
    }
    Ok(module)
}

impl<'a> Reader<'a> {
    fn section(
        &mut self,
        section: Section,
        module: &mut Module,
        n_bodies: &mut usize,
    ) -> Result<()> {
        match section {
            Section::Types => {
                module.types = self.full_list(limit!(TYPES_MAX), 2, Self::func_type)?;
            }
            Section::Imports => {
                module.imports = self.full_list(limit!(IMPORTS_MAX), 4, Self::import)?;
            }
            Section::Funcs => {
                let func = |reader: &mut Self| Ok(Func { ty: reader.u32()?, ..Func::default() });
                module.funcs = self.full_list(limit!(FUNCS_MAX), 1, func)?;
            }
            Section::Tables => {
                module.tables = self.full_list(limit!(TABLES_MAX), 3, Self::table_type)?;
            }
            Section::Memories => {
                module.memories = self.full_list(limit!(MEMORIES_MAX), 2, Self::memory_type)?;
            }
            Section::Globals => {
                module.globals = self.full_list(limit!(GLOBALS_MAX), 3, Self::global)?;
            }
            Section::Exports => {
                module.exports = self.full_list(limit!(EXPORTS_MAX), 3, Self::export)?;
            }
            Section::Start => module.start = Some(self.u32()?),
            Section::Elems => {
                module.elems = self.full_list(limit!(SEGMENTS_MAX), 4, Self::elem)?;
            }
            Section::Datas => {
                module.datas = self.full_list(limit!(SEGMENTS_MAX), 2, Self::data)?;
            }
            Section::Shapes => {
                module.shapes = self.full_list(limit!(SHAPES_MAX), 2, Self::shape)?;
            }
            Section::FrameStack => {
                module.frame_stack = Some(FrameStack { base: self.u32()?, bytes: self.u32()? });
            }
            Section::Code => *n_bodies = self.bodies(&mut module.funcs)?,
            Section::Names => module.names = self.names()?,
            Section::Lines => {
                let n_imported = module.n_imported_funcs();
                self.lines(n_imported, &mut module.funcs, true)?;
            }
            Section::Places => {
                let start = self.pos;
                if module.funcs.iter().any(|func| !func.lines.is_empty()) {
                    return self.fail_at(
                        start,
                        DecodeRule::LineSection,
                        "source lines come before",
                    );
                }
                let n_imported = module.n_imported_funcs();
                self.lines(n_imported, &mut module.funcs, false)?;
                let mut places = module.funcs.iter().flat_map(|func| &func.lines);
                if places.all(|(_, place)| place.is_plain()) {
                    return self.fail_at(start, DecodeRule::LineSection, "no file and no column");
                }
            }
            Section::Hints => {
                let n_imported = module.n_imported_funcs();
                self.of_funcs(
                    n_imported,
                    &mut module.funcs,
                    DecodeRule::HintFunc,
                    |reader, func| {
                        func.hints = reader.hint_list()?;
                        Ok(())
                    },
                )?;
            }
        }
        Ok(())
    }

    fn val_type(&mut self) -> Result<ValType> {
        let start = self.pos;
        let code = self.byte()?;
        match ValType::from_code(code) {
            Some(ty) => Ok(ty),
            None => {
                self.fail_at(start, DecodeRule::TypeCode, format!("unknown type code {code:#04x}"))
            }
        }
    }

    fn func_type(&mut self) -> Result<FuncType> {
        Ok(FuncType {
            params: self.list(limit!(PARAMS_MAX), 1, Self::val_type)?,
            results: self.list(limit!(RESULTS_MAX), 1, Self::val_type)?,
        })
    }

    fn import(&mut self) -> Result<Import> {
        let (module, name) = (self.string()?, self.string()?);
        let (kind, call) = self.import_tag()?;
        let kind = match kind {
            EntityKind::Func => ImportKind::Func(self.u32()?, call),
            EntityKind::Table => ImportKind::Table(self.table_type()?),
            EntityKind::Memory => ImportKind::Memory(self.memory_type()?),
            EntityKind::Global => ImportKind::Global(self.global_type()?),
        };
        Ok(Import { module, name, kind })
    }

    fn import_tag(&mut self) -> Result<(EntityKind, ImportCall)> {
        self.tag("kind of import", |tag| match tag {
            LEAF_FUNC => Some((EntityKind::Func, ImportCall::Leaf)),
            COLD_FUNC => Some((EntityKind::Func, ImportCall::Cold)),
            _ => Some((tagged_entity(tag)?, ImportCall::Ordinary)),
        })
    }

    fn entity_kind(&mut self) -> Result<EntityKind> {
        self.tag("kind of entity", tagged_entity)
    }

    /// Reads a minimum and an optional maximum.
    fn size_range(&mut self) -> Result<(u32, Option<u32>)> {
        let has_max = self.flag()?;
        let min = self.u32()?;
        Ok((min, if has_max { Some(self.u32()?) } else { None }))
    }

    fn table_type(&mut self) -> Result<TableType> {
        let elem = self.val_type()?;
        let (min, max) = self.size_range()?;
        Ok(TableType { elem, min, max })
    }

    fn memory_type(&mut self) -> Result<MemoryType> {
        let start = self.pos;
        let (min, max) = self.size_range()?;
        for pages in [Some(min), max].into_iter().flatten() {
            self.check_limit(start, pages as usize, limit!(MEMORY_PAGES_MAX))?;
        }
        Ok(MemoryType { min, max })
    }

    fn global_type(&mut self) -> Result<GlobalType> {
        Ok(GlobalType { ty: self.val_type()?, mutable: self.flag()? })
    }

    fn global(&mut self) -> Result<Global> {
        Ok(Global { ty: self.global_type()?, init: self.const_expr()? })
    }

    fn const_expr(&mut self) -> Result<ConstExpr> {
        Ok(ConstExpr { code: self.sized_bytes(limit!(CODE_BYTES_MAX))?.to_vec() })
    }

    fn export(&mut self) -> Result<Export> {
        Ok(Export { name: self.string()?, kind: self.entity_kind()?, index: self.u32()? })
    }

    fn segment_mode(&mut self, declared: bool) -> Result<SegmentMode> {
        let known = |tag: u8| (tag < DECLARED || declared && tag == DECLARED).then_some(tag);
        Ok(match self.tag("segment mode", known)? {
            PASSIVE => SegmentMode::Passive,
            ACTIVE => SegmentMode::Active { target: self.u32()?, offset: self.const_expr()? },
            _ => SegmentMode::Declared,
        })
    }

    fn elem(&mut self) -> Result<Elem> {
        let mode = self.segment_mode(true)?;
        let ty = self.val_type()?;
        let kind = self.tag("kind of element", |tag| (tag <= ITEM_EXPRS).then_some(tag))?;
        let items = match kind {
            ITEM_FUNCS => ElemItems::Funcs(self.list(limit!(SEGMENT_ELEMS_MAX), 1, Self::u32)?),
            _ => ElemItems::Exprs(self.list(limit!(SEGMENT_ELEMS_MAX), 1, Self::const_expr)?),
        };
        Ok(Elem { mode, ty, items })
    }

    fn data(&mut self) -> Result<Data> {
        let mode = self.segment_mode(false)?;
        let bytes = self.sized_bytes(limit!(MODULE_BYTES_MAX))?.to_vec();
        Ok(Data { mode, bytes })
    }

    fn shape(&mut self) -> Result<Shape> {
        Ok(Shape { parent: ShapeId(self.u32()?), ty: self.val_type()? })
    }

    fn bodies(&mut self, funcs: &mut [Func]) -> Result<usize> {
        let start = self.pos;
        let n = self.count(limit!(FUNCS_MAX), 1)?;
        if n != funcs.len() {
            let detail = format!("expected code for {} functions, found {n}", funcs.len());
            return self.fail_at(start, DecodeRule::CodeCount, detail);
        }
        if n == 0 {
            return self.fail_at(start, DecodeRule::SectionEmpty, "empty list");
        }
        for func in funcs {
            self.sized(|reader| reader.body(func))?;
        }
        Ok(n)
    }

    fn body(&mut self, func: &mut Func) -> Result<()> {
        let mut n_locals = 0;
        let mut previous = None;
        func.locals = self.list(limit!(LOCALS_MAX), 2, |reader| {
            let start = reader.pos;
            let (n, ty) = (reader.u32()?, reader.val_type()?);
            n_locals += n as usize;
            reader.check_limit(start, n_locals, limit!(LOCALS_MAX))?;
            if n == 0 || previous.replace(ty) == Some(ty) {
                return reader.fail_at(start, DecodeRule::LocalRuns, format!("{n} locals of {ty}"));
            }
            Ok((n, ty))
        })?;
        let mut offsets = Ascending::default();
        func.labels = self.list(limit!(LABELS_MAX), 2, |reader| {
            Ok(Label { offset: offsets.read(reader)?, shape: ShapeId(reader.u32()?) })
        })?;
        self.check_limit(self.pos, self.n_left(), limit!(CODE_BYTES_MAX))?;
        func.code = self.take(self.n_left())?.to_vec();
        Ok(())
    }

    fn names(&mut self) -> Result<Names> {
        let mut names = Names::default();
        let start = self.pos;
        let mut least = 0;
        while self.n_left() > 0 {
            let part = self.section_id(least, NameSection::from_tag)?;
            least = part.tag() + 1;
            self.sized(|reader| reader.name_section(part, &mut names))?;
        }
        if least == 0 {
            return self.fail_at(start, DecodeRule::SectionEmpty, "no names");
        }
        Ok(names)
    }

    fn name_section(&mut self, part: NameSection, names: &mut Names) -> Result<()> {
        let list = match part {
            NameSection::Module => {
                names.module = Some(self.string()?);
                return Ok(());
            }
            NameSection::Locals => {
                names.locals = self.indexed_list(4, Self::name_list)?;
                return Ok(());
            }
            NameSection::Labels => {
                names.labels = self.indexed_list(4, Self::name_list)?;
                return Ok(());
            }
            NameSection::Funcs => &mut names.funcs,
            NameSection::Tables => &mut names.tables,
            NameSection::Memories => &mut names.memories,
            NameSection::Globals => &mut names.globals,
            NameSection::Elems => &mut names.elems,
            NameSection::Datas => &mut names.datas,
            NameSection::Traps => &mut names.traps,
            NameSection::Files => &mut names.files,
        };
        *list = self.name_list()?;
        Ok(())
    }

    fn name_list(&mut self) -> Result<Vec<(u32, String)>> {
        self.indexed_list(2, Self::string)
    }

    /// Reads a nonempty list of entries with ascending indices. Only the input limits the number of entries.
    fn indexed_list<T>(
        &mut self,
        entry_bytes: usize,
        mut read: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<(u32, T)>> {
        let mut indices = Ascending::default();
        self.full_list(limit!(MODULE_BYTES_MAX), entry_bytes, |reader| {
            Ok((indices.read(reader)?, read(reader)?))
        })
    }

    fn lines(&mut self, n_imported: u32, funcs: &mut [Func], is_plain: bool) -> Result<()> {
        self.of_funcs(n_imported, funcs, DecodeRule::LineFunc, |reader, func| {
            func.lines = reader.line_list(is_plain)?;
            Ok(())
        })
    }

    /// Reads a nonempty list of what some of the functions that the module defines have. A function breaks the rule if the
    /// module does not define it.
    fn of_funcs(
        &mut self,
        n_imported: u32,
        funcs: &mut [Func],
        rule: DecodeRule,
        mut read: impl FnMut(&mut Self, &mut Func) -> Result<()>,
    ) -> Result<()> {
        let mut indices = Ascending::default();
        self.full_list(limit!(FUNCS_MAX), 4, |reader| {
            let start = reader.pos;
            let index = indices.read(reader)?;
            let place = index.checked_sub(n_imported);
            let Some(func) = place.and_then(|place| funcs.get_mut(place as usize)) else {
                return reader.fail_at(start, rule, format!("function {index}"));
            };
            read(reader, func)
        })
        .map(drop)
    }

    fn hint_list(&mut self) -> Result<Vec<(u32, BranchHint)>> {
        self.indexed_list(2, |reader| reader.tag("branch hint", tagged_hint))
    }

    fn line_list(&mut self, is_plain: bool) -> Result<Vec<(u32, SourcePlace)>> {
        let mut previous: Option<SourcePlace> = None;
        self.indexed_list(if is_plain { 2 } else { 4 }, |reader| {
            let start = reader.pos;
            let step = reader.integer(leb::read_i64)?;
            let line = previous.map_or(0, |place| i64::from(place.line)).checked_add(step);
            let Some(line) = line.and_then(|line| u32::try_from(line).ok()) else {
                return reader.fail_at(start, DecodeRule::Range, "line out of range");
            };
            let [column, file] = if is_plain { [0, 0] } else { [reader.u32()?, reader.u32()?] };
            let place = SourcePlace { file, line, column };
            if previous.replace(place) == Some(place) {
                let detail = format!("repeated line {place}");
                return reader.fail_at(start, DecodeRule::LineRuns, detail);
            }
            Ok(place)
        })
    }
}
