//! The one place where panics of the compiler are caught, and where compilations that fail are counted.
//!
//! [`Containment::run`] runs whatever makes machine code: of a function, of a loop form, of a trampoline, or of a whole
//! module when it is placed. What fails is counted by its reason ([`crate::compile::stats`]) and told to `tracing`. A
//! panic becomes an error with the reason [`CompileFailure::Panic`], so it never unwinds into the embedder. A
//! [`Compiler`](crate::compile::function::Compiler) that has panicked throws away its memory, which may be in any state.
//!
//! The process's panic hook belongs to the embedder. It runs before the panic is caught, as for any panic that is
//! caught; [`subject::compiling`] tells it that this one will be. With `panic = "abort"` nothing can be caught, and a fault of the
//! compiler ends the process.
//!
//! A fault must not pass unnoticed in tests. So where debug assertions are on, faults are counted and go on: panics
//! unwind into the caller, and other faults become panics. Threads that nobody waits for remember them, and dropping the
//! module's code panics ([`Containment::in_thread`], [`Containment::raise`]). `Config::contain_faults` decides otherwise.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::code::error::CodeError;
use crate::compile::budget::Overdrawn;
use crate::compile::error::CompileError;
use crate::compile::failure::{CompileFailure, Fails};
use crate::compile::stats::Counts;
use crate::compile::subject::{self, Subject};

/// What becomes of compilations that fail, for all code of a module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Containment {
    pub(crate) counts: Arc<Counts>,
    /// Whether faults of slotvm are errors like others, and not panics.
    pub(crate) is_on: bool,
    /// The first fault in a thread that nobody waits for, if faults are panics.
    fault: Arc<Mutex<Option<String>>>,
}

/// An error of what [`Containment::run`] runs.
pub(crate) trait Panics: Fails {
    /// The error of a subject whose compilation has panicked.
    fn panicked(subject: Subject, name: String, message: &str) -> Self;
}

impl Containment {
    /// For a module, or an engine.
    pub(crate) fn new(counts: Arc<Counts>, is_on: bool) -> Containment {
        Containment { counts, is_on, fault: Arc::default() }
    }

    /// Compiles a subject, which has this name.
    ///
    /// # Errors
    /// Those of `compile`, and one for its panic.
    ///
    /// # Panics
    /// Panics for faults of slotvm if they are not contained.
    pub(crate) fn run<T, E: Panics>(
        &self,
        subject: Subject,
        name: impl Fn() -> String,
        compile: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let outer = subject::replace(self.is_on.then_some(subject));
        // What a panic leaves behind is the memory of a `Compiler`, which `compile_at` throws away. All else that
        // compiling changes is behind locks and cells that are set when it is complete.
        let result = catch_unwind(AssertUnwindSafe(compile));
        subject::replace(outer);
        let (error, panic) = match result {
            Ok(Ok(made)) => return Ok(made),
            Ok(Err(error)) => (error, None),
            Err(panic) => (E::panicked(subject, name(), &message(&*panic)), Some(panic)),
        };
        self.failed(subject, &name(), &error);
        if error.failure().is_bug() && !self.is_on {
            match panic {
                Some(panic) => resume_unwind(panic),
                None => panic!("{error}; this is a bug in slotvm"),
            }
        }
        Err(error)
    }

    /// Counts and tells of an error that something was not compiled for.
    pub(crate) fn failed(&self, subject: Subject, name: &str, error: &impl Fails) {
        let reason = error.failure();
        match subject {
            Subject::Trampoline => self.counts.add_trampoline_failure(reason),
            _ => self.counts.add_failure(reason),
        }
        let reason = reason.name();
        if error.failure().is_bug() {
            tracing::error!(
                target: "slotvm::compile", %subject, name, reason, %error,
                "cannot compile: this is a bug in slotvm, please report it"
            );
        } else {
            tracing::debug!(target: "slotvm::compile", %subject, name, reason, %error, "cannot compile");
        }
    }

    /// The error of something that needs a thread with a larger stack, which the system does not start.
    pub(crate) fn no_thread(&self, subject: Subject, error: &io::Error) -> CodeError {
        let error = CodeError::Thread(error.to_string());
        self.failed(subject, "", &error);
        error
    }

    /// Does the work of a thread that nobody waits for: the last line of defence, for what no compilation has caught.
    ///
    /// # Errors
    /// Fails with the message of its panic.
    pub(crate) fn in_thread(&self, subject: Subject, work: impl FnOnce()) -> Result<(), String> {
        catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
            let message = message(&*panic);
            if self.is_on {
                self.failed(subject, "", &CodeError::Panic(message.clone()));
            } else {
                // It was counted where it was made a panic.
                let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
                fault.get_or_insert_with(|| format!("compiling {subject} has panicked: {message}"));
            }
            message
        })
    }

    /// # Panics
    /// Panics if a thread that nobody waited for had a fault that is not contained, unless this thread panics already.
    pub(crate) fn raise(&self) {
        let fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(fault) = fault
            && !thread::panicking()
        {
            panic!("{fault}; this is a bug in slotvm");
        }
    }
}

/// The message of a panic.
pub(crate) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a value that is no text").to_owned()
}

impl Fails for CompileError {
    fn failure(&self) -> CompileFailure {
        self.failure
    }
}

impl Panics for CompileError {
    fn panicked(subject: Subject, name: String, message: &str) -> CompileError {
        let func = subject.func().unwrap_or_default();
        let reason = format!("the compiler has panicked: {message}; this is a bug in slotvm");
        CompileError { func, name, failure: CompileFailure::Panic, reason }
    }
}

impl Fails for CodeError {
    fn failure(&self) -> CompileFailure {
        match self {
            CodeError::TooLarge | CodeError::WideTrampoline => CompileFailure::TooLarge,
            CodeError::Trampoline(_) => CompileFailure::CodeGenerator,
            CodeError::Memory(_) | CodeError::Thread(_) => CompileFailure::NoMemory,
            CodeError::Panic(_) => CompileFailure::Panic,
        }
    }
}

impl Panics for CodeError {
    fn panicked(subject: Subject, _: String, message: &str) -> CodeError {
        CodeError::Panic(format!("compiling {subject} has panicked: {message}"))
    }
}

impl Fails for Overdrawn {
    fn failure(&self) -> CompileFailure {
        CompileFailure::Budget
    }
}
