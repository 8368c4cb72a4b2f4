//! Facts that must stay the same under changes of a graph that do not affect them, or hardly.

use std::collections::BTreeSet;

use super::*;
use crate::graphs::frontier::Frontiers;
use crate::graphs::liveness::Liveness;
use crate::graphs::loops::LoopForest;

/// The results of the algorithms on a graph and its slots, by block.
struct Facts {
    tree: DomTree,
    frontiers: Frontiers,
    liveness: Liveness,
    loops: LoopForest,
    /// Sites of each pruning.
    sites: Vec<BTreeSet<(u32, Slot)>>,
}

fn facts(cfg: &Cfg, slots: &SlotBlocks) -> Facts {
    let tree = DomTree::semi_nca(cfg);
    let mut placer = SitePlacer::default();
    let sites = PRUNINGS.iter().map(|&pruning| {
        let by = |placement: &Placement| {
            placer.place(cfg, &tree, slots, pruning, *placement).expect("few entries");
            placer.sites().iter().copied().collect::<BTreeSet<_>>()
        };
        let all: Vec<_> = Placement::ALL.iter().map(by).collect();
        assert!(all.iter().all(|sites| *sites == all[0]));
        all[0].clone()
    });
    Facts {
        sites: sites.collect(),
        frontiers: Frontiers::new(cfg, &tree).expect("few entries"),
        liveness: Liveness::new(cfg, slots).expect("small"),
        loops: LoopForest::new(cfg),
        tree,
    }
}

/// A case: a graph and its slots as sets.
fn cases(seed: u64) -> impl Iterator<Item = (Rng, Cfg, Vec<(Bits, Bits)>)> {
    let mut rng = Rng(seed);
    (0..500).map(move |_| {
        let n = 2 + rng.below(9);
        let cfg = random_graph(&mut rng, n);
        let slots = random_slots(&mut rng, n, 3);
        (Rng(rng.next()), cfg, slots)
    })
}

fn succ_lists(cfg: &Cfg) -> Vec<Vec<u32>> {
    (0..cfg.n_blocks() as u32).map(|block| cfg.succs(block).to_vec()).collect()
}

/// Checks that the blocks of the first graph have in the second one, under new names, all the facts
/// that they have in the first.
fn assert_kept(old: &Facts, new: &Facts, n: u32, slots: u32, block_name: impl Fn(u32) -> u32) {
    for block in 0..n {
        let name = block_name(block);
        assert_eq!(new.tree.number(name).is_some(), old.tree.number(block).is_some());
        for other in 0..n {
            let other_name = block_name(other);
            assert_eq!(new.tree.dominates(name, other_name), old.tree.dominates(block, other));
            let was_in = old.frontiers.of(block).contains(&other);
            assert_eq!(new.frontiers.of(name).contains(&other_name), was_in);
        }
        for slot in (0..slots).map(Slot) {
            let was_live = old.liveness.is_live_in(block, slot);
            assert_eq!(new.liveness.is_live_in(name, slot), was_live);
        }
        assert_eq!(new.loops.depth_of_block(name), old.loops.depth_of_block(block));
    }
    for (old, new) in old.sites.iter().zip(&new.sites) {
        let renamed: BTreeSet<_> = old.iter().map(|&(b, slot)| (block_name(b), slot)).collect();
        assert_eq!(*new, renamed);
    }
}

fn shuffled(rng: &mut Rng, n: u32) -> Vec<u32> {
    let mut order: Vec<u32> = (0..n).collect();
    for i in (1..n).rev() {
        order.swap(i as usize, rng.below(i + 1) as usize);
    }
    order
}

#[test]
fn renumbering_blocks_renames_all_results() {
    for (mut rng, cfg, slots) in cases(61) {
        let n = cfg.n_blocks() as u32;
        let names = shuffled(&mut rng, n);
        let mut lists = vec![vec![]; n as usize];
        for (block, list) in succ_lists(&cfg).into_iter().enumerate() {
            let renamed = list.into_iter().map(|succ| names[succ as usize]);
            lists[names[block] as usize] = renamed.collect();
        }
        let renamed = Cfg::new(names[cfg.entry() as usize], lists);
        let rename = |set| blocks(set).fold(0, |set: Bits, block| set | 1 << names[block as usize]);
        let new_slots: Vec<_> = slots.iter().map(|&(w, r)| (rename(w), rename(r))).collect();
        let old = facts(&cfg, &slot_blocks(&slots));
        let new = facts(&renamed, &slot_blocks(&new_slots));
        assert_kept(&old, &new, n, 3, |block| names[block as usize]);
    }
}

