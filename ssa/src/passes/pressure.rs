//! Register pressure: slots that would only be spilled stay in memory.
//!
//! Relies on slot form, and guarantees it: it only marks slots ([`SlotData::kept`](crate::ir::SlotData::kept)), which
//! [promotion](mod@crate::construction::promote) then leaves alone. The decision is made from counts, loop by loop:
//! 1. `frequencies` estimates how often each block runs: a loop goes round `ROUNDS` times, and a branch goes each way
//!    equally often, except that one of `ROUNDS` leaves a loop, and one of `UNLIKELY_ROUNDS` goes where a hint says that few
//!    do.
//! 2. A slot in memory *costs* the frequencies of the blocks that read or write it.
//! 3. The values of a loop are the slots that are live on entry to its header. If the loop calls, they live across the
//!    call. If there are more of them than registers that calls preserve, the cheapest stay in memory, as long as they
//!    cost less than `SLOT_COST_MAX` accesses in each round.
//!
//! Without that, a register allocator splits the values somewhere in the loop: it moves them between frame and
//! registers on the way through blocks that do not use them. An interpreter with a rarely taken call is such a loop.
//! Loops without calls gained nothing (`docs/decisions.md`). Nor do cold calls of imports count, which keep all registers.
//!
//! Linear in the function, apart from liveness, which has a limit.

use slotvm_bytecode::module::ImportCall;
use slotvm_bytecode::{Op, ValType, VerifiedModule};

use crate::graphs::cfg::Cfg;
use crate::graphs::ids::{Loop, Slot};
use crate::graphs::liveness::Liveness;
use crate::graphs::loops::LoopForest;
use crate::graphs::slot_blocks::SlotBlocks;
use crate::ir::Function;
use crate::ir::analyses::Analyses;
use crate::ir::entity::{Block, Edge, Inst};
use crate::ir::irop::{IrOp, Opcode};

/// The registers of a machine that calls preserve, and code may use.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PreservedRegisters {
    /// Those for integers and references.
    pub integers: usize,
    /// Those for floats.
    pub floats: usize,
    /// Those for vectors.
    pub vectors: usize,
}

impl PreservedRegisters {
    /// `rbx` and `r12` to `r15`; `rbp` is the frame pointer.
    pub const X86_64: PreservedRegisters =
        PreservedRegisters { integers: 5, floats: 0, vectors: 0 };
    /// `x19` to `x28`, and the lower halves of `v8` to `v15`.
    pub const AARCH64: PreservedRegisters =
        PreservedRegisters { integers: 10, floats: 8, vectors: 0 };

    fn by_class(self) -> [usize; 3] {
        [self.integers, self.floats, self.vectors]
    }
}

/// Those of x86-64, the fewest of all machines.
impl Default for PreservedRegisters {
    fn default() -> PreservedRegisters {
        PreservedRegisters::X86_64
    }
}

/// The estimated rounds of a loop. What other values do: docs/decisions.md, "Constants of the tiers".
const ROUNDS: f32 = 8.0;
/// The number of times that a branch with a hint runs for each time that it goes the other way.
const UNLIKELY_ROUNDS: f32 = 64.0;
/// The maximum cost of a slot that stays in memory, in accesses for each round of the loop.
const SLOT_COST_MAX: f32 = 0.5;
/// The greatest frequency. Deeper nests are all the same.
const FREQUENCY_MAX: f32 = 1e30;
/// The maximum number of words of liveness: blocks, times slots in groups of 64.
const PRESSURE_WORDS_MAX: usize = 1 << 18;

/// Statistics of the decision.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct PressureReport {
    /// Slots that stay in memory.
    pub n_kept: usize,
}

