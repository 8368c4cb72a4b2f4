//! Loads and stores of linear memory.
//!
//! The address is computed in 64 bits and does not wrap: `u64(address) + offset`, or for indexed
//! accesses `u64(base) + (u64(index) << scale) + offset`. Where everything that this can reach lies in
//! the memory's reservation and guard, the access itself faults if it is out of bounds; elsewhere the
//! end of the access is compared with the length before.
//!
//! A store that traps writes nothing. On aarch64 one that reaches from the last page of the memory into
//! the guard may have written its first bytes when it faults, so the last byte that it will write is
//! loaded before. What has been checked needs no probe, and a single byte lies on one page.

use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, types};
use cranelift_frontend::FunctionBuilder;
use slotvm_bytecode::op::Access;
use slotvm_bytecode::{Imm, Op, ValType};
use slotvm_runtime::native::access_end_max;
use slotvm_runtime::native::offsets;
use slotvm_ssa::ir::entity::{Block, Inst};
use target_lexicon::Architecture;

use super::Lowering;
use super::traps::StoredBytes;
use crate::lower::abi::{POINTER, clif_type};

/// A place in linear memory: native address and static offset.
type Place = (ir::Value, i32);

impl Lowering<'_, '_> {
    pub(super) fn lower_access(&mut self, block: Block, inst: Inst, op: Op, access: Access) {
        let imm = self.func.imm(inst);
        let faults = self.options.memory.covers(access_end_max(op, imm));
        if !faults && !self.func.is_in_bounds(inst) {
            if access.indexed && self.has_invariant_base(block, inst) {
                let [base, index] = [0, 1].map(|i| self.extended_operand(inst, i));
                self.check_index(base, index, access, imm);
            } else {
                self.check_bounds(inst, access, imm);
            }
        }
        let place = self.place(inst, access, imm);
        if access.store {
            let value = self.operand(inst, if access.indexed { 2 } else { 1 });
            let flags = if faults { self.faulting_flags() } else { self.checked_flags() };
            if faults && access.bytes > 1 && self.faulting_stores_may_write() {
                self.probe(access, place);
            }
            let stored = StoredBytes { offset: place.1, bytes: access.bytes };
            self.before_store(stored);
            self.store(access, flags, value, place);
            self.unobserved_store = faults.then_some(stored);
        } else if faults && access.is_full() {
            let flags = self.loaded_flags(access.ty, self.func.loc(inst));
            let value = self.load(access, flags, place);
            self.define_result(inst, value);
        } else {
            let flags = if faults { self.faulting_flags() } else { self.checked_flags() };
            let value = self.load(access, flags, place);
            self.define_result(inst, value);
        }
    }

    /// The flags of an access that has been checked.
    pub(super) fn checked_flags(&self) -> MemFlagsData {
        self.memory_flags().with_notrap()
    }

    /// Traps if the access is out of bounds.
    pub(super) fn check_bounds(&mut self, inst: Inst, access: Access, imm: Imm) {
        if !access.indexed && self.is_constant_in_bounds(inst, access, imm) {
            return;
        }
        let mut start = self.extended_operand(inst, 0);
        if access.indexed {
            let index = self.scaled_index(inst, imm);
            start = self.builder.ins().iadd(start, index);
        }
        self.check_end(start, access, imm);
    }

    /// Whether an access of a constant address is in bounds, however small the memory is.
    fn is_constant_in_bounds(&self, inst: Inst, access: Access, imm: Imm) -> bool {
        let end = u64::from(imm.offset()) + u64::from(access.bytes);
        let address = self.constant_value(self.operand(inst, 0));
        address.is_some_and(|address| address + end <= self.memory_bytes_min())
    }

    /// The native address. Base and first operand are added first: in loops over an index they are
    /// invariant.
    pub(super) fn place(&mut self, inst: Inst, access: Access, imm: Imm) -> Place {
        let base = self.memory_base();
        let address = self.extended_operand(inst, 0);
        let place = self.sum(base, address);
        // aarch64 has no access with base, index and constant: there the constant joins the base.
        let joins = access.indexed && !self.has_base_index_constant();
        let (place, offset) = self.with_offset(place, imm.offset(), joins);
        if !access.indexed {
            return (place, offset);
        }
        let index = self.scaled_index(inst, imm);
        (self.builder.ins().iadd(place, index), offset)
    }

