//! The code of a function in the interpreter, and the counts of what it does often.
//!
//! It is made when the function is first called, from verified bytecode (`interp::translate`). It keeps
//! no places of instructions in the bytecode: these are found by translating once more, when the first trap
//! asks for one.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use slotvm_bytecode::refs::WaitingRefs;
use slotvm_bytecode::{ValType, VerifiedModule};

use super::blocks::Blocks;
use super::callees::CallSite;
use super::instr::{Instr, StackOp};
use crate::part::Part;

/// The code of a function in the interpreter.
#[derive(Debug)]
pub(crate) struct FuncCode {
    pub(crate) instrs: Box<[Instr]>,
    pub(crate) stack_ops: Box<[StackOp]>,
    /// The parameters that live in the frame stack: cell, offset in the frame, and bytes.
    pub(crate) frame_params: Box<[(u32, u32, u32)]>,
    /// Whether it shows each instruction to an observer.
    pub(crate) is_traced: bool,
    pub(crate) options: CodeOptions,
    /// The counts of calls of the function and of rounds of its loops, in the order of blocks.
    pub(crate) counts: Box<[Count]>,
    /// The indirect calls for which it waits, in ascending order, if calls and rounds are counted.
    pub(crate) sites: Box<[CallSite]>,
    /// Which blocks have run, if calls and rounds are counted.
    pub(crate) blocks: Blocks,
    /// The code offset of the bytecode instruction that each slot was made from, once somebody has asked.
    pub(crate) offsets: OnceLock<Box<[u32]>>,
    /// Where the interpreter goes on, once native code was left for the function.
    pub(crate) places: OnceLock<Places>,
    /// The cells of references into the embedder's heap, once somebody has asked.
    pub(crate) refs: OnceLock<Box<FrameRefs>>,
}

/// The cells of a frame that hold references into the embedder's heap. Before calls, all operands lie in their cells.
#[derive(Debug)]
pub(crate) struct FrameRefs {
    /// Those of locals, at any time.
    pub(crate) locals: Box<[u32]>,
    /// Those of operands, while the function waits.
    pub(crate) waiting: WaitingRefs,
}

impl FrameRefs {
    pub(super) fn of(module: &VerifiedModule, func: u32) -> FrameRefs {
        let body = module.body(func).expect("the function is defined in the module");
        let locals = (0..).zip(&body.locals).filter(|(_, local)| local.ty == ValType::Ref);
        let locals = locals.map(|(number, _)| body.local_cell(number)).collect();
        FrameRefs { locals, waiting: WaitingRefs::of(module, func) }
    }

    /// The cells of operands that hold references while the function, which is that of these cells, waits at a call.
    pub(crate) fn waiting_at<'a>(
        &'a self,
        module: &'a VerifiedModule,
        func: u32,
        call: u32,
    ) -> impl Iterator<Item = u32> + 'a {
        let body = module.body(func).expect("the function is defined in the module");
        self.waiting.cells_at(module, body, call)
    }

    /// The same while it polls at the start of a block.
    pub(crate) fn polling_at<'a>(
        &'a self,
        module: &'a VerifiedModule,
        func: u32,
        block: u32,
    ) -> impl Iterator<Item = u32> + 'a {
        let body = module.body(func).expect("the function is defined in the module");
        self.waiting.cells_at_start(module, body, block)
    }
}

impl FuncCode {
    /// The number of the slot at an address.
    pub(crate) fn slot(&self, pc: *const Instr) -> usize {
        (pc.addr() - self.instrs.as_ptr().addr()) / size_of::<Instr>()
    }
}

/// Where code of a function in the interpreter goes on.
#[derive(Debug)]
pub(crate) struct Places {
    /// At the start of each block.
    pub(crate) blocks: Box<[BlockStart]>,
    /// After each call that the function waits for, in the order of their code offsets.
    pub(crate) calls: Box<[CallReturn]>,
}

/// Where code of a function in the interpreter goes on after a call.
#[derive(Copy, Clone, Debug)]
pub(crate) struct CallReturn {
    /// The code offset of the call.
    pub(crate) call: u32,
    /// The slot after it.
    pub(crate) slot: u32,
    /// The cell of the frame where that of the callee starts.
    pub(crate) args: u32,
}

