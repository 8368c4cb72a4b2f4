//! From bytes to a module that runs: the stages in their order, each with its time.
//!
//! 1. `load`: `.bc` or `.vasm` to a module, [`slotvm_bytecode::text`];
//! 2. `verify`: the only way to a [`VerifiedModule`];
//! 3. `slots`, `ssa`, `clif`, `cranelift`: each function by [`crate::compile`];
//! 4. `place`: machine code to executable memory, [`crate::code`].
//!
//! An engine that interprets stops after `verify`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use slotvm_bytecode::{VerifiedModule, text};

use crate::engine::Engine;
use crate::module::{Module, ModuleError, Timings};

/// Runs a stage and adds its time.
fn timed<R>(time: &mut Duration, stage: impl FnOnce() -> R) -> R {
    let start = Instant::now();
    let result = stage();
    *time += start.elapsed();
    result
}

pub(crate) fn from_bytes(engine: &Engine, bytes: &[u8]) -> Result<Module, ModuleError> {
    // Text starts neither with the magic number nor with any other byte 0.
    match std::str::from_utf8(bytes) {
        Ok(source) if !source.is_empty() && !source.starts_with('\0') => from_text(engine, source),
        _ => {
            let mut timings = Timings::default();
            let module = timed(&mut timings.load, || slotvm_bytecode::decode(bytes))?;
            from_bytecode(engine, module, timings)
        }
    }
}

pub(crate) fn from_text(engine: &Engine, source: &str) -> Result<Module, ModuleError> {
    let mut timings = Timings::default();
    let module = timed(&mut timings.load, || text::parse(source))?;
    from_bytecode(engine, module, timings)
}

pub(crate) fn from_bytecode(
    engine: &Engine,
    module: slotvm_bytecode::Module,
    mut timings: Timings,
) -> Result<Module, ModuleError> {
    let verified = timed(&mut timings.verify, || slotvm_bytecode::verify(module))?;
    from_verified(engine, Arc::new(verified), timings)
}

#[cfg(not(feature = "jit"))]
pub(crate) fn from_verified(
    engine: &Engine,
    verified: Arc<VerifiedModule>,
    timings: Timings,
) -> Result<Module, ModuleError> {
    Ok(Module::from_parts(engine, verified, timings))
}

#[cfg(feature = "jit")]
pub(crate) use native::{NativeModule, from_verified, texts};

#[cfg(feature = "jit")]
pub use native::FunctionInfo;

#[cfg(feature = "jit")]
mod native {
    use slotvm_bytecode::module::ImportKind;
    use slotvm_runtime::{self as rt, Error, InstanceId, MemoryPlan, Natives};
    use slotvm_ssa::build::BuildOptions;
    use slotvm_ssa::promote::PromotionReport;

    use super::*;
    use crate::code::CodeUnit;
    use crate::compile::{CompileOptions, CompiledFunction, Compiler, Sizes, StageTimes};
    use crate::lower::LowerOptions;
    use crate::native::{NativeEngine, isa_options};
    use crate::slot_mode::SlotMode;

    /// The native code of a module.
    pub(crate) struct NativeModule {
        unit: CodeUnit,
        functions: Vec<FunctionInfo>,
        /// What the code relies on about memory 0.
        memory_span_bytes: u64,
    }

    /// What compiling has told about a function.
    #[derive(Clone, Debug)]
    #[non_exhaustive]
    pub struct FunctionInfo {
        /// Its number in the module's function index space.
        pub func: u32,
        /// Its name, or what stands in for one.
        pub name: String,
        /// Where its slots live. This is not the engine's mode if the code generator has refused the
        /// function in that mode for its size.
        pub slots: SlotMode,
        /// Whether the code generator's optimiser was left out, since loops are nested too deep for it.
        pub is_nested_too_deep: bool,
        /// Sizes of its forms and of its code.
        pub sizes: Sizes,
        /// What promotion did, if the mode promotes.
        pub promotion: Option<PromotionReport>,
    }

    /// Text of a function's code.
    pub(crate) struct Texts {
        pub(crate) clif: String,
        pub(crate) asm: String,
    }

    pub(crate) fn from_verified(
        engine: &Engine,
        verified: Arc<VerifiedModule>,
        mut timings: Timings,
    ) -> Result<Module, ModuleError> {
        let native = match engine.native() {
            Some(native) => Some(compile(engine, native, &verified, &mut timings)?),
            None => None,
        };
        Ok(Module::from_parts(engine, verified, timings, native))
    }

