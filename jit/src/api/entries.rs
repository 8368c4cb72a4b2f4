//! Entry trampolines of a store's modules, as native code asks for them.

use std::sync::Arc;

use slotvm_bytecode::FuncType;
use slotvm_runtime::{Error, InstanceId};

use crate::api::store::Embedding;
use crate::native::crossing::executor::StoreData;
use crate::native::crossing::trampolines::Trampoline;
use crate::native::module::NativeModule;

impl StoreData for Embedding {
    fn entry(
        &self,
        instance: InstanceId,
        func: u32,
        is_loop: bool,
    ) -> Result<Arc<Trampoline>, Error> {
        let native = self.native(instance);
        if is_loop { native.loop_entry(func) } else { native.entry(func) }
    }

    fn to_host(&self, instance: InstanceId, ty: &FuncType) -> Result<Arc<Trampoline>, Error> {
        self.native(instance).to_host(ty)
    }
}

impl Embedding {
    /// The native code of the module of an instance.
    fn native(&self, instance: InstanceId) -> &NativeModule {
        let module = &self.modules[instance.number() as usize];
        module.native().expect("the engine makes native code")
    }
}
