//! Host types that stand for guest types, and calls whose types are checked once.

use std::marker::PhantomData;

use slotvm_bytecode::ValType;
use slotvm_runtime::{self as rt, Error, FuncHandle};

use crate::api::func::Func;
use crate::api::rooted::Rooted;
use crate::api::store::AsContextMut;
use crate::api::val::{ExternRef, V128, Val};

/// A host type that stands for one guest type: `i32 u32 i64 u64 f32 f64`, [`V128`], `Option<Func>`,
/// `Option<ExternRef>` and `Option<Rooted>`. Nobody else makes references of numbers:
///
/// ```compile_fail,E0061
/// # use slotvm::{Engine, Func, Scalar, Store};
/// let store = Store::new(&Engine::default(), ());
/// let forged = <Option<Func>>::from_cells(&[33], store.runtime());
/// ```
/// ```compile_fail,E0423
/// # use slotvm::{Engine, Func, Scalar, Store};
/// let store = Store::new(&Engine::default(), ());
/// let forged = <Option<Func>>::from_cells(&[33], store.runtime(), slotvm::Inside(()));
/// ```
pub trait Scalar: Copy + Send + Sync + 'static + private::Sealed {
    /// The guest type.
    const TYPE: ValType;

    /// The value in the first cells, which were guest code's: a reference is one of the store.
    #[doc(hidden)]
    fn from_cells(cells: &[u64], store: &rt::Store, inside: Inside) -> Self;

    /// Writes the value to the first cells.
    #[doc(hidden)]
    fn to_cells(self, cells: &mut [u64], store: &rt::Store);
}

/// Host types that stand for a list of guest types: `()`, a [`Scalar`], or a tuple of up to twelve.
pub trait Values: Copy + Send + Sync + 'static + private::Sealed {
    /// The guest types.
    const TYPES: &'static [ValType];

    /// The values in the first cells, as for [`Scalar::from_cells`].
    #[doc(hidden)]
    fn read(cells: &[u64], store: &rt::Store, inside: Inside) -> Self;

    /// Writes the values to the first cells.
    #[doc(hidden)]
    fn write(self, cells: &mut [u64], store: &rt::Store);
}

/// Return types of host functions: [`Values`], or a [`Result`] of them.
pub trait HostResults: private::Sealed {
    /// The guest types.
    #[doc(hidden)]
    const TYPES: &'static [ValType];

    /// Writes the values to the first cells, if there are any.
    #[doc(hidden)]
    fn write(self, cells: &mut [u64], store: &rt::Store) -> Result<(), Error>;
}

mod private {
    pub trait Sealed {}

    /// Token that only this crate can make: it alone takes numbers for references.
    #[derive(Copy, Clone, Debug)]
    pub struct Inside(pub(crate) ());
}

pub(crate) use private::Inside;

impl<R: HostResults, E: Into<Error>> private::Sealed for Result<R, E> {}
impl<R: HostResults, E: Into<Error>> HostResults for Result<R, E> {
    const TYPES: &'static [ValType] = R::TYPES;

    #[inline]
    fn write(self, cells: &mut [u64], store: &rt::Store) -> Result<(), Error> {
        self.map_err(Into::into)?.write(cells, store)
    }
}

macro_rules! scalars {
    ($($ty:ty: $variant:ident, $cell:ident => $from:expr, $value:ident => $to:expr;)*) => { $(
        impl private::Sealed for $ty {}

        impl Scalar for $ty {
            const TYPE: ValType = ValType::$variant;

            #[inline]
            fn from_cells(cells: &[u64], _: &rt::Store, _: Inside) -> $ty {
                let $cell = cells[0];
                $from
            }

            #[inline]
            fn to_cells(self, cells: &mut [u64], _: &rt::Store) {
                let $value = self;
                cells[0] = $to;
            }
        }

        values_of_scalar!($ty);
    )* };
}

