//! Estimates of the work that a function takes at each effort level.

use std::collections::HashMap;

use slotvm_bytecode::{Effect, Op};
use slotvm_ssa::construction::promote::{Scratch, promote};
use slotvm_ssa::graphs::loops::LoopForest;
use slotvm_ssa::ir::Function;
use slotvm_ssa::ir::entity::Block;
use slotvm_ssa::ir::graph::control_flow;
use slotvm_ssa::ir::irop::{IrOp, Opcode};
use slotvm_ssa::ir::work::{
    Crowding, HiddenValue, copies, crowding, dominator_steps, live_slots, recurring_spans,
};

use super::checks::{n_checks, n_checks_of, n_code_blocks};
use super::counts::PLACES_OF_BLOCK;
use super::estimate::{DOMINATOR_STEP, Generator};
use super::excess::{Excess, rewriting};
use super::hidden::HiddenValues;
use super::shares::Share;
use super::{Cause, DOMINATOR_STEPS_MAX, Effort, WorkCounts};
use crate::config::slot_mode::SlotMode;

/// Words of 64 slots in which liveness is counted.
const PROMOTION_WORDS_MAX: u64 = 1 << 24;
/// The points of time that counting may take for each such word, more than it does.
const LIVE_WORD_NS: u64 = 64;
/// A block with more live values than this has some of them in memory, which ends a scan of phi operands.
const LIVE_IN_REGISTERS_MAX: u32 = 32;

/// The effort level of a function, and the reason for it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Work {
    /// The way.
    pub effort: Effort,
    /// The cause that made the way of the slot mode too costly, if it was.
    pub cause: Option<Cause>,
    /// The counts that decided.
    pub counts: WorkCounts,
}

impl Work {
    /// Points of time that compiling was estimated to take, in a slot mode.
    pub(crate) fn time(&self, slots: SlotMode) -> u64 {
        let optimises = self.effort == Effort::AsAsked && slots != SlotMode::Memory;
        let estimate = self.counts.estimate(match self.effort {
            Effort::OnePass => Generator::OnePass,
            _ => Generator::Splitting { optimises },
        });
        estimate.total().ns
    }
}

/// Error of a function that exceeds its share at every effort level.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it would take more work than a function of its size may (compile work): {}",
    cause.message()
)]
pub(crate) struct TooMuchWork {
    pub(crate) cause: Cause,
}

/// A function whose work is estimated.
pub(crate) struct Candidate<'a> {
    pub(crate) slots: SlotMode,
    pub(crate) share: Share,
    /// The form that the slot mode compiles.
    pub(crate) function: &'a Function,
    pub(crate) loops: &'a LoopForest,
    /// The slots whose values may reach other blocks.
    pub(crate) n_slots: u64,
    /// The hidden values in the code of instructions, and whether checks split blocks.
    pub(crate) hidden: HiddenValues,
    /// Whether the function could not be promoted, and is in slot form in a mode that wants another.
    pub(crate) is_too_large: bool,
}

