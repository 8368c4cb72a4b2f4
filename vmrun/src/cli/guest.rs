//! Arguments, directories and variables of the program, common to `run`, `crosscheck` and `profile`.

use std::mem;

use clap::{Args, ValueEnum};
use slotvm::{Linker, Module};

/// The arguments of a program that is run, and its imports.
#[derive(Debug, Args)]
pub struct GuestArgs {
    /// Call this exported function instead of `_start` or `main`
    #[arg(long, value_names = ["NAME", "VALUES"], num_args = 1..)]
    pub invoke: Vec<String>,

    /// Give a WASI program full access to this directory, under the same name or GUEST
    #[arg(long, value_name = "HOST[::GUEST]")]
    pub dir: Vec<String>,

    /// Set an environment variable of a WASI program; without a value, copy that of this process
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub env: Vec<String>,

    /// Define unknown imported functions this way [default: refuse to run the program]
    #[arg(long, value_enum, value_name = "HOW")]
    pub unknown_imports: Option<UnknownImports>,

    /// Arguments for the program, or values for --invoke; those that begin with `-` must follow `--`
    #[arg(value_name = "ARGS", allow_negative_numbers = true)]
    pub args: Vec<String>,

    /// Arguments for the program after `--`
    #[arg(last = true, hide = true, value_name = "ARGS", allow_hyphen_values = true)]
    pub more_args: Vec<String>,
}

impl GuestArgs {
    /// Puts words where they belong: those after the program are values of the invoked function, or else arguments of the
    /// program. Those after `--` are always arguments.
    pub(super) fn settle(&mut self) {
        if !self.invoke.is_empty() {
            self.invoke.append(&mut self.args);
        }
        self.args.append(&mut mem::take(&mut self.more_args));
    }
}

/// Definitions of unknown imported functions.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum UnknownImports {
    /// End the program when one is called
    Trap,
    /// Do nothing and return zeros
    Zero,
}

impl UnknownImports {
    /// Defines the functions that a module imports and a linker does not have.
    pub fn define<T: 'static>(self, linker: &mut Linker<T>, module: &Module) {
        match self {
            UnknownImports::Trap => linker.define_unknown_imports_as_traps(module),
            UnknownImports::Zero => linker.define_unknown_imports_as_default_values(module),
        }
    }
}
