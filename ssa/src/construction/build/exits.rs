//! Exits: blocks of the bytecode in whose place a form leaves for the interpreter.
//!
//! Where such a block would be entered, the form has a block that reads the slots of the frame and ends with an
//! [exit](crate::ir::irop::IrOp::Exit): before the block's charges, which the interpreter makes. What only such blocks lead
//! to is left out. Exits after calls are made by [`super::speculation`].
//!
//! The frame has the operands of the block, and the locals that the interpreter may read from there on. These are the
//! locals that are live in the bytecode: at the start of a block, operands lie in their own cells in the interpreter, and
//! none is the name of a local. They are more than those of the form, which does not have all of the bytecode.

use std::cell::OnceCell;

use slotvm_bytecode::verified::{Block, Body};
use slotvm_bytecode::{CodeReader, Imm, Op, VerifiedModule};

use super::frame::{FrameSlot, frame_locals, frame_operands};
use super::func_exits::FuncExits;
use super::slots::Slots;
use super::{Builder, rebuild_graph};
use crate::graphs::cfg::Cfg;
use crate::graphs::ids::Slot;
use crate::graphs::liveness::Liveness;
use crate::graphs::slot_blocks::SlotBlocks;
use crate::ir::SlotOrigin;
use crate::ir::frame::{FramePlace, FrameState};
use crate::ir::irop::{IrOp, Opcode};

/// The maximum number of bits for the liveness of locals, one for each local in each block. In a function that would need
/// more, all locals count as live at exits.
const EXIT_LIVE_BITS_MAX: usize = 1 << 22;

/// The exits of a form.
#[derive(Debug)]
pub(super) struct Exits<'e> {
    exits: &'e FuncExits,
    /// The liveness of locals, unless there are too many, once somebody has asked.
    live: OnceCell<Option<Liveness>>,
}

impl<'e> Exits<'e> {
    pub(super) fn new(exits: &'e FuncExits) -> Exits<'e> {
        Exits { exits, live: OnceCell::new() }
    }

    /// Whether a block is an exit.
    pub(super) fn has(&self, block: u32) -> bool {
        self.exits.blocks.binary_search(&block).is_ok()
    }

    /// Whether the indirect call at an offset is compared with functions.
    pub(super) fn has_call(&self, offset: u32) -> bool {
        self.exits.calls.binary_search_by_key(&offset, |call| call.offset).is_ok()
    }

    /// The liveness of the function's locals, unless there are too many.
    pub(super) fn live(&self, module: &VerifiedModule, func: u32) -> Option<&Liveness> {
        self.live.get_or_init(|| live_locals(module, func)).as_ref()
    }
}

/// The blocks among some of a function that exits can replace, which is those whose frames have no more cells than that.
pub fn possible_exits(
    module: &VerifiedModule,
    func: u32,
    mut blocks: Vec<u32>,
    cells_max: u32,
) -> Vec<u32> {
    let body = module.body(func).expect("the function is defined in the module");
    let n_cells = |&block: &u32| {
        let shape = body.blocks[block as usize].shape;
        body.n_local_cells().saturating_add(module.shape_cells(shape))
    };
    blocks.retain(|block| n_cells(block) <= cells_max);
    blocks
}

/// The liveness of the promotable locals of a function, by number.
pub(super) fn live_locals(module: &VerifiedModule, func: u32) -> Option<Liveness> {
    let body = module.body(func).expect("the function is defined in the module");
    let n_locals = body.locals.len();
    if n_locals.saturating_mul(body.blocks.len()) > EXIT_LIVE_BITS_MAX {
        return None;
    }
    let code = &module.func(func).expect("the function is defined in the module").code;
    let (mut writes, mut reads) = (Vec::new(), Vec::new());
    // The last block that wrote each local.
    let mut written_in = vec![None; n_locals];
    for (number, block) in (0..).zip(&body.blocks) {
        for_each_access(body, code, block, |local, is_write| {
            let written_in = &mut written_in[local as usize];
            if *written_in == Some(number) {
                return;
            }
            if is_write {
                *written_in = Some(number);
            }
            let list = if is_write { &mut writes } else { &mut reads };
            list.push((number, Slot(local)));
        });
    }
    let mut graph = Cfg::default();
    rebuild_graph(&mut graph, body, &[], &Exits::new(FuncExits::NONE));
    let slots = SlotBlocks::new(n_locals, writes, reads);
    Some(Liveness::new(&graph, &slots).expect("the limit is below that of liveness"))
}

/// Calls `f` with each local that a block reads or writes, and whether it writes.
pub(super) fn for_each_access(
    body: &Body,
    code: &[u8],
    block: &Block,
    mut f: impl FnMut(u32, bool),
) {
    let mut next_direct = body.direct.partition_point(|direct| direct.offset < block.start);
    let mut reader = CodeReader::new(code, block.start);
    while reader.offset() < block.end {
        let offset = reader.offset();
        let inst = reader.read().expect("verified code decodes");
        match inst.op {
            Op::LocalGet => f(inst.imm.low(), false),
            Op::LocalSet | Op::LocalTee => f(inst.imm.low(), true),
            op => {
                let direct = body.direct.get(next_direct).filter(|direct| direct.offset == offset);
                if let Some(direct) = direct {
                    next_direct += 1;
                    f(direct.local, op.access().is_some_and(|access| access.store));
                }
            }
        }
    }
}

impl<S: Slots> Builder<'_, S> {
    /// Translates a block in whose place the form leaves for the interpreter.
    pub(super) fn exit(&mut self, number: u32) {
        let (body, module) = (self.body, self.module);
        let block = &body.blocks[number as usize];
        self.stack.start(block.shape, module.shape_depth(block.shape));
        self.offset = block.start;
        let (mut places, mut values) = (Vec::new(), Vec::new());
        let live = self.exits.live(module, self.f.func);
        let is_live = |local| live.is_none_or(|live| live.is_live_in(number, Slot(local)));
        let locals = frame_locals(body).filter(|slot| match slot.origin {
            SlotOrigin::Local(local) => is_live(local),
            _ => unreachable!("it is a local"),
        });
        let read: Vec<FrameSlot> = locals.chain(frame_operands(module, body, number)).collect();
        for FrameSlot { origin, ty, cell } in read {
            let slot = match origin {
                SlotOrigin::Local(local) => self.local_slots[local as usize],
                SlotOrigin::Stack(depth) => self.stack.slot(depth, ty, &mut self.f),
                SlotOrigin::Inlined(_) => unreachable!("nothing is inlined yet"),
            };
            places.push(FramePlace::Cell(cell));
            values.push(self.slots.read(&mut self.f, slot, ty, self.offset));
        }
        let exit = Imm::index(self.f.exits.len() as u32);
        let (func, blocks) = (self.f.func, vec![number]);
        self.f.exits.push(FrameState { func, blocks, call: None, places, caller: None });
        self.emit(Opcode::Ir(IrOp::Exit), exit, &values, &[]);
    }
}
