//! What compiling may cost, and which way of compiling a function stays below it.
//!
//! Some small functions take a compiler seconds and gigabytes. So a module has a budget of time and
//! memory that its size alone decides ([`TIME_PER_BYTE`] and what follows), and each function gets a
//! share of it by its size: what becomes of a function depends on no other one's costs, so not on the
//! order or the thread in which functions are compiled. The shares add up to what the module has.
//!
//! Costs are estimated from counts, never measured: points of time, each about a nanosecond, and bytes.
//! A function is compiled in the first of the ways of [`Rung`] whose estimate stays below its share. If
//! none does, it is refused.
//!
//! The terms of an estimate were fitted to families of functions that are bad for one stage of the code
//! generator each ([`Cause`]), and are meant to be upper bounds of their cost within a small factor:
//!
//! * everything takes time and memory for instructions, blocks, edges, and operands of calls;
//! * the register allocator takes them for operands of phis and for values that live in many blocks, and
//!   time for its dominators, which it finds by walking up the tree. It has two more squares: for each
//!   block where a value is live it looks at all operands of phis that come after the last value in two
//!   separate stretches (`phi_scans`), and its liveness goes around loops. And for each value without a
//!   register it may look at each instruction where that lives (`n_crowded`);
//! * the optimiser's alias analysis takes the square of the depth of loops, and what it finds twice, or
//!   takes out of a loop, or computes later than it stands, makes values live longer.
//!
//! What is costly to count is first replaced by an upper bound that is at hand, with which ordinary
//! functions stay below their share; only the others are looked at closely.

use std::fmt;

use slotvm_bytecode::{Effect, FuncType, VerifiedModule};
use slotvm_ssa::entity::Block;
use slotvm_ssa::graph::control_flow;
use slotvm_ssa::ir::Function;
use slotvm_ssa::irop::{IrOp, Opcode};
use slotvm_ssa::loops::LoopForest;
use slotvm_ssa::promote::{Scratch, promote};
use slotvm_ssa::work::{crowding, crowding_max, dominator_steps, live_slots, recurring_spans};

use crate::SlotMode;

/// Points for each byte of bytecode of a module up to [`SMALL_BYTES`]: 40 of the 50 ms for each KB that
/// are promised.
const TIME_PER_BYTE: u64 = 40_000_000 / 1024;
/// Likewise for each byte beyond: 4 of 5 ms for each KB.
const TIME_PER_BYTE_BEYOND: u64 = 4_000_000 / 1024;
/// Bytes of a module that count in full.
const SMALL_BYTES: u64 = 64 << 10;
/// No module counts as smaller than this.
const MODULE_BYTES_MIN: u64 = 4 << 10;
/// The memory of any module; 64 MiB are promised.
const MEMORY_BYTES: u64 = 58 << 20;
/// What each byte of bytecode adds; 512 are promised, and the module itself takes some.
const MEMORY_PER_BYTE: u64 = 460;

/// Parameters and results of a wide type.
const WIDE_MIN: usize = 64;

/// Steps of a walk up the dominator tree that are counted: more are too many for any function.
pub(crate) const DOMINATOR_STEPS_MAX: u64 = 1 << 25;
/// Words of 64 slots in which liveness is counted.
const LIVE_WORDS_MAX: u64 = 1 << 24;
/// A block with more live values than this has some of them in memory, which ends a scan of phi operands.
const LIVE_IN_REGISTERS_MAX: u32 = 32;

/// How a function is compiled, from the best code to what takes the least work.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rung {
    /// As the slot mode says.
    AsAsked,
    /// As the slot mode says, without the optimiser.
    Unoptimised,
    /// As in [`SlotMode::Memory`]: slots in memory, without the optimiser.
    SlotsInMemory,
    /// The same, with registers allocated in one pass over the code.
    OnePass,
}

impl Rung {
    /// All of them, in their order.
    pub const ALL: [Rung; 4] =
        [Rung::AsAsked, Rung::Unoptimised, Rung::SlotsInMemory, Rung::OnePass];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Rung::AsAsked => "as asked",
            Rung::Unoptimised => "unoptimised",
            Rung::SlotsInMemory => "slots in memory",
            Rung::OnePass => "one pass",
        }
    }
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What compiling takes work for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// Instructions, blocks and edges.
    Code,
    /// Operands and results of calls and returns.
    WideOperands,
    /// Operands of phis.
    PhiOperands,
    /// Values that live in many blocks.
    LiveValues,
    /// Values that the optimiser would make live longer.
    RecurringValues,
    /// Values that live at a time in one block.
    CrowdedBlocks,
    /// Scans of phi operands in the register allocator.
    PhiScans,
    /// Nested loops.
    Nesting,
    /// Dominators.
    Dominators,
}

