//! From the words of the command line to [`Cli`]: what clap does, and what people expect besides.
//!
//! Words are changed before clap sees them where it would take them for something else. Each change is for a habit that
//! users of other runtimes have; the tests at the end list them.

use std::ffi::OsString;
use std::process;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches};

use super::{Cli, Color, Command, GuestArgs, RunArgs, color, unknown};

const INVOKE: &str = "--invoke";

impl Cli {
    /// Parses the command line. Exits after printing an error, or the help that was asked for.
    pub fn from_args(args: impl IntoIterator<Item = OsString>) -> Cli {
        let mut words: Vec<OsString> = args.into_iter().collect();
        let color = color::take(&mut words);
        color.apply();
        if let Some(cli) = parse_run(&words, color) {
            return cli.settled();
        }
        if let Err(error) = unknown::check(&words) {
            error.report();
            process::exit(error.exit_code().into());
        }
        let parse = |words: &[OsString]| {
            let matches = Cli::command().color(color.of_clap()).try_get_matches_from(words)?;
            Cli::from_arg_matches(&matches)
        };
        let words = attach_invoked_values(words);
        let cli = parse(&words).or_else(|error| match error.kind() {
            ErrorKind::MissingRequiredArgument => match with_invoked_program(&words) {
                Some(words) => parse(&words),
                None => Err(error),
            },
            _ => Err(error),
        });
        cli.unwrap_or_else(|error| error.exit()).settled()
    }

    /// With arguments where they belong, wherever they were given.
    fn settled(mut self) -> Cli {
        let guest = match &mut self.command {
            Some(Command::Run(run)) => Some(&mut run.guest),
            Some(Command::Crosscheck(check)) => Some(&mut check.guest),
            Some(Command::Profile(profile)) => Some(&mut profile.guest),
            _ => self.run.as_mut().map(|run| &mut run.guest),
        };
        guest.into_iter().for_each(GuestArgs::settle);
        self
    }
}

/// Parses the words of a run, if they clearly are that and have no error. To make the arguments of all commands takes as
/// long as to compile a small function.
fn parse_run(words: &[OsString], color: Color) -> Option<Cli> {
    let first = words.get(1)?.to_str()?;
    let is_run = first == "run";
    let is_path = !first.starts_with('-') && first.contains(['.', '/']);
    if !is_run && !is_path {
        return None;
    }
    let words = words.iter().enumerate().filter(|&(i, _)| !(is_run && i == 1));
    let words = attach_invoked_values(words.map(|(_, word)| word.clone()));
    let matches = RunArgs::augment_args(clap::Command::new("vmrun")).try_get_matches_from(words);
    let run = RunArgs::from_arg_matches(&matches.ok()?).ok()?;
    Some(Cli { command: None, run: Some(run), color })
}

/// Writes `--invoke f -inf` as `--invoke=f --invoke=-inf`. By default, clap takes a value such as `-inf` for an
/// option. If it allowed such values, it would also take every option after `--invoke` for one.
fn attach_invoked_values(args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    // The short options are those for help and version; all others are long.
    let is_option =
        |arg: &OsString| arg.as_encoded_bytes().starts_with(b"--") || arg == "-h" || arg == "-V";
    let mut args = args.into_iter().peekable();
    let mut attached = Vec::new();
    while let Some(arg) = args.next() {
        let n_before = attached.len();
        if arg == INVOKE {
            while let Some(value) = args.next_if(|arg| !is_option(arg)) {
                attached.push(attached_value(&value));
            }
        }
        if attached.len() == n_before {
            let ends_options = arg == "--";
            attached.push(arg);
            if ends_options {
                attached.extend(args.by_ref());
            }
        }
    }
    attached
}

fn attached_value(value: &OsString) -> OsString {
    let mut word = OsString::from(INVOKE);
    word.push("=");
    word.push(value);
    word
}

