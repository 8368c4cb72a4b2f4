//! The other way to make safepoints: references stay in root cells, and calls list all cells.

use std::collections::HashMap;

use slotvm_bytecode::{Imm, ValType, VerifiedModule};

use super::{RootsReport, append, is_safepoint};
use crate::ir::entity::{Block, Inst, Loc, Value};
use crate::ir::irop::{IrOp, Opcode};
use crate::ir::{ALL_ROOT_CELLS, Function};

/// Puts the slots of references, and operands that wait at calls, into root cells.
pub(super) fn keep(f: &mut Function, module: &VerifiedModule) -> RootsReport {
    let mut keeper = Keeper { of_slots: vec![None; f.slots.len()], ..Keeper::default() };
    keeper.give_cells_to_slots(f);
    let old = std::mem::take(&mut f.layout);
    for block in f.blocks() {
        let (start, end) = f.blocks[block.index()].insts;
        let new_start = keeper.layout.len() as u32;
        keeper.block(f, module, block, &old[start as usize..end as usize]);
        f.blocks[block.index()].insts = (new_start, keeper.layout.len() as u32);
    }
    f.layout = keeper.layout;
    f.n_root_cells = keeper.n_of_slots + keeper.n_of_operands_most;
    RootsReport { n_safepoints: keeper.n_safepoints, is_in_memory: true }
}

#[derive(Default)]
struct Keeper {
    of_slots: Vec<Option<u32>>,
    n_of_slots: u32,
    layout: Vec<Inst>,
    n_safepoints: usize,
    /// The place in the block of the instruction that uses a value last.
    last_uses: HashMap<Value, usize>,
    /// The cells of the operands that wait, and free cells for others.
    of_operands: HashMap<Value, u32>,
    free: Vec<u32>,
    n_of_operands: u32,
    /// The most cells of operands in a block.
    n_of_operands_most: u32,
}

impl Keeper {
    fn give_cells_to_slots(&mut self, f: &Function) {
        for &inst in &f.layout {
            if let Opcode::Ir(op) = f.opcode(inst)
                && op.is_slot_access()
                && f.slots[f.imm(inst).low() as usize].ty == ValType::Ref
            {
                let next = self.n_of_slots;
                let cell = &mut self.of_slots[f.imm(inst).low() as usize];
                if cell.is_none() {
                    *cell = Some(next);
                    self.n_of_slots += 1;
                }
            }
        }
    }

    fn block(&mut self, f: &mut Function, module: &VerifiedModule, block: Block, insts: &[Inst]) {
        self.last_uses.clear();
        for (at, &inst) in insts.iter().enumerate() {
            for &value in f.operands(inst) {
                if f.value_type(value) == ValType::Ref {
                    self.last_uses.insert(value, at);
                }
            }
        }
        for edge in f.succ_edges(block) {
            for &value in f.edge_args(edge).iter().filter(|&&v| f.value_type(v) == ValType::Ref) {
                self.last_uses.insert(value, insts.len() - 1);
            }
        }
        // The first safepoint at each place or after it.
        let mut next_safepoints = vec![usize::MAX; insts.len() + 1];
        for (at, &inst) in insts.iter().enumerate().rev() {
            next_safepoints[at] =
                if is_safepoint(f, module, inst) { at } else { next_safepoints[at + 1] };
        }
        self.of_operands.clear();
        self.free.clear();
        self.n_of_operands = 0;
        let params = f.params(block).to_vec();
        let loc = f.loc(insts[0]);
        self.keep_waiting(f, &params, next_safepoints[0], loc);
        for (at, &inst) in insts.iter().enumerate() {
            if f.opcode(inst).is_terminator() {
                self.read_edge_args(f, block, inst);
            }
            self.read_operands(f, inst, at);
            let loc = f.loc(inst);
            let slot_cell = match f.opcode(inst) {
                Opcode::Ir(op) if op.is_slot_access() => self.of_slots[f.imm(inst).low() as usize],
                _ => None,
            };
            if let Some(cell) = slot_cell {
                let is_read = f.opcode(inst) == Opcode::Ir(IrOp::SlotGet);
                let op = if is_read { IrOp::RootGet } else { IrOp::RootSet };
                f.ops[inst.index()] = Opcode::Ir(op);
                f.imms[inst.index()] = Imm::index(cell);
            }
            if is_safepoint(f, module, inst) {
                self.n_safepoints += 1;
                self.emit(f, IrOp::Safepoint, ALL_ROOT_CELLS, &[], &[], loc);
            }
            self.layout.push(inst);
            let results: Vec<Value> = f.results(inst).collect();
            self.keep_waiting(f, &results, next_safepoints[at + 1], loc);
        }
    }

    /// Puts those of some values into cells that are used after the next safepoint.
    fn keep_waiting(&mut self, f: &mut Function, values: &[Value], next: usize, loc: Loc) {
        for &value in values {
            if self.last_uses.get(&value).is_some_and(|&last| last > next) {
                let cell = self.free.pop().unwrap_or_else(|| {
                    self.n_of_operands += 1;
                    self.n_of_operands_most = self.n_of_operands_most.max(self.n_of_operands);
                    self.n_of_slots + self.n_of_operands - 1
                });
                self.of_operands.insert(value, cell);
                self.emit(f, IrOp::RootSet, cell, &[value], &[], loc);
            }
        }
    }

    /// Lets an instruction read its operands that are in cells, and frees the cells of those that it uses last.
    fn read_operands(&mut self, f: &mut Function, inst: Inst, at: usize) {
        if self.of_operands.is_empty() {
            return;
        }
        let (start, len) = f.operands[inst.index()];
        let mut used_up = Vec::new();
        for i in start as usize..(start + len) as usize {
            let value = f.operand_pool[i];
            if let Some(&cell) = self.of_operands.get(&value) {
                let loc = f.loc(inst);
                let current = self.emit(f, IrOp::RootGet, cell, &[], &[ValType::Ref], loc);
                f.operand_pool[i] = current.expect("a cell has a value");
                if self.last_uses[&value] <= at {
                    used_up.push(value);
                }
            }
        }
        // An operand may stand there twice.
        for value in used_up {
            self.free.extend(self.of_operands.remove(&value));
        }
    }

    /// Lets the out-edges of a block carry what is in cells.
    fn read_edge_args(&mut self, f: &mut Function, block: Block, terminator: Inst) {
        for i in f.edge_arg_places(block) {
            if let Some(&cell) = self.of_operands.get(&f.edge_args[i]) {
                let loc = f.loc(terminator);
                let current = self.emit(f, IrOp::RootGet, cell, &[], &[ValType::Ref], loc);
                f.edge_args[i] = current.expect("a cell has a value");
            }
        }
    }

    fn emit(
        &mut self,
        f: &mut Function,
        op: IrOp,
        imm: u32,
        operands: &[Value],
        results: &[ValType],
        loc: Loc,
    ) -> Option<Value> {
        append(f, &mut self.layout, (op, imm), operands, results, loc)
    }
}
