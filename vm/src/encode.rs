//! Encoder of the binary form, which `docs/bytecode.md` specifies.
//!
//! A module that satisfies the invariants documented at the fields of [`Module`] has exactly one encoding,
//! and [`crate::decode()`] returns the module again. For any other module (names out of order, say), the
//! encoder produces bytes that the decoder rejects. It never panics.

use crate::leb;
use crate::module::{
    BranchHint, ConstExpr, Data, Elem, ElemItems, EntityKind, Export, Func, Global, GlobalType,
    Import, ImportKind, MemoryType, Module, Names, SegmentMode, SourcePlace, TableType,
};
use crate::section::{
    ACTIVE, DECLARED, ITEM_EXPRS, ITEM_FUNCS, MAGIC, NameSection, PASSIVE, Section, VERSION,
    entity_tag, func_import_tag, hint_tag,
};
use crate::types::{FuncType, ValType};

/// Encodes a module.
pub fn encode(module: &Module) -> Vec<u8> {
    let mut out = Writer::default();
    out.bytes.extend_from_slice(&MAGIC);
    out.bytes.extend_from_slice(&VERSION.to_le_bytes());
    out.list_section(Section::Types, &module.types, Writer::func_type);
    out.list_section(Section::Imports, &module.imports, Writer::import);
    out.list_section(Section::Funcs, &module.funcs, |out, func| out.u32(func.ty));
    out.list_section(Section::Tables, &module.tables, Writer::table_type);
    out.list_section(Section::Memories, &module.memories, Writer::memory_type);
    out.list_section(Section::Globals, &module.globals, Writer::global);
    out.list_section(Section::Exports, &module.exports, Writer::export);
    if let Some(start) = module.start {
        out.part(Section::Start.tag(), |out| out.u32(start));
    }
    out.list_section(Section::Elems, &module.elems, Writer::elem);
    out.list_section(Section::Datas, &module.datas, Writer::data);
    out.list_section(Section::Shapes, &module.shapes, |out, shape| {
        out.u32(shape.parent.0);
        out.val_type(shape.ty);
    });
    if let Some(stack) = module.frame_stack {
        out.part(Section::FrameStack.tag(), |out| {
            out.u32(stack.base);
            out.u32(stack.bytes);
        });
    }
    out.list_section(Section::Code, &module.funcs, |out, func| out.sized(|out| out.body(func)));
    if module.names != Names::default() {
        out.part(Section::Names.tag(), |out| out.names(&module.names));
    }
    out.lines(module);
    out.hints(module);
    out.bytes
}

#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
}

/// Writes strictly ascending numbers, each as its distance from the least number that it can be.
#[derive(Default)]
struct Ascending {
    least: u32,
}

impl Ascending {
    fn write(&mut self, out: &mut Writer, number: u32) {
        out.u32(number.wrapping_sub(self.least));
        self.least = number.wrapping_add(1);
    }
}

impl Writer {
    fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    fn u32(&mut self, value: u32) {
        leb::write_u32(&mut self.bytes, value);
    }

    fn list<T>(&mut self, items: &[T], write: impl Fn(&mut Writer, &T)) {
        self.u32(items.len() as u32);
        for item in items {
            write(self, item);
        }
    }

    /// Writes the output of `write` with its length before it.
    fn sized(&mut self, write: impl FnOnce(&mut Writer)) {
        let start = self.bytes.len();
        write(self);
        let mut length = Vec::new();
        leb::write_u32(&mut length, (self.bytes.len() - start) as u32);
        self.bytes.splice(start..start, length);
    }

    /// Writes a section, or a part of one.
    fn part(&mut self, tag: u8, write: impl FnOnce(&mut Writer)) {
        self.byte(tag);
        self.sized(write);
    }

    /// Writes a section that is a list, unless the list is empty.
    fn list_section<T>(&mut self, section: Section, items: &[T], write: impl Fn(&mut Writer, &T)) {
        if !items.is_empty() {
            self.part(section.tag(), |out| out.list(items, write));
        }
    }

    fn sized_bytes(&mut self, bytes: &[u8]) {
        self.u32(bytes.len() as u32);
        self.bytes.extend_from_slice(bytes);
    }

    fn val_type(&mut self, ty: ValType) {
        self.byte(ty.code());
    }

    fn func_type(&mut self, ty: &FuncType) {
        for types in [&ty.params, &ty.results] {
            self.list(types, |out, &ty| out.val_type(ty));
        }
    }

    fn import(&mut self, import: &Import) {
        self.sized_bytes(import.module.as_bytes());
        self.sized_bytes(import.name.as_bytes());
        match &import.kind {
            &ImportKind::Func(ty, call) => {
                self.byte(func_import_tag(call));
                self.u32(ty);
            }
            ImportKind::Table(ty) => {
                self.byte(entity_tag(EntityKind::Table));
                self.table_type(ty);
            }
            ImportKind::Memory(ty) => {
                self.byte(entity_tag(EntityKind::Memory));
                self.memory_type(ty);
            }
            ImportKind::Global(ty) => {
                self.byte(entity_tag(EntityKind::Global));
                self.global_type(*ty);
            }
        }
    }

    fn size_range(&mut self, min: u32, max: Option<u32>) {
        self.byte(u8::from(max.is_some()));
        self.u32(min);
        if let Some(max) = max {
            self.u32(max);
        }
    }

    fn table_type(&mut self, ty: &TableType) {
        self.val_type(ty.elem);
        self.size_range(ty.min, ty.max);
    }

