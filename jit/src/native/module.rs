//! The native code of a module: compiling all its functions and placing them, or each when it is first
//! called ([`crate::native::scheduling::on_call`]).
//!
//! Code relies on the address space that the engine gives to memories, and on memory 0 having it. Where
//! the system refuses so much, or an imported memory has less, the module is compiled once more, with
//! a check of each access. This happens while an instance is made. If calls may be interrupted, so may start
//! functions be: then each function is compiled when it is first called, whatever the engine does otherwise.

use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, OnceLock};

use slotvm_bytecode::module::ImportKind;
use slotvm_bytecode::{FuncType, VerifiedModule};
use slotvm_runtime::native::{CodeVersion, MemoryImage, Natives, OnCall, Part, Tiers};
use slotvm_runtime::{self as rt, Error, FuncTarget, InstanceId, InterpreterCode, MemoryPlan};
use slotvm_ssa::passes::inline::ExitPlan;
use slotvm_ssa::pipeline::{PassSet, Stage};
use tracing::debug_span;

use crate::compile::budget::Budget;
use crate::compile::error::CompileError;
use crate::compile::function::form::{FormExits, Origin};
use crate::compile::function::{CompileOptions, CompiledFunction, Compiler};
use crate::compile::function_info::FunctionInfo;
use crate::compile::listing::FunctionCode;
use crate::compile::stats::CompileStats;
use crate::compile::timings::Timings;
use crate::config::counts::{Counters, FunctionCounts};
use crate::config::executions::Executions;
use crate::config::{Compile, Config, Tier};
use crate::lower::abi::Direction;
use crate::lower::cold::ColdCalls;
use crate::lower::exits::LeftCode;
use crate::native::crossing::trampolines::Trampoline;
use crate::native::ownership::eager::EagerCode;
use crate::native::ownership::engine::NativeEngine;
use crate::native::ownership::keeping::Keeping;
use crate::native::ownership::resources::Resources;
use crate::native::scheduling::exits;
use crate::native::scheduling::making::Maker;
use crate::native::scheduling::on_call::LazyCode;
use crate::native::scheduling::tiers::Tiering;
use crate::precompiled::file::About;

/// The native code of a module.
pub(crate) struct NativeModule {
    native: Arc<NativeEngine>,
    verified: Arc<VerifiedModule>,
    code: Arc<Placement>,
    /// The decisions about native code, if functions are interpreted at first.
    tiers: Option<Arc<dyn Tiers>>,
    /// The address space that the code relies on.
    memory: MemoryPlan,
    /// The image of the initialised memory, made for the second instance: it pays when it is used again.
    image: OnceLock<Option<MemoryImage>>,
    has_instance: AtomicBool,
    resources: Resources,
    /// Code that checks each access, if it was needed.
    checked: OnceLock<Result<Box<NativeModule>, String>>,
    /// The counters that `code` adds to, if blocks are counted.
    counters: Option<Arc<Counters>>,
}

enum Placement {
    Together(EagerCode),
    Apart(LazyCode),
}

impl Placement {
    /// The entries of the functions that the module defines, see [`VmCtx::entries`].
    ///
    /// [`VmCtx::entries`]: slotvm_runtime::native::VmCtx::entries
    fn entries(&self) -> &[AtomicPtr<u8>] {
        match self {
            Placement::Together(code) => code.entries(),
            Placement::Apart(code) => code.entries(),
        }
    }

    /// See [`VmCtx::on_call`].
    ///
    /// [`VmCtx::on_call`]: slotvm_runtime::native::VmCtx::on_call
    fn on_call(&self) -> OnCall {
        match self {
            Placement::Together(_) => OnCall::NONE,
            Placement::Apart(code) => code.on_call(),
        }
    }
}

/// Text of a function's code.
pub(crate) struct Texts {
    pub(crate) clif: String,
    pub(crate) asm: String,
}

