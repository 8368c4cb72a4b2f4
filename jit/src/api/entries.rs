//! Entry trampolines of a store's modules, as native code asks for them.

use std::sync::Arc;

use slotvm_runtime::{Error, InstanceId};

use crate::api::store::Embedding;
use crate::native::executor::StoreData;
use crate::native::trampolines::Trampoline;

impl StoreData for Embedding {
    fn entry(&self, instance: InstanceId, func: u32) -> Result<Arc<Trampoline>, Error> {
        let module = &self.modules[instance.number() as usize];
        module.native().expect("the engine makes native code").entry(func)
    }
}
