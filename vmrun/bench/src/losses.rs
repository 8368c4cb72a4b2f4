//! The rows in which `ssa` is slower than another mode, each with the reason that the figures show.

use serde::Serialize;
use slotvm::SlotMode;
use slotvm_bytecode::printable::counted;

use super::{ModeReport, ProgramReport};

/// A mode that is faster than `ssa`, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Loss {
    /// The faster mode.
    pub mode: &'static str,
    /// The reason, in one sentence.
    pub reason: String,
}

/// Bytes by which the frames of `ssa` exceed those of another mode, slots left out, for that to count as a cause. The alignment
/// of frames makes smaller differences.
const SPILLS_MIN: u64 = 32;

/// The losses of a program.
pub(super) fn losses(program: &ProgramReport) -> Vec<Loss> {
    let modes = SlotMode::ALL.into_iter();
    let faster = modes.filter(|mode| program.faster_than_ssa.contains(&mode.name()));
    faster.map(|mode| Loss { mode: mode.name(), reason: reason(program, mode) }).collect()
}

fn reason(program: &ProgramReport, mode: SlotMode) -> String {
    let (ssa, other) = (program.mode(SlotMode::Ssa), program.mode(mode));
    let is_faster = |mode: SlotMode| program.faster_than_ssa.contains(&mode.name());
    let mut causes = Vec::new();
    if !ssa.with_less_work.is_empty() {
        let n = ssa.with_less_work.len();
        causes.push(format!(
            "{} compiled at a lower effort level, to stay within the compile-time budget",
            counted(n as u64, "function was", "functions were")
        ));
    }
    if ssa.slots_unpromoted > 0 {
        causes.push(format!(
            "{} in memory, because promotion would exceed a limit",
            counted(ssa.slots_unpromoted, "slot stays", "slots stay")
        ));
    }
    let is_by_optimiser = mode == SlotMode::Memory && !is_faster(SlotMode::MemoryOpt);
    if is_by_optimiser {
        causes.push(
            "Cranelift's optimiser makes the slower code, not promotion: memory-opt, which also keeps slots in \
             memory but is optimised, is not faster"
                .to_owned(),
        );
    } else if ssa.spill_bytes >= other.spill_bytes + SPILLS_MIN {
        causes.push(spills(ssa, other, mode));
    }
    if ssa.slots_kept > 0 {
        causes.push(format!(
            "{} in memory, because registers are short around calls",
            counted(ssa.slots_kept, "slot stays", "slots stay")
        ));
    }
    if mode == SlotMode::Variables {
        causes.push(
            "slots are in registers in both modes, which differ by the passes on SSA form and the order of phis"
                .to_owned(),
        );
    }
    if causes.is_empty() {
        return format!(
            "frames, spills and phis show no cause: {}, and {} bytes of spilled and saved registers against {}",
            counted(ssa.phis, "phi", "phis"),
            ssa.spill_bytes,
            other.spill_bytes
        );
    }
    causes.join("; ")
}

fn spills(ssa: &ModeReport, other: &ModeReport, mode: SlotMode) -> String {
    format!(
        "more is spilled: {} and {} bytes of spilled and saved registers against {} in mode {mode}; values that live \
         across calls or find no register are copied to the frame and back",
        counted(ssa.phis, "phi", "phis"),
        ssa.spill_bytes,
        other.spill_bytes
    )
}
