//! Signatures of the opcode table: types, lanes of vectors, and NaNs.

use super::{ImmKind, Op, ROWS};
use crate::types::ValType;

/// The fixed signature of an opcode.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Operand types, deepest first.
    pub params: &'static [ValType],
    /// Result types.
    pub results: &'static [ValType],
}

/// The signature column of the opcode table.
pub(super) struct Row {
    pub(super) signature: Option<Signature>,
    operand_lanes: Option<Lanes>,
    result_lanes: Option<Lanes>,
    /// The type of the NaNs of the result, if the machine chooses their bits.
    pub(super) nan: Option<ValType>,
}

impl Row {
    /// A row without fixed types.
    pub(super) const SPECIAL: Row =
        Row { signature: None, operand_lanes: None, result_lanes: None, nan: None };

    /// Creates a row from these words. Float results, and only these, specify the treatment of NaNs.
    pub(super) const fn new(
        signature: Signature,
        operands: &[Word],
        result: &[(Word, Option<Nan>)],
    ) -> Row {
        let mut operand_lanes = None;
        let mut i = 0;
        while i < operands.len() && operand_lanes.is_none() {
            operand_lanes = operands[i].lanes();
            i += 1;
        }
        let (result_lanes, nan) = match result {
            [(word, nan)] => {
                assert!(
                    nan.is_some() == word.float().is_some(),
                    "float results say `exact` or `nan`"
                );
                (word.lanes(), if let Some(Nan::nan) = nan { word.float() } else { None })
            }
            [] => (None, None),
            [(a, _), (b, _)] => {
                assert!(a.is_integer() && b.is_integer(), "pairs of results are integers");
                (None, None)
            }
            _ => panic!("no more than two results"),
        };
        Row { signature: Some(signature), operand_lanes, result_lanes, nan }
    }
}

/// The treatment of NaNs, as written in the table.
#[expect(non_camel_case_types, reason = "the names are words of the table")]
#[derive(Copy, Clone)]
pub(super) enum Nan {
    /// No NaN results, or NaN results with defined bits.
    exact,
    /// The machine chooses their bits.
    nan,
}

/// A word in a signature of the table: a type, or the lanes of a vector.
#[derive(Copy, Clone)]
pub(super) enum Word {
    I32,
    I64,
    F32,
    F64,
    V128,
    FuncRef,
    Ref,
    I8x16,
    I16x8,
    I32x4,
    I64x2,
    F32x4,
    F64x2,
}

impl Word {
    pub(super) const fn ty(self) -> ValType {
        match self {
            Word::I32 => ValType::I32,
            Word::I64 => ValType::I64,
            Word::F32 => ValType::F32,
            Word::F64 => ValType::F64,
            Word::FuncRef => ValType::FuncRef,
            Word::Ref => ValType::Ref,
            Word::V128
            | Word::I8x16
            | Word::I16x8
            | Word::I32x4
            | Word::I64x2
            | Word::F32x4
            | Word::F64x2 => ValType::V128,
        }
    }

    const fn lanes(self) -> Option<Lanes> {
        Some(match self {
            Word::I8x16 => Lanes::I8x16,
            Word::I16x8 => Lanes::I16x8,
            Word::I32x4 => Lanes::I32x4,
            Word::I64x2 => Lanes::I64x2,
            Word::F32x4 => Lanes::F32x4,
            Word::F64x2 => Lanes::F64x2,
            _ => return None,
        })
    }

    const fn is_integer(self) -> bool {
        matches!(self, Word::I32 | Word::I64)
    }

    /// The type of the floats in a value, if any.
    const fn float(self) -> Option<ValType> {
        match self {
            Word::F32 | Word::F32x4 => Some(ValType::F32),
            Word::F64 | Word::F64x2 => Some(ValType::F64),
            _ => None,
        }
    }
}

