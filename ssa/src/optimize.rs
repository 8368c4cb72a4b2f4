//! Bytecode to better bytecode: each function is built, promoted, simplified, destroyed and written
//! back.
//!
//! Relies on a [`VerifiedModule`]. Guarantees a module that does the same: results, traps and their
//! order, memory, globals, tables and calls of the host, with the same names, exports and source lines.
//! Code offsets, the fuel that is charged and the depth of calls that a stack has room for may differ.
//!
//! What a function gains is what SSA form sees: locals that only pass values on go, constants are
//! folded, what nothing uses is removed, and the locals that remain are shared. A function that is too
//! large for one of the stages stays as it is, and the report says so.

use slotvm_bytecode::builder::{BuildError, ModuleBuilder};
use slotvm_bytecode::{Module, VerifiedModule};

use tracing::{debug_span, trace_span};

use crate::build::{BuildOptions, BuildScratch, build, is_buildable};
use crate::destruct::destruct;
use crate::passes::simplify::simplify;
use crate::promote::{Scratch, promote};
use crate::verify::{Form, Violation, verify};
use crate::write::{ExceedsLimit, write};

/// What became of a module.
#[derive(Clone, Debug)]
pub struct Optimized {
    /// The module.
    pub module: Module,
    /// The functions that stayed as they were, by their numbers in the function index space.
    pub left: Vec<(u32, Reason)>,
}

/// Why a function stayed as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// See [`is_buildable`].
    #[error("its instructions have too many operands")]
    Operands,
    /// See [`crate::promote::PromotionReport::too_large`].
    #[error("its locals are live in too many blocks")]
    Locals,
    /// See [`crate::destruct::DestructionReport::is_too_large`].
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
    Function(u32, Violation),
    /// The module cannot be put together.
    #[error(transparent)]
    Module(#[from] BuildError),
}

/// Optimises all functions that a module defines.
///
/// # Errors
/// If a stage fails, which is a fault of this crate.
pub fn optimize(module: &VerifiedModule) -> Result<Optimized, OptimizeError> {
    let _optimize = debug_span!("optimize").entered();
    let mut builder = ModuleBuilder::of(module);
    let mut scratch = (BuildScratch::default(), Scratch::default());
    let mut left = Vec::new();
    for func in module.n_imported_funcs()..module.n_funcs() {
        if let Some(reason) = function(module, func, &mut builder, &mut scratch)? {
            left.push((func, reason));
        }
    }
    Ok(Optimized { module: builder.finish()?, left })
}

/// Optimises a function, or gives the reason why it stays as it is.
fn function(
    module: &VerifiedModule,
    func: u32,
    builder: &mut ModuleBuilder,
    (build_scratch, scratch): &mut (BuildScratch, Scratch),
) -> Result<Option<Reason>, OptimizeError> {
    let _function = trace_span!("function", func, name = module.func_name(func)).entered();
    if !is_buildable(module, func) {
        return Ok(Some(Reason::Operands));
    }
    let options = BuildOptions::default();
    let mut f = trace_span!("build").in_scope(|| build(module, func, &options, build_scratch));
    if trace_span!("promote").in_scope(|| promote(&mut f, scratch)).too_large.is_some() {
        return Ok(Some(Reason::Locals));
    }
    trace_span!("simplify").in_scope(|| simplify(&mut f));
    verify(&f, Form::Ssa, module).map_err(|v| OptimizeError::Function(func, v))?;
    let report = trace_span!("destruct").in_scope(|| destruct(&mut f));
    if report.is_too_large {
        return Ok(Some(Reason::Values));
    }
    verify(&f, Form::Slots, module).map_err(|v| OptimizeError::Function(func, v))?;
    let written = trace_span!("write").in_scope(|| write(&f, &report.locals, module, builder));
    Ok(written.err().map(Reason::from))
}
