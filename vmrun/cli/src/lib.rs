//! The command line, as clap derives it.

mod bench;
mod color;
mod explain;
mod guest;
mod parse;
mod profile;
mod quantity;
mod shared;
mod unknown;
pub mod wasi;

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use slotvm_ssa::pipeline::{self, Product, Row, View};

pub use bench::BenchArgs;
pub use color::Color;
pub use explain::ExplainArgs;
pub use guest::{GuestArgs, UnknownImports, Variable};
pub use profile::{ProfileArgs, ProfileStage};
pub use shared::{
    CodeArgs, FuelArgs, FuncArgs, JsonArgs, LimitArgs, NativeArgs, OutputArgs, PassesArgs,
};

const EXAMPLES: &str = "\
Examples:
  vmrun programs/mandelbrot.bc --jit              run native code
  vmrun programs/n_queens.bc 9 --jit --time       with a size, and the time of each stage
  vmrun programs/divmod.bc --invoke gcd 240 46    call one function
  vmrun prog.wasm --lazy --dir data::/ -v /f      run a WASI program with the files in data
  vmrun asm prog.vasm -o - | vmrun -              `-` is standard input and output
  vmrun dump programs/collatz.bc --stage ssa      see what promotion does

Exit codes:
  the program's own, 134 if it traps, 2 for wrong usage, 1 for any other failure";

const OTHER_HABITS: &str = "\
For those who know wasmtime:
  Options of `run` may follow the program. All other words after it are the program's, as all are after `--`:
      vmrun prog.wasm -v --jit            gives it -v
      vmrun prog.wasm -- -v --jit         gives it both
  There are no option groups:
      --fuel, --timeout and --max-memory  not  -W fuel=N,timeout=T,max-memory-size=N
      --slots, --passes and --cache       not  -O and -C
      --dir and --env                     not  -S
  For the instructions of the guest:
      vmrun profile                       not  --profile=guest
  WASI is always there, at preview 1. Components, HTTP handlers and --preload are not supported.
  With --invoke, what would be the program's arguments are the values of the function.";

const HOST_FUNCTIONS: &str = "\
A program exports `main`. If it takes an i32, that is the first of ARGS, or else the exported global
`default_size`; if it returns an i32, that is the exit code. It can import from `env`:
  print_i32(i32)  print_i64(i64)  print_f64(f64)  print_char(i32)  print_str(ptr: i32, len: i32)
  read_line(ptr: i32, cap: i32) -> i32  args(ptr: i32, cap: i32) -> i32  clock_ns() -> i64
A WASI program exports `_start`, which is called instead of `main`. It can import all of
`wasi_snapshot_preview1`. It gets its file name and ARGS, the standard streams, and the directories
and variables of --dir and --env.";

const INVOKE_HELP: &str = "Call this exported function instead of `_start` or `main`, with ARGS as its values, and print its results, one per line";

const COMPILED_HELP: &str = "\
Path of the precompiled program [default: the program with the extension .vmc]

It is for `vmrun` with the same --slots and --passes, and for runs with --fuel, --timeout or --deterministic-stack if it was compiled for them. Only the same version of `vmrun` runs it, on a machine of the same kind, for the user who compiled it: it is authenticated by the key of the user's cache.";

/// Runs, assembles, inspects and measures slotvm programs.
///
/// Programs are binary modules (`.bc`), assembler text (`.vasm`), WebAssembly modules (`.wasm` or
/// `.wat`), or, to be run, what `vmrun compile` has written (`.vmc`). `-` is standard input.
#[derive(Debug, Parser)]
#[command(
    name = "vmrun",
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = EXAMPLES,
    after_long_help = format!("{HOST_FUNCTIONS}\n\n{OTHER_HABITS}\n\n{EXAMPLES}")
)]
pub struct Cli {
    /// The command; without one, the program is run.
    #[command(subcommand)]
    pub command: Option<Command>,

    /// Run a program.
    #[command(flatten)]
    pub run: Option<RunArgs>,

