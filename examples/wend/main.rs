//! Compiles and runs a wend program.
//!
//! ```text
//! cargo run --release --bin wend -- programs/wend/queens.wend --jit
//! cargo run --release --bin wend -- programs/wend/queens.wend --promotion
//! cargo run --release --bin wend -- programs/wend/queens.wend --emit bc > target/queens.bc
//! ```

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use slotvm::{Config, Engine, Tier};
use slotvm_bytecode::{encode, text, verify};

/// Compiles and runs a wend program
#[derive(Parser)]
struct Args {
    /// The program
    program: PathBuf,

    /// Run native code instead of interpreting
    #[arg(long)]
    jit: bool,

    /// Write the compiled program to standard output instead of running it
    #[arg(long, value_name = "FORM")]
    emit: Option<Form>,

    /// Report what promotion does with each variable instead of running the program
    #[arg(long, conflicts_with = "emit")]
    promotion: bool,
}

/// A form of a compiled program.
#[derive(Copy, Clone, ValueEnum)]
enum Form {
    /// Bytecode as text
    Vasm,
    /// Bytecode, which vmrun runs
    Bc,
    /// The IR in SSA form
    Ssa,
    /// LLVM IR before promotion
    Llvm,
}

fn main() -> ExitCode {
    match execute(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn execute(args: &Args) -> Result<(), String> {
    let path = args.program.display().to_string();
    let source = std::fs::read_to_string(&args.program)
        .map_err(|error| format!("error: {path}: {error}"))?;
    let compiled = wend::compile(&source).map_err(|error| error.render(&path, &source))?;
    let failed = |error: &dyn std::error::Error| format!("error: {path}: {error}");
    let verified = || verify(compiled.module.clone()).map_err(|error| failed(&error));
    let shown = |stage| wend::show(&verified()?, stage).map_err(|error| failed(&error));
    let output = match (args.emit, args.promotion) {
        (None, false) => return run(args, &compiled).map_err(|error| failed(&error)),
        (None, true) => shown("promotion")?.into_bytes(),
        (Some(Form::Bc), _) => encode(&compiled.module),
        (Some(Form::Vasm), _) => {
            text::print(&compiled.module).map_err(|error| failed(&error))?.into_bytes()
        }
        (Some(Form::Ssa), _) => shown("ssa")?.into_bytes(),
        (Some(Form::Llvm), _) => {
            wend::show_llvm(&verified()?).map_err(|error| failed(&error))?.into_bytes()
        }
    };
    match io::stdout().lock().write_all(&output) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(format!("error: {error}")),
        _ => Ok(()),
    }
}

fn run(args: &Args, compiled: &wend::Compiled) -> Result<(), slotvm::Error> {
    let tier = if args.jit { Tier::Jit } else { Tier::Interpreter };
    let engine = Engine::new(Config::new().tier(tier))?;
    wend::run(&engine, compiled, BufWriter::new(io::stdout()))
}
