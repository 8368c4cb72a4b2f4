//! The memory-against-register report: real programs in every slot mode, side by side in one run.
//!
//! [`measure`] runs the programs, [`table`] prints the figures, [`chart`] draws them; [`Report`] is
//! also what `--json` writes. Times are the least of several rounds; a round runs all modes of a
//! program one after the other, so that a change of the machine's speed meets all of them.

pub mod chart;
pub mod measure;
pub mod table;

use serde::Serialize;
use slotvm::SlotMode;

/// All figures of one run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The version of Cranelift.
    pub cranelift: String,
    /// The target triple.
    pub target: String,
    /// The number of rounds.
    pub rounds: u32,
    /// What the modes are.
    pub modes: Vec<ModeInfo>,
    /// The programs.
    pub programs: Vec<ProgramReport>,
    /// The geometric mean over all programs of the time of each other mode divided by that of `ssa`.
    pub mean_ratios: Vec<MeanRatio>,
}

/// What a slot mode means.
#[derive(Clone, Debug, Serialize)]
pub struct ModeInfo {
    /// Its name.
    pub name: &'static str,
    /// How it keeps slots, and Cranelift's optimisation level.
    pub meaning: &'static str,
}

/// The figures of one program.
#[derive(Clone, Debug, Serialize)]
pub struct ProgramReport {
    /// Its name.
    pub name: String,
    /// The size it ran with.
    pub size: i32,
    /// Its figures in each mode, in the order of [`Report::modes`].
    pub modes: Vec<ModeReport>,
}

/// The figures of one program in one mode.
#[derive(Clone, Debug, Serialize)]
pub struct ModeReport {
    /// The least time of a run, in nanoseconds, compilation and start-up left out.
    pub run_ns: u64,
    /// The least time of building the IR, promotion included, in nanoseconds.
    pub ssa_ns: u64,
    /// The least time of making CLIF, in nanoseconds.
    pub clif_ns: u64,
    /// The least time of Cranelift, in nanoseconds.
    pub cranelift_ns: u64,
    /// Machine code, in bytes.
    pub code_bytes: u64,
    /// Native frames of all functions, in bytes: slots in memory and spilled registers.
    pub frame_bytes: u64,
    /// Phis of all functions.
    pub phis: u64,
}

/// How much slower a mode is than `ssa`.
#[derive(Clone, Debug, Serialize)]
pub struct MeanRatio {
    /// The mode.
    pub mode: &'static str,
    /// Geometric mean of time over time.
    pub ratio: f64,
}

impl ModeInfo {
    /// What all modes are.
    pub fn all() -> Vec<ModeInfo> {
        let info = |&mode: &SlotMode| ModeInfo { name: mode.name(), meaning: mode.description() };
        SlotMode::ALL.iter().map(info).collect()
    }
}

impl ProgramReport {
    /// The figures in a mode.
    pub fn mode(&self, mode: SlotMode) -> &ModeReport {
        let i = SlotMode::ALL.iter().position(|&m| m == mode).expect("all modes are listed");
        &self.modes[i]
    }

    /// The time in a mode divided by the time in mode `ssa`.
    pub fn ratio(&self, mode: SlotMode) -> f64 {
        self.mode(mode).run_ns as f64 / self.mode(SlotMode::Ssa).run_ns as f64
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
