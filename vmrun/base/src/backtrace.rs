//! Backtraces of traps and of errors of host functions, with the files of the source.
//!
//! Modules may name the files of their source. For other lines the files are looked up when there is an error: an assembler
//! text is its own source, and WebAssembly may have DWARF. A line of a function that belongs to several files has none here.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::Path;

use gimli::{DwarfSections, EndianSlice, LittleEndian, Reader, Unit};
use slotvm::{Backtrace, Frame};
use slotvm_bytecode::printable::Printable;
use wasmparser::{Parser, Payload, TypeRef};

use crate::load::{is_standard, load_bytes, read};
use slotvm_views::names::demangled;

/// Lines of functions, by the number of the function.
type Lines = HashSet<(u32, u32)>;
/// The files of lines of functions.
type Files = HashMap<(u32, u32), String>;

/// The message of an error, and a line for each frame, `at name (offset 0x000c, file.c:12)`.
pub fn text(message: &str, backtrace: &Backtrace, program: &Path) -> String {
    if backtrace.frames().is_empty() {
        return message.to_owned();
    }
    let without_file = backtrace.frames().iter().filter(|frame| frame.file().is_none());
    let lines: Lines = without_file.filter_map(|frame| Some((frame.func, frame.line()?))).collect();
    let files = if lines.is_empty() { Files::new() } else { files(program, &lines) };
    format!("{message}\n{}", backtrace.display_with(|frame| frame_text(frame, &files)))
}

fn frame_text(frame: &Frame, files: &Files) -> String {
    let module = frame.module_name().map_or(String::new(), |name| format!("{}!", Printable(name)));
    let name = frame.func_name();
    let place = match frame.place() {
        Some(place) => {
            let found = || files.get(&(frame.func, place.line)).map(String::as_str);
            match frame.file().or_else(found) {
                Some(file) => format!(", {}:{place}", Printable(file)),
                None => format!(", line {place}"),
            }
        }
        None => String::new(),
    };
    format!("{module}{} (offset {:#06x}{place})", Printable(&demangled(&name)), frame.offset)
}

/// The files of some lines of a program.
fn files(program: &Path, lines: &Lines) -> Files {
    of_text(program, lines).or_else(|| of_dwarf(program, lines)).unwrap_or_default()
}

/// An assembler text is the file of all lines, unless it names the lines of another source.
fn of_text(program: &Path, lines: &Lines) -> Option<Files> {
    let bytes = read(program).ok()?;
    let text = str::from_utf8(&bytes).ok()?;
    let is_wat = program.extension().is_some_and(|extension| extension == "wat");
    if text.starts_with('\0') || is_wat || is_standard(program) || text.contains(".line") {
        return None;
    }
    let file = program.display().to_string();
    Some(lines.iter().map(|&line| (line, file.clone())).collect())
}

/// The code of a WebAssembly module and its debugging information.
struct Debugged<'b> {
    /// The number of imported functions.
    n_imported: u32,
    code_start: u64,
    /// The bytes of each function that the module defines, in ascending order.
    bodies: Vec<Range<u64>>,
    sections: HashMap<&'b str, &'b [u8]>,
}

impl<'b> Debugged<'b> {
    fn read(bytes: &'b [u8]) -> Option<Debugged<'b>> {
        let mut debugged =
            Debugged { n_imported: 0, code_start: 0, bodies: Vec::new(), sections: HashMap::new() };
        for payload in Parser::new(0).parse_all(bytes) {
            match payload.ok()? {
                Payload::ImportSection(imports) => {
                    let imports = imports.into_imports().map_while(Result::ok);
                    let funcs = imports.filter(|import| matches!(import.ty, TypeRef::Func(_)));
                    debugged.n_imported = funcs.count() as u32;
                }
                Payload::CodeSectionStart { unchecked_range, .. } => {
                    debugged.code_start = unchecked_range.start;
                }
                Payload::CodeSectionEntry(body) => debugged.bodies.push(body.range()),
                Payload::CustomSection(section) if section.name().starts_with(".debug_") => {
                    debugged.sections.insert(section.name(), section.data());
                }
                _ => {}
            }
        }
        Some(debugged)
    }

    /// The function whose code is at an address of DWARF, which counts from the start of the code section.
    fn func_at(&self, address: u64) -> Option<u32> {
        let offset = address.checked_add(self.code_start)?;
        let after = self.bodies.partition_point(|body| body.start <= offset);
        let index = after.checked_sub(1)?;
        self.bodies[index].contains(&offset).then(|| self.n_imported + index as u32)
    }
}

fn of_dwarf(program: &Path, lines: &Lines) -> Option<Files> {
    let bytes = load_bytes(program).ok()?;
    let debugged = Debugged::read(&bytes)?;
    let section = |id: gimli::SectionId| {
        let bytes = debugged.sections.get(id.name()).copied().unwrap_or_default();
        Ok::<_, gimli::Error>(EndianSlice::new(bytes, LittleEndian))
    };
    let sections = DwarfSections::load(section).ok()?;
    let dwarf = sections.borrow(|section| *section);
    // Any number of units may have the same line table.
    let mut tables = HashSet::new();
    let mut found: HashMap<(u32, u32), Option<String>> = HashMap::new();
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        let Ok(unit) = dwarf.unit(header) else { continue };
        let Some(program) = unit.line_program.clone() else { continue };
        if !tables.insert(program.header().offset().0) {
            continue;
        }
        let mut rows = program.rows();
        while let Ok(Some((header, row))) = rows.next_row() {
            let line = row.line().and_then(|line| u32::try_from(line.get()).ok());
            let key = debugged.func_at(row.address()).zip(line);
            let Some(key) = key.filter(|key| !row.end_sequence() && lines.contains(key)) else {
                continue;
            };
            let file = row.file(header).and_then(|file| file_name(&dwarf, &unit, header, file));
            let known = found.entry(key).or_insert_with(|| file.clone());
            if *known != file {
                *known = None;
            }
        }
    }
    Some(found.into_iter().filter_map(|(key, file)| Some((key, file?))).collect())
}

