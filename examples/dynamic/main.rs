//! A small dynamically typed language, which had an interpreter and gets a compiler: the case of somebody
//! who implements a language.
//!
//! ```text
//! cargo run --release --bin dynamic -- examples/dynamic/demo.dyn
//! ```
//!
//! The program runs in the interpreter ([`interpret`]) and as native code ([`compile`]). Both print the
//! same; how much faster the second one is comes last. The syntax is described in [`parse`], values in
//! [`value`].

mod compile;
mod interpret;
mod parse;
mod syntax;
mod value;

use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use slotvm::{Engine, Linker, Module, Store};

use crate::syntax::Program;
use crate::value::{Heap, Wrong};

/// The interpreter calls itself, so it gets a stack for all the calls that it allows.
const INTERPRETER_STACK_BYTES: usize = 1 << 30;

fn main() -> ExitCode {
    match std::env::args().nth(1) {
        Some(file) => match run_file(&file) {
            Ok(text) => {
                print!("{text}");
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::FAILURE
            }
        },
        None => {
            eprintln!("usage: dynamic FILE");
            ExitCode::from(2)
        }
    }
}

/// Returns the output of a program, and its statistics.
fn run_file(file: &str) -> Result<String, Box<dyn Error>> {
    let source = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let mut heap = Heap::new();
    let program = parse::parse(&source, &mut heap)?;
    let (compiled, native) = run_native(&program, heap.clone())?;
    let (output, interpreted) = run_interpreter(&program, heap)?;
    if output != native.output {
        return Err("the interpreter prints something else".into());
    }
    let ratio = interpreted.as_secs_f64() / native.run.as_secs_f64();
    let times = format!(
        "interpreted {interpreted:.1?}, compiled in {compiled:.1?}, native {:.1?}: {ratio:.1} times as fast\n",
        native.run
    );
    Ok(output + &times)
}

/// Output of a program, and the time it ran.
struct Run {
    output: String,
    run: Duration,
}

/// Compiles and runs a program; reports the compile time, too.
fn run_native(program: &Program, heap: Heap) -> Result<(Duration, Run), Box<dyn Error>> {
    let start = Instant::now();
    let engine = Engine::default();
    let module = Module::from_bytecode(&engine, compile::compile(program)?)?;
    let mut linker = Linker::new(&engine);
    compile::link(&mut linker)?;
    let mut store = Store::new(&engine, heap);
    let instance = linker.instantiate(&mut store, &module)?;
    let main = instance.get_typed_func::<(), i64>(&store, "main")?;
    let compiled = start.elapsed();
    let start = Instant::now();
    main.call(&mut store, ())?;
    let run = start.elapsed();
    Ok((compiled, Run { output: std::mem::take(&mut store.data_mut().output), run }))
}

fn run_interpreter(
    program: &Program,
    mut heap: Heap,
) -> Result<(String, Duration), Box<dyn Error>> {
    std::thread::scope(|scope| {
        let run = || {
            let start = Instant::now();
            interpret::interpret(program, &mut heap)?;
            Ok::<_, Wrong>((heap.output, start.elapsed()))
        };
        let thread = std::thread::Builder::new().stack_size(INTERPRETER_STACK_BYTES);
        let thread = thread.spawn_scoped(scope, run)?;
        Ok(thread.join().expect("the interpreter does not panic")?)
    })
}

#[cfg(test)]
mod tests;