impl NativeModule {
    /// Compiles a module by the configuration of its engine, as far as its code was not kept.
    ///
    /// # Errors
    /// Fails if the code generator refuses a function, or there is no memory for code.
    pub(crate) fn compile(
        native: &Arc<NativeEngine>,
        verified: &Arc<VerifiedModule>,
        keeping: Option<Keeping>,
        timings: &mut Timings,
    ) -> Result<NativeModule, Error> {
        let config = native.config();
        let mut options = native.compile_options(memory_plan(config, verified));
        // Kept code must not depend on an address of this process.
        options.lower.counters = counters(config).filter(|_| keeping.is_none());
        let is_parallel = config.parallel_compilation;
        let is_new = keeping.as_ref().is_some_and(|keeping| keeping.kept.is_none());
        let (kept, place, is_replaced) = match keeping {
            Some(Keeping { about, kept, cache, is_replaced }) => {
                (kept, Some((about, cache)), is_replaced)
            }
            None => (None, None, false),
        };
        let resources = Resources::new(native, verified, kept, place.is_some());
        if is_replaced {
            resources.containment.counts.add_replaced();
        }
        let when = if place.is_some() { Compile::Lazy } else { when(config) };
        let module = NativeModule::with_options(
            native,
            verified,
            options,
            when,
            resources,
            is_parallel,
            timings,
        )?;
        let Some(((about, cache), maker)) = place.zip(module.keeper()) else { return Ok(module) };
        if let Some((cache, name)) = cache {
            maker.saving.keep_in(cache, name, about);
        }
        if is_new && self::when(config) == Compile::Eager {
            maker.complete(is_parallel, timings)?;
            maker.saving.save();
        }
        Ok(module)
    }

    fn with_options(
        native: &Arc<NativeEngine>,
        verified: &Arc<VerifiedModule>,
        mut options: CompileOptions,
        when: Compile,
        resources: Resources,
        is_parallel: bool,
        timings: &mut Timings,
    ) -> Result<NativeModule, Error> {
        let _compile = debug_span!("compile", functions = verified.module().funcs.len()).entered();
        options.containment = resources.containment.clone();
        options.lower.cold = ColdCalls::of(verified);
        let memory = options.lower.memory;
        let counters = options.lower.counters.clone();
        let budget = &resources.budget;
        let code = match when {
            Compile::Eager => {
                let code = EagerCode::new(native, verified, options, budget, is_parallel, timings);
                Placement::Together(code?)
            }
            Compile::Lazy => {
                let maker = Maker::new(native, verified, options, resources.clone());
                let code = || LazyCode::new(Arc::new(maker));
                let code = timings.0.stage(Stage::Place, code);
                Placement::Apart(code.map_err(Error::compile)?)
            }
        };
        let tiers = match &code {
            Placement::Apart(code) if code.maker().is_tiered() => {
                Some(Tiering::new(code.maker().clone()) as Arc<dyn Tiers>)
            }
            Placement::Apart(_) | Placement::Together(_) => None,
        };
        let code = Arc::new(code);
        let (image, checked) = (OnceLock::new(), OnceLock::new());
        Ok(NativeModule {
            native: native.clone(),
            verified: verified.clone(),
            code,
            tiers,
            memory,
            image,
            has_instance: AtomicBool::new(false),
            resources,
            checked,
            counters,
        })
    }

    /// Makes and keeps the trampolines for imports of these types of the module.
    ///
    /// # Errors
    /// Fails if they exceed the budget of the module, or there is no memory for code.
    pub(crate) fn prepare_imports(&self, types: impl Iterator<Item = u32>) -> Result<(), Error> {
        if self.is_tiered() {
            // They are made when native code calls.
            return Ok(());
        }
        self.resources.trampolines.prepare_imports(&self.native, &self.verified, types)
    }

    /// The trampoline by which the host calls a function of the module.
    ///
    /// # Errors
    /// Fails if it exceeds the budget of the module, or there is no memory for code.
    pub(crate) fn entry(&self, func: u32) -> Result<Arc<Trampoline>, Error> {
        let ty = self.verified.func_type_index(func);
        self.resources.trampolines.entry(&self.native, &self.verified, ty)
    }

