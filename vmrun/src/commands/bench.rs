//! `vmrun bench`: the memory-against-register report.

use std::fs;
use std::path::PathBuf;

use super::print;
use crate::bench::{chart, measure, table};
use crate::cli::BenchArgs;
use crate::error::CliError;

pub(super) fn bench(args: &BenchArgs) -> Result<(), CliError> {
    let report = measure::measure(&programs(args)?, args.rounds, args.size)?;
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

/// The programs named, and the `.bc` files of folders named.
fn programs(args: &BenchArgs) -> Result<Vec<PathBuf>, CliError> {
    let mut programs = Vec::new();
    for path in &args.programs {
        if !path.is_dir() {
            programs.push(path.clone());
            continue;
        }
        let mut found = Vec::new();
        for entry in fs::read_dir(path).map_err(CliError::file(path))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "bc") {
                found.push(path);
            }
        }
        found.sort();
        programs.extend(found);
    }
    match programs.is_empty() {
        true => Err(CliError::Usage("there are no programs".into())),
        false => Ok(programs),
    }
}
