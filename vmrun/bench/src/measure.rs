//! Runs programs in every slot mode and measures times.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use slotvm::compiler::{Effort, FunctionCounts, FunctionInfo};
use slotvm::{Engine, Module, PassSet, SlotMode};
use slotvm_bytecode::printable::Printable;

use super::clock::thread_cpu_time;
use super::interrupt::Stop;
use super::program::{self, Program};
use super::statistics::Estimate;
use super::{
    ModeInfo, ModeReport, ProgramReport, Report, SCHEMA, SCHEMA_VERSION, mean_ratios, stage_names,
};
use vmrun_base::error::CliError;

/// A short program is run repeatedly, each time as a new instance, until this much time has passed.
const RUNS_TIME_MIN: Duration = Duration::from_millis(10);

/// The places that the code of a program is put to, one in each round: as many as differ in their start in two cache
/// lines.
const PLACEMENTS_MAX: u32 = 16;

/// A run is a figure if it takes this many times as long as one that does nothing: to enter a new instance, and to read
/// the clock. How long that is depends on the machine, and on what else it does.
const IDLE_RUNS_MIN: u64 = 10;

/// Settings of a measurement.
#[derive(Clone, Debug)]
pub struct Options {
    /// Rounds of each program; zero counts as one.
    pub rounds: u32,
    /// The size to run programs with, except WASI programs; `None` for that of the source.
    pub size: Option<i32>,
    /// The optional passes.
    pub passes: PassSet,
}

/// Runs all programs in all modes, discarding their output. Once `stop` is set, it returns the rounds that are complete.
///
/// # Errors
/// Fails if a program cannot be loaded or fails.
pub fn measure(paths: &[PathBuf], options: &Options, stop: &Stop) -> Result<Report, CliError> {
    let rounds = options.rounds.max(1);
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} rounds, {eta} left: {msg}")
        .expect("the template is valid");
    let n_rounds = paths.len() as u64 * u64::from(rounds);
    let progress = ProgressBar::new(n_rounds).with_style(style);
    let run_ns_min = IDLE_RUNS_MIN * idle_run(options.passes)?;
    let mut programs = Vec::with_capacity(paths.len());
    for path in paths {
        progress.set_message(Printable(&program::name(path)).to_string());
        let program = Program::load(path, options.size)?;
        programs.extend(measure_program(&program, rounds, options.passes, stop, &progress)?);
        if stop.is_set() {
            break;
        }
    }
    progress.finish_and_clear();
    Ok(Report {
        schema: SCHEMA,
        version: SCHEMA_VERSION,
        cranelift: slotvm::CRANELIFT_VERSION.to_owned(),
        target: slotvm::host_target(),
        rounds,
        run_ns_min,
        partial: stop.is_set(),
        passes: options.passes.to_string(),
        modes: ModeInfo::all(),
        mean_ratios: mean_ratios(&programs),
        programs,
        diff: None,
    })
}

/// The time of a run that does nothing, after the first ones, which also read what every run needs into the caches.
fn idle_run(passes: PassSet) -> Result<u64, CliError> {
    let program = Program::idle();
    let module = program.compile(&program::engine(SlotMode::Ssa, passes)?)?;
    run(&program, &module)?;
    run(&program, &module)
}

/// Measures a program, or returns `None` if not even one round was completed.
fn measure_program(
    program: &Program,
    rounds: u32,
    passes: PassSet,
    stop: &Stop,
    progress: &ProgressBar,
) -> Result<Option<ProgramReport>, CliError> {
    let mut contenders = Vec::new();
    for mode in SlotMode::ALL {
        contenders.push(Contender::new(mode, passes, rounds.min(PLACEMENTS_MAX) as usize)?);
    }
    let mut n_complete = 0;
    'rounds: for round in 0..rounds as usize {
        for i in 0..contenders.len() {
            if stop.is_set() {
                break 'rounds;
            }
            // Each round begins with another mode, since the first one may find caches in another state.
            let n = contenders.len();
            contenders[(round + i) % n].round(program, round)?;
        }
        n_complete += 1;
        progress.inc(1);
    }
    if n_complete == 0 {
        return Ok(None);
    }
    for contender in contenders.iter_mut().take_while(|_| !stop.is_set()) {
        contender.count(program, passes)?;
    }
    let modes = contenders.into_iter().map(|contender| contender.report(n_complete)).collect();
    Ok(Some(ProgramReport::new(program.name.clone(), program.size, program.n_ops, modes)))
}

/// One slot mode, and its figures so far.
struct Contender {
    mode: SlotMode,
    /// An engine for each place of code.
    engines: Vec<Engine>,
    report: ModeReport,
}