fn file_name<R: Reader>(
    dwarf: &gimli::Dwarf<R>,
    unit: &Unit<R>,
    header: &gimli::LineProgramHeader<R>,
    file: &gimli::FileEntry<R>,
) -> Option<String> {
    let text = |value| -> Option<String> {
        Some(dwarf.attr_string(unit, value).ok()?.to_string_lossy().ok()?.into_owned())
    };
    let name = text(file.path_name())?;
    let directory = file.directory(header).and_then(text).filter(|directory| !directory.is_empty());
    Some(match directory {
        Some(directory) if !name.starts_with('/') => format!("{directory}/{name}"),
        _ => name,
    })
}

#[cfg(all(test, feature = "wat"))]
mod tests {
    use std::fs;

    use gimli::write::{Address, DwarfUnit, EndianVec, LineProgram, LineString, Sections};
    use gimli::{Encoding, Format, LineEncoding};

    use super::*;

    /// A module of two functions with this line table: for each row an address from the start of the code section, a
    /// file and a line.
    fn module(rows: &[(u64, &str, u64)]) -> Vec<u8> {
        let mut module = wat::parse_str("(module (func nop nop nop) (func nop nop nop))").unwrap();
        let encoding = Encoding { format: Format::Dwarf32, version: 4, address_size: 4 };
        let mut dwarf = DwarfUnit::new(encoding);
        let text = |text: &str| LineString::String(text.into());
        let (directory, name) = (text("/work"), text("main.c"));
        let mut lines =
            LineProgram::new(encoding, LineEncoding::default(), directory, None, name, None);
        let source = lines.add_directory(text("/src"));
        lines.begin_sequence(Some(Address::Constant(0)));
        for &(address, file, line) in rows {
            lines.row().address_offset = address;
            lines.row().file = lines.add_file(text(file), source, None);
            lines.row().line = line;
            lines.generate_row();
        }
        lines.end_sequence(100);
        dwarf.unit.line_program = lines;
        let mut sections = Sections::new(EndianVec::new(LittleEndian));
        dwarf.write(&mut sections).unwrap();
        sections
            .for_each(|id, data| {
                let (name, data) = (id.name().as_bytes(), data.slice());
                let len = 5 + name.len() + data.len();
                let leb = |n: usize| {
                    [
                        n & 127 | 128,
                        n >> 7 & 127 | 128,
                        n >> 14 & 127 | 128,
                        n >> 21 & 127 | 128,
                        n >> 28,
                    ]
                    .map(|byte| byte as u8)
                };
                module.push(0);
                module.extend(leb(len));
                module.extend(leb(name.len()));
                module.extend(name);
                module.extend(data);
                gimli::write::Result::Ok(())
            })
            .unwrap();
        module
    }

    #[test]
    fn a_line_has_a_file_if_it_is_of_one_in_its_function() {
        // The section is `2, 5, 0, nop, nop, nop, end, 5, …`.
        let rows = [
            (3, "a.c", 10),
            (4, "header.h", 11),
            (5, "a.c", 11),
            (9, "/abs/b.c", 10),
            (10, "b.c", 12),
        ];
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("p.wasm");
        fs::write(&program, module(&rows)).unwrap();
        let lines = Lines::from([(0, 10), (0, 11), (0, 12), (1, 10), (1, 12), (7, 10)]);
        let files = files(&program, &lines);
        let of = |func, line| files.get(&(func, line)).map(String::as_str);
        assert_eq!(of(0, 10), Some("/src/a.c"));
        assert_eq!(of(0, 11), None, "two files have this line");
        assert_eq!(of(1, 10), Some("/abs/b.c"));
        assert_eq!(of(1, 12), Some("/src/b.c"));
        assert_eq!((of(0, 12), of(7, 10)), (None, None));
    }
}
