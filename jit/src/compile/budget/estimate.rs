//! Estimates of what compiling a function takes, from its counts.

use std::ops::Add;

use super::cause::N_CAUSES;
use super::shares::Share;
use super::{Cause, Excess, WorkCounts};

/// Points of time, each about a nanosecond, and bytes.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost {
    pub(super) ns: u64,
    pub(super) bytes: u64,
}

impl Cost {
    const NONE: Cost = Cost { ns: 0, bytes: 0 };

    /// Multiplies the cost.
    fn times(self, n: u64) -> Cost {
        Cost { ns: self.ns.saturating_mul(n), bytes: self.bytes.saturating_mul(n) }
    }
}

impl Add for Cost {
    type Output = Cost;

    fn add(self, other: Cost) -> Cost {
        Cost { ns: self.ns.saturating_add(other.ns), bytes: self.bytes.saturating_add(other.bytes) }
    }
}

impl From<Excess> for Cost {
    fn from(excess: Excess) -> Cost {
        Cost { ns: excess.time, bytes: excess.bytes }
    }
}

/// The estimated cost of a way to compile, by cause.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Estimate([Cost; N_CAUSES]);

impl Estimate {
    /// The cost of all causes.
    pub(super) fn total(&self) -> Cost {
        self.0.iter().fold(Cost::NONE, |sum, &cost| sum + cost)
    }

    /// The cost of a cause.
    pub(super) fn of(&self, cause: Cause) -> Cost {
        self.0[cause as usize]
    }

    pub(super) fn fits(&self, share: Share) -> bool {
        let Cost { ns, bytes } = self.total();
        ns <= share.time && bytes <= share.bytes
    }

