//! Native code as the executor of a store: what the engine shares between modules, and how a call from
//! the host becomes an entry into native code and a trap an error.

use std::ops::Range;
use std::sync::Arc;

use slotvm_bytecode::FuncType;
use slotvm_runtime::context::Poll;
use slotvm_runtime::{
    Error, Frame, FuncHandle, FuncTarget, HostTrampoline, NativeHooks, Store, StoreConfig, Trap,
};

use crate::api::engine::Engine;
use crate::api::store::Embedding;
use crate::code::debugger::DebugImage;
use crate::code::pctable::TrapReason;
use crate::code::profiling::Profiler;
use crate::code::unit::{CodeError, CodeUnit};
use crate::config::Config;
use crate::lower::isa::{IsaOptions, host_isa};
use crate::lower::traps::Trapping;
use crate::native::activation::{self, EntryTrampoline, NativeTrap};
use crate::native::raise;
use crate::native::signals;
use crate::native::trampoline::{self, Way};
use crate::native::trampolines::{Trampoline, Trampolines};

/// The version of Cranelift that makes native code; empty in a build without the feature `jit`, which makes
/// none.
pub const CRANELIFT_VERSION: &str = cranelift_codegen::VERSION;

/// What native code of all modules of an engine shares.
pub(crate) struct NativeEngine {
    isa: cranelift_codegen::isa::OwnedTargetIsa,
    trapping: Trapping,
    trampolines: Trampolines,
    /// What guest code calls when a poll is due, if it polls.
    poll: Option<CodeUnit>,
    profiler: Profiler,
    /// Whether debuggers are shown code.
    debug_info: bool,
}

impl NativeEngine {
    /// # Errors
    /// If the machine is not one that native code can be made for, or the profiler's file cannot be made.
    pub(crate) fn new(config: &Config) -> Result<NativeEngine, Error> {
        let trapping = trapping(config);
        if trapping == Trapping::Signals {
            signals::install();
        }
        let isa = host_isa(isa_options(config)).map_err(Error::compile)?;
        let profiler = Profiler::new(config.profiler).map_err(Error::host)?;
        let poll = config.polls().then(|| trampoline::poll_trampoline(&isa));
        let poll = poll.transpose().map_err(Error::compile)?;
        let mut engine = NativeEngine {
            isa,
            trapping,
            trampolines: Trampolines::default(),
            poll: None,
            profiler,
            debug_info: config.debug_info,
        };
        if let Some(mut poll) = poll {
            engine.announce(&mut poll, std::iter::once("trampoline of polls".to_owned()));
            engine.poll = Some(poll);
        }
        Ok(engine)
    }

    /// A store of the engine, which this is of.
    pub(crate) fn store(&self, config: StoreConfig, embedding: Embedding) -> Store {
        let hooks = NativeHooks {
            executor: execute,
            host_trampoline: host_trampoline(embedding.engine()),
            raise: raise::raise,
            poll: self.poll(),
        };
        // SAFETY: `execute` enters code by the entry that `find_entry` has given the store for the function's
        // type. The trampolines are those of `Trampoline::host_code` and `poll_trampoline`, which do what the hooks
        // say; the former come with their owner, the latter lives as long as the engine, which the hooks own, and
        // a store keeps its hooks. `raise` traps in the innermost activation, which is that of the code that calls it.
        unsafe { Store::new_native(config, Box::new(embedding), hooks) }
    }

    /// How the code of the engine traps.
    pub(crate) fn trapping(&self) -> Trapping {
        self.trapping
    }

    /// The machine that code is compiled for.
    pub(crate) fn isa(&self) -> &cranelift_codegen::isa::OwnedTargetIsa {
        &self.isa
    }

    /// For stores of the engine: what their code calls when a poll is due.
    fn poll(&self) -> Option<Poll> {
        let code = self.poll.as_ref()?.func(0);
        // SAFETY: `poll_trampoline` has compiled the code with this signature. It lives as long as the engine, which
        // the hooks of a store own.
        Some(unsafe { std::mem::transmute::<*const u8, Poll>(code) })
    }

    /// Tells profilers and debuggers the names of the functions of a unit, if they are to know.
    pub(crate) fn announce(
        &self,
        unit: &mut CodeUnit,
        names: impl Iterator<Item = String> + Clone,
    ) {
        self.profiler.report(unit.codes().zip(names.clone()));
        if self.debug_info {
            unit.show_to_debuggers(names);
        }
    }

