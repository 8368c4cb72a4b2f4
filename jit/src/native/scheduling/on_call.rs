//! Native code that is made function by function, when one is first called.
//!
//! Calls of a function of the module go to the address in its cell of a table. At first that is a stub
//! ([`crate::native::crossing::stubs`]): a piece of code that has the function compiled, puts its address into the cell, and
//! continues there as if it had been called: arguments, return address and stack are as they were.
//!
//! With [`Tier::Auto`](crate::Tier::Auto) a function that is not compiled is interpreted instead
//! ([`crate::native::scheduling::tiers`]).
//!
//! Each function is compiled once, whichever threads call it; the others wait. If that fails, so does every
//! call of the function, with the error. In engines whose code can be interrupted, threads compile
//! ([`crate::native::scheduling::compilations`]), so that calls that wait can be interrupted, too; in others the
//! caller compiles.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{Builder, JoinHandle};

use slotvm_runtime::Error;
use slotvm_runtime::native::{OnCall, VmCtx};

use crate::code::error::CodeError;
use crate::compile::contain::{self, Panics};
use crate::compile::error::CompileError;
use crate::compile::function_info::FunctionInfo;
use crate::compile::stack;
use crate::compile::subject::Subject;
use crate::native::crossing::enter::enter;
use crate::native::scheduling::compilations::{Compilations, Left};
use crate::native::scheduling::making::Maker;

/// The code of a module, as far as it is compiled.
pub(crate) struct LazyCode {
    /// Contexts of instances have its address.
    calls: Arc<FirstCalls>,
}

/// What a call of a function needs that has no code yet.
struct FirstCalls {
    /// Reference to itself for the threads that compile.
    this: Weak<FirstCalls>,
    maker: Arc<Maker>,
    /// The targets of stubs, for each function that the module defines: a trampoline to the interpreter, or the head of the
    /// stubs, which leads to [`enter_function`].
    fallbacks: Box<[AtomicPtr<u8>]>,
    /// The functions that threads are compiling, if calls can be interrupted.
    compilations: Compilations,
}

/// The reason for which a call has no code.
enum NoCode {
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

impl LazyCode {
    /// Code of which nothing is compiled yet.
    ///
    /// # Errors
    /// Fails if there is no memory for it.
    pub(crate) fn new(maker: Arc<Maker>) -> Result<LazyCode, CodeError> {
        let code = maker.code.clone();
        let native = &code.native;
        let n_funcs = code.entries().len();
        let (head, stubs) = native.stubs.of_funcs(native.isa(), enter_function, n_funcs as u32)?;
        let to_head = || AtomicPtr::new(head.cast_mut());
        let fallbacks = std::iter::repeat_with(to_head).take(n_funcs).collect();
        stubs.enumerate().for_each(|(index, stub)| code.call_at(index, stub));
        let compilations = Compilations::default();
        let calls = Arc::new_cyclic(|this| FirstCalls {
            this: this.clone(),
            maker,
            fallbacks,
            compilations,
        });
        Ok(LazyCode { calls })
    }

    /// The targets of calls of each function, see [`VmCtx::entries`].
    pub(crate) fn entries(&self) -> &[AtomicPtr<u8>] {
        self.maker().code.entries()
    }

    /// The value of [`VmCtx::on_call`] for the module's instances.
    pub(crate) fn on_call(&self) -> OnCall {
        OnCall { maker: ptr::from_ref(&*self.calls).cast(), targets: self.calls.fallbacks.as_ptr() }
    }

    /// Whoever makes the code.
    pub(crate) fn maker(&self) -> &Arc<Maker> {
        &self.calls.maker
    }

    #[cfg(test)]
    pub(crate) fn codes(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        self.maker().code.placed().map(|function| function.code.clone())
    }

    /// Returns the statistics of the compiled functions.
    pub(crate) fn functions(&self) -> impl Iterator<Item = &FunctionInfo> {
        self.maker().code.placed().filter_map(|function| function.info.as_ref())
    }