    /// The cause that takes the greatest part of a share.
    pub(super) fn cause(&self, share: Share) -> Cause {
        let part = |cause: Cause| {
            let Cost { ns, bytes } = self.of(cause);
            let of = |cost: u64, max: u64| cost as f64 / max.max(1) as f64;
            of(ns, share.time).max(of(bytes, share.bytes))
        };
        let worst = Cause::ALL.into_iter().max_by(|&a, &b| part(a).total_cmp(&part(b)));
        worst.expect("there are causes")
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

/// The costs of code.
struct CodeCosts {
    inst: Cost,
    light_inst: Cost,
    /// An access of a slot, or of memory, beyond the cost of the instruction.
    slot_access: Cost,
    access: Cost,
    block: Cost,
    edge: Cost,
    check: Cost,
    /// A target of a switch beyond the cost of the edge.
    target: Cost,
    /// An operand or result of a call beyond the fourth.
    wide_operand: Cost,
}

const SPLITTING: CodeCosts = CodeCosts {
    inst: Cost { ns: 1_800, bytes: 1_700 },
    light_inst: Cost { ns: 900, bytes: 600 },
    slot_access: Cost { ns: 0, bytes: 500 },
    access: Cost { ns: 3_000, bytes: 900 },
    block: Cost { ns: 2_000, bytes: 900 },
    edge: Cost { ns: 500, bytes: 120 },
    check: Cost { ns: 8_000, bytes: 11_000 },
    target: Cost { ns: 0, bytes: 700 },
    wide_operand: Cost { ns: 17_000, bytes: 600 },
};

const ONE_PASS: CodeCosts = CodeCosts {
    inst: Cost { ns: 900, bytes: 350 },
    light_inst: Cost { ns: 900, bytes: 250 },
    slot_access: Cost::NONE,
    access: Cost { ns: 3_000, bytes: 700 },
    block: Cost { ns: 1_500, bytes: 650 },
    edge: Cost { ns: 300, bytes: 80 },
    check: Cost { ns: 4_000, bytes: 3_000 },
    target: Cost::NONE,
    wide_operand: Cost { ns: 1_300, bytes: 150 },
};

// What only the register allocator that splits and the optimiser take, for each of a count.
const PHI_OPERAND: Cost = Cost { ns: 9_000, bytes: 900 };
const LIVE: Cost = Cost { ns: 330, bytes: 6 };
const LIVE_THROUGH: Cost = Cost { ns: 50, bytes: 0 };
const LIVE_AT_CHECK: Cost = Cost { ns: 3_000, bytes: 200 };
const VARIABLE: Cost = Cost { ns: 0, bytes: 40 };
const RECURRING: Cost = Cost { ns: 330, bytes: 6 };
const CROWDED: Cost = Cost { ns: 100, bytes: 0 };
const SPILLED: Cost = Cost { ns: 6_000, bytes: 0 };
const PHI_SCAN: Cost = Cost { ns: 3, bytes: 0 };
const NESTING: Cost = Cost { ns: 10, bytes: 0 };
pub(super) const DOMINATOR_STEP: Cost = Cost { ns: 4, bytes: 0 };

impl WorkCounts {
    /// The cost of a way to compile.
    pub(super) fn estimate(&self, generator: Generator) -> Estimate {
        Estimate(Cause::ALL.map(|cause| match generator {
            Generator::Splitting { optimises } => self.splitting(cause, optimises),
            Generator::OnePass => self.in_one_pass(cause),
        }))
    }

    fn splitting(&self, cause: Cause, optimises: bool) -> Cost {
        let if_optimised = |cost| if optimises { cost } else { Cost::NONE };
        match cause {
            Cause::Code => {
                self.code(&SPLITTING, if optimises { self.optimised } else { self.unoptimised })
            }
            Cause::WideOperands => SPLITTING.wide_operand.times(self.n_wide_operands),
            Cause::PhiOperands => PHI_OPERAND.times(self.n_phi_operands),
            Cause::LiveValues => {
                let n_at_checks = self.n_live_at_checks.saturating_add(self.n_live_through_checks);
                LIVE.times(self.n_live)
                    + LIVE_THROUGH.times(self.n_live_through)
                    + LIVE_AT_CHECK.times(n_at_checks)
                    + VARIABLE.times(self.n_variables)
            }
            Cause::RecurringValues => if_optimised(RECURRING.times(self.n_recurring)),
            Cause::CrowdedBlocks => CROWDED.times(self.n_crowded) + SPILLED.times(self.n_spilled),
            Cause::PhiScans => PHI_SCAN.times(self.phi_scans),
            Cause::Nesting => if_optimised(NESTING.times(self.nesting)),
            Cause::Dominators => DOMINATOR_STEP.times(self.dominator_steps),
            Cause::Rewriting => if_optimised(self.rewriting.into()),
            Cause::Copies => if_optimised(self.copied.into()),
        }
    }

    /// The cost with registers in one pass, which does not depend on live ranges.
    fn in_one_pass(&self, cause: Cause) -> Cost {
        match cause {
            Cause::Code => self.code(&ONE_PASS, self.in_one_pass),
            Cause::WideOperands => ONE_PASS.wide_operand.times(self.n_wide_operands),
            Cause::PhiOperands
            | Cause::LiveValues
            | Cause::RecurringValues
            | Cause::CrowdedBlocks
            | Cause::PhiScans
            | Cause::Nesting
            | Cause::Dominators
            | Cause::Rewriting
            | Cause::Copies => Cost::NONE,
        }
    }

    /// The cost of instructions, blocks and edges; for what is dearer, the excess.
    fn code(&self, costs: &CodeCosts, excess: Excess) -> Cost {
        costs.inst.times(self.n_insts)
            + costs.light_inst.times(self.n_light_insts)
            + costs.slot_access.times(self.n_slot_accesses)
            + costs.access.times(self.n_accesses)
            + costs.block.times(self.n_blocks)
            + costs.edge.times(self.n_edges)
            + costs.check.times(self.n_checks)
            + costs.target.times(self.n_targets)
            + excess.into()
    }
}

impl Share {
    /// The operands that all phis may have for the function to be promoted.
    pub(crate) fn phi_operands_max(self) -> usize {
        let Cost { ns, bytes } = WorkCounts { n_phi_operands: 1, ..WorkCounts::default() }
            .estimate(Generator::Splitting { optimises: true })
            .of(Cause::PhiOperands);
        (self.time / ns).min(self.bytes / bytes) as usize
    }

    /// Whether calls and returns with this number of operands and results can be compiled at all.
    pub(crate) fn has_room_for_operands(self, n_wide_operands: u64) -> bool {
        let counts = WorkCounts { n_wide_operands, ..WorkCounts::default() };
        counts.estimate(Generator::OnePass).fits(self)
    }
}
