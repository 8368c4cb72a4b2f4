//! What all native code of a module shares, that which checks each access included.

use std::sync::Arc;

use slotvm_bytecode::VerifiedModule;

use crate::compile::budget::ModuleBudget;
use crate::compile::contain::Containment;
use crate::native::ownership::engine::NativeEngine;
use crate::native::ownership::kept::Kept;
use crate::native::ownership::module_trampolines::ModuleTrampolines;
use crate::precompiled::file::Image;

/// See the module documentation.
#[derive(Clone)]
pub(crate) struct Resources {
    /// The budget that all of it draws on.
    pub(crate) budget: Arc<ModuleBudget>,
    pub(crate) trampolines: Arc<ModuleTrampolines>,
    /// What becomes of compilations that fail.
    pub(crate) containment: Containment,
    /// Code that need not be made.
    pub(crate) kept: Option<Arc<Kept>>,
    /// Whether code may go to a file.
    pub(crate) may_be_kept: bool,
}

impl Resources {
    /// Those of a new module, whose code was kept in a file or not, and may go to one or not.
    pub(crate) fn new(
        native: &NativeEngine,
        module: &VerifiedModule,
        kept: Option<Image>,
        may_be_kept: bool,
    ) -> Resources {
        let budget = Arc::new(ModuleBudget::new(module));
        let containment = native.module_containment();
        let kept = kept.map(|image| Arc::new(Kept::new(image, containment.counts.clone())));
        let trampolines =
            ModuleTrampolines::new(module, budget.clone(), containment.clone(), kept.clone());
        Resources { budget, trampolines: Arc::new(trampolines), containment, kept, may_be_kept }
    }
}
