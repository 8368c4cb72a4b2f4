//! A function from bytecode to the form that is lowered: the rows of the table up to the last pass.
//!
//! Without promotion, that is the slot form after the passes on slot form.

use slotvm_bytecode::VerifiedModule;
use slotvm_ssa::construction::build::{BuildOptions, BuildScratch, build, build_loop, build_ssa};
use slotvm_ssa::construction::promote::{PromotionReport, promote_with};
use slotvm_ssa::ir::Function;
use slotvm_ssa::passes::devirtualise::devirtualise;
use slotvm_ssa::passes::inline::inline;
use slotvm_ssa::passes::pressure::pressure;
use slotvm_ssa::passes::rotate::rotate;
use slotvm_ssa::pipeline::{self, Checks, PassSet, Stage, Times, User, run_passes};

use super::{CompileOptions, Compiler};
use crate::compile::budget::Share;
use crate::compile::failure::{CompileFailure, Refusal};

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
    /// Whether a pass has made it larger than its bytecode.
    pub(super) has_grown: bool,
    /// Whether indirect calls of it have become direct ones.
    pub(super) is_devirtualised: bool,
    /// The functions whose bodies it has as well.
    pub(super) inlined: Vec<u32>,
}

impl Form {
    fn of(function: Function, passes: PassSet) -> Form {
        Form {
            function,
            passes,
            promotion: None,
            slot_form: None,
            has_grown: false,
            is_devirtualised: false,
            inlined: Vec::new(),
        }
    }
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
        let mut checks = Checks::new(self.options.verify);
        let is_promoted = self.options.lower.slots.is_promoted();
        let on_the_fly = self.options.on_the_fly.filter(|_| is_promoted && starts.is_empty());
        if let Some(options) = on_the_fly {
            let scratch = &mut self.build;
            let built = times.stage(Stage::Ssa, || build_ssa(module, func, &options, scratch));
            if let Some((function, _)) = built {
                check(&mut checks, Stage::Ssa, &function, module)?;
                return self.passed(module, Form::of(function, passes), times);
            }
        }
        let (options, scratch) = (&self.options.build, &mut self.build);
        let mut function = times
            .stage(Stage::Slots, || build_form(module, func, starts, options, scratch))
            .ok_or_else(no_entry)?;
        if self.options.keep_clif {
            function.take_names(module);
        }
        check(&mut checks, Stage::Slots, &function, module)?;
        let runs = |stage| passes.runs(pipeline::stage(stage).0);
        let mut is_devirtualised = false;
        if runs(Stage::Devirtualise) {
            let report = times.stage(Stage::Devirtualise, || devirtualise(&mut function, module));
            is_devirtualised = report.n_calls > 0;
            check(&mut checks, Stage::Devirtualise, &function, module)?;
        }
        let mut inlined = Vec::new();
        if runs(Stage::Inline) {
            let inline = || inline(&mut function, module, options, scratch);
            inlined = times.stage(Stage::Inline, inline).functions;
            check(&mut checks, Stage::Inline, &function, module)?;
        }
        let mut has_grown = is_devirtualised || !inlined.is_empty();
        if runs(Stage::Rotate) {
            let report = times.stage(Stage::Rotate, || rotate(&mut function));
            has_grown |= report.n_loops > 0;
            check(&mut checks, Stage::Rotate, &function, module)?;
        }
        let form = self.promoted(module, function, passes, share, times)?;
        Ok(Form { has_grown: has_grown || form.has_grown, is_devirtualised, inlined, ..form })
    }

    /// A function in the form that the slot mode compiles, from its slot form.
    pub(super) fn promoted(
        &mut self,
        module: &VerifiedModule,
        mut function: Function,
        passes: PassSet,
        share: Share,
        times: &mut Times,
    ) -> Result<Form, Refusal> {
        if !self.options.lower.slots.is_promoted() {
            return Ok(Form::of(function, passes));
        }
        let mut checks = Checks::new(self.options.verify);
        if passes.runs(pipeline::stage(Stage::Pressure).0) {
            times.stage(Stage::Pressure, || pressure(&mut function));
            check(&mut checks, Stage::Pressure, &function, module)?;
        }
        checks.before(&function);
        let mut slot_form = std::mem::take(&mut self.slot_form);
        let mut promotion = self.options.promotion;
        promotion.phi_operands_max = promotion.phi_operands_max.min(share.phi_operands_max());
        let scratch = &mut self.promote;
        let report = times.stage(Stage::Ssa, || {
            slot_form.clone_from(&function);
            promote_with(&mut function, promotion, scratch)
        });
        if report.too_large.is_some() {
            // The function is in slot form still.
            let slot_form = Some(slot_form);
            return Ok(Form { promotion: Some(report), slot_form, ..Form::of(function, passes) });
        }
        check(&mut checks, Stage::Ssa, &function, module)?;
        let slot_form = Some(slot_form);
        let form = Form { promotion: Some(report), slot_form, ..Form::of(function, passes) };
        self.passed(module, form, times)
    }

    /// A function after all passes.
    fn passed(
        &self,
        module: &VerifiedModule,
        mut form: Form,
        times: &mut Times,
    ) -> Result<Form, Refusal> {
        let mut checks = Checks::new(self.options.verify);
        let (f, passes) = (&mut form.function, form.passes);
        let n_insts = f.n_insts_in_blocks();
        let passed = run_passes(User::Jit, passes, f, module, &mut checks, times);
        passed.map_err(|error| CompileFailure::InvalidForm.because(error))?;
        form.has_grown |= passes.contains("version") && form.function.n_insts_in_blocks() > n_insts;
        Ok(form)
    }
}

impl CompileOptions {
    /// The passes of a function: those that were asked for, and have something to do on this machine.
    pub(crate) fn passes_of(&self, func: u32) -> PassSet {
        let passes = self.passes.of(func);
        match self.lower.relies_on_checks() {
            true => passes,
            false => without(passes, &["version", "bounds"]),
        }
    }
}

/// The passes without those that make a function larger than its bytecode.
pub(super) fn without_growth(passes: PassSet) -> PassSet {
    without(passes, &["devirtualise", "inline", "rotate", "version"])
}

/// The passes without some optional ones.
pub(super) fn without(mut passes: PassSet, names: &[&str]) -> PassSet {
    for name in names {
        passes.switch(name, false).expect("it is optional");
    }
    passes
}

/// The slot form of a function, from its start, or from one of some blocks on if that can be.
pub(super) fn build_form(
    module: &VerifiedModule,
    func: u32,
    starts: &[u32],
    options: &BuildOptions,
    scratch: &mut BuildScratch,
) -> Option<Function> {
    match starts {
        [] => Some(build(module, func, options, scratch)),
        _ => build_loop(module, func, starts, options, scratch),
    }
}

/// Frames of the interpreter that are in one of the loops cannot enter the form in the same way.
fn no_entry() -> Refusal {
    CompileFailure::DifferentOperands.because("there is no entry for all of its loops")
}

/// Verifies what a stage has left, if checks are on.
fn check(
    checks: &mut Checks,
    stage: Stage,
    function: &Function,
    module: &VerifiedModule,
) -> Result<(), Refusal> {
    let (_, row) = pipeline::stage(stage);
    let checked = checks.after(row, function, module);
    checked.map_err(|error| CompileFailure::InvalidForm.because(error))
}
