//! Real programs beside other engines: the kernels and the WASI programs below `programs/wasm`. All engines run in
//! turns, with their default configurations unless a table says otherwise, each with its own implementation of
//! WASI; compiling is eager. V8 and native code, for which `node` and `clang-19` (or `CLANG`) are needed, run in
//! processes of their own; the rest shares one process and thread.
//!
//! `cargo bench --bench programs` prints the tables; with parts of names as arguments only of those programs, as
//! `naive/` or `O2/sieve`. `--placements=N` sets at how many places of code they are measured, `--rounds=N` how often
//! at each; `--svg=FILE` draws the geometric means. `--other=FOLDER` adds the modules below a folder, such as those of
//! sightglass, on which nobody has worked here: WASI programs that find the files of their folder in `.`. With `--test`
//! every program runs once, at the size of its expected output, and nothing is measured. Programs must print in all
//! engines what is expected of them and end with the code that is: what is wrong is said, has no figures, and makes the
//! exit code 1.

mod chart;
mod engine;
mod failure;
mod measure;
mod placement;
mod program;
mod report;
mod suite;

use std::process::ExitCode;

use measure::{Plan, Row};
use program::Program;
use report::Phase;
use suite::Suite;

/// Default number of places of the code of programs.
const PLACEMENTS: usize = 5;
/// Default number of turns of each engine at each of them.
const ROUNDS: usize = 3;

/// The options of the command line.
struct Options {
    is_test: bool,
    plan: Plan,
    svg: Option<String>,
    /// Parts of the names of programs.
    filters: Vec<String>,
}

/// A suite that has run.
struct Measured {
    suite: &'static Suite,
    engines: Vec<&'static str>,
    rows: Vec<Row>,
}

/// Numbers of programs.
#[derive(Default)]
struct Counts {
    n_programs: usize,
    n_wrong: usize,
}

fn main() -> ExitCode {
    let options = Options::read();
    let (mut measured, mut counts) = (Vec::new(), Counts::default());
    for suite in &suite::ALL {
        let suite = run(suite, &options, &mut counts);
        if !suite.rows.is_empty() {
            suite.print();
            measured.push(suite);
        }
    }
    if let Some(path) = options.svg.as_ref().filter(|_| !measured.is_empty()) {
        let svg = chart::render(&measured).expect("it is drawn into memory");
        std::fs::write(path, svg).expect("the chart can be written");
    }
    match counts.n_wrong {
        0 => ExitCode::SUCCESS,
        n => {
            eprintln!("{n} of {} programs went wrong", counts.n_programs);
            ExitCode::FAILURE
        }
    }
}

/// Checks the programs of a suite, and measures those that are right.
fn run(suite: &'static Suite, options: &Options, counts: &mut Counts) -> Measured {
    let name = |program: &Program| format!("{}/{}", suite.key, program.name);
    let mut programs = (suite.programs)();
    programs.retain(|program| options.takes(&name(program)));
    let mut measured = Measured { suite, engines: Vec::new(), rows: Vec::new() };
    if programs.is_empty() {
        return measured;
    }
    let engines = suite.engines();
    measured.engines = engines.iter().map(|engine| engine.name()).collect();
    for program in &programs {
        counts.n_programs += 1;
        let result = measure::check(program, &engines).and_then(|()| match options.is_test {
            true => Ok(None),
            false => measure::measure(program, &engines, options.plan).map(Some),
        });
        match result {
            Ok(Some(row)) => {
                eprintln!("{} is measured", name(program));
                measured.rows.push(row);
            }
            Ok(None) => println!("{} works in {} engines", name(program), engines.len()),
            Err(failure) => {
                eprintln!("{}/{failure}", suite.key);
                counts.n_wrong += 1;
            }
        }
    }
    measured
}

impl Options {
    fn read() -> Options {
        let args: Vec<String> = std::env::args().skip(1).collect();
        let value = |key: &str| args.iter().find_map(|arg| arg.strip_prefix(key));
        let number = |key: &str, default: usize| {
            value(key)
                .map_or(default, |n| n.parse().expect("options of numbers take a number"))
                .max(1)
        };
        Options {
            is_test: args.iter().any(|arg| arg == "--test"),
            plan: Plan {
                n_placements: number("--placements=", PLACEMENTS),
                n_rounds: number("--rounds=", ROUNDS),
            },
            svg: value("--svg=").map(str::to_owned),
            filters: args.iter().filter(|arg| !arg.starts_with('-')).cloned().collect(),
        }
    }

    fn takes(&self, name: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|part| name.contains(part.as_str()))
    }
}

impl Measured {
    fn print(&self) {
        println!("## {}\n", self.suite.title);
        if !self.suite.about.is_empty() {
            println!("{}\n", self.suite.about);
        }
        println!("Run time:\n\n{}\n", report::render(Phase::Run, &self.engines, &self.rows));
        println!(
            "Compile time:\n\n{}\n",
            report::render(Phase::Compile, &self.engines, &self.rows)
        );
    }
}
