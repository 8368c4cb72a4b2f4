//! Bytecode to better bytecode: each function is built, promoted, simplified, taken out of SSA and encoded again,
//! as the rows of the [`pipeline`] say.
//!
//! Relies on a [`VerifiedModule`]. Guarantees a module that does the same: results, traps and their
//! order, memory, globals, tables and calls of the host, with the same names, exports and source lines.
//! Code offsets, the fuel that is charged and the depth of calls that a stack has room for may differ.
//!
//! A function gains from SSA form: locals that only pass values on are removed, constants are folded,
//! unused code is removed, and the remaining locals are shared. A function that is too
//! large for one of the stages stays unchanged, and the report states it.

use slotvm_bytecode::builder::{BuildError, ModuleBuilder};
use slotvm_bytecode::{Module, VerifiedModule};

use tracing::{debug_span, trace_span};

use crate::construction::build::{BuildOptions, BuildScratch, build, is_buildable};
use crate::construction::promote::{Scratch, promote};
use crate::ir::Function;
use crate::passes::destruct::destruct;
use crate::passes::write::{ExceedsLimit, WriteError, write};
use crate::pipeline::{self, Checks, PassSet, Product, Row, Run, Stage, StageError, Times, User};

/// The result of optimising a module.
#[derive(Clone, Debug)]
pub struct Optimized {
    /// The module.
    pub module: Module,
    /// The functions that stayed as they were, by their numbers in the function index space.
    pub left: Vec<(u32, Reason)>,
}

/// The reason why a function stayed as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// See [`is_buildable`].
    #[error("its instructions have too many operands")]
    Operands,
    /// See [`crate::construction::promote::PromotionReport::too_large`].
    #[error("its locals are live in too many blocks")]
    Locals,
    /// See [`crate::passes::destruct::DestructionReport::is_too_large`].
    #[error("its values are live in too many blocks")]
    Values,
    /// Its code would exceed a limit of modules.
    #[error(transparent)]
    Limit(#[from] ExceedsLimit),
}

/// A fault of this crate: what a stage made is wrong.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OptimizeError {
    /// A function does not pass the verifier of the IR after a stage.
    #[error("function {0}: {1}")]
    Function(u32, StageError),
    /// The module cannot be put together.
    #[error(transparent)]
    Module(#[from] BuildError),
}

/// Optimises all functions that a module defines. Each is verified after each stage.
///
/// # Errors
/// Fails if a stage fails, which is a fault of this crate.
pub fn optimize(module: &VerifiedModule) -> Result<Optimized, OptimizeError> {
    optimize_with(module, PassSet::all())
}

/// Does the same as [`optimize`], with these passes only.
///
/// # Errors
/// Fails if a stage fails, which is a fault of this crate.
pub fn optimize_with(module: &VerifiedModule, passes: PassSet) -> Result<Optimized, OptimizeError> {
    let _optimize = debug_span!("optimize").entered();
    let mut optimizer = Optimizer {
        module,
        passes,
        builder: ModuleBuilder::of(module),
        build: BuildScratch::default(),
        promote: Scratch::default(),
    };
    let mut left = Vec::new();
    for func in module.n_imported_funcs()..module.n_funcs() {
        let reason =
            optimizer.function(func).map_err(|error| OptimizeError::Function(func, error))?;
        left.extend(reason.map(|reason| (func, reason)));
    }
    Ok(Optimized { module: optimizer.builder.finish()?, left })
}

struct Optimizer<'m> {
    module: &'m VerifiedModule,
    passes: PassSet,
    builder: ModuleBuilder,
    build: BuildScratch,
    promote: Scratch,
}

impl Optimizer<'_> {
    /// Optimises a function, or returns the reason why it stays as it is.
    fn function(&mut self, func: u32) -> Result<Option<Reason>, StageError> {
        let module = self.module;
        let _function = trace_span!("function", func, name = module.func_name(func)).entered();
        if !is_buildable(module, func) {
            return Ok(Some(Reason::Operands));
        }
        let (mut f, mut locals) = (Function::default(), Vec::new());
        let (mut checks, mut times) = (Checks::new(true), Times::default());
        // The module was loaded and verified before.
        let is_of_function = |row: &Row| !matches!(row.needs, Product::Bytes | Product::Module);
        let passes = self.passes;
        let runs = |place, row| passes.runs(place) && is_of_function(row);
        for (place, row) in pipeline::rows_of(User::Opt).filter(|&(place, row)| runs(place, row)) {
            if row.needs.form().is_some() {
                checks.before(&f);
            }
            let left =
                row.timed(times.of_row(place), || self.run(row, func, &mut f, &mut locals))?;
            if left.is_some() {
                return Ok(left);
            }
            checks.after(row, &f, module)?;
        }
        Ok(None)
    }

    /// Runs a row. Returns a reason why the function stays as it is.
    fn run(
        &mut self,
        row: &Row,
        func: u32,
        f: &mut Function,
        locals: &mut Vec<Option<u32>>,
    ) -> Result<Option<Reason>, StageError> {
        Ok(match row.run {
            Run::Stage(Stage::Slots) => {
                *f = build(self.module, func, &BuildOptions::default(), &mut self.build);
                None
            }
            Run::Stage(Stage::Ssa) => {
                promote(f, &mut self.promote).too_large.map(|_| Reason::Locals)
            }
            Run::Pass(pass) => {
                pass(f);
                None
            }
            Run::Stage(Stage::Destruct) => {
                let report = destruct(f);
                *locals = report.locals;
                report.is_too_large.then_some(Reason::Values)
            }
            Run::Stage(Stage::Write) => match write(f, locals, self.module, &mut self.builder) {
                Ok(()) => None,
                Err(WriteError::Limit(limit)) => Some(Reason::Limit(limit)),
                Err(WriteError::Invalid(error)) => {
                    return Err(StageError::of(Stage::Write, error));
                }
            },
            Run::Stage(
                Stage::Load
                | Stage::Verify
                | Stage::Devirtualise
                | Stage::Inline
                | Stage::Rotate
                | Stage::Pressure
                | Stage::Clif
                | Stage::Asm
                | Stage::Place,
            ) => None,
        })
    }
}
