//! Making native code of a module piece by piece: compiled by the module's budget, placed, and kept if it is to be.

use std::sync::{Arc, Mutex};

use slotvm_bytecode::VerifiedModule;
use slotvm_bytecode::module::{EntityKind, ImportKind};
use slotvm_bytecode::parallel::try_map;
use slotvm_runtime::Error;
use slotvm_ssa::pipeline::Stage;

use crate::code::debug_code::DebugCode;
use crate::code::machine_code::Placing;
use crate::compile::budget::{Budget, ModuleBudget};
use crate::compile::error::CompileError;
use crate::compile::function::form::{FormExits, Origin};
use crate::compile::function::{CompileOptions, CompiledFunction, Compiler};
use crate::compile::function_info::FunctionInfo;
use crate::compile::stack;
use crate::compile::subject::Subject;
use crate::compile::timings::Timings;
use crate::config::Tier;
use crate::lower::exits::LeftCode;
use crate::native::ownership::code_table::{CodeTable, Placed};
use crate::native::ownership::engine::NativeEngine;
use crate::native::ownership::module_trampolines::ModuleTrampolines;
use crate::native::ownership::resources::Resources;
use crate::native::ownership::saving::Saving;
use crate::native::scheduling::exits::VersionExits;
use crate::precompiled::chunk::{Chunk, Packing};

/// Whoever makes the code of a module.
pub(crate) struct Maker {
    pub(crate) code: Arc<CodeTable>,
    pub(crate) options: CompileOptions,
    pub(crate) trampolines: Arc<ModuleTrampolines>,
    pub(crate) saving: Arc<Saving>,
    /// Whether code may go to a file, where no code with exits can be.
    may_be_kept: bool,
    shares: Budget,
    budget: Arc<ModuleBudget>,
    compilers: Idle<Compiler>,
}

/// Things that are not at work. Nobody waits for another thread: the child of a fork may have inherited the lock from a
/// thread that it has not.
struct Idle<T>(Mutex<Vec<T>>);

impl<T> Default for Idle<T> {
    fn default() -> Idle<T> {
        Idle(Mutex::default())
    }
}

impl<T> Idle<T> {
    fn take(&self) -> Option<T> {
        self.0.try_lock().ok()?.pop()
    }

    fn give(&self, idle: T) {
        if let Ok(mut all) = self.0.try_lock() {
            all.push(idle);
        }
    }
}

impl Maker {
    /// Nothing is made yet.
    pub(crate) fn new(
        native: &Arc<NativeEngine>,
        module: &Arc<VerifiedModule>,
        mut options: CompileOptions,
        Resources { budget, trampolines, kept, may_be_kept, .. }: Resources,
    ) -> Maker {
        options.lower.loads_entries = true;
        let code = Arc::new(CodeTable::new(native, module, kept));
        let saving = Arc::new(Saving::new(code.clone(), trampolines.clone()));
        let (shares, compilers) = (budget.functions(), Idle::default());
        Maker { code, options, trampolines, saving, may_be_kept, shares, budget, compilers }
    }

    /// The bytes that were given for the functions of the module.
    pub(super) fn module_bytes(&self) -> u64 {
        self.shares.module_bytes()
    }

    /// Whether functions are interpreted until they are compiled.
    pub(crate) fn is_tiered(&self) -> bool {
        self.code.native.config().tier == Tier::Auto
    }

    /// Whether code may leave for the interpreter.
    pub(super) fn has_exits(&self) -> bool {
        self.is_tiered() && (!self.may_be_kept || self.code.native.config().tier_exits.is_some())
    }

    /// Makes the code of a function, and lets calls go there.
    pub(crate) fn make_func(&self, index: usize) -> Result<Placed, CompileError> {
        self.make_version(index, 0, None)
    }

    /// Makes a version of the code of a function, before which there were so many, and lets calls go there.
    pub(super) fn make_version(
        &self,
        index: usize,
        version: u32,
        exits: Option<VersionExits>,
    ) -> Result<Placed, CompileError> {
        let (placed, _) = self.make_at(index, &[], version, exits)?;
        self.code.call_at(index, placed.address());
        Ok(placed)
    }

    /// Makes a version of the code of a function, or of what goes on in some of its loops, by their numbers. If that is not
    /// possible for all of them, it is made for the first alone; the result says so.
    pub(super) fn make_at(
        &self,
        index: usize,
        loops: &[u32],
        version: u32,
        exits: Option<VersionExits>,
    ) -> Result<(Placed, bool), CompileError> {
        let (module, func) = (&self.code.module, self.code.func(index));
        let share = match self.is_tiered() {
            true => self.budget.rest_of(module, func, !loops.is_empty(), version),
            false => self.shares.share(module, func),
        };
        let compiler = self.compilers.take();
        let mut compiler = compiler.unwrap_or_else(|| Compiler::new(self.options.clone()));
        let containment = &self.options.containment;
        let subject = Subject::of(module, func, loops);
        let exits = exits.as_ref().and_then(|exits| Some((exits, self.interpreter(func)?)));
        let exits = exits.map_or(FormExits::default(), |(exits, interpreter)| {
            let VersionExits { plan, version } = exits;
            FormExits::new(plan, LeftCode { interpreter: Some(interpreter), version })
        });
        let origin = Origin::Bytecode { func, loops, exits };
        let compiled = stack::with_room(|| compiler.compile_at(module, origin, share));
        let compiled = compiled.map_err(|error| {
            CompileError::of_code(module, func, &containment.no_thread(subject, &error))
        })??;
        self.compilers.give(compiler);
        self.draw(func, !loops.is_empty(), version, &compiled);
        let is_alone = compiled.is_alone;
        let place = || self.code.place(index, compiled);
        let placed = containment.run(subject, || module.func_name(func), place)?;
        self.saving.save_later();
        Ok((placed, is_alone))
    }

