//! Arguments, directories and variables of the program, common to `run`, `crosscheck` and `profile`.

use clap::{Args, ValueEnum};
use slotvm::{Linker, Module};

/// The arguments of a program that is run, and its imports.
#[derive(Debug, Args)]
pub struct GuestArgs {
    /// Call this exported function instead of `_start` or `main`, with ARGS as its values
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub invoke: Option<String>,

    /// The name that a WASI program sees as its own [default: that of its file]
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub argv0: Option<String>,

    /// Give a WASI program full access to this directory, under the same name or GUEST
    #[arg(long, value_name = "HOST[::GUEST]")]
    pub dir: Vec<String>,

    /// Set an environment variable of a WASI program; without a value, as in this process, if it is set there
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = variable)]
    pub env: Vec<Variable>,

    /// Define unknown imported functions this way [default: refuse to run the program]
    #[arg(long, value_enum, value_name = "HOW")]
    pub unknown_imports: Option<UnknownImports>,

    /// Arguments for the program, or values for --invoke: all words after it but options of this command, which must not
    /// follow `--`
    #[arg(value_name = "ARGS", allow_hyphen_values = true)]
    pub args: Vec<String>,
}

/// An environment variable of the program.
#[derive(Clone, Debug)]
pub struct Variable {
    /// The name.
    pub name: String,
    /// The value, if it is not that of this process.
    pub value: Option<String>,
}

/// A variable such as `LANG=C`, or a name alone.
fn variable(text: &str) -> Result<Variable, String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (text, None),
    };
    if name.is_empty() {
        return Err("expected a name before the value".to_owned());
    }
    Ok(Variable { name: name.to_owned(), value })
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
