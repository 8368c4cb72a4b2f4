//! Functions of a store: those that instances export and those of the host.

use std::sync::Arc;

use slotvm_bytecode::{FuncType, ValType};
use slotvm_runtime::{self as rt, Error, FuncHandle, HostCall, HostFn};

use crate::caller::Caller;
use crate::store::{AsContext, AsContextMut, StoreId};
use crate::typed::{HostResults, Scalar, TypedFunc, Values};
use crate::val::{Val, n_cells};

/// A function of a store.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Func {
    store: StoreId,
    handle: FuncHandle,
}

impl Func {
    pub(crate) fn from_handle(store: &rt::Store, handle: FuncHandle) -> Func {
        Func { store: StoreId::of(store), handle }
    }

    /// The handle in the store.
    ///
    /// # Panics
    /// If the store is another one.
    #[track_caller]
    pub(crate) fn handle(&self, store: &rt::Store) -> FuncHandle {
        self.store.check(store);
        self.handle
    }

    /// Makes a function of a closure whose types say the function's type.
    ///
    /// # Errors
    /// If the store has too many functions.
    pub fn wrap<T: 'static, Params, Results>(
        mut store: impl AsContextMut<Data = T>,
        f: impl IntoFunc<T, Params, Results>,
    ) -> Result<Func, Error> {
        let store = store.as_context_mut().inner;
        let host = f.into_func();
        let func = store.new_host_func(host.ty, host.f)?;
        Ok(Func::from_handle(store, func))
    }

    /// Makes a function of any type of a closure that gets its parameters and gives its results as
    /// [`Val`]s. The results are zero or null before.
    ///
    /// # Errors
    /// If the store has too many functions.
    pub fn new<T: 'static>(
        mut store: impl AsContextMut<Data = T>,
        ty: FuncType,
        f: impl Fn(Caller<'_, T>, &[Val], &mut [Val]) -> Result<(), Error> + Send + Sync + 'static,
    ) -> Result<Func, Error> {
        let store = store.as_context_mut().inner;
        let host = HostFunc::dynamic(ty, f);
        let func = store.new_host_func(host.ty, host.f)?;
        Ok(Func::from_handle(store, func))
    }

    /// The type.
    ///
    /// # Panics
    /// If the function belongs to another store.
    pub fn ty(&self, store: impl AsContext) -> FuncType {
        let store = store.as_context().inner;
        store.func_type(self.handle(store)).clone()
    }

    /// Calls the function. The results are written to `results`, which has their number.
    ///
    /// # Errors
    /// If the function traps, or a host function that it calls fails, or the values do not fit its
    /// type.
    ///
    /// # Panics
    /// If the function or a reference belongs to another store, or a host function that is called
    /// panics.
    pub fn call(
        &self,
        mut store: impl AsContextMut,
        params: &[Val],
        results: &mut [Val],
    ) -> Result<(), Error> {
        let store = store.as_context_mut().inner;
        let handle = self.handle(store);
        let ty = store.func_type(handle).clone();
        if results.len() != ty.results.len() {
            let n = results.len();
            return Err(Error::Usage(format!("a function {ty} does not have {n} results")));
        }
        let mut cells = vec![0; n_cells(&ty)];
        Val::write_cells(params, &ty.params, &mut cells, store)?;
        store.call(handle, &mut cells)?;
        for ((&ty, &cell), result) in ty.results.iter().zip(&cells).zip(results) {
            *result = Val::from_cell(ty, cell, store);
        }
        Ok(())
    }

    /// The function with its type made known to Rust.
    ///
    /// # Errors
    /// If it is of another type.
    ///
    /// # Panics
    /// If the function belongs to another store.
    pub fn typed<P: Values, R: Values>(
        &self,
        store: impl AsContext,
    ) -> Result<TypedFunc<P, R>, Error> {
        TypedFunc::new(*self, store.as_context().inner)
    }
}

/// A function of the host that belongs to no store yet.
#[derive(Clone)]
#[doc(hidden)]
pub struct HostFunc {
    pub(crate) ty: FuncType,
    pub(crate) f: HostFn,
}