impl Candidate<'_> {
    /// Whether the function is in SSA form.
    pub(crate) fn is_promoted(&self) -> bool {
        self.slots.is_promoted() && !self.is_too_large
    }

    /// The generator of the code that was asked for.
    fn asked(&self) -> Generator {
        Generator::Splitting { optimises: self.slots != SlotMode::Memory }
    }

    /// Upper bounds of the counts, which are at hand.
    fn cheap(&self) -> WorkCounts {
        let mut counts = WorkCounts::cheap(self.function, self.loops, self.hidden);
        if self.slots != SlotMode::Memory {
            counts.rewriting = rewriting(self.function, self.hides_values());
        }
        match self.slots {
            SlotMode::Ssa | SlotMode::MemoryForwarded => counts.bound_values(self.n_slots),
            SlotMode::Variables => {
                counts.n_phi_operands = self.n_slots.saturating_mul(counts.n_edges);
                counts.bound_values(self.n_slots);
                counts.n_variables = counts.n_live;
            }
            SlotMode::MemoryOpt => counts.bound_values(0),
            SlotMode::Memory => {}
        }
        counts
    }

    /// Counts of values that crowd in blocks, and at the checks that split them.
    fn crowding(&self, func: &Function, defers: bool) -> Crowding {
        let n_checks = |inst| if self.hidden.checks { n_checks(func.opcode(inst)) } else { 0 };
        crowding(func, defers, n_checks, |inst| self.hidden.n_places(func.opcode(inst)))
    }

    /// The blocks of the code over which values live longer that recur.
    fn recurring(&self, func: &Function) -> u64 {
        let hidden = |inst, part: &mut dyn FnMut(HiddenValue)| self.hidden.of(func, inst, part);
        let n_code_blocks = |block| n_code_blocks(func, block, self.hidden.checks);
        recurring_spans(func, self.loops, hidden, n_code_blocks)
    }

    /// The steps of the register allocator's dominators, which are counted by making them.
    fn dominator_steps(&self, counts: &WorkCounts) -> u64 {
        let steps_max = (self.share.time / DOMINATOR_STEP.ns).min(DOMINATOR_STEPS_MAX);
        let n_steps = dominator_steps(&control_flow(self.function), steps_max);
        if n_steps >= steps_max {
            return u64::MAX;
        }
        n_steps * counts.lengthening()
    }

    /// Whether slots hide values from us that the optimiser finds to be the same.
    fn hides_values(&self) -> bool {
        matches!(self.slots, SlotMode::Variables | SlotMode::MemoryForwarded)
    }

    /// The function in SSA form, if slots hide values and it can be promoted.
    fn promoted(&self) -> Option<Function> {
        if !self.hides_values() {
            return None;
        }
        let mut promoted = self.function.clone();
        let report = promote(&mut promoted, &mut Scratch::default());
        report.too_large.is_none().then_some(promoted)
    }

    /// Replaces upper bounds by what the slots that are live say.
    fn count_live(&self, slot_form: &Function, values: &Function, counts: &mut WorkCounts) {
        if matches!(self.slots, SlotMode::Memory | SlotMode::MemoryOpt) {
            return;
        }
        let words_max = (self.share.time / LIVE_WORD_NS).min(PROMOTION_WORDS_MAX) as usize;
        let Some(live) = live_slots(slot_form, words_max) else { return };
        let func = self.function;
        let live = live_of_blocks(func, slot_form, live);
        let n_live = |block: Block| {
            let n_live_in = |block: Block| u64::from(live[block.index()]);
            let is_switch = func.opcode(func.terminator(block)) == Opcode::Op(Op::BrTable);
            let n_targets = if is_switch { func.succ_edges(block).len() } else { 0 };
            let at_targets = func.succ_edges(block).take(n_targets);
            let at_targets: u64 = at_targets.map(|edge| n_live_in(func.edge_dst(edge))).sum();
            let n_blocks = n_code_blocks(func, block, self.hidden.checks) - n_targets as u64;
            n_blocks * n_live_in(block) + at_targets
        };
        counts.n_live = self.function.blocks().map(n_live).sum();
        let n_live_through = |block: Block| {
            let n_without = live[block.index()].saturating_sub(LIVE_IN_REGISTERS_MAX);
            if n_without == 0 {
                return 0;
            }
            let n_places: u64 =
                func.insts(block).iter().map(|&inst| self.hidden.n_places(func.opcode(inst))).sum();
            u64::from(n_without) * n_places.saturating_sub(PLACES_OF_BLOCK)
        };
        counts.n_live_through = self.function.blocks().map(n_live_through).sum();
        if self.slots == SlotMode::Variables {
            counts.n_variables = counts.n_live;
        }
        if self.hidden.checks {
            let at_checks = |block: Block| {
                let n_live = u64::from(live[block.index()].saturating_sub(LIVE_IN_REGISTERS_MAX));
                n_checks_of(self.function, block) * n_live
            };
            counts.n_live_through_checks = self.function.blocks().map(at_checks).sum();
        }
        let phi_operands = |block: Block| match self.slots {
            SlotMode::MemoryForwarded => 0,
            _ if block == Function::ENTRY => 0,
            _ => (values.params(block).len() * values.pred_edges(block).len()) as u64,
        };
        counts.phi_scans = self.phi_scans(&live, phi_operands);
    }

    /// The operands of phis that the register allocator looks at in stretches of the code in which all
    /// values can have registers, times the values that are live in their blocks. A value that lives
    /// across a call, or finds no register, lives in several stretches.
    fn phi_scans(&self, live: &[u32], phi_operands: impl Fn(Block) -> u64) -> u64 {
        let func = self.function;
        let calls = |block: Block| {
            let is_call = |op| op == Opcode::Ir(IrOp::FuelBulk) || is_call(op);
            func.insts(block).iter().any(|&inst| is_call(func.opcode(inst)))
        };
        let (mut total, mut n_live, mut n_operands) = (0_u64, 0_u64, 0_u64);
        let mut end_stretch = |n_live: &mut u64, n_operands: &mut u64| {
            let product = std::mem::take(n_live).saturating_mul(std::mem::take(n_operands));
            total = total.saturating_add(product);
        };
        for block in func.blocks() {
            let n_live_here = live[block.index()];
            n_live += u64::from(n_live_here);
            n_operands += phi_operands(block);
            if n_live_here > LIVE_IN_REGISTERS_MAX || n_live_here > 0 && calls(block) {
                end_stretch(&mut n_live, &mut n_operands);
            }
        }
        end_stretch(&mut n_live, &mut n_operands);
        total
    }
}

