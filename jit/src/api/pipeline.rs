//! Loading a module, from bytes to runnable code: the stages of [`slotvm_ssa::pipeline`] that concern whole modules.
//!
//! Each function goes through the others by `compile`. An engine that interprets stops after `verify`.

use std::sync::Arc;

use slotvm_bytecode::load::{self, LoadOptions};
use slotvm_bytecode::{VerifiedModule, text};
use slotvm_runtime::Error;
use slotvm_ssa::pipeline::Stage;

use crate::api::engine::Engine;
use crate::compile::timings::Timings;
use crate::native::module::NativeModule;

/// The parts of a module.
pub(crate) struct Parts {
    pub(crate) verified: Arc<VerifiedModule>,
    pub(crate) timings: Timings,
    /// None if the engine interprets.
    pub(crate) native: Option<NativeModule>,
}

/// Makes a module of a file's content, told apart by its first bytes and the ending of the file's name.
pub(crate) fn from_bytes(
    engine: &Engine,
    bytes: &[u8],
    extension: Option<&str>,
) -> Result<Parts, Error> {
    let mut timings = Timings::default();
    let is_parallel = engine.config().parallel_compilation;
    let options = LoadOptions { extension, is_parallel, ..LoadOptions::default() };
    let n_bytes = bytes.len();
    let module = timings.0.stage_of(Stage::Load, "bytes", n_bytes, || load::load(bytes, options));
    from_bytecode(engine, module?, timings)
}

pub(crate) fn from_text(engine: &Engine, source: &str) -> Result<Parts, Error> {
    let mut timings = Timings::default();
    let module = timings.0.stage_of(Stage::Load, "bytes", source.len(), || text::parse(source));
    from_bytecode(engine, module?, timings)
}

pub(crate) fn from_bytecode(
    engine: &Engine,
    module: slotvm_bytecode::Module,
    mut timings: Timings,
) -> Result<Parts, Error> {
    let verify = match engine.config().parallel_compilation {
        true => slotvm_bytecode::verify_in_parallel,
        false => slotvm_bytecode::verify,
    };
    let n_funcs = module.funcs.len();
    let verified = timings.0.stage_of(Stage::Verify, "functions", n_funcs, || verify(module));
    from_verified(engine, Arc::new(verified?), timings)
}

pub(crate) fn from_verified(
    engine: &Engine,
    verified: Arc<VerifiedModule>,
    mut timings: Timings,
) -> Result<Parts, Error> {
    let compile = |native| NativeModule::compile(native, &verified, &mut timings);
    let native = engine.native().map(compile).transpose()?;
    Ok(Parts { verified, timings, native })
}
