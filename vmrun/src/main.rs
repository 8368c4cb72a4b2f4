//! `vmrun`: runs, assembles, inspects and measures slotvm programs.

use std::process::ExitCode;

use clap::Parser;
use vmrun::cli::Cli;
use vmrun::commands;

fn main() -> ExitCode {
    match commands::execute(Cli::parse()) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
