//! Slots: in the native frame, or as variables of cranelift-frontend.
//!
//! In the frame each slot has 8 bytes of one stack slot, or 16 for a vector, and all accesses go through one
//! `stack_addr` in the entry block, with the slot's place as the access's static offset: the back end folds both into
//! the addressing mode, and the optimiser has one value to number instead of one for each slot.
//!
//! Slots start as zero. Operand-stack slots and those of inlined functions are written before they are read, and the
//! slots of parameters are written by the entry block, so only those of other locals are zeroed.

use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, StackSlotData, StackSlotKind, types};
use cranelift_frontend::Variable;
use slotvm_bytecode::ValType;
use slotvm_ssa::ir::entity::{Inst, Slot};
use slotvm_ssa::ir::irop::{IrOp, Opcode};
use slotvm_ssa::ir::{SlotData, SlotOrigin};

use super::Lowering;
use crate::config::slot_mode::SlotMode;
use crate::lower::abi::{CELL_BYTES, POINTER, cell_flags, clif_type};

/// Cells of the frame that are zeroed one by one; more are zeroed by a loop.
const UNROLLED_CELLS_MAX: u32 = 32;

/// The representation of the slots of a function.
#[derive(Default)]
pub(super) enum Slots {
    /// All slots are promoted.
    #[default]
    None,
    /// A part of the native frame.
    Frame(Frame),
    /// A variable for each slot that is accessed.
    Variables(Vec<Option<Variable>>),
}

/// The part of the native frame that slots are in.
pub(super) struct Frame {
    pub(super) slot: ir::StackSlot,
    /// Its address.
    pub(super) start: ir::Value,
    /// The cell in it of each slot that is accessed.
    pub(super) cells: Vec<u32>,
}

impl Lowering<'_, '_> {
    /// Creates the slots and their initial values; the entry block is current.
    pub(super) fn start_slots(&mut self) {
        let accessed = self.accessed_slots();
        match self.options.slots {
            SlotMode::Variables => self.start_variables(&accessed),
            // Of promoted functions, only the slots that are kept in memory are accessed.
            SlotMode::Memory | SlotMode::MemoryOpt | SlotMode::MemoryForwarded | SlotMode::Ssa => {
                self.start_frame(&accessed);
            }
        }
    }

    pub(super) fn accessed_slots(&self) -> Vec<bool> {
        let mut accessed = vec![false; self.func.slots.len()];
        for block in self.func.blocks() {
            for &inst in self.func.insts(block) {
                if let Opcode::Ir(IrOp::SlotGet | IrOp::SlotSet) = self.func.opcode(inst) {
                    accessed[self.func.imm(inst).low() as usize] = true;
                }
            }
        }
        accessed
    }

    fn starts_as_zero(&self, slot: &SlotData) -> bool {
        match slot.origin {
            SlotOrigin::Local(local) => local as usize >= self.func.ty.params.len(),
            SlotOrigin::Stack(_) | SlotOrigin::Inlined(_) => false,
        }
    }

    fn start_variables(&mut self, accessed: &[bool]) {
        let mut variables = vec![None; accessed.len()];
        for (i, slot) in self.func.slots.iter().enumerate().filter(|&(i, _)| accessed[i]) {
            let variable = self.builder.declare_var(clif_type(slot.ty));
            if self.starts_as_zero(slot) {
                let zero = self.zero(slot.ty);
                self.builder.def_var(variable, zero);
            }
            variables[i] = Some(variable);
        }
        self.slots = Slots::Variables(variables);
    }

    /// A zero of a type.
    pub(super) fn zero(&mut self, ty: ValType) -> ir::Value {
        let ins = self.builder.ins();
        match ty {
            ValType::F32 => ins.f32const(0.0),
            ValType::F64 => ins.f64const(0.0),
            ValType::V128 => self.vector_constant(0),
            _ => ins.iconst(clif_type(ty), 0),
        }
    }