/// Where code of a function in the interpreter goes on at the start of a block.
#[derive(Copy, Clone, Debug)]
pub(crate) struct BlockStart {
    /// The slot.
    pub(crate) slot: u32,
    /// The cells whose values the accumulators of integers and of floats have there, if code may take them from these.
    pub(crate) accumulators: [Option<u32>; 2],
}

/// A count of what a program does often.
#[derive(Debug)]
pub(crate) struct Count {
    /// Times that are left until [`Tiers::hot`](super::module_code::Tiers::hot) is told. Threads that run the same code may count less than all: it is no
    /// matter.
    pub(crate) left: AtomicU32,
    pub(crate) part: Part,
    /// The instructions that are executed each time, by estimate.
    pub(crate) n_insts: u32,
    /// The times that will have been counted when none are left.
    pub(crate) due_at: AtomicU32,
    /// The slots of the loop, or of the function.
    pub(crate) slots: Range<u32>,
    /// The number that was left when [`Tiers::hot`](super::module_code::Tiers::hot) had been told, or else 0. It is told again only of what has gone on:
    /// then this is larger than what can be left.
    pub(crate) left_then: AtomicU32,
    /// Native code of the loop, once there is some.
    pub(crate) native: AtomicPtr<u8>,
}

impl Count {
    /// Nothing is counted yet.
    pub(crate) fn new(part: Part, n_insts: u32, threshold: u32, slots: Range<u32>) -> Count {
        Count {
            left: AtomicU32::new(threshold),
            part,
            n_insts,
            due_at: AtomicU32::new(threshold),
            slots,
            left_then: AtomicU32::new(0),
            native: AtomicPtr::default(),
        }
    }

    /// The times that are left.
    pub(crate) fn left(&self) -> u32 {
        let left = self.left.load(Ordering::Relaxed);
        // Threads that run the same code may have counted down beyond 0.
        if left > i32::MAX as u32 { 0 } else { left }
    }

    /// The times that were counted, at least.
    pub(super) fn n_times(&self) -> u32 {
        self.due_at.load(Ordering::Relaxed).saturating_sub(self.left())
    }

    /// Lets so many times be left.
    pub(crate) fn leave(&self, left: u32) {
        let due_at = self.n_times().saturating_add(left);
        self.due_at.store(due_at, Ordering::Relaxed);
        self.left.store(left, Ordering::Relaxed);
    }

    /// Lets no more times be left than that.
    pub(crate) fn hurry(&self, left_max: u32) {
        if self.left() > left_max {
            self.leave(left_max);
        }
    }
}

/// The part of a function that an instruction belongs to: the innermost loop around it, or the function.
pub(crate) fn part_at(counts: &[Count], func: u32, slot: u32) -> Part {
    // Loops inside of others begin later.
    let around = counts.iter().rev().find(|count| count.slots.contains(&slot));
    around.map_or(Part::Func(func), |count| count.part)
}

/// The count of a part, among those of its function in the order of blocks.
pub(super) fn find(counts: &[Count], part: Part) -> Option<&Count> {
    // The function comes first, unless it begins with a loop.
    let key = |part| match part {
        Part::Func(_) => None,
        Part::Loop(_, number) => Some(number),
    };
    let at = counts.binary_search_by_key(&key(part), |count| key(count.part)).ok()?;
    counts.get(at)
}

/// Options of code. All code of a store has the same.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodeOptions {
    /// Blocks charge fuel.
    pub(crate) fuel: bool,
    /// Blocks poll if [`slotvm_bytecode::verified::Block::polls`] is set.
    pub(crate) polls: bool,
    /// Calls take cells from the deterministic call stack.
    pub(crate) stack_cells: bool,
    /// NaNs that arithmetic makes are canonical.
    pub(crate) canonical_nans: bool,
    /// Handlers end with calls that are jumps, see `interp::dispatch`.
    pub(crate) jumps: bool,
    /// Calls and rounds of loops are counted.
    pub(crate) counts: bool,
}
