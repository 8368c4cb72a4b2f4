//! A small dynamically typed language.
//!
//! ```text
//! cargo run --release --bin dynamic -- examples/dynamic/demo.dyn
//! ```
//!
//! Without a file, it reads lines and prints their values. docs/guide/src/language.md tells how it is made:
//!
//! * [`parser`] makes a tree of the words of [`lexer`]; [`mod@compile`] makes bytecode of it.
//! * [`value`] says what the bits of a value mean, [`heap`] what lies in linear memory, and [`collector`] moves it.
//! * [`library`] has the functions of the host, and [`session`] runs one program after the other.

mod collector;
mod compile;
mod heap;
mod lexer;
mod library;
mod parser;
mod session;
mod syntax;
#[cfg(test)]
mod tests;
mod value;

use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;

use slotvm::Config;

use crate::heap::Output;
use crate::session::{Session, report};

/// Standard output, as programs use it.
#[derive(Debug)]
struct Standard(io::BufWriter<io::Stdout>);

impl Output for Standard {
    fn print(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.0, "{line}")
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn main() -> ExitCode {
    let output = Box::new(Standard(io::BufWriter::new(io::stdout())));
    let done = Session::new(&Config::new(), false, output)
        .map_err(|error| error.to_string())
        .and_then(|mut session| match std::env::args().nth(1) {
            Some(file) => run(&mut session, &file),
            None => converse(&mut session).map_err(|error| format!("error: {error}")),
        });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run(session: &mut Session, file: &str) -> Result<(), String> {
    let source =
        std::fs::read_to_string(file).map_err(|error| format!("error: {file}: {error}"))?;
    let done = session.run(file, &source).map_err(|error| report(&error));
    session.flush().map_err(|error| format!("error: {error}"))?;
    done.map(drop)
}

/// Reads lines, each a program, until the end.
fn converse(session: &mut Session) -> io::Result<()> {
    let input = io::stdin();
    let prompt = input.is_terminal();
    let mut lines = input.lock().lines();
    for number in 1.. {
        if prompt {
            print!("> ");
            io::stdout().flush()?;
        }
        let Some(line) = lines.next().transpose()? else { break };
        let done = session.run(&format!("line {number}"), &line);
        session.flush()?;
        match done {
            Ok(value) => value.into_iter().for_each(|value| println!("{value}")),
            Err(error) => println!("{}", report(&error)),
        }
    }
    Ok(())
}
