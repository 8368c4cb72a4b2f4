//! From the words of the command line to [`Cli`]: what clap does, and what people expect besides.
//!
//! What follows the program belongs to the program, but for options of the command, which may follow it too: users write
//! `vmrun prog.bc --jit`. clap takes a word that it does not know for a mistake, so words are sorted before it sees them.

use std::ffi::OsString;
use std::process;

use clap::{Arg, Args, Command, CommandFactory, FromArgMatches};

use super::{Cli, Color, RunArgs, color, unknown};

/// The commands that run a program.
const RUNNING: [&str; 3] = ["run", "profile", "crosscheck"];

impl Cli {
    /// Parses the command line. Exits after printing an error, or the help that was asked for.
    pub fn from_args(args: impl IntoIterator<Item = OsString>) -> Cli {
        let mut words: Vec<OsString> = args.into_iter().collect();
        let color = color::take(&mut words);
        color.apply();
        if let Some(cli) = parse_run(&words, color) {
            return cli;
        }
        if let Err(error) = unknown::check(&words) {
            error.report();
            process::exit(error.exit_code().into());
        }
        let command = Cli::command().color(color.of_clap());
        let words = sorted_for(&command, words);
        let matches = command.try_get_matches_from(words);
        let cli = matches.and_then(|matches| Cli::from_arg_matches(&matches));
        cli.unwrap_or_else(|error| error.exit())
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
    let command = RunArgs::augment_args(Command::new("vmrun"));
    let words = [vec![words[0].clone()], sorted(&command, &words[1 + usize::from(is_run)..])];
    let matches = command.try_get_matches_from(words.concat());
    let run = RunArgs::from_arg_matches(&matches.ok()?).ok()?;
    Some(Cli { command: None, run: Some(run), color })
}

/// The words of any command, sorted if it runs a program.
fn sorted_for(all: &Command, words: Vec<OsString>) -> Vec<OsString> {
    let named = words.get(1).and_then(|word| all.find_subcommand(word));
    let (command, n_first) = match named {
        Some(command) if RUNNING.contains(&command.get_name()) => (command, 2),
        Some(_) => return words,
        None if words.get(1).is_some_and(|word| word == "help") => return words,
        None => (all, 1),
    };
    let n_first = n_first.min(words.len());
    [&words[..n_first], &sorted(command, &words[n_first..])].concat()
}

/// Words in an order that leaves no doubt: options of a command, `--`, the program, and what belongs to the program.
fn sorted(command: &Command, words: &[OsString]) -> Vec<OsString> {
    let (mut options, mut others) = (Vec::new(), Vec::new());
    let mut words = words.iter().cloned();
    while let Some(word) = words.next() {
        if word == "--" {
            others.extend(words);
            break;
        }
        let known = known_option(command, &word);
        let is_unknown = word != "-" && word.as_encoded_bytes().starts_with(b"-");
        if let Some(has_value) = known {
            options.push(word);
            if has_value {
                // Without the value, clap must not see anything in its place.
                let Some(value) = words.next() else { return options };
                options.push(value);
            }
        } else if is_unknown && others.is_empty() {
            // Help, the version, or a mistake.
            options.push(word);
        } else {
            others.push(word);
        }
    }
    if !others.is_empty() {
        options.push("--".into());
    }
    options.append(&mut others);
    options
}

/// If a word is an option of a command: whether the next word is its value.
fn known_option(command: &Command, word: &OsString) -> Option<bool> {
    let word = word.to_str()?;
    if word == color::OPTION {
        return Some(true);
    }
    let option = |is_meant: &dyn Fn(&Arg) -> bool| command.get_opts().find(|&arg| is_meant(arg));
    let (option, is_attached) = match (word.strip_prefix("--"), word.strip_prefix('-')) {
        (Some(long), _) => {
            let name = long.split('=').next();
            (option(&|arg| arg.get_long() == name)?, long.contains('='))
        }
        (None, Some(short)) => {
            let name = short.chars().next()?;
            (option(&|arg| arg.get_short() == Some(name))?, short.len() > name.len_utf8())
        }
        (None, None) => return None,
    };
    let takes_next = option.get_action().takes_values() && !option.is_require_equals_set();
    Some(takes_next && !is_attached)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_args(line: &str) -> RunArgs {
        let cli = Cli::from_args(line.split(' ').map(OsString::from));
        match cli.command {
            Some(super::super::Command::Run(args)) => args,
            _ => cli.run.expect("a program is run"),
        }
    }

    /// The program, the function, and the arguments.
    fn parsed(line: &str) -> (String, Option<String>, Vec<String>) {
        let RunArgs { program, guest, .. } = run_args(line);
        (program.display().to_string(), guest.invoke, guest.args)
    }

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn words_after_the_program_are_its_own_but_for_options() {
        for (line, expected) in [
            ("vmrun p.bc a 7 -3", &["a", "7", "-3"][..]),
            ("vmrun p.bc a 7 --jit -3", &["a", "7", "-3"]),
            ("vmrun --jit p.bc a 7 -- -3", &["a", "7", "-3"]),
            ("vmrun p.wasm --version", &["--version"]),
            ("vmrun run p.wasm -h -V --help", &["-h", "-V", "--help"]),
            (
                "vmrun run p.wasm --name=x -vv --jit - -o out",
                &["--name=x", "-vv", "-", "-o", "out"],
            ),
            ("vmrun p.wasm --fuel 7 x --cache 8 --dir=. y", &["x", "8", "y"]),
            ("vmrun p.wasm -- --jit -- -x", &["--jit", "--", "-x"]),
            ("vmrun p.wasm -v -- --jit", &["-v", "--jit"]),
            ("vmrun -- p.wasm --jit", &["--jit"]),
        ] {
            let (program, invoke, args) = parsed(line);
            assert!(program.starts_with("p."), "{line}: {program}");
            assert_eq!((invoke, args), (None, strings(expected)), "{line}");
        }
        assert!(run_args("vmrun programs/collatz.bc --jit").native.jit);
        assert!(!run_args("vmrun p.wasm -- --jit").native.jit);
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
            "vmrun run --invoke f p.bc 20",
            "vmrun p.bc --version",
            "vmrun p.bc --nothing",
        ] {
            let words = words(line);
            let all = Cli::command();
            let sorted = sorted_for(&all, words.clone());
            let all = all.try_get_matches_from(sorted);
            let all = Cli::from_arg_matches(&all.expect("it is right")).expect("it is right");
            let run = match all.command {
                Some(super::super::Command::Run(run)) => run,
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
            "vmrun run --nothing p.bc",
            "vmrun p.bc --jit --interp",
            "vmrun p.bc --fuel -1",
            "vmrun asm p.vasm",
        ] {
            assert!(parse_run(&words(line), Color::Auto).is_none(), "{line}");
        }
    }

    #[test]
    fn a_function_is_invoked_in_every_order() {
        for line in [
            "vmrun p.bc --invoke fib 20",
            "vmrun p.bc --invoke fib -- 20",
            "vmrun --invoke fib p.bc 20",
            "vmrun --invoke fib p.bc -- 20",
            "vmrun run --invoke fib p.bc 20",
            "vmrun run --invoke=fib p.bc 20",
            "vmrun run --invoke fib --jit p.bc 20",
            "vmrun --jit p.bc 20 --invoke fib",
        ] {
            let expected = ("p.bc".to_owned(), Some("fib".to_owned()), strings(&["20"]));
            assert_eq!(parsed(line), expected, "{line}");
        }
        let (program, invoke, args) =
            parsed("vmrun run --invoke f p.bc -1 -inf -0x10 --jit -- -x y");
        assert_eq!((program.as_str(), invoke.as_deref()), ("p.bc", Some("f")));
        assert_eq!(args, ["-1", "-inf", "-0x10", "-x", "y"]);
        let (program, invoke, _) = parsed("vmrun crosscheck.bc --invoke f");
        assert_eq!((program.as_str(), invoke.as_deref()), ("crosscheck.bc", Some("f")));
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
