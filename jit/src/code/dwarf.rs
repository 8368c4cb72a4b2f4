//! The sections of DWARF 5 (<https://dwarfstd.org/dwarf5std.html>) that tell a debugger what placed code is.
//!
//! * `.debug_frame`: the rules to find callers and the registers that they have, exact at each instruction for code with
//!   [`DebugCode`]; for all other code the rule of [`unwind`].
//! * The others have an entry for each function that was described, with its calls that were inlined, its locals, and the
//!   source places of its code. There are none if no function was described.
//!
//! Addresses are absolute. Linear in what is described.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use gimli::write::{
    Address, AttributeValue, DebugFrame, DwarfUnit, EndianVec, Expression, FileId,
    FrameDescriptionEntry, FrameTable, LineProgram, LineString, Location as ListedLocation,
    LocationList, Range as ListedRange, RangeList, Sections, UnitEntryId,
};
use gimli::{
    DW_AT_abstract_origin, DW_AT_byte_size, DW_AT_call_column, DW_AT_call_file, DW_AT_call_line,
    DW_AT_encoding, DW_AT_frame_base, DW_AT_high_pc, DW_AT_inline, DW_AT_language, DW_AT_location,
    DW_AT_low_pc, DW_AT_name, DW_AT_producer, DW_AT_ranges, DW_AT_type, DW_ATE_address,
    DW_ATE_float, DW_ATE_signed, DW_ATE_unsigned, DW_INL_inlined, DW_LANG_C11,
    DW_OP_call_frame_cfa, DW_TAG_base_type, DW_TAG_formal_parameter, DW_TAG_inlined_subroutine,
    DW_TAG_subprogram, DW_TAG_variable, DwAte, Encoding, Format, LineEncoding, LittleEndian,
    Register,
};
use slotvm_bytecode::module::SourcePlace;
use slotvm_bytecode::{ValType, VerifiedModule};

use crate::code::debug_code::{DebugCode, DebugLocal, Location};
use crate::code::pctable::{Place, PlaceId};
use crate::code::unwind;

/// A function that a debugger is told of.
pub(crate) struct Shown<'a> {
    pub(crate) code: Range<usize>,
    pub(crate) name: String,
    pub(crate) debug: Option<&'a DebugCode>,
}

