//! Compiles all functions of a module, on several threads if that is asked for.
//!
//! The code of a function depends on the bytecode of those that it inlines, but not on earlier compilations
//! ([`crate::compile::budget`]). So the results are the same, to the bit, whichever thread compiles a function and in
//! whatever order; they are given in the order of functions.
//!
//! Functions are compiled in waves: a function that all its callers have inlined, and that nothing else can enter, has no
//! code. The first wave leaves out what may turn out to be such a function, and each later one is what the wave before
//! calls. The error is that of the first function in a wave that has one.
//!
//! The threads are those of the pool of rayon that the caller is in, or else of the global one. Each has
//! a compiler of its own and takes the next function when it is done with one, so memory grows with the
//! number of threads, and not of functions.

use std::sync::{Mutex, MutexGuard, PoisonError};

use slotvm_bytecode::VerifiedModule;
use slotvm_bytecode::parallel::try_map;
use slotvm_ssa::passes::inline::may_be_inlined;

use crate::compile::budget::Budget;
use crate::compile::error::CompileError;
use crate::compile::function::{CompileOptions, CompiledFunction, Compiler};

/// Compiles the functions that a module defines, each with its share of a budget; returns them in their order. There is
/// none where nothing enters the function any more.
///
/// # Errors
/// The error of the first function that cannot be compiled.
pub(crate) fn compile_all(
    module: &VerifiedModule,
    options: CompileOptions,
    budget: &Budget,
    is_parallel: bool,
) -> Result<Vec<Option<CompiledFunction>>, CompileError> {
    let span = tracing::Span::current();
    // The caller's thread, which may be one of them, is in the span already.
    let enter = || (tracing::Span::current() != span).then(|| span.enter());
    let compilers = Compilers { options: options.clone(), idle: Mutex::default() };
    let compiler = || (compilers.lend(), enter());
    let mut waves = Waves::new(module, &options);
    // Compiles a wave, and returns whether there was one.
    let compile = |waves: &mut Waves| {
        let wave = waves.take();
        let compiled = try_map(wave.len(), is_parallel, compiler, |(compiler, _), i| {
            compiler.compiler().compile(module, wave[i], budget.share(module, wave[i]))
        })?;
        wave.iter().zip(compiled).for_each(|(&func, compiled)| waves.finished(func, compiled));
        Ok(!wave.is_empty())
    };
    compile(&mut waves)?;
    waves.stop_waiting();
    while compile(&mut waves)? {}
    Ok(waves.compiled)
}

/// Compilers that have been used, for the threads of the next wave.
struct Compilers {
    options: CompileOptions,
    idle: Mutex<Vec<Box<Compiler>>>,
}

impl Compilers {
    fn idle(&self) -> MutexGuard<'_, Vec<Box<Compiler>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lend(&self) -> Lent<'_> {
        let idle = self.idle().pop();
        let compiler = idle.unwrap_or_else(|| Box::new(Compiler::new(self.options.clone())));
        Lent { compiler: Some(compiler), from: self }
    }
}

/// A compiler that is given back when it is dropped.
struct Lent<'a> {
    compiler: Option<Box<Compiler>>,
    from: &'a Compilers,
}

impl Lent<'_> {
    fn compiler(&mut self) -> &mut Compiler {
        self.compiler.as_mut().expect("it is given back at the end only")
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.from.idle().extend(self.compiler.take());
    }
}

/// The order in which functions are compiled.
struct Waves {
    first_func: u32,
    /// By the numbers of functions among those that the module defines, as in the other lists.
    compiled: Vec<Option<CompiledFunction>>,
    is_inlined: Vec<bool>,
    is_queued: Vec<bool>,
    queue: Vec<u32>,
}

impl Waves {
    fn new(module: &VerifiedModule, options: &CompileOptions) -> Waves {
        let first_func = module.n_imported_funcs();
        let funcs = first_func..module.n_funcs();
        let can_be_entered = module.can_be_entered();
        // An embedder of raw code enters all functions.
        let may_wait = |func: u32| {
            options.lower.imports.is_none()
                && !can_be_entered[func as usize]
                && options.passes.of(func).contains("inline")
                && may_be_inlined(module, func)
        };
        let n = funcs.len();
        let mut waves = Waves {
            first_func,
            compiled: (0..n).map(|_| None).collect(),
            is_inlined: vec![false; n],
            is_queued: vec![false; n],
            queue: Vec::new(),
        };
        funcs.filter(|&func| !may_wait(func)).for_each(|func| waves.push(func));
        waves
    }

    fn push(&mut self, func: u32) {
        let index = (func - self.first_func) as usize;
        if !std::mem::replace(&mut self.is_queued[index], true) {
            self.queue.push(func);
        }
    }

    /// Takes the functions to compile next, in ascending order.
    fn take(&mut self) -> Vec<u32> {
        self.queue.sort_unstable();
        std::mem::take(&mut self.queue)
    }

    /// Queues the functions that no caller in the first wave has inlined, called or not. Later waves queue their own
    /// callees.
    fn stop_waiting(&mut self) {
        for index in 0..self.compiled.len() {
            if !self.is_inlined[index] {
                self.push(self.first_func + index as u32);
            }
        }
    }

    fn finished(&mut self, func: u32, compiled: CompiledFunction) {
        let first_func = self.first_func;
        for callee in compiled.code.callees().filter(|&callee| callee >= first_func) {
            self.push(callee);
        }
        for &inlined in &compiled.inlined {
            self.is_inlined[(inlined - self.first_func) as usize] = true;
        }
        self.compiled[(func - self.first_func) as usize] = Some(compiled);
    }
}

#[cfg(all(test, feature = "parallel-compilation"))]
mod tests;
