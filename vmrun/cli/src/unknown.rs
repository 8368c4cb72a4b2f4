//! Words in the place of a command that are none: commands of other tools, and typing errors.
//!
//! `vmrun WORD` runs a program. So a word is taken for a command only if no such file exists, and nobody would call a file
//! so: it has neither an extension nor a directory.

use std::ffi::OsString;
use std::path::Path;

use clap::CommandFactory;
use slotvm_bytecode::printable::Printable;

use super::Cli;
use vmrun_base::error::CliError;

/// Commands of other tools, and what to do instead.
const ELSEWHERE: &[(&str, &str)] = &[
    ("explore", "use `vmrun explain`"),
    ("hot-blocks", "use `vmrun profile`"),
    ("completion", "use `vmrun completions`"),
    ("precompile", "use `vmrun compile`"),
    ("build", "use `vmrun compile`"),
    ("exec", "use `vmrun run`"),
    ("validate", "use `vmrun verify`"),
    ("check", "use `vmrun verify`"),
    ("print", "use `vmrun dis`"),
    ("disas", "use `vmrun dis`"),
    ("disassemble", "use `vmrun dis`"),
    ("wasm2wat", "use `vmrun dis`, which prints assembler text"),
    ("assemble", "use `vmrun asm`"),
    ("parse", "use `vmrun asm`"),
    ("wat2wasm", "use `vmrun convert`, which also takes WebAssembly text"),
    ("optimize", "use `vmrun opt`"),
    ("optimise", "use `vmrun opt`"),
    ("config", "there is no configuration file; `vmrun run --cache` keeps native code"),
    ("serve", "slotvm runs commands of WASI preview 1, no HTTP handlers; use `vmrun run`"),
    (
        "wizer",
        "slotvm takes no snapshots of initialised programs; `vmrun compile` keeps native code",
    ),
];

/// The similarity to a command from which on it is suggested, as clap has it.
const SIMILARITY_MIN: f64 = 0.7;

/// Refuses a command line whose first word is no command, no option and no program.
///
/// # Errors
/// Fails with what may have been meant.
pub(super) fn check(words: &[OsString]) -> Result<(), CliError> {
    let Some(word) = words.get(1).and_then(|word| word.to_str()) else { return Ok(()) };
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    let is_command_like = !word.starts_with('-') && word.chars().all(is_name);
    if !is_command_like || Path::new(word).exists() {
        return Ok(());
    }
    // To make the commands with all their arguments takes 0.4 million instructions, so programs do without.
    let commands = Cli::command();
    if word == "help" || commands.find_subcommand(word).is_some() {
        return Ok(());
    }
    let shown = Printable(word);
    let meant = match ELSEWHERE.iter().find(|(name, _)| *name == word) {
        Some((_, meant)) => format!("unknown command `{shown}`; {meant}"),
        None => match similar(word, &commands) {
            Some(name) => format!("unknown command `{shown}`; did you mean `vmrun {name}`?"),
            None => format!("unknown command `{shown}`, and no such file; see `vmrun --help`"),
        },
    };
    Err(CliError::Usage(meant))
}

/// The command that is most similar to a word.
fn similar(word: &str, commands: &clap::Command) -> Option<String> {
    let shown = commands.get_subcommands().filter(|command| !command.is_hide_set());
    let rated = shown.map(|command| (strsim::jaro(word, command.get_name()), command.get_name()));
    let (likeness, name) = rated.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (likeness > SIMILARITY_MIN).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_command_is_called_as_one_of_another_tool() {
        let commands = Cli::command();
        for (name, _) in ELSEWHERE {
            assert!(commands.find_subcommand(name).is_none(), "{name}");
        }
    }
}
