//! Source lines from the line tables of DWARF, which compilers put into custom sections.
//!
//! Addresses are code offsets from the start of the code section's contents. Only line numbers are kept,
//! since lines of our modules have no file. Unreadable debugging information is left out: it has no meaning
//! for the program.

mod program;

/// Source lines by offset in the module's bytes, in ascending order. Each entry applies to the instructions
/// from its offset on; line 0 means "no line".
///
/// An entry has 8 bytes, and each byte of the section makes at most one. Offsets are below
/// [`MODULE_BYTES_MAX`](crate::limits::MODULE_BYTES_MAX).
#[derive(Debug, Default)]
pub(super) struct Lines(Vec<(u32, u32)>);

impl Lines {
    /// Reads the lines of a module of `n_bytes` bytes, given its line table and the start of the contents of its code
    /// section. There are none if the table cannot be read.
    ///
    /// The units of `.debug_info` are not read, since any number of them may name the same program.
    pub(super) fn read(table: &[u8], code_start: u64, n_bytes: usize) -> Lines {
        let mut rows = read_rows(table, code_start, n_bytes as u64);
        rows.sort_by_key(|&(offset, _)| offset);
        Lines(rows)
    }

    /// Returns a cursor behind the function that ends at an offset, or 0 for one before all functions.
    pub(super) fn cursor_behind(&self, end: u64) -> LineCursor<'_> {
        let n_passed = self.0.partition_point(|&(start, _)| u64::from(start) < end);
        LineCursor { rest: &self.0[n_passed..] }
    }
}

/// Returns the offsets and lines of the rows within the module, in the order of the section.
fn read_rows(section: &[u8], code_start: u64, n_module_bytes: u64) -> Vec<(u32, u32)> {
    let mut rows: Vec<(u32, u32)> = Vec::new();
    for program in program::programs(section) {
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
            let line = if row.end_sequence { 0 } else { u32::try_from(row.line).unwrap_or(0) };
            match rows.last_mut() {
                // Of several rows for one offset, the last one counts.
                Some(last) if u64::from(last.0) == offset => last.1 = line,
                _ => rows.push((offset as u32, line)),
            }
        }
    }
    rows
}

/// Follows the lines while code is read in ascending order.
#[derive(Debug)]
pub(super) struct LineCursor<'l> {
    rest: &'l [(u32, u32)],
}

impl LineCursor<'_> {
    /// Returns the line of the instruction at an offset, if it may differ from that of the previous
    /// instruction.
    pub(super) fn at(&mut self, offset: u64) -> Option<u32> {
        let mut line = None;
        while let [(start, at_start), rest @ ..] = self.rest
            && u64::from(*start) <= offset
        {
            (line, self.rest) = (Some(*at_start), rest);
        }
        line
    }
}
