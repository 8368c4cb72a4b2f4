//! References into the embedder's heap: root cells in the native frame, and the calls that list them.
//!
//! The cells are a stack slot of their own. A call at which references wait bears the list as a debug tag, which Cranelift
//! carries to the call's return address; there [`RootSite`](crate::code::pctable::RootSite) says where the embedder finds
//! them. Calls are fences for Cranelift's alias analysis, so what is written before one is in memory, and what is
//! read after it comes from there.

use cranelift_codegen::ir::{
    self, DebugTag, InstBuilder, MemFlagsData, StackSlotData, StackSlotKind, types,
};
use slotvm_ssa::ir::ALL_ROOT_CELLS;
use slotvm_ssa::ir::entity::Inst;
use slotvm_ssa::ir::irop::{IrOp, Opcode};

use super::{Lowering, Regions};
use crate::lower::abi::{CELL_BYTES, POINTER};

/// The root cells of a function.
#[derive(Copy, Clone)]
pub(super) struct RootCells {
    slot: ir::StackSlot,
    start: ir::Value,
    flags: MemFlagsData,
}

impl Lowering<'_, '_> {
    /// Makes the root cells, if the function has any; the entry block is current. They are null if all of them may be visited
    /// before they are written.
    pub(super) fn start_roots(&mut self) {
        let n_cells = self.func.n_root_cells;
        if n_cells == 0 {
            return;
        }
        let data = StackSlotData::new(StackSlotKind::ExplicitSlot, n_cells * CELL_BYTES, 3);
        let slot = self.builder.create_sized_stack_slot(data);
        let start = self.builder.ins().stack_addr(POINTER, slot, 0);
        let region = Regions::roots(self.builder.func);
        let flags = MemFlagsData::trusted().with_alias_region(Some(region));
        self.root_cells = Some(RootCells { slot, start, flags });
        let lists_all = |&inst: &Inst| {
            self.func.opcode(inst) == Opcode::Ir(IrOp::Safepoint)
                && self.func.imm(inst).low() == ALL_ROOT_CELLS
        };
        if self.func.blocks().any(|block| self.func.insts(block).iter().any(lists_all)) {
            self.zero_cells(start, n_cells, flags);
        }
    }

    /// Keeps the list of a safepoint for the call after it.
    pub(super) fn lower_safepoint(&mut self, inst: Inst) {
        self.safepoint = Some(self.func.imm(inst).low());
    }

    /// Gives a call the list of the safepoint before it, if there was one.
    pub(super) fn list_roots(&mut self, list: Option<u32>, call: ir::Inst) {
        if let Some(list) = list {
            let cells = self.root_cells.expect("a function with safepoints has root cells");
            let tags = [DebugTag::User(list), DebugTag::StackSlot(cells.slot)];
            self.builder.func.debug_tags.set(call, tags);
        }
    }

    pub(super) fn lower_root_get(&mut self, inst: Inst) {
        let (RootCells { start, flags, .. }, at) = self.root_cell(inst);
        let value = self.builder.ins().load(types::I64, flags, start, at);
        self.define_result(inst, value);
    }

    pub(super) fn lower_root_set(&mut self, inst: Inst) {
        let [value] = self.operands(inst);
        let (RootCells { start, flags, .. }, at) = self.root_cell(inst);
        self.builder.ins().store(flags, value, start, at);
    }

    fn root_cell(&self, inst: Inst) -> (RootCells, i32) {
        let cells = self.root_cells.expect("the function has root cells");
        (cells, (self.func.imm(inst).low() * CELL_BYTES) as i32)
    }
}