/// A section: its name and what is in it.
pub(super) type Section = (&'static str, Vec<u8>);

/// The sections for a block of code and its functions, of a module if there is one.
pub(super) fn sections(
    code: &Range<usize>,
    funcs: &[Shown<'_>],
    module: Option<&VerifiedModule>,
) -> Vec<Section> {
    let mut sections = vec![(".debug_frame", debug_frame(code, funcs))];
    let described = |shown: &&Shown<'_>| shown.debug.is_some_and(|debug| debug.func.is_some());
    let Some(module) = module.filter(|_| funcs.iter().any(|shown| described(&shown))) else {
        return sections;
    };
    let mut writer = Writer::new(module, code);
    for shown in funcs.iter().filter(described) {
        writer.add(shown);
    }
    let mut written = Sections::new(EndianVec::new(LittleEndian));
    writer.dwarf.write(&mut written).expect("memory takes all that is written");
    let Ok(()) = written.for_each(|id, data| {
        if !data.slice().is_empty() {
            sections.push((id.name(), data.slice().to_vec()));
        }
        Ok::<(), std::convert::Infallible>(())
    });
    sections
}

/// The rules to find callers in a block of code.
pub(super) fn debug_frame(code: &Range<usize>, funcs: &[Shown<'_>]) -> Vec<u8> {
    let mut table = FrameTable::default();
    let rule = table.add_cie(unwind::rule_for_debuggers());
    let mut end = code.start;
    let by_rule = |table: &mut FrameTable, code: Range<usize>| {
        if !code.is_empty() {
            let start = Address::Constant(code.start as u64);
            table.add_fde(rule, FrameDescriptionEntry::new(start, code.len() as u32));
        }
    };
    let mut exact: Vec<_> = funcs
        .iter()
        .flat_map(|shown| {
            let start = shown.code.start;
            let frames = shown.debug.into_iter().flat_map(|debug| {
                debug.frames.iter().map(move |(part, info)| (part, info, &debug.cie))
            });
            frames.map(move |(part, info, cie)| {
                (start + part.start as usize..start + part.end as usize, info, cie)
            })
        })
        .collect();
    exact.sort_by_key(|(part, ..)| part.start);
    for (part, info, cie) in exact {
        by_rule(&mut table, end..part.start);
        let cie = table.add_cie(cie.clone());
        table.add_fde(cie, info.to_fde(Address::Constant(part.start as u64)));
        end = part.end;
    }
    by_rule(&mut table, end..code.end);
    let mut section = DebugFrame(EndianVec::new(LittleEndian));
    table.write_debug_frame(&mut section).expect("memory takes all that is written");
    section.0.into_vec()
}

const ENCODING: Encoding = Encoding { format: Format::Dwarf32, version: 5, address_size: 8 };

/// Writes the entries of the functions of a module.
struct Writer<'a> {
    module: &'a VerifiedModule,
    dwarf: DwarfUnit,
    /// The file of places without one, which is named after the module.
    own_file: FileId,
    files: HashMap<u32, FileId>,
    types: HashMap<ValType, UnitEntryId>,
    /// The entries that those of inlined calls refer to, by function.
    inlined: HashMap<u32, UnitEntryId>,
}

/// A call that was inlined.
struct InlinedCall {
    func: u32,
    /// The calls around it.
    inlined_at: PlaceId,
    ranges: Vec<Range<usize>>,
}

impl<'a> Writer<'a> {
    fn new(module: &'a VerifiedModule, code: &Range<usize>) -> Writer<'a> {
        let mut dwarf = DwarfUnit::new(ENCODING);
        let name = module.module().names.module.as_deref().filter(|name| !name.is_empty());
        // Units have names, but not all modules do.
        let name = c_string(name.unwrap_or("module"));
        let mut line_string =
            |text: &[u8]| LineString::new(text, ENCODING, &mut dwarf.line_strings);
        let (dir, file) = (line_string(b"."), line_string(&name));
        let program = LineProgram::new(ENCODING, LineEncoding::default(), dir, None, file, None);
        let own_file = program.files().next().expect("the first one was given").0;
        dwarf.unit.line_program = program;
        let mut writer = Writer {
            module,
            dwarf,
            own_file,
            files: HashMap::new(),
            types: HashMap::new(),
            inlined: HashMap::new(),
        };
        let root = writer.dwarf.unit.root();
        writer.set(root, DW_AT_name, AttributeValue::String(name));
        writer.set(root, DW_AT_producer, AttributeValue::String(b"slotvm".to_vec()));
        // Debuggers print values as the language has them.
        writer.set(root, DW_AT_language, AttributeValue::Language(DW_LANG_C11));
        writer.set_code(root, code);
        writer
    }

    fn set(&mut self, entry: UnitEntryId, name: gimli::DwAt, value: AttributeValue) {
        self.dwarf.unit.get_mut(entry).set(name, value);
    }

    fn set_code(&mut self, entry: UnitEntryId, code: &Range<usize>) {
        let start = Address::Constant(code.start as u64);
        self.set(entry, DW_AT_low_pc, AttributeValue::Address(start));
        self.set(entry, DW_AT_high_pc, AttributeValue::Udata(code.len() as u64));
    }

    fn add(&mut self, shown: &Shown<'_>) {
        let Shown { code, name, debug: Some(debug) } = shown else { return };
        let Some(func) = debug.func else { return };
        let root = self.dwarf.unit.root();
        let entry = self.dwarf.unit.add(root, DW_TAG_subprogram);
        self.set(entry, DW_AT_name, AttributeValue::String(c_string(name)));
        self.set_code(entry, code);
        let mut base = Expression::new();
        base.op(DW_OP_call_frame_cfa);
        self.set(entry, DW_AT_frame_base, AttributeValue::Exprloc(base));
        for local in &debug.locals {
            self.add_local(entry, func, local, code.start);
        }
        self.add_inlined_calls(entry, debug, code);
        self.add_lines(debug, code);
    }

    fn add_local(&mut self, function: UnitEntryId, func: u32, local: &DebugLocal, start: usize) {
        let DebugLocal { local, at } = local;
        let name = self.module.module().names.local(func, *local);
        let name = name.expect("locals without names are not described");
        let is_param = (*local as usize) < self.module.func_type(func).params.len();
        let body = self.module.body(func).expect("the module defines the function");
        let ty = body.locals[*local as usize].ty;
        let tag = if is_param { DW_TAG_formal_parameter } else { DW_TAG_variable };
        let entry = self.dwarf.unit.add(function, tag);
        self.set(entry, DW_AT_name, AttributeValue::String(c_string(name)));
        let ty = self.base_type(ty);
        self.set(entry, DW_AT_type, AttributeValue::UnitRef(ty));
        let list = at.iter().map(|(code, location)| ListedLocation::StartLength {
            begin: Address::Constant(start as u64 + u64::from(code.start)),
            length: u64::from(code.end - code.start),
            data: expression(*location),
        });
        let list = self.dwarf.unit.locations.add(LocationList(list.collect()));
        self.set(entry, DW_AT_location, AttributeValue::LocationListRef(list));
    }

    fn base_type(&mut self, ty: ValType) -> UnitEntryId {
        if let Some(&known) = self.types.get(&ty) {
            return known;
        }
        let (encoding, bytes): (DwAte, u8) = match ty {
            ValType::I32 => (DW_ATE_signed, 4),
            ValType::I64 => (DW_ATE_signed, 8),
            ValType::F32 => (DW_ATE_float, 4),
            ValType::F64 => (DW_ATE_float, 8),
            ValType::V128 => (DW_ATE_unsigned, 16),
            ValType::FuncRef | ValType::ExternRef | ValType::Ref => (DW_ATE_address, 8),
        };
        let root = self.dwarf.unit.root();
        let entry = self.dwarf.unit.add(root, DW_TAG_base_type);
        self.set(entry, DW_AT_name, AttributeValue::String(ty.to_string().into_bytes()));
        self.set(entry, DW_AT_encoding, AttributeValue::Encoding(encoding));
        self.set(entry, DW_AT_byte_size, AttributeValue::Data1(bytes));
        self.types.insert(ty, entry);
        entry
    }

    /// Adds the calls whose bodies are in a function, each in the one around it.
    fn add_inlined_calls(&mut self, function: UnitEntryId, debug: &DebugCode, code: &Range<usize>) {
        // By the places that they were inlined at, of which those around come first.
        let mut calls: BTreeMap<u32, InlinedCall> = BTreeMap::new();
        for (range, innermost) in line_ranges(debug, code) {
            let mut at = innermost;
            while let Some(&Place { func, inlined_at, .. }) = place(debug, at)
                && inlined_at != PlaceId::NONE
            {
                let new = || InlinedCall { func, inlined_at, ranges: Vec::new() };
                let call = calls.entry(inlined_at.0).or_insert_with(new);
                match call.ranges.last_mut() {
                    Some(last) if last.end == range.start => last.end = range.end,
                    _ => call.ranges.push(range.clone()),
                }
                at = inlined_at;
            }
        }
        let mut entries: HashMap<PlaceId, UnitEntryId> = HashMap::new();
        for InlinedCall { func, inlined_at, ranges } in calls.into_values() {
            let Some(caller) = place(debug, inlined_at).copied() else { continue };
            let around = entries.get(&caller.inlined_at).copied().unwrap_or(function);
            let origin = self.inlined_function(func);
            let entry = self.dwarf.unit.add(around, DW_TAG_inlined_subroutine);
            entries.insert(inlined_at, entry);
            self.set(entry, DW_AT_abstract_origin, AttributeValue::UnitRef(origin));
            let ranges = ranges.into_iter().map(|range| ListedRange::StartLength {
                begin: Address::Constant(range.start as u64),
                length: range.len() as u64,
            });
            let ranges = self.dwarf.unit.ranges.add(RangeList(ranges.collect()));
            self.set(entry, DW_AT_ranges, AttributeValue::RangeListRef(ranges));
            if let Some(source) = self.source(&caller) {
                let file = self.file(source.file);
                self.set(entry, DW_AT_call_file, AttributeValue::FileIndex(Some(file)));
                self.set(entry, DW_AT_call_line, AttributeValue::Udata(source.line.into()));
                self.set(entry, DW_AT_call_column, AttributeValue::Udata(source.column.into()));
            }
        }
    }

    /// The entry that those of inlined calls of a function refer to.
    fn inlined_function(&mut self, func: u32) -> UnitEntryId {
        if let Some(&known) = self.inlined.get(&func) {
            return known;
        }
        let root = self.dwarf.unit.root();
        let entry = self.dwarf.unit.add(root, DW_TAG_subprogram);
        let name = c_string(&self.module.func_name(func));
        self.set(entry, DW_AT_name, AttributeValue::String(name));
        self.set(entry, DW_AT_inline, AttributeValue::Inline(DW_INL_inlined));
        self.inlined.insert(func, entry);
        entry
    }

    /// Adds the source places of a function's code.
    fn add_lines(&mut self, debug: &DebugCode, code: &Range<usize>) {
        let start = Address::Constant(code.start as u64);
        self.dwarf.unit.line_program.begin_sequence(Some(start));
        let mut last = None;
        for (number, &(offset, at)) in debug.lines.iter().enumerate() {
            let place = place(debug, at);
            let source = place.and_then(|place| self.source(place)).unwrap_or(SourcePlace::NONE);
            let shown = (source, place.map(|place| place.inlined_at));
            // That of the prologue is separate: debuggers stop after it.
            if number > 1 && last == Some(shown) {
                continue;
            }
            last = Some(shown);
            let file = self.file(source.file);
            let program = &mut self.dwarf.unit.line_program;
            let row = program.row();
            row.address_offset = offset.into();
            row.file = file;
            row.line = source.line.into();
            row.column = source.column.into();
            row.prologue_end = number == 1;
            program.generate_row();
        }
        self.dwarf.unit.line_program.end_sequence(code.len() as u64);
    }

    /// The source place of a place in the bytecode.
    fn source(&self, place: &Place) -> Option<SourcePlace> {
        let defined = place.func.checked_sub(self.module.n_imported_funcs())?;
        self.module.module().funcs.get(defined as usize)?.place_at(place.offset)
    }

    fn file(&mut self, number: u32) -> FileId {
        let Some(name) = self.module.module().names.file(number).filter(|name| !name.is_empty())
        else {
            return self.own_file;
        };
        if let Some(&known) = self.files.get(&number) {
            return known;
        }
        let DwarfUnit { unit, line_strings, .. } = &mut self.dwarf;
        let name = LineString::new(c_string(name), ENCODING, line_strings);
        let dir = unit.line_program.default_directory();
        let file = unit.line_program.add_file(name, dir, None);
        self.files.insert(number, file);
        file
    }
}

/// The place with a number, unless it is code of no place.
fn place(debug: &DebugCode, at: PlaceId) -> Option<&Place> {
    debug.places.get(at.0 as usize)
}

/// The parts of the code with their places.
fn line_ranges(
    debug: &DebugCode,
    code: &Range<usize>,
) -> impl Iterator<Item = (Range<usize>, PlaceId)> {
    let starts = debug.lines.iter().map(|&(offset, at)| (code.start + offset as usize, at));
    let ends = debug.lines.iter().skip(1).map(|&(offset, _)| code.start + offset as usize);
    let ends = ends.chain(std::iter::once(code.end));
    starts.zip(ends).map(|((start, at), end)| (start..end, at))
}

fn expression(location: Location) -> Expression {
    let mut expression = Expression::new();
    match location {
        Location::Register(number) => expression.op_reg(Register(number)),
        Location::Frame(offset) => expression.op_fbreg(offset),
    }
    expression
}

/// The bytes of a text that ends with a zero, so cannot contain one.
pub(super) fn c_string(text: &str) -> Vec<u8> {
    text.replace('\0', " ").into_bytes()
}
