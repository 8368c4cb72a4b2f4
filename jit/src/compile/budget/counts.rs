//! Counts of a function that say how much work it is to compile.

use slotvm_bytecode::{Effect, Op};
use slotvm_ssa::graphs::loops::LoopForest;
use slotvm_ssa::ir::Function;
use slotvm_ssa::ir::irop::{IrOp, Opcode};
use slotvm_ssa::ir::work::{Crowding, crowding_max};

use super::checks::{n_checks_of, n_code_blocks};
use super::excess::Excess;
use super::hidden::HiddenValues;

/// The places of a block that the cost of `n_live` covers.
pub(super) const PLACES_OF_BLOCK: u64 = 7;

/// The counts of a function, in the form that a [`Effort`](crate::compiler::Effort) compiles, from which its costs are
/// estimated.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkCounts {
    /// Instructions that are neither constants nor accesses of slots, and those that make NaNs canonical.
    pub n_insts: u64,
    /// Constants and accesses of slots, for which there is little to do.
    pub n_light_insts: u64,
    /// Those of `n_light_insts` that access slots.
    pub n_slot_accesses: u64,
    /// Those of `n_insts` that access linear memory, which may trap.
    pub n_accesses: u64,
    /// Values without effects, including the hidden ones in the code of instructions.
    pub n_hidden: u64,
    /// Basic blocks.
    pub n_blocks: u64,
    /// Edges.
    pub n_edges: u64,
    /// Those of them that are targets of switches, which get blocks of their own.
    pub n_targets: u64,
    /// Checks that split blocks, where no instruction may fault.
    pub n_checks: u64,
    /// Values of a block, beyond 32, that live at such a check in it, summed over the checks; or at most so many.
    pub n_live_at_checks: u64,
    /// The same for values that live on entry to the block.
    pub n_live_through_checks: u64,
    /// Operands and results of instructions beyond four.
    pub n_wide_operands: u64,
    /// Operands of phis, or at most so many.
    pub n_phi_operands: u64,
    /// Values that are live on entry to blocks, summed over the blocks; or at most so many.
    pub n_live: u64,
    /// Places of instructions: one for each, and more where its machine code has several values.
    pub n_places: u64,
    /// Values that are live on entry to a block without registers, times the places of the block beyond the first
    /// seven, summed over the blocks; or at most so many.
    pub n_live_through: u64,
    /// Those of `n_live` that the code generator's frontend finds, since slots are its variables.
    pub n_variables: u64,
    /// Growth of `n_live` in the optimiser, at most.
    pub n_recurring: u64,
    /// Values of a block that live at an instruction of it without a register, summed over the
    /// instructions; or at most so many.
    pub n_crowded: u64,
    /// Values of a block that are made where others have taken the registers; or at most so many.
    pub n_spilled: u64,
    /// Operands of phis that the register allocator looks at, times how often; or at most so many.
    pub phi_scans: u64,
    /// The depths of loops around blocks of the code, summed over the blocks, times the greatest.
    pub nesting: u64,
    /// Steps up the dominator tree, or at most so many.
    pub dominator_steps: u64,
    /// Cost of instructions beyond that of ordinary ones, with the optimiser.
    pub optimised: Excess,
    /// The same cost without the optimiser.
    pub unoptimised: Excess,
    /// The same cost with registers in one pass.
    pub in_one_pass: Excess,
    /// The cost of operations that the optimiser computes in more than one block, without the first of each; or an
    /// upper bound.
    pub copied: Excess,
    /// Cost, at most, of chains of operations that the optimiser combines, beyond that of single operations.
    pub rewriting: Excess,
}

