//! The attempts to compile a function, in their order. What the first one that succeeds makes is its code.
//!
//! 1. All loops that a form is for are entered in it; where operands differ between them ([`CompileFailure::DifferentOperands`]),
//!    the first one [alone](CompiledFunction::is_alone).
//! 2. The attempts of [`ATTEMPTS`], each with fewer passes or less effort than the one before. The first is made whose
//!    estimate is within the function's share of the budget. If none is, the function is refused.
//! 3. Where the frame of the code is larger than code that checks the stack can have, code that overflows it
//!    ([`Compiler::generate_checked`](super::function::Compiler)).

use std::cell::OnceCell;
use std::time::Instant;

use slotvm_bytecode::{ValType, VerifiedModule};
use slotvm_ssa::construction::promote::PromotionReport;
use slotvm_ssa::ir::Function;
use slotvm_ssa::pipeline::{self, Growth, Stage, Times};
use tracing::trace_span;

use crate::compile::budget::{Candidate, Effort, Estimates, HiddenValues, Share, Work};
use crate::compile::error::CompileError;
use crate::compile::failure::CompileFailure;
use crate::compile::function::form::{Form, Origin};
use crate::compile::function::{CompileOptions, CompiledFunction, Compiler, Report};
use crate::compile::subject::Subject;
use crate::lower::exits::CodeExits;
use crate::lower::order::find_loops;

/// An attempt to compile a function.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    /// Passes that may make the function larger than this run not.
    pub(super) growth: Growth,
    pub(super) effort: Effort,
}

/// All of them. A share is that of the bytecode alone, so what passes have made too large is tried without them before it
/// gets less effort; what multiplies the function has most often done that.
pub(super) const ATTEMPTS: [Attempt; 6] = [
    Attempt { growth: Growth::Manifold, effort: Effort::AsAsked },
    Attempt { growth: Growth::Bounded, effort: Effort::AsAsked },
    Attempt { growth: Growth::None, effort: Effort::AsAsked },
    Attempt { growth: Growth::None, effort: Effort::Unoptimised },
    Attempt { growth: Growth::None, effort: Effort::SlotsInMemory },
    Attempt { growth: Growth::None, effort: Effort::OnePass },
];

/// A form of a function, and what is known of its work.
struct Tried {
    form: Form,
    estimates: Estimates,
    effort: Effort,
}

impl Compiler {
    /// Compiles a function, or what follows in it at the start of one of some loops.
    pub(super) fn attempt(
        &mut self,
        module: &VerifiedModule,
        together: Origin<'_>,
        share: Share,
    ) -> Result<CompiledFunction, CompileError> {
        match (self.attempt_from(module, together, share), together) {
            (Err(error), Origin::Bytecode { func, loops, exits })
                if error.failure == CompileFailure::DifferentOperands && loops.len() > 1 =>
            {
                let subject = Subject::of(module, func, loops);
                self.options.containment.failed(subject, &module.func_name(func), &error);
                let alone = Origin::Bytecode { func, loops: &loops[..1], exits };
                let compiled = self.attempt_from(module, alone, share)?;
                Ok(CompiledFunction { is_alone: true, ..compiled })
            }
            (result, _) => result,
        }
    }

    /// Makes the attempts on what a function is made from.
    pub(super) fn attempt_from(
        &mut self,
        module: &VerifiedModule,
        origin: Origin<'_>,
        share: Share,
    ) -> Result<CompiledFunction, CompileError> {
        let mut times = Times::default();
        let (func, growth_max) = (origin.func(), origin.growth_max());
        let passes = self.options.passes_of(func);
        let error = |refusal| CompileError::new(func, origin.name(module), refusal);
        let mut last: Option<Tried> = None;
        for Attempt { growth, effort } in ATTEMPTS {
            if growth > growth_max {
                continue;
            }
            let mut tried = match last.take() {
                // Nothing has made it larger than it may be.
                Some(tried) if tried.form.growth <= growth => {
                    if tried.effort == effort {
                        last = Some(tried);
                        continue;
                    }
                    Tried { effort, ..tried }
                }
                _ => {
                    let passes = passes.without(|row| row.growth > growth);
                    let form = self.form(module, origin, passes, share, &mut times);
                    let form = form.map_err(error)?;
                    let estimates = Estimates::new(&self.options.candidate(module, share, &form));
                    Tried { form, estimates, effort }
                }
            };
            let slot_form =
                SlotForm::new(|| self.options.slot_form(module, origin, tried.form.passes));
            let start = Instant::now();
            let candidate = self.options.candidate(module, share, &tried.form);
            let estimate = || tried.estimates.fits(&candidate, effort, &|| slot_form.get());
            let work = trace_span!("budget").in_scope(estimate);
            *times.of_row(pipeline::stage(Stage::Clif).0) += start.elapsed();
            if let Some(work) = work {
                let needs_slots = candidate.is_promoted() && effort >= Effort::SlotsInMemory;
                let slots = needs_slots.then(|| slot_form.into_inner());
                return self.compile_tried(module, origin, tried, slots, work, times);
            }
            last = Some(tried);
        }
        let refusal = last.expect("there are attempts").estimates.refusal();
        Err(error(CompileFailure::Budget.because(refusal)))
    }