macro_rules! values_of_scalar {
    ($ty:ty) => {
        impl Values for $ty {
            const TYPES: &'static [ValType] = &[<$ty as Scalar>::TYPE];

            #[inline]
            fn read(cells: &[u64], store: &rt::Store, inside: Inside) -> $ty {
                Scalar::from_cells(cells, store, inside)
            }

            #[inline]
            fn write(self, cells: &mut [u64], store: &rt::Store) {
                self.to_cells(cells, store);
            }
        }

        host_results_of_values!($ty);
    };
}

macro_rules! host_results_of_values {
    ($ty:ty $(, $param:ident)*) => {
        impl<$($param: Scalar),*> HostResults for $ty {
            const TYPES: &'static [ValType] = <$ty as Values>::TYPES;

            #[inline]
            fn write(self, cells: &mut [u64], store: &rt::Store) -> Result<(), Error> {
                Values::write(self, cells, store);
                Ok(())
            }
        }
    };
}

scalars! {
    i32: I32, cell => cell as i32, value => u64::from(value as u32);
    u32: I32, cell => cell as u32, value => u64::from(value);
    i64: I64, cell => cell as i64, value => value as u64;
    u64: I64, cell => cell, value => value;
    f32: F32, cell => f32::from_bits(cell as u32), value => u64::from(value.to_bits());
    f64: F64, cell => f64::from_bits(cell), value => value.to_bits();
}

impl private::Sealed for Option<Func> {}

impl Scalar for Option<Func> {
    const TYPE: ValType = ValType::FuncRef;

    fn from_cells(cells: &[u64], store: &rt::Store, _: Inside) -> Option<Func> {
        FuncHandle::from_cell(cells[0]).map(|func| Func::from_handle(store, func))
    }

    fn to_cells(self, cells: &mut [u64], store: &rt::Store) {
        cells[0] = Val::FuncRef(self).cell(store);
    }
}

impl private::Sealed for Option<ExternRef> {}

impl Scalar for Option<ExternRef> {
    const TYPE: ValType = ValType::ExternRef;

    fn from_cells(cells: &[u64], store: &rt::Store, _: Inside) -> Option<ExternRef> {
        Val::from_bits(ValType::ExternRef, cells[0].into(), store).unwrap_extern_ref()
    }

    fn to_cells(self, cells: &mut [u64], store: &rt::Store) {
        cells[0] = Val::ExternRef(self).cell(store);
    }
}

impl private::Sealed for Option<Rooted> {}

impl Scalar for Option<Rooted> {
    const TYPE: ValType = ValType::Ref;

    #[inline]
    fn from_cells(cells: &[u64], store: &rt::Store, _: Inside) -> Option<Rooted> {
        Rooted::from_cell(cells[0], store)
    }

    #[inline]
    fn to_cells(self, cells: &mut [u64], store: &rt::Store) {
        cells[0] = self.map_or(0, |object| object.cell(store));
    }
}

impl private::Sealed for V128 {}

impl Scalar for V128 {
    const TYPE: ValType = ValType::V128;

    #[inline]
    fn from_cells(cells: &[u64], _: &rt::Store, _: Inside) -> V128 {
        V128::from(u128::from(cells[0]) | u128::from(cells[1]) << 64)
    }

    #[inline]
    fn to_cells(self, cells: &mut [u64], _: &rt::Store) {
        (cells[0], cells[1]) = (self.as_u128() as u64, (self.as_u128() >> 64) as u64);
    }
}

values_of_scalar!(Option<Func>);
values_of_scalar!(Option<ExternRef>);
values_of_scalar!(Option<Rooted>);
values_of_scalar!(V128);

impl private::Sealed for () {}

impl Values for () {
    const TYPES: &'static [ValType] = &[];

    fn read(_cells: &[u64], _store: &rt::Store, _: Inside) {}

    fn write(self, _cells: &mut [u64], _store: &rt::Store) {}
}

host_results_of_values!(());

/// The cells that the first `n` types take.
pub(crate) const fn cells_before(types: &[ValType], n: usize) -> usize {
    let mut cells = 0;
    let mut i = 0;
    while i < n {
        cells += types[i].cells();
        i += 1;
    }
    cells
}

