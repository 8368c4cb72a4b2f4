//! The engines, each with what it provides to programs: its own implementation of WASI, and the host
//! functions of the kernels.

#[macro_use]
mod common;
mod native;
mod ours;
mod silverfir;
mod v8;
mod wasmi;
mod wasmtime;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;

use crate::failure::Failure;
use crate::placement::Placement;
use crate::program::{Outcome, Program, Run, Wasi};

/// An engine with a configuration.
pub(crate) trait Engine {
    /// Its name, and that of what is special about its configuration.
    fn name(&self) -> &'static str;

    /// Whether programs become machine code, whose time depends on where it lies.
    fn is_compiler(&self) -> bool {
        true
    }

    /// Whether it can run a program. The default is that it can.
    fn runs(&self, _program: &Program) -> bool {
        true
    }

    /// Makes of a program what can be run, all of it at once.
    fn compile(&self, code: &Code) -> Result<Box<dyn Compiled>, Failure>;
}

/// A program to compile.
pub(crate) struct Code {
    /// The module, which is at its place already.
    pub(crate) wasm: Vec<u8>,
    /// The path of its source.
    pub(crate) source: PathBuf,
    pub(crate) placement: Placement,
}

/// A module that can be run.
pub(crate) trait Compiled {
    /// CPU time that compiling took, if that is of interest.
    fn compile_time(&self) -> Option<Duration>;

    /// Runs the program `n` times, each time as a new instance, and returns the outcome of each run, which must be
    /// the same, and the CPU time that all of them took.
    fn run(&self, run: &Run, n: u32) -> Result<(Outcome, Duration), Failure>;
}

/// An engine to measure.
#[derive(Copy, Clone)]
pub(crate) enum Contender {
    /// slotvm.
    Ssa,
    /// slotvm with a check of each access.
    Checked,
    /// The same without signals.
    CheckedNoSignals,
    Interpreter,
    Wasmtime,
    WasmtimeInliner,
    WasmtimeChecked,
    /// The same without masks against Spectre.
    WasmtimeUnmasked,
    /// The same without signals.
    WasmtimeNoSignals,
    TurboFan,
    Liftoff,
    Silverfir,
    SilverfirInterpreter,
    Wasmi,
    /// The C source as clang compiles it for this machine.
    Native,
}

impl Contender {
    fn engine(self) -> Result<Box<dyn Engine>, Failure> {
        use wasmtime::{Accesses, Wasmtime};
        Ok(match self {
            Contender::Ssa => Box::new(ours::Ours::jit()),
            Contender::Checked => Box::new(ours::Ours::checked()),
            Contender::CheckedNoSignals => Box::new(ours::Ours::without_signals()),
            Contender::Interpreter => Box::new(ours::Ours::interpreter()),
            Contender::Wasmtime => Box::new(Wasmtime::new()),
            Contender::WasmtimeInliner => Box::new(Wasmtime::inlining()),
            Contender::WasmtimeChecked => Box::new(Wasmtime::checked(Accesses::Masked)),
            Contender::WasmtimeUnmasked => Box::new(Wasmtime::checked(Accesses::Unmasked)),
            Contender::WasmtimeNoSignals => Box::new(Wasmtime::checked(Accesses::NoSignals)),
            Contender::TurboFan => Box::new(v8::V8::turbofan()?),
            Contender::Liftoff => Box::new(v8::V8::liftoff()?),
            Contender::Silverfir => Box::new(silverfir::Silverfir::jit()?),
            Contender::SilverfirInterpreter => Box::new(silverfir::Silverfir::interpreter()?),
            Contender::Wasmi => Box::new(wasmi::Wasmi::new()),
            Contender::Native => Box::new(native::Native::new()?),
        })
    }
}

/// The engines that this machine has got. Says which it has not.
pub(crate) fn contenders(contenders: &[Contender]) -> Vec<Box<dyn Engine>> {
    let engine = |contender: &Contender| match contender.engine() {
        Ok(engine) => Some(engine),
        Err(reason) => {
            eprintln!("skipped: {reason}");
            None
        }
    };
    contenders.iter().filter_map(engine).collect()
}

/// Runs a program `n` times by a function that does so once.
fn repeat(
    n: u32,
    mut once: impl FnMut() -> Result<(Outcome, Duration), Failure>,
) -> Result<(Outcome, Duration), Failure> {
    let (first, mut taken) = once()?;
    for _ in 1..n {
        let (outcome, time) = once()?;
        if outcome != first {
            return Err("runs are not the same".to_owned());
        }
        taken += time;
    }
    Ok((first, taken))
}

/// Copies of the directories that a program may use, each below a directory of the host that goes away with
/// what is returned.
fn directories(wasi: &Wasi) -> Result<Option<TempDir>, Failure> {
    if wasi.dirs.is_empty() {
        return Ok(None);
    }
    let place = TempDir::new().map_err(|error| error.to_string())?;
    for (name, files) in &wasi.dirs {
        let dir = place.path().join(name);
        fs::create_dir_all(&dir).map_err(|error| error.to_string())?;
        for (name, contents) in files {
            fs::write(dir.join(name), contents).map_err(|error| error.to_string())?;
        }
    }
    Ok(Some(place))
}
