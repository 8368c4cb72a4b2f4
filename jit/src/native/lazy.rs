//! Native code that is made function by function, when one is first called.
//!
//! Calls of a function of the module go to the address in its cell of a table. At first that is a piece of
//! code that has the function compiled, puts its address into the cell, and continues there as if it had
//! been called: arguments, return address and stack are as they were. Where a function is called by its
//! record, which never changes, the record has a stub that jumps to the address in the cell ([`crate::native::stubs`]).
//!
//! With [`Tier::Auto`] a function that is not compiled is interpreted instead: [`crate::native::tiers`].
//!
//! Each function is compiled once, whichever threads call it; the others wait. If that fails, so does every
//! call of the function, with the error. In engines whose code can be interrupted, threads compile
//! ([`crate::native::compilations`]), so that calls that wait can be interrupted, too; in others the caller compiles.

use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::thread::{Builder, JoinHandle};

use slotvm_bytecode::VerifiedModule;
use slotvm_runtime::Error;
use slotvm_runtime::native::{Tiers, VmCtx};

use crate::code::debugger::DebugImage;
use crate::code::unit::{CodeArena, CodeError, CodeUnit, MachineCode, Placing};
use crate::compile::budget::{Budget, ModuleBudget};
use crate::compile::contain::{self, Panics};
use crate::compile::function::{CompileError, CompileOptions, CompiledFunction, Compiler};
use crate::compile::function_info::FunctionInfo;
use crate::compile::subject::Subject;
use crate::config::Tier;
use crate::native::compilations::{Compilations, Left};
use crate::native::engine::NativeEngine;
use crate::native::enter::enter_function;
use crate::native::kept::Kept;
use crate::native::module::Account;
use crate::native::module_trampolines::ModuleTrampolines;
use crate::native::parts::Parts;
use crate::native::saving::Saving;
use crate::native::{stack, stubs};

/// The code of a module, as far as it is compiled.
pub(crate) struct LazyCode {
    stubs: CodeUnit,
    /// Stubs have its address.
    pub(super) state: Arc<State>,
}