    fn compile(
        engine: &Engine,
        native: &NativeEngine,
        verified: &Arc<VerifiedModule>,
        timings: &mut Timings,
    ) -> Result<NativeModule, ModuleError> {
        let compiled = compile_functions(engine, native, verified)?;
        let mut times = StageTimes::default();
        let mut codes = Vec::with_capacity(compiled.len());
        let mut functions = Vec::with_capacity(compiled.len());
        for (slots, compiled) in compiled {
            let func = verified.n_imported_funcs() + functions.len() as u32;
            times += compiled.times;
            codes.push(compiled.code);
            functions.push(FunctionInfo {
                func,
                name: verified.func_name(func),
                slots,
                is_nested_too_deep: compiled.is_nested_too_deep,
                sizes: compiled.sizes,
                promotion: compiled.promotion,
            });
        }
        timings.slots = times.build;
        timings.ssa = times.promote;
        timings.clif = times.lower;
        timings.cranelift = times.cranelift;
        let first_func = verified.n_imported_funcs();
        let unit = timed(&mut timings.place, || {
            // Host functions of these types will be called; the store could not report an error.
            for ty in verified.module().imported_funcs() {
                native.trampolines(&verified.module().types[ty as usize])?;
            }
            CodeUnit::place(native.isa(), first_func, &codes, Some(verified.clone()))
        });
        let unit = unit.map_err(|error| ModuleError::Compile(error.to_string()))?;
        let memory_span_bytes = memory_plan(engine, verified).span_bytes();
        Ok(NativeModule { unit, functions, memory_span_bytes })
    }

    /// Compiles all functions; each with the mode that it got.
    fn compile_functions(
        engine: &Engine,
        native: &NativeEngine,
        verified: &VerifiedModule,
    ) -> Result<Vec<(SlotMode, CompiledFunction)>, ModuleError> {
        let options = options(engine, native, verified);
        let slots = options.lower.slots;
        let mut compiler = Compiler::new(options);
        let mut fallback = None;
        (verified.n_imported_funcs()..verified.n_funcs())
            .map(|func| match compiler.compile(verified, func) {
                Ok(compiled) => Ok((slots, compiled)),
                // Without optimisation the code generator takes larger functions.
                Err(_) if slots != SlotMode::Memory => {
                    let fallback = match &mut fallback {
                        Some(fallback) => fallback,
                        none => none.insert(fallback_compiler(engine, verified)?),
                    };
                    let compiled = fallback.compile(verified, func);
                    Ok((SlotMode::Memory, compiled.map_err(refused)?))
                }
                Err(error) => Err(refused(error)),
            })
            .collect()
    }

    fn refused(error: impl std::fmt::Display) -> ModuleError {
        ModuleError::Compile(error.to_string())
    }

    fn fallback_compiler(
        engine: &Engine,
        verified: &VerifiedModule,
    ) -> Result<Compiler, ModuleError> {
        let mut config = engine.config().clone();
        config.slots(SlotMode::Memory);
        let isa = crate::isa::host_isa(isa_options(&config)).map_err(refused)?;
        let memory = memory_plan(engine, verified);
        Ok(Compiler::new(CompileOptions {
            build: build_options(engine),
            lower: LowerOptions { isa, slots: SlotMode::Memory, memory },
            keep_clif: false,
            keep_asm: false,
        }))
    }

    fn options(
        engine: &Engine,
        native: &NativeEngine,
        verified: &VerifiedModule,
    ) -> CompileOptions {
        CompileOptions {
            build: build_options(engine),
            lower: LowerOptions {
                isa: native.isa().clone(),
                slots: engine.config().slots,
                memory: memory_plan(engine, verified),
            },
            keep_clif: false,
            keep_asm: false,
        }
    }

    fn build_options(engine: &Engine) -> BuildOptions {
        let config = engine.config();
        BuildOptions { fuel: config.consume_fuel, stack_cells: config.stack_cells_max.is_some() }
    }

    /// The address space that memory 0 will have at least. A memory that comes from elsewhere is made
    /// without knowledge of this module's accesses.
    fn memory_plan(engine: &Engine, verified: &VerifiedModule) -> MemoryPlan {
        let mut imports = verified.module().imports.iter();
        let imported = imports.any(|import| matches!(import.kind, ImportKind::Memory(_)));
        let usual = || match imported {
            true => MemoryPlan::PLAIN,
            false => MemoryPlan::for_module(verified),
        };
        engine.config().memory.unwrap_or_else(usual)
    }

    /// Compiles a function once more, for its texts.
    pub(crate) fn texts(module: &Module, func: u32) -> Result<Option<Texts>, ModuleError> {
        let verified = module.verified();
        let Some(native) = module.engine().native() else { return Ok(None) };
        if verified.func(func).is_none() {
            return Ok(None);
        }
        let options = options(module.engine(), native, verified);
        let options = CompileOptions { keep_clif: true, keep_asm: true, ..options };
        let compiled = Compiler::new(options).compile(verified, func).map_err(refused)?;
        let (clif, asm) = (compiled.clif.unwrap_or_default(), compiled.asm.unwrap_or_default());
        Ok(Some(Texts { clif, asm }))
    }

    impl NativeModule {
        pub(crate) fn instantiate(
            &self,
            verified: Arc<VerifiedModule>,
            store: &mut rt::Store,
            imports: &[rt::Extern],
        ) -> Result<InstanceId, Error> {
            let n_imported = verified.n_imported_funcs();
            let code = |func: u32| self.unit.func((func - n_imported) as usize);
            let natives = Natives { code: &code, memory_span_bytes: self.memory_span_bytes };
            store.instantiate(verified, imports, Some(natives))
        }

        pub(crate) fn code_bytes(&self) -> usize {
            self.unit.bytes()
        }

        pub(crate) fn functions(&self) -> &[FunctionInfo] {
            &self.functions
        }
    }
}
