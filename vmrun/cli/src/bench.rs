//! The arguments of `bench`.

use std::path::PathBuf;

use clap::Args;

use super::PassesArgs;

/// Arguments of `bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// Programs, or folders of them
    #[arg(required = true)]
    pub programs: Vec<PathBuf>,

    /// Rounds of each program in all modes, each with its code at another place; the times are geometric means over
    /// the rounds, with 95% intervals
    #[arg(long, value_name = "N", default_value_t = 5, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,

    /// The size to run programs with, except WASI programs [default: the `bench-size:` of the source]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub size: Option<i32>,

    /// Passes
    #[command(flatten)]
    pub passes: PassesArgs,

    /// Write the figures as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write the report as Markdown
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,

    /// Write the report as a page with bars, in one file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Compare with an earlier report, written by --json; exit with 1 if a time became longer beyond noise
    #[arg(long, value_name = "FILE")]
    pub diff: Option<PathBuf>,

    /// Draw the ratios as a bar chart
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}