    /// Whether functions are interpreted at first.
    fn is_tiered(&self) -> bool {
        self.native.config().tier == Tier::Auto
    }

    /// The trampoline to host functions of a type that the module imports.
    ///
    /// # Errors
    /// Fails if it exceeds the budget of the module, or there is no memory for code.
    pub(crate) fn to_host(&self, ty: &FuncType) -> Result<Arc<Trampoline>, Error> {
        let types = &self.verified.module().types;
        match (0..).zip(types).find(|(_, known)| *known == ty) {
            Some((ty, _)) => self.resources.trampolines.to_host(&self.native, &self.verified, ty),
            None => self.native.trampoline(Direction::ToHost, ty).map_err(Error::compile),
        }
    }

    /// The trampoline by which a loop of a function goes on in native code.
    ///
    /// # Errors
    /// Fails if it exceeds the budget of the module, or there is no memory for code.
    pub(crate) fn loop_entry(&self, func: u32) -> Result<Arc<Trampoline>, Error> {
        self.resources.trampolines.loop_entry(&self.native, &self.verified.func_type(func).results)
    }

    /// Keeps the trampolines to host functions that an instance imports, so that other stores find them.
    fn keep_imports(&self, store: &rt::Store, imports: &[rt::Extern]) -> Result<(), Error> {
        if self.is_tiered() {
            return Ok(());
        }
        for (import, found) in self.verified.module().imports.iter().zip(imports) {
            if let (&ImportKind::Func(ty, _), &rt::Extern::Func(func)) = (&import.kind, found)
                && matches!(store.func_target(func), FuncTarget::Host { .. })
            {
                self.resources.trampolines.keep_import(&self.native, &self.verified, ty)?;
            }
        }
        Ok(())
    }

    /// Makes an instance of the module in a store of the engine, which keeps the module.
    pub(crate) fn instantiate(
        &self,
        store: &mut rt::Store,
        imports: &[rt::Extern],
        interpreted: &InterpreterCode,
    ) -> Result<InstanceId, Error> {
        self.keep_imports(store, imports)?;
        let checked = || Ok(self.checked()?.natives());
        let verified = self.verified.clone();
        // SAFETY: this is the code of the module, and that of `checked` is, too; both were compiled for the
        // address space that they say, by the engine of the store, as `Instance::from_entities` has checked. The
        // module owns the code, and the store keeps the module, as `Instance::from_entities` has told it to.
        unsafe { store.instantiate_native(verified, imports, self.natives(), interpreted, checked) }
    }

