//! The function in slot form, and the rows of the table after that, with the exits that a profile gives it.

use slotvm_bytecode::VerifiedModule;
use slotvm_ssa::construction::build::build_with_exits;
use slotvm_ssa::ir::Function;
use slotvm_ssa::passes::inline::ExitPlan;
use slotvm_ssa::pipeline::{self, PassContext, PassScratch, PassSet, Row, StageError, User};

/// A function of a module, and its exits.
#[derive(Copy, Clone)]
pub(super) struct Subject<'a> {
    pub(super) module: &'a VerifiedModule,
    pub(super) func: u32,
    pub(super) plan: Option<&'a ExitPlan>,
}

impl Subject<'_> {
    /// The slot form, with the names of locals.
    pub(super) fn slot_form(self) -> Function {
        let Subject { module, func, plan } = self;
        let mut scratch = PassScratch::default();
        let context = PassContext::new(module, func, &mut scratch).with_exits(plan);
        let scratch = &mut context.scratch.build;
        let mut slots = build_with_exits(module, func, context.exits, &context.build, scratch);
        slots.take_names(module);
        slots
    }

    /// The function after all rows of the JIT that leave our IR, from its slot form. `on_row` sees it after each.
    ///
    /// # Errors
    /// Fails if a row leaves an invalid function, which is a fault of this project.
    pub(super) fn promoted(
        self,
        slots: &Function,
        passes: PassSet,
        on_row: impl FnMut(&'static Row, &Function),
    ) -> Result<Function, StageError> {
        let mut rows = pipeline::rows_of(User::Jit).map(|(_, row)| row);
        let last = rows.rfind(|row| row.is_of_ir()).expect("rows leave functions");
        pipeline::each_row(last, passes, slots.clone(), self.module, self.plan, on_row)
    }
}
