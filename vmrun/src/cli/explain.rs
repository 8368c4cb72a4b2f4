//! The arguments of `explain`.

use std::path::PathBuf;

use clap::Args;
use slotvm::PassSet;

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The program
    pub program: PathBuf,

    /// The function, by name or number [default: the largest one]
    #[arg(long, value_name = "F")]
    pub func: Option<String>,

    /// Path of the page, the JSON or the text [default: for a page, the program's name with the extension .html in the
    /// current folder; else standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Write JSON, as docs/explain.md describes it
    #[arg(long, conflicts_with_all = ["text", "at"])]
    pub json: bool,

    /// Write text
    #[arg(long)]
    pub text: bool,

    /// Write text that follows the instruction at this code offset, such as 001c, through all stages
    #[arg(long, value_name = "OFFSET", value_parser = parse_offset)]
    pub at: Option<u32>,

    /// Show these constructions of SSA form beside it
    #[cfg(feature = "explain")]
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',')]
    pub compare: Vec<crate::explain::Construction>,

    /// Show the number of executions of each block, as `vmrun profile --json` has written it
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,

    /// The passes: all, none, or a list such as -NAME or none,NAME
    #[arg(long, value_name = "PASSES", allow_hyphen_values = true, default_value_t)]
    pub passes: PassSet,
}

/// A code offset as the texts write it: hexadecimal, after an optional `@` or `0x`.
fn parse_offset(text: &str) -> Result<u32, String> {
    let digits = text.strip_prefix('@').or_else(|| text.strip_prefix("0x")).unwrap_or(text);
    u32::from_str_radix(digits, 16)
        .map_err(|_| format!("expected a code offset such as 001c, found {text:?}"))
}
