//! Decoder of the binary form, which `docs/bytecode.md` specifies.
//!
//! The decoder checks the form. Every module has exactly one encoding; any other is rejected, so
//! `encode(&decode(bytes)?) == bytes`. It does not check the meaning of the module, nor whether its code
//! consists of instructions: [`crate::verify()`] does. The input is untrusted. Memory stays proportional to
//! its length, since each count is compared with the number of bytes left before use.

use std::fmt;

use crate::leb::{self, LebError};
use crate::limits;
use crate::module::{
    ConstExpr, Data, Elem, ElemItems, EntityKind, Export, FrameStack, Func, Global, GlobalType,
    Import, ImportKind, Label, MemoryType, Module, Names, SegmentMode, Shape, ShapeId, TableType,
};
use crate::printable::Printable;
use crate::section::{
    ACTIVE, DECLARED, ITEM_EXPRS, ITEM_FUNCS, MAGIC, NameSection, PASSIVE, Section, VERSION,
};
use crate::types::{FuncType, ValType};

macro_rules! rules {
    ($($variant:ident $name:literal $doc:literal;)*) => {
        /// A rule of the binary form.
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
        pub enum DecodeRule {
            $(#[doc = concat!("`", $name, "`: ", $doc)] $variant,)*
        }

        impl DecodeRule {
            /// All rules.
            pub const ALL: &'static [DecodeRule] = &[$(DecodeRule::$variant),*];

            /// The name in error messages and in `docs/bytecode.md`.
            pub const fn name(self) -> &'static str {
                match self { $(DecodeRule::$variant => $name,)* }
            }

            /// The requirement, as a sentence.
            pub const fn doc(self) -> &'static str {
                match self { $(DecodeRule::$variant => $doc,)* }
            }
        }
    };
}

rules! {
    Magic "magic" "A module starts with the bytes 00 73 76 6d.";
    Version "version" "The version is known to this implementation.";
    End "end" "No item is truncated.";
    Range "range" "An integer fits its type.";
    Shortest "shortest" "An integer is encoded in its shortest form.";
    Limit "limit" "No count or size exceeds its limit.";
    Count "count" "A list has no more entries than fit in the bytes left.";
    SectionId "section-id" "A section, or part of the names, has a known id.";
    SectionOrder "section-order" "Sections, and parts of the names, are strictly ascending in their id.";
    SectionEmpty "section-empty" "Empty sections, parts of the names, and lists of names and lines are left out.";
    Length "length" "Contents have exactly the length stated before them.";
    TypeCode "type-code" "A type has a known code.";
    Tag "tag" "A flag, kind or mode has a defined value.";
    Utf8 "utf8" "A string is UTF-8.";
    Ascending "ascending" "Code offsets and indices in a sorted list stay below 2^32.";
    LocalRuns "local-runs" "A run of locals is not empty, and neighbouring runs have different types.";
    LineRuns "line-runs" "Neighbouring entries of a line table have different lines.";
    LineFunc "line-func" "Source lines belong to a function that the module defines.";
    CodeCount "code-count" "The code section has one entry for each function of the functions section.";
}

impl fmt::Display for DecodeRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Error for bytes that are not a binary module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    offset: usize,
    section: Option<Section>,
    rule: DecodeRule,
    detail: String,
}

impl DecodeError {
    /// The byte offset of the violation.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The section of the violation, if it is in one.
    pub fn section(&self) -> Option<Section> {
        self.section
    }

    /// The violated rule.
    pub fn rule(&self) -> DecodeRule {
        self.rule
    }

    /// Description of the violation.
    pub fn detail(&self) -> &str {
        &self.detail
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {:#x}", self.offset)?;
        if let Some(section) = self.section {
            write!(f, ", {section} section")?;
        }
        write!(f, ": {} (rule {}: {})", Printable(&self.detail), self.rule, self.rule.doc())
    }
}

impl std::error::Error for DecodeError {}

type Result<T, E = DecodeError> = std::result::Result<T, E>;

/// A named limit.
#[derive(Copy, Clone)]
struct Limit {
    name: &'static str,
    max: usize,
}

macro_rules! limit {
    ($name:ident) => {
        Limit { name: stringify!($name), max: limits::$name as usize }
    };
}

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

struct Reader<'a> {
    bytes: &'a [u8],
    pos: usize,
    /// End of the contents being read.
    end: usize,
    section: Option<Section>,
}

