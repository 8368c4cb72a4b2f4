//! Line number programs of DWARF 2 to 5, sections 6.2.4 and 6.2.5 of the standard.
//!
//! [`programs`] walks the programs of a `.debug_line` section. It keeps only the registers that the address
//! and line of a row need. The tables of directories and files, whose stated sizes are arbitrary, are
//! skipped by means of the header's length. A row takes at least one byte of its program, and each byte is
//! read once.

/// A row of a line table.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) address: u64,
    pub(super) line: u64,
    /// Whether the address is the first one after a sequence, which belongs to no line.
    pub(super) end_sequence: bool,
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
        let mut contents = if is_64_bit {
            section.take(4)?;
            let length = section.number(8)?;
            section.take(length)?
        } else {
            let length = section.number(4)?;
            section.take(length)?
        };
        if let Some(program) = Program::new(&mut contents, is_64_bit) {
            return Some(program);
        }
    }
}

/// Bytes that are read from the front. Reads past the end return `None`.
#[derive(Copy, Clone)]
struct Bytes<'b>(&'b [u8]);

impl<'b> Bytes<'b> {
    fn take(&mut self, n: u64) -> Option<Bytes<'b>> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(n).ok()?)?;
        self.0 = rest;
        Some(Bytes(taken))
    }

    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    /// Reads a little-endian integer of up to eight bytes.
    fn number(&mut self, n_bytes: u64) -> Option<u64> {
        let bytes = self.take(n_bytes)?.0;
        Some(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    fn peek_u32(mut self) -> Option<u32> {
        Some(self.number(4)? as u32)
    }

    /// Reads an unsigned LEB128. Bits beyond the 64th are an error.
    fn unsigned(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// Reads a signed LEB128. Bits beyond the 64th must repeat the sign.
    fn signed(&mut self) -> Option<i64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            if shift == 63 && byte != 0 && byte != 0x7f {
                return None;
            }
            number |= i64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                let n_unused = 64_u32.saturating_sub(shift + 7);
                return Some(number << n_unused >> n_unused);
            }
        }
        None
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
    code: Bytes<'b>,
    address: u64,
    op_index: u64,
    line: u64,
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
    fn new(contents: &mut Bytes<'b>, is_64_bit: bool) -> Option<Program<'b>> {
        let version = contents.number(2)?;
        if !(2..=5).contains(&version) {
            return None;
        }
        if version == 5 {
            // Skip the sizes of addresses and of segment selectors.
            contents.take(2)?;
        }
        let header_length = contents.number(if is_64_bit { 8 } else { 4 })?;
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
            code: *contents,
            address: 0,
            op_index: 0,
            line: 1,
            is_removed: false,
        })
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
            // DW_LNS_set_file, DW_LNS_set_column and DW_LNS_set_isa have one operand, even if the header
            // says otherwise.
            4 | 5 | 12 => drop(self.code.unsigned()?),
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
                let row = Row { address: self.address, line: self.line, end_sequence: true };
                let is_removed = std::mem::replace(&mut self.is_removed, false);
                (self.address, self.op_index, self.line) = (0, 0, 1);
                return Some((!is_removed).then_some(row));
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
            _ => {}
        }
        Some(None)
    }

    fn row(&self) -> Option<Row> {
        let row = Row { address: self.address, line: self.line, end_sequence: false };
        (!self.is_removed).then_some(row)
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
