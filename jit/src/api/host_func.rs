//! Functions of the host: what closures become.

use slotvm_bytecode::{FuncType, ValType};
use slotvm_runtime::native::LeafFn;
use slotvm_runtime::{self as rt, Error, FuncHandle, HostCall, HostFn, InstanceId, RootMark};

use crate::api::call::{FEW, first};
use crate::api::caller::Caller;
use crate::api::func::Func;
use crate::api::store::AsContextMut;
use crate::api::typed::{HostResults, Inside, Scalar, Values};
use crate::api::val::Val;

impl Func {
    /// Makes a function of a closure whose types say the function's type.
    ///
    /// # Errors
    /// Fails if the store has too many functions.
    pub fn wrap<T: 'static, Params, Results>(
        mut store: impl AsContextMut<Data = T>,
        f: impl IntoFunc<T, Params, Results>,
    ) -> Result<Func, Error> {
        let store = store.as_context_mut().inner;
        let func = f.into_func().in_store(store)?;
        Ok(Func::from_handle(store, func))
    }

    /// Makes a function of any type from a closure that receives its parameters and returns its results as
    /// [`Val`]s. The results are zero or null before.
    ///
    /// # Errors
    /// Fails if the store has too many functions.
    pub fn new<T: 'static>(
        mut store: impl AsContextMut<Data = T>,
        ty: FuncType,
        f: impl Fn(Caller<'_, T>, &[Val], &mut [Val]) -> Result<(), Error> + Send + Sync + 'static,
    ) -> Result<Func, Error> {
        let store = store.as_context_mut().inner;
        let func = HostFunc::dynamic(ty, f).in_store(store)?;
        Ok(Func::from_handle(store, func))
    }
}

/// A function of the host that belongs to no store yet.
#[derive(Clone)]
#[doc(hidden)]
pub struct HostFunc {
    ty: FuncType,
    f: HostFn,
}

