//! The worked examples of texts on SSA construction: frontiers, live-in blocks and phi sites must be what
//! `testdata/worked-examples.txt` says.

use std::collections::BTreeSet;

use super::*;
use crate::construction::construct::Construction;
use crate::construction::construct::worked_examples::{Example, Operation, examples, split};
use crate::graphs::certificate::certify;
use crate::graphs::frontier::Frontiers;
use crate::graphs::liveness::Liveness;

/// Blocks in which the slots of an example are written, and those in which they are read before that.
pub(super) fn slots_of(example: &Example<'_>, names: &[&str]) -> SlotBlocks {
    let (mut writes, mut reads) = (vec![], vec![]);
    for (block, name) in (0..).zip(names) {
        let mut written = vec![];
        for op in example.ops(name) {
            match op {
                Operation::Store { slot, .. } => written.push(slot),
                Operation::Load { slot, .. } if written.contains(&slot) => {}
                Operation::Load { slot, .. } => reads.push((block, Slot(slot))),
            }
        }
        writes.extend(written.into_iter().map(|slot| (block, Slot(slot))));
    }
    SlotBlocks::new(example.slots.len(), writes, reads)
}

/// The members of a set that stands in braces, up to where these close.
pub(super) fn members(text: &str) -> BTreeSet<&str> {
    let (members, _) = text.split_once('}').expect("a set ends");
    members.split(", ").filter(|name| !name.is_empty()).collect()
}

fn check_frontiers(example: &Example<'_>, cfg: &Cfg, tree: &DomTree, names: &[&str]) {
    let frontiers = Frontiers::new(cfg, tree).expect("few entries");
    let lines = split(example.lines["frontiers"], ";");
    assert_eq!(lines.len(), names.len());
    for line in lines {
        let (name, set) = line.split_once("={").expect("a block and its frontier");
        let block = names.iter().position(|&other| other == name).expect("a block") as u32;
        let found: BTreeSet<&str> =
            frontiers.of(block).iter().map(|&block| names[block as usize]).collect();
        assert_eq!(found, members(set), "{name} in {}", example.name);
    }
}

fn check_liveness(example: &Example<'_>, cfg: &Cfg, slots: &SlotBlocks, names: &[&str]) {
    let all = Liveness::new(cfg, slots).expect("small");
    let mut one = LiveBlocks::default();
    for (slot, (name, line)) in (0..).map(Slot).zip(&example.slots) {
        let (_, set) = line.split_once("live-in {").expect("the set is there");
        one.compute(cfg, slots.writes(slot), slots.reads(slot));
        for (block, block_name) in (0..).zip(names) {
            let is_live = members(set).contains(block_name);
            assert_eq!(all.is_live_in(block, slot), is_live, "{name} in {block_name}");
            assert_eq!(one.contains(block), is_live, "{name} in {block_name}");
        }
    }
}

#[test]
fn the_worked_examples_come_out_right() {
    let mut placer = SitePlacer::default();
    for example in examples() {
        let (cfg, names) = example.graph();
        let tree = DomTree::semi_nca(&cfg);
        assert_eq!(certify(&cfg, |block| tree.idom(block)), Ok(()));
        let slots = slots_of(&example, &names);
        check_frontiers(&example, &cfg, &tree, &names);
        check_liveness(&example, &cfg, &slots, &names);
        for (pruning, construction) in PRUNINGS.into_iter().zip([
            Construction::Minimal,
            Construction::SemiPruned,
            Construction::Pruned,
        ]) {
            for placement in Placement::ALL {
                placer.place(&cfg, &tree, &slots, pruning, placement).expect("few entries");
                for (slot, found) in (0..).zip(sites(&placer, slots.n_slots())) {
                    let found: BTreeSet<&str> =
                        blocks(found).map(|block| names[block as usize]).collect();
                    let expected = example.sites(construction, slot);
                    assert_eq!(found, expected, "{pruning:?}, slot {slot} of {}", example.name);
                }
            }
        }
    }
}
