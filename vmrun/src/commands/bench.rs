//! `vmrun bench`: the memory-against-register report.

use std::fs;

use super::print;
#[cfg(feature = "charts")]
use crate::bench::chart;
use crate::bench::{ProgramReport, Report, mean_ratios, measure, program, table};
use crate::cli::BenchArgs;
use crate::error::CliError;

pub(super) fn bench(args: &BenchArgs) -> Result<(), CliError> {
    if args.svg.is_some() && !cfg!(feature = "charts") {
        return Err(CliError::NotBuilt { what: "charts", feature: "charts" });
    }
    let programs = program::find(&args.programs)?;
    let mut report = measure::measure(&programs, args.rounds, args.size, args.passes)?;
    let too_short = take_too_short(&mut report);
    if report.programs.is_empty() {
        return too_short;
    }
    print(&table::render(&report))?;
    if let Some(path) = &args.json {
        let json = serde_json::to_string_pretty(&report).expect("the report is plain data");
        fs::write(path, json + "\n").map_err(CliError::file(path))?;
    }
    #[cfg(feature = "charts")]
    if let Some(path) = &args.svg {
        let svg = chart::render(&report).map_err(|e| CliError::Failed(e.to_string()))?;
        fs::write(path, svg).map_err(CliError::file(path))?;
    }
    too_short
}

/// The shortest run that is a figure. Reading the clock takes a tenth of that.
const RUN_NS_MIN: u64 = 1000;

/// Takes the programs out of a report whose runs are too short to measure.
///
/// # Errors
/// Fails with their names if there are any.
fn take_too_short(report: &mut Report) -> Result<(), CliError> {
    let is_too_short =
        |program: &ProgramReport| program.modes.iter().any(|mode| mode.run_ns < RUN_NS_MIN);
    let taken: Vec<_> = report.programs.extract_if(.., |program| is_too_short(program)).collect();
    if taken.is_empty() {
        return Ok(());
    }
    report.mean_ratios = mean_ratios(&report.programs);
    let names: Vec<&str> = taken.iter().map(|program| program.name.as_str()).collect();
    let names = names.join(", ");
    Err(CliError::Failed(format!(
        "runs of less than {RUN_NS_MIN} ns are too short to measure: {names}; run them with a larger --size"
    )))
}