    fn natives(&self) -> Natives<'_> {
        let is_first = !self.has_instance.swap(true, Ordering::Relaxed);
        let image = || self.image.get_or_init(|| MemoryImage::new(&self.verified)).as_ref();
        let image = if is_first { None } else { image() };
        let memory_span_bytes = self.memory.span_bytes();
        let (entries, tiers) = (self.code.entries().as_ptr(), self.tiers.as_ref());
        let on_call = self.code.on_call();
        Natives { entries, on_call, memory_span_bytes, image, tiers }
    }

    /// The same code, with a check of each access.
    fn checked(&self) -> Result<&NativeModule, Error> {
        let compile = || {
            let config = self.native.config();
            let mut options = self.native.compile_options(MemoryPlan::CHECKED);
            options.lower.counters = counters(config);
            let when = if config.polls() { Compile::Lazy } else { when(config) };
            // A thread of a pool that waited for others here could come to wait for itself.
            let is_parallel = false;
            let mut timings = Timings::default();
            // What was kept relies on the address space.
            let resources = Resources { kept: None, ..self.resources.clone() };
            let checked = NativeModule::with_options(
                &self.native,
                &self.verified,
                options,
                when,
                resources,
                is_parallel,
                &mut timings,
            );
            checked.map(Box::new).map_err(|error| error.to_string())
        };
        match self.checked.get_or_init(compile) {
            Ok(checked) => Ok(checked),
            Err(error) => Err(Error::compile(error.clone())),
        }
    }

    /// Compiles a function once more, for its texts. There are none if the function is imported.
    pub(crate) fn texts(&self, func: u32) -> Result<Option<Texts>, Error> {
        let keep = |options| CompileOptions { keep_clif: true, keep_asm: true, ..options };
        let Some(compiled) = self.compile_again(func, None, keep)? else { return Ok(None) };
        const WANTED: &str = "it was asked for";
        let (clif, asm) = (compiled.clif.expect(WANTED), compiled.asm.expect(WANTED));
        Ok(Some(Texts { clif, asm }))
    }

    /// Compiles a function once more, for its machine code, which is that which runs if all code was placed together.
    /// There is none if the function is imported.
    pub(crate) fn machine_code(&self, func: u32) -> Result<Option<FunctionCode>, Error> {
        let keep = |options| CompileOptions { keep_listing: true, ..options };
        let Some(compiled) = self.compile_again(func, None, keep)? else { return Ok(None) };
        let mut listing = compiled.listing.expect("it was asked for");
        let index = (func - self.verified.n_imported_funcs()) as usize;
        if let Placement::Together(code) = &*self.code
            && let Some((offset, bytes)) = code.placed(index)
            && bytes.len() == listing.bytes.len()
        {
            listing.module_offset = Some(offset);
            listing.bytes = bytes.to_vec();
        }
        Ok(Some(listing))
    }

    /// The exits of the first version of a function's code in the default tier after a run. `None` if there are none, or the
    /// function is imported.
    pub(crate) fn exits_after(&self, executions: &Executions, func: u32) -> Option<ExitPlan> {
        self.verified.func(func)?;
        exits::of_profile(&self.verified, executions, func, self.native.config())
    }

    /// The code of a function with these exits. It is shown and never run. `None` if the function is imported.
    pub(crate) fn code_with_exits(
        &self,
        func: u32,
        plan: &ExitPlan,
    ) -> Result<Option<(String, FunctionCode)>, Error> {
        let keep = |mut options: CompileOptions| {
            // As all code of that tier does.
            options.lower.loads_entries = true;
            CompileOptions { keep_clif: true, keep_listing: true, ..options }
        };
        let Some(compiled) = self.compile_again(func, Some(plan), keep)? else { return Ok(None) };
        let clif = compiled.clif.expect("it was asked for");
        Ok(Some((clif, compiled.listing.expect("it was asked for"))))
    }

    /// The passes of a function, unless they would take more than its budget.
    pub(crate) fn passes_of(&self, func: u32) -> PassSet {
        let memory = memory_plan(self.native.config(), &self.verified);
        self.native.compile_options(memory).passes_of(func)
    }

    /// Compiles a function once more, by options that keep what is asked for, with exits if there are any. `None` if it is
    /// imported.
    fn compile_again(
        &self,
        func: u32,
        plan: Option<&ExitPlan>,
        keep: impl Fn(CompileOptions) -> CompileOptions,
    ) -> Result<Option<CompiledFunction>, Error> {
        let verified = &self.verified;
        if verified.func(func).is_none() {
            return Ok(None);
        }
        let mut options = self.native.compile_options(memory_plan(self.native.config(), verified));
        options.containment = self.resources.containment.clone();
        options.lower.cold = ColdCalls::of(verified);
        let share = Budget::new(verified).share(verified, func);
        let mut compiler = Compiler::new(keep(options));
        let version = Arc::new(CodeVersion::new(Part::Func(func), 0, 1));
        let code = LeftCode { interpreter: None, version: &version };
        let exits = plan.map_or(FormExits::default(), |plan| FormExits::new(plan, code));
        let origin = Origin::Bytecode { func, loops: &[], exits };
        Ok(Some(compiler.compile_at(verified, origin, share)?))
    }

    /// The file of a module with these bytes, with code of all functions.
    ///
    /// # Errors
    /// Fails if the code generator refuses a function, or there is no memory for code.
    pub(crate) fn serialize(&self, about: &About, module: &[u8]) -> Result<Vec<u8>, Error> {
        let is_parallel = self.native.config().parallel_compilation;
        let timings = &mut Timings::default();
        if let Some(maker) = self.keeper().filter(|maker| !maker.code.has_exits()) {
            maker.complete(is_parallel, timings)?;
            return Ok(maker.saving.file(self.native.code_key(), about, Some(module)));
        }
        // Functions that call each other directly are placed together, and nowhere else; code with exits is of use nowhere else.
        let (native, verified) = (&self.native, &self.verified);
        let options = native.compile_options(memory_plan(native.config(), verified));
        let resources = Resources {
            containment: self.resources.containment.clone(),
            ..Resources::new(native, verified, None, true)
        };
        NativeModule::with_options(
            native,
            verified,
            options,
            Compile::Lazy,
            resources,
            is_parallel,
            timings,
        )?
        .serialize(about, module)
    }

    /// The bytes of the module with what they are, if they are where its code was kept.
    pub(crate) fn kept_module(&self) -> Option<(About, Vec<u8>)> {
        self.resources.kept.as_ref()?.module()
    }

    /// The code, if it can be kept: none if all code was placed together, or has counters.
    fn keeper(&self) -> Option<&Maker> {
        let Placement::Apart(code) = &*self.code else { return None };
        self.counters.is_none().then(|| &**code.maker())
    }

    /// Returns the code range of each compiled function.
    #[cfg(test)]
    pub(crate) fn codes(&self) -> Vec<std::ops::Range<usize>> {
        match &*self.code {
            Placement::Together(code) => code.codes().collect(),
            Placement::Apart(code) => code.codes().collect(),
        }
    }

    pub(crate) fn code_bytes(&self) -> usize {
        match &*self.code {
            Placement::Together(code) => code.bytes(),
            Placement::Apart(code) => code.bytes(),
        }
    }

    /// The counts of all blocks so far.
    pub(crate) fn block_counts(&self) -> Vec<FunctionCounts> {
        let mut counts = self.counters.as_ref().map_or(Vec::new(), |counters| counters.read());
        if let Some(Ok(checked)) = self.checked.get() {
            counts.extend(checked.block_counts());
        }
        counts
    }

    /// The counts of all compilations so far.
    pub(crate) fn compile_stats(&self) -> CompileStats {
        self.resources.containment.counts.read()
    }

    /// The number of times that code was left at an exit.
    pub(crate) fn exits_taken(&self) -> u64 {
        match &*self.code {
            Placement::Together(_) => 0,
            Placement::Apart(code) => code.maker().code.exits_taken(),
        }
    }

    pub(crate) fn functions(&self) -> Vec<&FunctionInfo> {
        match &*self.code {
            Placement::Together(code) => code.functions().iter().collect(),
            Placement::Apart(code) => code.functions().collect(),
        }
    }
}

