//! Goals of promotion, and the rows that miss them.

use slotvm_benches::contenders::cranelift::VARIABLES;
use slotvm_benches::contenders::llvm::MEM2REG;
use slotvm_benches::contenders::ours::PROMOTION;

use super::measure::Row;

/// Nanoseconds for each access of functions from files: the geometric mean, and all together.
const FUNCTIONS_NS_MAX: (f64, f64) = (100.0, 150.0);
/// Nanoseconds for each access in cells of 10 slots, and in irreducible ones.
const FEW_SLOTS_NS_MAX: (f64, f64) = (120.0, 160.0);
/// The same limit in cells of 100 slots and at most 10,000 blocks.
const MORE_SLOTS_NS_MAX: f64 = 400.0;
/// The same limit in structured code of 10,000 blocks with 1,000 slots.
const MANY_SLOTS_NS_MAX: f64 = 1_500.0;
/// Number of blocks from which cells must take less than with cranelift-frontend.
const CRANELIFT_BLOCKS_MIN: u32 = 10_000;
/// Largest growth of the cost, divided by the growth of blocks, accesses and phis.
pub(crate) const GROWTH_MAX: f64 = 1.5;

/// The goals that a row misses, each in words.
pub(crate) fn missed(row: &Row) -> Vec<String> {
    let mut missed = Vec::new();
    let Some(ns) = row.ns(PROMOTION) else {
        return vec!["promotion has a limit that the function exceeds".to_owned()];
    };
    let mut at_most = |what: &str, ns: f64, max: f64| {
        if ns > max {
            missed.push(format!("{ns:.0} ns {what}, not {max:.0}"));
        }
    };
    match &row.cell {
        Some(cell) => {
            if let Some(max) =
                ns_max(cell.family, cell.n_blocks_planned, cell.n_slots, cell.is_irreducible)
            {
                at_most("for each access", ns, max);
            }
        }
        None => {
            let (mean_max, total_max) = FUNCTIONS_NS_MAX;
            let mean = row.figure(PROMOTION).and_then(|figure| figure.mean_ns).unwrap_or(ns);
            at_most("in the geometric mean", mean, mean_max);
            at_most("for each access", ns, total_max);
        }
    }
    let meets_cranelift =
        row.cell.as_ref().is_none_or(|cell| cell.n_blocks_planned >= CRANELIFT_BLOCKS_MIN);
    for (other, counts) in [(MEM2REG, true), (VARIABLES, meets_cranelift)] {
        if let Some(theirs) = row.ns(other)
            && counts
            && theirs <= ns
        {
            missed.push(format!("{ns:.0} ns, {other} {theirs:.0}"));
        }
    }
    if let Some((ours, theirs)) = phis(row)
        && ours != theirs
    {
        missed.push(format!("{ours} phis, {MEM2REG} {theirs}"));
    }
    missed
}

/// The phis of promotion and of LLVM, if both are there; those of LLVM without its folding of undefined
/// and equal values.
pub(crate) fn phis(row: &Row) -> Option<(usize, usize)> {
    let n_phis = |name| row.figure(name).map(|figure| figure.n_phis);
    Some((n_phis(PROMOTION)?, row.n_phis_of_llvm_unfolded.or(n_phis(MEM2REG))?))
}

fn ns_max(family: &str, n_blocks: u32, n_slots: u32, is_irreducible: bool) -> Option<f64> {
    match (n_slots, n_blocks) {
        (..=10, _) if is_irreducible => Some(FEW_SLOTS_NS_MAX.1),
        (..=10, _) => Some(FEW_SLOTS_NS_MAX.0),
        (..=100, ..=10_000) => Some(MORE_SLOTS_NS_MAX),
        (..=1_000, ..=10_000) if family == "structured" => Some(MANY_SLOTS_NS_MAX),
        _ => None,
    }
}

/// Growth of the cost from one row to a larger one, divided by the growth of the size.
pub(crate) fn growth(contender: &str, from: &Row, to: &Row) -> Option<f64> {
    let cost = to.figure(contender)?.seconds / from.figure(contender)?.seconds;
    let size = to.size(contender)? as f64 / from.size(contender)? as f64;
    Some(cost / size)
}
