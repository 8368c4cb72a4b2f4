//! The removal of redundant sets of phis: those whose operands are all one value or in the set.
//!
//! A trivial phi is a redundant set of one. Larger sets come from loops with several entries: two phis
//! that have each other and `x` as operands both equal `x`, and neither is trivial. The paper
//! (section 3.2, algorithm 5) finds the strongly connected components of the phis, replaces one by a
//! value if it is the only operand from outside, and otherwise does the same with those phis of the
//! component that have no operand from outside. Components may be nested as deep as there are phis, and
//! each level takes a pass, so this is quadratic.
//!
//! Dominators find the same in one pass, in almost linear time. Let a graph have the values as nodes, an
//! edge from each operand to its phi, and edges from a root to all values that are not phis. Then a phi
//! is in a redundant set with the one value `d` outside exactly if `d` strictly dominates it:
//! * If `d` strictly dominates a phi, the set of all phis that `d` strictly dominates is redundant: an
//!   operand of one of them, other than `d`, is also strictly dominated by `d`, since a path to it that
//!   avoids `d` could be made longer to the phi.
//! * Each path from the root to a member of a redundant set enters the set from the one value outside.
//!
//! So the phis that stay are the children of the root, and each other phi is the child of the root that
//! it is below. (A pass of algorithm 5 can leave a phi that is only then trivial, since the set inside
//! its component that made it so was removed after the component was examined.) Phis that no path
//! reaches form a set without any value from outside: they are undefined.

use super::phis::Phis;
use super::{PHI, Values};
use crate::graphs::cfg::{Cfg, ControlFlow};
use crate::graphs::dominators::{DomScratch, DomTree};

/// Memory of the removal, to be reused from function to function.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    /// The node of each phi that is left: they are numbered from 1.
    nodes: Vec<u32>,
    /// The operands that are not phis, sorted; their nodes follow.
    others: Vec<u32>,
    /// The graph with its edges reversed.
    turned: Cfg,
    tree: DomTree,
    dominators: DomScratch,
    /// The child of the root that each node is below, by number in the tree.
    tops: Vec<u32>,
}

/// A graph with its edges reversed.
struct Turned<'a>(&'a Cfg);

impl ControlFlow for Turned<'_> {
    fn n_blocks(&self) -> usize {
        self.0.n_blocks()
    }
    fn entry(&self) -> u32 {
        ROOT
    }
    fn succs(&self, block: u32) -> &[u32] {
        self.0.preds(block)
    }
    fn preds(&self, block: u32) -> &[u32] {
        self.0.succs(block)
    }
}

const ROOT: u32 = 0;

impl Scratch {
    /// Removes all redundant sets among the phis that are left. All of these must have operands, which must
    /// be resolved. Returns the number of removed phis.
    pub(super) fn remove(
        &mut self,
        live: &[u32],
        phis: &mut Phis,
        values: &mut impl Values,
    ) -> usize {
        self.make_graph(live, phis);
        let Scratch { others, turned, tree, dominators, tops, .. } = self;
        tree.compute(&Turned(turned), dominators);
        tops.clear();
        tops.push(ROOT);
        for (number, &idom) in tree.idoms_by_number().iter().enumerate().skip(1) {
            let top = if idom == ROOT { tree.preorder()[number] } else { tops[idom as usize] };
            tops.push(top);
        }
        let mut n_removed = 0;
        for (node, &phi) in (1..).zip(live) {
            let value = match tree.number(node) {
                Some(number) if tops[number as usize] == node => continue,
                Some(number) => match tops[number as usize] as usize - 1 {
                    top if top < live.len() => PHI | live[top],
                    top => others[top - live.len()],
                },
                None => values.undefined(phis.variable(phi)),
            };
            phis.replace(phi, value);
            n_removed += 1;
        }
        phis.leave_alone();
        n_removed
    }

    /// Makes the reversed graph: the operands of a phi are its successors.
    fn make_graph(&mut self, live: &[u32], phis: &Phis) {
        let Scratch { nodes, others, turned, .. } = self;
        nodes.clear();
        nodes.resize(phis.len(), ROOT);
        others.clear();
        for (node, &phi) in (1..).zip(live) {
            nodes[phi as usize] = node;
            others.extend(phis.operands(phi).iter().filter(|&&value| value & PHI == 0));
        }
        others.sort_unstable();
        others.dedup();
        let node = |&value: &u32| match value & PHI {
            0 => {
                let place = others.binary_search(&value).expect("all operands are listed");
                (live.len() + 1 + place) as u32
            }
            _ => nodes[(value & !PHI) as usize],
        };
        const FROM_ROOT: &[u32] = &[ROOT];
        let of_phi = |&phi: &u32| (phis.operands(phi), &[][..]);
        let lists = std::iter::once((&[][..], &[][..]))
            .chain(live.iter().map(of_phi))
            .chain(others.iter().map(|_| (&[][..], FROM_ROOT)));
        let lists =
            lists.map(|(operands, root)| operands.iter().map(node).chain(root.iter().copied()));
        turned.rebuild(ROOT, lists);
    }
}