    /// The same of a function that was placed alone. Debuggers know it as long as the result is kept.
    pub(crate) fn announce_function(&self, code: &Range<usize>, name: &str) -> Option<DebugImage> {
        let function = std::iter::once((code.clone(), name.to_owned()));
        self.profiler.report(function.clone());
        self.debug_info.then(|| DebugImage::register(code, function))
    }

    /// The trampoline of a function type, which is freed with the last of those who keep it.
    ///
    /// # Errors
    /// If it cannot be compiled, or there is no memory for code.
    pub(crate) fn trampoline(&self, way: Way, ty: &FuncType) -> Result<Arc<Trampoline>, CodeError> {
        self.trampolines.get_or_make(way, ty, || {
            let mut code = trampoline::place(&self.isa, way, ty)?;
            self.announce(&mut code, std::iter::once(way.name(ty)));
            Ok(code)
        })
    }

    /// How many trampolines of function types there are.
    #[cfg(test)]
    pub(crate) fn n_trampolines(&self) -> usize {
        self.trampolines.len()
    }
}

fn trapping(config: &Config) -> Trapping {
    if config.signals_based_traps { Trapping::Signals } else { Trapping::Calls }
}

/// What of the configuration reaches Cranelift.
pub(crate) fn isa_options(config: &Config) -> IsaOptions {
    IsaOptions {
        canonical_nans: config.canonical_nans,
        verify_clif: config.verify_passes,
        ..IsaOptions::new(config.slots)
    }
}

/// Gives stores of the engine the native code of their host functions. What a module imports has been made
/// before, at its expense.
fn host_trampoline(engine: &Engine) -> HostTrampoline {
    let engine = engine.clone();
    Arc::new(move |ty| {
        let native = engine.native().expect("the engine makes native code");
        Ok(native.trampoline(Way::ToHost, ty).map_err(Error::compile)?.host_code())
    })
}

/// The executor of stores whose engine makes native code.
///
/// # Safety
/// As [`Executor`](slotvm_runtime::Executor) says, with a store of [`NativeEngine::store`].
unsafe fn execute(store: &mut Store, func: FuncHandle, cells: &mut [u64]) -> Result<(), Error> {
    let record = store.func_record(func);
    let entry = match store.entry_point(record.type_id) {
        Some(entry) => entry,
        None => find_entry(store, func)?,
    };
    store.enter_native();
    // SAFETY: the entry is that of the function's type, since only `find_entry` sets entries. The record is
    // that of a guest function of the store, as the store has promised, whose code and context live as
    // long as the store; the cells fit, as it has promised, too, and it has set the limit of the stack. The
    // engine has installed the signal handlers, or else given the store what its code traps by.
    let result = unsafe { activation::enter(entry, record.ctx, record.code, cells.as_mut_ptr()) };
    result.map_err(|trap| error(store, trap))
}

/// The entry trampoline of a function's type, which the store then remembers. The module of the function
/// pays for it.
#[cold]
fn find_entry(store: &mut Store, func: FuncHandle) -> Result<EntryTrampoline, Error> {
    let FuncTarget::Guest { instance, func: index } = store.func_target(func) else {
        unreachable!("executors run guest functions");
    };
    let type_id = store.func_record(func).type_id;
    let module = &Embedding::of(store).modules[instance.number() as usize];
    let trampoline = module.native().expect("the engine makes native code").entry(module, index)?;
    let entry = trampoline.entry();
    // SAFETY: the trampoline is that of the function's type, which has this number in the store. It lives as long
    // as its owner, which the store keeps.
    unsafe { store.set_entry_point(type_id, entry, trampoline) };
    Ok(entry)
}

/// What a trap of native code means for the host. If a host function has panicked, the panic goes on.
#[cold]
fn error(store: &mut Store, trap: NativeTrap) -> Error {
    error_of_trap(trap, || store.take_pending().expect("a host function left its error"))
}

/// The error that a trap of native code is, which is the pending one if the host failed.
#[cold]
pub(crate) fn error_of_trap(trap: NativeTrap, pending: impl FnOnce() -> Error) -> Error {
    let frames = trap.frames.into_iter().map(|frame| Frame {
        module: frame.module,
        func: frame.place.func,
        offset: frame.place.offset,
    });
    let mut error = match trap.reason {
        TrapReason::Guest(code) => Error::Trap(Trap::new(code, [])),
        TrapReason::HostError => pending(),
    };
    error.add_frames(frames, trap.n_frames_omitted);
    error
}
