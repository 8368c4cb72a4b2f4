//! Compiles the functions, and counts what that takes.

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use slotvm::{Config, Engine, Module, Rung, SlotMode, Tier};
use slotvm_bytecode::{Op, VerifiedModule};

use crate::shapes::{self, Shape};

/// The system's allocator, which counts what is allocated.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is handed on to the system's allocator unchanged, which keeps the contract of the trait;
// the counters beside it allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`, which is that of the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: `start` came from `alloc` with this layout, so from the system's allocator.
        unsafe { System.dealloc(start, layout) }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        LIVE.fetch_sub(layout.size(), Relaxed);
        add(bytes);
        // SAFETY: the caller keeps the contract of `realloc`, and `start` is a block of the system's.
        unsafe { System.realloc(start, layout, bytes) }
    }
}

fn add(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(live, Relaxed);
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Lengths between which callgrind counts instructions; it takes fifty times as long as compiling alone does.
const COUNTED: [usize; 2] = [16, 48];
/// Lengths at which bytes are counted: what grows by doubling is soon full in some of them, and soon grown in
/// others.
const ALLOCATED: [usize; 2] = [362, 512];

/// The effort with which a function is compiled.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Effort {
    Optimised,
    Unoptimised,
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
        (self.shape == Shape::Alone).then_some(Subject { op, is_there: false, ..self })
    }

    fn module(self, n: usize) -> Arc<VerifiedModule> {
        Arc::new(shapes::module(self.op, self.is_there, self.shape, n))
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
        let engine = match subject.effort {
            Effort::Optimised => &self.optimised,
            Effort::Unoptimised => &self.unoptimised,
        };
        let module = measured(engine, module);
        let work = module.functions()[0].work;
        assert_eq!(work.rung, Rung::AsAsked, "{subject:?}: {work:?}");
    }
}

#[inline(never)]
fn measured(engine: &Engine, module: &Arc<VerifiedModule>) -> Module {
    slotvm_cost_marker();
    Module::from_verified(engine, module.clone()).expect("it compiles")
}

/// A place for callgrind to note what it has counted.
#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn slotvm_cost_marker() {
    std::hint::black_box(());
}

/// The bytes at the peak for each instruction, at the length at which that is most.
pub(crate) fn bytes(subjects: &[Subject]) -> Vec<f64> {
    let engines = Engines::new();
    let peak = |subject: Subject, n| {
        let module = subject.module(n);
        let before = LIVE.load(Relaxed);
        PEAK.store(before, Relaxed);
        engines.compile(subject, &module);
        (PEAK.load(Relaxed) - before) as f64
    };
    let of = |&subject: &Subject| {
        let least = peak(subject, 1);
        let rate = |n| (peak(subject, n) - least) / n as f64;
        ALLOCATED.into_iter().map(rate).fold(0.0, f64::max)
    };
    subjects.iter().map(of).collect()
}

/// Compiles each of the functions in which [`instructions`] are counted.
pub(crate) fn compile_all(subjects: &[Subject]) {
    let engines = Engines::new();
    // Between two markers nothing else is to be done.
    let of = |&subject: &Subject| COUNTED.map(|n| (subject, subject.module(n)));
    for (subject, module) in subjects.iter().flat_map(of).collect::<Vec<_>>() {
        engines.compile(subject, &module);
    }
    slotvm_cost_marker();
}

/// The instructions that are executed for each instruction, by this program in callgrind when it is called
/// with `arg`, at which it calls [`compile_all`] with the same subjects.
pub(crate) fn instructions(subjects: &[Subject], arg: &str) -> Vec<f64> {
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
        .args([&program, Path::new(arg)]));
    // The first part is what was executed before the first marker.
    let part = |i: usize| total(&dir.join(format!("out.{}", i + 2)));
    let n = COUNTED.len();
    let of = |i: usize| (part(n * i + 1) - part(n * i)) / (COUNTED[1] - COUNTED[0]) as f64;
    let counts = (0..subjects.len()).map(of).collect();
    std::fs::remove_dir_all(dir).expect("the directory is ours");
    counts
}

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}

/// The instructions of a part.
fn total(path: &Path) -> f64 {
    let text = std::fs::read(path).expect("callgrind wrote the part");
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().find_map(|line| line.strip_prefix("totals: ")).expect("it has totals");
    line.trim().parse().expect("they are one number")
}
