//! Modules: loaded, verified, and compiled if the engine makes native code.

use std::path::Path;
use std::sync::Arc;

use slotvm_bytecode::VerifiedModule;
use slotvm_runtime::{self as rt, Error, InstanceId, InterpreterCode};
use slotvm_ssa::passes::inline::ExitPlan;
use slotvm_ssa::pipeline::PassSet;
use tracing::debug_span;

use crate::api::engine::Engine;
use crate::api::pipeline::{self, Parts};
use crate::api::types::{self, ExportType, ExternType, ImportType};
use crate::compile::function_info::FunctionInfo;
use crate::compile::listing::FunctionCode;
use crate::compile::stats::CompileStats;
use crate::compile::timings::Timings;
use crate::config::counts::FunctionCounts;
use crate::config::executions::Executions;
use crate::native::module::{NativeModule, Texts};
use crate::native::ownership::keeping::Keeping;

/// A module that is ready to be instantiated. Cloning it is cheap and returns the same module; many
/// stores and threads can run it at once.
#[derive(Clone)]
pub struct Module(Arc<Inner>);

struct Inner {
    engine: Engine,
    verified: Arc<VerifiedModule>,
    timings: Timings,
    native: Option<NativeModule>,
    /// The code of an engine that interprets, always or at first.
    interpreted: InterpreterCode,
}

impl Module {
    /// Makes a module from its binary form (`.bc`), its text form (`.vasm`) or, with the feature `wasm`,
    /// a WebAssembly binary.
    ///
    /// # Errors
    /// Fails if the bytes are not a module, the module breaks a rule, or native code cannot be made.
    pub fn new(engine: &Engine, bytes: impl AsRef<[u8]>) -> Result<Module, Error> {
        Ok(Module::from_parts(engine, pipeline::from_bytes(engine, bytes.as_ref(), None)?))
    }

    /// Makes a module from a file, which holds what [`Module::new`] takes. The ending of its name decides on the
    /// format where the bytes leave it open: see [`slotvm_bytecode::load`].
    ///
    /// # Errors
    /// Fails if the file cannot be read, or for the reasons of [`Module::new`].
    pub fn from_file(engine: &Engine, path: impl AsRef<Path>) -> Result<Module, Error> {
        let path = path.as_ref();
        let bytes = std::fs::read(path);
        let bytes = bytes.map_err(|source| Error::File { path: path.to_owned(), source })?;
        let extension = path.extension().and_then(|extension| extension.to_str());
        Ok(Module::from_parts(engine, pipeline::from_bytes(engine, &bytes, extension)?))
    }

    /// Makes a module from its text form.
    ///
    /// # Errors
    /// Fails if the text has an error, the module breaks a rule, or native code cannot be made.
    pub fn from_text(engine: &Engine, source: &str) -> Result<Module, Error> {
        Ok(Module::from_parts(engine, pipeline::from_text(engine, source)?))
    }

    /// Makes a module from what a front end has built.
    ///
    /// # Errors
    /// Fails if the module breaks a rule, or native code cannot be made.
    pub fn from_bytecode(
        engine: &Engine,
        module: slotvm_bytecode::Module,
    ) -> Result<Module, Error> {
        Ok(Module::from_parts(
            engine,
            pipeline::from_loaded(engine, module.into(), None, Timings::default())?,
        ))
    }

    /// Makes a module from one that is verified already.
    ///
    /// # Errors
    /// Fails if native code cannot be made.
    pub fn from_verified(
        engine: &Engine,
        verified: impl Into<Arc<VerifiedModule>>,
    ) -> Result<Module, Error> {
        Ok(Module::from_parts(
            engine,
            pipeline::from_verified(engine, verified.into(), None, Timings::default())?,
        ))
    }

    /// Makes a module from its bytes, whose code was kept.
    pub(crate) fn from_kept(
        engine: &Engine,
        keeping: Keeping,
        bytes: &[u8],
    ) -> Result<Module, Error> {
        let timings = Timings::default();
        Ok(Module::from_parts(engine, pipeline::load(engine, bytes, None, Some(keeping), timings)?))
    }

    fn from_parts(engine: &Engine, Parts { verified, timings, native }: Parts) -> Module {
        let interpreted = InterpreterCode::default();
        Module(Arc::new(Inner { engine: engine.clone(), verified, timings, native, interpreted }))
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// The bytecode, with what the verifier found out about it. Where functions are interpreted at first, and where code was
    /// kept, functions of WebAssembly are translated when they are needed; this translates all of them.
    pub fn verified(&self) -> &Arc<VerifiedModule> {
        self.0.verified.completed()
    }

    /// The bytecode, whose functions may not be translated yet.
    pub(crate) fn bytecode(&self) -> &Arc<VerifiedModule> {
        &self.0.verified
    }

    /// The name of the module, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.0.verified.module().names.module.as_deref()
    }

