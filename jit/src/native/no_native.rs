//! Placeholders of `ownership` and `module` in builds without the feature `jit`: the same names, of
//! which no value can exist. So everything else is written once, and the public API is the same.

use std::fs::File;
use std::sync::Arc;

use slotvm_bytecode::VerifiedModule;
use slotvm_runtime::{self as rt, Error, InstanceId, InterpreterCode, StoreConfig};
use slotvm_ssa::passes::inline::ExitPlan;
use slotvm_ssa::pipeline::PassSet;

use crate::compile::function_info::FunctionInfo;
use crate::compile::listing::FunctionCode;
use crate::compile::stats::CompileStats;
use crate::compile::timings::Timings;
use crate::config::Config;
use crate::config::counts::FunctionCounts;
use crate::config::executions::Executions;

/// The version of Cranelift that makes native code; empty in a build without the feature `jit`, which makes
/// none.
pub const CRANELIFT_VERSION: &str = "";

/// Engine for native code, which this build does not have.
pub(crate) enum NativeEngine {}

impl NativeEngine {
    pub(crate) fn new(_: &Config) -> Result<NativeEngine, Error> {
        Err(lacks_native())
    }

    pub(crate) fn new_keeping(&self, _: &[u8], _: bool) -> Keeping {
        match *self {}
    }

    pub(crate) fn open_bytes(&self, _: &[u8]) -> Result<(Keeping, Vec<u8>), Error> {
        match *self {}
    }

    pub(crate) fn open_file(&self, _: File) -> Result<(Keeping, Vec<u8>), Error> {
        match *self {}
    }

    pub(crate) fn keeping(&self, _: &[u8], _: Option<&str>) -> Option<Keeping> {
        match *self {}
    }

    pub(crate) fn machine_features(&self) -> Vec<(&'static str, bool)> {
        match *self {}
    }

    pub(crate) fn compile_stats(&self) -> CompileStats {
        match *self {}
    }

    pub(crate) fn store<D>(self: &Arc<NativeEngine>, _: StoreConfig, _: D) -> rt::Store {
        match **self {}
    }
}

/// The first bytes of files with native code.
pub(crate) const MAGIC: &[u8; 8] = b"\0slotvmc";

/// Places of native code outside of the process. Nobody makes one.
pub(crate) struct Keeping;

impl Keeping {
    pub(crate) fn about(&self) -> About {
        About
    }

    pub(crate) fn is_new(&self) -> bool {
        true
    }

    pub(crate) fn set_lazy(&mut self, _: bool) {}

    pub(crate) fn is_validated(&self) -> bool {
        false
    }
}

/// The module and the engine of kept code. Nobody makes one.
pub(crate) struct About;

fn lacks_native() -> Error {
    Error::compile("this build of slotvm lacks the feature `jit`, which makes native code")
}

/// Module with native code, which this build does not have.
pub(crate) enum NativeModule {}

impl NativeModule {
    pub(crate) fn compile(
        native: &Arc<NativeEngine>,
        _: &Arc<VerifiedModule>,
        _: Option<Keeping>,
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

    pub(crate) fn serialize(&self, _: &About, _: &[u8]) -> Result<Vec<u8>, Error> {
        match *self {}
    }

    pub(crate) fn kept_module(&self) -> Option<(About, Vec<u8>)> {
        match *self {}
    }

    pub(crate) fn exits_taken(&self) -> u64 {
        match *self {}
    }

    pub(crate) fn compile_stats(&self) -> CompileStats {
        match *self {}
    }

    pub(crate) fn code_bytes(&self) -> usize {
        match *self {}
    }

    pub(crate) fn texts(&self, _: u32) -> Result<Option<Texts>, Error> {
        match *self {}
    }

    pub(crate) fn machine_code(&self, _: u32) -> Result<Option<FunctionCode>, Error> {
        match *self {}
    }

    pub(crate) fn exits_after(&self, _: &Executions, _: u32) -> Option<ExitPlan> {
        match *self {}
    }

    pub(crate) fn code_with_exits(
        &self,
        _: u32,
        _: &ExitPlan,
    ) -> Result<Option<(String, FunctionCode)>, Error> {
        match *self {}
    }

    pub(crate) fn passes_of(&self, _: u32) -> PassSet {
        match *self {}
    }

    pub(crate) fn functions(&self) -> Vec<&FunctionInfo> {
        match *self {}
    }

    pub(crate) fn block_counts(&self) -> Vec<FunctionCounts> {
        match *self {}
    }
}

/// Text of a function's code, which there is not.
pub(crate) struct Texts {
    pub(crate) clif: String,
    pub(crate) asm: String,
}

/// What stands for the room of that name.
pub(crate) mod ownership {
    pub(crate) use super::{self as engine, self as keeping};
}
