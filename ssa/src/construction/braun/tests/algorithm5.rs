//! The paper's algorithm 5 as published, except for recursion: the oracle for redundant sets.
//!
//! As published it does not find all: removing a set inside a component may leave a phi of the component
//! trivial, or a component that has become redundant. So it is repeated until it finds none.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// The operands of each phi.
type PhiGraph = BTreeMap<u32, Vec<u32>>;

/// Removes redundant sets of phis. The result has what stands for the phis that are gone.
fn remove_redundant_phis(phis: &mut PhiGraph) -> BTreeMap<u32, u32> {
    let mut replaced = BTreeMap::new();
    let mut work: Vec<BTreeSet<u32>> = vec![phis.keys().copied().collect()];
    while let Some(set) = work.pop() {
        // Components come in topological order, operands first.
        for scc in components(phis, &set) {
            let mut outer = BTreeSet::new();
            let mut inner = BTreeSet::new();
            for &phi in &scc {
                let from_outside: Vec<u32> =
                    phis[&phi].iter().copied().filter(|op| !scc.contains(op)).collect();
                if from_outside.is_empty() {
                    inner.insert(phi);
                }
                outer.extend(from_outside);
            }
            match outer.len() {
                1 => {
                    let value = *outer.first().expect("there is one");
                    for phi in &scc {
                        phis.remove(phi);
                        replaced.insert(*phi, value);
                    }
                    for operand in phis.values_mut().flatten() {
                        if scc.contains(operand) {
                            *operand = value;
                        }
                    }
                }
                _ if scc.len() > 1 => work.push(inner),
                _ => {}
            }
        }
    }
    replaced
}

/// The strongly connected components of some of the phis, by Tarjan's algorithm, operands first.
fn components(phis: &PhiGraph, set: &BTreeSet<u32>) -> Vec<BTreeSet<u32>> {
    let mut found = vec![];
    let mut index: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    let (mut stack, mut on_stack) = (vec![], BTreeSet::new());
    for &root in set {
        let mut path = vec![];
        if !index.contains_key(&root) {
            path.push((root, 0));
        }
        while let Some((phi, next)) = path.last_mut() {
            let phi = *phi;
            if *next == 0 {
                let number = index.len() as u32;
                index.insert(phi, (number, number));
                stack.push(phi);
                on_stack.insert(phi);
            }
            if let Some(operand) = phis[&phi].get(*next) {
                *next += 1;
                if set.contains(operand) {
                    if !index.contains_key(operand) {
                        path.push((*operand, 0));
                    } else if on_stack.contains(operand) {
                        let low = index[operand].0;
                        let entry = index.get_mut(&phi).expect("it has a number");
                        entry.1 = entry.1.min(low);
                    }
                }
                continue;
            }
            path.pop();
            let (number, low) = index[&phi];
            if let Some((above, _)) = path.last() {
                let entry = index.get_mut(above).expect("it has a number");
                entry.1 = entry.1.min(low);
            }
            if number == low {
                let start = stack.iter().position(|&other| other == phi).expect("on the stack");
                let scc: BTreeSet<u32> = stack.drain(start..).collect();
                on_stack.retain(|phi| !scc.contains(phi));
                found.push(scc);
            }
        }
    }
    found
}

#[test]
fn dominators_of_phis_find_the_redundant_sets_of_the_paper() {
    let mut rng = Rng(7);
    let (mut n_redundant, mut n_nested, mut n_again) = (0, 0, 0);
    for _ in 0..2_000 {
        let n = 3 + rng.below(20);
        let (cfg, _) = random_numbered_graph(&mut rng, n);
        let mut program = Program::random(&mut rng, cfg, 2);
        for actions in &mut program.actions {
            actions.retain(|action| matches!(action, Do::Read(_)) || rng.one_in(4));
        }
        let options = BraunOptions { scc_removal: false, ..BraunOptions::default() };
        let with_sets = program.construct_in_order(options);
        let without = program.construct_in_order(BraunOptions::default());
        let list = with_sets.phis.iter().flatten();
        let mut phis: PhiGraph = list.map(|(_, value, ops)| (*value, ops.clone())).collect();
        let first_pass: usize = components(&phis, &phis.keys().copied().collect())
            .iter()
            .filter(|scc| {
                let outside = scc.iter().flat_map(|phi| &phis[phi]).filter(|op| !scc.contains(op));
                outside.collect::<BTreeSet<_>>().len() == 1
            })
            .map(BTreeSet::len)
            .sum();
        let mut replaced = remove_redundant_phis(&mut phis);
        loop {
            let again = remove_redundant_phis(&mut phis);
            if again.is_empty() {
                break;
            }
            n_again += again.len();
            replaced.extend(again);
        }
        let left: PhiGraph = without
            .phis
            .iter()
            .flatten()
            .map(|(_, value, operands)| (*value, operands.clone()))
            .collect();
        assert_eq!(left, phis, "{program:?}");
        assert_eq!(replaced.len(), without.report.n_redundant);
        n_redundant += replaced.len();
        n_nested += replaced.len() - first_pass.min(replaced.len());
    }
    let numbers = format!("{n_redundant}, {n_nested} in others, {n_again} when done again");
    assert!(n_redundant > 500 && n_nested > 20 && n_again > 0, "{numbers}");
}
