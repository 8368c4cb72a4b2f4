//! The promotion ledger: the outcome for each local and operand, with the phis of each form of SSA.

use std::collections::BTreeMap;

use slotvm_bytecode::VerifiedModule;
use slotvm_ssa::construction::construct::Construction;
use slotvm_ssa::construction::promote::report::{Fate, locals};
use slotvm_ssa::construction::promote::{PromoteOptions, PromotionReport, Scratch, promote_with};
use slotvm_ssa::graphs::frontier::Frontiers;
use slotvm_ssa::graphs::ids::Slot;
use slotvm_ssa::ir::graph::{control_flow, dom_tree};
use slotvm_ssa::ir::{Function, SlotOrigin};

use super::document::{Ledger, LedgerRow, PhiCounts};
use super::stages::Snapshot;
use super::{films, origin_text};

/// The maximum number of entries of dominance frontiers in a document.
const FRONTIER_ENTRIES_MAX: usize = 50_000;

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

    /// The phis of each local and operand, in the order of the ledger; `None` if the form is too large.
    fn n_phis(&self, module: &VerifiedModule) -> Option<Vec<usize>> {
        let Promoted { function, report, scratch } = self;
        let locals = locals(function, module, report, scratch);
        let n_phis = locals.iter().map(|local| local.n_phis).collect();
        report.too_large.is_none().then_some(n_phis)
    }
}

/// Makes the ledger from the slot form that promotion gets.
pub(super) fn ledger(module: &VerifiedModule, input: &Snapshot) -> Ledger {
    let slots = &input.function;
    let pruned = Promoted::new(slots, Construction::Pruned);
    let counts: Vec<Option<Vec<usize>>> = Construction::ALL
        .iter()
        .map(|&construction| Promoted::new(slots, construction).n_phis(module))
        .collect();
    let count = |form: usize, row: usize| counts[form].as_ref().map(|n_phis| n_phis[row]);
    let slot_of: BTreeMap<(u8, u32), u32> =
        (0..).zip(&slots.slots).map(|(i, slot)| (key(slot.origin), i)).collect();
    let mut phi_blocks: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for phi in films::phis(slots) {
        phi_blocks.entry(phi.slot).or_default().push(input.blocks[phi.block as usize]);
    }
    let keys = slots.slot_keys();
    let rows = locals(&pruned.function, module, &pruned.report, &pruned.scratch);
    let rows = rows.iter().enumerate().map(|(row, local)| {
        let slot = slot_of.get(&key(local.origin)).copied();
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
                maximal: count(0, row),
                minimal: count(1, row),
                semi_pruned: count(2, row),
                pruned: count(3, row),
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

fn key(origin: SlotOrigin) -> (u8, u32) {
    match origin {
        SlotOrigin::Local(local) => (0, local),
        SlotOrigin::Stack(depth) => (1, depth),
        SlotOrigin::Inlined(number) => (2, number),
    }
}

/// The dominance frontier of each block that has one.
fn frontiers(input: &Snapshot) -> Vec<(u32, Vec<u32>)> {
    let f = &input.function;
    let Ok(frontiers) = Frontiers::new(&control_flow(f), &dom_tree(f)) else { return vec![] };
    if frontiers.n_entries() > FRONTIER_ENTRIES_MAX {
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
