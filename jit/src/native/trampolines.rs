//! Ownership of trampolines, and the budgets that pay for them.
//!
//! A trampoline ([`crate::native::trampoline`]) is made when it is first needed: the one to the host when a store
//! makes a host function of the type, the one from the host when the host first calls a function of the
//! type. It is freed with the last of those who keep it:
//!
//! * a store keeps those whose addresses its functions have, and by which the host has called them;
//! * a module keeps those that its imports and calls have needed, so that its next instance finds them.
//!
//! The engine only knows which ones there are, so that all who need one of a type at a time share it.
//!
//! A module pays from its budget ([`ModuleBudget`]), once for each of its types and ways, whether the
//! trampoline had to be made or was there: so whether a module is refused does not depend on others. Equal
//! types count once. What the embedder makes without a module, nobody pays for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use slotvm_bytecode::{FuncType, VerifiedModule};
use slotvm_runtime::{Error, NativeCode};

use crate::code::unit::{CodeError, CodeUnit};
use crate::compile::budget::ModuleBudget;
use crate::native::activation::EntryTrampoline;
use crate::native::engine::NativeEngine;
use crate::native::trampoline::{self, Way};

/// A trampoline that somebody keeps.
pub(crate) struct Trampoline {
    code: CodeUnit,
    way: Way,
    ty: FuncType,
    known: Arc<Known>,
}

/// The trampolines of one way that exist, by their type.
#[derive(Default)]
struct Known(Mutex<HashMap<FuncType, Weak<Trampoline>>>);

/// The trampolines of an engine.
#[derive(Default)]
pub(crate) struct Trampolines {
    to_host: Arc<Known>,
    from_host: Arc<Known>,
}

impl Known {
    fn lock(&self) -> MutexGuard<'_, HashMap<FuncType, Weak<Trampoline>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, ty: &FuncType) -> Option<Arc<Trampoline>> {
        self.lock().get(ty)?.upgrade()
    }
}

impl Trampolines {
    /// The trampoline of a type, which `make` makes if there is none.
    ///
    /// # Errors
    /// Those of `make`.
    pub(crate) fn get_or_make(
        &self,
        way: Way,
        ty: &FuncType,
        make: impl FnOnce() -> Result<CodeUnit, CodeError>,
    ) -> Result<Arc<Trampoline>, CodeError> {
        let known = match way {
            Way::ToHost => &self.to_host,
            Way::FromHost => &self.from_host,
        };
        if let Some(trampoline) = known.get(ty) {
            return Ok(trampoline);
        }
        // Nobody waits for the compiler meanwhile. Another thread may be as far as this one, and win.
        let made = Trampoline { code: make()?, way, ty: ty.clone(), known: known.clone() };
        let made = Arc::new(made);
        let found = {
            let mut known = known.lock();
            let found = known.get(ty).and_then(Weak::upgrade);
            if found.is_none() {
                known.insert(ty.clone(), Arc::downgrade(&made));
            }
            found
        };
        // If `made` is of no use, it is dropped when the list is not locked.
        Ok(found.unwrap_or(made))
    }

    /// How many exist.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.to_host.lock().len() + self.from_host.lock().len()
    }
}

impl Trampoline {
    /// The code of host functions of the type, which lives as long as the result.
    ///
    /// # Panics
    /// If it leads the other way.
    pub(crate) fn host_code(self: &Arc<Trampoline>) -> NativeCode {
        assert_eq!(self.way, Way::ToHost);
        NativeCode { address: self.code.func(0), owner: self.clone() }
    }

    /// How the host enters functions of the type. It lives as long as `self`.
    ///
    /// # Panics
    /// If it leads the other way.
    pub(crate) fn entry(&self) -> EntryTrampoline {
        assert_eq!(self.way, Way::FromHost);
        // SAFETY: `NativeEngine::trampoline`, which alone makes trampolines, has placed it for this way, as was
        // just checked.
        unsafe { trampoline::entry(&self.code) }
    }
}

impl Drop for Trampoline {
    fn drop(&mut self) {
        let mut known = self.known.lock();
        // There may be another one of the type by now.
        if known.get(&self.ty).is_some_and(|found| found.strong_count() == 0) {
            known.remove(&self.ty);
        }
        if known.len() < known.capacity() / 4 {
            known.shrink_to_fit();
        }
    }
}