/// Marks the slots of a function in slot form that stay in memory on a machine with these registers.
pub fn pressure(
    f: &mut Function,
    module: &VerifiedModule,
    preserved: PreservedRegisters,
    analyses: &mut Analyses,
) -> PressureReport {
    let mut report = PressureReport::default();
    if !has_loops_and_calls(f, module) {
        return report;
    }
    let accesses = Accesses::find(f);
    let n_words = accesses.exposed.len().div_ceil(64).saturating_mul(f.n_blocks());
    if !accesses.may_exceed(f, preserved) || n_words > PRESSURE_WORDS_MAX {
        return report;
    }
    let (loops, cfg) = analyses.loops(f);
    let calls = loops_with_calls(f, module, loops);
    if !calls.contains(&true) {
        return report;
    }
    let Some(live) = accesses.liveness(cfg) else { return report };
    let frequencies = frequencies(f, loops);
    let costs = accesses.costs(&frequencies);
    let under_pressure = |of: &Loop| calls[of.index()] && !loops.is_irreducible(*of);
    for of in loops.loops().filter(under_pressure) {
        let header = Block(loops.header(of));
        let cost_max = frequencies[header.index()] * SLOT_COST_MAX;
        for (class, &n_registers) in preserved.by_class().iter().enumerate() {
            let is_value = |&(_, slot): &(usize, Slot)| {
                let data = &f.slots[slot.index()];
                data.kept.is_none() && class_of(data.ty) == class
            };
            let values = accesses.live_slots(&live, header).filter(is_value);
            let mut values: Vec<(usize, Slot)> = values.collect();
            let n_over = values.len().saturating_sub(n_registers);
            values.retain(|&(number, _)| costs[number] < cost_max);
            values.sort_by(|a, b| costs[a.0].total_cmp(&costs[b.0]));
            for (_, slot) in values.into_iter().take(n_over) {
                f.slots[slot.index()].kept = Some(f.block_offset(header));
                report.n_kept += 1;
            }
        }
    }
    report
}

/// Whether a function has loops and calls at all.
fn has_loops_and_calls(f: &Function, module: &VerifiedModule) -> bool {
    // Blocks are numbered so that only what closes a loop leads back.
    let is_back = |edge: Edge| f.edge_dst(edge) <= f.edge_src(edge);
    f.blocks().any(|block| f.succ_edges(block).any(is_back))
        && f.layout.iter().any(|&inst| calls(f, module, inst))
}

/// Whether an instruction calls what may change registers.
fn calls(f: &Function, module: &VerifiedModule, inst: Inst) -> bool {
    let opcode = f.opcode(inst);
    let keeps_all = || module.import_call(f.imm(inst).low()) == ImportCall::Cold;
    opcode.calls() && !(opcode == Opcode::Op(Op::Call) && keeps_all())
}

/// The index in [`PreservedRegisters::by_class`] of the registers that a value needs.
fn class_of(ty: ValType) -> usize {
    match ty {
        ValType::F32 | ValType::F64 => 1,
        ValType::V128 => 2,
        _ => 0,
    }
}

/// Whether each loop calls, itself or in a loop inside it.
fn loops_with_calls(f: &Function, module: &VerifiedModule, loops: &LoopForest) -> Vec<bool> {
    let mut calls = vec![false; loops.n_loops()];
    for block in f.blocks() {
        if let Some(of) = loops.innermost(block.0)
            && f.insts(block).iter().any(|&inst| self::calls(f, module, inst))
        {
            calls[of.index()] = true;
        }
    }
    for of in loops.loops().rev() {
        if let Some(around) = loops.parent(of) {
            calls[around.index()] |= calls[of.index()];
        }
    }
    calls
}

/// The estimated number of times that each block runs.
fn frequencies(f: &Function, loops: &LoopForest) -> Vec<f32> {
    let mut frequencies = vec![0.0_f32; f.n_blocks()];
    frequencies[Function::ENTRY.index()] = 1.0;
    let mut targets: Vec<Block> = Vec::new();
    for block in loops.reverse_postorder().map(Block) {
        let rounds = if loops.is_header(block.0) { ROUNDS } else { 1.0 };
        let frequency = (frequencies[block.index()] * rounds).min(FREQUENCY_MAX);
        frequencies[block.index()] = frequency;
        // The entries of a table that share a target count once.
        targets.clear();
        targets.extend(f.succ_edges(block).map(|edge| f.edge_dst(edge)));
        targets.sort_unstable();
        targets.dedup();
        let innermost = loops.innermost(block.0);
        let unlikely = f.unlikely_edge(block).map(|edge| f.edge_dst(edge));
        let share = |target: Block| match innermost {
            // How often a loop is left follows from its rounds, not from a hint.
            Some(of) if !loops.contains(of, target.0) => 1.0 / ROUNDS,
            _ if unlikely == Some(target) => 1.0 / UNLIKELY_ROUNDS,
            _ => 1.0,
        };
        let shares: f32 = targets.iter().map(|&target| share(target)).sum();
        for &target in &targets {
            // The rounds of a loop count what comes back to its header.
            if target > block || !loops.is_header(target.0) {
                frequencies[target.index()] += frequency * share(target) / shares;
            }
        }
    }
    frequencies
}

