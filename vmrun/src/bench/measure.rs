//! Running programs in every slot mode and taking times.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use slotvm::{Config, Engine, Linker, Module, SlotMode, Store, Tier, Val};
use slotvm_bytecode::VerifiedModule;

use super::{ModeInfo, ModeReport, ProgramReport, Report, mean_ratios};
use crate::error::CliError;
use crate::host::{self, Host};
use crate::load::load;

/// The size of a program whose text does not say `; bench-size: N`.
const DEFAULT_SIZE: i32 = 10;

/// Runs all programs in all modes. Their output is thrown away.
///
/// # Errors
/// If a program cannot be loaded or fails.
pub fn measure(paths: &[PathBuf], rounds: u32, size: Option<i32>) -> Result<Report, CliError> {
    let rounds = rounds.max(1);
    let style = ProgressStyle::with_template("{pos}/{len} {msg}").expect("the template is valid");
    let progress = ProgressBar::new(paths.len() as u64).with_style(style);
    let mut programs = Vec::with_capacity(paths.len());
    for path in paths {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        progress.set_message(name.clone());
        let size = size.unwrap_or_else(|| bench_size(path));
        programs.push(measure_program(path, name, size, rounds)?);
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(Report {
        cranelift: slotvm::CRANELIFT_VERSION.to_owned(),
        target: slotvm::host_target(),
        rounds,
        modes: ModeInfo::all(),
        mean_ratios: mean_ratios(&programs),
        programs,
    })
}

/// The size that the program's text, beside its binary, says to measure it with.
fn bench_size(path: &Path) -> i32 {
    let text = std::fs::read_to_string(path.with_extension("vasm")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("; bench-size:"));
    line.and_then(|size| size.trim().parse().ok()).unwrap_or(DEFAULT_SIZE)
}

/// What stays the same from round to round.
struct Contender {
    engine: Engine,
    report: ModeReport,
}

fn measure_program(
    path: &Path,
    name: String,
    size: i32,
    rounds: u32,
) -> Result<ProgramReport, CliError> {
    let module = std::sync::Arc::new(load(path)?.module);
    let mut contenders = Vec::new();
    for mode in SlotMode::ALL {
        let engine = Engine::new(Config::new().tier(Tier::Jit).slots(mode))?;
        contenders.push(Contender { engine, report: ModeReport::unmeasured() });
    }
    for _ in 0..rounds {
        for contender in &mut contenders {
            contender.round(&module, size)?;
        }
    }
    let modes = contenders.into_iter().map(|contender| contender.report).collect();
    Ok(ProgramReport { name, size, modes })
}

impl Contender {
    /// Compiles and runs once; keeps the least times.
    fn round(
        &mut self,
        verified: &std::sync::Arc<VerifiedModule>,
        size: i32,
    ) -> Result<(), CliError> {
        let module =
            Module::from_verified(&self.engine, verified.clone()).map_err(slotvm::Error::from)?;
        let mut linker = Linker::new(&self.engine);
        host::define(&mut linker)?;
        let mut store = Store::new(&self.engine, Host::new(io::sink(), io::empty(), &[]));
        let instance = linker.instantiate(&mut store, &module)?;
        let Some(main) = instance.get_func(&store, "main") else {
            return Err(CliError::Usage("a program to measure exports `main`".into()));
        };
        let ty = main.ty(&store);
        let params = vec![Val::I32(size); ty.params.len()];
        let mut results: Vec<Val> = ty.results.iter().map(|&ty| Val::default_for(ty)).collect();
        let start = Instant::now();
        main.call(&mut store, &params, &mut results)?;
        let run = start.elapsed();
        let (timings, functions) = (module.timings(), module.functions());
        let report = &mut self.report;
        let least = |least: &mut u64, time: Duration| *least = (*least).min(time.as_nanos() as u64);
        least(&mut report.run_ns, run);
        least(&mut report.ssa_ns, timings.slots + timings.ssa);
        least(&mut report.clif_ns, timings.clif);
        least(&mut report.cranelift_ns, timings.cranelift);
        report.code_bytes = functions.iter().map(|f| f.sizes.code_bytes as u64).sum();
        report.frame_bytes = functions.iter().map(|f| u64::from(f.sizes.frame_bytes)).sum();
        report.phis = functions.iter().map(|f| f.sizes.n_phis as u64).sum();
        Ok(())
    }
}

impl ModeReport {
    /// A report into which every time fits.
    fn unmeasured() -> ModeReport {
        const MAX: u64 = u64::MAX;
        ModeReport {
            run_ns: MAX,
            ssa_ns: MAX,
            clif_ns: MAX,
            cranelift_ns: MAX,
            code_bytes: 0,
            frame_bytes: 0,
            phis: 0,
        }
    }
}
