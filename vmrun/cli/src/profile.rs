//! The arguments of `profile`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{CodeArgs, FuncArgs, GuestArgs, LimitArgs};

/// Arguments of `profile`.
#[derive(Debug, Args)]
#[command(mut_arg("func", |arg| {
    arg.help("Only this function, by name or number [default: all that are executed]")
}))]
#[command(mut_arg("slots", |arg| arg.help("The slot mode, for all stages except bytecode")))]
#[command(mut_arg("passes", |arg| arg.help(
    "The passes, for all stages except bytecode: all, none, or a list such as -NAME or none,NAME"
)))]
pub struct ProfileArgs {
    /// The program
    #[arg(value_name = "PROGRAM")]
    pub program: PathBuf,

    /// The form to show counts in
    #[arg(long, value_enum, value_name = "STAGE", default_value_t = ProfileStage::Bytecode)]
    pub stage: ProfileStage,

    /// Function
    #[command(flatten)]
    pub func: FuncArgs,

    /// Slot mode and passes
    #[command(flatten)]
    pub code: CodeArgs,

    /// Write the counts of blocks, and of the functions that indirect calls have called, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write folded stacks for flame graphs, with the number of instructions executed on each path of calls
    #[arg(long, value_name = "FILE")]
    pub folded: Option<PathBuf>,

    /// Arguments, directories and variables of the program
    #[command(flatten)]
    pub guest: GuestArgs,

    /// What the program may use
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// The forms that `profile` shows.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProfileStage {
    /// The bytecode, counted by the interpreter
    Bytecode,
    /// The IR that native code is made of, after all passes, counted by native code
    Ssa,
    /// Cranelift's IR, counted by native code
    Clif,
    /// Machine code, with the counts of the IR that it is made of
    Asm,
}
