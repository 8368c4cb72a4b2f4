//! Bulk operations: fills, copies and initialisations of memories and tables.
//!
//! The runtime does them, except for memory that is filled or copied: there the bounds are checked here. If the length
//! is a small constant, loads and stores follow, all loads before the first store, since the places may overlap.
//! Otherwise a function that does nothing else is called, which costs less than a call of the runtime. Only lengths for
//! which the runtime would poll go there.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, AbiParam, InstBuilder, MemFlagsData, Signature, Type, types};
use slotvm_bytecode::cost::PIECE_BYTES_MAX;
use slotvm_bytecode::{Op, TrapCode};
use slotvm_runtime::native::offsets;
use slotvm_ssa::ir::entity::Inst;

use super::Lowering;

/// Bytes that are filled or copied without a call, if that many are known to be.
const INLINE_BYTES_MAX: u64 = 64;

/// The accesses that a range of bytes is made of: their types and offsets. The last two may overlap.
fn pieces(len: u64) -> impl Iterator<Item = (Type, i32)> {
    let of_bytes = |bytes: u64| match bytes {
        1 => types::I8,
        2 => types::I16,
        4 => types::I32,
        8 => types::I64,
        _ => types::I8X16,
    };
    let mut next = 0;
    std::iter::from_fn(move || {
        let rest = len.checked_sub(next).filter(|&rest| rest > 0)?;
        // As little as covers the rest, but no more than there is.
        let bytes = rest.next_power_of_two().min(1 << len.ilog2()).min(16);
        let offset = next.min(len - bytes);
        next = offset + bytes;
        Some((of_bytes(bytes), offset as i32))
    })
}

impl Lowering<'_, '_> {
    /// A bulk operation that the runtime does.
    pub(super) fn lower_bulk(&mut self, inst: Inst, op: Op) {
        let imm = self.func.imm(inst);
        let (libcall, code) = match op {
            Op::MemoryInit => (offsets::LIBCALL_MEMORY_INIT, TrapCode::MemoryOutOfBounds),
            Op::TableFill => (offsets::LIBCALL_TABLE_FILL, TrapCode::TableOutOfBounds),
            Op::TableCopy => (offsets::LIBCALL_TABLE_COPY, TrapCode::TableOutOfBounds),
            Op::TableInit => (offsets::LIBCALL_TABLE_INIT, TrapCode::TableOutOfBounds),
            _ => unreachable!("`{}` has a lowering of its own", op.mnemonic()),
        };
        let first = match op {
            Op::MemoryInit | Op::TableFill => {
                self.builder.ins().iconst(types::I32, i64::from(imm.low()))
            }
            // Both indices, packed as in the immediate.
            _ => self.builder.ins().iconst(types::I64, imm.0 as i64),
        };
        let [a, b, c] = self.operands(inst);
        self.bulk_call(libcall, &[first, a, b, c], code);
    }

    /// Calls the runtime for a bulk operation that traps with `code`.
    fn bulk_call(&mut self, libcall: i32, args: &[ir::Value], code: TrapCode) {
        let status = self.libcall(libcall, args, Some(types::I32)).expect("a status");
        if !self.options.polls {
            return self.trap_if(status, code);
        }
        // 1 is the operation's trap, 2 an interruption.
        let one = self.builder.ins().iconst(types::I32, 1);
        let failed = self.builder.ins().icmp(IntCC::Equal, status, one);
        self.trap_if(failed, code);
        self.trap_for_host(status);
    }

    pub(super) fn lower_memory_fill(&mut self, inst: Inst) {
        let [dst, byte, len] = self.operands(inst);
        if let Some(n) = self.constant_value(len).filter(|&n| n <= INLINE_BYTES_MAX) {
            self.check_range(dst, len);
            return self.fill_inline(dst, byte, n);
        }
        let slow = (offsets::LIBCALL_MEMORY_FILL, [dst, byte, len]);
        self.unless_polled(slow, |lowering| {
            lowering.check_range(dst, len);
            let (dst, len) = (lowering.memory_address(dst), lowering.extended(len));
            lowering.call_bytes(offsets::LIBCALL_SET_BYTES, [dst, byte, len]);
        });
    }

    pub(super) fn lower_memory_copy(&mut self, inst: Inst) {
        let [dst, src, len] = self.operands(inst);
        if let Some(n) = self.constant_value(len).filter(|&n| n <= INLINE_BYTES_MAX) {
            let last = self.builder.ins().umax(dst, src);
            self.check_range(last, len);
            return self.copy_inline(dst, src, n);
        }
        let slow = (offsets::LIBCALL_MEMORY_COPY, [dst, src, len]);
        self.unless_polled(slow, |lowering| {
            let last = lowering.builder.ins().umax(dst, src);
            lowering.check_range(last, len);
            let (dst, src) = (lowering.memory_address(dst), lowering.memory_address(src));
            let len = lowering.extended(len);
            lowering.call_bytes(offsets::LIBCALL_MOVE_BYTES, [dst, src, len]);
        });
    }

