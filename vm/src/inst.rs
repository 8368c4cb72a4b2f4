//! Instructions: an opcode and its immediates, packed into 64 bits, and the reader and writer of
//! their binary form.
//!
//! All integers are LEB128 in its shortest form, so that a function has exactly one encoding; floats
//! are little-endian. A `br_table` is its number of labels without the default, the labels, the
//! default.

use std::fmt;

use crate::leb;
use crate::op::{ImmKind, Op};
use crate::types::ValType;

/// The immediates of an instruction, packed into 64 bits. How depends on [`Op::imm_kind`]; the IR and
/// the interpreter use the same packing.
///
/// | kind | bits 0..32 | bits 32..64 |
/// |---|---|---|
/// | `I32`, `F32` | the bits | 0 |
/// | `I64`, `F64` | the bits | |
/// | `Local`, `Global`, `Func`, `Label`, `Table`, `Elem`, `Memory`, `Data` | index | 0 |
/// | `RefType` | type code | 0 |
/// | `TypeTable` | type | table |
/// | `TableTable` | destination | source |
/// | `ElemTable` | segment | table |
/// | `MemoryMemory` | destination | source |
/// | `DataMemory` | segment | memory |
/// | `Mem` | offset | memory |
/// | `Indexed` | offset | memory, and the scale's logarithm in bits 62..64 |
/// | `Labels` | number of labels without the default | code offset of the first |
///
/// A constant's packing is therefore the cell that it pushes.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default)]
pub struct Imm(pub u64);

impl Imm {
    /// No immediates.
    pub const NONE: Imm = Imm(0);

    /// One index, or any value of 32 bits.
    pub const fn index(index: u32) -> Imm {
        Imm(index as u64)
    }

    /// Two indices.
    pub const fn pair(low: u32, high: u32) -> Imm {
        Imm(low as u64 | (high as u64) << 32)
    }

    /// A 32-bit constant.
    pub const fn i32(value: i32) -> Imm {
        Imm(value as u32 as u64)
    }

    /// A 64-bit constant.
    pub const fn i64(value: i64) -> Imm {
        Imm(value as u64)
    }

    /// A plain access of memory 0.
    pub const fn mem(offset: u32) -> Imm {
        Imm::index(offset)
    }

    /// An indexed access of memory 0; the index is scaled by `1 << scale_log2`.
    ///
    /// # Panics
    /// If `scale_log2` exceeds 3.
    pub const fn indexed(offset: u32, scale_log2: u32) -> Imm {
        assert!(scale_log2 <= 3, "the scale is 1, 2, 4 or 8");
        Imm(offset as u64 | (scale_log2 as u64) << 62)
    }

    /// A reference type.
    pub const fn ref_type(ty: ValType) -> Imm {
        Imm(ty.code() as u64)
    }

    /// Bits 0..32: an index, the first of two indices, or a static offset.
    pub const fn low(self) -> u32 {
        self.0 as u32
    }

    /// Bits 32..64: the second of two indices.
    pub const fn high(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The static offset of a plain or indexed access, in bytes.
    pub const fn offset(self) -> u32 {
        self.low()
    }

    /// The memory of a plain or indexed access.
    pub const fn memory(self) -> u32 {
        self.high() & 0x3fff_ffff
    }

    /// The logarithm of an indexed access's scale, 0 to 3.
    pub const fn scale_log2(self) -> u32 {
        (self.0 >> 62) as u32
    }

    /// The type of a `RefType` immediate.
    ///
    /// # Panics
    /// If the immediate is of another kind.
    pub fn as_ref_type(self) -> ValType {
        ValType::from_code(self.0 as u8).expect("a RefType immediate")
    }
}

impl fmt::Debug for Imm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// An instruction.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Inst {
    /// The opcode.
    pub op: Op,
    /// Its immediates.
    pub imm: Imm,
}

/// Why bytes are not an instruction. The offset is where the instruction starts.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InstError {
    /// The byte is no opcode.
    #[error("unknown opcode {0:#04x}")]
    UnknownOpcode(u8),
    /// The 128-bit vector operations are reserved, not implemented.
    #[error("v128 instructions are not supported by this version")]
    Vector,
    /// An integer is malformed or the code ends inside the instruction.
    #[error(transparent)]
    Leb(#[from] leb::LebError),
    /// A type code that is not a reference type.
    #[error("type code {0:#04x} is not a reference type")]
    RefType(u8),
    /// A scale other than 0 to 3.
    #[error("scale {0} is not a logarithm from 0 to 3")]
    Scale(u32),
    /// A memory index that the packing cannot hold.
    #[error("memory index {0} is too large")]
    Memory(u32),
}

/// Reads instructions from a function's code.
#[derive(Clone, Debug)]
pub struct CodeReader<'a> {
    code: &'a [u8],
    pos: usize,
}