    /// The bytes of memory that the code takes.
    pub(crate) fn bytes(&self) -> usize {
        self.maker().code.bytes()
    }
}

impl Drop for LazyCode {
    /// Waits for compilations that nobody waits for. Panics if one had a fault that is not contained.
    fn drop(&mut self) {
        self.calls.compilations.join();
        let Maker { code, options, .. } = &**self.maker();
        code.native.workers.finish(code.number());
        options.containment.raise();
    }
}

impl FirstCalls {
    /// The code of a function, which is compiled if it is not yet.
    fn code_of(
        &self,
        index: usize,
        is_interrupted: impl FnMut() -> bool,
    ) -> Result<*const u8, NoCode> {
        let code = &self.maker.code;
        code.place_kept_func(index);
        let function = code.function(index);
        if code.native.config().polls() {
            let (is_done, start) = (|| function.get().is_some(), || self.start(index));
            self.compilations.wait(index, is_done, start, is_interrupted)?;
        }
        match function.get_or_init(|| self.maker.make_func(index)) {
            Ok(function) => Ok(function.address()),
            Err(error) => Err(NoCode::Failed(Error::compile(error.clone()))),
        }
    }

    /// The code of a function if it was kept, or else the trampoline by which it is interpreted.
    fn placed_or_fallback(&self, index: usize) -> Result<*const u8, Error> {
        self.maker.code.place_kept_func(index);
        match self.maker.code.address(index) {
            Some(code) => Ok(code),
            None => self.fallback(index),
        }
    }

    /// The trampoline by which a function that is not compiled is interpreted.
    fn fallback(&self, index: usize) -> Result<*const u8, Error> {
        let Maker { code, trampolines, .. } = &*self.maker;
        let ty = code.module.func_type_index(code.func(index));
        let trampoline = trampolines.to_host(&code.native, &code.module, ty)?;
        let code = trampoline.host_code().address;
        self.fallbacks[index].store(code.cast_mut(), Ordering::Release);
        Ok(code)
    }

    /// Starts a thread that compiles a function.
    fn start(&self, index: usize) -> io::Result<JoinHandle<()>> {
        let calls = self.this.upgrade().expect("whoever calls code keeps it");
        let span = tracing::Span::current();
        let compile = move || {
            let Maker { code, options, .. } = &*calls.maker;
            let mut result = None;
            let compile = || result = Some(span.in_scope(|| calls.maker.make_func(index)));
            let func = code.func(index);
            let subject = Subject::Function(func);
            let ended = options.containment.in_thread(subject, compile);
            let result = result.unwrap_or_else(|| {
                let (name, message) = (code.module.func_name(func), ended.unwrap_err());
                Err(CompileError::panicked(subject, name, &message))
            });
            // Only this thread compiles the function, unless it was inherited by the child of a fork.
            _ = code.function(index).set(result);
            calls.compilations.end(index);
        };
        let builder = Builder::new().name("slotvm-compiler".to_owned());
        builder.stack_size(stack::THREAD_BYTES).spawn(compile)
    }
}

enter! {
    /// The way into a function of the module, which is compiled or interpreted.
    enter_function, compile
}

/// Returns the code of a function for [`enter_function`], or null after an error, which is then pending in the store whose
/// code made the call.
///
/// # Safety
/// Called by [`enter_function`], with what the stub of the function and the call have given it, and its frame pointer.
unsafe extern "C" fn compile(
    ctx: *mut VmCtx,
    index: usize,
    calls: *const FirstCalls,
    fp: usize,
) -> *const u8 {
    // SAFETY: whoever calls code keeps it alive, and this with it.
    let calls = unsafe { &*calls };
    let Maker { code, options, .. } = &*calls.maker;
    let mut seen = None;
    let func = code.func(index);
    // SAFETY: the call passes the context of the function, in whose store it runs; if it is interrupted, this
    // returns null, with which `enter_function` goes back to the host.
    let is_interrupted =
        || unsafe { slotvm_runtime::native::interrupts_wait(ctx, func, fp, &mut seen) };
    let found = || match calls.maker.is_tiered() {
        true => calls.placed_or_fallback(index).map_err(NoCode::Failed),
        false => calls.code_of(index, is_interrupted),
    };
    let failure = match catch_unwind(AssertUnwindSafe(found)) {
        Ok(Ok(code)) => return code,
        Ok(Err(NoCode::Interrupted)) => return ptr::null(),
        Ok(Err(NoCode::Failed(error))) => Ok(error),
        // Of compilations it was caught before, unless it is not to be contained. Then it resumes in the host, past the
        // frames of native code.
        Err(panic) if options.containment.is_on => {
            let (subject, name) = (Subject::Function(func), code.module.func_name(func));
            let error = CompileError::panicked(subject, name, &contain::message(&*panic));
            options.containment.failed(subject, &error.name, &error);
            Ok(Error::compile(error))
        }
        Err(panic) => Err(panic),
    };
    // SAFETY: the call passes the context of the code that it runs in.
    unsafe { slotvm_runtime::native::leave_pending(ctx, failure) };
    ptr::null()
}