/// What is known of the work that a function takes at each effort level. Levels are asked about in their order, since what
/// is counted for one replaces upper bounds for the next.
pub(crate) struct Estimates {
    /// The counts of the form that the slot mode compiles.
    counts: WorkCounts,
    /// That form in SSA form, if slots hide values.
    promoted: Option<Function>,
    /// Those of the slot form.
    of_slots: Option<WorkCounts>,
    /// The cause that made the way of the slot mode too costly.
    cause: Cause,
    /// The cause that made the last level too costly.
    last_cause: Cause,
}

impl Estimates {
    /// Nothing is counted yet.
    pub(crate) fn new(candidate: &Candidate<'_>) -> Estimates {
        let (counts, cause) = (candidate.cheap(), Cause::PhiOperands);
        Estimates { counts, promoted: None, of_slots: None, cause, last_cause: cause }
    }

    /// The work at an effort level, if the function fits its share there. `slot_form` is the slot form of a function in SSA
    /// form.
    pub(crate) fn fits<'f>(
        &mut self,
        candidate: &Candidate<'_>,
        effort: Effort,
        slot_form: &impl Fn() -> &'f Function,
    ) -> Option<Work> {
        match effort {
            Effort::AsAsked => self.as_asked(candidate, slot_form),
            Effort::Unoptimised => self.unoptimised(candidate),
            Effort::SlotsInMemory => self.slots_in_memory(candidate, slot_form),
            Effort::OnePass => self.one_pass(candidate, slot_form),
        }
    }

    /// The error of a function that fits no level.
    pub(crate) fn refusal(&self) -> TooMuchWork {
        TooMuchWork { cause: self.last_cause }
    }

    fn as_asked<'f>(
        &mut self,
        candidate: &Candidate<'_>,
        slot_form: &impl Fn() -> &'f Function,
    ) -> Option<Work> {
        let (share, asked) = (candidate.share, candidate.asked());
        let counts = &mut self.counts;
        let work = |counts: &WorkCounts| {
            let fits = counts.estimate(asked).fits(share);
            fits.then_some(Work { effort: Effort::AsAsked, cause: None, counts: *counts })
        };
        if !candidate.is_too_large
            && let Some(work) = work(counts)
        {
            return Some(work);
        }
        counts.dominator_steps = candidate.dominator_steps(counts);
        if candidate.is_too_large {
            return None;
        }
        let optimises = candidate.slots != SlotMode::Memory;
        self.promoted = candidate.promoted();
        let values = self.promoted.as_ref().unwrap_or(candidate.function);
        if self.promoted.is_some() || !candidate.hides_values() {
            counts.copied = copied(values);
            // Four of five functions that come here do so for the bound of that.
            if let Some(work) = work(counts).filter(|_| self.promoted.is_none()) {
                return Some(work);
            }
            let crowding = candidate.crowding(values, optimises);
            counts.n_recurring =
                candidate.recurring(values) + crowding.deferred * counts.lengthening();
            counts.crowd(crowding);
            counts.n_live_at_checks = crowding.at_checks;
        }
        if let Some(promoted) = &self.promoted {
            counts.rewriting = rewriting(promoted, false);
            if candidate.slots == SlotMode::Variables {
                // It does not make all phis that are not needed go.
                let cheap = WorkCounts::cheap(promoted, candidate.loops, candidate.hidden);
                counts.n_phi_operands = cheap.n_phi_operands * 3 / 2;
            }
        }
        if let Some(work) = work(counts) {
            return Some(work);
        }
        let slots = if candidate.is_promoted() { slot_form() } else { candidate.function };
        candidate.count_live(slots, values, counts);
        let fitting = work(counts);
        if fitting.is_none() {
            self.cause = counts.estimate(asked).cause(share);
        }
        fitting
    }

    fn unoptimised(&mut self, candidate: &Candidate<'_>) -> Option<Work> {
        if candidate.is_too_large || candidate.slots == SlotMode::Memory {
            return None;
        }
        let values = self.promoted.as_ref().unwrap_or(candidate.function);
        let crowding = candidate.crowding(values, false);
        self.counts.crowd(crowding);
        self.counts.n_live_at_checks = crowding.at_checks;
        let estimate = self.counts.estimate(Generator::Splitting { optimises: false });
        let (effort, cause) = (Effort::Unoptimised, Some(self.cause));
        estimate.fits(candidate.share).then_some(Work { effort, cause, counts: self.counts })
    }

    fn slots_in_memory<'f>(
        &mut self,
        candidate: &Candidate<'_>,
        slot_form: &impl Fn() -> &'f Function,
    ) -> Option<Work> {
        if candidate.slots == SlotMode::Memory {
            return None;
        }
        let counts = self.of_slots(candidate, slot_form);
        let fits = counts.estimate(Generator::Splitting { optimises: false }).fits(candidate.share);
        let (effort, cause) = (Effort::SlotsInMemory, Some(self.cause));
        fits.then_some(Work { effort, cause, counts })
    }

    fn one_pass<'f>(
        &mut self,
        candidate: &Candidate<'_>,
        slot_form: &impl Fn() -> &'f Function,
    ) -> Option<Work> {
        let counts = self.of_slots(candidate, slot_form);
        let estimate = counts.estimate(Generator::OnePass);
        self.last_cause = estimate.cause(candidate.share);
        let (effort, cause) = (Effort::OnePass, Some(self.cause));
        estimate.fits(candidate.share).then_some(Work { effort, cause, counts })
    }

    /// The counts of the slot form.
    fn of_slots<'f>(
        &mut self,
        candidate: &Candidate<'_>,
        slot_form: &impl Fn() -> &'f Function,
    ) -> WorkCounts {
        let dominator_steps = self.counts.dominator_steps;
        *self.of_slots.get_or_insert_with(|| {
            let slots = if candidate.is_promoted() { slot_form() } else { candidate.function };
            // Passes may have changed the blocks.
            let mut counts =
                WorkCounts::cheap(slots, &LoopForest::new(&control_flow(slots)), candidate.hidden);
            counts.dominator_steps = dominator_steps;
            let crowding = candidate.crowding(slots, false);
            counts.crowd(crowding);
            counts.n_live_at_checks = crowding.at_checks;
            counts
        })
    }
}

/// The numbers of live slots of a function's blocks, from those of its slot form. Passes may have changed the blocks:
/// each has the greatest number among the blocks of the slot form that were made from the same bytecode.
fn live_of_blocks(func: &Function, slot_form: &Function, live: Vec<u32>) -> Vec<u32> {
    let key = |f: &Function, block| f.block_offset(block);
    let is_same = func.n_blocks() == slot_form.n_blocks()
        && func.blocks().all(|block| key(func, block) == key(slot_form, block));
    if is_same {
        return live;
    }
    let mut at_offsets: HashMap<u32, u32> = HashMap::new();
    for (block, n_live) in slot_form.blocks().zip(live) {
        let most = at_offsets.entry(key(slot_form, block)).or_default();
        *most = n_live.max(*most);
    }
    let n_live = |block| at_offsets.get(&key(func, block)).copied().unwrap_or_default();
    func.blocks().map(n_live).collect()
}

/// The cost of operations that the optimiser computes in more than one block.
fn copied(func: &Function) -> Excess {
    let mut copied = Excess::default();
    copies(func, |inst, n| copied += Excess::copied(func.opcode(inst)).times(n));
    copied
}

fn is_call(op: Opcode) -> bool {
    op.effect() == Effect::Call
}
