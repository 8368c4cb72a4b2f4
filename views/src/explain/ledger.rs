//! The promotion ledger: the outcome for each local and operand, with the phis of each form of SSA.

use std::collections::BTreeMap;

use slotvm_bytecode::VerifiedModule;
use slotvm_ssa::construction::construct::Construction;
use slotvm_ssa::construction::promote::report::{Fate, LocalReport, locals};
use slotvm_ssa::construction::promote::{PromoteOptions, PromotionReport, Scratch, promote_with};
use slotvm_ssa::graphs::frontier::Frontiers;
use slotvm_ssa::graphs::ids::Slot;
use slotvm_ssa::ir::graph::{control_flow, dom_tree};
use slotvm_ssa::ir::{Function, SlotOrigin};

use super::document::{Ledger, LedgerRow, PhiCounts};
use super::films::Phi;
use super::origin_text;
use super::stages::Snapshot;

/// The maximum number of entries of dominance frontiers in a document.
const SHOWN_FRONTIERS_MAX: usize = 50_000;

/// A function after promotion by a construction, with what the report is made of.
struct Promoted {
    function: Function,
    report: PromotionReport,
    scratch: Scratch,
}

impl Promoted {
    fn new(slots: &Function, construction: Construction) -> Promoted {
        let (mut function, mut scratch) = (slots.clone(), Scratch::default());
        let options = PromoteOptions { construction, ..PromoteOptions::default() };
        let report = promote_with(&mut function, options, &mut scratch);
        Promoted { function, report, scratch }
    }

    /// The outcome for each local and operand.
    fn locals(&self, module: &VerifiedModule) -> Vec<LocalReport> {
        locals(&self.function, module, &self.report, &self.scratch)
    }
}

/// Makes the ledger from the slot form that promotion gets, and the phis that it places.
pub(super) fn ledger(module: &VerifiedModule, input: &Snapshot, phis: &[Phi]) -> Ledger {
    let slots = &input.function;
    let outcomes = |construction| {
        let promoted = Promoted::new(slots, construction);
        (promoted.report.too_large.is_none(), promoted.locals(module))
    };
    let [maximal, minimal, semi_pruned, pruned] = [
        Construction::Maximal,
        Construction::Minimal,
        Construction::SemiPruned,
        Construction::Pruned,
    ]
    .map(outcomes);
    let mut phi_blocks: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for phi in phis {
        phi_blocks.entry(phi.slot).or_default().push(input.blocks[phi.block as usize]);
    }
    let keys = slots.slot_keys();
    let rows = pruned.1.iter().enumerate().map(|(row, local)| {
        let slot = local.slot.map(|slot| slot.0);
        // A form that is too large has no phis.
        let count =
            |(is_made, locals): &(bool, Vec<LocalReport>)| is_made.then(|| locals[row].n_phis);
        LedgerRow {
            slot,
            key: slot.map_or_else(String::new, |slot| keys[slot as usize].clone()),
            name: name(module, slots, slot, local.origin),
            ty: local.ty.to_string(),
            origin: origin_text(local.origin),
            promoted: matches!(local.fate, Fate::Promoted(_)),
            reason: local.fate.to_string(),
            reads_removed: local.n_gets,
            writes_removed: local.n_sets,
            phis: PhiCounts {
                maximal: count(&maximal),
                minimal: count(&minimal),
                semi_pruned: count(&semi_pruned),
                pruned: count(&pruned),
            },
            phi_blocks: slot.and_then(|slot| phi_blocks.remove(&slot)).unwrap_or_default(),
        }
    });
    Ledger { rows: rows.collect(), frontiers: frontiers(input) }
}

/// The name of a local, which may have no slot.
fn name(module: &VerifiedModule, f: &Function, slot: Option<u32>, origin: SlotOrigin) -> String {
    let of_local = || match origin {
        SlotOrigin::Local(local) => module.module().names.local(f.func, local),
        _ => None,
    };
    let name = match slot {
        Some(slot) => f.slot_name(Slot(slot)),
        None => of_local(),
    };
    name.unwrap_or_default().to_owned()
}

/// The dominance frontier of each block that has one.
fn frontiers(input: &Snapshot) -> Vec<(u32, Vec<u32>)> {
    let f = &input.function;
    let Ok(frontiers) = Frontiers::new(&control_flow(f), &dom_tree(f)) else { return vec![] };
    if frontiers.n_entries() > SHOWN_FRONTIERS_MAX {
        return vec![];
    }
    let number = |&block: &u32| input.blocks[block as usize];
    let of = |block: u32| {
        let mut all: Vec<u32> = frontiers.of(block).iter().map(number).collect();
        all.sort_unstable();
        (number(&block), all)
    };
    (0..f.n_blocks() as u32).map(of).filter(|(_, all)| !all.is_empty()).collect()
}
