//! Tests of dominator trees.

use super::*;
use crate::graphs::steps::within;
use crate::tools::testing::{Rng, all_graphs, families, random_graph, reachable, size};

/// Checks the tree against the definition: `a` dominates `b` if `b` can not be reached without
/// going through `a`.
fn check(cfg: &Cfg, tree: &DomTree) {
    let n = cfg.n_blocks() as u32;
    let live = reachable(cfg, cfg.entry(), 0);
    for a in 0..n {
        let is_live = live >> a & 1 == 1;
        let without = reachable(cfg, cfg.entry(), 1 << a);
        for b in 0..n {
            let both = is_live && live >> b & 1 == 1;
            let expected = both && (a == b || without >> b & 1 == 0);
            assert_eq!(tree.dominates(a, b), expected, "{a} dominates {b} in {cfg:?}");
        }
        assert_eq!(tree.number(a).is_some(), is_live);
    }
    check_shape(cfg, tree);
}

/// Checks what the numbering promises, given that dominance is right.
fn check_shape(cfg: &Cfg, tree: &DomTree) {
    assert_eq!(tree.preorder()[0], cfg.entry());
    assert_eq!(tree.level(cfg.entry()), Some(0));
    assert_eq!(tree.idom(cfg.entry()), None);
    for (number, &block) in tree.preorder().iter().enumerate() {
        assert_eq!(tree.number(block), Some(number as u32));
        let Some(idom) = tree.idom(block) else { continue };
        assert!(tree.strictly_dominates(idom, block));
        assert_eq!(tree.level(block), tree.level(idom).map(|level| level + 1));
        // No other strict dominator lies below it, since levels count strict dominators.
        if cfg.n_blocks() <= 64 {
            let dominators = (0..cfg.n_blocks() as u32).filter(|&a| tree.dominates(a, block));
            assert_eq!(tree.level(block), Some(dominators.count() as u32 - 1));
        }
        let earlier = |&pred: &u32| tree.number(pred).is_some_and(|p| p < number as u32);
        assert!(cfg.preds(block).iter().any(earlier), "order of {block} in {cfg:?}");
    }
}

/// Checks that siblings are in reverse postorder, by a recursive search as in a textbook.
fn check_sibling_order(cfg: &Cfg, tree: &DomTree) {
    fn visit(cfg: &Cfg, block: u32, seen: &mut Vec<bool>, postorder: &mut Vec<u32>) {
        seen[block as usize] = true;
        for &target in cfg.succs(block) {
            if !seen[target as usize] {
                visit(cfg, target, seen, postorder);
            }
        }
        postorder.push(block);
    }
    let mut postorder = vec![];
    visit(cfg, cfg.entry(), &mut vec![false; cfg.n_blocks()], &mut postorder);
    let place = |block| postorder.iter().rev().position(|&b| b == block);
    for &a in tree.preorder() {
        for &b in tree.preorder() {
            if tree.idom(a) == tree.idom(b) && tree.number(a) < tree.number(b) {
                assert!(place(a) < place(b), "siblings {a} and {b} in {cfg:?}");
            }
        }
    }
}

#[test]
fn dominators_match_the_definition_on_all_small_graphs() {
    for n in 1..=4 {
        for cfg in all_graphs(n) {
            check(&cfg, &DomTree::semi_nca(&cfg));
            check(&cfg, &DomTree::cooper_harvey_kennedy(&cfg));
        }
    }
}

#[test]
fn dominators_match_the_definition_on_random_graphs() {
    let mut rng = Rng(1);
    let (mut tree, mut scratch) = (DomTree::default(), DomScratch::default());
    for _ in 0..20_000 {
        let n = 1 + rng.below(14);
        let cfg = random_graph(&mut rng, n);
        tree.compute(&cfg, &mut scratch);
        check(&cfg, &tree);
        check(&cfg, &DomTree::cooper_harvey_kennedy(&cfg));
        check_sibling_order(&cfg, &tree);
    }
}

