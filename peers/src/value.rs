//! Values as all engines see them.

use slotvm::ValType;

/// A value of a program.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A 32-bit integer.
    I32(i32),
    /// A 64-bit integer.
    I64(i64),
    /// The bits of a binary32 number.
    F32(u32),
    /// The bits of a binary64 number.
    F64(u64),
    /// A vector.
    V128(u128),
    /// Whether a function is referred to. Which one is not known; as an argument it is the first that the
    /// instance exports.
    Func(bool),
    /// An object of the host, by its number, or null.
    Extern(Option<u32>),
}

impl Value {
    /// A value of a type, as its bits say.
    pub(crate) fn of_bits(ty: ValType, bits: u64) -> Value {
        match ty {
            ValType::I32 => Value::I32(bits as i32),
            ValType::I64 => Value::I64(bits as i64),
            ValType::F32 => Value::F32(bits as u32),
            ValType::F64 => Value::F64(bits),
            ValType::V128 => Value::V128(u128::from(bits) | u128::from(bits.rotate_left(23)) << 64),
            ValType::FuncRef => Value::Func(bits & 1 != 0),
            ValType::ExternRef => Value::Extern((bits & 1 != 0).then_some((bits >> 1) as u32 & 7)),
            ValType::Ref => unreachable!("WebAssembly has no such type"),
        }
    }

    /// The bits that it has for a hash.
    pub(crate) fn bits(self) -> u64 {
        match self {
            Value::I32(value) => u64::from(value as u32),
            Value::I64(value) => value as u64,
            Value::F32(bits) => u64::from(bits),
            Value::F64(bits) => bits,
            Value::V128(bits) => bits as u64 ^ ((bits >> 64) as u64).rotate_left(1),
            Value::Func(is_some) => u64::from(is_some),
            Value::Extern(number) => number.map_or(0, |number| 1 + u64::from(number)),
        }
    }
}
