//! The state that native code of all modules of an engine shares: target, trampolines, listeners for new code.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use slotvm_bytecode::{FuncType, VerifiedModule};
use slotvm_runtime::native::{HostTrampoline, NativeHooks, Poll, TierHooks};
use slotvm_runtime::{Error, MemoryPlan, Store, StoreConfig};
use slotvm_ssa::construction::build::{BuildOptions, SsaOptions};

use crate::code::debug_code::DebugCode;
use crate::code::debugger::DebugImage;
use crate::code::dwarf::Shown;
use crate::code::error::CodeError;
use crate::code::profiling::Profiler;
use crate::code::unit::CodeUnit;
use crate::compile::contain::Containment;
use crate::compile::function::CompileOptions;
use crate::compile::stack;
use crate::compile::stats::{CompileStats, Counts};
use crate::compile::subject::Subject;
use crate::compile::workers::Workers;
use crate::config::{Config, OnTheFly, Tier};
use crate::lower::LowerOptions;
use crate::lower::Trapping;
use crate::lower::abi::Direction;
use crate::lower::isa::{IsaOptions, host_isa};
use crate::native::crossing::enter::{enter_host, enter_interpreter};
use crate::native::crossing::executor::{self, StoreData};
use crate::native::crossing::raise;
use crate::native::crossing::signals;
use crate::native::crossing::stubs::Stubs;
use crate::native::crossing::trampoline;
use crate::native::crossing::trampolines::{Trampoline, Trampolines};
use crate::native::crossing::{backtrace, roots};
use crate::native::ownership::kept::Kept;
use crate::precompiled::fields::{self, Fields};
use crate::precompiled::{Key, file};

/// The version of Cranelift that makes native code; empty in a build without the feature `jit`, which makes
/// none.
pub const CRANELIFT_VERSION: &str = cranelift_codegen::VERSION;

/// State shared by native code of all modules of an engine.
pub(crate) struct NativeEngine {
    config: Config,
    /// What becomes of compilations that fail, except those for modules.
    containment: Containment,
    isa: cranelift_codegen::isa::OwnedTargetIsa,
    trapping: Trapping,
    trampolines: Trampolines,
    /// Stubs of functions that are not compiled, in all modules of the engine.
    pub(crate) stubs: Stubs,
    /// The code that guest code calls when a poll is due, if it polls.
    poll: Option<CodeUnit>,
    profiler: Profiler,
    /// The threads that compile while programs go on.
    pub(crate) workers: Workers,
    /// The fields that kept code depends on.
    fields: OnceLock<Fields>,
}

impl NativeEngine {
    /// # Errors
    /// Fails if the machine is not one that native code can be made for, or the profiler's file cannot be made.
    pub(crate) fn new(config: &Config) -> Result<NativeEngine, Error> {
        let trapping = trapping(config);
        if trapping == Trapping::Signals {
            signals::install();
        }
        let isa = host_isa(isa_options(config)).map_err(Error::compile)?;
        let profiler = Profiler::new(config.profiler).map_err(Error::host)?;
        let containment = Containment::new(Arc::default(), config.contain_faults);
        let poll = || {
            let compile = || trampoline::poll_trampoline(&isa);
            containment.run(Subject::Trampoline, || "polls".to_owned(), compile)
        };
        let poll = config.polls().then(poll).transpose().map_err(Error::compile)?;
        let mut engine = NativeEngine {
            config: config.clone(),
            containment,
            isa,
            trapping,
            trampolines: Trampolines::default(),
            stubs: Stubs::default(),
            poll: None,
            profiler,
            workers: Workers::default(),
            fields: OnceLock::new(),
        };
        if let Some(mut poll) = poll {
            engine.announce(&mut poll, std::iter::once("trampoline of polls".to_owned()));
            engine.poll = Some(poll);
        }
        Ok(engine)
    }

    /// A store of the engine, with the embedder's data.
    pub(crate) fn store<D: StoreData>(
        self: &Arc<NativeEngine>,
        config: StoreConfig,
        data: D,
    ) -> Store {
        let hooks = NativeHooks {
            executor: executor::execute::<D>,
            tiers: (self.config.tier == Tier::Auto).then_some(TierHooks {
                host_stub: enter_host,
                interpret: enter_interpreter,
                host_code: executor::host_code::<D>,
            }),
            host_trampoline: self.host_trampoline(),
            raise: raise::raise,
            walk: backtrace::walk,
            roots: roots::roots,
            poll: self.poll(),
        };
        // SAFETY: `execute` enters code by the entry that `find_entry` has given the store for the function's
        // type, and the data are a `D`. The trampolines are those of `Trampoline::host_code` and
        // `poll_trampoline`, which do what the hooks say; the former come with their owner, the latter lives as
        // long as the engine, which the hooks own, and a store keeps its hooks. `raise` traps in the innermost
        // activation, which is that of the code that calls it. `walk` and `roots` read frames only.
        unsafe { Store::new_native(config, Box::new(data), hooks) }
    }

    /// Sets in stores of the engine the native code of their host functions. What a module imports has been made
    /// before, at its expense.
    fn host_trampoline(self: &Arc<NativeEngine>) -> HostTrampoline {
        let native = self.clone();
        Arc::new(move |ty| {
            Ok(native.trampoline(Direction::ToHost, ty).map_err(Error::compile)?.host_code())
        })
    }

