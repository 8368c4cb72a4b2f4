//! `vmrun completions`: the completions of a shell.

use clap::CommandFactory;

use crate::cli::{Cli, CompletionsArgs};
use crate::error::CliError;
use crate::output::print;

pub(super) fn completions(args: &CompletionsArgs) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "vmrun", &mut script);
    print(&String::from_utf8(script).expect("scripts are text"))
}