macro_rules! tuples {
    ($(($($i:tt $param:ident),*))*) => { $(
        impl<$($param: Scalar),*> private::Sealed for ($($param,)*) {}

        impl<$($param: Scalar),*> Values for ($($param,)*) {
            const TYPES: &'static [ValType] = &[$($param::TYPE),*];

            #[inline]
            fn read(cells: &[u64], store: &rt::Store, inside: Inside) -> Self {
                ($($param::from_cells(&cells[const { cells_before(<Self as Values>::TYPES, $i) }..], store, inside),)*)
            }

            #[inline]
            fn write(self, cells: &mut [u64], store: &rt::Store) {
                $(self.$i.to_cells(&mut cells[const { cells_before(<Self as Values>::TYPES, $i) }..], store);)*
            }
        }

        host_results_of_values!(($($param,)*) $(, $param)*);
    )* };
}

tuples! {
    (0 A)
    (0 A, 1 B)
    (0 A, 1 B, 2 C)
    (0 A, 1 B, 2 C, 3 D)
    (0 A, 1 B, 2 C, 3 D, 4 E)
    (0 A, 1 B, 2 C, 3 D, 4 E, 5 F)
    (0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G)
    (0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G, 7 H)
    (0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G, 7 H, 8 I)
    (0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G, 7 H, 8 I, 9 J)
    (0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G, 7 H, 8 I, 9 J, 10 K)
    (0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G, 7 H, 8 I, 9 J, 10 K, 11 L)
}

/// The most values that [`Values`] stands for.
const TYPED_VALUES_MAX: usize = 12;

/// The most cells that they take.
const CELLS_MAX: usize = 2 * TYPED_VALUES_MAX;

/// A function whose type is known to be that of `P` and `R`, so that calls need not check it.
#[derive(Debug)]
pub struct TypedFunc<P, R> {
    func: Func,
    types: PhantomData<fn(P) -> R>,
}

impl<P, R> Copy for TypedFunc<P, R> {}

impl<P, R> Clone for TypedFunc<P, R> {
    fn clone(&self) -> TypedFunc<P, R> {
        *self
    }
}

impl<P: Values, R: Values> TypedFunc<P, R> {
    /// # Errors
    /// Fails if the function is of another type.
    pub(crate) fn new(func: Func, store: &rt::Store) -> Result<TypedFunc<P, R>, Error> {
        let ty = store.func_type(func.handle(store));
        if ty.params != P::TYPES || ty.results != R::TYPES {
            let wanted = slotvm_bytecode::FuncType::new(P::TYPES, R::TYPES);
            return Err(Error::Usage(format!("the function has type {ty}, not {wanted}")));
        }
        Ok(TypedFunc { func, types: PhantomData })
    }

    /// The function without its type.
    pub fn func(&self) -> &Func {
        &self.func
    }

    /// Calls the function.
    ///
    /// # Errors
    /// Fails if it traps, or a host function that it calls fails.
    ///
    /// # Panics
    /// Panics if the function belongs to another store, or a host function that it calls panics.
    #[inline]
    pub fn call(&self, mut store: impl AsContextMut, params: P) -> Result<R, Error> {
        let store = store.as_context_mut().inner;
        let handle = self.func.handle(store);
        let (mut few, mut many) = ([0; TYPED_VALUES_MAX], [0; CELLS_MAX]);
        let n_params = const { cells_before(P::TYPES, P::TYPES.len()) };
        let n_results = const { cells_before(R::TYPES, R::TYPES.len()) };
        // Which it is, is known when this is compiled: only one of the two is ever there.
        let cells = match n_params.max(n_results) {
            n @ ..=TYPED_VALUES_MAX => &mut few[..n],
            n => &mut many[..n],
        };
        params.write(cells, store);
        // SAFETY: the function is of this store, and its type that of `P` and `R`, as `new` has checked.
        // Scalars extend what they write by zeros, and references are checked to be of this store.
        unsafe { store.call_unchecked(handle, cells)? };
        Ok(R::read(cells, store, Inside(())))
    }
}
