//! Line number programs of DWARF 2 to 5, sections 6.2.4 and 6.2.5 of the standard.
//!
//! [`programs`] walks the programs of a `.debug_line` section. It keeps only the registers that the address
//! and place of a row need. The tables of directories and files, whose stated sizes are arbitrary, are
//! skipped by means of the header's length; `files` reads them. A row takes at least one byte of its program, and
//! each byte is read once.

use super::bytes::Bytes;

/// A row of a line table.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) address: u64,
    /// The number of the file in the header's table.
    pub(super) file: u64,
    pub(super) line: u64,
    pub(super) column: u64,
    /// Whether the address is the first one after a sequence, which belongs to no line.
    pub(super) end_sequence: bool,
}

/// The tables of directories and files in a header, which are not read yet.
#[derive(Copy, Clone, Debug)]
pub(super) struct Tables<'b> {
    pub(super) version: u64,
    /// The bytes of offsets into other sections.
    pub(super) offset_bytes: u64,
    pub(super) bytes: Bytes<'b>,
}

/// Returns the programs of a `.debug_line` section.
pub(super) fn programs(section: &[u8]) -> impl Iterator<Item = Program<'_>> {
    let mut bytes = Bytes(section);
    std::iter::from_fn(move || next_program(&mut bytes))
}

/// Returns the next program of a known version in a section, or `None` at the end or if a length is
/// invalid.
fn next_program<'b>(section: &mut Bytes<'b>) -> Option<Program<'b>> {
    loop {
        let is_64_bit = section.peek_u32()? == u32::MAX;
        if is_64_bit {
            section.take(4)?;
        }
        let offset_bytes = if is_64_bit { 8 } else { 4 };
        let length = section.number(offset_bytes)?;
        let mut contents = section.take(length)?;
        if let Some(program) = Program::new(&mut contents, offset_bytes) {
            return Some(program);
        }
    }
}

/// A program and the registers of the machine that runs it. Iterates over its rows, up to the first error.
pub(super) struct Program<'b> {
    min_inst_length: u64,
    max_ops_per_inst: u64,
    line_base: i64,
    line_range: u8,
    opcode_base: u8,
    /// The number of operands of each standard opcode, to skip opcodes of later versions.
    operand_counts: Bytes<'b>,
    tables: Tables<'b>,
    code: Bytes<'b>,
    address: u64,
    op_index: u64,
    file: u64,
    line: u64,
    column: u64,
    /// Whether the linker removed the code at these addresses; removed code has no rows.
    is_removed: bool,
}

impl Iterator for Program<'_> {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        loop {
            match self.step() {
                Some(None) => {}
                Some(row) => return row,
                None => {
                    self.code = Bytes(&[]);
                    return None;
                }
            }
        }
    }
}

impl<'b> Program<'b> {
    /// Reads the header at the start of a program. Returns `None` if its version is unknown or a field is
    /// invalid.
    fn new(contents: &mut Bytes<'b>, offset_bytes: u64) -> Option<Program<'b>> {
        let version = contents.number(2)?;
        if !(2..=5).contains(&version) {
            return None;
        }
        if version == 5 {
            // Skip the sizes of addresses and of segment selectors.
            contents.take(2)?;
        }
        let header_length = contents.number(offset_bytes)?;
        let mut header = contents.take(header_length)?;
        let min_inst_length = u64::from(header.byte()?);
        let max_ops_per_inst = if version >= 4 { u64::from(header.byte()?) } else { 1 };
        let _default_is_stmt = header.byte()?;
        let line_base = i64::from(header.byte()? as i8);
        let (line_range, opcode_base) = (header.byte()?, header.byte()?);
        if max_ops_per_inst == 0 || line_range == 0 || opcode_base == 0 {
            return None;
        }
        let operand_counts = header.take(u64::from(opcode_base) - 1)?;
        Some(Program {
            min_inst_length,
            max_ops_per_inst,
            line_base,
            line_range,
            opcode_base,
            operand_counts,
            tables: Tables { version, offset_bytes, bytes: header },
            code: *contents,
            address: 0,
            op_index: 0,
            file: 1,
            line: 1,
            column: 0,
            is_removed: false,
        })
    }

    pub(super) fn tables(&self) -> Tables<'b> {
        self.tables
    }

