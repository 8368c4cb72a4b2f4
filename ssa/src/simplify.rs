//! Simplification of SSA form: what constants decide, and what nothing uses, goes.
//!
//! Relies on SSA form as [`crate::ir`] and [`mod@crate::verify`] describe it, and guarantees it. One round
//! does, in this order:
//! 1. `constants`: pure operations on constants become constants, and branches on constants go one way.
//! 2. `phis`: phis all of whose operands are one value become that value.
//! 3. `unused`: pure instructions and phis go that no effect depends on.
//!
//! Effects stay in their order: traps, charges of fuel, calls, writes and reads of state. An operation that
//! would trap is not computed, and neither is one whose result is a NaN with bits that the machine chooses.
//! A branch that goes one way may free phis, and these constants, so there is another round as long as an
//! edge or a phi went, but no more than [`ROUNDS_MAX`]: each is linear, and what a later one would find is
//! left.

mod constants;
mod phis;
mod unused;

use crate::draft::Draft;
use crate::entity::Value;
use crate::ir::Function;

/// Rounds that a simplification takes at most.
pub const ROUNDS_MAX: usize = 4;

/// What a simplification did.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct SimplificationReport {
    /// Instructions that became constants or one of their operands.
    pub n_folded: usize,
    /// Branches that go one way.
    pub n_branches: usize,
    /// Phis that became their operand.
    pub n_phis: usize,
    /// Instructions and phis that nothing used.
    pub n_unused: usize,
}

/// Simplifies a function in SSA form.
pub fn simplify(f: &mut Function) -> SimplificationReport {
    let mut report = SimplificationReport::default();
    for _ in 0..ROUNDS_MAX {
        let before = report;
        let mut draft = Draft::of(f);
        let mut replacements = Replacements::of(f);
        constants::fold(f, &mut draft, &mut replacements, &mut report);
        if report.n_branches > before.n_branches {
            // The blocks that cannot be reached any more are no predecessors.
            replacements.apply(f, &mut draft);
            draft.put_into(f);
            draft = Draft::of(f);
        }
        report.n_phis += phis::remove(&mut draft, &mut replacements);
        replacements.apply(f, &mut draft);
        report.n_unused += unused::remove(f, &mut draft);
        draft.put_into(f);
        if (report.n_branches, report.n_phis) == (before.n_branches, before.n_phis) {
            break;
        }
    }
    report
}

/// Values that others stand for.
struct Replacements {
    /// A value stands for itself, or for what its entry stands for.
    of_value: Vec<Value>,
}

impl Replacements {
    fn of(f: &Function) -> Replacements {
        Replacements { of_value: (0..f.n_values()).map(Value::new).collect() }
    }

    /// What stands for a value, by path halving.
    fn find(&mut self, mut value: Value) -> Value {
        while self.of_value[value.index()] != value {
            let next = self.of_value[value.index()];
            self.of_value[value.index()] = self.of_value[next.index()];
            value = self.of_value[value.index()];
        }
        value
    }

    /// Lets another value stand for one that stands for itself.
    fn replace(&mut self, value: Value, by: Value) {
        self.of_value[value.index()] = self.find(by);
    }

    /// Rewrites all operands.
    fn apply(&mut self, f: &mut Function, draft: &mut Draft) {
        for operand in &mut f.operand_pool {
            *operand = self.find(*operand);
        }
        let edges = draft.blocks.iter_mut().flat_map(|block| &mut block.edges);
        for arg in edges.flat_map(|edge| &mut edge.args) {
            *arg = self.find(*arg);
        }
    }
}

#[cfg(test)]
mod tests;
