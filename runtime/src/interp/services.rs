//! The instructions that concern the whole store and call nobody.

use slotvm_bytecode::{Imm, Op, TrapCode};

use super::drive::{Activation, Stop};
use crate::error::Error;

/// Bytes of a bulk memory operation that cost one unit of fuel, as a logarithm.
const MEMORY_BYTES_PER_FUEL_LOG2: u32 = 6;
/// Elements of a bulk table operation that cost one unit of fuel, as a logarithm.
const TABLE_ELEMS_PER_FUEL_LOG2: u32 = 3;

impl Activation<'_> {
    /// Executes an instruction. Bulk operations charge for their length before they start.
    pub(super) fn serve(&mut self, op: Op, imm: Imm) -> Result<(), Stop> {
        let instance = self.instance;
        let (low, high) = (imm.low(), imm.high());
        match op {
            Op::RefFunc => {
                let func = self.store.instance(instance).func_handle(low);
                self.push(func.cell());
            }
            Op::TableGet => {
                let index = self.pop_u32();
                let table = self.store.table_of(instance, low);
                let value = self.store.table(table).get(index)?;
                self.push(value);
            }
            Op::TableSet => {
                let (value, index) = (self.pop(), self.pop_u32());
                self.store.table_fill(instance, low, index, value, 1)?;
            }
            Op::TableSize => {
                let table = self.store.table_of(instance, low);
                let len = self.store.table(table).len();
                self.push(len.into());
            }
            Op::TableGrow => {
                let (n, value) = (self.pop_u32(), self.pop());
                self.charge(n >> TABLE_ELEMS_PER_FUEL_LOG2)?;
                let old = self.store.table_grow_of(instance, low, value, n);
                self.push_old_size(old)?;
            }
            Op::TableFill => {
                let (len, value, dst) = (self.pop_u32(), self.pop(), self.pop_u32());
                self.charge(len >> TABLE_ELEMS_PER_FUEL_LOG2)?;
                self.store.table_fill(instance, low, dst, value, len)?;
            }
            Op::TableCopy => {
                let range = self.pop_3();
                self.charge(range[2] >> TABLE_ELEMS_PER_FUEL_LOG2)?;
                self.store.table_copy(instance, low, high, range)?;
            }
            Op::TableInit => {
                let range = self.pop_3();
                self.charge(range[2] >> TABLE_ELEMS_PER_FUEL_LOG2)?;
                self.store.table_init(instance, low, high, range)?;
            }
            Op::ElemDrop => self.store.elem_drop(instance, low),
            Op::MemoryGrow => {
                let pages = self.pop_u32();
                let old = self.store.memory_grow_of(instance, pages);
                self.push_old_size(old)?;
            }
            Op::MemoryFill => {
                let [dst, byte, len] = self.pop_3();
                self.charge(len >> MEMORY_BYTES_PER_FUEL_LOG2)?;
                self.store.memory_of(instance).fill(dst, byte as u8, len)?;
            }
            Op::MemoryCopy => {
                let [dst, src, len] = self.pop_3();
                self.charge(len >> MEMORY_BYTES_PER_FUEL_LOG2)?;
                self.store.memory_of(instance).copy_within(dst, src, len)?;
            }
            Op::MemoryInit => {
                let range = self.pop_3();
                self.charge(range[2] >> MEMORY_BYTES_PER_FUEL_LOG2)?;
                self.store.memory_init(instance, low, range)?;
            }
            Op::DataDrop => self.store.data_drop(instance, low),
            _ => unreachable!("`run` and `drive` execute `{}`", op.mnemonic()),
        }
        Ok(())
    }

    /// Pushes what growing gives, unless the limiter of the store has failed.
    fn push_old_size(&mut self, old: Result<u32, Error>) -> Result<(), Stop> {
        match old {
            Ok(old) => self.push(old.into()),
            Err(mut error) => {
                self.add_frames(&mut error, true);
                return Err(error.into());
            }
        }
        Ok(())
    }

    fn charge(&mut self, fuel: u32) -> Result<(), TrapCode> {
        if self.store.config.fuel.is_some() && !self.store.take_fuel(fuel.into()) {
            return Err(TrapCode::OutOfFuel);
        }
        Ok(())
    }
}
