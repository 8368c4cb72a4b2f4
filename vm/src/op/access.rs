//! Accesses to linear memory: their bytes, and the relation to the value on the operand stack.

use super::{ACCESSED, Effect, ImmKind, Op};
use crate::types::ValType;

/// The accessed bytes as written in a row of the opcode table.
#[derive(Copy, Clone)]
pub(super) enum Accessed {
    /// A number or vector, or a narrower integer that a load sign-extends or zero-extends.
    Value { bytes: u32, signed: Option<bool> },
    /// A part of a vector.
    Part { bytes: u32, part: VectorPart },
}

/// The bytes that an instruction with these immediates accesses.
macro_rules! accessed {
    (Mem) => {
        compile_error!("`Mem` does not say what is accessed")
    };
    (Indexed) => {
        compile_error!("`Indexed` does not say what is accessed")
    };
    (MemLane) => {
        compile_error!("`MemLane` does not say what is accessed")
    };
    (MemLane($bytes:literal lane)) => {
        Some(Accessed::Part { bytes: $bytes, part: VectorPart::Lane })
    };
    (Mem($bytes:literal splat)) => {
        Some(Accessed::Part { bytes: $bytes, part: VectorPart::Splat })
    };
    (Mem($bytes:literal low)) => {
        Some(Accessed::Part { bytes: $bytes, part: VectorPart::LowLane })
    };
    (Mem($bytes:literal extends $lane_bytes:literal $sign:ident)) => {
        Some(Accessed::Part {
            bytes: $bytes,
            part: VectorPart::Extended { lane_bytes: $lane_bytes, signed: is_signed!($sign) },
        })
    };
    ($kind:ident($bytes:literal)) => {
        Some(Accessed::Value { bytes: $bytes, signed: None })
    };
    ($kind:ident($bytes:literal $sign:ident)) => {
        Some(Accessed::Value { bytes: $bytes, signed: Some(is_signed!($sign)) })
    };
    ($kind:ident) => {
        None
    };
}

macro_rules! is_signed {
    (signed) => {
        true
    };
    (unsigned) => {
        false
    };
}

const ACCESSES: &[Option<Access>; Op::ALL.len()] = &{
    let mut accesses = [None; Op::ALL.len()];
    let mut i = 0;
    while i < accesses.len() {
        if let Some(Accessed::Value { bytes, signed }) = ACCESSED[i] {
            accesses[i] = Some(access(Op::ALL[i], bytes, signed));
        }
        i += 1;
    }
    accesses
};

/// The access of an instruction. A load narrower than its result must specify the extension.
const fn access(op: Op, bytes: u32, signed: Option<bool>) -> Access {
    let store = matches!(op.effect(), Effect::Write);
    let indexed = matches!(op.imm_kind(), ImmKind::Indexed);
    let Some(signature) = op.signature() else { panic!("an access has a fixed signature") };
    let ty = match signature.params {
        [.., value] if store => *value,
        _ => signature.results[0],
    };
    let is_narrow_load = !store && bytes < ty.bytes();
    assert!(signed.is_some() == is_narrow_load, "narrow loads say whether they extend the sign");
    Access { ty, bytes, signed: matches!(signed, Some(true)), store, indexed }
}

impl Op {
    /// The memory access of a plain or indexed load or store. `None` for loads and stores of a part of a
    /// vector, see [`Op::vector_access`].
    #[inline]
    pub const fn access(self) -> Option<Access> {
        ACCESSES[self as usize]
    }

    /// The memory access of a load or store of a part of a vector.
    #[inline]
    pub const fn vector_access(self) -> Option<VectorAccess> {
        match ACCESSED[self as usize] {
            Some(Accessed::Part { bytes, part }) => {
                Some(VectorAccess { bytes, part, store: matches!(self.effect(), Effect::Write) })
            }
            _ => None,
        }
    }

    /// Number of bytes of linear memory that a load or store accesses.
    #[inline]
    pub const fn access_bytes(self) -> Option<u32> {
        match ACCESSED[self as usize] {
            Some(Accessed::Value { bytes, .. } | Accessed::Part { bytes, .. }) => Some(bytes),
            None => None,
        }
    }
}

/// A memory access of a load or store.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The type of the value on the operand stack.
    pub ty: ValType,
    /// Number of bytes in memory.
    pub bytes: u32,
    /// Whether a narrow load extends the sign.
    pub signed: bool,
    /// Whether it is a store.
    pub store: bool,
    /// Whether the address is a base and a scaled index.
    pub indexed: bool,
}

/// A memory access of a load or store of a part of a vector.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct VectorAccess {
    /// Number of bytes in memory.
    pub bytes: u32,
    /// The part of the vector that they hold.
    pub part: VectorPart,
    /// Whether it is a store.
    pub store: bool,
}

/// The part of a vector that the bytes in memory hold.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum VectorPart {
    /// All lanes, each of half its width.
    Extended {
        /// The bytes of a lane in memory.
        lane_bytes: u32,
        /// Whether the sign is extended.
        signed: bool,
    },
    /// The value of every lane.
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
