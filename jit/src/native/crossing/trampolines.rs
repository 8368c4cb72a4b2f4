//! Trampolines of an engine, shared by all users of a type.
//!
//! A trampoline ([`crate::native::crossing::trampoline`]) is made when it is first needed: the one to the host when a store
//! makes a host function of the type, the one from the host when the host first calls a function of the
//! type. It is freed with its last user:
//!
//! * a store keeps those whose addresses its functions have, and by which the host has called them;
//! * a module keeps those that its imports and calls have needed ([`crate::native::ownership::module_trampolines`]), so that
//!   its next instance finds them.
//!
//! The engine only knows which ones there are.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use slotvm_bytecode::FuncType;
use slotvm_runtime::native::NativeCode;

use crate::code::error::CodeError;
use crate::code::machine_code::MachineCode;
use crate::code::unit::CodeUnit;
use crate::lower::abi::Direction;
use crate::native::crossing::trampoline;
use crate::precompiled::Item;
use slotvm_runtime::native::EntryTrampoline;

/// A trampoline in use.
pub(crate) struct Trampoline {
    code: CodeUnit,
    direction: Direction,
    ty: FuncType,
    known: Arc<Known>,
}

/// The trampolines of one direction that exist, by their type.
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
        direction: Direction,
        ty: &FuncType,
        make: impl FnOnce() -> Result<CodeUnit, CodeError>,
    ) -> Result<Arc<Trampoline>, CodeError> {
        let known = match direction {
            Direction::ToHost => &self.to_host,
            Direction::FromHost => &self.from_host,
        };
        if let Some(trampoline) = known.get(ty) {
            return Ok(trampoline);
        }
        // Nobody waits for the compiler meanwhile. Another thread may be as far as this one, and win.
        let made = Trampoline { code: make()?, direction, ty: ty.clone(), known: known.clone() };
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

    /// Returns the number of trampolines.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.to_host.lock().len() + self.from_host.lock().len()
    }
}

impl Trampoline {
    /// The code of host functions of the type, which lives as long as the result.
    ///
    /// # Panics
    /// Panics if it leads the other direction.
    pub(crate) fn host_code(self: &Arc<Trampoline>) -> NativeCode {
        assert_eq!(self.direction, Direction::ToHost);
        NativeCode { address: self.code.func(0), owner: self.clone() }
    }

    /// The direction, the type, and the code, if it can be kept.
    pub(crate) fn to_item(&self) -> Option<(Item, MachineCode)> {
        let code = self.code.to_machine_code()?;
        Some((Item::Trampoline(self.direction, self.ty.clone()), code))
    }

    /// Returns the trampoline by which the host enters functions of the type. It lives as long as `self`.
    ///
    /// # Panics
    /// Panics if it leads the other direction.
    pub(crate) fn entry(&self) -> EntryTrampoline {
        assert_eq!(self.direction, Direction::FromHost);
        // SAFETY: `NativeEngine::trampoline`, which alone makes trampolines, has placed it for this direction, as was
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