/// The inputs and outputs of compiling a function.
pub(super) struct State {
    /// Reference to itself for the threads that compile.
    pub(super) this: Weak<State>,
    pub(super) native: Arc<NativeEngine>,
    pub(super) module: Arc<VerifiedModule>,
    pub(super) options: CompileOptions,
    pub(super) shares: Budget,
    budget: Arc<ModuleBudget>,
    /// The targets of calls, by function that the module defines.
    pub(super) entries: Box<[AtomicPtr<u8>]>,
    /// The targets of calls of functions that are not compiled, by type: a trampoline to the interpreter, or
    /// [`enter_function`]. The last one is for functions whose code was kept, and always the latter.
    detours: Box<[AtomicPtr<u8>]>,
    pub(super) trampolines: Arc<ModuleTrampolines>,
    // Dropped before the code that it shows.
    pub(super) functions: Box<[OnceLock<Result<LazyFunction, CompileError>>]>,
    pub(super) code: CodeArena,
    compilers: Idle<Compiler>,
    /// The functions that threads are compiling, if calls can be interrupted.
    compilations: Compilations,
    /// The parts that are hot, if functions are interpreted at first.
    pub(super) parts: Parts,
    /// Code that need not be made.
    pub(super) kept: Option<Arc<Kept>>,
    /// The place in a cache where code is kept, if there is one.
    pub(super) saving: OnceLock<Saving>,
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

/// The reason for which a call has no code.
pub(super) enum NoCode {
    Failed(Error),
    /// The error is pending in the store.
    Interrupted,
}

impl From<Left> for NoCode {
    fn from(left: Left) -> NoCode {
        match left {
            Left::Interrupted => NoCode::Interrupted,
            Left::NoThread(error) => {
                let error = format!("cannot start a thread to compile a function: {error}");
                NoCode::Failed(Error::compile(error))
            }
        }
    }
}

pub(super) struct LazyFunction {
    _debug_image: Option<DebugImage>,
    pub(super) code: Range<usize>,
    /// Its alignment, if it can be kept.
    pub(super) placing: Option<Placing>,
    /// None if the code was kept.
    pub(super) info: Option<FunctionInfo>,
}

impl LazyCode {
    /// Code of which nothing is compiled yet.
    ///
    /// # Errors
    /// Fails if there is no memory for it.
    pub(crate) fn new(
        native: &Arc<NativeEngine>,
        module: &Arc<VerifiedModule>,
        mut options: CompileOptions,
        Account { budget, trampolines, kept, .. }: Account,
    ) -> Result<LazyCode, CodeError> {
        let n_funcs = module.module().funcs.len();
        let nowhere = |n| -> Box<[_]> {
            std::iter::repeat_with(|| AtomicPtr::new(ptr::null_mut())).take(n).collect()
        };
        let n_types = module.module().types.len();
        // The last one is for functions whose code was kept.
        let (entries, detours) = (nowhere(n_funcs), nowhere(n_types + 1));
        options.lower.loads_entries = true;
        let table = entries.as_ptr().expose_provenance();
        let state = Arc::new_cyclic(|this| State {
            this: this.clone(),
            native: native.clone(),
            module: module.clone(),
            options,
            shares: budget.functions(),
            budget,
            entries,
            detours,
            trampolines,
            functions: std::iter::repeat_with(OnceLock::new).take(n_funcs).collect(),
            code: CodeArena::new(),
            compilers: Idle::default(),
            compilations: Compilations::default(),
            parts: Parts::new(n_funcs),
            kept,
            saving: OnceLock::new(),
        });
        let address = ptr::from_ref(&*state).expose_provenance();
        let detours = state.detours.as_ptr().expose_provenance();
        let first_func = module.n_imported_funcs();
        let funcs = (0..n_funcs).map(|index| {
            let detour = match &state.kept {
                Some(kept) if kept.func(index as u32).is_some() => n_types,
                _ => module.func_type_index(first_func + index as u32) as usize,
            };
            let cell = |table, index| table + index * size_of::<usize>();
            stubs::Callee { entry: cell(table, index), detour: cell(detours, detour) }
        });
        let stubs = MachineCode {
            bytes: stubs::write(address, enter_function as *const () as usize, funcs),
            alignment: stubs::ALIGNMENT,
            ..MachineCode::default()
        };
        let stubs = CodeUnit::place(native.isa(), 0, &[stubs], None)?;
        let code = LazyCode { stubs, state };
        for detour in &code.state.detours {
            detour.store(code.stubs.func(0).cast_mut(), Ordering::Relaxed);
        }
        for (i, entry) in code.state.entries.iter().enumerate() {
            entry.store(code.stub(i).wrapping_add(stubs::DETOUR_AT).cast_mut(), Ordering::Relaxed);
        }
        Ok(code)
    }

    /// The targets of calls of each function, see [`VmCtx::entries`].
    pub(crate) fn entries(&self) -> &[AtomicPtr<u8>] {
        &self.state.entries
    }

    fn stub(&self, index: usize) -> *const u8 {
        self.stubs.func(0).wrapping_add(stubs::HEAD_BYTES + index * stubs::BYTES)
    }

    /// The decisions about native code, if functions are interpreted at first.
    pub(crate) fn tiers(&self) -> Option<Arc<dyn Tiers>> {
        self.state.is_tiered().then(|| self.state.clone() as Arc<dyn Tiers>)
    }

    /// Returns the address for calls of a function that the module defines, by its number among them.
    pub(crate) fn func(&self, index: usize) -> *const u8 {
        match self.state.functions[index].get() {
            Some(Ok(function)) => ptr::with_exposed_provenance(function.code.start),
            _ => self.stub(index),
        }
    }

    #[cfg(test)]
    pub(crate) fn codes(&self) -> impl Iterator<Item = Range<usize>> {
        self.compiled().map(|function| function.code.clone())
    }

    /// Returns the statistics of the compiled functions.
    pub(crate) fn functions(&self) -> impl Iterator<Item = &FunctionInfo> {
        self.compiled().filter_map(|function| function.info.as_ref())
    }

