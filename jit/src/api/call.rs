//! Calls of functions by the host, with values of any type or with types that are known to Rust.

use slotvm_runtime::Error;

use crate::api::func::Func;
use crate::api::store::{AsContext, AsContextMut};
use crate::api::typed::{TypedFunc, Values};
use crate::api::val::{Val, n_cells};

impl Func {
    /// Calls the function. The results are written to `results`, which has their number.
    ///
    /// # Errors
    /// Fails if the function traps, or a host function that it calls fails, or the values do not fit its
    /// type.
    ///
    /// # Panics
    /// Panics if the function or a reference belongs to another store, or a host function that is called
    /// panics.
    pub fn call(
        &self,
        mut store: impl AsContextMut,
        params: &[Val],
        results: &mut [Val],
    ) -> Result<(), Error> {
        let store = store.as_context_mut().inner;
        let handle = self.handle(store);
        let ty = store.func_type(handle);
        if results.len() != ty.results.len() {
            let n = results.len();
            return Err(Error::Usage(format!(
                "wrong number of results, {n}, for a function of type {ty}"
            )));
        }
        let (mut few, mut many) = ([0; FEW], Vec::new());
        let cells = first(&mut few, &mut many, n_cells(ty), 0);
        Val::write_cells(params, &ty.params, cells, store)?;
        // SAFETY: the function is of this store, and so are the values, which are of its types.
        unsafe { store.call_unchecked(handle, cells)? };
        Val::read_cells(results, &store.func_type(handle).results, cells, store);
        Ok(())
    }

    /// The function with its type made known to Rust.
    ///
    /// # Errors
    /// Fails if it is of another type.
    ///
    /// # Panics
    /// Panics if the function belongs to another store.
    pub fn typed<P: Values, R: Values>(
        &self,
        store: impl AsContext,
    ) -> Result<TypedFunc<P, R>, Error> {
        TypedFunc::new(*self, store.as_context().inner)
    }
}

/// Values for which calls of any type need no heap.
pub(super) const FEW: usize = 8;

/// `n` copies of a value in either place; `few` holds copies.
pub(super) fn first<'a, V: Clone>(
    few: &'a mut [V; FEW],
    many: &'a mut Vec<V>,
    n: usize,
    value: V,
) -> &'a mut [V] {
    if n <= FEW {
        return &mut few[..n];
    }
    many.resize(n, value);
    many
}
