//! Slot modes: the place of a function's slots in native code.

use std::fmt;
use std::str::FromStr;

/// Location of a function's slots in native code: its locals, and the operands that outlive their basic block.
///
/// The three memory modes lower the slot form of the IR and keep each slot in 8 bytes of the native
/// frame. They differ in what the optimiser may do about it, so that what promotion buys can be told
/// from what Cranelift's own optimisations buy.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Default)]
pub enum SlotMode {
    /// Slots in memory, optimisation level `none`: each read is a load, each write a store.
    Memory,
    /// Slots in memory, optimisation level `speed`, but a fence before each read of a slot keeps
    /// reads and writes as they are. The fence costs no instruction; it also keeps the optimiser from
    /// forwarding accesses of linear memory across it.
    MemoryOpt,
    /// Slots in memory, optimisation level `speed`; Cranelift forwards stores to loads and removes
    /// dead stores where it can: inside a block, and across blocks without merges.
    MemoryForwarded,
    /// Slots as variables of cranelift-frontend, which builds SSA on the fly (Braun et al. 2013), with
    /// each block sealed as soon as its predecessors are filled, its best case.
    Variables,
    /// Slots promoted to SSA values by `slotvm-ssa` before Cranelift sees the function.
    #[default]
    Ssa,
}

impl SlotMode {
    /// All modes, from the plain baseline to full promotion.
    pub const ALL: [SlotMode; 5] = [
        SlotMode::Memory,
        SlotMode::MemoryOpt,
        SlotMode::MemoryForwarded,
        SlotMode::Variables,
        SlotMode::Ssa,
    ];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            SlotMode::Memory => "memory",
            SlotMode::MemoryOpt => "memory-opt",
            SlotMode::MemoryForwarded => "memory-forwarded",
            SlotMode::Variables => "variables",
            SlotMode::Ssa => "ssa",
        }
    }

    /// Whether slots live in memory.
    pub const fn is_memory(self) -> bool {
        matches!(self, SlotMode::Memory | SlotMode::MemoryOpt | SlotMode::MemoryForwarded)
    }

    /// Whether the mode compiles the SSA form of the IR; the others compile the slot form.
    pub const fn is_promoted(self) -> bool {
        matches!(self, SlotMode::Ssa)
    }

    /// Returns a description of the mode, for reports.
    pub const fn description(self) -> &'static str {
        match self {
            SlotMode::Memory => "slots in the native frame, opt level none, nothing forwarded",
            SlotMode::MemoryOpt => "slots in the native frame, opt level speed, slot reads fenced",
            SlotMode::MemoryForwarded => {
                "slots in the native frame, opt level speed, Cranelift may forward"
            }
            SlotMode::Variables => "slots as cranelift-frontend variables, opt level speed",
            SlotMode::Ssa => "slots promoted to SSA values by slotvm-ssa, opt level speed",
        }
    }
}

impl fmt::Display for SlotMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The error of an unknown slot mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown slot mode `{0}`; expected memory, memory-opt, memory-forwarded, variables or ssa")]
pub struct ParseSlotModeError(String);

impl FromStr for SlotMode {
    type Err = ParseSlotModeError;

    fn from_str(name: &str) -> Result<SlotMode, ParseSlotModeError> {
        let mode = SlotMode::ALL.into_iter().find(|mode| mode.name() == name);
        mode.ok_or_else(|| ParseSlotModeError(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_the_error_lists_them() {
        for mode in SlotMode::ALL {
            assert_eq!(mode.name().parse(), Ok(mode));
            assert_eq!(mode.to_string(), mode.name());
        }
        let error = "mem".parse::<SlotMode>().unwrap_err().to_string();
        for mode in SlotMode::ALL {
            assert!(error.contains(mode.name()), "{error}");
        }
    }
}
