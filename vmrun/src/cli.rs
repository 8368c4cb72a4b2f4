//! The command line, as clap derives it.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use slotvm::SlotMode;

/// Runs, assembles, inspects and measures slotvm programs.
///
/// Wherever a program is expected it may be a binary module (`.bc`) or assembler text (`.vasm`).
#[derive(Debug, Parser)]
#[command(
    name = "vmrun",
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub struct Cli {
    /// What to do; without it the program is run.
    #[command(subcommand)]
    pub command: Option<Command>,

    /// Run a program.
    #[command(flatten)]
    pub run: Option<RunArgs>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a program (the default)
    Run(RunArgs),
    /// Assemble text into a binary module
    Asm(AsmArgs),
    /// Disassemble a module into text
    Dis(DisArgs),
    /// Load and verify modules, print nothing but errors
    Verify(VerifyArgs),
    /// Show a program at a stage of the pipeline
    Dump(DumpArgs),
    /// Print the opcode reference
    Ops,
    /// Run file tests
    Test(TestArgs),
    /// Measure programs in every slot mode: memory code against register code
    Bench(BenchArgs),
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The program
    #[arg(value_name = "PROGRAM")]
    pub program: PathBuf,

    /// Run native code instead of interpreting
    #[arg(long)]
    pub jit: bool,

    /// Run native code with the slots kept this way [default with --jit: ssa]
    #[arg(long, value_name = "MODE", value_parser = slot_mode_parser())]
    pub slots: Option<SlotMode>,

    /// Call this exported function with these arguments and print its results
    #[arg(long, value_names = ["NAME", "ARGS"], num_args = 1.., allow_negative_numbers = true)]
    pub invoke: Vec<String>,

    /// Stop after this much fuel, one unit for each bytecode instruction
    #[arg(long, value_name = "N")]
    pub fuel: Option<u64>,

    /// Print each instruction with the operand stack before it (interpreter only)
    #[arg(long, conflicts_with_all = ["jit", "slots"])]
    pub trace: bool,

    /// Print how long each stage took
    #[arg(long)]
    pub time: bool,

    /// Arguments for the program
    #[arg(last = true, value_name = "ARGS", allow_hyphen_values = true)]
    pub args: Vec<String>,
}

/// Arguments of `asm`.
#[derive(Debug, Args)]
pub struct AsmArgs {
    /// The text
    pub source: PathBuf,

    /// Where to write the binary module [default: the source with the ending .bc]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Arguments of `dis`.
#[derive(Debug, Args)]
pub struct DisArgs {
    /// The module
    pub program: PathBuf,

    /// Where to write the text [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Show the code offset of each instruction in a comment
    #[arg(long)]
    pub offsets: bool,
}

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The modules
    #[arg(required = true)]
    pub programs: Vec<PathBuf>,
}

/// Arguments of `dump`.
#[derive(Debug, Args)]
pub struct DumpArgs {
    /// The program
    pub program: PathBuf,

    /// The stage to show
    #[arg(long, value_enum)]
    pub stage: Stage,

    /// Only this function, by name or number [default: all]
    #[arg(long, value_name = "F")]
    pub func: Option<String>,

    /// The slot mode for the stages clif and asm
    #[arg(long, value_name = "MODE", default_value = "ssa", value_parser = slot_mode_parser())]
    pub slots: SlotMode,

    /// Print Graphviz DOT (stages cfg and dom)
    #[arg(long)]
    pub dot: bool,
}

/// A stage of the pipeline.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum Stage {
    /// The bytecode with code offsets
    Bytecode,
    /// The control-flow graph
    Cfg,
    /// The dominator tree
    Dom,
    /// The IR with the locals in slots
    Slots,
    /// The IR in SSA form
    Ssa,
    /// Cranelift's IR
    Clif,
    /// Machine code
    Asm,
}

/// Arguments of `test`.
#[derive(Debug, Args)]
pub struct TestArgs {
    /// Test files, or folders of them
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,

    /// Rewrite the expected sections; refused where the `run:` lines disagree
    #[arg(long)]
    pub bless: bool,
}

/// Arguments of `bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// Programs, or folders of them
    #[arg(required = true)]
    pub programs: Vec<PathBuf>,

    /// How often to run each program in each mode; the least time counts
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub rounds: u32,

    /// The size to run every program with [default: its `; bench-size:`]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub size: Option<i32>,

    /// Write the figures as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Draw the ratios as a bar chart
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

fn slot_mode_parser() -> impl clap::builder::TypedValueParser<Value = SlotMode> {
    use clap::builder::{PossibleValuesParser, TypedValueParser};
    let names = SlotMode::ALL.iter().map(|mode| mode.name());
    PossibleValuesParser::new(names).map(|name| name.parse().expect("clap has checked the name"))
}
