//! The function in slot form, and the rows of the table after that, with the exits that a profile gives it.

use slotvm_bytecode::VerifiedModule;
use slotvm_ssa::construction::build::{BuildOptions, BuildScratch, FuncExits, build_with_exits};
use slotvm_ssa::ir::Function;
use slotvm_ssa::passes::inline::ExitPlan;
use slotvm_ssa::pipeline::{
    self, Driver, PassContext, PassScratch, PassSet, Row, StageError, Start, Times, User,
};

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
        let Subject { module, func, .. } = self;
        let scratch = &mut BuildScratch::default();
        let mut slots = build_with_exits(module, func, self.exits(), &self.options(), scratch);
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
        let (mut times, mut scratch) = (Times::default(), PassScratch::default());
        let mut context = PassContext {
            exits: self.exits(),
            body_exits: self.plan.and_then(ExitPlan::of_bodies),
            build: self.options(),
            ..PassContext::new(self.module, self.func, &mut scratch)
        };
        let mut function = slots.clone();
        let driver = Driver::new(User::Jit, passes, true, &mut times).up_to(last);
        driver.run(&mut function, Start::Slots, &mut context, on_row)?;
        Ok(function)
    }

    fn exits(&self) -> &FuncExits {
        self.plan.map_or(FuncExits::NONE, |plan| &plan.of_func)
    }

    fn options(&self) -> BuildOptions {
        let waits = self.plan.is_some_and(|plan| plan.of_bodies().is_some());
        BuildOptions { waits, ..BuildOptions::default() }
    }
}