impl Drop for NativeModule {
    /// Keeps code that the program has needed.
    fn drop(&mut self) {
        if let Some(maker) = self.keeper() {
            maker.saving.save_last();
        }
    }
}

/// Counters for the code of a module, if it is to have any.
fn counters(config: &Config) -> Option<Arc<Counters>> {
    config.count_blocks.then(Arc::default)
}

/// When functions are compiled.
fn when(config: &Config) -> Compile {
    if config.tier == Tier::Auto { Compile::Lazy } else { config.compile }
}

/// The address space that memory 0 will have as a rule. A memory that comes from elsewhere is made
/// without knowledge of this module's accesses.
pub(crate) fn memory_plan(config: &Config, verified: &VerifiedModule) -> MemoryPlan {
    let mut imports = verified.module().imports.iter();
    let imported = imports.any(|import| matches!(import.kind, ImportKind::Memory(_)));
    let usual = || match imported {
        true => MemoryPlan::PLAIN,
        false => MemoryPlan::for_module(verified),
    };
    // Without signals nothing may fault, whatever address space there is.
    if config.signals_based_traps {
        config.memory.unwrap_or_else(usual)
    } else {
        MemoryPlan::CHECKED
    }
}

impl From<CompileError> for Error {
    fn from(error: CompileError) -> Error {
        Error::compile(error)
    }
}
