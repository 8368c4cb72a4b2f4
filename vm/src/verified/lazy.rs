//! Functions of a verified module, and its names, that are made when they are first asked for.
//!
//! A WebAssembly module has been validated when it is loaded, so its functions can be translated at any time without an
//! error. A program that runs a small part of a large module need not wait for the rest.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::{Body, VerifiedModule};
use crate::module::{Func, Module, Names, ShapeId};
use crate::stacks::{Stacks, number_shapes};
use crate::types::ValType;

/// A function as it is made: the shapes of its labels are numbers of the stacks.
pub(crate) type Made = (Func, Body, Stacks);

/// Makes what a module has no need of before it runs. It must always make the same.
pub(crate) trait Source: Send + Sync {
    /// Makes a function, given its place among those that the module defines.
    fn func(&self, place: usize) -> Made;

    /// The bytes that a function is made of: its [`Func::source_bytes`].
    fn source_bytes(&self, place: usize) -> u32;

    /// The tables that functions write, each once.
    fn written_tables(&self) -> Vec<u32>;

    /// Makes the names of a module, given the module without them.
    fn names(&self, module: &Module) -> Names;

    /// Verifies a module with all functions, which obey the rules.
    fn verify(&self, module: Module) -> VerifiedModule;
}

/// The functions that a module defines, as far as they have been made.
pub(crate) struct LazyFuncs {
    funcs: Vec<OnceLock<Box<(Func, Body)>>>,
    /// The shapes of the labels of all of them.
    shapes: Mutex<Stacks>,
    /// The module with all of them, once somebody has asked for it.
    complete: OnceLock<Arc<VerifiedModule>>,
    names: OnceLock<Names>,
    source: Box<dyn Source>,
}

impl fmt::Debug for LazyFuncs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyFuncs").field("n_funcs", &self.funcs.len()).finish_non_exhaustive()
    }
}

impl LazyFuncs {
    /// `n` functions, none of which is made yet.
    #[cfg(feature = "wasm")]
    pub(crate) fn new(n: usize, source: Box<dyn Source>) -> LazyFuncs {
        let (shapes, complete, names) = (Mutex::default(), OnceLock::new(), OnceLock::new());
        let funcs = (0..n).map(|_| OnceLock::new()).collect();
        LazyFuncs { funcs, shapes, complete, names, source }
    }

    /// The names of a module, given the module without them.
    pub(crate) fn names(&self, module: &Module) -> &Names {
        self.names.get_or_init(|| self.source.names(module))
    }

    /// A function and what is known about it, given its place among those that the module defines.
    pub(crate) fn get(&self, place: usize) -> Option<&(Func, Body)> {
        let make = || {
            let (mut func, mut body, stacks) = self.source.func(place);
            self.shapes().take_labels(&mut func.labels, &stacks);
            body.set_shapes(&func.labels);
            Box::new((func, body))
        };
        Some(self.funcs.get(place)?.get_or_init(make))
    }

    /// The bytes that a function is made of, given its place among those that the module defines.
    pub(crate) fn source_bytes(&self, place: usize) -> u32 {
        self.source.source_bytes(place)
    }

    /// The tables that functions write, each once. Takes time proportional to the bytes of all functions, unless it was found
    /// when they were validated.
    pub(crate) fn written_tables(&self) -> Vec<u32> {
        self.source.written_tables()
    }

    /// The number of operands of a shape, all of which take one cell.
    pub(crate) fn shape_depth(&self, shape: ShapeId) -> u32 {
        self.shapes().shape_depth(shape)
    }

    /// The topmost operand of a shape and the shape below, or `None` if it is empty.
    pub(crate) fn shape_top(&self, shape: ShapeId) -> Option<(ShapeId, ValType)> {
        self.shapes().shape_top(shape)
    }

    /// Makes all functions of a module, with the shapes of their labels.
    pub(crate) fn complete(&self, module: Module) -> Module {
        let all = (0..self.funcs.len()).filter_map(|place| self.get(place));
        self.with_funcs(module, all.map(|(func, _)| func.clone()).collect())
    }

    /// The same, when there are no other users: functions are moved, not copied, and what else is known of them is dropped.
    pub(crate) fn take_complete(&mut self, module: Module) -> Module {
        let mut funcs = Vec::with_capacity(self.funcs.len());
        for place in 0..self.funcs.len() {
            self.get(place);
            let (func, _) = *self.funcs[place].take().expect("it was made");
            funcs.push(func);
        }
        self.with_funcs(module, funcs)
    }

    fn with_funcs(&self, module: Module, mut funcs: Vec<Func>) -> Module {
        let shapes = number_shapes(&self.shapes(), &mut funcs);
        let names = self.names(&module).clone();
        Module { funcs, shapes, names, ..module }
    }

    /// The module with all functions, given the one without them, when there are no other users.
    pub(crate) fn into_completed(mut self, module: Module) -> Arc<VerifiedModule> {
        self.complete.take().unwrap_or_else(|| {
            let module = self.take_complete(module);
            Arc::new(self.source.verify(module))
        })
    }

    /// The module with all functions, given the one without them.
    pub(crate) fn completed(&self, module: &Module) -> &Arc<VerifiedModule> {
        let complete = || Arc::new(self.source.verify(self.complete(module.clone())));
        self.complete.get_or_init(complete)
    }

    fn shapes(&self) -> MutexGuard<'_, Stacks> {
        self.shapes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
