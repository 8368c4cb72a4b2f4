//! Instructions, their packed immediates, and the reader and writer of their binary form.
//!
//! All integers are LEB128 in its shortest form, so a function has exactly one encoding. Floats are
//! little-endian. A `br_table` is encoded as its number of labels without the default, the labels, and the
//! default.

use std::fmt;

use crate::leb;
use crate::op::{ImmKind, Op, PAIR_PREFIX, VECTOR_PREFIX};
use crate::types::ValType;

/// The immediates of an instruction, packed into 64 bits. The packing depends on [`Op::imm_kind`]; the IR and
/// the interpreter use the same one.
///
/// | kind | bits 0..32 | bits 32..64 |
/// |---|---|---|
/// | `I32`, `F32` | the bits | 0 |
/// | `I64`, `F64` | the bits | |
/// | `Number` | the number | 0 |
/// | `Local`, `Global`, `Func`, `Label`, `Table`, `Elem`, `Memory`, `Data` | index | 0 |
/// | `LabelCount` | label | number of operands |
/// | `RefType` | type code | 0 |
/// | `TypeTable` | type | table |
/// | `TableTable` | destination | source |
/// | `ElemTable` | segment | table |
/// | `MemoryMemory` | destination | source |
/// | `DataMemory` | segment | memory |
/// | `Mem` | offset | memory |
/// | `Indexed` | offset | memory, and the scale's logarithm in bits 62..64 |
/// | `MemLane` | offset | memory, and the lane in bits 58..62 |
/// | `Lane` | lane | 0 |
/// | `V128`, `Lanes` | code offset of the 16 bytes | 0 |
/// | `Labels` | number of labels without the default | code offset of the first |
///
/// A constant of one cell is thus packed as the cell that it pushes. The 16 bytes of a vector or shuffle do
/// not fit. In code, [`vector`] reads them at their offset; in the IR, the immediate is their index in a list
/// of the function.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default)]
pub struct Imm(pub u64);

/// The end of the memory indices that a packed access can hold.
pub(crate) const MEMORY_END: u32 = 1 << 25;

impl Imm {
    /// No immediates.
    pub const NONE: Imm = Imm(0);

    /// One index, or any 32-bit value.
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
    /// Panics if `scale_log2` exceeds 3.
    pub const fn indexed(offset: u32, scale_log2: u32) -> Imm {
        assert!(scale_log2 <= 3, "the scale is 1, 2, 4 or 8");
        Imm(offset as u64 | (scale_log2 as u64) << 62)
    }

    /// A lane of a vector.
    pub const fn lane(lane: u32) -> Imm {
        Imm::index(lane)
    }

    /// An access of a lane of a vector in memory 0.
    ///
    /// # Panics
    /// Panics if the lane exceeds 15.
    pub const fn mem_lane(offset: u32, lane: u32) -> Imm {
        assert!(lane <= 15, "a vector has 16 lanes at most");
        Imm(offset as u64 | (lane as u64) << 58)
    }

    /// The lane of a lane access.
    pub const fn access_lane(self) -> u32 {
        (self.0 >> 58) as u32 & 15
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

    /// The memory of an access.
    pub const fn memory(self) -> u32 {
        self.high() & (MEMORY_END - 1)
    }

    /// The logarithm of an indexed access's scale, 0 to 3.
    pub const fn scale_log2(self) -> u32 {
        (self.0 >> 62) as u32
    }

    /// The type of a `RefType` immediate.
    ///
    /// # Panics
    /// Panics if the immediate is of another kind.
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

/// Error for bytes that are not an instruction. The offset is the start of the instruction.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InstError {
    /// The byte is not an opcode.
    #[error("unknown opcode {0:#04x}")]
    UnknownOpcode(u8),
    /// The byte after `0xfc` or `0xfd` is not the second byte of an opcode.
    #[error("unknown opcode {0:#04x} {1:#04x}")]
    UnknownTwoByteOpcode(u8, u8),
    /// A lane index out of range.
    #[error("lane {0} out of range; expected less than {1}")]
    Lane(u32, u32),
    /// An integer is malformed or the code ends inside the instruction.
    #[error(transparent)]
    Leb(#[from] leb::LebError),
    /// A type code that is not a reference type.
    #[error("unknown reference type code {0:#04x}")]
    RefType(u8),
    /// A scale other than 0 to 3.
    #[error("invalid scale logarithm {0}; expected 0 to 3")]
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

    /// Returns the code offset of the next instruction.
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
    /// Fails if the bytes are not an instruction; the reader's position is then unspecified.
    #[inline]
    pub fn read(&mut self) -> Result<Inst, InstError> {
        let byte = *self.code.get(self.pos).ok_or(leb::LebError::End)?;
        self.pos += 1;
        let op = match Op::from_byte(byte) {
            Some(op) => op,
            None if byte == VECTOR_PREFIX => return self.read_vector_inst(),
            None if byte == PAIR_PREFIX => return self.read_pair_inst(),
            None => return Err(InstError::UnknownOpcode(byte)),
        };
        let imm = self.read_imm(op.imm_kind())?;
        Ok(Inst { op, imm })
    }

    /// Reads the instruction after [`PAIR_PREFIX`].
    fn read_pair_inst(&mut self) -> Result<Inst, InstError> {
        let [byte] = self.fixed()?;
        let op = Op::from_two_bytes(PAIR_PREFIX, byte)
            .ok_or(InstError::UnknownTwoByteOpcode(PAIR_PREFIX, byte))?;
        Ok(Inst { op, imm: self.read_imm(op.imm_kind())? })
    }

    /// Reads the instruction after [`VECTOR_PREFIX`].
    #[inline(never)]
    fn read_vector_inst(&mut self) -> Result<Inst, InstError> {
        let [byte] = self.fixed()?;
        let op = Op::from_two_bytes(VECTOR_PREFIX, byte)
            .ok_or(InstError::UnknownTwoByteOpcode(VECTOR_PREFIX, byte))?;
        let imm = match op.imm_kind() {
            ImmKind::V128 | ImmKind::Lanes => {
                let imm = Imm::index(self.offset());
                let bytes = self.fixed::<16>()?;
                if op.imm_kind() == ImmKind::Lanes {
                    bytes.iter().try_for_each(|&lane| check_lane(op, lane.into()))?;
                }
                imm
            }
            ImmKind::Lane => {
                let [lane] = self.fixed()?;
                check_lane(op, lane.into())?;
                Imm::lane(lane.into())
            }
            ImmKind::MemLane => {
                let memory = self.memory()?;
                let offset = self.u32()?;
                let [lane] = self.fixed()?;
                check_lane(op, lane.into())?;
                Imm(Imm::mem_lane(offset, lane.into()).0 | Imm::pair(0, memory).0)
            }
            kind => self.read_imm(kind)?,
        };
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
            Number | Local | Global | Func | Label | Table | Elem | Memory | Data => {
                Imm::index(self.u32()?)
            }
            LabelCount | TypeTable | TableTable | ElemTable | MemoryMemory | DataMemory => {
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
                // This includes the default. Each label has at least one byte, so the loop ends with the
                // code.
                for _ in 0..=n {
                    self.u32()?;
                }
                Imm::pair(n, first)
            }
            V128 | Lanes | Lane | MemLane => unreachable!("only SIMD instructions have these"),
        })
    }

