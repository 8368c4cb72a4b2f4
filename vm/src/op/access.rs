//! How instructions access linear memory: the bytes, and what they are for a value on the operand stack.

use super::{Effect, ImmKind, Op};
use crate::types::ValType;

impl Op {
    /// How the instruction accesses linear memory, for plain and indexed loads and stores. Those that load
    /// or store a part of a vector are not among them, see [`Op::vector_access`].
    #[inline]
    pub const fn access(self) -> Option<Access> {
        use Op::*;
        use ValType::{F32, F64, I32, I64};
        let (ty, bytes, signed) = match self {
            I32Load | I32LoadIndexed | I32Store | I32StoreIndexed => (I32, 4, false),
            I64Load | I64LoadIndexed | I64Store | I64StoreIndexed => (I64, 8, false),
            F32Load | F32LoadIndexed | F32Store | F32StoreIndexed => (F32, 4, false),
            F64Load | F64LoadIndexed | F64Store | F64StoreIndexed => (F64, 8, false),
            I32Load8S | I32Load8SIndexed => (I32, 1, true),
            I32Load8U | I32Load8UIndexed | I32Store8 | I32Store8Indexed => (I32, 1, false),
            I32Load16S | I32Load16SIndexed => (I32, 2, true),
            I32Load16U | I32Load16UIndexed | I32Store16 | I32Store16Indexed => (I32, 2, false),
            I64Load8S | I64Load8SIndexed => (I64, 1, true),
            I64Load8U | I64Load8UIndexed | I64Store8 | I64Store8Indexed => (I64, 1, false),
            I64Load16S | I64Load16SIndexed => (I64, 2, true),
            I64Load16U | I64Load16UIndexed | I64Store16 | I64Store16Indexed => (I64, 2, false),
            I64Load32S | I64Load32SIndexed => (I64, 4, true),
            I64Load32U | I64Load32UIndexed | I64Store32 | I64Store32Indexed => (I64, 4, false),
            V128Load | V128Store => (ValType::V128, 16, false),
            _ => return None,
        };
        let store = matches!(self.effect(), Effect::Write);
        let indexed = matches!(self.imm_kind(), ImmKind::Indexed);
        Some(Access { ty, bytes, signed, store, indexed })
    }

    /// How the instruction accesses linear memory, if it loads or stores less than a vector for one.
    #[inline]
    pub const fn vector_access(self) -> Option<VectorAccess> {
        use Op::*;
        use VectorPart::{Extended, Lane, LowLane, Splat};
        let (bytes, part) = match self {
            V128Load8x8S => (8, Extended { lane_bytes: 1, signed: true }),
            V128Load8x8U => (8, Extended { lane_bytes: 1, signed: false }),
            V128Load16x4S => (8, Extended { lane_bytes: 2, signed: true }),
            V128Load16x4U => (8, Extended { lane_bytes: 2, signed: false }),
            V128Load32x2S => (8, Extended { lane_bytes: 4, signed: true }),
            V128Load32x2U => (8, Extended { lane_bytes: 4, signed: false }),
            V128Load8Splat => (1, Splat),
            V128Load16Splat => (2, Splat),
            V128Load32Splat => (4, Splat),
            V128Load64Splat => (8, Splat),
            V128Load32Zero => (4, LowLane),
            V128Load64Zero => (8, LowLane),
            V128Load8Lane | V128Store8Lane => (1, Lane),
            V128Load16Lane | V128Store16Lane => (2, Lane),
            V128Load32Lane | V128Store32Lane => (4, Lane),
            V128Load64Lane | V128Store64Lane => (8, Lane),
            _ => return None,
        };
        Some(VectorAccess { bytes, part, store: matches!(self.effect(), Effect::Write) })
    }

    /// The bytes of linear memory that a load or store accesses.
    #[inline]
    pub const fn access_bytes(self) -> Option<u32> {
        match (self.access(), self.vector_access()) {
            (Some(Access { bytes, .. }), _) | (_, Some(VectorAccess { bytes, .. })) => Some(bytes),
            (None, None) => None,
        }
    }
}

/// How a load or store accesses linear memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The type of the value on the operand stack.
    pub ty: ValType,
    /// The number of bytes in memory.
    pub bytes: u32,
    /// Whether a narrow load extends the sign.
    pub signed: bool,
    /// Whether it is a store.
    pub store: bool,
    /// Whether the address is a base and a scaled index.
    pub indexed: bool,
}

/// How a load or store of a part of a vector accesses linear memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct VectorAccess {
    /// The number of bytes in memory.
    pub bytes: u32,
    /// What they are of the vector.
    pub part: VectorPart,
    /// Whether it is a store.
    pub store: bool,
}

/// What the bytes that a load or store accesses are of a vector.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum VectorPart {
    /// All lanes, each of half its width.
    Extended {
        /// The bytes of a lane in memory.
        lane_bytes: u32,
        /// Whether the sign is extended.
        signed: bool,
    },
    /// Each lane.
    Splat,
    /// The lowest lane; the others are zero.
    LowLane,
    /// The lane that the immediate names.
    Lane,
}

impl Access {
    /// Whether all bytes of the type are accessed, not a narrower integer.
    pub const fn is_full(self) -> bool {
        self.bytes == self.ty.bytes()
    }
}