impl<'a> CodeReader<'a> {
    /// A reader that starts at a code offset.
    pub fn new(code: &'a [u8], offset: u32) -> CodeReader<'a> {
        CodeReader { code, pos: offset as usize }
    }

    /// The code offset of the next instruction.
    pub fn offset(&self) -> u32 {
        self.pos as u32
    }

    /// Whether no instruction is left.
    pub fn is_at_end(&self) -> bool {
        self.pos >= self.code.len()
    }

    /// Reads one instruction.
    ///
    /// # Errors
    /// If the bytes are not an instruction; the reader's position is then unspecified.
    #[inline]
    pub fn read(&mut self) -> Result<Inst, InstError> {
        let byte = *self.code.get(self.pos).ok_or(leb::LebError::End)?;
        let op = match Op::from_byte(byte) {
            Some(op) => op,
            None if byte == crate::op::VECTOR_PREFIX => return Err(InstError::Vector),
            None => return Err(InstError::UnknownOpcode(byte)),
        };
        self.pos += 1;
        let imm = self.read_imm(op.imm_kind())?;
        Ok(Inst { op, imm })
    }

    #[inline]
    fn u32(&mut self) -> Result<u32, InstError> {
        Ok(leb::read_u32(self.code, &mut self.pos)?)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], InstError> {
        let bytes = self.code.get(self.pos..self.pos + N).ok_or(leb::LebError::End)?;
        self.pos += N;
        Ok(bytes.try_into().expect("the range has N bytes"))
    }

    fn read_imm(&mut self, kind: ImmKind) -> Result<Imm, InstError> {
        use ImmKind::*;
        Ok(match kind {
            None => Imm::NONE,
            I32 => Imm::i32(leb::read_i32(self.code, &mut self.pos)?),
            I64 => Imm::i64(leb::read_i64(self.code, &mut self.pos)?),
            F32 => Imm::index(u32::from_le_bytes(self.fixed()?)),
            F64 => Imm(u64::from_le_bytes(self.fixed()?)),
            Local | Global | Func | Label | Table | Elem | Memory | Data => Imm::index(self.u32()?),
            TypeTable | TableTable | ElemTable | MemoryMemory | DataMemory => {
                let low = self.u32()?;
                Imm::pair(low, self.u32()?)
            }
            RefType => {
                let [code] = self.fixed()?;
                match ValType::from_code(code) {
                    Some(ty) if ty.is_ref() => Imm::ref_type(ty),
                    _ => return Err(InstError::RefType(code)),
                }
            }
            Mem => {
                let memory = self.memory()?;
                Imm::pair(self.u32()?, memory)
            }
            Indexed => {
                let memory = self.memory()?;
                let scale = self.u32()?;
                if scale > 3 {
                    return Err(InstError::Scale(scale));
                }
                Imm(Imm::pair(self.u32()?, memory).0 | u64::from(scale) << 62)
            }
            Labels => {
                let n = self.u32()?;
                let first = self.offset();
                // The default too; each label has at least one byte, so this ends with the code.
                for _ in 0..=n {
                    self.u32()?;
                }
                Imm::pair(n, first)
            }
        })
    }

    fn memory(&mut self) -> Result<u32, InstError> {
        let memory = self.u32()?;
        if memory >= 1 << 30 { Err(InstError::Memory(memory)) } else { Ok(memory) }
    }
}

/// The labels of a `br_table` that was read from `code`: the indexed ones first, the default last.
///
/// # Panics
/// Iterating panics if `imm` was not read from `code`.
pub fn labels(code: &[u8], imm: Imm) -> impl ExactSizeIterator<Item = u32> + Clone + '_ {
    let mut pos = imm.high() as usize;
    (0..imm.low() as usize + 1)
        .map(move |_| leb::read_u32(code, &mut pos).expect("labels were read before"))
}

/// Appends the binary form of an instruction. A `br_table` is written by [`write_br_table`].
///
/// # Panics
/// If the instruction is a `br_table`.
pub fn write_inst(out: &mut Vec<u8>, op: Op, imm: Imm) {
    use ImmKind::*;
    out.push(op.byte());
    match op.imm_kind() {
        None => {}
        I32 => leb::write_i64(out, i64::from(imm.0 as u32 as i32)),
        I64 => leb::write_i64(out, imm.0 as i64),
        F32 => out.extend_from_slice(&imm.low().to_le_bytes()),
        F64 => out.extend_from_slice(&imm.0.to_le_bytes()),
        Local | Global | Func | Label | Table | Elem | Memory | Data => {
            leb::write_u32(out, imm.low());
        }
        TypeTable | TableTable | ElemTable | MemoryMemory | DataMemory => {
            leb::write_u32(out, imm.low());
            leb::write_u32(out, imm.high());
        }
        RefType => out.push(imm.0 as u8),
        Mem => {
            leb::write_u32(out, imm.memory());
            leb::write_u32(out, imm.offset());
        }
        Indexed => {
            leb::write_u32(out, imm.memory());
            leb::write_u32(out, imm.scale_log2());
            leb::write_u32(out, imm.offset());
        }
        Labels => panic!("write_br_table writes the labels of a br_table"),
    }
}

/// Appends the binary form of a `br_table` with these labels and this default.
pub fn write_br_table(out: &mut Vec<u8>, labels: &[u32], default: u32) {
    out.push(Op::BrTable.byte());
    leb::write_u32(out, labels.len() as u32);
    for &label in labels {
        leb::write_u32(out, label);
    }
    leb::write_u32(out, default);
}