/// Makes a [`Row`] of a signature of the table.
macro_rules! row {
    (special) => { Row::SPECIAL };
    ($($param:ident)* -> $($result:ident $($nan:ident)?),*) => {
        Row::new(
            Signature {
                params: &[$(const { Word::$param.ty() }),*],
                results: &[$(const { Word::$result.ty() }),*],
            },
            &[$(Word::$param),*],
            &[$((Word::$result, nan!($($nan)?))),*],
        )
    };
}

macro_rules! nan {
    () => {
        None
    };
    ($nan:ident) => {
        Some(Nan::$nan)
    };
}

/// A division of the 128 bits of a vector into lanes of one type.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Lanes {
    /// 16 integers of 8 bits.
    I8x16,
    /// 8 integers of 16 bits.
    I16x8,
    /// 4 integers of 32 bits.
    I32x4,
    /// 2 integers of 64 bits.
    I64x2,
    /// 4 floats of 32 bits.
    F32x4,
    /// 2 floats of 64 bits.
    F64x2,
}

impl Lanes {
    /// Number of lanes.
    pub const fn count(self) -> u32 {
        match self {
            Lanes::I8x16 => 16,
            Lanes::I16x8 => 8,
            Lanes::I32x4 | Lanes::F32x4 => 4,
            Lanes::I64x2 | Lanes::F64x2 => 2,
        }
    }
}

impl Op {
    /// The lanes of the operands, if the instruction divides an operand into lanes. Bitwise operations, loads
    /// and stores do not. No instruction has operands with different lanes.
    #[inline]
    pub const fn operand_lanes(self) -> Option<Lanes> {
        ROWS[self as usize].operand_lanes
    }

    /// The lanes of the result, if the instruction returns a vector of lanes.
    #[inline]
    pub const fn result_lanes(self) -> Option<Lanes> {
        ROWS[self as usize].result_lanes
    }

    /// The exclusive upper bound of the lane indices in the immediate, if it has any. For a shuffle, the
    /// number of lanes of both vectors.
    #[inline]
    pub const fn n_lanes(self) -> Option<u32> {
        match (self.imm_kind(), self.operand_lanes(), self.access_bytes()) {
            (ImmKind::Lane, Some(lanes), _) => Some(lanes.count()),
            (ImmKind::Lanes, Some(lanes), _) => Some(2 * lanes.count()),
            (ImmKind::MemLane, _, Some(bytes)) => Some(ValType::V128.bytes() / bytes),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table, not the mnemonics, decides the lanes, so the mnemonics are an independent check.
    #[test]
    fn lanes_are_those_that_the_mnemonics_name() {
        let named = |part: &str| match part {
            "i8x16" => Some(Lanes::I8x16),
            "i16x8" => Some(Lanes::I16x8),
            "i32x4" => Some(Lanes::I32x4),
            "i64x2" => Some(Lanes::I64x2),
            "f32x4" => Some(Lanes::F32x4),
            "f64x2" => Some(Lanes::F64x2),
            _ => None,
        };
        // A comparison of floats returns integers, unlike its name says.
        let masks = |lanes| match lanes {
            Lanes::F32x4 => Lanes::I32x4,
            Lanes::F64x2 => Lanes::I64x2,
            lanes => lanes,
        };
        for &op in Op::ALL {
            let (prefix, operation) = op.mnemonic().split_once('.').unwrap_or((op.mnemonic(), ""));
            let (operands, result) = (op.operand_lanes(), op.result_lanes());
            let Some(first) = named(prefix) else {
                assert_eq!((operands, result), (None, None), "{op:?}");
                continue;
            };
            let is_comparison = ["eq", "ne", "lt", "gt", "le", "ge"]
                .iter()
                .any(|&name| operation.split('_').next() == Some(name));
            let expected = if is_comparison { masks(first) } else { first };
            let second = operation.split('_').find_map(named).unwrap_or(first);
            assert!(operands.is_none_or(|lanes| lanes == second), "{op:?}: {operands:?}");
            assert!(result.is_none_or(|lanes| lanes == expected), "{op:?}: {result:?}");
            assert!(operands.is_some() || result.is_some(), "{op:?}");
        }
    }
}