/// Writes `--invoke=f --invoke=prog --invoke=20` as `--invoke=f prog --invoke=20`: a program that is missing is the word
/// after the function's name, as in `wasmtime run --invoke f prog 20`.
fn with_invoked_program(words: &[OsString]) -> Option<Vec<OsString>> {
    let prefix = format!("{INVOKE}=");
    let is_value = |word: &OsString| word.as_encoded_bytes().starts_with(prefix.as_bytes());
    let program = words.windows(2).position(|pair| pair.iter().all(is_value))? + 1;
    let mut words = words.to_vec();
    let value = words[program].to_str()?[prefix.len()..].to_owned();
    words[program] = value.into();
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_args(line: &str) -> RunArgs {
        let cli = Cli::from_args(line.split(' ').map(OsString::from));
        match cli.command {
            Some(Command::Run(args)) => args,
            _ => cli.run.expect("a program is run"),
        }
    }

    /// The program, the function with its values, and the arguments.
    fn parsed(line: &str) -> (String, Vec<String>, Vec<String>) {
        let RunArgs { program, guest, .. } = run_args(line);
        let GuestArgs { invoke, args, more_args, .. } = guest;
        assert!(more_args.is_empty(), "{more_args:?}");
        (program.display().to_string(), invoke, args)
    }

    #[test]
    fn invoked_values_may_look_like_options() {
        let args = run_args("vmrun p.bc --invoke f -1 -inf -0x10 null --jit -- --invoke -x");
        assert_eq!(args.guest.invoke, ["f", "-1", "-inf", "-0x10", "null"]);
        assert!(args.jit);
        assert_eq!(args.guest.args, ["--invoke", "-x"]);
    }

    #[test]
    fn arguments_follow_the_program() {
        for line in ["vmrun p.bc a 7 -3", "vmrun p.bc a 7 --jit -3", "vmrun --jit p.bc a 7 -- -3"] {
            let args = ["a", "7", "-3"].map(String::from).to_vec();
            assert_eq!(parsed(line), ("p.bc".into(), vec![], args.clone()), "{line}");
            let line = line.replace("vmrun", "vmrun run");
            assert_eq!(parsed(&line), ("p.bc".into(), vec![], args), "{line}");
        }
        // A word that is a command is an argument after the program.
        assert_eq!(parsed("vmrun p.bc run").2, ["run"]);
        assert_eq!(parsed("vmrun p.bc -- a -- b").2, ["a", "--", "b"]);
        assert!(run_args("vmrun programs/collatz.bc --jit").jit);
    }

    /// The arguments of a run are parsed alone as among those of all commands.
    #[test]
    fn runs_are_parsed_as_all_commands_are() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        for line in [
            "vmrun p.bc",
            "vmrun run p.bc a -3 -- -x",
            "vmrun ./p run dump help",
            "vmrun run run",
            "vmrun run p --jit --slots memory --passes -inline --fuel 7 --timeout 2s",
            "vmrun p.wasm --dir .::/ --env A=B --invoke f -1 2 --time --json",
            "vmrun p.wasm --lazy --max-memory 64M --cache --profile perfmap -- --invoke",
        ] {
            let words = words(line);
            let all = Cli::command().try_get_matches_from(attach_invoked_values(words.clone()));
            let all = Cli::from_arg_matches(&all.expect("it is right")).expect("it is right");
            let run = match all.command {
                Some(Command::Run(run)) => run,
                command => all.run.unwrap_or_else(|| panic!("{line}: {command:?}")),
            };
            let alone = parse_run(&words, Color::Auto).expect("it is a run").run;
            assert_eq!(format!("{:?}", alone.expect("it is a run")), format!("{run:?}"), "{line}");
        }
        for line in [
            "vmrun",
            "vmrun p",
            "vmrun --jit p.bc",
            "vmrun -h",
            "vmrun run",
            "vmrun run -h",
            "vmrun run --invoke f p.bc 20",
            "vmrun p.bc --version",
            "vmrun p.bc --jit --interp",
            "vmrun p.bc --nothing",
            "vmrun asm p.vasm",
        ] {
            assert!(parse_run(&words(line), Color::Auto).is_none(), "{line}");
        }
    }

    #[test]
    fn a_function_is_invoked_in_every_order() {
        for line in [
            "vmrun p.bc --invoke fib 20",
            "vmrun --invoke fib p.bc 20",
            "vmrun run --invoke fib p.bc 20",
            "vmrun run --invoke=fib p.bc 20",
            "vmrun run --invoke fib --jit p.bc 20",
            "vmrun --invoke fib 20 --jit p.bc",
            "vmrun --jit p.bc 20 --invoke fib",
        ] {
            let (program, invoke, args) = parsed(line);
            assert_eq!(
                (program.as_str(), invoke, args),
                ("p.bc", vec!["fib".into(), "20".into()], vec![]),
                "{line}"
            );
        }
        let (program, invoke, args) = parsed("vmrun run --invoke f p.bc -1 -inf -- -x y");
        assert_eq!(program, "p.bc");
        assert_eq!(invoke, ["f", "-1", "-inf"]);
        assert_eq!(args, ["-x", "y"]);
        let (program, invoke, _) = parsed("vmrun crosscheck.bc --invoke f");
        assert_eq!((program.as_str(), invoke.len()), ("crosscheck.bc", 1));
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