impl HostFunc {
    /// A function that handles its cells itself, and leaves results of its type there: zero-extended, and
    /// references of the store of the call only. Handles of references that it makes end with it.
    fn new(
        ty: FuncType,
        f: impl Fn(&mut HostCall<'_>) -> Result<(), Error> + Send + Sync + 'static,
    ) -> HostFunc {
        let f = HostFn::new(move |call| {
            let own = HandlesOfCall::begin(call);
            f(&mut *own.call)
        });
        HostFunc { ty, f }
    }

    /// The same, which imports that are leaves accept: native code calls `leaf` instead of the closure.
    ///
    /// # Safety
    /// As for [`HostFn::with_leaf`], of the type given.
    pub(crate) unsafe fn leaf(
        ty: FuncType,
        f: impl Fn(&mut HostCall<'_>) -> Result<(), Error> + Send + Sync + 'static,
        leaf: LeafFn,
    ) -> HostFunc {
        // SAFETY: what this function demands of its caller is what the other demands; `bound_to` alone gives the function
        // to stores, with the type.
        HostFunc { ty, f: unsafe { HostFn::new(f).with_leaf(leaf) } }
    }

    /// Whether imports that are leaves accept it.
    pub(crate) fn is_leaf(&self) -> bool {
        self.f.is_leaf()
    }

    /// Its type.
    pub(crate) fn ty(&self) -> &FuncType {
        &self.ty
    }

    /// Makes it a function of a store.
    pub(crate) fn in_store(&self, store: &mut rt::Store) -> Result<FuncHandle, Error> {
        self.bound_to(store, None)
    }

    /// Makes it a function of a store, imported by the instance that is made next.
    pub(crate) fn in_next_instance(&self, store: &mut rt::Store) -> Result<FuncHandle, Error> {
        let instance = store.next_instance();
        self.bound_to(store, Some(instance))
    }

    fn bound_to(
        &self,
        store: &mut rt::Store,
        instance: Option<InstanceId>,
    ) -> Result<FuncHandle, Error> {
        // SAFETY: all kinds of functions write their results as `Scalar::to_cells` and `Val::write_cells` give
        // them, which extend by zeros and check whose a reference is. `HostFunc::leaf` was told that the type is that of the
        // leaf.
        unsafe { store.new_trusted_host_func(&self.ty, self.f.clone(), instance) }
    }

    /// A function around this one: `before` sees the parameters, `after` the results unless it failed.
    pub(crate) fn observed<T: 'static>(
        &self,
        before: impl Fn(Caller<'_, T>, &[Val]) -> Result<(), Error> + Send + Sync + 'static,
        after: impl Fn(Caller<'_, T>, Result<&[Val], &Error>) + Send + Sync + 'static,
    ) -> HostFunc {
        let HostFunc { ty, f } = self.clone();
        HostFunc::new(ty.clone(), move |call| {
            let mut params = vec![Val::I32(0); ty.params.len()];
            Val::read_cells(&mut params, &ty.params, call.cells, call.store);
            before(Caller::new(call.store, call.instance), &params)?;
            // References may have changed.
            Val::write_cells(&params, &ty.params, call.cells, call.store)?;
            let HostCall { store, instance, cells } = call;
            let instance = *instance;
            let called = f.call(&mut HostCall { store, instance, cells });
            let mut results = vec![Val::I32(0); ty.results.len()];
            if called.is_ok() {
                Val::read_cells(&mut results, &ty.results, cells, store);
            }
            after(Caller::new(store, instance), called.as_ref().map(|()| results.as_slice()));
            if called.is_ok() {
                Val::write_cells(&results, &ty.results, cells, store)?;
            }
            called
        })
    }

    pub(crate) fn dynamic<T: 'static>(
        ty: FuncType,
        f: impl Fn(Caller<'_, T>, &[Val], &mut [Val]) -> Result<(), Error> + Send + Sync + 'static,
    ) -> HostFunc {
        HostFunc::new(ty.clone(), move |call| {
            let n_params = ty.params.len();
            let (mut few, mut many) = ([Val::I32(0); FEW], Vec::new());
            let vals = first(&mut few, &mut many, n_params + ty.results.len(), Val::I32(0));
            let (params, results) = vals.split_at_mut(n_params);
            Val::read_cells(params, &ty.params, call.cells, call.store);
            for (val, &ty) in results.iter_mut().zip(&ty.results) {
                *val = Val::default_for(ty);
            }
            f(Caller::new(call.store, call.instance), params, results)?;
            Val::write_cells(results, &ty.results, call.cells, call.store)
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

/// A call of a host function, with whose end the handles end that it makes: by a return or a panic.
struct HandlesOfCall<'c, 's> {
    call: &'c mut HostCall<'s>,
    mark: RootMark,
}

impl<'c, 's> HandlesOfCall<'c, 's> {
    #[inline]
    fn begin(call: &'c mut HostCall<'s>) -> HandlesOfCall<'c, 's> {
        HandlesOfCall { mark: call.store.root_mark(), call }
    }
}

impl Drop for HandlesOfCall<'_, '_> {
    #[inline]
    fn drop(&mut self) {
        self.call.store.end_roots(self.mark);
    }
}

fn func_type<R: HostResults>(params: impl Into<Vec<ValType>>) -> FuncType {
    FuncType::new(params, R::TYPES)
}

macro_rules! closures {
    ($(($($param:ident),*))*) => { $(
        impl<T, F, $($param,)* R> IntoFunc<T, ($($param,)*), R> for F
        where
            T: 'static,
            F: Fn($($param),*) -> R + Send + Sync + 'static,
            $($param: Scalar,)*
            R: HostResults,
        {
            #[allow(non_snake_case, reason = "variables bear the names of their types, if there are any")]
            fn into_func(self) -> HostFunc {
                HostFunc::new(func_type::<R>([$($param::TYPE),*]), move |call| {
                    let ($($param,)*) = <($($param,)*)>::read(call.cells, call.store, Inside(()));
                    let results = self($($param),*);
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
                    let ($($param,)*) = <($($param,)*)>::read(call.cells, call.store, Inside(()));
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
    (A)
    (A, B)
    (A, B, C)
    (A, B, C, D)
    (A, B, C, D, E)
    (A, B, C, D, E, G)
    (A, B, C, D, E, G, H)
    (A, B, C, D, E, G, H, I)
    (A, B, C, D, E, G, H, I, J)
    (A, B, C, D, E, G, H, I, J, K)
    (A, B, C, D, E, G, H, I, J, K, L)
    (A, B, C, D, E, G, H, I, J, K, L, M)
}