impl Cause {
    const ALL: [Cause; N_CAUSES] = [
        Cause::Code,
        Cause::WideOperands,
        Cause::PhiOperands,
        Cause::LiveValues,
        Cause::RecurringValues,
        Cause::CrowdedBlocks,
        Cause::PhiScans,
        Cause::Nesting,
        Cause::Dominators,
    ];

    /// The cause as a phrase.
    pub const fn message(self) -> &'static str {
        match self {
            Cause::Code => "it has much code",
            Cause::WideOperands => "its calls and returns have many operands",
            Cause::PhiOperands => "its phis have many operands",
            Cause::LiveValues => "many values live in many blocks",
            Cause::RecurringValues => "many values would live longer when it is optimised",
            Cause::CrowdedBlocks => "many values live at a time in one block",
            Cause::PhiScans => "there are many phis where few values live",
            Cause::Nesting => "its loops are nested deeply",
            Cause::Dominators => "its dominators are found by long walks",
        }
    }
}

const N_CAUSES: usize = 9;

/// The counts of a function, in the form that a [`Rung`] compiles, from which its costs are estimated.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkCounts {
    /// Instructions that are neither constants nor accesses of slots.
    pub n_insts: u64,
    /// Constants and accesses of slots, for which there is little to do.
    pub n_light_insts: u64,
    /// Those of `n_insts` that access linear memory, which may trap.
    pub n_accesses: u64,
    /// Basic blocks.
    pub n_blocks: u64,
    /// Edges.
    pub n_edges: u64,
    /// Operands and results of instructions beyond four.
    pub n_wide_operands: u64,
    /// Operands of phis, or at most so many.
    pub n_phi_operands: u64,
    /// Values that are live on entry to blocks, summed over the blocks; or at most so many.
    pub n_live: u64,
    /// By how much that may grow in the optimiser.
    pub n_recurring: u64,
    /// Values of a block that live at an instruction of it without a register, summed over the
    /// instructions; or at most so many.
    pub n_crowded: u64,
    /// Operands of phis that the register allocator looks at, times how often; or at most so many.
    pub phi_scans: u64,
    /// The depths of loops around blocks, summed over the blocks, times the greatest.
    pub nesting: u64,
    /// Steps up the dominator tree, or at most so many.
    pub dominator_steps: u64,
}

/// What a way to compile is estimated to take.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
struct Estimate {
    time: [u64; N_CAUSES],
    bytes: [u64; N_CAUSES],
}

impl Estimate {
    fn fits(&self, share: Share) -> bool {
        let sum = |parts: &[u64]| parts.iter().fold(0_u64, |sum, &part| sum.saturating_add(part));
        sum(&self.time) <= share.time && sum(&self.bytes) <= share.bytes
    }

    /// What takes the greatest part of a share.
    fn cause(&self, share: Share) -> Cause {
        let part = |i: usize| {
            let of = |cost: u64, max: u64| cost as f64 / max.max(1) as f64;
            of(self.time[i], share.time).max(of(self.bytes[i], share.bytes))
        };
        let worst = (0..N_CAUSES).max_by(|&a, &b| part(a).total_cmp(&part(b)));
        Cause::ALL[worst.expect("there are causes")]
    }
}

/// The machinery that runs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Generator {
    /// The register allocator that splits, with the optimiser before it or not.
    Splitting { optimises: bool },
    /// The register allocator in one pass.
    OnePass,
}

