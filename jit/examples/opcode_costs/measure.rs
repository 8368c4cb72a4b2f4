//! Compiles the functions, and counts what that takes.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use slotvm::compiler;
use slotvm::{Config, Engine, Module, SlotMode, Tier};
use slotvm_bytecode::{Op, VerifiedModule, verify};

use crate::shapes::{self, Shape};
use crate::stages::{self, Split};

/// Lengths between which callgrind counts instructions; it takes fifty times as long as compiling alone does.
const COUNTED: [usize; 2] = [16, 48];
/// Lengths at which bytes are counted: what grows by doubling is soon full in some of them, and soon grown in
/// others.
const ALLOCATED: [usize; 2] = [362, 512];

/// Estimated time of each instruction in any way but one pass, in points. It is more than such a function may take,
/// so that the function is compiled in one pass.
const POINTS_PER_INST: usize = 100_000;
/// Pretended source size of a second function, which does nothing. Each byte of the two functions then stands for so
/// many points.
const FILLER_BYTES: u32 = 1 << 20;
const POINTS_PER_BYTE: usize = 6_100;

/// The values that live at once at its start for that. If so many crowd, the allocator that splits is estimated to
/// take 50 points times their square, and the other one little.
fn n_crowded(n_insts: usize) -> usize {
    (40.0 * (n_insts as f64).sqrt()) as usize
}

/// The effort with which a function is compiled.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Effort {
    Optimised,
    Unoptimised,
    OnePass,
}

/// A way for instructions of an opcode to stand in a function.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Subject {
    pub(crate) op: Op,
    /// Whether they are there, or only what surrounds them.
    pub(crate) is_there: bool,
    pub(crate) shape: Shape,
    pub(crate) effort: Effort,
}

impl Subject {
    /// The code around the instructions, if that is to be taken off. It is the same for many opcodes, of which
    /// the first stands for all.
    pub(crate) fn around(self) -> Option<Subject> {
        let is_like = |&&op: &&Op| shapes::types(op) == shapes::types(self.op);
        let op = *Op::ALL.iter().find(is_like)?;
        Shape::ALONE.contains(&self.shape).then_some(Subject { op, is_there: false, ..self })
    }

    /// The module with `n` of them, of which there are so many at most between which costs are compared.
    fn module(self, n: usize, n_max: usize) -> Arc<VerifiedModule> {
        let in_one_pass = self.effort == Effort::OnePass;
        let n_crowded = if in_one_pass { n_crowded(n_max) } else { 0 };
        let mut module = shapes::module(self.op, self.is_there, self.shape, n, n_crowded);
        if in_one_pass {
            module.funcs[0].source_bytes = (n_max * POINTS_PER_INST / POINTS_PER_BYTE) as u32;
            module.funcs[1].source_bytes = FILLER_BYTES;
        }
        Arc::new(verify(module).unwrap_or_else(|error| panic!("{self:?}: {error}")))
    }
}

/// The engines of the efforts.
struct Engines {
    optimised: Engine,
    unoptimised: Engine,
}

impl Engines {
    fn new() -> Engines {
        let engine = |slots| {
            let config = &mut Config::new();
            config.tier(Tier::Jit).slots(slots).verify_passes(false).parallel_compilation(false);
            Engine::new(config).expect("there is native code")
        };
        Engines { optimised: engine(SlotMode::Ssa), unoptimised: engine(SlotMode::Memory) }
    }

    fn compile(&self, subject: Subject, module: &Arc<VerifiedModule>) {
        let (engine, rung) = match subject.effort {
            Effort::Optimised => (&self.optimised, compiler::Effort::AsAsked),
            Effort::Unoptimised => (&self.unoptimised, compiler::Effort::AsAsked),
            Effort::OnePass => (&self.unoptimised, compiler::Effort::OnePass),
        };
        let module = measured(engine, module);
        let work = module.functions()[0].work;
        assert_eq!(work.effort, rung, "{subject:?}: {work:?}");
    }
}

