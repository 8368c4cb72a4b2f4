//! `vmrun bench`: the memory-against-register report.

use std::fs;

use super::print;
use crate::bench::{chart, measure, program, table};
use crate::cli::BenchArgs;
use crate::error::CliError;

pub(super) fn bench(args: &BenchArgs) -> Result<(), CliError> {
    let programs = program::find(&args.programs)?;
    let report = measure::measure(&programs, args.rounds, args.size)?;
    print(&table::render(&report))?;
    if let Some(path) = &args.json {
        let json = serde_json::to_string_pretty(&report).expect("the report is plain data");
        fs::write(path, json + "\n").map_err(CliError::file(path))?;
    }
    if let Some(path) = &args.svg {
        let svg = chart::render(&report).map_err(|e| CliError::Failed(e.to_string()))?;
        fs::write(path, svg).map_err(CliError::file(path))?;
    }
    Ok(())
}