impl WorkCounts {
    /// Points of time and bytes, by cause. The factors are in nanoseconds and bytes.
    fn estimate(&self, generator: Generator) -> Estimate {
        let mul = u64::saturating_mul;
        let sum = |parts: [u64; 5]| parts.into_iter().fold(0, u64::saturating_add);
        // For each instruction, light one, access beyond that, block, edge.
        let code = |[inst, light, access, block, edge]: [u64; 5]| {
            sum([
                mul(self.n_insts, inst),
                mul(self.n_light_insts, light),
                mul(self.n_accesses, access),
                mul(self.n_blocks, block),
                mul(self.n_edges, edge),
            ])
        };
        let Generator::Splitting { optimises } = generator else {
            let time = [
                code([900, 900, 3_000, 1_500, 300]),
                mul(self.n_wide_operands, 1_300),
                0,
                0,
                0,
                0,
                0,
                0,
                0,
            ];
            let bytes = [
                code([350, 250, 700, 650, 80]),
                mul(self.n_wide_operands, 150),
                0,
                0,
                0,
                0,
                0,
                0,
                0,
            ];
            return Estimate { time, bytes };
        };
        let if_optimised = |cost| if optimises { cost } else { 0 };
        let time = [
            code([1_800, 900, 3_000, 2_000, 500]),
            mul(self.n_wide_operands, 17_000),
            mul(self.n_phi_operands, 9_000),
            mul(self.n_live, 330),
            if_optimised(mul(self.n_recurring, 330)),
            mul(self.n_crowded, 100),
            mul(self.phi_scans, 3),
            if_optimised(mul(self.nesting, 10)),
            mul(self.dominator_steps, 4),
        ];
        let bytes = [
            code([1_700, 600, 900, 900, 120]),
            mul(self.n_wide_operands, 600),
            mul(self.n_phi_operands, 900),
            mul(self.n_live, 6),
            if_optimised(mul(self.n_recurring, 6)),
            0,
            0,
            0,
            0,
        ];
        Estimate { time, bytes }
    }

    /// What can be counted by looking at each instruction once.
    fn cheap(func: &Function, loops: &LoopForest) -> WorkCounts {
        let mut counts = WorkCounts {
            n_blocks: func.n_blocks() as u64,
            n_edges: func.n_edges() as u64,
            n_crowded: crowding_max(func),
            ..WorkCounts::default()
        };
        let (mut depth_sum, mut depth_max) = (0_u64, 0_u64);
        for block in func.blocks() {
            let insts = func.insts(block);
            for &inst in insts {
                let op = func.opcode(inst);
                let n_operands = func.operands(inst).len();
                let is_slot_access = matches!(op, Opcode::Ir(IrOp::SlotGet | IrOp::SlotSet));
                if is_slot_access || n_operands == 0 && op.effect() == Effect::Pure {
                    counts.n_light_insts += 1;
                } else {
                    counts.n_insts += 1;
                }
                match op {
                    Opcode::Op(op) => counts.n_accesses += u64::from(op.access_bytes().is_some()),
                    // A load, a comparison and a trap; two loads, a comparison and a call to the side.
                    Opcode::Ir(IrOp::Fuel | IrOp::FuelBulk) => counts.n_insts += 3,
                    Opcode::Ir(IrOp::Poll) => {
                        counts.n_insts += 6;
                        counts.n_blocks += 2;
                        counts.n_edges += 4;
                    }
                    _ => {}
                }
                let n_operands = n_operands + func.results(inst).len();
                counts.n_wide_operands += n_operands.saturating_sub(4) as u64;
            }
            if block != Function::ENTRY {
                let n_in_edges = func.pred_edges(block).len();
                counts.n_phi_operands += (func.params(block).len() * n_in_edges) as u64;
            }
            let depth = u64::from(loops.depth_of_block(block.0));
            depth_sum += depth;
            depth_max = depth_max.max(depth);
        }
        counts.nesting = depth_sum.saturating_mul(depth_max);
        // No walk leads over more blocks than there are. There are two rounds of them, or as many as
        // blocks in irreducible graphs.
        let is_irreducible = |loops: &LoopForest| {
            (0..loops.n_loops() as u32).any(|number| loops.is_irreducible(number))
        };
        let n_rounds = if is_irreducible(loops) { counts.n_blocks } else { 2 };
        let n_walks = counts.n_edges.saturating_mul(n_rounds);
        counts.dominator_steps = n_walks.saturating_mul(counts.n_blocks);
        counts
    }

    /// Upper bounds of the other counts of a form in which slots are values.
    fn bound_values(&mut self, n_slots: u64) {
        self.n_live = n_slots.saturating_mul(self.n_blocks);
        self.n_recurring = self.n_insts.saturating_mul(self.n_blocks);
        self.phi_scans = self.n_live.saturating_mul(self.n_phi_operands);
    }
}

