//! The trampolines that a module keeps, and the budget that pays for them.
//!
//! A module pays from its budget ([`ModuleBudget`]), once for each of its types and ways, whether the
//! trampoline had to be made or was there: so whether a module is refused does not depend on others. Equal
//! types count once. Trampolines that the embedder makes without a module are not charged.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use slotvm_bytecode::{FuncType, ValType, VerifiedModule};
use slotvm_runtime::Error;

use crate::compile::budget::ModuleBudget;
use crate::compile::contain::Containment;
use crate::compile::failure::{CompileFailure, Fails};
use crate::compile::subject::Subject;
use crate::lower::abi::Direction;
use crate::native::crossing::trampoline;
use crate::native::crossing::trampolines::Trampoline;
use crate::native::ownership::engine::NativeEngine;
use crate::native::ownership::kept::Kept;

/// The trampolines that a module keeps, by its types.
pub(crate) struct ModuleTrampolines {
    budget: Arc<ModuleBudget>,
    /// What becomes of trampolines that cannot be made.
    containment: Containment,
    /// The first type that is equal to each. The lists have entries for it alone.
    first_equal: Box<[u32]>,
    to_host: Box<[Made]>,
    from_host: Box<[Made]>,
    /// Those by which loops go on in native code, by the results of their functions.
    to_loops: Mutex<HashMap<Box<[ValType]>, Attempt>>,
    /// What the budget was charged for by direction and type; changes together with the budget.
    paid: Mutex<[Vec<Payment>; 2]>,
    /// The kept code, which may have some of them.
    code: Option<Arc<Kept>>,
}

/// A trampoline, or the error of one that nobody tries to make again.
type Attempt = Result<Arc<Trampoline>, String>;

type Made = OnceLock<Attempt>;

#[derive(Copy, Clone, PartialEq)]
enum Payment {
    Due,
    Paid,
    /// The budget has not sufficed, which is counted.
    Refused,
}

impl ModuleTrampolines {
    /// None yet.
    pub(crate) fn new(
        module: &VerifiedModule,
        budget: Arc<ModuleBudget>,
        containment: Containment,
        code: Option<Arc<Kept>>,
    ) -> ModuleTrampolines {
        let types = &module.module().types;
        let n_types = types.len();
        let mut firsts = HashMap::with_capacity(n_types);
        let first_equal = (0..).zip(types).map(|(i, ty)| *firsts.entry(ty).or_insert(i)).collect();
        let kept = || std::iter::repeat_with(Made::new).take(n_types).collect();
        let paid = Mutex::new([vec![Payment::Due; n_types], vec![Payment::Due; n_types]]);
        let to_loops = Mutex::default();
        ModuleTrampolines {
            budget,
            containment,
            first_equal,
            to_host: kept(),
            from_host: kept(),
            to_loops,
            paid,
            code,
        }
    }

    /// Those that were made or found.
    pub(crate) fn made(&self) -> Vec<Arc<Trampoline>> {
        let by_type = self.to_host.iter().chain(&self.from_host).filter_map(OnceLock::get);
        let to_loops = self.to_loops.lock().unwrap_or_else(PoisonError::into_inner);
        by_type.chain(to_loops.values()).flatten().cloned().collect()
    }

