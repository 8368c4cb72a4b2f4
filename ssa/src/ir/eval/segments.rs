//! Active segments.

use slotvm_bytecode::module::SegmentMode;
use slotvm_bytecode::{TrapCode, VerifiedModule};

use super::instantiate::const_value;
use super::state::{Contents, in_bounds};

impl Contents<'_> {
    /// Applies the active segments, and drops them.
    pub(super) fn apply_segments(&mut self, module: &VerifiedModule) -> Result<(), TrapCode> {
        for (i, elem) in module.module().elems.iter().enumerate() {
            let items = match &elem.mode {
                SegmentMode::Active { .. } | SegmentMode::Declared => {
                    std::mem::take(&mut self.elems[i])
                }
                SegmentMode::Passive => continue,
            };
            let SegmentMode::Active { target, offset } = &elem.mode else { continue };
            let start = const_value(offset, &self.globals) as u32;
            let table = &mut self.tables[*target as usize].elems;
            let range = in_bounds(start, items.len() as u32, table.len())
                .ok_or(TrapCode::TableOutOfBounds)?;
            table[range].copy_from_slice(&items);
        }
        for (i, data) in module.module().datas.iter().enumerate() {
            let SegmentMode::Active { offset, .. } = &data.mode else { continue };
            self.datas_dropped[i] = true;
            let start = const_value(offset, &self.globals) as u32;
            let range = in_bounds(start, data.bytes.len() as u32, self.memory.len())
                .ok_or(TrapCode::MemoryOutOfBounds)?;
            self.memory[range].copy_from_slice(&data.bytes);
        }
        Ok(())
    }
}