/// A share of a module's budget.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// Points.
    time: u64,
    bytes: u64,
    /// Whether the module has types of so many parameters and results that their operands are to be
    /// counted before anything is made of them.
    pub(crate) has_wide_types: bool,
}

/// The budget of a module.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    module_bytes: u64,
    time: u64,
    memory: u64,
    has_wide_types: bool,
}

impl Budget {
    /// The budget that a module's size gives it.
    pub(crate) fn new(module: &VerifiedModule) -> Budget {
        let funcs = module.n_imported_funcs()..module.n_funcs();
        let module_bytes: u64 = funcs.map(|func| func_bytes(module, func)).sum();
        let types = &module.module().types;
        let is_wide = |ty: &FuncType| ty.params.len() + ty.results.len() > WIDE_MIN;
        Budget::of_bytes(module_bytes, types.iter().any(is_wide))
    }

    fn of_bytes(module_bytes: u64, has_wide_types: bool) -> Budget {
        let counted = module_bytes.max(MODULE_BYTES_MIN);
        let beyond = counted.saturating_sub(SMALL_BYTES);
        Budget {
            module_bytes,
            time: (counted - beyond) * TIME_PER_BYTE + beyond * TIME_PER_BYTE_BEYOND,
            memory: MEMORY_BYTES + module_bytes * MEMORY_PER_BYTE,
            has_wide_types,
        }
    }

    /// The share of a function. Functions are compiled one after the other, or few at a time, and give
    /// their memory back: each may have all of it.
    pub(crate) fn share(&self, module: &VerifiedModule, func: u32) -> Share {
        let time = u128::from(self.time) * u128::from(func_bytes(module, func))
            / u128::from(self.module_bytes.max(1));
        let (bytes, has_wide_types) = (self.memory, self.has_wide_types);
        Share { time: time as u64, bytes, has_wide_types }
    }
}

impl Share {
    /// The share of a function that is handed over in slot form: that of a module with nothing else. An
    /// instruction counts as much as one of bytecode with an operand.
    pub(crate) fn of_slot_form(function: &Function) -> Share {
        const BYTES_PER_INST: u64 = 3;
        let budget = Budget::of_bytes(function.n_insts() as u64 * BYTES_PER_INST, false);
        Share { time: budget.time, bytes: budget.memory, has_wide_types: false }
    }

    /// The operands that all phis may have for the function to be promoted.
    pub(crate) fn phi_operands_max(self) -> usize {
        let parts = WorkCounts { n_phi_operands: 1, ..WorkCounts::default() }
            .estimate(Generator::Splitting { optimises: true });
        let of = |parts: [u64; N_CAUSES], max| max / parts[Cause::PhiOperands as usize];
        of(parts.time, self.time).min(of(parts.bytes, self.bytes)) as usize
    }

    /// Whether calls and returns with so many operands and results can be compiled at all.
    pub(crate) fn has_room_for_operands(self, n_wide_operands: u64) -> bool {
        let counts = WorkCounts { n_wide_operands, ..WorkCounts::default() };
        counts.estimate(Generator::OnePass).fits(self)
    }
}

/// The bytes that a function takes in a binary module, at least.
fn func_bytes(module: &VerifiedModule, func: u32) -> u64 {
    let func = module.func(func).expect("the module defines the function");
    // A label has an offset and a shape; a body a length, a type, and two counts.
    (func.code.len() + 2 * func.labels.len() + 4) as u64
}

/// How a function is compiled, and why not otherwise.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Work {
    /// The way.
    pub rung: Rung,
    /// What would take too much as the slot mode says, if that is not the way.
    pub cause: Option<Cause>,
    /// The counts that decided.
    pub counts: WorkCounts,
}

/// No way to compile a function stays below its share.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it would take more work than a function of its size may (compile work): {}",
    cause.message()
)]
pub(crate) struct TooMuchWork {
    pub(crate) cause: Cause,
}

/// A function whose way to compile is to be chosen.
pub(crate) struct Candidate<'a> {
    pub(crate) slots: SlotMode,
    pub(crate) share: Share,
    /// What the slot mode compiles.
    pub(crate) function: &'a Function,
    pub(crate) loops: &'a LoopForest,
    /// The slots whose values may reach other blocks.
    pub(crate) n_slots: u64,
    /// Whether the function could not be promoted, and is in slot form in a mode that wants another.
    pub(crate) is_too_large: bool,
}

