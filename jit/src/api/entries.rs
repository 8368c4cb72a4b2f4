//! Entry trampolines of a store's modules, as native code asks for them.

use std::sync::Arc;

use slotvm_runtime::{Error, InstanceId};

use crate::api::store::Embedding;
use crate::native::executor::StoreData;
use crate::native::trampolines::Trampoline;

impl StoreData for Embedding {
    fn entry(
        &self,
        instance: InstanceId,
        func: u32,
        is_loop: bool,
    ) -> Result<Arc<Trampoline>, Error> {
        let module = &self.modules[instance.number() as usize];
        let native = module.native().expect("the engine makes native code");
        if is_loop { native.loop_entry(func) } else { native.entry(func) }
    }
}
