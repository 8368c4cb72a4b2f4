//! From bytes to a module that runs: the stages in their order, each with its time.
//!
//! 1. `load`: `.bc`, `.vasm` or WebAssembly to a module;
//! 2. `verify`: the only way to a [`VerifiedModule`];
//! 3. `slots`, `ssa`, `clif`, `cranelift`: each function by `compile`;
//! 4. `place`: machine code to executable memory, `code`.
//!
//! An engine that interprets stops after `verify`.
//!
//! Each stage is a span of `tracing`, named as the crate's documentation says.

use std::sync::Arc;

use slotvm_bytecode::{VerifiedModule, text};
use slotvm_runtime::Error;
use tracing::debug_span;

use crate::api::engine::Engine;
use crate::compile::timings::{Timings, timed};
use crate::native::module::NativeModule;

/// What a module is made of.
pub(crate) struct Parts {
    pub(crate) verified: Arc<VerifiedModule>,
    pub(crate) timings: Timings,
    /// None if the engine interprets.
    pub(crate) native: Option<NativeModule>,
}

pub(crate) fn from_bytes(engine: &Engine, bytes: &[u8]) -> Result<Parts, Error> {
    #[cfg(feature = "wasm")]
    if bytes.starts_with(slotvm_bytecode::wasm::MAGIC) {
        let mut timings = Timings::default();
        let span = debug_span!("import", bytes = bytes.len());
        let import = match engine.config().parallel_compilation {
            true => slotvm_bytecode::wasm::import_in_parallel,
            false => slotvm_bytecode::wasm::import,
        };
        let module = timed(span, &mut timings.load, || import(bytes))?;
        return from_bytecode(engine, module, timings);
    }
    // Text starts neither with the magic number nor with any other byte 0.
    match std::str::from_utf8(bytes) {
        Ok(source) if !source.is_empty() && !source.starts_with('\0') => from_text(engine, source),
        _ => {
            let mut timings = Timings::default();
            let span = debug_span!("decode", bytes = bytes.len());
            let module = timed(span, &mut timings.load, || slotvm_bytecode::decode(bytes))?;
            from_bytecode(engine, module, timings)
        }
    }
}

pub(crate) fn from_text(engine: &Engine, source: &str) -> Result<Parts, Error> {
    let mut timings = Timings::default();
    let span = debug_span!("parse", bytes = source.len());
    let module = timed(span, &mut timings.load, || text::parse(source))?;
    from_bytecode(engine, module, timings)
}

pub(crate) fn from_bytecode(
    engine: &Engine,
    module: slotvm_bytecode::Module,
    mut timings: Timings,
) -> Result<Parts, Error> {
    let span = debug_span!("verify", functions = module.funcs.len());
    let verify = match engine.config().parallel_compilation {
        true => slotvm_bytecode::verify_in_parallel,
        false => slotvm_bytecode::verify,
    };
    let verified = timed(span, &mut timings.verify, || verify(module))?;
    from_verified(engine, Arc::new(verified), timings)
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
