//! Source places from the line tables of DWARF, which compilers put into custom sections.
//!
//! Addresses are code offsets from the start of the code section's contents. Unreadable debugging information is
//! left out: it has no meaning for the program.

mod bytes;
mod files;
mod program;

use crate::module::SourcePlace;
use files::{FileNames, FileTable};

/// The sections that line tables are read from. Those that a module does not have are empty.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Sections<'b> {
    lines: &'b [u8],
    line_strings: &'b [u8],
    strings: &'b [u8],
}

impl<'b> Sections<'b> {
    /// Adds a custom section if it is one of these. Of several, the first one with contents counts.
    pub(super) fn add(&mut self, name: &str, contents: &'b [u8]) {
        let section = match name {
            ".debug_line" => &mut self.lines,
            ".debug_line_str" => &mut self.line_strings,
            ".debug_str" => &mut self.strings,
            _ => return,
        };
        if section.is_empty() {
            *section = contents;
        }
    }
}

/// Source places by offset in the module's bytes, in ascending order. Each entry applies to the instructions
/// from its offset on.
///
/// An entry has 16 bytes, and each byte of the section makes at most one. Offsets are below
/// [`MODULE_BYTES_MAX`](crate::limits::MODULE_BYTES_MAX).
#[derive(Debug, Default)]
pub(super) struct Lines(Vec<(u32, SourcePlace)>);

impl Lines {
    /// Reads the places of a module of `n_bytes` bytes, given its line tables and the start of the contents of its code
    /// section. Returns the files that they refer to, too, by number. There are none if the tables cannot be read.
    ///
    /// The units of `.debug_info` are not read, since any number of them may name the same program.
    pub(super) fn read(
        sections: Sections<'_>,
        code_start: u64,
        n_bytes: usize,
    ) -> (Lines, Vec<(u32, String)>) {
        let mut names = FileNames::new(sections);
        let mut rows = read_rows(sections.lines, &mut names, code_start, n_bytes as u64);
        rows.sort_by_key(|&(offset, _)| offset);
        (Lines(rows), names.into_list())
    }

    /// Returns a cursor behind the function that ends at an offset, or 0 for one before all functions.
    pub(super) fn cursor_behind(&self, end: u64) -> LineCursor<'_> {
        let n_passed = self.0.partition_point(|&(start, _)| u64::from(start) < end);
        LineCursor { rest: &self.0[n_passed..] }
    }
}

/// Returns the offsets and places of the rows within the module, in the order of the section.
fn read_rows<'b>(
    section: &'b [u8],
    names: &mut FileNames<'b>,
    code_start: u64,
    n_module_bytes: u64,
) -> Vec<(u32, SourcePlace)> {
    let mut rows: Vec<(u32, SourcePlace)> = Vec::new();
    for program in program::programs(section) {
        let mut files = FileTable::read(program.tables());
        let mut is_start = true;
        let mut is_dead = false;
        for row in program {
            // Linkers leave the tables of removed functions at address 0.
            if std::mem::replace(&mut is_start, row.end_sequence) {
                is_dead = row.address == 0;
            }
            let offset = row.address.checked_add(code_start);
            let offset = offset.filter(|&offset| !is_dead && offset < n_module_bytes);
            let Some(offset) = offset else { continue };
            let place = match u32::try_from(row.line).unwrap_or(0) {
                line if line != 0 && !row.end_sequence => SourcePlace {
                    file: names.number(&mut files, row.file),
                    line,
                    column: u32::try_from(row.column).unwrap_or(0),
                },
                _ => SourcePlace::NONE,
            };
            match rows.last_mut() {
                // Of several rows for one offset, the last one counts.
                Some(last) if u64::from(last.0) == offset => last.1 = place,
                _ => rows.push((offset as u32, place)),
            }
        }
    }
    rows
}

/// Follows the places while code is read in ascending order.
#[derive(Debug)]
pub(super) struct LineCursor<'l> {
    rest: &'l [(u32, SourcePlace)],
}

impl LineCursor<'_> {
    /// Returns the place of the instruction at an offset, if it may differ from that of the previous
    /// instruction.
    pub(super) fn at(&mut self, offset: u64) -> Option<SourcePlace> {
        let mut place = None;
        while let [(start, at_start), rest @ ..] = self.rest
            && u64::from(*start) <= offset
        {
            (place, self.rest) = (Some(*at_start), rest);
        }
        place
    }
}