    /// Whether a store that faults may have written a part of its bytes.
    pub(super) fn faulting_stores_may_write(&self) -> bool {
        !matches!(self.isa().triple().architecture, Architecture::X86_64)
    }

    /// Faults if the last byte of an access does. Cranelift keeps loads that can trap, whether or not
    /// their value is used.
    pub(super) fn probe(&mut self, access: Access, (address, offset): Place) {
        let flags = self.faulting_flags();
        let last = access.bytes - 1;
        let (address, offset) = self.with_offset(address, offset as u32 + last, false);
        self.builder.ins().uload8(types::I32, flags, address, offset);
    }

    fn has_base_index_constant(&self) -> bool {
        matches!(self.isa().triple().architecture, Architecture::X86_64)
    }

    /// Adds a static offset to an address, unless the access can hold it.
    fn with_offset(&mut self, address: ir::Value, offset: u32, must_add: bool) -> Place {
        match i32::try_from(offset) {
            Ok(0) => (address, 0),
            Ok(offset) if !must_add => (address, offset),
            _ => {
                let offset = self.builder.ins().iconst(POINTER, i64::from(offset));
                (self.builder.ins().iadd(address, offset), 0)
            }
        }
    }

    fn extended_operand(&mut self, inst: Inst, index: usize) -> ir::Value {
        let operand = self.operand(inst, index);
        self.extended(operand)
    }

    fn scaled_index(&mut self, inst: Inst, imm: Imm) -> ir::Value {
        let index = self.extended_operand(inst, 1);
        if imm.scale_log2() == 0 {
            return index;
        }
        let scale = self.builder.ins().iconst(types::I32, i64::from(imm.scale_log2()));
        self.builder.ins().ishl(index, scale)
    }

    /// The definition of memory 0.
    pub(super) fn memory(&mut self) -> ir::Value {
        self.constant_pointer(self.context, offsets::VMCTX_MEMORY)
    }

    /// A load or store at an address of the host, the first operand. Returns what was loaded.
    pub(super) fn lower_host_access(&mut self, inst: Inst, access: Access) -> Option<ir::Value> {
        let flags = self.checked_flags();
        let place = (self.operand(inst, 0), 0);
        if access.store {
            let value = self.operand(inst, 1);
            store(&mut self.builder, access, flags, value, place);
            return None;
        }
        Some(load(&mut self.builder, access, flags, place))
    }

    /// Loads a value, which observes all stores of linear memory.
    fn load(&mut self, access: Access, flags: MemFlagsData, place: Place) -> ir::Value {
        self.unobserved_store = None;
        load(&mut self.builder, access, flags, place)
    }

    fn store(&mut self, access: Access, flags: MemFlagsData, value: ir::Value, place: Place) {
        store(&mut self.builder, access, flags, value, place);
    }
}

/// Loads a value as an access does, whose place is known to be there.
pub(crate) fn load(
    b: &mut FunctionBuilder<'_>,
    access: Access,
    flags: MemFlagsData,
    (address, offset): Place,
) -> ir::Value {
    let (ty, ins) = (clif_type(access.ty), b.ins());
    match (access.bytes, access.signed) {
        _ if access.is_full() => ins.load(ty, flags, address, offset),
        (1, false) => ins.uload8(ty, flags, address, offset),
        (1, true) => ins.sload8(ty, flags, address, offset),
        (2, false) => ins.uload16(ty, flags, address, offset),
        (2, true) => ins.sload16(ty, flags, address, offset),
        (_, false) => ins.uload32(flags, address, offset),
        (_, true) => ins.sload32(flags, address, offset),
    }
}

/// Stores a value as an access does, whose place is known to be there.
pub(crate) fn store(
    b: &mut FunctionBuilder<'_>,
    access: Access,
    flags: MemFlagsData,
    value: ir::Value,
    (address, offset): Place,
) {
    debug_assert!(access.ty != ValType::FuncRef && access.ty != ValType::ExternRef);
    let ins = b.ins();
    match access.bytes {
        _ if access.is_full() => ins.store(flags, value, address, offset),
        1 => ins.istore8(flags, value, address, offset),
        2 => ins.istore16(flags, value, address, offset),
        _ => ins.istore32(flags, value, address, offset),
    };
}
