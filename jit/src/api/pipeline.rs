//! Loading a module, from bytes to runnable code: the stages of [`slotvm_ssa::pipeline`] that concern whole modules.
//!
//! Each function goes through the others by `compile`. An engine that interprets stops after `verify`.

use std::sync::Arc;

use slotvm_bytecode::load::{self, LoadOptions, Loaded};
use slotvm_bytecode::{VerifiedModule, text};
use slotvm_runtime::Error;
use slotvm_ssa::pipeline::Stage;

use crate::api::engine::Engine;
use crate::compile::timings::Timings;
use crate::config::Tier;
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
    // Native code is made of all functions, except where they are interpreted at first.
    let is_lazy = engine.tier() != Tier::Jit;
    let options = LoadOptions { extension, is_parallel, is_lazy, ..LoadOptions::default() };
    let n_bytes = bytes.len();
    let loaded = timings.0.stage_of(Stage::Load, "bytes", n_bytes, || load::load(bytes, options));
    from_loaded(engine, loaded?, timings)
}

pub(crate) fn from_text(engine: &Engine, source: &str) -> Result<Parts, Error> {
    let mut timings = Timings::default();
    let module = timings.0.stage_of(Stage::Load, "bytes", source.len(), || text::parse(source));
    from_loaded(engine, module?.into(), timings)
}

pub(crate) fn from_loaded(
    engine: &Engine,
    loaded: Loaded,
    mut timings: Timings,
) -> Result<Parts, Error> {
    let is_parallel = engine.config().parallel_compilation;
    let n_funcs = loaded.n_defined_funcs();
    let verify = || loaded.verify(is_parallel);
    let verified = timings.0.stage_of(Stage::Verify, "functions", n_funcs, verify);
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