    fn memory_type(&mut self, ty: &MemoryType) {
        self.size_range(ty.min, ty.max);
    }

    fn global_type(&mut self, ty: GlobalType) {
        self.val_type(ty.ty);
        self.byte(u8::from(ty.mutable));
    }

    fn global(&mut self, global: &Global) {
        self.global_type(global.ty);
        self.const_expr(&global.init);
    }

    fn const_expr(&mut self, expr: &ConstExpr) {
        self.sized_bytes(&expr.code);
    }

    fn export(&mut self, export: &Export) {
        self.sized_bytes(export.name.as_bytes());
        self.byte(entity_tag(export.kind));
        self.u32(export.index);
    }

    fn segment_mode(&mut self, mode: &SegmentMode) {
        match mode {
            SegmentMode::Passive => self.byte(PASSIVE),
            SegmentMode::Active { target, offset } => {
                self.byte(ACTIVE);
                self.u32(*target);
                self.const_expr(offset);
            }
            SegmentMode::Declared => self.byte(DECLARED),
        }
    }

    fn elem(&mut self, elem: &Elem) {
        self.segment_mode(&elem.mode);
        self.val_type(elem.ty);
        match &elem.items {
            ElemItems::Funcs(funcs) => {
                self.byte(ITEM_FUNCS);
                self.list(funcs, |out, &func| out.u32(func));
            }
            ElemItems::Exprs(exprs) => {
                self.byte(ITEM_EXPRS);
                self.list(exprs, Writer::const_expr);
            }
        }
    }

    fn data(&mut self, data: &Data) {
        self.segment_mode(&data.mode);
        self.sized_bytes(&data.bytes);
    }

    fn body(&mut self, func: &Func) {
        self.list(&func.locals, |out, &(n, ty)| {
            out.u32(n);
            out.val_type(ty);
        });
        self.u32(func.labels.len() as u32);
        let mut offsets = Ascending::default();
        for label in &func.labels {
            offsets.write(self, label.offset);
            self.u32(label.shape.0);
        }
        self.bytes.extend_from_slice(&func.code);
    }

    fn names(&mut self, names: &Names) {
        if let Some(name) = &names.module {
            self.part(NameSection::Module.tag(), |out| out.sized_bytes(name.as_bytes()));
        }
        for (section, list) in [
            (NameSection::Funcs, &names.funcs),
            (NameSection::Tables, &names.tables),
            (NameSection::Memories, &names.memories),
            (NameSection::Globals, &names.globals),
            (NameSection::Elems, &names.elems),
            (NameSection::Datas, &names.datas),
        ] {
            if !list.is_empty() {
                self.part(section.tag(), |out| out.name_list(list));
            }
        }
        for (section, list) in
            [(NameSection::Locals, &names.locals), (NameSection::Labels, &names.labels)]
        {
            if !list.is_empty() {
                self.part(section.tag(), |out| {
                    out.indexed_list(list, |out, names| out.name_list(names));
                });
            }
        }
        for (section, list) in
            [(NameSection::Traps, &names.traps), (NameSection::Files, &names.files)]
        {
            if !list.is_empty() {
                self.part(section.tag(), |out| out.name_list(list));
            }
        }
    }

    fn name_list(&mut self, names: &[(u32, String)]) {
        self.indexed_list(names, |out, name| out.sized_bytes(name.as_bytes()));
    }

    fn indexed_list<T>(&mut self, items: &[(u32, T)], write: impl Fn(&mut Writer, &T)) {
        self.u32(items.len() as u32);
        let mut indices = Ascending::default();
        for (index, item) in items {
            indices.write(self, *index);
            write(self, item);
        }
    }

    fn lines(&mut self, module: &Module) {
        let indices = module.n_imported_funcs()..;
        let with_lines: Vec<(u32, &[(u32, SourcePlace)])> = indices
            .zip(&module.funcs)
            .filter(|(_, func)| !func.lines.is_empty())
            .map(|(index, func)| (index, &*func.lines))
            .collect();
        if with_lines.is_empty() {
            return;
        }
        let mut places = with_lines.iter().flat_map(|(_, lines)| *lines);
        let is_plain = places.all(|(_, place)| place.is_plain());
        let section = if is_plain { Section::Lines } else { Section::Places };
        self.part(section.tag(), |out| {
            out.indexed_list(&with_lines, |out, lines| out.line_list(lines, is_plain));
        });
    }

    fn hints(&mut self, module: &Module) {
        let indices = module.n_imported_funcs()..;
        let with_hints: Vec<(u32, &[(u32, BranchHint)])> = indices
            .zip(&module.funcs)
            .filter(|(_, func)| !func.hints.is_empty())
            .map(|(index, func)| (index, &*func.hints))
            .collect();
        if !with_hints.is_empty() {
            self.part(Section::Hints.tag(), |out| {
                out.indexed_list(&with_hints, |out, hints| {
                    out.indexed_list(hints, |out, &hint| out.byte(hint_tag(hint)));
                });
            });
        }
    }

    fn line_list(&mut self, lines: &[(u32, SourcePlace)], is_plain: bool) {
        self.u32(lines.len() as u32);
        let mut offsets = Ascending::default();
        let mut previous = 0;
        for &(offset, SourcePlace { file, line, column }) in lines {
            offsets.write(self, offset);
            leb::write_i64(&mut self.bytes, i64::from(line) - i64::from(previous));
            previous = line;
            if !is_plain {
                self.u32(column);
                self.u32(file);
            }
        }
    }
}
