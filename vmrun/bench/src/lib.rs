//! The memory-against-register report: real programs in every slot mode, side by side in one run.
//!
//! [`mod@measure`] runs the programs. [`table`], [`markdown`] and [`html`] print the figures, `chart` (feature `charts`)
//! draws them, [`losses`] explains those that are bad, and [`diff`] compares them with an earlier report.
//!
//! Times are CPU time ([`clock`]). A round runs all modes of a program one after the other, so that a change of the
//! machine's speed affects all of them, and each round begins with another mode. Each round puts code to another place,
//! since its time depends on that. So the rounds of two modes are paired, and [`statistics`] makes an interval of their
//! ratios.
//!
//! [`Report`] is also what `--json` writes; its fields are the schema. Fields may be added without a new
//! [`SCHEMA_VERSION`], so that readers should ignore unknown ones. Numbers are whole unless they are ratios. Times are in
//! nanoseconds. An interval is an array of its two ends, or null with a single round.

#[cfg(feature = "charts")]
pub mod chart;
pub mod clock;
mod command;
pub mod description;
pub mod diff;
pub mod html;
pub mod interrupt;
pub mod losses;
pub mod markdown;
pub mod measure;
pub mod program;
pub mod statistics;
pub mod table;

use serde::{Serialize, Serializer};
use slotvm::{SlotMode, Timings};

use diff::Diff;
use losses::Loss;
use statistics::{CONFIDENCE, Estimate, LogMean};

/// [`Report::schema`].
pub const SCHEMA: &str = "slotvm-bench";
/// [`Report::version`].
pub const SCHEMA_VERSION: u32 = 1;

/// A mode counts as faster than `ssa` if it takes less than this fraction of its time.
const FASTER_THAN_SSA: f64 = 1.0 / 1.03;

/// All figures of one run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The name of the schema, [`SCHEMA`].
    pub schema: &'static str,
    /// The version of the schema, [`SCHEMA_VERSION`].
    pub version: u32,
    /// The version of Cranelift.
    pub cranelift: String,
    /// The target triple.
    pub target: String,
    /// The number of rounds that was asked for.
    pub rounds: u32,
    /// The shortest run that is a figure, in nanoseconds of CPU time.
    pub run_ns_min: u64,
    /// Whether the measurement was interrupted, so that programs or rounds are missing.
    pub partial: bool,
    /// The optional passes, as `--passes` takes them.
    pub passes: String,
    /// The slot modes.
    pub modes: Vec<ModeInfo>,
    /// The programs.
    pub programs: Vec<ProgramReport>,
    /// The geometric mean over all programs of the time of each other mode divided by that of `ssa`.
    pub mean_ratios: Vec<MeanRatio>,
    /// The comparison with an earlier report, if one was given.
    pub diff: Option<Diff>,
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
    /// The modes that are faster than `ssa`: `ssa` is more than 3% slower, and the interval excludes that they are equal.
    pub faster_than_ssa: Vec<&'static str>,
    /// The reason for each of these.
    pub losses: Vec<Loss>,
    /// The number of runs after which mode `ssa` has taken less time than mode `memory`, compilation included. Null if
    /// it is not shown to run faster, so that it never does.
    pub pays_after_runs: Option<u64>,
}

/// The figures of one program in one mode. Figures of functions are summed over all functions.
#[derive(Clone, Debug, Serialize)]
pub struct ModeReport {
    /// The mode.
    pub mode: &'static str,
    /// The CPU time of a run, without compilation and start-up: the geometric mean of `rounds_ns`.
    pub run_ns: u64,
    /// Its confidence interval.
    pub run_interval_ns: Option<[u64; 2]>,
    /// The time divided by that in mode `ssa`, from paired rounds.
    pub ratio: Estimate,
    /// The time of a run in each round: the median of the runs in it.
    pub rounds_ns: Vec<u64>,
    /// The shortest time of each stage of compilation, in the order of [`Timings::stages`].
    #[serde(serialize_with = "stages_by_name")]
    pub stages_ns: Vec<u64>,
    /// The time of all stages of compilation in each round.
    pub compile_rounds_ns: Vec<u64>,
    /// Size of the machine code, in bytes.
    pub code_bytes: u64,
    /// Size of the native frames, in bytes: slots in memory, spilled and saved registers.
    pub frame_bytes: u64,
    /// The part of the frames for slots in memory and results of calls, in bytes.
    pub slot_bytes: u64,
    /// The rest of the frames, in bytes: spilled and saved registers, and arguments.
    pub spill_bytes: u64,
    /// Number of phis.
    pub phis: u64,
    /// Number of slots that promotion leaves in memory because registers are short.
    pub slots_kept: u64,
    /// Number of slots of functions that promotion leaves alone because it would exceed a limit.
    pub slots_unpromoted: u64,
    /// Loads from slots in the native frame in one run, counted by code with counters; null if the measurement was
    /// interrupted before.
    pub slot_reads: Option<u64>,
    /// Stores to slots in the native frame in one run, zeros of new locals included.
    pub slot_writes: Option<u64>,
    /// The functions that were compiled at a lower effort level, to stay within the budget.
    pub with_less_work: Vec<String>,
}

