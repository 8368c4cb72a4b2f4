//! Functions reduced to what SSA construction sees: a control-flow graph whose blocks read and write
//! slots.

use slotvm_ssa::graphs::cfg::{Cfg, ControlFlow};
use slotvm_ssa::graphs::dominators::DomTree;

/// A control-flow graph whose blocks read and write slots. Block 0 is the entry; no edge goes to it.
///
/// Reads are numbered in the order of blocks, then of the accesses in a block.
#[derive(Clone, Debug)]
pub struct SlotGraph {
    /// The name.
    pub name: String,
    /// The number of slots; their numbers are below it.
    pub n_slots: u32,
    /// The blocks.
    pub cfg: Cfg,
    /// Start of the accesses of each block; one more entry than blocks.
    starts: Vec<u32>,
    accesses: Vec<Access>,
}

/// A read or a write.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads a slot.
    Read {
        /// The slot.
        slot: u32,
    },
    /// Writes a slot.
    Write {
        /// The slot.
        slot: u32,
        /// The written value.
        value: Written,
    },
}

/// Value of a write.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// A value that nothing else writes.
    New,
    /// The value of the read with this number, which must dominate the write.
    Read(u32),
}

impl Access {
    /// The slot that is read or written.
    pub fn slot(self) -> u32 {
        match self {
            Access::Read { slot } | Access::Write { slot, .. } => slot,
        }
    }
}

impl SlotGraph {
    /// A graph, and the accesses of each of its blocks.
    ///
    /// # Panics
    /// Panics if the lists are not as many as the blocks.
    pub fn new<L>(
        name: String,
        n_slots: u32,
        cfg: Cfg,
        lists: impl IntoIterator<Item = L>,
    ) -> SlotGraph
    where
        L: IntoIterator<Item = Access>,
    {
        let (mut starts, mut accesses) = (vec![0], Vec::new());
        for list in lists {
            accesses.extend(list);
            starts.push(accesses.len() as u32);
        }
        assert_eq!(starts.len(), cfg.n_blocks() + 1, "each block has a list of accesses");
        SlotGraph { name, n_slots, cfg, starts, accesses }
    }

    /// The number of blocks.
    pub fn n_blocks(&self) -> usize {
        self.cfg.n_blocks()
    }

    /// All accesses, in the order of blocks.
    pub fn all_accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// The accesses of a block, first to last.
    pub fn accesses(&self, block: u32) -> &[Access] {
        let block = block as usize;
        &self.accesses[self.starts[block] as usize..self.starts[block + 1] as usize]
    }

    /// The number of reads.
    pub fn n_reads(&self) -> usize {
        self.accesses.iter().filter(|access| matches!(access, Access::Read { .. })).count()
    }

    /// The first write that writes what a read gave that does not dominate it: its place among all
    /// accesses. Writes in unreachable blocks may write anything.
    pub fn undominated_write(&self) -> Option<usize> {
        let tree = DomTree::semi_nca(&self.cfg);
        let blocks = || (0..self.n_blocks() as u32).map(|block| (block, self.accesses(block)));
        let places =
            blocks().flat_map(|(block, list)| list.iter().map(move |access| (block, access)));
        let mut reads = Vec::new();
        for (place, (block, access)) in places.clone().enumerate() {
            if let Access::Read { .. } = access {
                reads.push((block, place));
            }
        }
        let is_wrong = |place, block, access| match access {
            Access::Write { value: Written::Read(read), .. } if tree.number(block).is_some() => {
                match reads.get(read as usize) {
                    Some(&(from, at)) if from == block => at > place,
                    Some(&(from, _)) => !tree.dominates(from, block),
                    None => true,
                }
            }
            _ => false,
        };
        places.enumerate().position(|(place, (block, &access))| is_wrong(place, block, access))
    }

    /// The same graph, with a new value in each write.
    pub fn without_copies(mut self) -> SlotGraph {
        for access in &mut self.accesses {
            if let Access::Write { value, .. } = access {
                *value = Written::New;
            }
        }
        self
    }

    /// The same graph with its blocks in dominator-tree preorder, as the IR has them, and without the
    /// unreachable ones.
    pub fn numbered(&self) -> SlotGraph {
        let tree = DomTree::semi_nca(&self.cfg);
        let (cfg, _) = tree.renumber(&self.cfg);
        // The numbers of the reads change with the order of blocks.
        let mut first_reads = Vec::with_capacity(self.n_blocks());
        let mut n_reads = 0;
        let count = |block| {
            let list: &[Access] = self.accesses(block);
            list.iter().filter(|access| matches!(access, Access::Read { .. })).count()
        };
        for block in 0..self.n_blocks() as u32 {
            first_reads.push(n_reads);
            n_reads += count(block);
        }
        let mut numbers = vec![0; n_reads];
        let mut number = 0;
        for &block in tree.preorder() {
            let first = first_reads[block as usize];
            for old in &mut numbers[first..first + count(block)] {
                *old = number;
                number += 1;
            }
        }
        let renumber = |access: &Access| match *access {
            Access::Write { slot, value: Written::Read(read) } => {
                Access::Write { slot, value: Written::Read(numbers[read as usize]) }
            }
            other => other,
        };
        let lists = tree.preorder().iter().map(|&block| self.accesses(block).iter().map(renumber));
        SlotGraph::new(self.name.clone(), self.n_slots, cfg, lists)
    }
}