    /// Colours of errors and help
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t)]
    pub color: Color,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a program (the default)
    #[command(
        after_help = HOST_FUNCTIONS,
        after_long_help = format!("{HOST_FUNCTIONS}\n\n{OTHER_HABITS}")
    )]
    Run(RunArgs),
    /// Assemble text into a binary module
    Asm(BinaryArgs),
    /// Disassemble a module into text
    Dis(DisArgs),
    /// Convert a WebAssembly module into a binary module
    Convert(BinaryArgs),
    /// Optimise a program and write it as a binary module
    Opt(OptArgs),
    /// Make native code of a program, and write both for later runs
    Compile(CompileArgs),
    /// Load and verify modules; print only errors
    Verify(VerifyArgs),
    /// Show a program at a stage of the pipeline
    Dump(DumpArgs),
    /// Show a function in every stage, as a page
    Explain(ExplainArgs),
    /// Show the native code of a program with the bytecode that it comes from
    Objdump(ObjdumpArgs),
    /// Print the opcode reference
    Ops,
    /// Print the target, the features in use, the limits and the versions
    Settings(SettingsArgs),
    /// Print the completions of a shell
    Completions(CompletionsArgs),
    /// Run file tests
    Test(TestArgs),
    /// Run WebAssembly test scripts
    Wast(WastArgs),
    /// Measure programs in every slot mode: memory code against register code
    Bench(BenchArgs),
    /// Run a program and show how often each block is executed
    #[command(after_help = HOST_FUNCTIONS)]
    Profile(ProfileArgs),
    /// Find and reduce the first difference between native code and the interpreter
    #[command(after_help = HOST_FUNCTIONS)]
    Crosscheck(CrosscheckArgs),
    /// The part of `crosscheck` that may crash
    #[command(hide = true)]
    CrosscheckNative(CrosscheckNativeArgs),
}

/// Arguments of `run`.
#[derive(Debug, Args)]
// clap leaves the group of arguments that contain others empty, and takes it for absent if it is.
#[command(mut_group("RunArgs", |group| group.arg("program")))]
#[command(mut_arg("invoke", |arg| arg.help(INVOKE_HELP)))]
pub struct RunArgs {
    /// The program
    #[arg(value_name = "PROGRAM")]
    pub program: PathBuf,

    /// Engine and slot mode
    #[command(flatten)]
    pub native: NativeArgs,

    /// Interpret [default: interpret at first, and make native code of what is done often]
    #[arg(long, conflicts_with_all = ["jit", "slots", "passes", "lazy"])]
    pub interp: bool,

    /// Run native code, compiling each function when it is first called
    #[arg(long)]
    pub lazy: bool,

    /// Print what native code is made of while the program runs, and why, to standard error
    #[arg(long, conflicts_with_all = ["jit", "interp", "slots", "passes", "lazy"])]
    pub tier_log: bool,

    /// Keep native code in this directory, and start with what is kept there
    /// [default directory: slotvm in $XDG_CACHE_HOME or ~/.cache]
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, conflicts_with_all = ["interp", "trace"])]
    pub cache: Option<Option<PathBuf>>,

    /// Arguments, directories and variables of the program
    #[command(flatten)]
    pub guest: GuestArgs,

    /// What the program may use
    #[command(flatten)]
    pub limits: LimitArgs,

    /// Tell profilers the names of native functions
    #[arg(long, value_enum, value_name = "HOW", conflicts_with_all = ["interp", "trace"])]
    pub profile: Option<Profiler>,

    /// Print each instruction, with the operand stack before it, to standard error (interpreter only)
    #[arg(long, conflicts_with_all = ["jit", "slots", "passes", "lazy"])]
    pub trace: bool,

    /// Print the time of each stage in all threads, of the whole run, the CPU time of the process, and the fuel used, to
    /// standard error
    #[arg(long)]
    pub time: bool,

    /// Print the times as one line of JSON
    #[arg(long, requires = "time")]
    pub json: bool,
}

/// Arguments of `crosscheck`.
#[derive(Debug, Args)]
#[command(mut_arg("slots", |arg| arg.help("The slot mode of native code")))]
#[command(mut_arg("fuel", |arg| arg.help("Limit and compare fuel, one unit for each bytecode instruction")))]
#[command(mut_arg("output", |arg| arg.help(
    "Path of the reduced program [default: the program's name with the extension .reduced.vasm]"
)))]
pub struct CrosscheckArgs {
    /// The program
    #[arg(value_name = "PROGRAM")]
    pub program: PathBuf,

    /// Slot mode and passes
    #[command(flatten)]
    pub code: CodeArgs,

    /// Arguments, directories and variables of the program
    #[command(flatten)]
    pub guest: GuestArgs,

    /// Fuel
    #[command(flatten)]
    pub fuel: FuelArgs,

    /// Output
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Arguments of `crosscheck-native`.
#[derive(Debug, Args)]
pub struct CrosscheckNativeArgs {
    /// The folder with the job
    pub folder: PathBuf,
}

/// Files by which profilers learn the names of native functions.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum Profiler {
    /// `/tmp/perf-PID.map`, which `perf report` reads by itself
    Perfmap,
    /// `jit-PID.dump` in the current folder, with the code, for `perf record -k mono` and `perf inject --jit`
    Jitdump,
}

/// Arguments of `asm` and `convert`.
#[derive(Debug, Args)]
#[command(mut_arg("output", |arg| arg.help(
    "Path of the binary module, `-` for standard output [default: the source with the extension .bc]"
)))]
pub struct BinaryArgs {
    /// The text, or the WebAssembly module, binary or text
    pub source: PathBuf,

