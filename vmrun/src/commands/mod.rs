//! The commands, one file each.

mod asm;
mod bench;
mod dis;
mod dump;
mod ops;
mod run;
mod test;
mod verify;

use clap::CommandFactory;

use crate::cli::{Cli, Command};
use crate::error::CliError;

/// Does what the command line says; gives the exit code.
///
/// # Errors
/// If the command fails.
pub fn execute(cli: Cli) -> Result<u8, CliError> {
    match (cli.command, cli.run) {
        (Some(Command::Run(args)), _) | (None, Some(args)) => run::run(&args),
        (Some(Command::Asm(args)), _) => asm::asm(&args).map(|()| 0),
        (Some(Command::Dis(args)), _) => dis::dis(&args).map(|()| 0),
        (Some(Command::Verify(args)), _) => verify::verify(&args).map(|()| 0),
        (Some(Command::Dump(args)), _) => dump::dump(&args).map(|()| 0),
        (Some(Command::Ops), _) => ops::ops().map(|()| 0),
        (Some(Command::Test(args)), _) => test::test(&args).map(|()| 0),
        (Some(Command::Bench(args)), _) => bench::bench(&args).map(|()| 0),
        (None, None) => {
            Cli::command().print_help()?;
            Ok(crate::error::EXIT_USAGE)
        }
    }
}

/// Writes a command's output. A reader that has gone away (`vmrun ops | head`) is no failure.
fn print(text: &str) -> Result<(), CliError> {
    use std::io::{ErrorKind, Write, stdout};
    match stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result?),
    }
}
