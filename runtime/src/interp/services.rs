//! Instructions that concern the whole store and make no calls.

use slotvm_bytecode::{Imm, Op, TrapCode, cost};

use super::drive::Activation;
use crate::error::Stop;

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
                self.charge(op, n)?;
                let old = self.with_store(|s| s.guest_table_grow(instance, low, value, n))?;
                self.push(old.into());
            }
            Op::TableFill => {
                let (len, value, dst) = (self.pop_u32(), self.pop(), self.pop_u32());
                self.charge(op, len)?;
                self.with_store(|s| s.guest_table_fill(instance, low, value, [dst, len]))?;
            }
            Op::TableCopy => {
                let range = self.pop_3();
                self.charge(op, range[2])?;
                self.with_store(|s| s.guest_table_copy(instance, [low, high], range))?;
            }
            Op::TableInit => {
                let range = self.pop_3();
                self.charge(op, range[2])?;
                self.with_store(|s| s.guest_table_init(instance, low, high, range))?;
            }
            Op::ElemDrop => self.store.elem_drop(instance, low),
            Op::MemoryGrow => {
                let pages = self.pop_u32();
                let old = self.with_store(|s| s.memory_grow_of(instance, pages))?;
                self.push(old.into());
            }
            Op::MemoryFill => {
                let range = self.pop_3();
                self.charge(op, range[2])?;
                self.with_store(|s| s.guest_memory_fill(instance, range))?;
            }
            Op::MemoryCopy => {
                let range = self.pop_3();
                self.charge(op, range[2])?;
                self.with_store(|s| s.guest_memory_copy(instance, range))?;
            }
            Op::MemoryInit => {
                let range = self.pop_3();
                self.charge(op, range[2])?;
                self.with_store(|s| s.guest_memory_init(instance, low, range))?;
            }
            Op::DataDrop => self.store.data_drop(instance, low),
            _ => unreachable!("`run` and `drive` execute `{}`", op.mnemonic()),
        }
        Ok(())
    }

    /// Charges for the length of a bulk operation.
    fn charge(&mut self, op: Op, length: u32) -> Result<(), TrapCode> {
        let fuel = cost::bulk_fuel(op, length);
        if self.store.config.fuel.is_some() && !self.store.take_fuel(fuel.into()) {
            return Err(TrapCode::OutOfFuel);
        }
        Ok(())
    }
}