/// Reads strictly ascending numbers, each as its distance from the least number that it can be.
#[derive(Default)]
struct Ascending {
    least: u64,
}

impl Ascending {
    fn read(&mut self, reader: &mut Reader<'_>) -> Result<u32> {
        let start = reader.pos;
        let number = self.least + u64::from(reader.u32()?);
        self.least = number + 1;
        u32::try_from(number)
            .or_else(|_| reader.fail_at(start, DecodeRule::Ascending, format!("{number}")))
    }
}

impl<'a> Reader<'a> {
    fn fail<T>(&self, rule: DecodeRule, detail: impl Into<String>) -> Result<T> {
        self.fail_at(self.pos, rule, detail)
    }

    #[cold]
    fn fail_at<T>(&self, offset: usize, rule: DecodeRule, detail: impl Into<String>) -> Result<T> {
        Err(DecodeError { offset, section: self.section, rule, detail: detail.into() })
    }

    fn n_left(&self) -> usize {
        self.end - self.pos
    }

    fn check_limit(&self, offset: usize, n: usize, limit: Limit) -> Result<()> {
        if n <= limit.max {
            return Ok(());
        }
        let detail = format!("{n} exceeds {} = {}", limit.name, limit.max);
        self.fail_at(offset, DecodeRule::Limit, detail)
    }