    /// Makes code of a form, or of a function's slot form instead.
    fn compile_tried(
        &mut self,
        module: &VerifiedModule,
        origin: Origin<'_>,
        Tried { form, .. }: Tried,
        slots: Option<Function>,
        work: Work,
        times: Times,
    ) -> Result<CompiledFunction, CompileError> {
        let Form { function, passes, promotion, inlined, loops, .. } = form;
        let report = Report { passes, promotion, inlined, work, times };
        let mut options = self.lower_options(&work).map_err(|isa| {
            let refusal = CompileFailure::CodeGenerator.because(isa);
            CompileError::new(function.func, function.name.as_str(), refusal)
        })?;
        let lowered = slots.as_ref().unwrap_or(&function);
        options.exits = CodeExits::of(lowered, origin.exits().code);
        let compiled = match &slots {
            // Passes may have changed the blocks.
            Some(slots) => self.compile_form(module, slots, &find_loops(slots), &options, report),
            None => self.compile_form(module, &function, &loops, &options, report),
        };
        self.passes.build.reuse(function);
        compiled
    }
}

impl CompileOptions {
    /// A form whose work is to be estimated.
    fn candidate<'a>(
        &self,
        module: &VerifiedModule,
        share: Share,
        form: &'a Form,
    ) -> Candidate<'a> {
        let promotion = form.promotion.as_ref();
        Candidate {
            slots: self.lower.slots,
            share,
            n_slots: n_reaching(&form.function, promotion),
            is_too_large: promotion.is_some_and(|report| report.too_large.is_some()),
            function: &form.function,
            loops: &form.loops,
            hidden: HiddenValues {
                n_imported_funcs: module.n_imported_funcs(),
                loads_entries: self.lower.loads_entries,
                checks: self.lower.trapping == crate::lower::Trapping::Calls,
                canonical_nans: self.lower.isa.flags().enable_nan_canonicalization(),
            },
        }
    }
}

/// The slot form of a function, made at most once, where somebody needs it.
struct SlotForm<F> {
    made: OnceCell<Function>,
    make: F,
}

impl<F: Fn() -> Function> SlotForm<F> {
    fn new(make: F) -> SlotForm<F> {
        SlotForm { made: OnceCell::new(), make }
    }

    fn get(&self) -> &Function {
        self.made.get_or_init(&self.make)
    }

    fn into_inner(self) -> Function {
        self.made.into_inner().unwrap_or_else(self.make)
    }
}

/// The slots whose values may reach other blocks, at most.
fn n_reaching(function: &Function, promotion: Option<&PromotionReport>) -> u64 {
    let n_slots = match promotion {
        Some(PromotionReport { too_large: None, counts, .. }) => {
            // Those that are never written have one value for each type.
            counts.n_placed + counts.n_one_writer + counts.n_unwritten.min(ValType::ALL.len())
        }
        _ => function.slots.len(),
    };
    n_slots as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_attempt_takes_less_than_the_one_before() {
        let effort = |attempt: &Attempt| (std::cmp::Reverse(attempt.growth), attempt.effort);
        assert!(ATTEMPTS.is_sorted_by_key(effort));
        assert!(
            Effort::ALL
                .iter()
                .all(|&effort| { ATTEMPTS.contains(&Attempt { growth: Growth::None, effort }) })
        );
    }
}
