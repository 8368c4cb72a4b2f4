//! The memory-against-register report: real programs in every slot mode, side by side in one run.
//!
//! [`mod@measure`] runs the programs, [`table`] prints the figures, `chart` (feature `charts`) draws them; [`Report`]
//! is also what `--json` writes. Times are CPU time ([`clock`]), the shortest of several rounds. A round runs all modes of
//! a program one after the other, so that a change of the machine's speed affects all of them. Rounds put the code of a
//! program to several places, since its time depends on that; the median over the places counts.

#[cfg(feature = "charts")]
pub mod chart;
pub mod clock;
mod command;
pub mod description;
pub mod measure;
pub mod program;
pub mod table;

use serde::{Serialize, Serializer};
use slotvm::{SlotMode, Timings};

/// A mode counts as faster than `ssa` if it takes less than this fraction of its time.
const FASTER_THAN_SSA: f64 = 1.0 / 1.03;

/// All figures of one run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The version of Cranelift.
    pub cranelift: String,
    /// The target triple.
    pub target: String,
    /// The number of rounds.
    pub rounds: u32,
    /// The optional passes, as `--passes` takes them.
    pub passes: String,
    /// The slot modes.
    pub modes: Vec<ModeInfo>,
    /// The programs.
    pub programs: Vec<ProgramReport>,
    /// The geometric mean over all programs of the time of each other mode divided by that of `ssa`.
    pub mean_ratios: Vec<MeanRatio>,
}

/// Name and description of a slot mode.
#[derive(Clone, Debug, Serialize)]
pub struct ModeInfo {
    /// Its name.
    pub name: &'static str,
    /// Location of slots in this mode, and Cranelift's optimisation level.
    pub meaning: &'static str,
}

/// The figures of one program.
#[derive(Clone, Debug, Serialize)]
pub struct ProgramReport {
    /// Its name.
    pub name: String,
    /// The size it ran with; `None` for WASI programs.
    pub size: Option<i32>,
    /// The number of bytecode instructions of all functions.
    pub ops: u64,
    /// Its figures in each mode, in the order of [`Report::modes`].
    pub modes: Vec<ModeReport>,
    /// The modes that are faster than `ssa`: `ssa` is more than 3% slower.
    pub faster_than_ssa: Vec<&'static str>,
}

/// The figures of one program in one mode. Figures of functions are summed over all functions.
#[derive(Clone, Debug, Serialize)]
pub struct ModeReport {
    /// The mode.
    pub mode: &'static str,
    /// The CPU time of a run, in nanoseconds, without compilation and start-up: the shortest at each place of the
    /// code, and of those the median.
    pub run_ns: u64,
    /// The shortest time of each stage of compilation, in nanoseconds, in the order of
    /// [`Timings::stages`].
    #[serde(serialize_with = "stages_by_name")]
    pub stages_ns: Vec<u64>,
    /// Size of the machine code, in bytes.
    pub code_bytes: u64,
    /// Size of the native frames, in bytes: slots in memory, spilled and saved registers.
    pub frame_bytes: u64,
    /// The part of the frames for slots in memory and results of calls, in bytes.
    pub slot_bytes: u64,
    /// Number of phis.
    pub phis: u64,
    /// The functions that were compiled at a lower effort level, to stay within the budget.
    pub with_less_work: Vec<String>,
}

/// The ratio of a mode's time to that of `ssa`.
#[derive(Clone, Debug, Serialize)]
pub struct MeanRatio {
    /// The mode.
    pub mode: &'static str,
    /// Geometric mean of time over time.
    pub ratio: f64,
}

/// The names of the stages of compilation: those of [`Timings::stages`].
pub fn stage_names() -> Vec<&'static str> {
    Timings::default().stages().map(|(name, _)| name).collect()
}

fn stages_by_name<S: Serializer>(ns: &[u64], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(stage_names().into_iter().zip(ns))
}

impl ModeInfo {
    /// Names and descriptions of all modes.
    pub fn all() -> Vec<ModeInfo> {
        let info = |&mode: &SlotMode| ModeInfo { name: mode.name(), meaning: mode.description() };
        SlotMode::ALL.iter().map(info).collect()
    }
}

impl ProgramReport {
    /// A report of a program with its figures in all modes.
    fn new(name: String, size: Option<i32>, ops: u64, modes: Vec<ModeReport>) -> ProgramReport {
        let mut report = ProgramReport { name, size, ops, modes, faster_than_ssa: Vec::new() };
        let is_faster = |&mode: &SlotMode| report.ratio(mode) < FASTER_THAN_SSA;
        report.faster_than_ssa = other_modes().filter(is_faster).map(SlotMode::name).collect();
        report
    }

    /// The figures in a mode.
    pub fn mode(&self, mode: SlotMode) -> &ModeReport {
        let i = SlotMode::ALL.iter().position(|&m| m == mode).expect("all modes are listed");
        &self.modes[i]
    }

    /// The time in a mode divided by the time in mode `ssa`.
    pub fn ratio(&self, mode: SlotMode) -> f64 {
        // The clock of a thread may not advance during a very short run.
        let ns = |mode| self.mode(mode).run_ns.max(1) as f64;
        ns(mode) / ns(SlotMode::Ssa)
    }
}

impl ModeReport {
    /// The time of all stages of compilation, in nanoseconds.
    pub fn compile_ns(&self) -> u64 {
        self.stages_ns.iter().sum()
    }
}

/// The modes that `ssa` is compared with.
pub fn other_modes() -> impl Iterator<Item = SlotMode> {
    SlotMode::ALL.into_iter().filter(|&mode| mode != SlotMode::Ssa)
}

/// The geometric mean over all programs of the time of each other mode divided by that of `ssa`.
pub fn mean_ratios(programs: &[ProgramReport]) -> Vec<MeanRatio> {
    let mean = |mode: SlotMode| {
        let logs: f64 = programs.iter().map(|program| program.ratio(mode).ln()).sum();
        (logs / programs.len() as f64).exp()
    };
    other_modes().map(|mode| MeanRatio { mode: mode.name(), ratio: mean(mode) }).collect()
}

#[cfg(test)]
mod tests;
