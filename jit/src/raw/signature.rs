//! The Rust types of C functions, and the types of bytecode that they stand for.

use slotvm_bytecode::FuncType;

use super::context::Context;
use crate::api::c_value::private;
pub use crate::api::c_value::{CResult, CValue};

/// The type of a C function with up to twelve parameters and one result: `unsafe extern "C" fn(*mut Context,
/// P…) -> R`.
pub trait CFunction: Copy + private::Sealed + 'static {
    /// The type of bytecode.
    #[doc(hidden)]
    fn ty_of() -> FuncType;

    /// The type of bytecode.
    #[doc(hidden)]
    fn ty(self) -> FuncType {
        Self::ty_of()
    }

    /// Its address.
    #[doc(hidden)]
    fn pointer(self) -> *const u8;

    /// The function at an address.
    ///
    /// # Safety
    /// There is a function of the type.
    #[doc(hidden)]
    unsafe fn from_pointer(pointer: *const u8) -> Self;
}

macro_rules! c_functions {
    ($($param:ident)*) => {
        impl<$($param: CValue,)* R: CResult> private::Sealed
            for unsafe extern "C" fn(*mut Context, $($param),*) -> R {}

        impl<$($param: CValue,)* R: CResult> CFunction
            for unsafe extern "C" fn(*mut Context, $($param),*) -> R
        {
            fn ty_of() -> FuncType {
                FuncType::new([$(<$param as CValue>::TYPE),*], <R as CResult>::TYPES)
            }

            fn pointer(self) -> *const u8 {
                self as *const u8
            }

            unsafe fn from_pointer(pointer: *const u8) -> Self {
                // SAFETY: `Code::get`, the one caller, has compared the type of the function with this one, and
                // function pointers are addresses.
                unsafe { std::mem::transmute::<*const u8, Self>(pointer) }
            }
        }
    };
}

c_functions! {}
c_functions! { A }
c_functions! { A B }
c_functions! { A B C }
c_functions! { A B C D }
c_functions! { A B C D E }
c_functions! { A B C D E F }
c_functions! { A B C D E F G }
c_functions! { A B C D E F G H }
c_functions! { A B C D E F G H I }
c_functions! { A B C D E F G H I J }
c_functions! { A B C D E F G H I J K }
c_functions! { A B C D E F G H I J K L }