    fn memory(&mut self) -> Result<u32, InstError> {
        let memory = self.u32()?;
        if memory >= MEMORY_END { Err(InstError::Memory(memory)) } else { Ok(memory) }
    }
}

/// Returns the labels of a `br_table` that was read from `code`: the indexed ones first, the default last.
///
/// # Panics
/// Iterating panics if `imm` was not read from `code`.
pub fn labels(code: &[u8], imm: Imm) -> impl ExactSizeIterator<Item = u32> + Clone + '_ {
    let mut pos = imm.high() as usize;
    (0..imm.low() as usize + 1)
        .map(move |_| leb::read_u32(code, &mut pos).expect("labels were read before"))
}

/// Returns the 16 bytes of a `v128.const` or `i8x16.shuffle` that was read from `code`, as a little-endian
/// number.
///
/// # Panics
/// Panics if `imm` was not read from `code`.
pub fn vector(code: &[u8], imm: Imm) -> u128 {
    let bytes = code[imm.low() as usize..].first_chunk().expect("the vector was read before");
    u128::from_le_bytes(*bytes)
}

/// Checks the lane index of an instruction.
///
/// # Errors
/// Fails if it is out of range.
///
/// # Panics
/// Panics if the instruction has no lane index.
pub fn check_lane(op: Op, lane: u32) -> Result<(), InstError> {
    let n = op.n_lanes().expect("the instruction has a lane index");
    if lane < n { Ok(()) } else { Err(InstError::Lane(lane, n)) }
}

/// Appends the binary form of an instruction, except a `br_table` ([`write_br_table`]) and instructions with
/// the 16 bytes of a vector ([`write_vector`]).
///
/// # Panics
/// Panics on these exceptions.
pub fn write_inst(out: &mut Vec<u8>, op: Op, imm: Imm) {
    use ImmKind::*;
    write_op(out, op);
    match op.imm_kind() {
        None => {}
        I32 => leb::write_i64(out, i64::from(imm.0 as u32 as i32)),
        I64 => leb::write_i64(out, imm.0 as i64),
        F32 => out.extend_from_slice(&imm.low().to_le_bytes()),
        F64 => out.extend_from_slice(&imm.0.to_le_bytes()),
        Number | Local | Global | Func | Label | Table | Elem | Memory | Data => {
            leb::write_u32(out, imm.low());
        }
        LabelCount | TypeTable | TableTable | ElemTable | MemoryMemory | DataMemory => {
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
        Lane => out.push(imm.low() as u8),
        MemLane => {
            leb::write_u32(out, imm.memory());
            leb::write_u32(out, imm.offset());
            out.push(imm.access_lane() as u8);
        }
        V128 | Lanes => panic!("write_vector writes the bytes of a vector"),
        Labels => panic!("write_br_table writes the labels of a br_table"),
    }
}

/// Appends the binary form of a `v128.const` or `i8x16.shuffle` with its 16 bytes, as a little-endian number.
pub fn write_vector(out: &mut Vec<u8>, op: Op, bytes: u128) {
    debug_assert!(matches!(op.imm_kind(), ImmKind::V128 | ImmKind::Lanes));
    write_op(out, op);
    out.extend_from_slice(&bytes.to_le_bytes());
}

/// Appends the encoding of an opcode.
pub(crate) fn write_op(out: &mut Vec<u8>, op: Op) {
    match op.code().to_be_bytes() {
        [0, byte] => out.push(byte),
        bytes => out.extend_from_slice(&bytes),
    }
}

/// Appends the binary form of a `br_table` with these labels and this default.
pub fn write_br_table(out: &mut Vec<u8>, labels: &[u32], default: u32) {
    write_op(out, Op::BrTable);
    leb::write_u32(out, labels.len() as u32);
    for &label in labels {
        leb::write_u32(out, label);
    }
    leb::write_u32(out, default);
}