    /// Makes and keeps the trampolines to the host of types of the module, which pays for all of them before
    /// the first one is made.
    ///
    /// # Errors
    /// Fails if they exceed the budget, or there is no memory for code.
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
        self.pay(Direction::ToHost, module, &missing)?;
        missing
            .iter()
            .try_for_each(|&ty| self.keep(Direction::ToHost, native, module, ty).map(|_| ()))
    }

    /// Keeps the trampoline to the host of a type of the module, for a function of the embedder, who has
    /// had it made.
    ///
    /// # Errors
    /// Fails if there is no memory for code.
    pub(crate) fn keep_import(
        &self,
        native: &NativeEngine,
        module: &VerifiedModule,
        ty: u32,
    ) -> Result<(), Error> {
        self.keep(Direction::ToHost, native, module, self.first_equal[ty as usize]).map(|_| ())
    }

    /// The trampoline from the host of a type of the module.
    ///
    /// # Errors
    /// Fails if it exceeds the budget, or there is no memory for code.
    pub(crate) fn entry(
        &self,
        native: &NativeEngine,
        module: &VerifiedModule,
        ty: u32,
    ) -> Result<Arc<Trampoline>, Error> {
        self.paid(Direction::FromHost, native, module, ty)
    }

    /// The trampoline of guest code to host functions of a type of the module, and to functions of it that are interpreted.
    ///
    /// # Errors
    /// Fails if it exceeds the budget, or there is no memory for code.
    pub(crate) fn to_host(
        &self,
        native: &NativeEngine,
        module: &VerifiedModule,
        ty: u32,
    ) -> Result<Arc<Trampoline>, Error> {
        self.paid(Direction::ToHost, native, module, ty)
    }

    /// The trampoline by which loops of functions with these results go on in native code.
    ///
    /// # Errors
    /// Fails if it exceeds the budget, or there is no memory for code.
    pub(crate) fn loop_entry(
        &self,
        native: &NativeEngine,
        results: &[ValType],
    ) -> Result<Arc<Trampoline>, Error> {
        let kept = || self.to_loops.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(trampoline) = kept().get(results) {
            return trampoline.clone().map_err(Error::compile);
        }
        // Nobody waits for the compiler meanwhile. Another thread may be as far as this one, and pay as well.
        let ty = FuncType::new([ValType::I64], results);
        let made = match self.budget.draw(trampoline::time(&ty)) {
            Ok(()) => self.make(Direction::FromHost, native, &ty)?,
            Err(overdrawn) => {
                self.containment.failed(
                    Subject::Trampoline,
                    &Direction::FromHost.name(&ty),
                    &overdrawn,
                );
                Err(overdrawn.to_string())
            }
        };
        kept().entry(results.into()).or_insert(made).clone().map_err(Error::compile)
    }

    /// Makes a trampoline, or returns an error to keep in its place.
    ///
    /// # Errors
    /// Fails if the system has no memory, of which it may have more the next time.
    fn make(
        &self,
        direction: Direction,
        native: &NativeEngine,
        ty: &FuncType,
    ) -> Result<Result<Arc<Trampoline>, String>, Error> {
        match native.kept_trampoline(direction, ty, &self.containment, self.code.as_deref()) {
            Ok(made) => Ok(Ok(made)),
            Err(error) if error.failure() == CompileFailure::NoMemory => Err(Error::compile(error)),
            Err(error) => Ok(Err(error.to_string())),
        }
    }

    /// A trampoline of a type of the module, which pays for it.
    fn paid(
        &self,
        direction: Direction,
        native: &NativeEngine,
        module: &VerifiedModule,
        ty: u32,
    ) -> Result<Arc<Trampoline>, Error> {
        let ty = self.first_equal[ty as usize];
        self.pay(direction, module, &[ty])?;
        self.keep(direction, native, module, ty)
    }

    /// Makes and keeps a trampoline of a type to which none before is equal.
    fn keep(
        &self,
        direction: Direction,
        native: &NativeEngine,
        module: &VerifiedModule,
        ty: u32,
    ) -> Result<Arc<Trampoline>, Error> {
        let kept = match direction {
            Direction::ToHost => &self.to_host[ty as usize],
            Direction::FromHost => &self.from_host[ty as usize],
        };
        if let Some(trampoline) = kept.get() {
            return trampoline.clone().map_err(Error::compile);
        }
        let made = self.make(direction, native, &module.module().types[ty as usize])?;
        kept.get_or_init(|| made).clone().map_err(Error::compile)
    }

    /// Takes from the budget what the trampolines of these types cost, as far as it was not taken before: all
    /// of it or nothing.
    fn pay(
        &self,
        direction: Direction,
        module: &VerifiedModule,
        types: &[u32],
    ) -> Result<(), Error> {
        let mut paid = self.paid.lock().unwrap_or_else(PoisonError::into_inner);
        let paid = &mut paid[direction as usize];
        // Each type once, though it may be there several times.
        let due = |&ty: &u32| match std::mem::replace(&mut paid[ty as usize], Payment::Paid) {
            Payment::Paid => None,
            before => Some((ty, before)),
        };
        let due: Vec<(u32, Payment)> = types.iter().filter_map(due).collect();
        let ty = |ty: u32| &module.module().types[ty as usize];
        let cost = due.iter().map(|&(due, _)| trampoline::time(ty(due))).sum();
        self.budget.draw(cost).map_err(|overdrawn| {
            for (due, before) in due {
                if before == Payment::Due {
                    let name = direction.name(ty(due));
                    self.containment.failed(Subject::Trampoline, &name, &overdrawn);
                }
                paid[due as usize] = Payment::Refused;
            }
            Error::compile(overdrawn)
        })
    }
}
