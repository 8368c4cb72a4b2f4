//! Real programs beside wasmtime and wasmi: the kernels and the WASI programs below `programs/wasm`, as
//! clang's -O2 has made them, in every slot mode of the native code, in the interpreter, and in the other
//! engines. All run in one process, in turns, with their default configurations, each with its own
//! implementation of WASI; compiling is eager and on one thread.
//!
//! `cargo bench --bench programs` prints the tables; with parts of names as arguments only of those programs;
//! `--rounds=N` sets how often. With `--test` every program runs once, at the size of its expected output, and
//! nothing is measured. Programs must print in all engines what is expected of them and end with the code
//! that is: what is wrong is said, has no figures, and makes the exit code 1.

mod engine;
mod measure;
mod program;
mod report;

use std::process::ExitCode;

use engine::Engine;
use measure::Row;
use program::Program;
use report::Phase;

/// Default number of turns of each engine.
const ROUNDS: usize = 5;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let is_test = args.iter().any(|arg| arg == "--test");
    let rounds = args.iter().find_map(|arg| arg.strip_prefix("--rounds="));
    let n_rounds = rounds.map_or(ROUNDS, |n| n.parse().expect("--rounds=N takes a number"));
    let filters: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let mut programs = Program::all();
    programs.retain(|program| {
        filters.is_empty() || filters.iter().any(|part| program.name.contains(*part))
    });

    let engines = engine::all();
    let (mut rows, mut n_wrong) = (Vec::new(), 0);
    for program in &programs {
        let result = measure::check(program, &engines).and_then(|()| match is_test {
            true => Ok(None),
            false => measure::measure(program, &engines, n_rounds.max(1)).map(Some),
        });
        match result {
            Ok(Some(row)) => {
                eprintln!("{} is measured", program.name);
                rows.push(row);
            }
            Ok(None) => println!("{} works in {} engines", program.name, engines.len()),
            Err(failure) => {
                eprintln!("{failure}");
                n_wrong += 1;
            }
        }
    }
    if !rows.is_empty() {
        print(&engines, &rows, n_rounds);
    }
    match n_wrong {
        0 => ExitCode::SUCCESS,
        n => {
            eprintln!("{n} of {} programs went wrong", programs.len());
            ExitCode::FAILURE
        }
    }
}

fn print(engines: &[Box<dyn Engine>], rows: &[Row], n_rounds: usize) {
    let names: Vec<&str> = engines.iter().map(|engine| engine.name()).collect();
    println!(
        "CPU time, the least of {n_rounds} rounds, and the ratio of the other engines' times to it; in \
         brackets the least and the greatest ratio of a round\n"
    );
    for (title, phase) in [("Running", Phase::Run), ("Compiling", Phase::Compile)] {
        println!("{title}\n\n{}\n", report::render(phase, &names, rows));
    }
}
