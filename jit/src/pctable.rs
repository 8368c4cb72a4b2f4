//! From places in native code back to the bytecode.
//!
//! A [`PcTable`] describes the code of one unit (a module, or a trampoline): where it can trap and why,
//! and where its calls return to, each with the place in the bytecode. Offsets count from the start of
//! the unit. Reading allocates nothing, so that the signal handler can ask whether a pc may trap.

use std::sync::Arc;

use slotvm_bytecode::{TrapCode, VerifiedModule};

/// A place in the bytecode of a module.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The function, in the module's index space.
    pub(crate) func: u32,
    /// The code offset.
    pub(crate) offset: u32,
    /// The place of the call that the function was inlined at, or [`PlaceId::NONE`].
    pub(crate) inlined_at: PlaceId,
}

/// An entry of a unit's list of places.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlaceId(pub(crate) u32);

impl PlaceId {
    /// No place: code that belongs to no bytecode.
    pub(crate) const NONE: PlaceId = PlaceId(u32::MAX);
}

/// Why native code stops.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum TrapReason {
    /// The guest traps.
    Guest(TrapCode),
    /// A host function failed; its error is pending in the store.
    HostError,
}

/// An instruction that can trap.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrapSite {
    /// The offset of the instruction.
    pub(crate) offset: u32,
    /// Why it traps.
    pub(crate) reason: TrapReason,
    /// The bytecode that it was made from.
    pub(crate) place: PlaceId,
}

/// A call.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallSite {
    /// The offset that it returns to.
    pub(crate) offset: u32,
    /// The bytecode that it was made from.
    pub(crate) place: PlaceId,
}

/// What there is to know about the code of a unit.
#[derive(Debug, Default)]
pub(crate) struct PcTable {
    /// The address of the code.
    pub(crate) base: usize,
    /// The module that the places belong to; trampolines have none.
    pub(crate) module: Option<Arc<VerifiedModule>>,
    /// In ascending order of offset.
    pub(crate) traps: Vec<TrapSite>,
    /// In ascending order of offset.
    pub(crate) calls: Vec<CallSite>,
    pub(crate) places: Vec<Place>,
}

impl PcTable {
    /// What the instruction at `pc` traps for, if it can trap.
    pub(crate) fn trap_at(&self, pc: usize) -> Option<TrapSite> {
        let offset = pc.checked_sub(self.base)? as u32;
        let i = self.traps.binary_search_by_key(&offset, |site| site.offset).ok()?;
        Some(self.traps[i])
    }

    /// The call that returns to `pc`, if one does.
    pub(crate) fn call_returning_to(&self, pc: usize) -> Option<CallSite> {
        let offset = pc.checked_sub(self.base)? as u32;
        let i = self.calls.binary_search_by_key(&offset, |site| site.offset).ok()?;
        Some(self.calls[i])
    }

    /// A place and those that it is inlined at, innermost first.
    pub(crate) fn places(&self, innermost: PlaceId) -> impl Iterator<Item = Place> + '_ {
        let get = |id: PlaceId| self.places.get(id.0 as usize).copied();
        std::iter::successors(get(innermost), move |place| get(place.inlined_at))
    }
}
