//! Counters of executed blocks, if the code is to have them ([`crate::config::counts`]).

use cranelift_codegen::ir::{InstBuilder, MemFlagsData, types};
use slotvm_ssa::ir::entity::Block;
use slotvm_ssa::ir::{Entry, Function};

use super::Lowering;
use crate::config::counts::{CountedBlock, FunctionCounters};
use crate::lower::abi::POINTER;

/// The counters of a function that is lowered, if it has any.
pub(super) fn counters(func: &Function) -> FunctionCounters {
    let is_loop = matches!(func.entry, Entry::Frame(_));
    FunctionCounters::new(func.func, is_loop, func.n_blocks())
}

impl Lowering<'_, '_> {
    /// Adds one to the counter of a block, which is current.
    pub(super) fn count_block(&mut self, block: Block) {
        let func = self.func;
        let Some((counters, current)) = &mut self.counters else { return };
        *current = block;
        let counted = counters.block(block.index());
        if let Some(&first) = func.insts(block).first()
            && let Some(loc) = func.locs.get(func.loc(first).index())
        {
            *counted = CountedBlock { func: loc.func, offset: loc.offset, ..*counted };
        }
        let address = counters.address(block.index()) as i64;
        // With a region of its own, so that the optimiser knows as much about all other accesses as it does without.
        let flags = MemFlagsData::trusted().with_alias_region(self.counts_region);
        let address = self.builder.ins().iconst(POINTER, address);
        let count = self.builder.ins().load(types::I64, flags, address, 0);
        let one = self.builder.ins().iconst(types::I64, 1);
        let count = self.builder.ins().iadd(count, one);
        self.builder.ins().store(flags, count, address, 0);
    }

    /// Notes accesses of slots that the current block makes in each execution.
    pub(super) fn note_slots(&mut self, n_reads: u32, n_writes: u32) {
        let Some((counters, block)) = &mut self.counters else { return };
        let counted = counters.block(block.index());
        counted.slot_reads += u64::from(n_reads);
        counted.slot_writes += u64::from(n_writes);
    }
}