#[test]
fn renumbering_slots_renames_the_slots_of_sites() {
    for (mut rng, cfg, slots) in cases(62) {
        let names = shuffled(&mut rng, 3);
        let mut renamed = slots.clone();
        for (slot, &name) in names.iter().enumerate() {
            renamed[name as usize] = slots[slot];
        }
        let old = facts(&cfg, &slot_blocks(&slots));
        let new = facts(&cfg, &slot_blocks(&renamed));
        for (old, new) in old.sites.iter().zip(&new.sites) {
            let expected: BTreeSet<_> =
                old.iter().map(|&(block, slot)| (block, Slot(names[slot.index()]))).collect();
            assert_eq!(*new, expected);
        }
    }
}

#[test]
fn unreachable_blocks_change_nothing_about_the_others() {
    for (mut rng, cfg, slots) in cases(63) {
        let n = cfg.n_blocks() as u32;
        let mut lists = succ_lists(&cfg);
        let n_more = 1 + rng.below(4);
        for _ in 0..n_more {
            lists.push((0..rng.below(4)).map(|_| rng.below(n + n_more)).collect());
        }
        let larger = Cfg::new(cfg.entry(), lists);
        // They write and read as well.
        let more = (((1u64 << n_more) - 1) & rng.next()) << n;
        let new_slots: Vec<_> = slots.iter().map(|&(w, r)| (w | more, r | more)).collect();
        let old = facts(&cfg, &slot_blocks(&slots));
        let new = facts(&larger, &slot_blocks(&new_slots));
        assert_kept(&old, &new, n, 3, |block| block);
        for block in n..n + n_more {
            assert!(new.tree.number(block).is_none() && new.frontiers.of(block).is_empty());
        }
    }
}

#[test]
fn a_block_on_an_edge_changes_nothing_about_the_others() {
    for (mut rng, cfg, slots) in cases(64) {
        let n = cfg.n_blocks() as u32;
        let mut lists = succ_lists(&cfg);
        let src = rng.below(n);
        if lists[src as usize].is_empty() {
            continue;
        }
        let place = rng.below(lists[src as usize].len() as u32) as usize;
        let dst = std::mem::replace(&mut lists[src as usize][place], n);
        lists.push(vec![dst]);
        let split = Cfg::new(cfg.entry(), lists);
        let old = facts(&cfg, &slot_blocks(&slots));
        let new = facts(&split, &slot_blocks(&slots));
        assert_kept(&old, &new, n, 3, |block| block);
        assert_eq!(new.tree.idom(n), new.tree.number(src).map(|_| src));
        assert!((0..n).all(|block| !new.frontiers.of(block).contains(&n)));
        for slot in (0..3).map(Slot) {
            assert_eq!(new.liveness.is_live_in(n, slot), new.liveness.is_live_in(dst, slot));
        }
    }
}

#[test]
fn an_edge_once_more_changes_nothing() {
    for (mut rng, cfg, slots) in cases(65) {
        let n = cfg.n_blocks() as u32;
        let mut lists = succ_lists(&cfg);
        let list = &mut lists[rng.below(n) as usize];
        if let Some(&succ) = list.get(rng.below(3) as usize) {
            list.insert(rng.below(list.len() as u32 + 1) as usize, succ);
        }
        let doubled = Cfg::new(cfg.entry(), lists);
        let old = facts(&cfg, &slot_blocks(&slots));
        let new = facts(&doubled, &slot_blocks(&slots));
        // Which block is the header of an irreducible loop depends on the order of successors, and
        // so do the loops inside.
        let loops = LoopForest::new(&doubled);
        let is_reducible = !loops.loops().any(|it| loops.is_irreducible(it));
        let old_loops = if is_reducible { old.loops.clone() } else { loops };
        assert_kept(&Facts { loops: old_loops, ..old }, &new, n, 3, |block| block);
    }
}