/// The trampolines that a module keeps, by its types.
pub(crate) struct ModuleTrampolines {
    budget: Arc<ModuleBudget>,
    /// The first type that is equal to each. The lists have entries for it alone.
    first_equal: Box<[u32]>,
    to_host: Box<[Kept]>,
    from_host: Box<[Kept]>,
    /// What the budget has been asked for, in step with both: this and the budget change together.
    paid: Mutex<[Vec<bool>; 2]>,
}

type Kept = OnceLock<Arc<Trampoline>>;

impl ModuleTrampolines {
    /// None yet.
    pub(crate) fn new(module: &VerifiedModule, budget: Arc<ModuleBudget>) -> ModuleTrampolines {
        let types = &module.module().types;
        let n_types = types.len();
        let mut firsts = HashMap::with_capacity(n_types);
        let first_equal = (0..).zip(types).map(|(i, ty)| *firsts.entry(ty).or_insert(i)).collect();
        let kept = || std::iter::repeat_with(Kept::new).take(n_types).collect();
        let paid = Mutex::new([vec![false; n_types], vec![false; n_types]]);
        ModuleTrampolines { budget, first_equal, to_host: kept(), from_host: kept(), paid }
    }

    /// Makes and keeps the trampolines to the host of types of the module, which pays for all of them before
    /// the first one is made.
    ///
    /// # Errors
    /// If they exceed the budget, or there is no memory for code.
    pub(crate) fn prepare_imports(
        &self,
        native: &NativeEngine,
        module: &VerifiedModule,
        types: impl Iterator<Item = u32>,
    ) -> Result<(), Error> {
        let types = types.map(|ty| self.first_equal[ty as usize]);
        let missing = types.filter(|&ty| self.to_host[ty as usize].get().is_none());
        let missing: Vec<u32> = missing.collect();
        if missing.is_empty() {
            return Ok(());
        }
        self.pay(Way::ToHost, module, &missing)?;
        missing.iter().try_for_each(|&ty| self.keep(Way::ToHost, native, module, ty).map(|_| ()))
    }

    /// Keeps the trampoline to the host of a type of the module, for a function of the embedder, who has
    /// had it made.
    ///
    /// # Errors
    /// If there is no memory for code.
    pub(crate) fn keep_import(
        &self,
        native: &NativeEngine,
        module: &VerifiedModule,
        ty: u32,
    ) -> Result<(), Error> {
        self.keep(Way::ToHost, native, module, self.first_equal[ty as usize]).map(|_| ())
    }

    /// The trampoline from the host of a type of the module.
    ///
    /// # Errors
    /// If it exceeds the budget, or there is no memory for code.
    pub(crate) fn entry(
        &self,
        native: &NativeEngine,
        module: &VerifiedModule,
        ty: u32,
    ) -> Result<Arc<Trampoline>, Error> {
        let ty = self.first_equal[ty as usize];
        self.pay(Way::FromHost, module, &[ty])?;
        self.keep(Way::FromHost, native, module, ty)
    }

    /// Makes and keeps a trampoline of a type to which none before is equal.
    fn keep(
        &self,
        way: Way,
        native: &NativeEngine,
        module: &VerifiedModule,
        ty: u32,
    ) -> Result<Arc<Trampoline>, Error> {
        let kept = match way {
            Way::ToHost => &self.to_host[ty as usize],
            Way::FromHost => &self.from_host[ty as usize],
        };
        if let Some(trampoline) = kept.get() {
            return Ok(trampoline.clone());
        }
        let made = native.trampoline(way, &module.module().types[ty as usize]);
        let made = made.map_err(Error::compile)?;
        Ok(kept.get_or_init(|| made).clone())
    }

    /// Takes from the budget what the trampolines of these types cost, as far as it was not taken before: all
    /// of it or nothing.
    fn pay(&self, way: Way, module: &VerifiedModule, types: &[u32]) -> Result<(), Error> {
        let mut paid = self.paid.lock().unwrap_or_else(PoisonError::into_inner);
        let paid = &mut paid[way as usize];
        let is_due = |ty: &&u32| !std::mem::replace(&mut paid[**ty as usize], true);
        let due: Vec<u32> = types.iter().filter(is_due).copied().collect();
        let cost = |&ty: &u32| trampoline::time(&module.module().types[ty as usize]);
        let result = self.budget.draw(due.iter().map(cost).sum());
        if result.is_err() {
            due.iter().for_each(|&ty| paid[ty as usize] = false);
        }
        result.map_err(Error::compile)
    }
}
