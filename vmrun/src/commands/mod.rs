//! The commands, one file for each job.

mod bench;
mod binary;
mod compile;
mod completions;
mod crosscheck;
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

use std::fs;
use std::path::Path;

use slotvm_bytecode::printable::{Lines, Printable};

use crate::cli::{Cli, Command};
use crate::error::CliError;
use crate::load;

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
        (Some(Command::Crosscheck(args)), _) => crosscheck::crosscheck(&args),
        (Some(Command::CrosscheckNative(args)), _) => crosscheck::native(&args.folder).map(|()| 0),
        (None, None) => unreachable!("clap requires a command or a program"),
    }
}

/// Writes a command's output, without characters that control a terminal, since it may contain text of a
/// module. It is not a failure if the reader has gone away (`vmrun ops | head`).
///
/// Names are escaped where they are printed, by the rules of that format, so that disassembled text can be
/// assembled again. So names in `text` contain no control characters.
fn print(text: &str) -> Result<(), CliError> {
    use std::io::{Write, stdout};
    let text = Lines(text).to_string();
    match stdout().lock().write_all(text.as_bytes()).map_err(CliError::from) {
        Err(CliError::Closed) => Ok(()),
        result => result,
    }
}

/// Writes a report as JSON. Strings in it have no characters that control a terminal.
fn print_json(report: &impl serde::Serialize) -> Result<(), CliError> {
    let json = serde_json::to_string_pretty(report).expect("the report is plain data");
    print(&escaped_json(&json))
}

/// JSON whose unprintable characters are escapes, so that it has the same meaning.
fn escaped_json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len() + 1);
    for c in json.chars() {
        if c == '\n' || Printable(c.encode_utf8(&mut [0; 4])).to_string().starts_with(c) {
            escaped.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            escaped.push_str(&format!("\\u{unit:04x}"));
        }
    }
    escaped.push('\n');
    escaped
}

/// Writes text to a file, or to standard output if its name is `-`.
fn write_text(path: &Path, text: &str) -> Result<(), CliError> {
    if load::is_standard(path) {
        print(text)
    } else {
        fs::write(path, text).map_err(CliError::file(path))
    }
}

/// The message for an unknown function name, with the known names.
pub(crate) fn no_function(how: &str, name: &str, funcs: impl Iterator<Item = String>) -> String {
    const SHOWN_NAMES_MAX: usize = 20;
    let mut names: Vec<String> = funcs.map(|name| format!("`{}`", Printable(&name))).collect();
    let n_more = names.len().saturating_sub(SHOWN_NAMES_MAX);
    names.truncate(SHOWN_NAMES_MAX);
    if n_more > 0 {
        names.push(format!("{n_more} more"));
    }
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    format!("the program {how} no function `{name}`; it {how} {names}")
}
