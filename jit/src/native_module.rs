//! The native code of a module: compiling all its functions and placing them.
//!
//! Code relies on the address space that the engine gives to memories, and on memory 0 having it. Where
//! the system refuses so much, or an imported memory has less, the module is compiled once more, with
//! a check of each access.

use std::sync::{Arc, OnceLock};

use slotvm_bytecode::VerifiedModule;
use slotvm_bytecode::module::ImportKind;
use slotvm_runtime::{
    self as rt, EntryPoints, Error, InstanceId, MemoryImage, MemoryPlan, Natives,
};
use slotvm_ssa::build::{BuildOptions, SsaOptions};
use tracing::debug_span;

use crate::budget::Budget;
use crate::code::CodeUnit;
use crate::compile::{CompileError, CompileOptions, Compiler, StageTimes};
use crate::engine::Engine;
use crate::function_info::FunctionInfo;
use crate::lower::LowerOptions;
use crate::module::{Module, Timings};
use crate::native::NativeEngine;
use crate::parallel::compile_all;
use crate::pipeline::timed;

/// The native code of a module.
pub(crate) struct NativeModule {
    unit: Arc<CodeUnit>,
    /// Where each function of `unit` starts.
    entry_points: EntryPoints,
    functions: Vec<FunctionInfo>,
    /// The address space that the code relies on.
    memory: MemoryPlan,
    /// What data segments make of the memory, made for the first instance.
    image: OnceLock<Option<MemoryImage>>,
    /// Code that checks each access, if it was needed.
    checked: OnceLock<Result<Box<NativeModule>, String>>,
}

/// Text of a function's code.
pub(crate) struct Texts {
    pub(crate) clif: String,
    pub(crate) asm: String,
}

impl NativeModule {
    /// Compiles a module if its engine makes native code.
    ///
    /// # Errors
    /// If the code generator refuses a function, or there is no memory for code.
    pub(crate) fn compile(
        engine: &Engine,
        verified: &Arc<VerifiedModule>,
        timings: &mut Timings,
    ) -> Result<Option<NativeModule>, Error> {
        let Some(native) = engine.native() else { return Ok(None) };
        let options = options(engine, native, memory_plan(engine, verified));
        let is_parallel = engine.config().parallel_compilation;
        NativeModule::with_options(native, verified, options, is_parallel, timings).map(Some)
    }

    fn with_options(
        native: &NativeEngine,
        verified: &Arc<VerifiedModule>,
        options: CompileOptions,
        is_parallel: bool,
        timings: &mut Timings,
    ) -> Result<NativeModule, Error> {
        let _compile = debug_span!("compile", functions = verified.module().funcs.len()).entered();
        let memory = options.lower.memory;
        let n_funcs = verified.module().funcs.len();
        let mut codes = Vec::with_capacity(n_funcs);
        let mut functions = Vec::with_capacity(n_funcs);
        let mut times = StageTimes::default();
        let all = compile_all(verified, options, is_parallel)?;
        for (func, compiled) in (verified.n_imported_funcs()..).zip(all) {
            times += compiled.times;
            codes.push(compiled.code);
            functions.push(FunctionInfo {
                func,
                name: verified.func_name(func),
                work: compiled.work,
                sizes: compiled.sizes,
                promotion: compiled.promotion,
            });
        }
        timings.slots += times.build;
        timings.ssa += times.promote;
        timings.clif += times.lower;
        timings.cranelift += times.cranelift;
        let unit = timed(debug_span!("place"), &mut timings.place, || {
            // The store makes records for host functions of these types; it could not report an error.
            for ty in verified.module().imported_funcs() {
                native.trampolines(&verified.module().types[ty as usize])?;
            }
            let first_func = verified.n_imported_funcs();
            CodeUnit::place(native.isa(), first_func, &codes, Some(verified.clone()))
        });
        let mut unit = unit.map_err(Error::compile)?;
        let names = functions.iter().map(|function: &FunctionInfo| function.name.clone());
        native.announce(&mut unit, names);
        let unit = Arc::new(unit);
        let entry_points: EntryPoints = {
            let (unit, first_func) = (unit.clone(), verified.n_imported_funcs());
            Arc::new(move |func| unit.func((func - first_func) as usize))
        };
        Ok(NativeModule {
            unit,
            entry_points,
            functions,
            memory,
            image: OnceLock::new(),
            checked: OnceLock::new(),
        })
    }

