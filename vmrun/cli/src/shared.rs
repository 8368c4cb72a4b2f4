//! Options that several commands share. Where one means something of its own by an option, it changes the help.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use slotvm::{PassSet, SlotMode};

use super::quantity;

/// Passes.
#[derive(Debug, Args)]
pub struct PassesArgs {
    /// The passes: all, none, or a list such as -NAME or none,NAME
    #[arg(
        id = "passes",
        long = "passes",
        value_name = "PASSES",
        allow_hyphen_values = true,
        default_value_t
    )]
    pub set: PassSet,
}

/// Slot mode and passes of native code.
#[derive(Debug, Args)]
pub struct CodeArgs {
    /// The slot mode
    #[arg(long, value_name = "MODE", default_value = "ssa", value_parser = slot_mode_parser())]
    pub slots: SlotMode,

    /// Passes
    #[command(flatten)]
    pub passes: PassesArgs,
}

/// Whether native code is run, and its slot mode and passes.
#[derive(Debug, Args)]
pub struct NativeArgs {
    /// Run native code, made of the whole program before it starts
    #[arg(long)]
    pub jit: bool,

    /// Run native code in this slot mode [default with --jit: ssa]
    #[arg(long, value_name = "MODE", value_parser = slot_mode_parser())]
    pub slots: Option<SlotMode>,

    /// Run native code with these passes: all, none, or a list such as -NAME or none,NAME
    /// [default with --jit: all]
    #[arg(long, value_name = "PASSES", allow_hyphen_values = true)]
    pub passes: Option<PassSet>,
}

impl NativeArgs {
    /// Whether any of them asks for native code.
    pub fn is_asked(&self) -> bool {
        self.jit || self.slots.is_some() || self.passes.is_some()
    }
}

/// Fuel.
#[derive(Debug, Args)]
pub struct FuelArgs {
    /// Stop after this much fuel, one unit for each bytecode instruction
    #[arg(id = "fuel", long = "fuel", value_name = "N", allow_negative_numbers = true)]
    pub max: Option<u64>,
}

/// What a program may use.
#[derive(Debug, Args)]
pub struct LimitArgs {
    /// Fuel
    #[command(flatten)]
    pub fuel: FuelArgs,

    /// Stop the program after this time, such as 500ms, 1m or, in seconds, 2
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration, allow_hyphen_values = true)]
    pub timeout: Option<Duration>,

    /// Let the frames of active functions have this many cells of 8 bytes, so that recursion is equally deep in every
    /// engine; else it depends on what is native by then
    #[arg(long, value_name = "CELLS", allow_negative_numbers = true)]
    pub deterministic_stack: Option<u64>,

    /// Limit the linear memories of the program, and its tables, to this size each, such as 64M
    #[arg(long, value_name = "SIZE", value_parser = quantity::size, allow_hyphen_values = true)]
    pub max_memory: Option<u64>,
}

impl LimitArgs {
    /// The end of the time of a program that starts at a time. One that is too far off to be told is never reached.
    pub fn deadline(&self, start: Instant) -> Option<Instant> {
        self.timeout.and_then(|timeout| start.checked_add(timeout))
    }
}

/// A function of the program.
#[derive(Debug, Args)]
pub struct FuncArgs {
    /// Only this function, by name or number [default: all]
    #[arg(id = "func", long = "func", value_name = "F", allow_hyphen_values = true)]
    pub name: Option<String>,
}

/// The path of what a command writes.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Path of the output
    #[arg(id = "output", short = 'o', long = "output", value_name = "FILE")]
    pub path: Option<PathBuf>,
}

/// JSON instead of text.
#[derive(Debug, Args)]
pub struct JsonArgs {
    /// Print JSON
    #[arg(id = "json", long = "json")]
    pub is_asked: bool,
}

fn slot_mode_parser() -> impl TypedValueParser<Value = SlotMode> {
    let names = SlotMode::ALL.iter().map(|mode| mode.name());
    PossibleValuesParser::new(names).map(|name| name.parse().expect("clap has checked the name"))
}
