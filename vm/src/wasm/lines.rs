//! Source lines from the line tables of DWARF, which compilers put into custom sections.
//!
//! Addresses are code offsets from the start of the code section's contents. Only line numbers are
//! kept, since a line of our modules has no file. Debugging information that cannot be read is left
//! out: it has no meaning for the program.

use gimli::{Dwarf, EndianSlice, LittleEndian, SectionId};
use wasmparser::{Parser, Payload};

/// From an offset in the module's bytes on, instructions belong to a line; 0 is none. In ascending
/// order.
#[derive(Debug, Default)]
pub(super) struct Lines(Vec<(u64, u32)>);

impl Lines {
    /// The lines of a module, none if it does not say or cannot be read.
    pub(super) fn read(bytes: &[u8]) -> Lines {
        let mut sections = Vec::new();
        let mut code_start = 0;
        for payload in Parser::new(0).parse_all(bytes).map_while(Result::ok) {
            match payload {
                Payload::CodeSectionStart { unchecked_range, .. } => {
                    code_start = unchecked_range.start
                }
                Payload::CustomSection(section) if section.name().starts_with(".debug_") => {
                    sections.push((section.name(), section.data()));
                }
                _ => {}
            }
        }
        if sections.is_empty() {
            return Lines::default();
        }
        let section = |id: SectionId| -> Result<EndianSlice<'_, LittleEndian>, gimli::Error> {
            let found = sections.iter().find(|&&(name, _)| name == id.name());
            Ok(EndianSlice::new(found.map_or(&[], |&(_, data)| data), LittleEndian))
        };
        let mut rows = Vec::new();
        // The rows that were read before an error are right.
        let _ = Dwarf::load(section).and_then(|dwarf| read_rows(&dwarf, code_start, &mut rows));
        rows.sort_by_key(|&(offset, _)| offset);
        Lines(rows)
    }

    pub(super) fn cursor(&self) -> LineCursor<'_> {
        LineCursor { rest: &self.0 }
    }

    /// A cursor behind the instruction at an offset.
    pub(super) fn cursor_behind(&self, offset: u64) -> LineCursor<'_> {
        let n_passed = self.0.partition_point(|&(start, _)| start <= offset);
        LineCursor { rest: &self.0[n_passed..] }
    }
}

fn read_rows(
    dwarf: &Dwarf<EndianSlice<'_, LittleEndian>>,
    code_start: u64,
    rows: &mut Vec<(u64, u32)>,
) -> Result<(), gimli::Error> {
    let mut headers = dwarf.units();
    while let Some(header) = headers.next()? {
        let Some(program) = dwarf.unit(header)?.line_program else { continue };
        let mut program = program.rows();
        let mut is_start = true;
        let mut is_dead = false;
        while let Some((_, row)) = program.next_row()? {
            // Linkers leave the tables of functions that they removed at address 0.
            if std::mem::replace(&mut is_start, row.end_sequence()) {
                is_dead = row.address() == 0;
            }
            let offset = row.address().checked_add(code_start);
            let line = match row.end_sequence() {
                true => 0,
                false => row.line().map_or(0, |line| u32::try_from(line.get()).unwrap_or(0)),
            };
            if let Some(offset) = offset.filter(|_| !is_dead) {
                rows.push((offset, line));
            }
        }
    }
    Ok(())
}

/// Follows the lines as code is read in ascending order.
#[derive(Debug)]
pub(super) struct LineCursor<'l> {
    rest: &'l [(u64, u32)],
}

impl LineCursor<'_> {
    /// The line that the instruction at an offset belongs to, if it may be another than that of the
    /// instruction before.
    pub(super) fn at(&mut self, offset: u64) -> Option<u32> {
        let mut line = None;
        while let [(start, at_start), rest @ ..] = self.rest
            && *start <= offset
        {
            (line, self.rest) = (Some(*at_start), rest);
        }
        line
    }
}
