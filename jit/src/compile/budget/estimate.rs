//! Estimates of what compiling a function takes, from its counts.

use super::shares::Share;
use super::{Cause, N_CAUSES, WorkCounts};

/// The estimated cost of a way to compile.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Estimate {
    pub(super) time: [u64; N_CAUSES],
    pub(super) bytes: [u64; N_CAUSES],
}

impl Estimate {
    pub(super) fn fits(&self, share: Share) -> bool {
        let sum = |parts: &[u64]| parts.iter().fold(0_u64, |sum, &part| sum.saturating_add(part));
        sum(&self.time) <= share.time && sum(&self.bytes) <= share.bytes
    }

    /// The cause that takes the greatest part of a share.
    pub(super) fn cause(&self, share: Share) -> Cause {
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
pub(super) enum Generator {
    /// The register allocator that splits, with the optimiser before it or not.
    Splitting { optimises: bool },
    /// The register allocator in one pass.
    OnePass,
}

impl WorkCounts {
    /// Points of time and bytes, by cause. The factors are in nanoseconds and bytes.
    pub(super) fn estimate(&self, generator: Generator) -> Estimate {
        let mul = u64::saturating_mul;
        let sum = |parts: &[u64]| parts.iter().fold(0, |sum: u64, &part| sum.saturating_add(part));
        // For each instruction, light one, access of a slot or memory beyond that, block, edge, check, target
        // of a switch beyond that; for what is dearer, the excess.
        let code = |[inst, light, slot, access, block, edge, check, target]: [u64; 8], excess| {
            sum(&[
                mul(self.n_insts, inst),
                mul(self.n_light_insts, light),
                mul(self.n_slot_accesses, slot),
                mul(self.n_accesses, access),
                mul(self.n_blocks, block),
                mul(self.n_edges, edge),
                mul(self.n_checks, check),
                mul(self.n_targets, target),
                excess,
            ])
        };
        let Generator::Splitting { optimises } = generator else {
            let excess = self.in_one_pass;
            let time = [
                code([900, 900, 0, 3_000, 1_500, 300, 4_000, 0], excess.time),
                mul(self.n_wide_operands, 1_300),
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
            ];
            let bytes = [
                code([350, 250, 0, 700, 650, 80, 3_000, 0], excess.bytes),
                mul(self.n_wide_operands, 150),
                0,
                0,
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
        let n_live_at_checks = self.n_live_at_checks.saturating_add(self.n_live_through_checks);
        let if_optimised = |cost| if optimises { cost } else { 0 };
        let excess = if optimises { self.optimised } else { self.unoptimised };
        let time = [
            code([1_800, 900, 0, 3_000, 2_000, 500, 8_000, 0], excess.time),
            mul(self.n_wide_operands, 17_000),
            mul(self.n_phi_operands, 9_000),
            sum(&[
                mul(self.n_live, 330),
                mul(self.n_live_through, 50),
                mul(n_live_at_checks, 3_000),
            ]),
            if_optimised(mul(self.n_recurring, 330)),
            mul(self.n_crowded, 100).saturating_add(mul(self.n_spilled, 6_000)),
            mul(self.phi_scans, 3),
            if_optimised(mul(self.nesting, 10)),
            mul(self.dominator_steps, 4),
            if_optimised(self.rewriting.time),
            if_optimised(self.copied.time),
        ];
        let bytes = [
            code([1_700, 600, 500, 900, 900, 120, 11_000, 700], excess.bytes),
            mul(self.n_wide_operands, 600),
            mul(self.n_phi_operands, 900),
            sum(&[mul(self.n_live, 6), mul(self.n_variables, 40), mul(n_live_at_checks, 200)]),
            if_optimised(mul(self.n_recurring, 6)),
            0,
            0,
            0,
            0,
            if_optimised(self.rewriting.bytes),
            if_optimised(self.copied.bytes),
        ];
        Estimate { time, bytes }
    }
}

impl Share {
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
