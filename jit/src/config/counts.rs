//! Counters in native code, for reports: how often each block of the IR was executed, and how many reads and writes of
//! slots that was.
//!
//! Code adds to a counter at the start of each block. Which slots a block reads and writes is known when it is lowered, so
//! these have no counters of their own. The counters of a function are memory that its code addresses directly; the module
//! owns both. Additions are not atomic, so instances that run on several threads at once lose some.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The counts of a compiled function, with all functions that were inlined into it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FunctionCounts {
    /// Its number in the module's function index space.
    pub func: u32,
    /// Whether this is the code by which the interpreter goes on in a loop of the function.
    pub is_loop: bool,
    /// The blocks of its IR that were lowered, in the order of their numbers.
    pub blocks: Vec<BlockCounts>,
}

/// The counts of a block of the IR.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockCounts {
    /// Its number in the IR that was lowered.
    pub block: u32,
    /// The function whose bytecode its first instruction was made from: another one where that was inlined.
    pub func: u32,
    /// The code offset of that instruction.
    pub offset: u32,
    /// The number of times that the block was entered.
    pub count: u64,
    /// Loads from slots in the native frame, in all executions of the block.
    pub slot_reads: u64,
    /// Stores to slots in the native frame, in all executions of the block. Those of the entry block include the zeros
    /// that locals start with.
    pub slot_writes: u64,
}

impl FunctionCounts {
    /// The executed loads from slots in the native frame. The optimiser may have removed some in mode
    /// [`MemoryForwarded`](crate::SlotMode::MemoryForwarded).
    pub fn slot_reads(&self) -> u64 {
        self.blocks.iter().map(|block| block.slot_reads).sum()
    }

    /// The executed stores to slots in the native frame, with the same reservation.
    pub fn slot_writes(&self) -> u64 {
        self.blocks.iter().map(|block| block.slot_writes).sum()
    }
}

/// The counters of a module.
#[derive(Debug, Default)]
pub(crate) struct Counters(Mutex<Vec<FunctionCounters>>);

impl Counters {
    /// Adds those of a function that was compiled.
    pub(crate) fn add(&self, counters: FunctionCounters) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(counters);
    }

    /// The counts so far, in the order of functions.
    pub(crate) fn read(&self) -> Vec<FunctionCounts> {
        let counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut counts: Vec<_> = counters.iter().map(FunctionCounters::read).collect();
        counts.sort_by_key(|counts| (counts.func, counts.is_loop));
        counts
    }
}

/// The counters of a function, which its code changes.
#[derive(Debug)]
pub(crate) struct FunctionCounters {
    pub(crate) func: u32,
    pub(crate) is_loop: bool,
    /// By the numbers of blocks, as `counts`.
    blocks: Vec<CountedBlock>,
    counts: Box<[AtomicU64]>,
}

/// A block when it is lowered.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct CountedBlock {
    pub(crate) func: u32,
    pub(crate) offset: u32,
    /// Reads and writes of slots in one execution.
    pub(crate) slot_reads: u64,
    pub(crate) slot_writes: u64,
}

impl FunctionCounters {
    /// Counters of so many blocks.
    pub(crate) fn new(func: u32, is_loop: bool, n_blocks: usize) -> FunctionCounters {
        let counts = (0..n_blocks).map(|_| AtomicU64::new(0)).collect();
        FunctionCounters { func, is_loop, blocks: vec![CountedBlock::default(); n_blocks], counts }
    }

    /// The address of a block's counter, which stays while the counters exist.
    pub(crate) fn address(&self, block: usize) -> usize {
        self.counts[block].as_ptr().expose_provenance()
    }

    /// The record of a block, which lowering fills in.
    pub(crate) fn block(&mut self, block: usize) -> &mut CountedBlock {
        &mut self.blocks[block]
    }

    fn read(&self) -> FunctionCounts {
        let blocks = (0..).zip(&self.blocks).zip(&*self.counts);
        let blocks = blocks.map(|((block, counted), count)| {
            let count = count.load(Ordering::Relaxed);
            BlockCounts {
                block,
                func: counted.func,
                offset: counted.offset,
                count,
                slot_reads: count * counted.slot_reads,
                slot_writes: count * counted.slot_writes,
            }
        });
        FunctionCounts { func: self.func, is_loop: self.is_loop, blocks: blocks.collect() }
    }
}
