//! Facts about the code of functions that concern the whole module.

use crate::inst::Imm;
use crate::op::{ImmKind, Op};

/// What has been found in functions.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Whether any function has an indexed access.
    pub(super) uses_indexed: bool,
    /// Whether any function has a SIMD instruction.
    pub(super) uses_vectors: bool,
    /// The functions that `ref.func` refers to, with repetitions.
    pub(super) referenced_funcs: Vec<u32>,
    /// The tables that an instruction writes, with repetitions.
    pub(super) written_tables: Vec<u32>,
}

impl Found {
    /// Notes an instruction.
    #[inline]
    pub(crate) fn note(&mut self, op: Op, imm: Imm) {
        self.uses_vectors |= op.is_vector();
        match op {
            Op::RefFunc => self.referenced_funcs.push(imm.low()),
            Op::TableSet | Op::TableGrow | Op::TableFill | Op::TableCopy => {
                self.written_tables.push(imm.low());
            }
            Op::TableInit => self.written_tables.push(imm.high()),
            _ => self.uses_indexed |= op.imm_kind() == ImmKind::Indexed,
        }
    }

    /// Adds what was found in other functions.
    pub(crate) fn add(&mut self, other: Found) {
        self.uses_indexed |= other.uses_indexed;
        self.uses_vectors |= other.uses_vectors;
        self.referenced_funcs.extend(other.referenced_funcs);
        self.written_tables.extend(other.written_tables);
    }
}