/// The ratio of a mode's time to that of `ssa`.
#[derive(Clone, Debug, Serialize)]
pub struct MeanRatio {
    /// The mode.
    pub mode: &'static str,
    /// Geometric mean of time over time. The interval is that of the noise in these programs, not one for other programs.
    pub ratio: Estimate,
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
    /// A report of a program with its figures in all modes, which lack [`ModeReport::ratio`] so far.
    fn new(name: String, size: Option<i32>, ops: u64, modes: Vec<ModeReport>) -> ProgramReport {
        let (faster_than_ssa, losses) = (Vec::new(), Vec::new());
        let mut report = ProgramReport {
            name,
            size,
            ops,
            modes,
            faster_than_ssa,
            losses,
            pays_after_runs: None,
        };
        for (i, mode) in SlotMode::ALL.into_iter().enumerate() {
            report.modes[i].ratio = report.log_ratio(mode).estimate(CONFIDENCE);
        }
        let is_faster = |&mode: &SlotMode| {
            let ratio = report.ratio(mode);
            ratio.value < FASTER_THAN_SSA && ratio.is_below_one()
        };
        report.faster_than_ssa = other_modes().filter(is_faster).map(SlotMode::name).collect();
        report.losses = losses::losses(&report);
        report.pays_after_runs = report.pays_after_runs();
        report
    }

    /// The figures in a mode.
    pub fn mode(&self, mode: SlotMode) -> &ModeReport {
        let i = SlotMode::ALL.iter().position(|&m| m == mode).expect("all modes are listed");
        &self.modes[i]
    }

    /// The time in a mode divided by the time in mode `ssa`.
    pub fn ratio(&self, mode: SlotMode) -> Estimate {
        self.mode(mode).ratio
    }

    /// The logarithm of that, from the ratio in each round.
    fn log_ratio(&self, mode: SlotMode) -> LogMean {
        let (rounds, ssa) = (&self.mode(mode).rounds_ns, &self.mode(SlotMode::Ssa).rounds_ns);
        LogMean::of(rounds.iter().zip(ssa).map(|(&ns, &ssa)| positive(ns) / positive(ssa)))
    }

    /// The reads of slots in the modes of [`table::IN_MEMORY`], and their writes; zeros if they were not counted.
    fn slot_accesses(&self) -> Vec<u64> {
        let of = |of: fn(&ModeReport) -> Option<u64>| {
            table::IN_MEMORY.map(|mode| of(self.mode(mode)).unwrap_or(0))
        };
        [of(|m| m.slot_reads), of(|m| m.slot_writes)].concat()
    }

    fn pays_after_runs(&self) -> Option<u64> {
        let (ssa, memory) = (self.mode(SlotMode::Ssa), self.mode(SlotMode::Memory));
        let saved = memory.run_ns.checked_sub(ssa.run_ns).filter(|&ns| ns > 0)?;
        let cost = ssa.compile_ns().saturating_sub(memory.compile_ns());
        memory.ratio.is_above_one().then(|| cost.div_ceil(saved))
    }
}

/// A time as a number that has a logarithm: the clock of a thread may not advance during a very short run.
fn positive(ns: u64) -> f64 {
    ns.max(1) as f64
}

impl ModeReport {
    /// The time of all stages of compilation, in nanoseconds.
    pub fn compile_ns(&self) -> u64 {
        self.stages_ns.iter().sum()
    }

    /// Sets the time of a run, and its interval, from those of the rounds.
    fn set_run_time(&mut self) {
        let mean = LogMean::of(self.rounds_ns.iter().map(|&ns| positive(ns)));
        let Estimate { value, interval } = mean.estimate(CONFIDENCE);
        self.run_ns = value.round() as u64;
        self.run_interval_ns = interval.map(|ends| ends.map(|end| end.round() as u64));
    }
}

/// The modes that `ssa` is compared with.
pub fn other_modes() -> impl Iterator<Item = SlotMode> {
    SlotMode::ALL.into_iter().filter(|&mode| mode != SlotMode::Ssa)
}

/// The geometric mean over all programs of the time of each other mode divided by that of `ssa`.
pub fn mean_ratios(programs: &[ProgramReport]) -> Vec<MeanRatio> {
    // Without programs, which an interruption can leave, there is no mean.
    let means =
        |mode: SlotMode| programs.iter().map(move |p| p.log_ratio(mode)).collect::<Vec<_>>();
    let mean = |mode: SlotMode| LogMean::average(&means(mode)).estimate(CONFIDENCE);
    let modes = other_modes().filter(|_| !programs.is_empty());
    modes.map(|mode| MeanRatio { mode: mode.name(), ratio: mean(mode) }).collect()
}

#[cfg(test)]
mod tests;