    fn byte(&mut self) -> Result<u8> {
        let [byte] = *self.take(1)? else { unreachable!("`take(1)` returns one byte") };
        Ok(byte)
    }

    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        if n > self.n_left() {
            let detail = format!("expected {n} bytes, {} left", self.n_left());
            return self.fail(DecodeRule::End, detail);
        }
        let bytes = &self.bytes[self.pos..self.pos + n];
        self.pos += n;
        Ok(bytes)
    }

    fn u32(&mut self) -> Result<u32> {
        self.integer(leb::read_u32)
    }

    fn integer<T>(
        &mut self,
        read: impl FnOnce(&[u8], &mut usize) -> Result<T, LebError>,
    ) -> Result<T> {
        let start = self.pos;
        read(&self.bytes[..self.end], &mut self.pos).or_else(|error| {
            let rule = match error {
                LebError::End => DecodeRule::End,
                LebError::Overflow => DecodeRule::Range,
                LebError::NotShortest => DecodeRule::Shortest,
            };
            self.fail_at(start, rule, error.to_string())
        })
    }

    fn header(&mut self) -> Result<()> {
        let magic = self.take(MAGIC.len())?;
        if magic != MAGIC {
            return self.fail_at(
                0,
                DecodeRule::Magic,
                format!("the module starts with {magic:02x?}"),
            );
        }
        let start = self.pos;
        let version = self.take(4)?;
        if version != VERSION.to_le_bytes() {
            let version = version.iter().rev().fold(0u32, |all, &byte| all << 8 | u32::from(byte));
            let detail = format!("unknown version {version}; expected {VERSION}");
            return self.fail_at(start, DecodeRule::Version, detail);
        }
        Ok(())
    }

    /// Reads the id of a section or part of the names, at least `least`.
    fn section_id<T>(&mut self, least: u8, from_tag: impl Fn(u8) -> Option<T>) -> Result<T> {
        let start = self.pos;
        let tag = self.byte()?;
        let Some(section) = from_tag(tag) else {
            return self.fail_at(start, DecodeRule::SectionId, format!("unknown id {tag}"));
        };
        if tag < least {
            let detail = format!("id {tag} comes after id {}", least - 1);
            return self.fail_at(start, DecodeRule::SectionOrder, detail);
        }
        Ok(section)
    }

    /// Reads a length, then contents of exactly that length.
    fn sized<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let start = self.pos;
        let length = self.u32()? as usize;
        if length > self.n_left() {
            let detail = format!("length {length}, but {} bytes left", self.n_left());
            return self.fail_at(start, DecodeRule::End, detail);
        }
        let end = std::mem::replace(&mut self.end, self.pos + length);
        let contents = read(self)?;
        if self.n_left() > 0 {
            return self.fail(DecodeRule::Length, format!("{} bytes too many", self.n_left()));
        }
        self.end = end;
        Ok(contents)
    }

    /// Reads a count of entries of at least `entry_bytes` each.
    fn count(&mut self, limit: Limit, entry_bytes: usize) -> Result<usize> {
        let start = self.pos;
        let n = self.u32()? as usize;
        self.check_limit(start, n, limit)?;
        if n > self.n_left() / entry_bytes {
            let detail = format!("{n} entries, but {} bytes left", self.n_left());
            return self.fail_at(start, DecodeRule::Count, detail);
        }
        Ok(n)
    }

    fn list<T>(
        &mut self,
        limit: Limit,
        entry_bytes: usize,
        mut read: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let n = self.count(limit, entry_bytes)?;
        let mut items = Vec::with_capacity(n);
        for _ in 0..n {
            items.push(read(self)?);
        }
        Ok(items)
    }

    /// Reads a list that may not be empty, since empty ones are left out.
    fn full_list<T>(
        &mut self,
        limit: Limit,
        entry_bytes: usize,
        read: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let start = self.pos;
        let items = self.list(limit, entry_bytes, read)?;
        if items.is_empty() {
            return self.fail_at(start, DecodeRule::SectionEmpty, "empty list");
        }
        Ok(items)
    }

    fn sized_bytes(&mut self, limit: Limit) -> Result<&'a [u8]> {
        let n = self.count(limit, 1)?;
        self.take(n)
    }

    fn string(&mut self) -> Result<String> {
        let bytes = self.sized_bytes(limit!(NAME_BYTES_MAX))?;
        let start = self.pos - bytes.len();
        match std::str::from_utf8(bytes) {
            Ok(string) => Ok(string.to_owned()),
            Err(error) => {
                self.fail_at(start + error.valid_up_to(), DecodeRule::Utf8, error.to_string())
            }
        }
    }

    /// Reads a byte that `from_tag` accepts.
    fn tag<T>(&mut self, what: &str, from_tag: impl FnOnce(u8) -> Option<T>) -> Result<T> {
        let start = self.pos;
        let tag = self.byte()?;
        match from_tag(tag) {
            Some(value) => Ok(value),
            None => self.fail_at(start, DecodeRule::Tag, format!("unknown {what} {tag}")),
        }
    }

    fn flag(&mut self) -> Result<bool> {
        self.tag("flag", |tag| (tag <= 1).then_some(tag == 1))
    }

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
                self.lines(n_imported, &mut module.funcs)?;
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
        let kind = match self.entity_kind()? {
            EntityKind::Func => ImportKind::Func(self.u32()?),
            EntityKind::Table => ImportKind::Table(self.table_type()?),
            EntityKind::Memory => ImportKind::Memory(self.memory_type()?),
            EntityKind::Global => ImportKind::Global(self.global_type()?),
        };
        Ok(Import { module, name, kind })
    }

    fn entity_kind(&mut self) -> Result<EntityKind> {
        self.tag("kind of entity", |tag| {
            Some(match tag {
                0 => EntityKind::Func,
                1 => EntityKind::Table,
                2 => EntityKind::Memory,
                3 => EntityKind::Global,
                _ => return None,
            })
        })
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

    fn lines(&mut self, n_imported: u32, funcs: &mut [Func]) -> Result<()> {
        let mut indices = Ascending::default();
        self.full_list(limit!(FUNCS_MAX), 4, |reader| {
            let start = reader.pos;
            let index = indices.read(reader)?;
            let place = index.checked_sub(n_imported);
            let Some(func) = place.and_then(|place| funcs.get_mut(place as usize)) else {
                return reader.fail_at(start, DecodeRule::LineFunc, format!("function {index}"));
            };
            func.lines = reader.line_list()?;
            Ok(())
        })
        .map(drop)
    }

    fn line_list(&mut self) -> Result<Vec<(u32, u32)>> {
        let mut previous = None;
        self.indexed_list(2, |reader| {
            let start = reader.pos;
            let step = reader.integer(leb::read_i64)?;
            let line = i64::from(previous.unwrap_or(0)).checked_add(step);
            let Some(line) = line.and_then(|line| u32::try_from(line).ok()) else {
                return reader.fail_at(start, DecodeRule::Range, "line out of range");
            };
            if previous.replace(line) == Some(line) {
                return reader.fail_at(
                    start,
                    DecodeRule::LineRuns,
                    format!("repeated line {line}"),
                );
            }
            Ok(line)
        })
    }
}