    /// Executes an instruction, which may produce a row. Returns `None` at the end and after an error.
    fn step(&mut self) -> Option<Option<Row>> {
        let opcode = self.code.byte()?;
        if opcode >= self.opcode_base {
            let adjusted = opcode - self.opcode_base;
            self.advance_line(self.line_base + i64::from(adjusted % self.line_range));
            self.advance_pc(u64::from(adjusted / self.line_range))?;
            return Some(self.row());
        }
        match opcode {
            0 => return self.extended(),
            // DW_LNS_copy
            1 => return Some(self.row()),
            // DW_LNS_advance_pc
            2 => {
                let n_ops = self.code.unsigned()?;
                self.advance_pc(n_ops)?;
            }
            // DW_LNS_advance_line
            3 => {
                let n_lines = self.code.signed()?;
                self.advance_line(n_lines);
            }
            // DW_LNS_set_file, DW_LNS_set_column and DW_LNS_set_isa have one operand, even if the header
            // says otherwise.
            4 => self.file = self.code.unsigned()?,
            5 => self.column = self.code.unsigned()?,
            12 => drop(self.code.unsigned()?),
            // DW_LNS_const_add_pc
            8 => self.advance_pc(u64::from((255 - self.opcode_base) / self.line_range))?,
            // DW_LNS_fixed_advance_pc
            9 => {
                let n_bytes = self.code.number(2)?;
                if !self.is_removed {
                    self.address = self.address.checked_add(n_bytes)?;
                    self.op_index = 0;
                }
            }
            // DW_LNS_negate_stmt, set_basic_block, set_prologue_end and set_epilogue_begin have none.
            6 | 7 | 10 | 11 => {}
            unknown => {
                for _ in 0..self.operand_counts.0[usize::from(unknown) - 1] {
                    self.code.unsigned()?;
                }
            }
        }
        Some(None)
    }

    fn extended(&mut self) -> Option<Option<Row>> {
        let length = self.code.unsigned()?;
        let mut inst = self.code.take(length)?;
        match inst.byte()? {
            // DW_LNE_end_sequence
            1 => {
                let row = self.row().map(|row| Row { end_sequence: true, ..row });
                (self.address, self.op_index) = (0, 0);
                (self.file, self.line, self.column) = (1, 1, 0);
                self.is_removed = false;
                return Some(row);
            }
            // DW_LNE_set_address
            2 => {
                let n_bytes = inst.0.len() as u64;
                if !matches!(n_bytes, 1 | 2 | 4 | 8) {
                    return None;
                }
                let address = inst.number(n_bytes)?;
                // Within a sequence addresses ascend; linkers write 0 or -1 for code that they remove.
                self.is_removed = address < self.address;
                if !self.is_removed {
                    (self.address, self.op_index) = (address, 0);
                }
            }
            // DW_LNE_define_file, which version 5 has no more, included: such files are unknown.
            _ => {}
        }
        Some(None)
    }

    fn row(&self) -> Option<Row> {
        let Program { address, file, line, column, .. } = *self;
        (!self.is_removed).then_some(Row { address, file, line, column, end_sequence: false })
    }

    fn advance_line(&mut self, n_lines: i64) {
        self.line = match u64::try_from(n_lines) {
            Ok(n_lines) => self.line.wrapping_add(n_lines),
            Err(_) => self.line.saturating_sub(n_lines.unsigned_abs()),
        };
    }

    /// Advances by a number of operations. Returns `None` if that leaves the address space.
    fn advance_pc(&mut self, n_ops: u64) -> Option<()> {
        if self.is_removed {
            return Some(());
        }
        let n_ops = self.op_index.checked_add(n_ops)?;
        self.op_index = n_ops % self.max_ops_per_inst;
        let n_bytes = self.min_inst_length.checked_mul(n_ops / self.max_ops_per_inst)?;
        self.address = self.address.checked_add(n_bytes)?;
        Some(())
    }
}

#[cfg(test)]
mod tests;
