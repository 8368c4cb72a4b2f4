//! Names of locals in CLIF, for people and debuggers: nothing is noted unless the function has names.

use std::collections::HashMap;

use cranelift_codegen::ir::{self, ValueLabel};
use slotvm_ssa::ir::entity::{Slot, Value};
use slotvm_ssa::ir::irop::{IrOp, Opcode};

use super::Lowering;
use super::slots::{Frame, Slots};
use crate::lower::abi::CELL_BYTES;

/// The meaning of parts of a function in CLIF.
#[derive(Debug, Default)]
pub(crate) struct ClifNames {
    /// The locals whose values these are.
    pub(crate) values: HashMap<ir::Value, String>,
    /// The places of slots in the frame.
    pub(crate) cells: Vec<String>,
}

impl Lowering<'_, '_> {
    /// Labels a value with the local that has it, for debuggers.
    pub(super) fn label_local(&mut self, value: Value, clif: ir::Value) {
        if let Some(local) = self.func.named_local_of_value(value) {
            self.builder.set_val_label(clif, ValueLabel::from_u32(local));
        }
    }

    /// The locals with names in the frame, if debuggers are to know them.
    pub(super) fn locals_in_frame(&self) -> Vec<(u32, ir::StackSlot, u32)> {
        let Slots::Frame(Frame { slot, cells, .. }) = &self.slots else { return Vec::new() };
        if !self.options.describes_code() {
            return Vec::new();
        }
        let accessed = self.accessed_slots();
        let cells =
            cells.iter().zip(accessed).enumerate().filter(|(_, (_, is_accessed))| *is_accessed);
        let local = |(number, (&cell, _)): (usize, (&u32, bool))| {
            let local = self.func.named_local_of_slot(Slot::new(number))?;
            Some((local, *slot, cell * CELL_BYTES))
        };
        cells.filter_map(local).collect()
    }

    /// The names after the lowering, if the function has any.
    pub(super) fn names(&self) -> Option<ClifNames> {
        let func = self.func;
        func.names.as_ref()?;
        let mut names = ClifNames::default();
        let mut note = |value: Value, name: Option<&str>| {
            if let (Some(&clif), Some(name)) = (self.values.get(value.index()), name) {
                names.values.entry(clif).or_insert_with(|| name.escape_debug().to_string());
            }
        };
        let insts = || func.blocks().flat_map(|block| func.insts(block).iter().copied());
        for block in func.blocks() {
            func.params(block).iter().for_each(|&param| note(param, func.value_name(param)));
        }
        for inst in insts() {
            let read = func.opcode(inst) == Opcode::Ir(IrOp::SlotGet);
            let slot = read.then(|| Slot(func.imm(inst).low()));
            let slot = slot.and_then(|slot| func.slot_name(slot));
            func.results(inst).for_each(|value| note(value, func.value_name(value).or(slot)));
        }
        if let Slots::Frame(Frame { start, cells, .. }) = &self.slots {
            let accessed = self.accessed_slots();
            let texts = cells.iter().zip(func.slot_texts()).zip(accessed);
            let texts = texts.filter(|&(_, is_accessed)| is_accessed);
            let text = |((&cell, slot), _)| match cell {
                0 => format!("{start}: {slot}"),
                _ => format!("{start}+{}: {slot}", cell * CELL_BYTES),
            };
            names.cells.extend(texts.map(text));
        }
        Some(names)
    }
}
