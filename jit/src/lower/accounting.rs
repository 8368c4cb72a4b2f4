//! Fuel, polling and stack accounting.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, BlockArg, InstBuilder, types};
use slotvm_bytecode::TrapCode;
use slotvm_runtime::native::offsets;
use slotvm_ssa::ir::entity::Inst;

use super::Lowering;
use crate::lower::abi::{self, CELL_BYTES, POINTER};

/// Bytes of a frame in linear memory that are zeroed one cell after the other; the runtime zeroes
/// larger ones.
const UNROLLED_BYTES_MAX: u32 = 128;

impl Lowering<'_, '_> {
    pub(super) fn lower_fuel(&mut self, inst: Inst) {
        let amount = self.func.imm(inst).0 as i64;
        let amount = self.builder.ins().iconst(types::I64, amount);
        self.take(offsets::SHARED_FUEL, amount, TrapCode::OutOfFuel);
    }

    pub(super) fn lower_fuel_bulk(&mut self, inst: Inst) {
        let [length] = self.operands(inst);
        let length = self.builder.ins().uextend(types::I64, length);
        let shift = self.builder.ins().iconst(types::I32, self.func.imm(inst).0 as i64);
        let amount = self.builder.ins().ushr(length, shift);
        self.take(offsets::SHARED_FUEL, amount, TrapCode::OutOfFuel);
    }

    /// Compares the epoch with the store's word for it, and calls the runtime if it has come to that.
    ///
    /// Other threads write both words, so each poll has to read them anew. The call sees to that: where it
    /// comes back, the optimiser knows nothing of memory any more, so that in a loop no poll has the
    /// values of another one. And it may do whatever a call of the host may. Neither costs the path without
    /// the call an instruction; nor does it cost registers, as it [keeps](abi::poll_signature) them.
    pub(super) fn lower_poll(&mut self) {
        let list = self.safepoint.take();
        self.poll(list, &[], &[]);
    }

    /// Polls, and lets the embedder visit the root cells of a list, if there is one. The code that is left out of the path
    /// writes the first values to their cells, and reads the others. Returns these: where no poll is due, the CLIF values
    /// that they are given with.
    pub(super) fn poll(
        &mut self,
        list: Option<u32>,
        sets: &[(u32, ir::Value)],
        gets: &[(u32, ir::Value)],
    ) -> Vec<ir::Value> {
        let shared = self.shared();
        let epoch = self.constant_pointer(shared, offsets::SHARED_EPOCH);
        let poll_at = self.constant_pointer(shared, offsets::SHARED_POLL_AT);
        let flags = self.context_flags();
        let epoch = self.builder.ins().load(types::I64, flags, epoch, 0);
        let poll_at = self.builder.ins().load(types::I64, flags, poll_at, 0);
        let is_due = IntCC::UnsignedGreaterThanOrEqual;
        let is_due = self.builder.ins().icmp(is_due, epoch, poll_at);
        let (due, next) = (self.builder.create_block(), self.builder.create_block());
        self.builder.set_cold_block(due);
        let held: Vec<BlockArg> = gets.iter().map(|&(_, value)| value.into()).collect();
        let values: Vec<ir::Value> =
            gets.iter().map(|_| self.builder.append_block_param(next, types::I64)).collect();
        self.builder.ins().brif(is_due, due, &[], next, &held);
        self.builder.seal_block(due);
        self.builder.switch_to_block(due);
        for &(cell, value) in sets {
            self.set_root_cell(cell, value);
        }
        // Not as constants: the optimiser would load those before the loop, into registers.
        let shared = self.builder.ins().load(POINTER, flags, self.context, offsets::VMCTX_SHARED);
        let code = self.builder.ins().load(POINTER, flags, shared, offsets::SHARED_POLL);
        let signature = self.poll_signature();
        let call = self.builder.ins().call_indirect(signature, code, &[self.context]);
        self.list_roots(list, call);
        self.load_extent();
        let read: Vec<BlockArg> =
            gets.iter().map(|&(cell, _)| self.get_root_cell(cell).into()).collect();
        self.builder.ins().jump(next, &read);
        self.builder.seal_block(next);
        self.builder.switch_to_block(next);
        values
    }

