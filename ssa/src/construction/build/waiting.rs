//! Values of a frame that the interpreter may read after a call.
//!
//! Native code may be left after an indirect call, whose frame then goes on there. Where a call is inlined and native code is
//! left in its body, the interpreter gets a frame that waits for the callee's, as if it had made the call itself. Both go on
//! after the call, in the middle of a block, where not all operands lie in their own cells: one that is a local is read from
//! the local's cell when it is used. So such a frame has the operands below the arguments, the locals that are live where the
//! block ends, and all that the block mentions. These are some more than are read: an operand can only be a local that its
//! block has read or written.

use slotvm_bytecode::{Imm, Op};

use super::Builder;
use super::exits::for_each_access;
use super::frame::{FrameSlot, frame_locals};
use super::slots::Slots;
use super::stack::Operand;
use crate::graphs::ids::Slot;
use crate::ir::entity::Inst;
use crate::ir::{SlotOrigin, WaitingCall, WaitingValue};

/// The maximum number of cells of a frame that is noted.
const WAITING_CELLS_MAX: u32 = 128;

/// The number of values in the frames of a function after which no more is noted.
const WAITING_VALUES_MAX: usize = 1 << 16;

/// The maximum number of bytes of code of a callee. Bodies of larger ones are compiled whole where they are inlined.
const CALLEE_BYTES_MAX: usize = 1 << 12;

impl<S: Slots> Builder<'_, S> {
    /// Records the values that wait at the next call, with so many operands, if its callee may be inlined and have exits, or if
    /// there may be an exit after it.
    pub(super) fn note_waiting(&mut self, op: Op, imm: Imm, n_operands: usize) {
        let is_noted = match op {
            Op::Call if self.options.waits => {
                let callee = self.module.func(imm.low());
                callee.is_some_and(|func| func.code.len() <= CALLEE_BYTES_MAX)
            }
            Op::CallIndirect => self.exits.has_call(self.offset),
            _ => false,
        };
        let is_large = self.body.n_cells() > WAITING_CELLS_MAX;
        if !is_noted || is_large || self.n_waiting > WAITING_VALUES_MAX {
            return;
        }
        if self.waiting_locals.is_none() {
            self.waiting_locals = self.locals_after();
        }
        let Some(locals) = &self.waiting_locals else { return };
        let local = |slot: &FrameSlot| match slot.origin {
            SlotOrigin::Local(local) => {
                (slot.cell, WaitingValue::Slot(self.local_slots[local as usize]))
            }
            _ => unreachable!("it is a local"),
        };
        let mut values: Vec<(u32, WaitingValue)> = locals.iter().map(local).collect();
        self.touch(n_operands);
        let args = self.waiting_operands(n_operands, &mut values);
        self.n_waiting += values.len();
        let inst = Inst(self.f.n_insts() as u32);
        self.f.waiting.push(WaitingCall { inst, values, args });
    }

    /// The locals that may be read after a call in this block, unless there are too many to know.
    fn locals_after(&self) -> Option<Vec<FrameSlot>> {
        let (body, number) = (self.body, self.number);
        let live = self.exits.live(self.module, self.f.func)?;
        let mut is_read = vec![false; body.locals.len()];
        for_each_access(body, self.code, &body.blocks[number as usize], |local, _| {
            is_read[local as usize] = true;
        });
        for &succ in body.succs(number as usize) {
            for (local, is_read) in (0..).zip(&mut is_read) {
                *is_read |= live.is_live_in(succ, Slot(local));
            }
        }
        let is_read = |slot: &FrameSlot| match slot.origin {
            SlotOrigin::Local(local) => is_read[local as usize],
            _ => unreachable!("it is a local"),
        };
        Some(frame_locals(body).filter(is_read).collect())
    }

    /// The operands below those of a call, which are touched. Returns the cell above them.
    fn waiting_operands(
        &mut self,
        n_operands: usize,
        values: &mut Vec<(u32, WaitingValue)>,
    ) -> u32 {
        let (module, n_local_cells) = (self.module, self.body.n_local_cells());
        let mut cell = n_local_cells + module.shape_cells(self.stack.below());
        let touched = self.stack.operands();
        for operand in &touched[..touched.len() - n_operands] {
            // An address that never exists is in no cell, but takes one.
            let mut n_cells = 1;
            if operand.value != Operand::TOKEN {
                n_cells = self.slots.value_type(&self.f, operand.value).cells() as u32;
                values.push((cell, WaitingValue::Operand(operand.value)));
            }
            cell += n_cells;
        }
        let mut shape = self.stack.below();
        while let Some((below, ty)) = module.shape_top(shape) {
            let slot = self.stack.slot(module.shape_depth(below), ty, &mut self.f);
            values.push((n_local_cells + module.shape_cells(below), WaitingValue::Slot(slot)));
            shape = below;
        }
        cell
    }
}
