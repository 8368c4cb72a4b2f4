//! Observation of the calls of host functions, for tools that record them.

use std::sync::Arc;

use slotvm_runtime::Error;

use super::{Definition, Linker};
use crate::api::caller::Caller;
use crate::api::val::Val;

/// An observer of calls of host functions, which have the names that they are defined under.
#[doc(hidden)]
pub trait HostCallObserver<T: 'static>: Send + Sync {
    /// Sees a call with its parameters.
    ///
    /// # Errors
    /// If it fails, the function is not called, and the guest's call fails with the error.
    fn before(
        &self,
        caller: Caller<'_, T>,
        module: &str,
        name: &str,
        params: &[Val],
    ) -> Result<(), Error>;

    /// Sees the results, or the error.
    fn after(
        &self,
        caller: Caller<'_, T>,
        module: &str,
        name: &str,
        results: Result<&[Val], &Error>,
    );
}

impl<T: 'static> Linker<T> {
    /// Lets an observer see all calls of the host functions that are defined so far. Functions of a store and leaf
    /// functions are left as they are.
    #[doc(hidden)]
    pub fn observe_host_funcs(&mut self, observer: Arc<dyn HostCallObserver<T>>) {
        for (module, names) in &mut self.definitions {
            for (name, definition) in names {
                let Definition::Host(host) = definition else { continue };
                // Native code calls it by its address.
                if host.is_leaf() {
                    continue;
                }
                let names: Arc<(String, String)> = Arc::new((module.clone(), name.clone()));
                let (before, after) = (observer.clone(), observer.clone());
                let (of_call, of_return) = (names.clone(), names);
                *host = host.observed::<T>(
                    move |caller, params| before.before(caller, &of_call.0, &of_call.1, params),
                    move |caller, results| after.after(caller, &of_return.0, &of_return.1, results),
                );
            }
        }
    }
}
