//! The interpreter.
pub mod trace;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use slotvm_bytecode::VerifiedModule;

use crate::error::Error;
use crate::store::{FuncHandle, Store};

#[derive(Default)]
pub(crate) struct Stack {}

pub(crate) struct Mark {}

impl Stack {
    pub(crate) fn mark(&self) -> Mark {
        Mark {}
    }

    pub(crate) fn reset(&mut self, _mark: &Mark) {}
}

/// A module as the interpreter runs it.
pub(crate) struct ModuleCode {
    module: Arc<VerifiedModule>,
    exports: OnceLock<HashMap<String, usize>>,
}

impl ModuleCode {
    pub(crate) fn new(module: Arc<VerifiedModule>) -> ModuleCode {
        ModuleCode { module, exports: OnceLock::new() }
    }

    pub(crate) fn export(&self, name: &str) -> Option<usize> {
        let exports = self.exports.get_or_init(|| {
            let exports = self.module.module().exports.iter();
            exports.enumerate().map(|(i, export)| (export.name.clone(), i)).collect()
        });
        exports.get(name).copied()
    }
}

/// Runs a guest function.
pub fn execute(_store: &mut Store, _func: FuncHandle, _cells: &mut [u64]) -> Result<(), Error> {
    Err(Error::Usage("not yet".to_owned()))
}
