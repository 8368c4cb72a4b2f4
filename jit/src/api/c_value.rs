//! Host types that C functions have as parameters and results.

use slotvm_bytecode::ValType;

use crate::api::typed::{Scalar, Values};

pub(crate) mod private {
    pub trait Sealed {}
}

/// A parameter of a C function: `i32 u32 i64 u64 f32 f64`.
pub trait CValue: Scalar + private::Sealed {
    /// The type of bytecode.
    const TYPE: ValType;
}

/// The return type of a C function: nothing, or a [`CValue`].
pub trait CResult: Values + private::Sealed {
    /// The types of bytecode, one at most.
    const TYPES: &'static [ValType];
}

macro_rules! c_values {
    ($($ty:ident)*) => { $(
        impl private::Sealed for $ty {}

        impl CValue for $ty {
            const TYPE: ValType = <$ty as Scalar>::TYPE;
        }

        impl CResult for $ty {
            const TYPES: &'static [ValType] = <$ty as Values>::TYPES;
        }
    )* };
}

c_values! { i32 u32 i64 u64 f32 f64 }

impl private::Sealed for () {}

impl CResult for () {
    const TYPES: &'static [ValType] = &[];
}
