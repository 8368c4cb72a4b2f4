//! Which blocks of a function have run.
//!
//! The first instruction of each block has a handler at first that notes that the block runs, puts the instruction's own
//! handler there, and executes that. So a block that runs again costs nothing. Blocks without instructions of their own
//! start where the next one does, and have run if that has.
//!
//! All threads that run a module do so with the same code. The word of the handler is an atomic that all of them read and
//! write without order: whoever finds the first handler writes the same as any other who does. Who asks what has run may
//! miss what another thread has just begun.

use std::ops::Range;

use super::instr::Instr;

/// The blocks of a function.
#[derive(Debug)]
pub(crate) struct Blocks {
    /// The first slot of each.
    slots: Box<[u32]>,
    /// The handler of each first instruction.
    handlers: Box<[*const ()]>,
    /// The handler that it has until the block has run.
    first: *const (),
}

impl Default for Blocks {
    /// No block is known.
    fn default() -> Blocks {
        Blocks { slots: Box::default(), handlers: Box::default(), first: std::ptr::null() }
    }
}

impl Blocks {
    /// Lets the handler `first` note that blocks run that start at some slots of code, which is in ascending order.
    pub(crate) fn new(instrs: &[Instr], slots: &[u32], first: *const ()) -> Blocks {
        let instrs_of = || slots.iter().map(|&slot| &instrs[slot as usize]);
        let handlers = instrs_of().map(Instr::handler).collect();
        instrs_of().for_each(|instr| instr.set_handler(first));
        Blocks { handlers, slots: slots.into(), first }
    }

    /// Notes that the block runs whose first instruction is at a slot of the code.
    pub(crate) fn note(&self, instrs: &[Instr], slot: usize) {
        let block = self.slots.partition_point(|&start| (start as usize) < slot);
        instrs[slot].set_handler(self.handlers[block]);
    }

    /// The blocks that have never run, in ascending order, as far as they start in one of some ranges of slots, which come in
    /// the order of their starts.
    pub(super) fn never_ran(
        &self,
        instrs: &[Instr],
        ranges: impl Iterator<Item = Range<u32>>,
    ) -> Vec<u32> {
        let mut is_inside = inside(ranges);
        let never_ran = |&(_, slot): &(u32, u32)| {
            is_inside(slot) && instrs[slot as usize].handler() == self.first
        };
        let blocks = (0..).zip(self.slots.iter().copied());
        blocks.filter(never_ran).map(|(block, _)| block).collect()
    }
}

/// Tells of slots, in ascending order, whether they are in one of some ranges, which come in the order of their starts.
pub(super) fn inside(ranges: impl Iterator<Item = Range<u32>>) -> impl FnMut(u32) -> bool {
    let mut ranges = ranges.peekable();
    // The end of the ranges that have begun by now.
    let mut end = 0;
    move |slot| {
        while let Some(range) = ranges.next_if(|range| range.start <= slot) {
            end = end.max(range.end);
        }
        slot < end
    }
}