impl WorkCounts {
    /// The counts that need one look at each instruction.
    pub(super) fn cheap(func: &Function, loops: &LoopForest, hidden: HiddenValues) -> WorkCounts {
        let mut counts = WorkCounts {
            n_blocks: func.n_blocks() as u64,
            n_edges: func.n_edges() as u64,
            ..WorkCounts::default()
        };
        counts.crowd(crowding_max(func, |inst| hidden.n_places(func.opcode(inst))));
        let (mut depth_sum, mut depth_max) = (0_u64, 0_u64);
        for block in func.blocks() {
            let insts = func.insts(block);
            for &inst in insts {
                let op = func.opcode(inst);
                counts.n_hidden += hidden.n_max(op);
                let n_places = hidden.n_places(op);
                counts.n_places += n_places;
                counts.n_insts += n_places - 1;
                let n_operands = func.operands(inst).len();
                if n_operands > 0 && op.effect() == Effect::Pure {
                    counts.copied += Excess::copied(op);
                }
                let is_slot_access = matches!(op, Opcode::Ir(IrOp::SlotGet | IrOp::SlotSet));
                counts.n_slot_accesses += u64::from(is_slot_access);
                if is_slot_access || n_operands == 0 && op.effect() == Effect::Pure {
                    counts.n_light_insts += 1;
                } else {
                    counts.n_insts += 1;
                }
                match op {
                    Opcode::Op(op) => {
                        if op == Op::BrTable {
                            counts.n_targets += func.succ_edges(block).len() as u64;
                        }
                        counts.n_accesses += u64::from(op.access_bytes().is_some());
                        counts.optimised += Excess::optimised(op);
                        counts.unoptimised += Excess::unoptimised(op);
                        counts.in_one_pass += Excess::in_one_pass(op);
                    }
                    // A load, a comparison and a trap; two loads, a comparison and a call to the side.
                    Opcode::Ir(IrOp::Fuel | IrOp::FuelBulk) => counts.n_insts += 3,
                    Opcode::Ir(IrOp::Poll) => {
                        counts.n_insts += 6;
                        counts.n_blocks += 2;
                        counts.n_edges += 4;
                    }
                    // A value is extended and stored. Then the exit is, and a call has as many arguments as the function.
                    Opcode::Ir(IrOp::Exit) => {
                        counts.n_insts += 8 + 2 * n_operands as u64 + func.ty.params.len() as u64;
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
            if hidden.checks {
                let n_checks = n_checks_of(func, block);
                counts.n_checks += n_checks;
                counts.n_live_at_checks += n_checks * insts.len() as u64;
            }
            if depth > 0 {
                depth_sum += depth * n_code_blocks(func, block, hidden.checks);
            }
            depth_max = depth_max.max(depth);
        }
        counts.nesting = depth_sum.saturating_mul(depth_max);
        // No walk leads over more blocks than there are. There are two rounds of them, or as many as
        // blocks in irreducible graphs.
        let is_irreducible = |loops: &LoopForest| loops.loops().any(|it| loops.is_irreducible(it));
        let n_rounds = if is_irreducible(loops) { counts.n_blocks } else { 2 };
        let n_walks = counts.n_edges.saturating_mul(n_rounds);
        counts.dominator_steps = n_walks.saturating_mul(counts.n_split_blocks());
        counts
    }

    /// Takes over how values crowd in blocks.
    pub(super) fn crowd(&mut self, crowding: Crowding) {
        (self.n_crowded, self.n_spilled) = (crowding.local, crowding.spilled);
    }

    /// The blocks of the code, those apart that only stop the program.
    pub(super) fn n_code_blocks(&self) -> u64 {
        self.n_split_blocks() + self.n_targets
    }

    /// The same without those that edges have, which lengthen no way.
    fn n_split_blocks(&self) -> u64 {
        self.n_blocks + self.n_checks
    }

    /// Approximate length that checks add to paths through blocks.
    pub(super) fn lengthening(&self) -> u64 {
        self.n_split_blocks().div_ceil(self.n_blocks)
    }

    /// Upper bounds of the other counts of a form in which so many slots are values. At worst each operation is
    /// computed in each block.
    pub(super) fn bound_values(&mut self, n_slots: u64) {
        self.n_live = n_slots.saturating_mul(self.n_code_blocks());
        self.n_live_through_checks = n_slots.saturating_mul(self.n_checks);
        self.n_live_through = n_slots.saturating_mul(self.n_places);
        self.n_recurring = self.n_hidden.saturating_mul(self.n_code_blocks());
        self.copied = self.copied.times(self.n_blocks - 1);
        self.phi_scans = self.n_live.saturating_mul(self.n_phi_operands);
    }
}
