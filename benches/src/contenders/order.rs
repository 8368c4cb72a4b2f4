//! The order in which constructions on the fly get to know a function: reverse postorder, each block
//! sealed as soon as all its predecessors are filled.

use slotvm_ssa::graphs::cfg::ControlFlow;

use crate::slot_graph::{Access, SlotGraph};

/// The order in which blocks are filled and sealed.
pub(super) struct Order {
    /// The blocks in reverse postorder, each with the number of blocks to seal once it is filled.
    pub(super) filled: Vec<(u32, u32)>,
    /// Blocks in the order in which they are sealed.
    pub(super) sealed: Vec<u32>,
    /// The number of a block's first read.
    pub(super) first_reads: Vec<u32>,
}

impl Order {
    pub(super) fn new(graph: &SlotGraph) -> Order {
        let mut places = vec![0; graph.n_blocks()];
        let order = reverse_postorder(graph);
        for (place, &block) in (0..).zip(&order) {
            places[block as usize] = place;
        }
        // A block is sealed once the last of its predecessors is filled.
        let last_pred =
            |block: u32| graph.cfg.preds(block).iter().map(|&p| places[p as usize]).max();
        let mut sealed: Vec<(u32, u32)> =
            order.iter().map(|&block| (last_pred(block).unwrap_or(0), block)).collect();
        sealed.sort_by_key(|&(place, _)| place);
        let mut filled: Vec<(u32, u32)> = order.into_iter().map(|block| (block, 0)).collect();
        for &(place, _) in &sealed {
            filled[place as usize].1 += 1;
        }
        let mut n_reads = 0;
        let first_reads = (0..graph.n_blocks() as u32).map(|block| {
            let first = n_reads;
            let is_read = |access: &&Access| matches!(access, Access::Read { .. });
            n_reads += graph.accesses(block).iter().filter(is_read).count() as u32;
            first
        });
        let first_reads = first_reads.collect();
        let sealed = sealed.into_iter().map(|(_, block)| block).collect();
        Order { filled, sealed, first_reads }
    }
}

fn reverse_postorder(graph: &SlotGraph) -> Vec<u32> {
    let mut order = Vec::with_capacity(graph.n_blocks());
    let mut seen = vec![false; graph.n_blocks()];
    let mut open = vec![(0, 0)];
    seen[0] = true;
    while let Some((block, next)) = open.last_mut() {
        match graph.cfg.succs(*block).get(*next) {
            Some(&succ) => {
                *next += 1;
                if !std::mem::replace(&mut seen[succ as usize], true) {
                    open.push((succ, 0));
                }
            }
            None => {
                order.push(*block);
                open.pop();
            }
        }
    }
    order.reverse();
    order
}
