//! `vmrun bench`: the memory-against-register report.

use std::fs;

use super::print;
#[cfg(feature = "charts")]
use crate::bench::chart;
use crate::bench::{measure, program, table};
use crate::cli::BenchArgs;
use crate::error::CliError;

pub(super) fn bench(args: &BenchArgs) -> Result<(), CliError> {
    if args.svg.is_some() && !cfg!(feature = "charts") {
        return Err(CliError::NotBuilt { what: "charts", feature: "charts" });
    }
    let programs = program::find(&args.programs)?;
    let report = measure::measure(&programs, args.rounds, args.size, args.passes)?;
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
    Ok(())
}