    /// Returns the imports of the module, in its order.
    pub fn imports(&self) -> impl ExactSizeIterator<Item = ImportType<'_>> + Clone {
        types::imports(&self.0.verified)
    }

    /// Returns the exports of the module, in its order.
    pub fn exports(&self) -> impl ExactSizeIterator<Item = ExportType<'_>> + Clone {
        types::exports(&self.0.verified)
    }

    /// Returns the type of the export with a name.
    pub fn get_export(&self, name: &str) -> Option<ExternType> {
        self.exports().find(|export| export.name() == name).map(|export| export.ty().clone())
    }

    /// Returns the times of the stages that made the module.
    pub fn timings(&self) -> &Timings {
        &self.0.timings
    }

    /// Whether this is the same module, not only an equal one.
    pub fn same(&self, other: &Module) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Prepares for host functions of these types, by the module's numbers, to be made for its imports.
    ///
    /// # Errors
    /// Fails if that exceeds the module's budget of compile work, or there is no memory for code.
    pub(crate) fn prepare_imports(&self, types: impl Iterator<Item = u32>) -> Result<(), Error> {
        match &self.0.native {
            Some(native) => native.prepare_imports(types),
            None => Ok(()),
        }
    }

    /// Makes an instance in a store of the engine, which keeps the module alive.
    pub(crate) fn instantiate(
        &self,
        store: &mut rt::Store,
        imports: &[rt::Extern],
    ) -> Result<InstanceId, Error> {
        let _instantiate = debug_span!("instantiate", module = self.name()).entered();
        if let Some(native) = &self.0.native {
            return native.instantiate(store, imports, &self.0.interpreted);
        }
        store.instantiate_with(self.0.verified.clone(), imports, &self.0.interpreted)
    }
}

/// The parts that only native code has.
impl Module {
    pub(crate) fn native(&self) -> Option<&NativeModule> {
        self.0.native.as_ref()
    }

    /// The bytes of native code, none if the engine interprets.
    pub fn code_bytes(&self) -> usize {
        self.native().map_or(0, NativeModule::code_bytes)
    }

    /// Returns what compiling reported about each function that the module defines, in their order. Unless all were
    /// compiled when the module was made, these are the functions compiled so far; those whose code was kept are not
    /// among them. Empty if the engine interprets.
    pub fn functions(&self) -> Vec<&FunctionInfo> {
        self.native().map_or(Vec::new(), NativeModule::functions)
    }

    /// The passes that a function goes through on this machine, of those that are asked for, unless they would take more
    /// than its budget. `None` if the engine interprets. For tools.
    #[doc(hidden)]
    pub fn passes_of(&self, func: u32) -> Option<PassSet> {
        self.native().map(|native| native.passes_of(func))
    }

    /// Returns how many compilations of the module have succeeded so far, and how many have failed for which reason. In
    /// [`Tier::Auto`](crate::Tier::Auto) a failure shows nowhere else: the program goes on interpreted. All counts are zero
    /// if the engine interprets.
    pub fn compile_stats(&self) -> CompileStats {
        self.native().map_or_else(CompileStats::default, NativeModule::compile_stats)
    }

    /// The number of times that native code was left for the interpreter at an exit, in all instances of the module, at
    /// least. For tests.
    #[doc(hidden)]
    pub fn exits_taken(&self) -> u64 {
        self.native().map_or(0, NativeModule::exits_taken)
    }

    /// Returns how often native code has executed each block of the IR, in all instances of the module, if the engine
    /// [counts](crate::Config::count_blocks). Unless all functions were compiled when the module was made, these are the
    /// functions compiled so far.
    pub fn block_counts(&self) -> Vec<FunctionCounts> {
        self.native().map_or(Vec::new(), NativeModule::block_counts)
    }

    /// Compiles a function again, and returns its Cranelift IR. `None` if the function is imported or the engine
    /// interprets.
    ///
    /// # Errors
    /// Fails if the function cannot be compiled.
    pub fn clif(&self, func: u32) -> Result<Option<String>, Error> {
        Ok(self.texts(func)?.map(|texts| texts.clif))
    }

    /// Compiles a function again, and returns its machine code as assembly text, before it is placed. `None` if the
    /// function is imported or the engine interprets.
    ///
    /// # Errors
    /// Fails if the function cannot be compiled.
    pub fn asm(&self, func: u32) -> Result<Option<String>, Error> {
        Ok(self.texts(func)?.map(|texts| texts.asm))
    }

    /// Compiles a function again, and returns its machine code, with the bytecode that its parts come from, the names
    /// that it refers to, and its traps. `None` if the function is imported or the engine interprets.
    ///
    /// With [`Compile::Eager`](crate::Compile::Eager), the code is that which runs. If nothing calls the function, it is
    /// what would run.
    ///
    /// # Errors
    /// Fails if the function cannot be compiled.
    pub fn machine_code(&self, func: u32) -> Result<Option<FunctionCode>, Error> {
        self.native().map_or(Ok(None), |native| native.machine_code(func))
    }

    /// The exits that code of a function has in the default tier if it is made after a run, with those of functions that may
    /// be inlined. `None` if there are none, or the function is imported. For tools.
    #[doc(hidden)]
    pub fn exits_after(&self, executions: &Executions, func: u32) -> Option<ExitPlan> {
        self.native()?.exits_after(executions, func)
    }

    /// Compiles a function as the default tier does after a run, with these exits, and returns its Cranelift IR and its
    /// machine code. In these, exits have numbers in place of addresses. `None` if the function is imported or the engine
    /// interprets. For tools.
    ///
    /// # Errors
    /// Fails if the function cannot be compiled.
    #[doc(hidden)]
    pub fn code_with_exits(
        &self,
        func: u32,
        plan: &ExitPlan,
    ) -> Result<Option<(String, FunctionCode)>, Error> {
        self.native().map_or(Ok(None), |native| native.code_with_exits(func, plan))
    }

    fn texts(&self, func: u32) -> Result<Option<Texts>, Error> {
        self.native().map_or(Ok(None), |native| native.texts(func))
    }
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Module")
            .field("name", &self.name())
            .field("n_funcs", &self.0.verified.n_funcs())
            .field("timings", &self.0.timings)
            .finish_non_exhaustive()
    }
}

const fn assert_send_sync<T: Send + Sync>() {}
const _: () = assert_send_sync::<Module>();
const _: () = assert_send_sync::<Engine>();
