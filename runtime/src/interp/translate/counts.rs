//! Counts of the calls of a function, and of the rounds of its loops.

use slotvm_bytecode::verified::Body;

use super::Translator;
use crate::interp::handlers::table::HandlerCode;
use crate::part::Part;
use crate::steps::code::Count;

/// A block at whose start is counted.
pub(super) struct Counted {
    pub(super) block: u32,
    /// The block after the loop, or after the function.
    end: u32,
    /// The number of the loop that begins there, if one does.
    number: Option<u32>,
    /// The instructions of the loop, or of the function.
    n_insts: u32,
    /// Those of the function.
    n_all: u32,
}

/// The counted blocks of a function, in order: the first one, and those where loops begin.
pub(super) fn of(body: &Body) -> Vec<Counted> {
    let mut before = Vec::with_capacity(body.blocks.len() + 1);
    let mut n_insts = 0_u32;
    for block in &body.blocks {
        before.push(n_insts);
        n_insts = n_insts.saturating_add(block.cost);
    }
    before.push(n_insts);
    let loops = body.loops();
    let n_all = n_insts;
    let first = Counted { block: 0, end: body.blocks.len() as u32, number: None, n_insts, n_all };
    let first = Some(first).filter(|_| loops.first().is_none_or(|first| first.start > 0));
    let loops = (0..).zip(loops).map(|(number, blocks)| Counted {
        block: blocks.start,
        end: blocks.end,
        number: Some(number),
        n_insts: before[blocks.end as usize] - before[blocks.start as usize],
        n_all,
    });
    first.into_iter().chain(loops).collect()
}

impl Translator<'_> {
    /// Counts at the start of a block, where all operands lie in their cells.
    pub(super) fn count(&mut self, Counted { block, end, number, n_insts, n_all }: Counted) {
        let part = match number {
            Some(number) => Part::Loop(self.func, number),
            None => Part::Func(self.func),
        };
        let threshold = self.tiers.map_or(1, |tiers| tiers.threshold(part, n_insts, n_all));
        self.far_end();
        self.emit(HandlerCode::Count, 0, 0, self.counts.len() as u32);
        self.far_begin();
        let threshold = threshold.clamp(1, i32::MAX as u32);
        // Of blocks, until it is known where these start.
        self.counts.push(Count::new(part, n_insts, threshold, block..end));
    }

    /// Lets counts name slots instead of blocks.
    pub(super) fn place_counts(&mut self) {
        let (starts, end) = (&self.starts, self.instrs.len() as u32);
        let slot = |block: u32| starts.get(block as usize).copied().unwrap_or(end);
        for Count { slots, .. } in &mut self.counts {
            *slots = slot(slots.start)..slot(slots.end);
        }
    }
}
