//! The compile-time budget, and the choice of an effort level that stays below it.
//!
//! Some small functions take a compiler seconds and gigabytes. So a module has a budget of time and
//! memory that its size alone decides (`shares`), and each function gets a share of it by its size: what
//! becomes of a function depends on no other one's costs, so not on the order or the thread in which
//! functions are compiled. The shares add up to what the module has.
//!
//! Costs are estimated from counts, never measured: points of time, each about a nanosecond, and bytes.
//! A function is compiled at the first effort level ([`Effort`]) whose estimate stays below its share. If
//! none does, it is refused. In which order they are tried, [`crate::compile::attempts`] says.
//!
//! The terms of an estimate were fitted to families of functions that are bad for one stage of the code
//! generator each ([`Cause`]), and are meant to be upper bounds of their cost within a small factor:
//!
//! * everything takes time and memory for instructions, blocks, edges, and operands of calls, and more for
//!   some opcodes (`excess`), of which each was measured;
//! * the register allocator takes them for operands of phis and for values that live in many blocks, and time for its
//!   dominators, which it finds by walking up the tree. Checks split blocks, and edges of switches have some of their
//!   own: values live in these, too. It has two more squares: for each block where a value is live it looks at all
//!   operands of phis that come after the last value in two separate stretches (`phi_scans`), and its liveness goes
//!   around loops. And for each value without a register it may look at each instruction where that lives
//!   (`n_crowded` in the block that makes it, `n_live_through` in others), after it has looked for one (`n_spilled`);
//! * the optimiser's alias analysis takes the square of the depth of loops, and what it finds twice, or
//!   takes out of a loop, or computes later than it stands, makes values live longer, addresses included that no form
//!   shows (`hidden`). It takes many times as
//!   much for chains of operations that it combines, as rotations of rotations. What is needed in several blocks
//!   of which none dominates the others it computes in each, with all that it is computed from (`copied`).
//!
//! What is costly to count is first replaced by an upper bound that is at hand, with which ordinary
//! functions stay below their share; only the others are looked at closely.

mod cause;
mod checks;
mod counts;
mod estimate;
mod estimates;
mod excess;
mod hidden;
mod module;
mod shares;
mod weights;

use std::fmt;

#[cfg(test)]
pub(crate) use checks::{n_checks_of, n_code_blocks};

pub use cause::Cause;
pub use counts::WorkCounts;
pub use estimates::Work;
pub use excess::Excess;

pub(crate) use estimates::{Candidate, Estimates, TooMuchWork};
pub(crate) use hidden::HiddenValues;
pub(crate) use module::{ModuleBudget, NEWER_VERSIONS_MAX, Overdrawn};
pub(crate) use shares::{Budget, Share};

/// Steps of a walk up the dominator tree that are counted: more are too many for any function.
pub(crate) const DOMINATOR_STEPS_MAX: u64 = 1 << 25;

/// Effort levels, from the best code to the least work.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Effort {
    /// The way of the slot mode.
    AsAsked,
    /// The way of the slot mode, without the optimiser.
    Unoptimised,
    /// Slots in memory and no optimiser, as in [`SlotMode::Memory`](crate::SlotMode::Memory).
    SlotsInMemory,
    /// The same, with registers allocated in one pass over the code.
    OnePass,
}

impl Effort {
    /// All of them, in their order.
    pub const ALL: [Effort; 4] =
        [Effort::AsAsked, Effort::Unoptimised, Effort::SlotsInMemory, Effort::OnePass];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Effort::AsAsked => "as asked",
            Effort::Unoptimised => "unoptimised",
            Effort::SlotsInMemory => "slots in memory",
            Effort::OnePass => "one pass",
        }
    }
}

impl fmt::Display for Effort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests;