    /// Lays out the frame, the cells to be zeroed first, and zeroes those.
    fn start_frame(&mut self, accessed: &[bool]) {
        let slots = self.func.slots.iter().enumerate().filter(|&(i, _)| accessed[i]);
        let (zeroed, other): (Vec<_>, Vec<_>) =
            slots.partition(|&(_, slot)| self.starts_as_zero(slot));
        let mut cells = vec![0; accessed.len()];
        let mut n_cells = 0;
        for &(i, slot) in zeroed.iter().chain(&other) {
            cells[i] = n_cells;
            n_cells += slot.ty.cells() as u32;
        }
        let n_zeroed = zeroed.iter().map(|(_, slot)| slot.ty.cells() as u32).sum();
        let bytes = n_cells * CELL_BYTES;
        if bytes == 0 {
            return;
        }
        let data = StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 3);
        let slot = self.builder.create_sized_stack_slot(data);
        let start = self.builder.ins().stack_addr(POINTER, slot, 0);
        self.slots = Slots::Frame(Frame { slot, start, cells });
        let flags = self.frame_flags();
        self.zero_cells(start, n_zeroed, flags);
    }

    pub(super) fn zero_cells(&mut self, start: ir::Value, n_cells: u32, flags: MemFlagsData) {
        if n_cells == 0 {
            return;
        }
        self.note_slots(0, n_cells);
        let zero = self.builder.ins().iconst(types::I64, 0);
        if n_cells <= UNROLLED_CELLS_MAX {
            for cell in 0..n_cells {
                self.builder.ins().store(flags, zero, start, (cell * CELL_BYTES) as i32);
            }
            return;
        }
        let bytes = self.builder.ins().iconst(POINTER, i64::from(n_cells * CELL_BYTES));
        let end = self.builder.ins().iadd(start, bytes);
        let head = self.builder.create_block();
        let done = self.builder.create_block();
        let at = self.builder.append_block_param(head, POINTER);
        self.builder.ins().jump(head, &[start.into()]);
        self.builder.switch_to_block(head);
        self.builder.ins().store(flags, zero, at, 0);
        let step = self.builder.ins().iconst(POINTER, i64::from(CELL_BYTES));
        let next = self.builder.ins().iadd(at, step);
        let at_end = self.builder.ins().icmp(ir::condcodes::IntCC::Equal, next, end);
        self.builder.ins().brif(at_end, done, &[], head, &[next.into()]);
        self.builder.seal_block(head);
        self.builder.switch_to_block(done);
        self.builder.seal_block(done);
    }

    fn frame_flags(&self) -> MemFlagsData {
        MemFlagsData::trusted().with_alias_region(Some(self.regions.frame))
    }

    pub(super) fn lower_slot_get(&mut self, inst: Inst) {
        let slot = Slot(self.func.imm(inst).low());
        let slot_ty = self.func.slots[slot.index()].ty;
        let ty = clif_type(slot_ty);
        let value = match &self.slots {
            Slots::Frame(Frame { start, cells, .. }) => {
                let (start, offset) = (*start, cells[slot.index()] * CELL_BYTES);
                if self.options.slots == SlotMode::MemoryOpt {
                    self.builder.ins().sequence_point();
                }
                self.note_slots(1, 0);
                let flags = cell_flags(slot_ty, self.frame_flags());
                self.builder.ins().load(ty, flags, start, offset as i32)
            }
            Slots::Variables(variables) => {
                let variable = variables[slot.index()].expect("an accessed slot has a variable");
                self.builder.use_var(variable)
            }
            Slots::None => unreachable!("{slot} is read, but all slots are promoted"),
        };
        self.define_result(inst, value);
    }

    pub(super) fn lower_slot_set(&mut self, inst: Inst) {
        let slot = Slot(self.func.imm(inst).low());
        let [value] = self.operands(inst);
        match &self.slots {
            Slots::Frame(Frame { start, cells, .. }) => {
                let (start, offset) = (*start, cells[slot.index()] * CELL_BYTES);
                let ty = self.func.slots[slot.index()].ty;
                self.note_slots(0, 1);
                let flags = cell_flags(ty, self.frame_flags());
                self.builder.ins().store(flags, value, start, offset as i32);
            }
            Slots::Variables(variables) => {
                let variable = variables[slot.index()].expect("an accessed slot has a variable");
                self.builder.def_var(variable, value);
            }
            Slots::None => unreachable!("{slot} is written, but all slots are promoted"),
        }
    }
}
