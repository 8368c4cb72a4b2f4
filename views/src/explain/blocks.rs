//! One number for each block of all stages.
//!
//! Passes number blocks anew. A block of a stage is taken for the block of the stage before that had its first
//! instruction, or else the next instruction that none of its predecessors in order has claimed: instructions keep
//! their ids in all passes. A block without any such instruction is new. So the block that two were merged into keeps
//! the number of the first one, and a copy gets a number of its own.

use slotvm_ssa::ir::Function;
use slotvm_ssa::ir::entity::Block;

/// The number that no block has.
const NONE: u32 = u32::MAX;

/// The numbers given so far.
#[derive(Debug, Default)]
pub(super) struct BlockNumbers {
    /// The block that has each instruction, by the instruction's id.
    of_inst: Vec<u32>,
    /// The label and the code offset of each block when it first came up.
    pub(super) origins: Vec<(Option<u32>, u32)>,
    /// The stage in which a block was seen last, counted from 1.
    seen_in: Vec<u32>,
    n_stages: u32,
}

impl BlockNumbers {
    /// Numbers the blocks of the next stage, in their order.
    pub(super) fn of_stage(&mut self, f: &Function) -> Vec<u32> {
        self.n_stages += 1;
        self.of_inst.resize(f.n_insts().max(self.of_inst.len()), NONE);
        let numbers: Vec<u32> = f.blocks().map(|block| self.of_block(f, block)).collect();
        self.of_inst.fill(NONE);
        for (block, &number) in f.blocks().zip(&numbers) {
            for inst in f.insts(block) {
                self.of_inst[inst.index()] = number;
            }
        }
        numbers
    }

    fn of_block(&mut self, f: &Function, block: Block) -> u32 {
        let known = f.insts(block).iter().map(|inst| self.of_inst[inst.index()]);
        let mut free = known
            .filter(|&number| number != NONE && self.seen_in[number as usize] != self.n_stages);
        let number = free.next().unwrap_or_else(|| {
            self.origins.push((f.label(block), f.block_offset(block)));
            self.seen_in.push(0);
            self.origins.len() as u32 - 1
        });
        self.seen_in[number as usize] = self.n_stages;
        number
    }
}
