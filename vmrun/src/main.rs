//! `vmrun`: runs, assembles, inspects and measures slotvm programs.

use std::process::ExitCode;

use vmrun::cli::Cli;
use vmrun::{commands, panics};

fn main() -> ExitCode {
    panics::report_in_a_line();
    match commands::execute(Cli::from_args(std::env::args_os())) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            error.report();
            ExitCode::from(error.exit_code())
        }
    }
}
