//! References into the embedder's heap: root cells in the native frame, and the calls that list them.
//!
//! The cells are a stack slot of their own. A call at which references wait bears the list as a debug tag, which Cranelift
//! carries to the call's return address; there [`RootSite`](crate::code::pctable::RootSite) says where the embedder finds
//! them. Calls are fences for Cranelift's alias analysis, so what is written before one is in memory, and what is
//! read after it comes from there.

use cranelift_codegen::ir::{
    self, DebugTag, InstBuilder, MemFlagsData, StackSlotData, StackSlotKind, types,
};
use slotvm_ssa::ir::entity::{Block, Inst};
use slotvm_ssa::ir::irop::{IrOp, Opcode};
use slotvm_ssa::ir::{ALL_ROOT_CELLS, Function};
use slotvm_ssa::passes::roots::ROOT_CELLS_MAX;

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
        let value = self.get_root_cell(self.func.imm(inst).low());
        self.define_result(inst, value);
    }

    pub(super) fn lower_root_set(&mut self, inst: Inst) {
        let [value] = self.operands(inst);
        self.set_root_cell(self.func.imm(inst).low(), value);
    }

    pub(super) fn get_root_cell(&mut self, cell: u32) -> ir::Value {
        let RootCells { start, flags, .. } = self.some_root_cells();
        self.builder.ins().load(types::I64, flags, start, (cell * CELL_BYTES) as i32)
    }

    pub(super) fn set_root_cell(&mut self, cell: u32, value: ir::Value) {
        let RootCells { start, flags, .. } = self.some_root_cells();
        self.builder.ins().store(flags, value, start, (cell * CELL_BYTES) as i32);
    }

    fn some_root_cells(&self) -> RootCells {
        self.root_cells.expect("the function has root cells")
    }

    /// Lowers a poll at which references wait. Only if it is due are they in their cells.
    pub(super) fn lower_poll_with_roots(&mut self, block: Block, poll: &PollWithRoots<'_>) {
        self.locate(block, poll.poll);
        self.observe_store_before(Opcode::Ir(IrOp::Poll));
        let set =
            |it: &Self, set: &Inst| (it.func.imm(*set).low(), it.value(it.func.operands(*set)[0]));
        let sets: Vec<(u32, ir::Value)> = poll.sets.iter().map(|inst| set(self, inst)).collect();
        let written = |get: &Inst| {
            let cell = self.func.imm(*get).low();
            *sets.iter().rfind(|(set, _)| *set == cell).expect("it was written")
        };
        let gets: Vec<(u32, ir::Value)> = poll.gets.iter().map(written).collect();
        let values = self.poll(Some(poll.list), &sets, &gets);
        for (&get, value) in poll.gets.iter().zip(values) {
            self.define_result(get, value);
        }
    }
}

/// Instructions that write references to root cells, poll, and read them again. Nothing else reads what they write: the cells
/// of a safepoint are read right after it.
pub(super) struct PollWithRoots<'f> {
    sets: &'f [Inst],
    list: u32,
    poll: Inst,
    /// Of cells that were written.
    gets: &'f [Inst],
}

impl<'f> PollWithRoots<'f> {
    /// Those that some instructions of a block begin with, if there are any.
    pub(super) fn first_of(func: &Function, insts: &'f [Inst]) -> Option<PollWithRoots<'f>> {
        let is = |inst: &Inst, op| func.opcode(*inst) == Opcode::Ir(op);
        let cell = |inst: &Inst| func.imm(*inst).low();
        // What lists name one by one.
        let sets_cell = |inst: &&Inst| is(inst, IrOp::RootSet) && cell(inst) < ROOT_CELLS_MAX;
        let most = insts.iter().take(ROOT_CELLS_MAX as usize);
        let n_sets = most.take_while(sets_cell).count();
        let (sets, rest) = insts.split_at(n_sets);
        let &[safepoint, poll, ref rest @ ..] = rest else { return None };
        if n_sets == 0 || !is(&safepoint, IrOp::Safepoint) || !is(&poll, IrOp::Poll) {
            return None;
        }
        // In a form whose references stay in cells, what is written is read by others, too.
        let list = Some(func.imm(safepoint).low()).filter(|&list| list != ALL_ROOT_CELLS)?;
        let written = sets.iter().fold(0_u32, |written, set| written | 1 << cell(set));
        let is_read = |get: &&Inst| {
            is(get, IrOp::RootGet) && cell(get) < ROOT_CELLS_MAX && written >> cell(get) & 1 == 1
        };
        let (gets, after) = rest.split_at(rest.iter().take_while(is_read).count());
        // In slot modes with slots in memory, each read is followed by a write to its slot.
        let mut until_next = after.iter().take_while(|inst| !is(inst, IrOp::Safepoint));
        if until_next.any(|get| is_read(&get)) {
            return None;
        }
        Some(PollWithRoots { sets, list, poll, gets })
    }

    /// The number of instructions.
    pub(super) fn n_insts(&self) -> usize {
        self.sets.len() + 2 + self.gets.len()
    }
}
