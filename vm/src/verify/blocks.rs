//! Basic blocks of a function, found while its instructions are passed in order: where blocks start, what they cost, which
//! blocks come after each, and where a program polls.

use crate::limits;
use crate::module::ShapeId;
use crate::verified::Block;

/// Marks a successor that is a label, not yet resolved to a block.
const LABEL_BIT: u32 = 1 << 31;
const _: () = assert!(limits::LABELS_MAX < LABEL_BIT as usize);
const _: () = assert!(limits::CODE_BYTES_MAX < LABEL_BIT as usize);

/// The blocks so far.
#[derive(Debug)]
pub(crate) struct Blocks {
    /// The block that the next instruction belongs to.
    block: Block,
    blocks: Vec<Block>,
    succs: Vec<u32>,
    /// The block at each label, in their order.
    at_labels: Vec<u32>,
}

/// The first block of a function.
const ENTRY: Block = Block {
    start: 0,
    end: 0,
    cost: 0,
    shape: ShapeId::EMPTY,
    label: None,
    polls: true,
    succ_start: 0,
};

impl Default for Blocks {
    fn default() -> Blocks {
        Blocks { block: ENTRY, blocks: Vec::new(), succs: Vec::new(), at_labels: Vec::new() }
    }
}

impl Blocks {
    /// Starts a function, and keeps allocations.
    pub(crate) fn clear(&mut self) {
        self.block = ENTRY;
        self.blocks.clear();
        self.succs.clear();
        self.at_labels.clear();
    }

    /// The number of labels passed.
    pub(crate) fn n_labels(&self) -> usize {
        self.at_labels.len()
    }

    /// Passes the next label, which is at this offset and has this shape. Control may fall into it.
    pub(crate) fn label(&mut self, offset: u32, shape: ShapeId) {
        // The label's block replaces a block without instructions.
        if self.block.cost > 0 {
            self.falls_through();
            self.end(offset, shape);
        }
        self.block.label = Some(self.at_labels.len() as u32);
        self.block.shape = shape;
        self.at_labels.push(self.blocks.len() as u32);
    }

    /// Passes an instruction.
    #[inline]
    pub(crate) fn inst(&mut self) {
        self.block.cost += 1;
    }

    /// Adds a label to the successors of the block.
    #[inline]
    pub(crate) fn branch(&mut self, label: u32) {
        self.succs.push(label | LABEL_BIT);
    }

    /// Adds the next block to the successors of the block.
    #[inline]
    pub(crate) fn falls_through(&mut self) {
        self.succs.push(self.blocks.len() as u32 + 1);
    }

    /// Ends the block at an offset. The next one starts there, with this shape if it has no label.
    pub(crate) fn end(&mut self, offset: u32, shape: ShapeId) {
        self.block.end = offset;
        self.blocks.push(self.block);
        let succ_start = self.succs.len() as u32;
        self.block = Block { start: offset, end: offset, shape, polls: false, succ_start, ..ENTRY };
    }

    /// Returns the blocks and their successors. `number` is the number of a label that was given to
    /// [`Blocks::branch`].
    pub(crate) fn finish(&mut self, number: impl Fn(u32) -> u32) -> (Vec<Block>, Vec<u32>) {
        for succ in &mut self.succs {
            if *succ & LABEL_BIT != 0 {
                *succ = self.at_labels[number(*succ & !LABEL_BIT) as usize];
            }
        }
        mark_polls(&mut self.blocks, &self.succs);
        (self.blocks.clone(), self.succs.clone())
    }
}

/// Marks the targets of backward branches.
fn mark_polls(blocks: &mut [Block], succs: &[u32]) {
    for source in 0..blocks.len() {
        let end = blocks.get(source + 1).map_or(succs.len(), |next| next.succ_start as usize);
        for &target in &succs[blocks[source].succ_start as usize..end] {
            blocks[target as usize].polls |= target as usize <= source;
        }
    }
}