    /// The bytes of memory that the code takes.
    pub(crate) fn bytes(&self) -> usize {
        self.stubs.bytes() + self.compiled().map(|function| function.code.len()).sum::<usize>()
    }

    fn compiled(&self) -> impl Iterator<Item = &LazyFunction> {
        let functions = self.state.functions.iter();
        functions.filter_map(|function| function.get()?.as_ref().ok())
    }
}

impl Drop for LazyCode {
    /// Waits for compilations that nobody waits for. Panics if one had a fault that is not contained.
    fn drop(&mut self) {
        self.state.compilations.join();
        self.state.native.workers.finish(self.state.number());
        self.state.options.containment.raise();
    }
}

impl State {
    /// Whether functions are interpreted until they are compiled.
    pub(super) fn is_tiered(&self) -> bool {
        self.native.config().tier == Tier::Auto
    }

    /// The code of a function, which is compiled if it is not yet.
    fn code_of(
        &self,
        index: usize,
        is_interrupted: impl FnMut() -> bool,
    ) -> Result<*const u8, NoCode> {
        self.place_kept_func(index);
        let function = &self.functions[index];
        if self.native.config().polls() {
            let (is_done, start) = (|| function.get().is_some(), || self.start(index));
            self.compilations.wait(index, is_done, start, is_interrupted)?;
        }
        match function.get_or_init(|| self.compile(index)) {
            Ok(function) => Ok(ptr::with_exposed_provenance(function.code.start)),
            Err(error) => Err(NoCode::Failed(Error::compile(error.clone()))),
        }
    }

    /// The code of a function if it was kept, or else its way to the interpreter.
    fn placed_or_detour(&self, index: usize) -> Result<*const u8, Error> {
        self.place_kept_func(index);
        match self.functions[index].get() {
            Some(Ok(function)) => Ok(ptr::with_exposed_provenance(function.code.start)),
            _ => self.detour(index),
        }
    }

    /// The way of a function that is not compiled to the interpreter.
    fn detour(&self, index: usize) -> Result<*const u8, Error> {
        let ty = self.module.func_type_index(self.module.n_imported_funcs() + index as u32);
        let trampoline = self.trampolines.to_host(&self.native, &self.module, ty)?;
        let code = trampoline.host_code().address;
        self.detours[ty as usize].store(code.cast_mut(), Ordering::Release);
        Ok(code)
    }

    /// Starts a thread that compiles a function.
    fn start(&self, index: usize) -> io::Result<JoinHandle<()>> {
        let state = self.this.upgrade().expect("whoever calls code keeps the state");
        let span = tracing::Span::current();
        let compile = move || {
            let mut result = None;
            let compile = || result = Some(span.in_scope(|| state.compile(index)));
            let func = state.module.n_imported_funcs() + index as u32;
            let subject = Subject::Function(func);
            let ended = state.options.containment.in_thread(subject, compile);
            let result = result.unwrap_or_else(|| {
                let (name, message) = (state.module.func_name(func), ended.unwrap_err());
                Err(CompileError::panicked(subject, name, &message))
            });
            // Only this thread compiles the function, unless it was inherited by the child of a fork.
            _ = state.functions[index].set(result);
            state.compilations.end(index);
        };
        let builder = Builder::new().name("slotvm-compiler".to_owned());
        builder.stack_size(stack::THREAD_BYTES).spawn(compile)
    }

    pub(super) fn compile(&self, index: usize) -> Result<LazyFunction, CompileError> {
        let compiled = self.compile_at(index, &[])?;
        let entry = ptr::with_exposed_provenance_mut(compiled.code.start);
        self.entries[index].store(entry, Ordering::Release);
        Ok(compiled)
    }