/// A text's iteration stops as soon as the last block of a round has not changed.
#[test]
fn iteration_goes_on_until_no_block_changes() {
    let lists = [vec![1, 4], vec![2], vec![3], vec![2, 4], vec![3, 5], vec![]];
    let cfg = Cfg::new(0, lists);
    for tree in [DomTree::semi_nca(&cfg), DomTree::cooper_harvey_kennedy(&cfg)] {
        let dominators: Vec<u32> = (0..6).filter(|&block| tree.dominates(block, 2)).collect();
        assert_eq!(dominators, [0, 2]);
        check(&cfg, &tree);
    }
}

#[test]
fn numbered_graphs_give_the_same_tree() {
    let mut rng = Rng(3);
    let (mut tree, mut scratch) = (DomTree::default(), DomScratch::default());
    let (mut n_one_pass, mut n_other) = (0, 0);
    for _ in 0..50_000 {
        let n = 1 + rng.below(14);
        let (cfg, expected) = {
            let cfg = random_graph(&mut rng, n);
            DomTree::semi_nca(&cfg).renumber(&cfg)
        };
        tree.compute_numbered(&cfg, &mut scratch);
        assert_eq!(tree.idoms, expected.idoms, "{cfg:?}");
        assert_eq!(tree.levels, expected.levels, "{cfg:?}");
        assert_eq!(tree.ends, expected.ends, "{cfg:?}");
        if tree.find_numbered(&cfg) {
            assert_eq!(tree.idoms, expected.idoms, "{cfg:?}");
            n_one_pass += 1;
        } else {
            n_other += 1;
        }
    }
    assert!(n_one_pass > 10_000 && n_other > 500, "{n_one_pass} {n_other}");
}

#[test]
fn any_preorder_of_the_tree_will_do() {
    let mut rng = Rng(4);
    let (mut tree, mut scratch) = (DomTree::default(), DomScratch::default());
    for _ in 0..20_000 {
        let n = 2 + rng.below(10);
        let cfg = random_graph(&mut rng, n);
        let (cfg, right) = DomTree::semi_nca(&cfg).renumber(&cfg);
        let n = cfg.n_blocks() as u32;
        // Children in order of random keys.
        let keys: Vec<u64> = (0..n).map(|_| rng.next()).collect();
        let mut order = vec![];
        let mut stack = vec![0];
        while let Some(block) = stack.pop() {
            order.push(block);
            let mut children: Vec<u32> = (0..n).filter(|&b| right.idom(b) == Some(block)).collect();
            children.sort_by_key(|&b| keys[b as usize]);
            stack.extend(children);
        }
        let new = |old| order.iter().position(|&b| b == old).unwrap() as u32;
        let lists = order.iter().map(|&old| cfg.succs(old).iter().map(|&succ| new(succ)));
        let shuffled = Cfg::new(0, lists);
        tree.compute_numbered(&shuffled, &mut scratch);
        for old in 0..n {
            assert_eq!(tree.idom(new(old)), right.idom(old).map(new));
            assert_eq!(tree.level(new(old)), right.level(old));
        }
    }
}

#[test]
fn jumps_find_the_same_ancestors_as_the_walk() {
    let mut rng = Rng(2);
    for _ in 0..5_000 {
        let n = 1 + rng.below(40);
        let cfg = random_graph(&mut rng, n);
        let mut numbers = vec![];
        let mut scratch = DomScratch::default();
        scratch.search.run(&cfg, &mut numbers);
        scratch.find_semidominators(&cfg, &numbers);
        scratch.find_idoms();
        let walked = scratch.idoms.clone();
        let rest = 1 + rng.below(scratch.search.vertices.len() as u32) as usize;
        scratch.idoms.truncate(rest);
        scratch.find_idoms_by_jumps(rest);
        assert_eq!(scratch.idoms, walked);
    }
}

#[test]
fn algorithms_agree_on_families() {
    for (name, cfg) in families(2_000) {
        let tree = DomTree::semi_nca(&cfg);
        let other = DomTree::cooper_harvey_kennedy(&cfg);
        assert_eq!(tree.preorder, other.preorder, "{name}");
        assert_eq!(tree.idoms, other.idoms, "{name}");
        check_shape(&cfg, &tree);
    }
}

#[test]
fn steps_on_large_families_are_near_linear() {
    for (name, cfg) in families(400_000) {
        let tree = within(8 * size(&cfg), name, || DomTree::semi_nca(&cfg));
        check_shape(&cfg, &tree);
    }
}