    fn poll_signature(&mut self) -> ir::SigRef {
        let builder = &mut self.builder;
        *self.poll_signature.get_or_insert_with(|| builder.import_signature(abi::poll_signature()))
    }

    pub(super) fn lower_stack_push(&mut self, inst: Inst) {
        let cells = self.builder.ins().iconst(types::I64, self.func.imm(inst).0 as i64);
        self.take(offsets::SHARED_STACK_CELLS, cells, TrapCode::StackOverflow);
    }

    pub(super) fn lower_stack_pop(&mut self, inst: Inst) {
        let shared = self.shared();
        let flags = self.context_flags();
        let left = self.builder.ins().load(types::I64, flags, shared, offsets::SHARED_STACK_CELLS);
        let cells = self.builder.ins().iconst(types::I64, self.func.imm(inst).0 as i64);
        let left = self.builder.ins().iadd(left, cells);
        self.builder.ins().store(flags, left, shared, offsets::SHARED_STACK_CELLS);
    }

    /// Subtracts from a counter of the store, or traps, with nothing subtracted, if that would make
    /// it negative. The amount is not negative, so the subtraction does not overflow.
    fn take(&mut self, counter: i32, amount: ir::Value, code: TrapCode) {
        let shared = self.shared();
        let flags = self.context_flags();
        let left = self.builder.ins().load(types::I64, flags, shared, counter);
        let left = self.builder.ins().isub(left, amount);
        let zero = self.builder.ins().iconst(types::I64, 0);
        let negative = self.builder.ins().icmp(IntCC::SignedLessThan, left, zero);
        self.trap_if(negative, code);
        self.builder.ins().store(flags, left, shared, counter);
    }

    /// Takes bytes from the frame stack in linear memory, which grows downwards, and zeroes them.
    pub(super) fn lower_frame_push(&mut self, inst: Inst) {
        let n_bytes = self.func.imm(inst).low();
        let flags = self.context_flags();
        let (context, ty) = (self.context, types::I32);
        let sp = self.frame_sp();
        let base = self.constant_field(ty, context, offsets::VMCTX_FRAME_BASE);
        let bytes = self.builder.ins().iconst(ty, i64::from(n_bytes));
        let left = self.builder.ins().isub(sp, base);
        let too_little = self.builder.ins().icmp(IntCC::UnsignedLessThan, left, bytes);
        self.trap_if(too_little, TrapCode::FrameStackOverflow);
        let sp = self.builder.ins().isub(sp, bytes);
        self.builder.ins().store(flags, sp, context, offsets::VMCTX_FRAME_SP);
        self.zero_frame(sp, n_bytes);
        self.define_result(inst, sp);
    }

    /// The frame pointer of the instance.
    pub(super) fn frame_sp(&mut self) -> ir::Value {
        let (flags, context) = (self.context_flags(), self.context);
        self.builder.ins().load(types::I32, flags, context, offsets::VMCTX_FRAME_SP)
    }

    fn zero_frame(&mut self, address: ir::Value, n_bytes: u32) {
        // The frame stack lies inside the memory.
        let start = self.memory_address(address);
        if n_bytes > UNROLLED_BYTES_MAX {
            let zero = self.builder.ins().iconst(types::I32, 0);
            let length = self.builder.ins().iconst(POINTER, i64::from(n_bytes));
            return self.call_bytes(offsets::LIBCALL_SET_BYTES, [start, zero, length]);
        }
        let flags = self.memory_flags().with_notrap();
        let zero = self.builder.ins().iconst(types::I64, 0);
        for offset in (0..n_bytes).step_by(CELL_BYTES as usize) {
            self.builder.ins().store(flags, zero, start, offset as i32);
        }
    }

    pub(super) fn lower_frame_pop(&mut self, inst: Inst) {
        let flags = self.context_flags();
        let context = self.context;
        let sp = self.frame_sp();
        let bytes = self.builder.ins().iconst(types::I32, i64::from(self.func.imm(inst).low()));
        let sp = self.builder.ins().iadd(sp, bytes);
        self.builder.ins().store(flags, sp, context, offsets::VMCTX_FRAME_SP);
    }
}
