//! Value types and function types.

use std::fmt;

/// The type of a value, a local or an operand-stack position.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum ValType {
    /// 32-bit integer; operations decide whether it is signed.
    I32 = 0x7f,
    /// 64-bit integer.
    I64 = 0x7e,
    /// IEEE 754 binary32.
    F32 = 0x7d,
    /// IEEE 754 binary64.
    F64 = 0x7c,
    /// 128 bits; operations decide into which lanes they are divided. Takes two cells.
    V128 = 0x7b,
    /// A nullable reference to a function: the handle of a record that the store owns.
    FuncRef = 0x70,
    /// A nullable reference to a host object: an index into a store arena.
    ExternRef = 0x6f,
    /// A reference into the embedder's own heap: 64 bits that mean nothing to the machine, of which 0 is null. The embedder
    /// visits and updates all that are in use whenever a program calls.
    Ref = 0x61,
}

impl ValType {
    /// All types, in the order of [`ValType::index`].
    pub const ALL: [ValType; 8] = [
        ValType::I32,
        ValType::I64,
        ValType::F32,
        ValType::F64,
        ValType::FuncRef,
        ValType::ExternRef,
        ValType::V128,
        ValType::Ref,
    ];

    /// The code in the binary form.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The type with this code in the binary form.
    #[inline]
    pub const fn from_code(code: u8) -> Option<ValType> {
        Some(match code {
            0x7f => ValType::I32,
            0x7e => ValType::I64,
            0x7d => ValType::F32,
            0x7c => ValType::F64,
            0x7b => ValType::V128,
            0x70 => ValType::FuncRef,
            0x6f => ValType::ExternRef,
            0x61 => ValType::Ref,
            _ => return None,
        })
    }

    /// A dense number from 0 to 7, for tables indexed by type.
    #[inline]
    pub const fn index(self) -> usize {
        match self {
            ValType::I32 => 0,
            ValType::I64 => 1,
            ValType::F32 => 2,
            ValType::F64 => 3,
            ValType::FuncRef => 4,
            ValType::ExternRef => 5,
            ValType::V128 => 6,
            ValType::Ref => 7,
        }
    }

    /// The name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            ValType::I32 => "i32",
            ValType::I64 => "i64",
            ValType::F32 => "f32",
            ValType::F64 => "f64",
            ValType::V128 => "v128",
            ValType::FuncRef => "funcref",
            ValType::ExternRef => "externref",
            ValType::Ref => "ref",
        }
    }

    /// The type with this name in the text form.
    pub fn from_name(name: &str) -> Option<ValType> {
        ValType::ALL.into_iter().find(|ty| ty.name() == name)
    }

    /// Whether values of the type are numbers. Linear memory can hold only these.
    pub const fn is_num(self) -> bool {
        !self.is_ref()
    }

    /// Whether values of the type are references.
    #[inline]
    pub const fn is_ref(self) -> bool {
        matches!(self, ValType::FuncRef | ValType::ExternRef | ValType::Ref)
    }

    /// Number of bytes that a number occupies in linear memory. 8 for a reference, which occupies one cell of
    /// a table.
    pub const fn bytes(self) -> u32 {
        match self {
            ValType::I32 | ValType::F32 => 4,
            ValType::V128 => 16,
            _ => 8,
        }
    }

    /// Number of cells that a value takes in a frame.
    #[inline]
    pub const fn cells(self) -> usize {
        match self {
            ValType::V128 => 2,
            _ => 1,
        }
    }
}

impl fmt::Display for ValType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for ValType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Number of cells that consecutive values of these types take.
#[inline]
pub fn n_cells(types: &[ValType]) -> usize {
    types.iter().map(|ty| ty.cells()).sum()
}

/// The type of a function: its parameters and results.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct FuncType {
    /// Parameter types, first parameter first.
    pub params: Vec<ValType>,
    /// Result types; the last result is on top of the operand stack.
    pub results: Vec<ValType>,
}

impl FuncType {
    /// Creates a function type from its parameter and result types.
    pub fn new(params: impl Into<Vec<ValType>>, results: impl Into<Vec<ValType>>) -> FuncType {
        FuncType { params: params.into(), results: results.into() }
    }
}

impl fmt::Display for FuncType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list =
            |types: &[ValType]| types.iter().map(|ty| ty.name()).collect::<Vec<_>>().join(", ");
        write!(f, "({}) -> ({})", list(&self.params), list(&self.results))
    }
}
