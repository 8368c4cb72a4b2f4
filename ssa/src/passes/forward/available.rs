//! The places whose content is known at the start of each block.

use super::places::Places;
use crate::ir::Function;
use crate::ir::entity::Block;

/// The effect of a block: the places that it leaves unknown, and then those that it defines.
#[derive(Copy, Clone, Default)]
struct Transfer {
    lost: u64,
    defined: u64,
}

impl Transfer {
    fn apply(self, known: u64) -> u64 {
        known & !self.lost | self.defined
    }
}

/// Finds the greatest solution: a place is known at the start of a block if it is at the end of all blocks before. Each
/// round that changes a block makes one of 64 places unknown there, so the work is linear in the graph.
pub(super) fn available(f: &Function, places: &Places) -> Vec<u64> {
    let transfers: Vec<Transfer> = f.blocks().map(|block| transfer(places, block)).collect();
    let mut at_start = vec![u64::MAX; f.n_blocks()];
    at_start[Function::ENTRY.index()] = 0;
    let mut is_queued = vec![true; f.n_blocks()];
    let mut queue: Vec<Block> = f.blocks().rev().collect();
    while let Some(block) = queue.pop() {
        is_queued[block.index()] = false;
        let at_end = transfers[block.index()].apply(at_start[block.index()]);
        for edge in f.succ_edges(block) {
            let succ = f.edge_dst(edge);
            let known = at_start[succ.index()] & at_end;
            if known != at_start[succ.index()] {
                at_start[succ.index()] = known;
                if !std::mem::replace(&mut is_queued[succ.index()], true) {
                    queue.push(succ);
                }
            }
        }
    }
    at_start
}

fn transfer(places: &Places, block: Block) -> Transfer {
    let mut transfer = Transfer::default();
    for &(_, event) in places.events(block) {
        let (lost, defined) = places.effect(event);
        transfer.lost |= lost;
        transfer.defined = transfer.defined & !lost | defined;
    }
    transfer
}