    /// Output
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Arguments of `dis`.
#[derive(Debug, Args)]
#[command(mut_arg("output", |arg| arg.help("Path of the text [default: standard output]")))]
pub struct DisArgs {
    /// The module
    pub program: PathBuf,

    /// Output
    #[command(flatten)]
    pub output: OutputArgs,

    /// Show the code offset of each instruction in a comment
    #[arg(long)]
    pub offsets: bool,
}

/// Arguments of `opt`.
#[derive(Debug, Args)]
pub struct OptArgs {
    /// The program
    pub program: PathBuf,

    /// Path of the binary module
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,

    /// Passes
    #[command(flatten)]
    pub passes: PassesArgs,
}

/// Arguments of `compile`.
#[derive(Debug, Args)]
#[command(mut_arg("output", |arg| arg.help(
    "Path of the precompiled program [default: the program with the extension .vmc]"
).long_help(COMPILED_HELP)))]
pub struct CompileArgs {
    /// The program
    pub program: PathBuf,

    /// Output
    #[command(flatten)]
    pub output: OutputArgs,

    /// Slot mode and passes
    #[command(flatten)]
    pub code: CodeArgs,

    /// Make code that counts fuel, for runs with --fuel
    #[arg(long)]
    pub fuel: bool,

    /// Make code that can be stopped, for runs with --timeout
    #[arg(long)]
    pub timeout: bool,

    /// Make code that counts the cells of its frames, for runs with --deterministic-stack
    #[arg(long)]
    pub deterministic_stack: bool,
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
#[command(mut_arg("slots", |arg| arg.help("The slot mode for the stages clif and asm")))]
pub struct DumpArgs {
    /// The program
    pub program: PathBuf,

    /// The stage to show
    #[arg(long, value_parser = stage_parser())]
    pub stage: String,

    /// Function
    #[command(flatten)]
    pub func: FuncArgs,

    /// Slot mode and passes
    #[command(flatten)]
    pub code: CodeArgs,

    /// Print the graph of the blocks as Graphviz DOT, for the stages cfg and dom and those of the IR
    #[arg(long)]
    pub dot: bool,

    /// Draw the graph of the blocks as SVG, of one function
    #[arg(long, conflicts_with = "dot")]
    pub svg: bool,

    /// Format of the IR
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    pub format: Format,
}

/// Arguments of `objdump`.
#[derive(Debug, Args)]
pub struct ObjdumpArgs {
    /// The program
    pub program: PathBuf,

    /// Function
    #[command(flatten)]
    pub func: FuncArgs,

    /// Format
    #[command(flatten)]
    pub json: JsonArgs,
}

/// Arguments of `settings`.
#[derive(Debug, Args)]
pub struct SettingsArgs {
    /// Format
    #[command(flatten)]
    pub json: JsonArgs,
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

/// Formats of the IR.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The text IR
    Text,
    /// LLVM IR, for LLVM 19 or later
    Llvm,
}

/// The stages of `dump`: bytecode, views of the IR, and the rows of the pipeline that leave a function.
fn stage_parser() -> PossibleValuesParser {
    let bytecode = ("bytecode", "The bytecode with code offsets");
    let views = View::ALL.iter().map(|view| (view.name(), view.summary()));
    let is_function = |row: &&Row| row.is_of_ir() || is_native(row.makes);
    let rows = pipeline::TABLE.iter().filter(is_function).map(|row| (row.name, row.summary));
    let all = [bytecode].into_iter().chain(views).chain(rows);
    PossibleValuesParser::new(all.map(|(name, summary)| PossibleValue::new(name).help(summary)))
}

/// Whether only the JIT can show a product.
pub fn is_native(product: Product) -> bool {
    matches!(product, Product::Clif | Product::Asm)
}

/// Arguments of `test`.
#[derive(Debug, Args)]
#[command(mut_arg("json", |arg| arg.help("Print the counts as JSON")))]
pub struct TestArgs {
    /// Test files, or folders of them
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,

    /// Format
    #[command(flatten)]
    pub json: JsonArgs,

    /// Rewrite the expected sections; refused where the `run:` lines disagree
    #[arg(long)]
    pub bless: bool,
}

/// Arguments of `wast`.
#[derive(Debug, Args)]
#[command(mut_arg("json", |arg| arg.help("Print the counts as JSON")))]
pub struct WastArgs {
    /// The scripts
    #[arg(required = true, value_name = "FILE")]
    pub scripts: Vec<PathBuf>,

    /// Format
    #[command(flatten)]
    pub json: JsonArgs,

    /// Engine and slot mode
    #[command(flatten)]
    pub native: NativeArgs,
}