    /// Makes an instance of the module, whose code this is.
    pub(crate) fn instantiate(
        &self,
        module: &Module,
        store: &mut rt::Store,
        imports: &[rt::Extern],
    ) -> Result<InstanceId, Error> {
        let image = self.image.get_or_init(|| MemoryImage::new(module.verified()));
        let memory_span_bytes = self.memory.span_bytes();
        let natives =
            Natives { code: &self.entry_points, memory_span_bytes, image: image.as_ref() };
        match store.instantiate(module.verified().clone(), imports, Some(natives)) {
            Err(Error::AddressSpace { .. }) if self.memory != MemoryPlan::CHECKED => {
                self.checked(module)?.instantiate(module, store, imports)
            }
            result => result,
        }
    }

    /// The same code, with a check of each access.
    fn checked(&self, module: &Module) -> Result<&NativeModule, Error> {
        let compile = || {
            let native = module.engine().native().expect("the engine has made native code");
            let options = options(module.engine(), native, MemoryPlan::CHECKED);
            let verified = module.verified();
            // A thread of a pool that waited for others here could come to wait for itself.
            let is_parallel = false;
            let mut timings = Timings::default();
            let checked =
                NativeModule::with_options(native, verified, options, is_parallel, &mut timings);
            checked.map(Box::new).map_err(|error| error.to_string())
        };
        match self.checked.get_or_init(compile) {
            Ok(checked) => Ok(checked),
            Err(error) => Err(Error::compile(error.clone())),
        }
    }

    #[cfg(test)]
    pub(crate) fn unit(&self) -> &CodeUnit {
        &self.unit
    }

    pub(crate) fn code_bytes(&self) -> usize {
        self.unit.bytes()
    }

    pub(crate) fn functions(&self) -> &[FunctionInfo] {
        &self.functions
    }
}

/// How an engine compiles a module.
#[cfg(all(test, feature = "parallel-compilation"))]
pub(crate) fn options_for_tests(engine: &Engine, verified: &VerifiedModule) -> CompileOptions {
    let native = engine.native().expect("the engine makes native code");
    options(engine, native, memory_plan(engine, verified))
}

fn options(engine: &Engine, native: &NativeEngine, memory: MemoryPlan) -> CompileOptions {
    let config = engine.config();
    let stack_cells = config.stack_cells_max.is_some();
    let build = BuildOptions { fuel: config.consume_fuel, stack_cells, polls: config.polls() };
    CompileOptions {
        build,
        promotion: config.promotion,
        on_the_fly: config.on_the_fly.map(|ssa| SsaOptions { build, ..ssa }),
        lower: LowerOptions {
            isa: native.isa().clone(),
            slots: config.slots,
            memory,
            polls: config.polls(),
            trapping: native.trapping(),
        },
        keep_clif: false,
        keep_asm: false,
    }
}

/// The address space that memory 0 will have as a rule. A memory that comes from elsewhere is made
/// without knowledge of this module's accesses.
fn memory_plan(engine: &Engine, verified: &VerifiedModule) -> MemoryPlan {
    let mut imports = verified.module().imports.iter();
    let imported = imports.any(|import| matches!(import.kind, ImportKind::Memory(_)));
    let usual = || match imported {
        true => MemoryPlan::PLAIN,
        false => MemoryPlan::for_module(verified),
    };
    let config = engine.config();
    // Without signals nothing may fault, whatever address space there is.
    if config.signals_based_traps {
        config.memory.unwrap_or_else(usual)
    } else {
        MemoryPlan::CHECKED
    }
}

/// Compiles a function once more, for its texts. There are none if the function is imported or the
/// engine interprets.
pub(crate) fn texts(module: &Module, func: u32) -> Result<Option<Texts>, Error> {
    let (engine, verified) = (module.engine(), module.verified());
    let Some(native) = engine.native().filter(|_| verified.func(func).is_some()) else {
        return Ok(None);
    };
    let options = options(engine, native, memory_plan(engine, verified));
    let options = CompileOptions { keep_clif: true, keep_asm: true, ..options };
    let share = Budget::new(verified).share(verified, func);
    let compiled = Compiler::new(options).compile(verified, func, share)?;
    let (clif, asm) = (compiled.clif.unwrap_or_default(), compiled.asm.unwrap_or_default());
    Ok(Some(Texts { clif, asm }))
}

impl From<CompileError> for Error {
    fn from(error: CompileError) -> Error {
        Error::compile(error)
    }
}