    /// Does `fast`, except for lengths for which the runtime polls, which go to `slow`: a function of the runtime
    /// and its arguments, the length last.
    fn unless_polled(&mut self, slow: (i32, [ir::Value; 3]), fast: impl FnOnce(&mut Self)) {
        if !self.options.polls {
            return fast(self);
        }
        let (libcall, args) = slow;
        let [long, short, end] = [(); 3].map(|()| self.builder.create_block());
        let piece = self.builder.ins().iconst(types::I32, i64::from(PIECE_BYTES_MAX));
        let is_long = self.builder.ins().icmp(IntCC::UnsignedGreaterThan, args[2], piece);
        self.builder.set_cold_block(long);
        self.builder.ins().brif(is_long, long, &[], short, &[]);
        self.builder.seal_block(long);
        self.builder.seal_block(short);
        self.builder.switch_to_block(long);
        self.bulk_call(libcall, &args, TrapCode::MemoryOutOfBounds);
        self.builder.ins().jump(end, &[]);
        self.builder.switch_to_block(short);
        fast(self);
        self.builder.ins().jump(end, &[]);
        self.builder.seal_block(end);
        self.builder.switch_to_block(end);
    }

    /// Traps if not all bytes of a range lie inside the memory.
    fn check_range(&mut self, start: ir::Value, len: ir::Value) {
        let (start, len) = (self.extended(start), self.extended(len));
        let end = self.builder.ins().iadd(start, len);
        let bytes = self.memory_bytes();
        let beyond = self.builder.ins().icmp(IntCC::UnsignedGreaterThan, end, bytes);
        self.trap_if(beyond, TrapCode::MemoryOutOfBounds);
    }

    /// The native address of a byte of the memory.
    pub(super) fn memory_address(&mut self, address: ir::Value) -> ir::Value {
        let (base, address) = (self.memory_base(), self.extended(address));
        self.builder.ins().iadd(base, address)
    }

    fn copy_inline(&mut self, dst: ir::Value, src: ir::Value, len: u64) {
        let flags = self.checked_flags();
        let (dst, src) = (self.memory_address(dst), self.memory_address(src));
        let load = |(ty, at)| (self.builder.ins().load(ty, flags, src, at), at);
        let loaded: Vec<(ir::Value, i32)> = pieces(len).map(load).collect();
        for (value, at) in loaded {
            self.builder.ins().store(flags, value, dst, at);
        }
    }

    fn fill_inline(&mut self, dst: ir::Value, byte: ir::Value, len: u64) {
        let flags = self.checked_flags();
        let dst = self.memory_address(dst);
        let low = self.builder.ins().iconst(types::I32, 0xff);
        let byte = self.builder.ins().band(byte, low);
        let byte = self.builder.ins().uextend(types::I64, byte);
        let ones = self.builder.ins().iconst(types::I64, 0x0101_0101_0101_0101);
        let bytes = self.builder.ins().imul(byte, ones);
        for (ty, at) in pieces(len) {
            let value = if ty == types::I64 {
                bytes
            } else if ty.is_vector() {
                let halves = self.builder.ins().splat(types::I64X2, bytes);
                let flags = MemFlagsData::new().with_endianness(ir::Endianness::Little);
                self.builder.ins().bitcast(ty, flags, halves)
            } else {
                self.builder.ins().ireduce(ty, bytes)
            };
            self.builder.ins().store(flags, value, dst, at);
        }
    }

    /// Calls [`set_bytes`](slotvm_runtime::native::set_bytes) or
    /// [`move_bytes`](slotvm_runtime::native::move_bytes), for bytes that lie inside the memory.
    pub(super) fn call_bytes(&mut self, libcall: i32, args: [ir::Value; 3]) {
        let mut signature = Signature::new(self.isa().default_call_conv());
        let param = |arg: &ir::Value| AbiParam::new(self.builder.func.dfg.value_type(*arg));
        signature.params.extend(args.iter().map(param));
        let signature = self.builder.import_signature(signature);
        let code = self.libcall_code(libcall);
        self.builder.ins().call_indirect(signature, code, &args);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_all_bytes_and_no_others() {
        for len in 0..=INLINE_BYTES_MAX {
            let mut covered = vec![false; len as usize];
            for (ty, at) in pieces(len) {
                covered[at as usize..][..ty.bytes() as usize].fill(true);
            }
            assert!(covered.iter().all(|&covered| covered), "{len} bytes");
            assert!(pieces(len).count() as u64 <= len / 16 + 2, "{len} bytes");
        }
    }
}