impl Candidate<'_> {
    /// Whether the function is in SSA form.
    pub(crate) fn is_promoted(&self) -> bool {
        self.slots.is_promoted() && !self.is_too_large
    }

    /// Chooses the way. `slot_form` makes the slot form of the function.
    pub(crate) fn choose(&self, slot_form: impl Fn() -> Function) -> Result<Work, TooMuchWork> {
        let share = self.share;
        let optimises = self.slots != SlotMode::Memory;
        let asked = Generator::Splitting { optimises };
        let mut counts = WorkCounts::cheap(self.function, self.loops);
        match self.slots {
            SlotMode::Ssa | SlotMode::MemoryForwarded => counts.bound_values(self.n_slots),
            SlotMode::Variables => {
                counts.n_phi_operands = self.n_slots.saturating_mul(counts.n_edges);
                counts.bound_values(self.n_slots);
            }
            SlotMode::MemoryOpt => counts.bound_values(0),
            SlotMode::Memory => {}
        }
        let work = |rung, cause, counts| Ok(Work { rung, cause, counts });
        if !self.is_too_large && counts.estimate(asked).fits(share) {
            return work(Rung::AsAsked, None, counts);
        }
        counts.dominator_steps = self.dominator_steps(share);
        let mut cause = Cause::PhiOperands;
        if !self.is_too_large {
            let promoted = self.promoted(&slot_form);
            let values = promoted.as_ref().unwrap_or(self.function);
            if promoted.is_some() || !self.hides_values() {
                let crowding = crowding(values, optimises);
                counts.n_recurring = recurring_spans(values, self.loops) + crowding.deferred;
                counts.n_crowded = crowding.local;
            }
            if self.slots == SlotMode::Variables && promoted.is_some() {
                // It does not make all phis that are not needed go.
                counts.n_phi_operands =
                    WorkCounts::cheap(values, self.loops).n_phi_operands * 3 / 2;
            }
            if counts.estimate(asked).fits(share) {
                return work(Rung::AsAsked, None, counts);
            }
            let slots = if self.is_promoted() { &slot_form() } else { self.function };
            self.count_live(slots, values, &mut counts);
            let estimate = counts.estimate(asked);
            if estimate.fits(share) {
                return work(Rung::AsAsked, None, counts);
            }
            cause = estimate.cause(share);
            let unoptimised = Generator::Splitting { optimises: false };
            if optimises {
                counts.n_crowded = crowding(values, false).local;
                if counts.estimate(unoptimised).fits(share) {
                    return work(Rung::Unoptimised, Some(cause), counts);
                }
            }
        }
        let dominator_steps = counts.dominator_steps;
        let slots = if self.is_promoted() { &slot_form() } else { self.function };
        let mut counts = WorkCounts::cheap(slots, self.loops);
        counts.dominator_steps = dominator_steps;
        counts.n_crowded = crowding(slots, false).local;
        let in_memory = counts.estimate(Generator::Splitting { optimises: false });
        if self.slots != SlotMode::Memory && in_memory.fits(share) {
            return work(Rung::SlotsInMemory, Some(cause), counts);
        }
        let one_pass = counts.estimate(Generator::OnePass);
        if one_pass.fits(share) {
            return work(Rung::OnePass, Some(cause), counts);
        }
        Err(TooMuchWork { cause: one_pass.cause(share) })
    }

    /// The steps of the register allocator's dominators, which are counted by making them.
    fn dominator_steps(&self, share: Share) -> u64 {
        let points_per_step = 4;
        let steps_max = (share.time / points_per_step).min(DOMINATOR_STEPS_MAX);
        let n_steps = dominator_steps(&control_flow(self.function), steps_max);
        if n_steps >= steps_max { u64::MAX } else { n_steps }
    }

    /// Whether slots hide values from us that the optimiser finds to be the same.
    fn hides_values(&self) -> bool {
        matches!(self.slots, SlotMode::Variables | SlotMode::MemoryForwarded)
    }

    /// The function in SSA form, if slots hide values and it can be promoted.
    fn promoted(&self, slot_form: impl Fn() -> Function) -> Option<Function> {
        if !self.hides_values() {
            return None;
        }
        let mut promoted = slot_form();
        let report = promote(&mut promoted, &mut Scratch::default());
        report.too_large.is_none().then_some(promoted)
    }

    /// Replaces upper bounds by what the slots that are live say.
    fn count_live(&self, slot_form: &Function, values: &Function, counts: &mut WorkCounts) {
        if matches!(self.slots, SlotMode::Memory | SlotMode::MemoryOpt) {
            return;
        }
        // Counting takes some nanoseconds for each word.
        let words_max = (self.share.time / 64).min(LIVE_WORDS_MAX) as usize;
        let Some(live) = live_slots(slot_form, words_max) else { return };
        counts.n_live = live.iter().map(|&n| u64::from(n)).sum();
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

fn is_call(op: Opcode) -> bool {
    op.effect() == Effect::Call
}

#[cfg(test)]
mod tests {
    use super::*;
    use slotvm_bytecode::{text, verify};

    fn module(n_adds: &[usize]) -> VerifiedModule {
        let func = |(i, &n): (usize, &usize)| {
            let adds = "local.get n i32.const 1 i32.add local.set n ".repeat(n);
            format!("func f{i}(n: i32) {{ {adds} return }}\n")
        };
        let source: String = n_adds.iter().enumerate().map(func).collect();
        verify(text::parse(&source).expect("it is text")).expect("it is well-typed")
    }

    #[test]
    fn shares_add_up_to_what_the_module_has() {
        for sizes in [&[0][..], &[1, 2, 3], &[9_000, 10, 2_000], &[20_000; 9]] {
            let module = module(sizes);
            let budget = Budget::new(&module);
            let shares = (0..module.n_funcs()).map(|func| budget.share(&module, func));
            let time: u64 = shares.map(|share| share.time).sum();
            // Each loses less than a point.
            assert!((budget.time - time) < sizes.len() as u64 + 1, "{sizes:?}");
        }
    }

    #[test]
    fn larger_modules_have_more_but_less_for_each_byte() {
        let budgets = [100, 9_000, 90_000].map(|n| Budget::new(&module(&[n])));
        assert!(budgets.is_sorted_by(|a, b| a.time < b.time && a.memory < b.memory));
        let rate = |budget: &Budget| budget.time / budget.module_bytes;
        assert!(budgets.is_sorted_by(|a, b| rate(a) > rate(b)));
    }

    #[test]
    fn every_count_can_be_too_much() {
        let share = Budget::new(&module(&[1_000]));
        let share = Share { time: share.time, bytes: share.memory, has_wide_types: false };
        let asked = Generator::Splitting { optimises: true };
        assert!(WorkCounts::default().estimate(asked).fits(share));
        let much = 1 << 40;
        let of = WorkCounts::default;
        for (counts, cause) in [
            (WorkCounts { n_insts: much, ..of() }, Cause::Code),
            (WorkCounts { n_light_insts: much, ..of() }, Cause::Code),
            (WorkCounts { n_accesses: much, ..of() }, Cause::Code),
            (WorkCounts { n_blocks: much, ..of() }, Cause::Code),
            (WorkCounts { n_edges: much, ..of() }, Cause::Code),
            (WorkCounts { n_wide_operands: much, ..of() }, Cause::WideOperands),
            (WorkCounts { n_phi_operands: much, ..of() }, Cause::PhiOperands),
            (WorkCounts { n_live: much, ..of() }, Cause::LiveValues),
            (WorkCounts { n_recurring: much, ..of() }, Cause::RecurringValues),
            (WorkCounts { n_crowded: much, ..of() }, Cause::CrowdedBlocks),
            (WorkCounts { phi_scans: much, ..of() }, Cause::PhiScans),
            (WorkCounts { nesting: much, ..of() }, Cause::Nesting),
            (WorkCounts { dominator_steps: u64::MAX, ..of() }, Cause::Dominators),
        ] {
            let estimate = counts.estimate(asked);
            assert!(!estimate.fits(share), "{counts:?}");
            assert_eq!(estimate.cause(share), cause);
            // One pass over the code does not see what lives where.
            let is_linear = matches!(cause, Cause::Code | Cause::WideOperands);
            assert_eq!(counts.estimate(Generator::OnePass).fits(share), !is_linear);
        }
    }
}
