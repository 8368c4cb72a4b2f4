//! Runs programs in every slot mode and measures times.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use slotvm::compiler::Rung;
use slotvm::{Engine, PassSet, SlotMode};

use super::clock::thread_cpu_time;
use super::program::{self, Program};
use super::{ModeInfo, ModeReport, ProgramReport, Report, mean_ratios, stage_names};
use crate::error::CliError;

/// A short program is run repeatedly, each time as a new instance, until this much time has passed.
const RUNS_TIME_MIN: Duration = Duration::from_millis(10);

/// The places that the code of a program is put to, one in each round.
const PLACEMENTS_MAX: u32 = 5;

/// Runs all programs in all modes with these passes, discarding their output.
///
/// # Errors
/// Fails if a program cannot be loaded or fails.
pub fn measure(
    paths: &[PathBuf],
    rounds: u32,
    size: Option<i32>,
    passes: PassSet,
) -> Result<Report, CliError> {
    let rounds = rounds.max(1);
    let style = ProgressStyle::with_template("{pos}/{len} {msg}").expect("the template is valid");
    let progress = ProgressBar::new(paths.len() as u64).with_style(style);
    let mut programs = Vec::with_capacity(paths.len());
    for path in paths {
        progress.set_message(program::name(path));
        programs.push(measure_program(&Program::load(path, size)?, rounds, passes)?);
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(Report {
        cranelift: slotvm::CRANELIFT_VERSION.to_owned(),
        target: slotvm::host_target(),
        rounds,
        passes: passes.to_string(),
        modes: ModeInfo::all(),
        mean_ratios: mean_ratios(&programs),
        programs,
    })
}

fn measure_program(
    program: &Program,
    rounds: u32,
    passes: PassSet,
) -> Result<ProgramReport, CliError> {
    let mut contenders = Vec::new();
    for mode in SlotMode::ALL {
        contenders.push(Contender::new(mode, passes, rounds.min(PLACEMENTS_MAX) as usize)?);
    }
    for round in 0..rounds as usize {
        for contender in &mut contenders {
            contender.round(program, round)?;
        }
    }
    let modes = contenders.into_iter().map(Contender::report).collect();
    Ok(ProgramReport::new(program.name.clone(), program.size, program.n_ops, modes))
}

/// One slot mode, and its figures so far.
struct Contender {
    /// An engine for each place of code, and the shortest run there.
    placements: Vec<(Engine, u64)>,
    report: ModeReport,
}

impl Contender {
    fn new(mode: SlotMode, passes: PassSet, n_placements: usize) -> Result<Contender, CliError> {
        let placement = |i| Ok((program::engine_at(mode, passes, i)?, u64::MAX));
        let placements = (0..n_placements).map(placement).collect::<Result<_, CliError>>()?;
        Ok(Contender { placements, report: ModeReport::unmeasured(mode) })
    }

    /// The figures. The run time is the median over the places of code.
    fn report(self) -> ModeReport {
        let mut runs_ns: Vec<u64> = self.placements.into_iter().map(|(_, run_ns)| run_ns).collect();
        runs_ns.sort_unstable();
        ModeReport { run_ns: runs_ns[runs_ns.len() / 2], ..self.report }
    }

    /// Compiles once, runs at least once, and keeps the shortest times.
    fn round(&mut self, program: &Program, round: usize) -> Result<(), CliError> {
        let i = round % self.placements.len();
        let (engine, run_ns) = &mut self.placements[i];
        let module = program.compile(engine)?;
        let report = &mut self.report;
        let start = Instant::now();
        loop {
            let mut run = program.start(&module)?;
            let before = thread_cpu_time();
            run.call()?;
            keep_least(run_ns, thread_cpu_time() - before);
            if start.elapsed() >= RUNS_TIME_MIN {
                break;
            }
        }
        for (least, (_, time)) in report.stages_ns.iter_mut().zip(module.timings().stages()) {
            keep_least(least, time);
        }
        let functions = module.functions();
        let with_less_work = functions.iter().filter(|f| f.work.rung != Rung::AsAsked);
        report.with_less_work = with_less_work.map(|function| function.name.clone()).collect();
        report.code_bytes = functions.iter().map(|f| f.sizes.code_bytes as u64).sum();
        report.frame_bytes = functions.iter().map(|f| u64::from(f.sizes.frame_bytes)).sum();
        report.slot_bytes = functions.iter().map(|f| u64::from(f.sizes.slot_bytes)).sum();
        report.phis = functions.iter().map(|f| f.sizes.n_phis as u64).sum();
        Ok(())
    }
}

fn keep_least(least: &mut u64, time: Duration) {
    *least = (*least).min(time.as_nanos() as u64);
}

impl ModeReport {
    /// A report whose times are the maximum, so that any measured time is less.
    fn unmeasured(mode: SlotMode) -> ModeReport {
        ModeReport {
            mode: mode.name(),
            run_ns: u64::MAX,
            stages_ns: vec![u64::MAX; stage_names().len()],
            code_bytes: 0,
            frame_bytes: 0,
            slot_bytes: 0,
            phis: 0,
            with_less_work: Vec::new(),
        }
    }
}
