//! Bytecode to better bytecode: each function is built, promoted, simplified, taken out of SSA and encoded again,
//! as the rows of the table in [`crate::pipeline`] say.
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

use crate::construction::build::is_buildable;
use crate::ir::Function;
use crate::passes::write::{ExceedsLimit, WriteError, write};
use crate::pipeline::{
    Driver, PassContext, PassScratch, PassSet, Product, Stage, StageError, Start, Times, User,
};

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
        scratch: PassScratch::default(),
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
    scratch: PassScratch,
}

impl Optimizer<'_> {
    /// Optimises a function, or returns the reason why it stays as it is.
    fn function(&mut self, func: u32) -> Result<Option<Reason>, StageError> {
        let module = self.module;
        let _function = trace_span!("function", func, name = module.func_name(func)).entered();
        if !is_buildable(module, func) {
            return Ok(Some(Reason::Operands));
        }
        let (mut f, mut times) = (Function::default(), Times::default());
        let mut context = PassContext::new(module, func, &mut self.scratch);
        let driver = Driver::new(User::Opt, self.passes, true, &mut times);
        let ran = driver.run(&mut f, Start::Bytecode, &mut context, |_, _| {})?;
        if let Some(row) = ran.given_up {
            return Ok(Some(match row.makes {
                Product::Ssa => Reason::Locals,
                _ => Reason::Values,
            }));
        }
        let (locals, builder) = (&context.locals, &mut self.builder);
        match times.stage(Stage::Write, || write(&f, locals, module, builder)) {
            Ok(()) => Ok(None),
            Err(WriteError::Limit(limit)) => Ok(Some(Reason::Limit(limit))),
            Err(WriteError::Invalid(error)) => Err(StageError::of(Stage::Write, error)),
        }
    }
}
