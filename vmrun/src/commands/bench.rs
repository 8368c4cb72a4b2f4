//! `vmrun bench`: the memory-against-register report.

use std::path::{Path, PathBuf};

#[cfg(feature = "charts")]
use crate::bench::chart;
use crate::bench::diff::{Old, diff};
use crate::bench::interrupt::Stop;
use crate::bench::measure::{Options, measure};
use crate::bench::{ProgramReport, Report, html, markdown, mean_ratios, program, table};
use crate::cli::BenchArgs;
use crate::error::{CliError, EXIT_FAILURE, EXIT_INTERRUPTED};
use crate::load;
use crate::output::{print, write_text};

/// Measures and reports, and returns the exit code.
pub(super) fn bench(args: &BenchArgs) -> Result<u8, CliError> {
    if args.svg.is_some() && !cfg!(feature = "charts") {
        return Err(CliError::NotBuilt { what: "charts", feature: "charts" });
    }
    let programs = program::find(&args.programs)?;
    if args.diff.is_some() && args.rounds < 2 {
        return Err(CliError::Usage("a comparison needs --rounds 2 or more".into()));
    }
    for (output, source) in outputs(args).flat_map(|o| args.programs.iter().map(move |p| (o, p))) {
        load::check_output(output, source)?;
    }
    let old = args.diff.as_deref().map(Old::read).transpose()?;
    let stop =
        Stop::at_ctrl_c().map_err(|e| CliError::Failed(format!("no handler of Ctrl-C: {e}")))?;
    let options = Options { rounds: args.rounds, size: args.size, passes: args.passes.set };
    let mut report = measure(&programs, &options, &stop)?;
    let too_short = take_too_short(&mut report);
    if report.programs.is_empty() {
        too_short?;
        return Ok(if report.partial { EXIT_INTERRUPTED } else { 0 });
    }
    report.diff = old.map(|old| diff(&old, &report));
    let mut outputs = outputs(args);
    if !outputs.any(load::is_standard) {
        print(&table::render(&report))?;
    }
    write(args, &report)?;
    too_short?;
    let is_slower = report.diff.is_some_and(|diff| !diff.slower.is_empty());
    Ok(match (report.partial, is_slower) {
        (true, _) => EXIT_INTERRUPTED,
        (false, true) => EXIT_FAILURE,
        (false, false) => 0,
    })
}

/// The files that were asked for.
fn outputs(args: &BenchArgs) -> impl Iterator<Item = &Path> {
    let all = [&args.json, &args.markdown, &args.html, &args.svg];
    all.into_iter().flatten().map(PathBuf::as_path)
}

/// Writes the files that were asked for.
fn write(args: &BenchArgs, report: &Report) -> Result<(), CliError> {
    let write = |path: &Path, text: String| write_text(path, &text);
    if let Some(path) = &args.json {
        let json = serde_json::to_string_pretty(report).expect("the report is plain data");
        write(path, json + "\n")?;
    }
    if let Some(path) = &args.markdown {
        write(path, markdown::render(report))?;
    }
    if let Some(path) = &args.html {
        write(path, html::render(report))?;
    }
    #[cfg(feature = "charts")]
    if let Some(path) = &args.svg {
        write(path, chart::render(report).map_err(|e| CliError::Failed(e.to_string()))?)?;
    }
    Ok(())
}

/// Takes the programs out of a report whose runs are too short to measure.
///
/// # Errors
/// Fails with their names if there are any.
fn take_too_short(report: &mut Report) -> Result<(), CliError> {
    let min = report.run_ns_min;
    let is_too_short = |program: &ProgramReport| program.modes.iter().any(|mode| mode.run_ns < min);
    let taken: Vec<_> = report.programs.extract_if(.., |program| is_too_short(program)).collect();
    if taken.is_empty() {
        return Ok(());
    }
    report.mean_ratios = mean_ratios(&report.programs);
    let names: Vec<&str> = taken.iter().map(|program| program.name.as_str()).collect();
    let names = names.join(", ");
    Err(CliError::Failed(format!(
        "runs of less than {min} ns are too short to measure: {names}; run them with a larger --size"
    )))
}
