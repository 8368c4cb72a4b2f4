//! Leaf functions: C functions of the host that native code calls directly.

use std::ffi::c_void;
use std::fmt;

use slotvm_bytecode::FuncType;
use slotvm_runtime::limits::LEAF_STACK_BYTES_MAX;
use slotvm_runtime::native::LeafFn;
use slotvm_runtime::{Error, HostCall};

use crate::api::c_value::{CResult, CValue, private};
use crate::api::func::Func;
use crate::api::host_func::HostFunc;
use crate::api::store::AsContextMut;
use crate::api::typed::{Inside, Scalar, Values};

/// A C function of the host that native code calls directly, in the C calling convention: nothing records that guest code
/// was left, and nothing is copied. It belongs to no store yet.
///
/// An import that the bytecode marks with `leaf` accepts nothing else, and is called so. Elsewhere a leaf function is an
/// ordinary function of the host: unmarked imports accept it, tables hold it, the host calls it.
///
/// ```
/// use std::ffi::c_void;
/// use slotvm::{Engine, LeafFunc, Linker, Module, Store};
///
/// unsafe extern "C" fn scaled(factor: *mut c_void, x: f64) -> f64 {
///     // SAFETY: it is defined below with the address of a static number.
///     x * unsafe { *factor.cast::<f64>() }
/// }
///
/// static FACTOR: f64 = 2.5;
///
/// let engine = Engine::default();
/// let module = Module::from_text(
///     &engine,
///     r#"
///     import "host" "scaled" leaf func scaled(f64) -> f64
///     export "f" func f
///     func f(x: f64) -> f64 { local.get x  call scaled  return }
///     "#,
/// )?;
/// let factor = (&raw const FACTOR).cast_mut().cast();
/// let function = scaled as unsafe extern "C" fn(*mut c_void, f64) -> f64;
/// // SAFETY: it multiplies, and reads a number that is never written.
/// let leaf = unsafe { LeafFunc::new(function, factor, 256)? };
/// let mut linker = Linker::new(&engine);
/// linker.func_wrap_leaf("host", "scaled", &leaf)?;
/// let mut store = Store::new(&engine, ());
/// let instance = linker.instantiate(&mut store, &module)?;
/// let f = instance.get_typed_func::<f64, f64>(&mut store, "f")?;
/// assert_eq!(f.call(&mut store, 4.0)?, 10.0);
/// # Ok::<(), slotvm::Error>(())
/// ```
#[derive(Clone)]
pub struct LeafFunc {
    host: HostFunc,
}

impl LeafFunc {
    /// Makes a leaf function. Its first argument is always `data`. It takes at most `stack_bytes` bytes of stack, with all
    /// that it calls.
    ///
    /// # Safety
    /// As long as any store or linker has the function, and on any thread that these are used on, it can be called with
    /// `data` and any numbers. It returns: it does not unwind, and does not jump elsewhere. It calls no guest code, and uses
    /// nothing of the stores that have it, their memories included. It keeps to `stack_bytes`. Guest code leaves it these on
    /// the stack of a thread; where the embedder calls guest code on a stack of its own, it has provided for them below
    /// [`Config::max_native_stack`](crate::Config::max_native_stack).
    ///
    /// # Errors
    /// Fails if `stack_bytes` is more than `LEAF_STACK_BYTES_MAX`, 64 KiB.
    pub unsafe fn new<F: LeafFunction>(
        function: F,
        data: *mut c_void,
        stack_bytes: usize,
    ) -> Result<LeafFunc, Error> {
        if stack_bytes > LEAF_STACK_BYTES_MAX {
            let (max, wanted) = (LEAF_STACK_BYTES_MAX as u64, stack_bytes as u64);
            return Err(Error::Limit { name: "LEAF_STACK_BYTES_MAX", max, wanted });
        }
        // SAFETY: what this function demands of its caller is what the other demands.
        Ok(LeafFunc { host: unsafe { function.host_func(data) } })
    }

    /// Returns its type.
    pub fn ty(&self) -> &FuncType {
        self.host.ty()
    }

    /// The function as any other of the host.
    pub(crate) fn host(&self) -> &HostFunc {
        &self.host
    }
}

impl fmt::Debug for LeafFunc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeafFunc").field("ty", self.ty()).finish_non_exhaustive()
    }
}

impl Func {
    /// Makes a function of a leaf function.
    ///
    /// # Errors
    /// Fails if the store has too many functions.
    pub fn wrap_leaf(mut store: impl AsContextMut, leaf: &LeafFunc) -> Result<Func, Error> {
        let store = store.as_context_mut().inner;
        let func = leaf.host.in_store(store)?;
        Ok(Func::from_handle(store, func))
    }
}

/// The type of a C function with up to twelve parameters, besides the pointer, and one result:
/// `unsafe extern "C" fn(*mut c_void, P…) -> R`. Parameters and results are numbers
/// ([`CValue`], [`CResult`]).
pub trait LeafFunction: Copy + private::Sealed + 'static {
    /// Makes a function of the host.
    ///
    /// # Safety
    /// As for [`LeafFunc::new`].
    #[doc(hidden)]
    unsafe fn host_func(self, data: *mut c_void) -> HostFunc;
}

macro_rules! leaf_functions {
    ($(($($param:ident),*))*) => { $(
        impl<$($param: CValue,)* R: CResult> private::Sealed
            for unsafe extern "C" fn(*mut c_void, $($param),*) -> R {}

        impl<$($param: CValue,)* R: CResult> LeafFunction
            for unsafe extern "C" fn(*mut c_void, $($param),*) -> R
        {
            #[allow(non_snake_case, reason = "variables bear the names of their types, if there are any")]
            unsafe fn host_func(self, data: *mut c_void) -> HostFunc {
                let ty = FuncType::new([$(<$param as Scalar>::TYPE),*], <R as CResult>::TYPES);
                let leaf = LeafFn { code: self as *const u8, data };
                let closure = move |call: &mut HostCall<'_>| {
                    // Not its field alone, which cannot be sent.
                    let LeafFn { data, .. } = { let leaf = leaf; leaf };
                    let ($($param,)*) = <($($param,)*)>::read(call.cells, call.store, Inside(()));
                    // SAFETY: so promises the caller of `LeafFunc::new`, who has given us both.
                    let result = unsafe { self(data $(, $param)*) };
                    Values::write(result, call.cells, call.store);
                    Ok(())
                };
                // SAFETY: the type is that of the function, which does what the closure does with it; the rest is what
                // the caller of `LeafFunc::new` promises.
                unsafe { HostFunc::leaf(ty, closure, leaf) }
            }
        }
    )* };
}

leaf_functions! {
    ()
    (A)
    (A, B)
    (A, B, C)
    (A, B, C, D)
    (A, B, C, D, E)
    (A, B, C, D, E, F)
    (A, B, C, D, E, F, G)
    (A, B, C, D, E, F, G, H)
    (A, B, C, D, E, F, G, H, I)
    (A, B, C, D, E, F, G, H, I, J)
    (A, B, C, D, E, F, G, H, I, J, K)
    (A, B, C, D, E, F, G, H, I, J, K, L)
}
