//! What is counted in a function: its calls, and the rounds of its loops.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32};

use slotvm_bytecode::verified::Body;

use super::Translator;
use crate::interp::handlers::table::Code;
use crate::steps::code::Count;
use crate::steps::tiers::Part;

/// A block at whose start is counted.
pub(super) struct Counted {
    pub(super) block: u32,
    /// Whether a backward branch leads there.
    is_loop: bool,
    /// The instructions of the function, or from there to the last branch back.
    n_insts: u32,
}

/// The counted blocks of a function, in order: the first one, and all that backward branches lead to.
pub(super) fn of(body: &Body) -> Vec<Counted> {
    // The blocks after the last one that branches back to each.
    let mut ends = vec![0; body.blocks.len()];
    for block in 0..body.blocks.len() {
        for &target in body.succs(block).iter().filter(|&&target| target as usize <= block) {
            ends[target as usize] = block + 1;
        }
    }
    let mut before = Vec::with_capacity(body.blocks.len() + 1);
    let mut n_insts = 0_u32;
    for block in &body.blocks {
        before.push(n_insts);
        n_insts = n_insts.saturating_add(block.cost);
    }
    before.push(n_insts);
    let counted = (0..body.blocks.len()).filter(|&block| block == 0 || ends[block] > 0);
    let counted = counted.map(|block| {
        let is_loop = ends[block] > 0;
        let n_insts = if is_loop { before[ends[block]] - before[block] } else { n_insts };
        Counted { block: block as u32, is_loop, n_insts }
    });
    counted.collect()
}

impl Translator<'_> {
    /// Counts at the start of a block, where all operands lie in their cells.
    pub(super) fn count(&mut self, Counted { block, is_loop, n_insts }: Counted) {
        let part = if is_loop { Part::Loop(self.func, block) } else { Part::Func(self.func) };
        let threshold = self.tiers.map_or(1, |tiers| tiers.threshold(part, n_insts));
        self.far_end();
        self.emit(Code::Count, 0, 0, self.counts.len() as u32);
        self.far_begin();
        let left = AtomicU32::new(threshold.clamp(1, i32::MAX as u32));
        let native = AtomicPtr::new(ptr::null_mut());
        self.counts.push(Count { left, part, n_insts, native });
    }
}