    /// The trampoline by which calls of a function go to the interpreter. Where it cannot be made, which is counted, there is
    /// none.
    fn interpreter(&self, func: u32) -> Option<usize> {
        let CodeTable { native, module, .. } = &*self.code;
        let trampoline = self.trampolines.to_host(native, module, module.func_type_index(func));
        trampoline.ok().map(|trampoline| trampoline.host_code().address.expose_provenance())
    }

    /// Takes the cost of code of a function from the budget.
    fn draw(&self, func: u32, is_loop: bool, version: u32, compiled: &CompiledFunction) {
        let time = compiled.work.time(self.options.lower.slots);
        match self.is_tiered() {
            true => self.budget.draw_of(&self.code.module, func, is_loop, version, time),
            false => self.budget.draw_function(time),
        }
    }

    /// Makes all that is not there yet, and the trampolines of exports and imports.
    ///
    /// # Errors
    /// Fails if the code generator refuses a function, or there is no memory for code.
    pub(crate) fn complete(&self, is_parallel: bool, timings: &mut Timings) -> Result<(), Error> {
        self.complete_functions(is_parallel, timings)?;
        let CodeTable { native, module, .. } = &*self.code;
        let funcs = module.module().exports.iter().filter(|e| e.kind == EntityKind::Func);
        for func in funcs.map(|export| export.index).chain(module.module().start) {
            self.trampolines.entry(native, module, module.func_type_index(func))?;
        }
        for import in &module.module().imports {
            if let ImportKind::Func(ty, _) = import.kind {
                self.trampolines.to_host(native, module, ty)?;
            }
        }
        Ok(())
    }

    /// Compiles all functions that are not there yet, and places them together.
    fn complete_functions(&self, is_parallel: bool, timings: &mut Timings) -> Result<(), Error> {
        let CodeTable { module, kept, .. } = &*self.code;
        let is_missing = |&index: &u32| {
            self.code.function(index as usize).get().is_none()
                && kept.as_ref().is_none_or(|kept| kept.func(index).is_none())
        };
        let n_funcs = module.module().funcs.len() as u32;
        let missing: Vec<u32> = (0..n_funcs).filter(is_missing).collect();
        let compile = |compiler: &mut Compiler, i: usize| {
            let func = self.code.func(missing[i] as usize);
            compiler.compile(module, func, self.shares.share(module, func))
        };
        let compiler = || Compiler::new(self.options.clone());
        let containment = &self.options.containment;
        let all = stack::with_room(|| try_map(missing.len(), is_parallel, compiler, compile));
        let no_thread = |error| containment.no_thread(Subject::Module, &error);
        let all = all.map_err(no_thread).map_err(Error::compile)??;
        let mut packed = Vec::new();
        for (&index, mut compiled) in missing.iter().zip(all) {
            let index = index as usize;
            let func = self.code.func(index);
            timings.0 += std::mem::take(&mut compiled.times);
            self.draw(func, false, 0, &compiled);
            if compiled.code.is_kept_as_it_is() {
                packed.push((index, compiled));
            } else {
                let name = || module.func_name(func);
                let place = || self.code.place(index, compiled);
                let placed = containment.run(Subject::Function(func), name, place)?;
                self.code.set(index, placed);
            }
        }
        timings.0.stage(Stage::Place, || self.place_packed(packed))
    }

    /// Places code of functions in chunks. What is placed is not kept here as well.
    fn place_packed(&self, functions: Vec<(usize, CompiledFunction)>) -> Result<(), Error> {
        let module = &self.code.module;
        let (mut packing, mut pieces) = (Packing::default(), Vec::new());
        for (index, compiled) in functions {
            if let Some(full) = packing.add(&compiled.code) {
                self.place_chunk(&full, pieces.drain(..))?;
            }
            let info = compiled.info(module, self.code.func(index));
            pieces.push(Piece {
                index,
                placing: compiled.code.placing(),
                debug: compiled.code.debug,
                info,
            });
        }
        let last = packing.end();
        last.map_or(Ok(()), |last| self.place_chunk(&last, pieces.drain(..)))
    }

    fn place_chunk(&self, chunk: &Chunk, pieces: impl Iterator<Item = Piece>) -> Result<(), Error> {
        let CodeTable { native, module, .. } = &*self.code;
        let place = || self.code.arena().place(native.isa(), &chunk.code, module);
        let start = self.options.containment.run(Subject::Module, String::new, place);
        let start = start.map_err(Error::compile)?.start;
        for (piece, Piece { index, placing, debug, info }) in chunk.pieces.iter().zip(pieces) {
            let code = start + piece.start as usize..start + piece.end as usize;
            let placed =
                self.code.announced(code, index, Some(placing), debug.as_deref(), Some(info));
            self.code.set(index, placed);
        }
        Ok(())
    }
}

/// A function whose code is in a chunk.
struct Piece {
    index: usize,
    placing: Placing,
    debug: Option<Box<DebugCode>>,
    info: FunctionInfo,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits_for_a_lock_that_a_fork_may_have_left() {
        let idle = Idle(Mutex::new(vec![1, 2]));
        let left = idle.0.lock().unwrap();
        assert_eq!(idle.take(), None);
        idle.give(3);
        drop(left);
        assert_eq!((idle.take(), idle.take(), idle.take()), (Some(2), Some(1), None));
        idle.give(3);
        assert_eq!(idle.take(), Some(3));
    }
}