impl HostFunc {
    /// A function that handles its cells itself.
    fn new(
        ty: FuncType,
        f: impl Fn(&mut HostCall<'_>) -> Result<(), Error> + Send + Sync + 'static,
    ) -> HostFunc {
        HostFunc { ty, f: Arc::new(f) }
    }

    pub(crate) fn dynamic<T: 'static>(
        ty: FuncType,
        f: impl Fn(Caller<'_, T>, &[Val], &mut [Val]) -> Result<(), Error> + Send + Sync + 'static,
    ) -> HostFunc {
        HostFunc::new(ty.clone(), move |call| {
            let vals = |(&ty, &cell)| Val::from_cell(ty, cell, call.store);
            let params: Vec<Val> = ty.params.iter().zip(&*call.cells).map(vals).collect();
            let mut results: Vec<Val> = ty.results.iter().map(|&ty| Val::default_for(ty)).collect();
            f(Caller::new(call.store, call.instance), &params, &mut results)?;
            Val::write_cells(&results, &ty.results, call.cells, call.store)
        })
    }
}

/// Closures that can become functions of the host: up to twelve [`Scalar`] parameters, a [`Caller`]
/// before them if the closure wants to reach the store, and [`HostResults`].
///
/// `Params` only tells closures with and without a caller apart.
pub trait IntoFunc<T: 'static, Params, Results>: Send + Sync + 'static {
    /// Makes the function.
    #[doc(hidden)]
    fn into_func(self) -> HostFunc;
}

fn func_type<R: HostResults>(params: impl Into<Vec<ValType>>) -> FuncType {
    FuncType::new(params, R::TYPES)
}

macro_rules! closures {
    ($(($($i:tt $param:ident),*))*) => { $(
        impl<T, F, $($param,)* R> IntoFunc<T, ($($param,)*), R> for F
        where
            T: 'static,
            F: Fn($($param),*) -> R + Send + Sync + 'static,
            $($param: Scalar,)*
            R: HostResults,
        {
            fn into_func(self) -> HostFunc {
                HostFunc::new(func_type::<R>([$($param::TYPE),*]), move |call| {
                    let results = self($($param::from_cell(call.cells[$i], call.store)),*);
                    results.write(call.cells, call.store)
                })
            }
        }

        impl<T, F, $($param,)* R> IntoFunc<T, (Caller<'_, T>, $($param,)*), R> for F
        where
            T: 'static,
            F: Fn(Caller<'_, T> $(, $param)*) -> R + Send + Sync + 'static,
            $($param: Scalar,)*
            R: HostResults,
        {
            #[allow(non_snake_case, reason = "variables bear the names of their types, if there are any")]
            fn into_func(self) -> HostFunc {
                HostFunc::new(func_type::<R>([$($param::TYPE),*]), move |call| {
                    $(let $param = $param::from_cell(call.cells[$i], call.store);)*
                    let caller = Caller::new(call.store, call.instance);
                    let results = self(caller $(, $param)*);
                    results.write(call.cells, call.store)
                })
            }
        }
    )* };
}

closures! {
    ()
    (0 A)
    (0 A, 1 B)
    (0 A, 1 B, 2 C)
    (0 A, 1 B, 2 C, 3 D)
    (0 A, 1 B, 2 C, 3 D, 4 E)
    (0 A, 1 B, 2 C, 3 D, 4 E, 5 G)
    (0 A, 1 B, 2 C, 3 D, 4 E, 5 G, 6 H)
    (0 A, 1 B, 2 C, 3 D, 4 E, 5 G, 6 H, 7 I)
    (0 A, 1 B, 2 C, 3 D, 4 E, 5 G, 6 H, 7 I, 8 J)
    (0 A, 1 B, 2 C, 3 D, 4 E, 5 G, 6 H, 7 I, 8 J, 9 K)
    (0 A, 1 B, 2 C, 3 D, 4 E, 5 G, 6 H, 7 I, 8 J, 9 K, 10 L)
    (0 A, 1 B, 2 C, 3 D, 4 E, 5 G, 6 H, 7 I, 8 J, 9 K, 10 L, 11 M)
}
