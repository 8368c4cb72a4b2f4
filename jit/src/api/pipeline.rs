//! Loading a module, from bytes to runnable code: the stages of [`slotvm_ssa::pipeline`] that concern whole modules.
//!
//! Each function goes through the others by `compile`. An engine that interprets stops after `verify`.

use std::borrow::Cow;
use std::sync::Arc;

use slotvm_bytecode::load::{self, LoadOptions, Loaded};
use slotvm_bytecode::{VerifiedModule, encode, text};
use slotvm_runtime::Error;
use slotvm_ssa::pipeline::Stage;

use crate::api::engine::Engine;
use crate::compile::timings::Timings;
use crate::config::Tier;
use crate::native::module::NativeModule;
use crate::native::ownership::keeping::{Keeping, MAGIC};

/// The parts of a module.
pub(crate) struct Parts {
    pub(crate) verified: Arc<VerifiedModule>,
    pub(crate) timings: Timings,
    /// None if the engine interprets.
    pub(crate) native: Option<NativeModule>,
}

/// Makes a module of a file's content, told apart by its first bytes and the ending of the file's name. Its code may be
/// in the engine's cache.
pub(crate) fn from_bytes(
    engine: &Engine,
    bytes: &[u8],
    extension: Option<&str>,
) -> Result<Parts, Error> {
    refuse_precompiled(bytes)?;
    let mut timings = Timings::default();
    let native = engine.native().filter(|_| engine.config().cache.is_some());
    let keeping =
        native.and_then(|native| timings.0.stage(Stage::Load, || native.keeping(bytes, extension)));
    load(engine, bytes, extension, keeping, timings)
}

/// The same, of which it is known how its code is kept.
pub(crate) fn load(
    engine: &Engine,
    bytes: &[u8],
    extension: Option<&str>,
    keeping: Option<Keeping>,
    mut timings: Timings,
) -> Result<Parts, Error> {
    let is_parallel = engine.config().parallel_compilation;
    // Native code is made of all functions, except where they are interpreted at first, or where it was kept.
    let is_lazy = engine.tier() != Tier::Jit || keeping.is_some();
    let is_validated = keeping.as_ref().is_some_and(Keeping::is_validated);
    let options =
        LoadOptions { extension, is_parallel, is_lazy, is_validated, ..LoadOptions::default() };
    let n_bytes = bytes.len();
    let loaded = timings.0.stage_of(Stage::Load, "bytes", n_bytes, || load::load(bytes, options));
    from_loaded(engine, loaded?, keeping, timings)
}

/// Precompiled modules are told apart from others, so that nobody takes them for damaged ones.
fn refuse_precompiled(bytes: &[u8]) -> Result<(), Error> {
    match bytes.starts_with(MAGIC) {
        true => Err(Error::precompiled("a precompiled module, which has to be deserialized")),
        false => Ok(()),
    }
}

/// A module whose code is to be kept: its bytes in a binary form, and its functions if they are not left to be translated.
pub(crate) fn to_precompile<'b>(
    engine: &Engine,
    bytes: &'b [u8],
) -> Result<(Cow<'b, [u8]>, VerifiedModule), Error> {
    refuse_precompiled(bytes)?;
    let is_parallel = engine.config().parallel_compilation;
    let options = LoadOptions { is_parallel, is_lazy: true, ..LoadOptions::default() };
    let verified = load::load(bytes, options)?.verify(is_parallel)?;
    let is_text = bytes.first().is_none_or(|&first| first != 0);
    let bytes = if is_text { encode(verified.module()).into() } else { bytes.into() };
    Ok((bytes, verified))
}

/// The native code of a module, which is to be kept.
pub(crate) fn kept(
    engine: &Engine,
    verified: Arc<VerifiedModule>,
    keeping: Keeping,
) -> Result<NativeModule, Error> {
    let native = engine.native().expect("the engine makes native code");
    NativeModule::compile(native, &verified, Some(keeping), &mut Timings::default())
}

pub(crate) fn from_text(engine: &Engine, source: &str) -> Result<Parts, Error> {
    let mut timings = Timings::default();
    let module = timings.0.stage_of(Stage::Load, "bytes", source.len(), || text::parse(source));
    from_loaded(engine, module?.into(), None, timings)
}

pub(crate) fn from_loaded(
    engine: &Engine,
    loaded: Loaded,
    keeping: Option<Keeping>,
    mut timings: Timings,
) -> Result<Parts, Error> {
    let is_parallel = engine.config().parallel_compilation;
    let n_funcs = loaded.n_defined_funcs();
    let verify = || loaded.verify(is_parallel);
    let verified = timings.0.stage_of(Stage::Verify, "functions", n_funcs, verify);
    from_verified(engine, Arc::new(verified?), keeping, timings)
}

pub(crate) fn from_verified(
    engine: &Engine,
    mut verified: Arc<VerifiedModule>,
    mut keeping: Option<Keeping>,
    mut timings: Timings,
) -> Result<Parts, Error> {
    if let Some(keeping) = keeping.as_mut().filter(|keeping| keeping.is_new()) {
        keeping.set_lazy(verified.is_lazy());
        if engine.tier() == Tier::Jit {
            verified = Arc::unwrap_or_clone(verified).into_completed();
        }
    }
    // Functions of lazy modules have neither names nor source places.
    if engine.config().debug_info {
        verified = Arc::unwrap_or_clone(verified).into_completed();
    }
    let compile = |native| NativeModule::compile(native, &verified, keeping, &mut timings);
    let native = engine.native().map(compile).transpose()?;
    Ok(Parts { verified, timings, native })
}
