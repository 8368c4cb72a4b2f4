//! Compiles all functions of a module, on several threads if that is asked for.
//!
//! The code of a function does not depend on the other functions ([`crate::compile::budget`]), so the results
//! are the same, to the bit, whichever thread compiles a function and in whatever order; they are given in
//! the order of functions, and so is the error of the first function that has one.
//!
//! The threads are those of the pool of rayon that the caller is in, or else of the global one. Each has
//! a compiler of its own and takes the next function when it is done with one, so memory grows with the
//! number of threads, and not of functions.

use slotvm_bytecode::VerifiedModule;
use slotvm_bytecode::parallel::try_map;

use crate::compile::budget::Budget;
use crate::compile::function::{CompileError, CompileOptions, CompiledFunction, Compiler};

/// Compiles all functions that a module defines, each with its share of a budget; returns them in their order.
///
/// # Errors
/// The error of the first function that cannot be compiled.
pub(crate) fn compile_all(
    module: &VerifiedModule,
    options: CompileOptions,
    budget: &Budget,
    is_parallel: bool,
) -> Result<Vec<CompiledFunction>, CompileError> {
    let span = tracing::Span::current();
    // The caller's thread, which may be one of them, is in the span already.
    let enter = || (tracing::Span::current() != span).then(|| span.enter());
    let compiler = || (Compiler::new(options.clone()), enter());
    try_map(module.module().funcs.len(), is_parallel, compiler, |(compiler, _), i| {
        let func = module.n_imported_funcs() + i as u32;
        compiler.compile(module, func, budget.share(module, func))
    })
}

#[cfg(all(test, feature = "parallel-compilation"))]
mod tests;
