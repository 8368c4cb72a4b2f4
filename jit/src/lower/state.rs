//! Globals, tables, references and whole memories: instructions that access state, other than loads and
//! stores.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, types};
use slotvm_bytecode::module::PAGE_BYTES;
use slotvm_bytecode::{Op, TrapCode, ValType};
use slotvm_runtime::native::offsets;
use slotvm_ssa::ir::entity::Inst;

use super::Lowering;
use crate::lower::abi::{CELL_BYTES, POINTER, cell_flags, clif_type};

impl Lowering<'_, '_> {
    pub(super) fn lower_state(&mut self, inst: Inst, op: Op) {
        let imm = self.func.imm(inst);
        let index = imm.low();
        match op {
            Op::GlobalGet => self.lower_global_get(inst, index),
            Op::GlobalSet => self.lower_global_set(inst, index),
            Op::RefFunc => {
                let handle = self.func_handle(index);
                self.define_result(inst, handle);
            }
            Op::TableGet => {
                let [at] = self.operands(inst);
                let entry = self.table_entry(index, at);
                let flags = self.context_flags();
                let value = self.builder.ins().load(types::I64, flags, entry, 0);
                self.define_result(inst, value);
            }
            Op::TableSet => {
                let [at, value] = self.operands(inst);
                let entry = self.table_entry(index, at);
                let flags = self.context_flags();
                self.builder.ins().store(flags, value, entry, 0);
            }
            Op::TableSize => {
                let len = self.table_len(index);
                let len = self.builder.ins().ireduce(types::I32, len);
                self.define_result(inst, len);
            }
            Op::MemorySize => {
                let pages = self.memory_pages();
                self.define_result(inst, pages);
            }
            Op::MemoryGrow => {
                let [pages] = self.operands(inst);
                self.lower_grow(inst, offsets::LIBCALL_MEMORY_GROW, &[pages]);
            }
            Op::TableGrow => {
                let [value, n] = self.operands(inst);
                let table = self.builder.ins().iconst(types::I32, i64::from(index));
                self.lower_grow(inst, offsets::LIBCALL_TABLE_GROW, &[table, value, n]);
            }
            Op::MemoryFill => self.lower_memory_fill(inst),
            Op::MemoryCopy => self.lower_memory_copy(inst),
            Op::DataDrop => self.lower_drop(offsets::LIBCALL_DATA_DROP, index),
            Op::ElemDrop => self.lower_drop(offsets::LIBCALL_ELEM_DROP, index),
            _ => self.lower_bulk(inst, op),
        }
    }

    fn lower_grow(&mut self, inst: Inst, libcall: i32, args: &[ir::Value]) {
        let old = self.libcall(libcall, args, Some(types::I64)).expect("the old size");
        let shift = self.builder.ins().iconst(types::I32, 32);
        let failed = self.builder.ins().ushr(old, shift);
        self.trap_for_host(failed);
        let old = self.builder.ins().ireduce(types::I32, old);
        self.define_result(inst, old);
    }

    fn lower_drop(&mut self, libcall: i32, segment: u32) {
        let segment = self.builder.ins().iconst(types::I32, i64::from(segment));
        self.libcall(libcall, &[segment], None);
    }

    /// The address of a global's value.
    fn global_cell(&mut self, global: u32) -> (ir::Value, i32) {
        let cell = self.module.global_cell(global) as i32;
        let offset = offsets::VMCTX_BYTES + cell * CELL_BYTES as i32;
        if global < self.n_imported_globals {
            (self.constant_pointer(self.context, offset), 0)
        } else {
            (self.context, offset)
        }
    }

    fn lower_global_get(&mut self, inst: Inst, global: u32) {
        let ty = self.module.globals()[global as usize];
        let (cell, offset) = self.global_cell(global);
        // The embedder updates references in immutable globals as well.
        let may_change = ty.mutable || ty.ty == ValType::Ref;
        let flags = if may_change { self.context_flags() } else { self.constant_flags() };
        let flags = cell_flags(ty.ty, flags);
        let value = self.builder.ins().load(clif_type(ty.ty), flags, cell, offset);
        self.define_result(inst, value);
    }

    /// Writes the low half of the cell of a 32-bit global; the high half stays zero.
    fn lower_global_set(&mut self, inst: Inst, global: u32) {
        let [value] = self.operands(inst);
        let (cell, offset) = self.global_cell(global);
        let ty = self.module.globals()[global as usize].ty;
        let flags = cell_flags(ty, self.context_flags());
        self.builder.ins().store(flags, value, cell, offset);
    }

    fn table_base(&mut self, table: u32) -> ir::Value {
        let is_fixed = self.fixed_table_len(table).is_some();
        let table = self.context_array_entry(offsets::VMCTX_TABLES, table);
        if is_fixed {
            return self.constant_pointer(table, offsets::TABLE_BASE);
        }
        let flags = self.context_flags();
        self.builder.ins().load(POINTER, flags, table, offsets::TABLE_BASE)
    }

    fn table_len(&mut self, table: u32) -> ir::Value {
        if let Some(len) = self.fixed_table_len(table) {
            return self.builder.ins().iconst(types::I64, i64::from(len));
        }
        let table = self.context_array_entry(offsets::VMCTX_TABLES, table);
        let flags = self.context_flags();
        self.builder.ins().load(types::I64, flags, table, offsets::TABLE_LEN)
    }

    /// The number of elements of a table whose type lets it have no other, so that it never moves either. An
    /// imported one has it, too, since its limits must lie within those of the import.
    fn fixed_table_len(&self, table: u32) -> Option<u32> {
        let ty = self.module.tables()[table as usize];
        (ty.max == Some(ty.min)).then_some(ty.min)
    }

    /// The address of an element of a table, or a trap if the index is out of bounds.
    /// The handle of a function that has one in each instance.
    fn func_handle(&mut self, func: u32) -> ir::Value {
        self.context_array_entry(offsets::VMCTX_FUNC_HANDLES, func)
    }

    /// Compares a reference with the handle of a function, which exists, so it is not null.
    pub(super) fn lower_ref_is_func(&mut self, inst: Inst) {
        let func = self.func.imm(inst).low();
        debug_assert!(self.module.funcs_with_references().binary_search(&func).is_ok());
        let [reference] = self.operands(inst);
        let handle = self.func_handle(func);
        let is_same = self.builder.ins().icmp(IntCC::Equal, reference, handle);
        let is_same = self.builder.ins().uextend(types::I32, is_same);
        self.define_result(inst, is_same);
    }

    pub(super) fn table_entry(&mut self, table: u32, index: ir::Value) -> ir::Value {
        let len = self.table_len(table);
        let index = self.builder.ins().uextend(POINTER, index);
        let beyond = self.builder.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, index, len);
        self.trap_if(beyond, TrapCode::TableOutOfBounds);
        let base = self.table_base(table);
        let scale = self.builder.ins().iconst(types::I32, i64::from(CELL_BYTES.trailing_zeros()));
        let offset = self.builder.ins().ishl(index, scale);
        self.builder.ins().iadd(base, offset)
    }

    fn memory_pages(&mut self) -> ir::Value {
        let memory = self.memory();
        let flags = self.context_flags();
        let bytes = self.builder.ins().load(types::I64, flags, memory, offsets::MEMORY_BYTES);
        let shift = self.builder.ins().iconst(types::I32, i64::from(PAGE_BYTES.trailing_zeros()));
        let pages = self.builder.ins().ushr(bytes, shift);
        self.builder.ins().ireduce(types::I32, pages)
    }
}