/// The accesses that are left of *exposed* slots, those that a block reads before it writes them, if each block reads a
/// slot at most once, before it writes it, and writes it at most once. No other slot is live on entry to a block.
struct Accesses {
    /// The exposed slots. Below, they have numbers in this order.
    exposed: Vec<Slot>,
    /// Block and number of each read and write.
    reads: Vec<(u32, Slot)>,
    writes: Vec<(u32, Slot)>,
}

impl Accesses {
    fn find(f: &Function) -> Accesses {
        let n_slots = f.slots.len();
        let mut accesses = Accesses { exposed: vec![], reads: vec![], writes: vec![] };
        let mut numbers = vec![u32::MAX; n_slots];
        // One more than the last block that accesses a slot, and than the last one that writes it.
        let mut touched = vec![(0, 0); n_slots];
        for block in f.blocks() {
            let now = block.0 + 1;
            for &inst in f.insts(block) {
                let Opcode::Ir(op @ (IrOp::SlotGet | IrOp::SlotSet)) = f.opcode(inst) else {
                    continue;
                };
                let slot = Slot(f.imm(inst).low());
                let (accessed, written) = &mut touched[slot.index()];
                if op == IrOp::SlotSet && *written != now {
                    *written = now;
                    accesses.writes.push((block.0, slot));
                } else if op == IrOp::SlotGet && *accessed != now {
                    let number = &mut numbers[slot.index()];
                    if *number == u32::MAX {
                        *number = accesses.exposed.len() as u32;
                        accesses.exposed.push(slot);
                    }
                    accesses.reads.push((block.0, Slot(*number)));
                }
                *accessed = now;
            }
        }
        accesses.writes.retain_mut(|(_, slot)| {
            *slot = Slot(numbers[slot.index()]);
            slot.0 != u32::MAX
        });
        accesses
    }

    /// Whether there are more values of a class than registers, if all slots are live at once.
    fn may_exceed(&self, f: &Function, preserved: PreservedRegisters) -> bool {
        let mut counts = [0; 3];
        self.exposed.iter().for_each(|slot| counts[class_of(f.slots[slot.index()].ty)] += 1);
        counts.iter().zip(preserved.by_class()).any(|(&n, n_registers)| n > n_registers)
    }

    fn liveness(&self, cfg: &Cfg) -> Option<Liveness> {
        let (writes, reads) = (self.writes.iter().copied(), self.reads.iter().copied());
        Liveness::new(cfg, &SlotBlocks::new(self.exposed.len(), writes, reads)).ok()
    }

    /// The slots that are live on entry to a block, with their numbers.
    fn live_slots(&self, live: &Liveness, block: Block) -> impl Iterator<Item = (usize, Slot)> {
        let words = live.words(block.0).iter().enumerate();
        let numbers = words.flat_map(|(i, &word)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| i * 64 + bit)
        });
        numbers.map(|number| (number, self.exposed[number]))
    }

    /// The frequencies of the accesses of each slot, by number.
    fn costs(&self, frequencies: &[f32]) -> Vec<f32> {
        let mut costs = vec![0.0; self.exposed.len()];
        for &(block, number) in self.reads.iter().chain(&self.writes) {
            costs[number.index()] += frequencies[block as usize];
        }
        costs
    }
}

#[cfg(test)]
mod tests;