impl Contender {
    fn new(mode: SlotMode, passes: PassSet, n_placements: usize) -> Result<Contender, CliError> {
        let engines = (0..n_placements).map(|i| program::engine_at(mode, passes, i));
        let engines = engines.collect::<Result<_, CliError>>()?;
        Ok(Contender { mode, engines, report: ModeReport::unmeasured(mode) })
    }

    /// The figures of the first rounds, those that all modes have completed.
    fn report(mut self, n_rounds: usize) -> ModeReport {
        self.report.rounds_ns.truncate(n_rounds);
        self.report.compile_rounds_ns.truncate(n_rounds);
        self.report.set_run_time();
        self.report
    }

    /// Runs once more, with code that counts.
    fn count(&mut self, program: &Program, passes: PassSet) -> Result<(), CliError> {
        let mut config = program::config_at(self.mode, passes, 0);
        let module = program.compile(&Engine::new(config.count_blocks(true))?)?;
        program.start(&module)?.call()?;
        let counts = module.block_counts();
        self.report.slot_reads = Some(counts.iter().map(FunctionCounts::slot_reads).sum());
        self.report.slot_writes = Some(counts.iter().map(FunctionCounts::slot_writes).sum());
        Ok(())
    }

    /// Compiles once, and runs at least once.
    fn round(&mut self, program: &Program, round: usize) -> Result<(), CliError> {
        let module = program.compile(&self.engines[round % self.engines.len()])?;
        let report = &mut self.report;
        report.rounds_ns.push(run(program, &module)?);
        report.compile_rounds_ns.push(nanos(module.timings().total()));
        for (least, (_, time)) in report.stages_ns.iter_mut().zip(module.timings().stages()) {
            *least = nanos(time).min(*least);
        }
        report.set_sizes(&module.functions());
        Ok(())
    }
}

/// The median time of the runs of a round.
fn run(program: &Program, module: &Module) -> Result<u64, CliError> {
    let start = Instant::now();
    let mut runs = Vec::new();
    while runs.is_empty() || start.elapsed() < RUNS_TIME_MIN {
        let mut run = program.start(module)?;
        let before = thread_cpu_time();
        run.call()?;
        runs.push(nanos(thread_cpu_time() - before));
    }
    runs.sort_unstable();
    let middle = runs.len() / 2;
    // With the lower one of two in the middle, the figure of short programs would be too small.
    Ok(if runs.len() % 2 == 0 { runs[middle - 1].midpoint(runs[middle]) } else { runs[middle] })
}

fn nanos(time: Duration) -> u64 {
    time.as_nanos() as u64
}

impl ModeReport {
    /// A report without rounds. The times of stages are the maximum, so that any measured time is less.
    pub(super) fn unmeasured(mode: SlotMode) -> ModeReport {
        ModeReport {
            mode: mode.name(),
            run_ns: 0,
            run_interval_ns: None,
            ratio: Estimate { value: 1.0, interval: None },
            rounds_ns: Vec::new(),
            stages_ns: vec![u64::MAX; stage_names().len()],
            compile_rounds_ns: Vec::new(),
            code_bytes: 0,
            frame_bytes: 0,
            slot_bytes: 0,
            spill_bytes: 0,
            phis: 0,
            slots_kept: 0,
            slots_unpromoted: 0,
            slot_reads: None,
            slot_writes: None,
            with_less_work: Vec::new(),
        }
    }

    /// Sets the figures that do not depend on time, from the functions of the module.
    fn set_sizes(&mut self, functions: &[&FunctionInfo]) {
        let sum = |of: fn(&FunctionInfo) -> u64| functions.iter().map(|f| of(f)).sum::<u64>();
        let with_less_work = functions.iter().filter(|f| f.work.effort != Effort::AsAsked);
        self.with_less_work = with_less_work.map(|function| function.name.clone()).collect();
        self.code_bytes = sum(|f| f.sizes.code_bytes as u64);
        self.frame_bytes = sum(|f| f.sizes.frame_bytes.into());
        self.slot_bytes = sum(|f| f.sizes.slot_bytes.into());
        self.spill_bytes = self.frame_bytes.saturating_sub(self.slot_bytes);
        self.phis = sum(|f| f.sizes.n_phis as u64);
        self.slots_kept = sum(|f| f.promotion.map_or(0, |report| report.n_kept as u64));
        self.slots_unpromoted = sum(|f| {
            let too_large = f.promotion.filter(|report| report.too_large.is_some());
            too_large.map_or(0, |report| report.n_slots as u64)
        });
    }
}