    /// The fields that kept code depends on.
    pub(crate) fn fields(&self) -> &Fields {
        self.fields.get_or_init(|| {
            let options = self.compile_options(MemoryPlan::CHECKED);
            fields::of_engine(&options, self.config.memory)
        })
    }

    /// The key of files with code.
    pub(crate) fn code_key(&self) -> &Key {
        self.config.code_key.as_ref().map_or(file::NO_KEY, |key| &key.0)
    }

    /// The configuration of the engine.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the settings for functions whose memories have this address space.
    pub(crate) fn compile_options(&self, memory: MemoryPlan) -> CompileOptions {
        let config = &self.config;
        let stack_cells = config.stack_cells_max.is_some();
        let build = BuildOptions {
            fuel: config.consume_fuel,
            stack_cells,
            polls: config.polls(),
            waits: false,
        };
        CompileOptions {
            build,
            promotion: config.promotion,
            on_the_fly: config.on_the_fly.map(|options| {
                let OnTheFly { braun, fold, copies } = options;
                SsaOptions { build, braun, fold, copies }
            }),
            passes: config.passes.clone(),
            lower: LowerOptions {
                cold: None,
                isa: self.isa.clone(),
                slots: config.slots,
                memory,
                polls: config.polls(),
                trapping: self.trapping,
                loads_entries: false,
                imports: None,
                counters: None,
                exits: None,
            },
            verify: config.verify_passes,
            keep_clif: false,
            keep_asm: false,
            keep_listing: false,
            containment: self.containment.clone(),
        }
    }

    /// What becomes of compilations without a module that fail.
    pub(crate) fn containment(&self) -> &Containment {
        &self.containment
    }

    /// What becomes of compilations for a new module that fail.
    pub(crate) fn module_containment(&self) -> Containment {
        let counts = Counts::of_module(&self.containment.counts);
        Containment::new(counts, self.config.contain_faults)
    }

    /// The counts of all compilations.
    pub(crate) fn compile_stats(&self) -> CompileStats {
        self.containment.counts.read()
    }

    /// The machine that code is compiled for.
    pub(crate) fn isa(&self) -> &cranelift_codegen::isa::OwnedTargetIsa {
        &self.isa
    }

    /// The features of the machine, and whether it has them.
    pub(crate) fn machine_features(&self) -> Vec<(&'static str, bool)> {
        let flags = self.isa.isa_flags().into_iter();
        flags.filter_map(|flag| Some((flag.name, flag.as_bool()?))).collect()
    }

    /// Returns the function that code of the engine's stores calls when a poll is due.
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
        if self.config.debug_info {
            unit.show_to_debuggers(names);
        }
    }

    /// The same of a function of a module that was placed alone. Debuggers know it as long as the result is kept.
    pub(crate) fn announce_function(
        &self,
        code: &Range<usize>,
        name: impl FnOnce() -> String,
        debug: Option<&DebugCode>,
        module: &VerifiedModule,
    ) -> Option<DebugImage> {
        if !self.config.debug_info && !self.profiler.listens() {
            return None;
        }
        let name = name();
        self.profiler.report(std::iter::once((code.clone(), name.clone())));
        let shown = [Shown { code: code.clone(), name, debug }];
        self.config.debug_info.then(|| DebugImage::register(code, &shown, Some(module)))
    }

    /// The trampoline of a function type, which is freed with its last user.
    ///
    /// # Errors
    /// Fails if it cannot be compiled, or there is no memory for code.
    pub(crate) fn trampoline(
        &self,
        direction: Direction,
        ty: &FuncType,
    ) -> Result<Arc<Trampoline>, CodeError> {
        self.kept_trampoline(direction, ty, &self.containment, None)
    }

    /// The same, whose code may have been kept.
    ///
    /// # Errors
    /// Fails if it cannot be compiled, or there is no memory for code.
    pub(crate) fn kept_trampoline(
        &self,
        direction: Direction,
        ty: &FuncType,
        containment: &Containment,
        kept: Option<&Kept>,
    ) -> Result<Arc<Trampoline>, CodeError> {
        self.trampolines.get_or_make(direction, ty, || {
            let place = || match kept.and_then(|kept| kept.trampoline(direction, ty)) {
                Some(code) => CodeUnit::place(&self.isa, 0, &[code], None),
                None => trampoline::place(&self.isa, direction, ty),
            };
            let name = || direction.name(ty);
            // Guest code may have left little of the stack.
            let code = stack::with_room(|| containment.run(Subject::Trampoline, name, place));
            let mut code =
                code.map_err(|error| containment.no_thread(Subject::Trampoline, &error))??;
            self.announce(&mut code, std::iter::once(direction.name(ty)));
            Ok(code)
        })
    }

    /// Returns the number of trampolines of function types.
    #[cfg(test)]
    pub(crate) fn n_trampolines(&self) -> usize {
        self.trampolines.len()
    }
}

fn trapping(config: &Config) -> Trapping {
    if config.signals_based_traps { Trapping::Signals } else { Trapping::Calls }
}

/// Returns the part of the configuration that Cranelift depends on.
pub(crate) fn isa_options(config: &Config) -> IsaOptions {
    IsaOptions {
        canonical_nans: config.canonical_nans,
        verify_clif: config.verify_passes,
        describes_code: config.debug_info,
        ..IsaOptions::new(config.slots)
    }
}
