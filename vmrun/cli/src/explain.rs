//! The arguments of `explain`.

use std::path::PathBuf;

use clap::Args;

use super::{FuncArgs, OutputArgs, PassesArgs};

/// Arguments of `explain`.
#[derive(Debug, Args)]
#[command(mut_arg("func", |arg| arg.help("The function, by name or number [default: the largest one]")))]
#[command(mut_arg("output", |arg| arg.help(
    "Path of the page, the JSON or the text [default: for a page, the program's name with the extension .html in the \
     current folder; else standard output]"
)))]
pub struct ExplainArgs {
    /// The program
    pub program: PathBuf,

    /// Function
    #[command(flatten)]
    pub func: FuncArgs,

    /// Output
    #[command(flatten)]
    pub output: OutputArgs,

    /// Write JSON, as docs/explain.md describes it
    #[arg(long, conflicts_with_all = ["text", "at"])]
    pub json: bool,

    /// Write text
    #[arg(long)]
    pub text: bool,

    /// Write text that follows the instruction at this code offset, such as 001c, through all stages
    #[arg(long, value_name = "OFFSET", value_parser = parse_offset, allow_hyphen_values = true)]
    pub at: Option<u32>,

    /// Show these constructions of SSA form beside it
    #[cfg(feature = "explain")]
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',')]
    pub compare: Vec<slotvm_views::explain::Construction>,

    /// Show the code that the default tier makes after the run that `vmrun profile --json` has written to this file, with
    /// exits in place of blocks that have not run, and the number of executions of each block
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,

    /// Passes
    #[command(flatten)]
    pub passes: PassesArgs,
}

/// A code offset as the texts write it: hexadecimal, after an optional `@` or `0x`.
fn parse_offset(text: &str) -> Result<u32, String> {
    let digits = text.strip_prefix('@').or_else(|| text.strip_prefix("0x")).unwrap_or(text);
    u32::from_str_radix(digits, 16)
        .map_err(|_| format!("expected a code offset such as 001c, found {text:?}"))
}
