//! A function from bytecode to the form that is lowered: the rows of the table up to the last pass.
//!
//! Without promotion, that is the slot form after the passes on slot form.

use slotvm_bytecode::VerifiedModule;
use slotvm_ssa::construction::build::build_ssa;
use slotvm_ssa::construction::promote::PromotionReport;
use slotvm_ssa::ir::Function;
use slotvm_ssa::pipeline::{Driver, Growth, PassContext, PassSet, Start, Times, User, When};

use super::{CompileOptions, Compiler};
use crate::compile::budget::Share;
use crate::compile::failure::{CompileFailure, Refusal};
use crate::lower::isa::preserved_registers;

/// A function before it is lowered.
pub(crate) struct Form {
    /// The function in the form that the slot mode compiles.
    pub(crate) function: Function,
    /// The passes that it was to go through.
    pub(super) passes: PassSet,
    /// The report of promotion, if there was any.
    pub(super) promotion: Option<PromotionReport>,
    /// The slot form that it was promoted from.
    pub(super) slot_form: Option<Function>,
    /// The passes that may have made it larger than its bytecode.
    pub(super) grown: PassSet,
    /// The functions whose bodies it has as well.
    pub(super) inlined: Vec<u32>,
}

impl Compiler {
    /// The form of a function that the slot mode compiles, from its start or from one of some blocks on, after these
    /// passes.
    ///
    /// # Errors
    /// Fails if a stage leaves an invalid function, which is a fault of this project.
    pub(crate) fn form(
        &mut self,
        module: &VerifiedModule,
        (func, starts): (u32, &[u32]),
        passes: PassSet,
        share: Share,
        times: &mut Times,
    ) -> Result<Form, Refusal> {
        let is_promoted = self.options.lower.slots.is_promoted();
        let on_the_fly = self.options.on_the_fly.filter(|_| is_promoted && starts.is_empty());
        if let Some(options) = on_the_fly {
            let scratch = &mut self.passes.build;
            let built = times.named("ssa", || build_ssa(module, func, &options, scratch));
            if let Some((function, _)) = built {
                return self.passed(module, function, Start::Ssa, &[], (passes, share), times);
            }
        }
        let mut function = Function::default();
        function.func = func;
        self.passed(module, function, Start::Bytecode, starts, (passes, share), times)
    }

    /// A function in the form that the slot mode compiles, after the passes on what it is at the start.
    pub(super) fn passed(
        &mut self,
        module: &VerifiedModule,
        mut function: Function,
        start: Start,
        starts: &[u32],
        (passes, share): (PassSet, Share),
        times: &mut Times,
    ) -> Result<Form, Refusal> {
        let is_promoted = self.options.lower.slots.is_promoted();
        let mut promotion = self.options.promotion;
        promotion.phi_operands_max = promotion.phi_operands_max.min(share.phi_operands_max());
        let keeps_slots = is_promoted && start != Start::Ssa;
        let slot_form = keeps_slots.then(|| std::mem::take(&mut self.slot_form));
        let mut context = PassContext {
            starts,
            takes_names: self.options.keep_clif,
            build: self.options.build,
            promotion,
            preserved: preserved_registers(&*self.options.lower.isa),
            slot_form,
            ..PassContext::new(module, function.func, &mut self.passes)
        };
        let driver = Driver::new(User::Jit, passes, self.options.verify, times);
        let ran = driver.promoted(is_promoted).run(&mut function, start, &mut context, |_, _| {});
        let ran = ran.map_err(|error| CompileFailure::InvalidForm.because(error))?;
        let PassContext { promoted: promotion, slot_form, inlined, .. } = context;
        if ran.given_up.is_some() && promotion.is_none() {
            // Frames of the interpreter that are in one of the loops cannot enter the form in the same way.
            let reason = "there is no entry for all of its loops";
            return Err(CompileFailure::DifferentOperands.because(reason));
        }
        Ok(Form { function, passes, promotion, slot_form, grown: ran.grown, inlined })
    }
}

impl CompileOptions {
    /// The passes of a function: those that were asked for, and have something to do on this machine.
    pub(crate) fn passes_of(&self, func: u32) -> PassSet {
        let passes = self.passes.of(func);
        match self.lower.relies_on_checks() {
            true => passes,
            false => passes.without(|row| row.when == When::Checked),
        }
    }
}

/// The passes without those that make a function larger than its bytecode.
pub(super) fn without_growth(passes: PassSet) -> PassSet {
    passes.without(|row| row.growth != Growth::None)
}
