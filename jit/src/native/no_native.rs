//! Placeholders of `engine` and `module` in builds without the feature `jit`: the same names, of
//! which no value can exist. So everything else is written once, and the public API is the same.

use std::sync::Arc;

use slotvm_bytecode::VerifiedModule;
use slotvm_runtime::{self as rt, Error, InstanceId, InterpreterCode, StoreConfig};

use crate::compile::function_info::FunctionInfo;
use crate::compile::timings::Timings;
use crate::config::Config;

/// The version of Cranelift that makes native code; empty in a build without the feature `jit`, which makes
/// none.
pub const CRANELIFT_VERSION: &str = "";

/// Engine for native code, which this build does not have.
pub(crate) enum NativeEngine {}

impl NativeEngine {
    pub(crate) fn new(_: &Config) -> Result<NativeEngine, Error> {
        Err(Error::compile("this build of slotvm lacks the feature `jit`, which makes native code"))
    }

    pub(crate) fn store<D>(self: &Arc<NativeEngine>, _: StoreConfig, _: D) -> rt::Store {
        match **self {}
    }
}

/// Module with native code, which this build does not have.
pub(crate) enum NativeModule {}

impl NativeModule {
    pub(crate) fn compile(
        native: &Arc<NativeEngine>,
        _: &Arc<VerifiedModule>,
        _: &mut Timings,
    ) -> Result<NativeModule, Error> {
        match **native {}
    }

    pub(crate) fn instantiate(
        &self,
        _: &mut rt::Store,
        _: &[rt::Extern],
        _: &InterpreterCode,
    ) -> Result<InstanceId, Error> {
        match *self {}
    }

    pub(crate) fn prepare_imports(&self, _: impl Iterator<Item = u32>) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn code_bytes(&self) -> usize {
        match *self {}
    }

    pub(crate) fn texts(&self, _: u32) -> Result<Option<Texts>, Error> {
        match *self {}
    }

    pub(crate) fn functions(&self) -> Vec<&FunctionInfo> {
        match *self {}
    }
}

/// Text of a function's code, which there is not.
pub(crate) struct Texts {
    pub(crate) clif: String,
    pub(crate) asm: String,
}
