//! Instructions that concern the whole store and make no calls.
//!
//! Their operands lie on the operand stack.

use slotvm_bytecode::{Imm, Op, TrapCode, cost};

use super::activation::Activation;
use crate::error::Stop;

impl Activation<'_> {
    /// Executes an instruction, with the top of the operand stack below a cell. Bulk operations charge for their
    /// length before they start.
    pub(super) fn serve(&mut self, op: Op, imm: Imm, mut sp: usize) -> Result<(), Stop> {
        let instance = self.instance();
        let sp = &mut sp;
        let (low, high) = (imm.low(), imm.high());
        match op {
            Op::RefFunc => {
                let func = self.store.instance(instance).func_handle(low);
                self.push(sp, func.cell());
            }
            Op::TableGet => {
                let index = self.pop_u32(sp);
                let table = self.store.table_of(instance, low);
                let value = self.store.table(table).get(index)?;
                self.push(sp, value);
            }
            Op::TableSet => {
                let (value, index) = (self.pop(sp), self.pop_u32(sp));
                self.store.table_fill(instance, low, index, value, 1)?;
            }
            Op::TableSize => {
                let table = self.store.table_of(instance, low);
                let len = self.store.table(table).len();
                self.push(sp, len.into());
            }
            Op::TableGrow => {
                let (n, value) = (self.pop_u32(sp), self.pop(sp));
                self.charge(op, n)?;
                let old = self.with_store(|s| s.guest_table_grow(instance, low, value, n))?;
                self.push(sp, old.into());
            }
            Op::TableFill => {
                let (len, value, dst) = (self.pop_u32(sp), self.pop(sp), self.pop_u32(sp));
                self.charge(op, len)?;
                self.with_store(|s| s.guest_table_fill(instance, low, value, [dst, len]))?;
            }
            Op::TableCopy => {
                let range = self.pop_3(sp);
                self.charge(op, range[2])?;
                self.with_store(|s| s.guest_table_copy(instance, [low, high], range))?;
            }
            Op::TableInit => {
                let range = self.pop_3(sp);
                self.charge(op, range[2])?;
                self.with_store(|s| s.guest_table_init(instance, low, high, range))?;
            }
            Op::ElemDrop => self.store.elem_drop(instance, low),
            Op::MemoryGrow => {
                let pages = self.pop_u32(sp);
                let old = self.with_store(|s| s.memory_grow_of(instance, pages))?;
                self.push(sp, old.into());
            }
            Op::MemoryFill => {
                let range = self.pop_3(sp);
                self.charge(op, range[2])?;
                self.with_store(|s| s.guest_memory_fill(instance, range))?;
            }
            Op::MemoryCopy => {
                let range = self.pop_3(sp);
                self.charge(op, range[2])?;
                self.with_store(|s| s.guest_memory_copy(instance, range))?;
            }
            Op::MemoryInit => {
                let range = self.pop_3(sp);
                self.charge(op, range[2])?;
                self.with_store(|s| s.guest_memory_init(instance, low, range))?;
            }
            Op::DataDrop => self.store.data_drop(instance, low),
            _ => unreachable!("`run` and `drive` execute `{}`", op.mnemonic()),
        }
        Ok(())
    }

    fn cell(&mut self, cell: usize) -> &mut u64 {
        let start = self.index(self.state.fp);
        &mut self.store.interp.stack.cells[start + cell]
    }

    fn push(&mut self, sp: &mut usize, value: u64) {
        *self.cell(*sp) = value;
        *sp += 1;
    }

    fn pop(&mut self, sp: &mut usize) -> u64 {
        *sp -= 1;
        *self.cell(*sp)
    }

    fn pop_u32(&mut self, sp: &mut usize) -> u32 {
        self.pop(sp) as u32
    }

    /// Pops three operands, the deepest first.
    fn pop_3(&mut self, sp: &mut usize) -> [u32; 3] {
        let (c, b, a) = (self.pop_u32(sp), self.pop_u32(sp), self.pop_u32(sp));
        [a, b, c]
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
