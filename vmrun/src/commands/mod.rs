//! The commands, one file for each job.

mod bench;
mod binary;
mod compile;
mod completions;
mod dis;
mod dump;
#[cfg(feature = "explain")]
mod explain;
#[cfg(feature = "explain")]
mod objdump;
mod ops;
mod opt;
mod profile;
mod run;
mod settings;
mod test;
mod times;
mod verify;
#[cfg(feature = "wat")]
mod wast;

use crate::cli::{Cli, Command};
use crate::error::CliError;

/// Executes the command line, and returns the exit code.
///
/// # Errors
/// Fails if the command fails.
pub fn execute(cli: Cli) -> Result<u8, CliError> {
    match (cli.command, cli.run) {
        (Some(Command::Run(args)), _) | (None, Some(args)) => run::run(&args),
        (Some(Command::Asm(args)), _) => {
            binary::write(&args.source, args.output.path.as_deref()).map(|()| 0)
        }
        (Some(Command::Convert(args)), _) => {
            binary::write(&args.source, args.output.path.as_deref()).map(|()| 0)
        }
        (Some(Command::Dis(args)), _) => dis::dis(&args).map(|()| 0),
        (Some(Command::Verify(args)), _) => verify::verify(&args).map(|()| 0),
        (Some(Command::Dump(args)), _) => dump::dump(&args).map(|()| 0),
        #[cfg(feature = "explain")]
        (Some(Command::Explain(args)), _) => explain::explain(&args).map(|()| 0),
        #[cfg(not(feature = "explain"))]
        (Some(Command::Explain(_)), _) => {
            Err(CliError::NotBuilt { what: "explain", feature: "explain" })
        }
        (Some(Command::Compile(args)), _) => compile::compile(&args).map(|()| 0),
        (Some(Command::Opt(args)), _) => opt::opt(&args).map(|()| 0),
        #[cfg(feature = "explain")]
        (Some(Command::Objdump(args)), _) => objdump::objdump(&args).map(|()| 0),
        #[cfg(not(feature = "explain"))]
        (Some(Command::Objdump(_)), _) => {
            Err(CliError::NotBuilt { what: "a disassembler", feature: "explain" })
        }
        (Some(Command::Ops), _) => ops::ops().map(|()| 0),
        (Some(Command::Settings(args)), _) => settings::settings(&args).map(|()| 0),
        (Some(Command::Completions(args)), _) => completions::completions(&args).map(|()| 0),
        (Some(Command::Test(args)), _) => test::test(&args).map(|()| 0),
        #[cfg(feature = "wat")]
        (Some(Command::Wast(args)), _) => wast::wast(&args).map(|()| 0),
        #[cfg(not(feature = "wat"))]
        (Some(Command::Wast(_)), _) => {
            Err(CliError::NotBuilt { what: "WebAssembly text", feature: "wat" })
        }
        (Some(Command::Bench(args)), _) => bench::bench(&args),
        (Some(Command::Profile(args)), _) => profile::profile(&args),
        (Some(Command::Crosscheck(args)), _) => vmrun_crosscheck::crosscheck(&args),
        (Some(Command::CrosscheckNative(args)), _) => {
            vmrun_crosscheck::native(&args.folder).map(|()| 0)
        }
        (None, None) => unreachable!("clap requires a command or a program"),
    }
}