    /// Compiles and places a function, or what follows in it at the start of one of some blocks.
    pub(super) fn compile_at(
        &self,
        index: usize,
        starts: &[u32],
    ) -> Result<LazyFunction, CompileError> {
        let module = &self.module;
        let func = module.n_imported_funcs() + index as u32;
        let share = match self.is_tiered() {
            true => self.budget.rest_of(module, func, !starts.is_empty()),
            false => self.shares.share(module, func),
        };
        let compiler = self.compilers.take();
        let mut compiler = compiler.unwrap_or_else(|| Compiler::new(self.options.clone()));
        let containment = &self.options.containment;
        let subject = Subject::of(module, func, starts);
        let compiled = stack::with_room(|| compiler.compile_at(module, func, starts, share));
        let compiled = compiled.map_err(|error| {
            CompileError::of_code(module, func, &containment.no_thread(subject, &error))
        })??;
        self.compilers.give(compiler);
        self.draw(func, !starts.is_empty(), &compiled);
        let place = || self.place(index, compiled);
        let placed = containment.run(subject, || module.func_name(func), place)?;
        self.save_later();
        Ok(placed)
    }

    /// Takes the cost of code of a function from the budget.
    pub(super) fn draw(&self, func: u32, is_loop: bool, compiled: &CompiledFunction) {
        let time = compiled.work.time(self.options.lower.slots);
        match self.is_tiered() {
            true => self.budget.draw_of(&self.module, func, is_loop, time),
            false => self.budget.draw_function(time),
        }
    }

    /// Places a function alone.
    pub(super) fn place(
        &self,
        index: usize,
        compiled: CompiledFunction,
    ) -> Result<LazyFunction, CompileError> {
        let func = self.module.n_imported_funcs() + index as u32;
        let code = self.code.place(self.native.isa(), &compiled.code, &self.module);
        let code = code.map_err(|error| CompileError::of_code(&self.module, func, &error))?;
        let info = compiled.info(&self.module, func);
        let placing = compiled.code.is_kept_as_it_is().then(|| compiled.code.placing());
        Ok(self.announced(code, index, placing, Some(info)))
    }

    /// A function that was placed, about which profilers and debuggers are told.
    pub(super) fn announced(
        &self,
        code: Range<usize>,
        index: usize,
        placing: Option<Placing>,
        info: Option<FunctionInfo>,
    ) -> LazyFunction {
        let _debug_image = self.native.announce_function(&code, || {
            self.module.func_name(self.module.n_imported_funcs() + index as u32)
        });
        LazyFunction { _debug_image, code, placing, info }
    }
}

/// Returns the code of a function for [`enter_function`], or null after an error, which is then pending in the store whose
/// code made the call.
///
/// # Safety
/// Called by [`enter_function`], with what the stub of the function and the call have given it.
pub(super) unsafe extern "C" fn compile(
    ctx: *mut VmCtx,
    index: usize,
    state: *const State,
) -> *const u8 {
    // SAFETY: whoever calls code keeps it alive, and the state with it.
    let state = unsafe { &*state };
    let mut seen = None;
    let func = state.module.n_imported_funcs() + index as u32;
    // SAFETY: the call passes the context of the function, in whose store it runs; if it is interrupted, this
    // returns null, with which `enter_function` goes back to the host.
    let is_interrupted =
        || unsafe { slotvm_runtime::native::interrupts_wait(ctx, func, &mut seen) };
    let code = || match state.is_tiered() {
        true => state.placed_or_detour(index).map_err(NoCode::Failed),
        false => state.code_of(index, is_interrupted),
    };
    let failure = match catch_unwind(AssertUnwindSafe(code)) {
        Ok(Ok(code)) => return code,
        Ok(Err(NoCode::Interrupted)) => return ptr::null(),
        Ok(Err(NoCode::Failed(error))) => Ok(error),
        // Of compilations it was caught before, unless it is not to be contained. Then it resumes in the host, past the
        // frames of native code.
        Err(panic) if state.options.containment.is_on => {
            let (subject, name) = (Subject::Function(func), state.module.func_name(func));
            let error = CompileError::panicked(subject, name, &contain::message(&*panic));
            state.options.containment.failed(subject, &error.name, &error);
            Ok(Error::compile(error))
        }
        Err(panic) => Err(panic),
    };
    // SAFETY: the call passes the context of the code that it runs in.
    unsafe { slotvm_runtime::native::leave_pending(ctx, failure) };
    ptr::null()
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
