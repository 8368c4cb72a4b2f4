//! The arguments of `profile`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use slotvm::{PassSet, SlotMode};

use super::{GuestArgs, slot_mode_parser};

/// Arguments of `profile`.
#[derive(Debug, Args)]
pub struct ProfileArgs {
    /// The program
    #[arg(value_name = "PROGRAM")]
    pub program: PathBuf,

    /// The form to show counts in
    #[arg(long, value_enum, value_name = "STAGE", default_value_t = ProfileStage::Bytecode)]
    pub stage: ProfileStage,

    /// Only this function, by name or number [default: all that are executed]
    #[arg(long, value_name = "F")]
    pub func: Option<String>,

    /// The slot mode, for all stages except bytecode
    #[arg(long, value_name = "MODE", default_value = "ssa", value_parser = slot_mode_parser())]
    pub slots: SlotMode,

    /// The passes, for all stages except bytecode: all, none, or a list such as -NAME or none,NAME
    #[arg(long, value_name = "PASSES", allow_hyphen_values = true, default_value_t)]
    pub passes: PassSet,

    /// Write the counts of blocks as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write folded stacks for flame graphs, with the number of instructions executed on each path of calls
    #[arg(long, value_name = "FILE")]
    pub folded: Option<PathBuf>,

    /// Arguments, directories and variables of the program
    #[command(flatten)]
    pub guest: GuestArgs,
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