#[inline(never)]
fn measured(engine: &Engine, module: &Arc<VerifiedModule>) -> Module {
    stages::start();
    Module::from_verified(engine, module.clone()).expect("it compiles")
}

/// The bytes at the peak for each instruction, at the length at which that is most, by this program in valgrind
/// when it is called with `args`, at which it calls [`print_bytes`] with the same subjects.
pub(crate) fn bytes(subjects: &[Subject], args: &[&str]) -> Vec<Split> {
    let program = std::env::current_exe().expect("the program has a file");
    let mut valgrind = Command::new("valgrind");
    let output =
        run(valgrind.args(["--tool=none", "-q"]).arg(program).args(args).stdout(Stdio::piped()));
    let output = String::from_utf8(output.stdout).expect("it prints numbers");
    let costs: Vec<Split> = output.lines().map(Split::from_line).collect();
    assert_eq!(costs.len(), subjects.len(), "one line for each subject");
    costs
}

/// Prints them, a line for each subject.
pub(crate) fn print_bytes(subjects: &[Subject]) {
    let engines = Engines::new();
    let [.., n_max] = ALLOCATED;
    let peak = |subject: Subject, n| {
        let module = subject.module(n, n_max);
        stages::clear();
        engines.compile(subject, &module);
        stages::end();
        stages::peaks()
    };
    let of = |&subject: &Subject| {
        let least = peak(subject, 1);
        let rate = |n| peak(subject, n).per(&least, n as f64);
        ALLOCATED.into_iter().map(rate).reduce(Split::max).expect("there are lengths")
    };
    for subject in subjects {
        println!("{}", of(subject).to_line());
    }
}

/// Compiles each of the functions in which [`instructions`] are counted.
pub(crate) fn compile_all(subjects: &[Subject]) {
    let engines = Engines::new();
    let [.., n_max] = COUNTED;
    // Between two markers nothing else is to be done.
    let of = |&subject: &Subject| COUNTED.map(|n| (subject, subject.module(n, n_max)));
    let modules: Vec<_> = subjects.iter().flat_map(of).collect();
    stages::clear();
    for (subject, module) in modules {
        engines.compile(subject, &module);
    }
    stages::end();
}

/// The instructions that are executed for each instruction, by this program in callgrind when it is called
/// with `args`, at which it calls [`compile_all`] with the same subjects.
pub(crate) fn instructions(subjects: &[Subject], args: &[&str]) -> Vec<Split> {
    let dir = std::env::temp_dir().join(format!("slotvm-opcode-costs-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("there is room for temporary files");
    // Without names of functions the parts are small.
    let program = dir.join("program");
    run(Command::new("objcopy")
        .args(["--strip-all", "--keep-symbol=slotvm_cost_marker"])
        .arg(std::env::current_exe().expect("the program has a file"))
        .arg(&program));
    let mut out = std::ffi::OsString::from("--callgrind-out-file=");
    out.push(dir.join("out"));
    run(Command::new("valgrind")
        .args(["--tool=callgrind", "--dump-before=slotvm_cost_marker", "--dump-line=no", "-q"])
        .arg(out)
        .arg(&program)
        .args(args));
    // This process passes the same markers. The first part is what was executed before the first.
    compile_all(subjects);
    let mut totals = vec![Split::default(); COUNTED.len() * subjects.len()];
    for (i, (compilation, stage)) in stages::passed().into_iter().enumerate() {
        totals[compilation].add(stage, total(&dir.join(format!("out.{}", i + 2))));
    }
    let slope = |of: &[Split]| of[1].per(&of[0], (COUNTED[1] - COUNTED[0]) as f64);
    let counts = totals.chunks(COUNTED.len()).map(slope).collect();
    std::fs::remove_dir_all(dir).expect("the directory is ours");
    counts
}

fn run(command: &mut Command) -> Output {
    let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let output = child.wait_with_output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", output.status);
    output
}

/// The instructions of a part.
fn total(path: &Path) -> f64 {
    let text = std::fs::read(path).expect("callgrind wrote the part");
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().find_map(|line| line.strip_prefix("totals: ")).expect("it has totals");
    line.trim().parse().expect("they are one number")
}
