//! The size of memory 0, and its first byte if it can move, in code that checks bounds.
//!
//! Both change only when the memory grows: by `memory.grow`, or by whatever a call or a poll lets others do. In a
//! function without any of these they are constants. In other functions they are variables that are loaded at the entry
//! and after each of these, so that checks in a loop without calls load nothing. Without the optimiser each check loads
//! what it needs: a value that lives long takes a register or a place in the frame.
//!
//! The check of an indexed access compares the index alone if the base is the same in each iteration of the loop around
//! it: the last index in bounds is then the same as well.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, types};
use cranelift_frontend::Variable;
use slotvm_bytecode::module::PAGE_BYTES;
use slotvm_bytecode::op::Access;
use slotvm_bytecode::{Effect, Imm, Op, TrapCode};
use slotvm_runtime::native::{access_end_max, offsets};
use slotvm_ssa::ir::Function;
use slotvm_ssa::ir::entity::{Block, Inst};
use slotvm_ssa::ir::irop::{IrOp, Opcode};

use super::{LowerOptions, Lowering};
use crate::lower::abi::POINTER;

/// The way in which checks get the size of memory 0 and its first byte.
#[derive(Copy, Clone, Debug, Default)]
pub(super) enum Extent {
    /// By loads at each use.
    #[default]
    Loads,
    /// By loads of constants.
    Constants,
    /// From variables for the size and the first byte.
    Variables([Variable; 2]),
}

impl Lowering<'_, '_> {
    /// Decides how checks get the extent of memory 0, at the start of the entry block.
    pub(super) fn start_extent(&mut self) {
        if !self.optimises || !has_checks(self.func, self.options) {
            return;
        }
        let opcodes = self.func.blocks().flat_map(|block| self.func.insts(block));
        let may_grow = opcodes.map(|&inst| self.func.opcode(inst)).any(may_grow_memory);
        self.extent = match may_grow {
            false => Extent::Constants,
            true => {
                let bytes = self.builder.declare_var(types::I64);
                Extent::Variables([bytes, self.builder.declare_var(POINTER)])
            }
        };
        self.block_of = blocks_of_values(self.func);
        self.load_extent();
    }

    /// Loads the extent of memory 0 anew, after something that may have let the memory grow.
    pub(super) fn load_extent(&mut self) {
        let Extent::Variables([bytes, base]) = self.extent else { return };
        let flags = self.context_flags();
        // Not as a constant, which would take a register from one place to the next.
        let memory = self.builder.ins().load(POINTER, flags, self.context, offsets::VMCTX_MEMORY);
        let value = self.builder.ins().load(types::I64, flags, memory, offsets::MEMORY_BYTES);
        self.builder.def_var(bytes, value);
        let value = self.builder.ins().load(POINTER, flags, memory, offsets::MEMORY_BASE);
        self.builder.def_var(base, value);
    }

    /// The size of memory 0 in bytes.
    pub(super) fn memory_bytes(&mut self) -> ir::Value {
        match self.extent {
            Extent::Variables([bytes, _]) => self.builder.use_var(bytes),
            Extent::Constants => {
                let memory = self.memory();
                self.constant_field(types::I64, memory, offsets::MEMORY_BYTES)
            }
            Extent::Loads => {
                let memory = self.memory();
                let flags = self.context_flags();
                self.builder.ins().load(types::I64, flags, memory, offsets::MEMORY_BYTES)
            }
        }
    }

    /// The first byte of memory 0.
    pub(super) fn memory_base(&mut self) -> ir::Value {
        if self.options.memory.reservation_bytes > 0 {
            return self.constant_pointer(self.context, offsets::VMCTX_MEMORY_BASE);
        }
        // Without a reservation the memory may move when it grows.
        match self.extent {
            Extent::Variables([_, base]) => self.builder.use_var(base),
            Extent::Constants => {
                let memory = self.memory();
                self.constant_pointer(memory, offsets::MEMORY_BASE)
            }
            Extent::Loads => {
                let memory = self.memory();
                let flags = self.context_flags();
                self.builder.ins().load(POINTER, flags, memory, offsets::MEMORY_BASE)
            }
        }
    }

    /// Traps if the end of an access lies beyond the memory. `start` is the sum of its operands in 64 bits, which does
    /// not wrap.
    pub(super) fn check_end(&mut self, start: ir::Value, access: Access, imm: Imm) {
        let rest = self.rest(access, imm);
        let end = self.builder.ins().iadd(start, rest);
        let bytes = self.memory_bytes();
        let beyond = self.builder.ins().icmp(IntCC::UnsignedGreaterThan, end, bytes);
        self.trap_if(beyond, TrapCode::MemoryOutOfBounds);
    }

    /// Traps if the index of an access lies beyond the last one for its base, which is the same in each iteration of a
    /// loop if the base is. All sums are less than 2^36, so the last index is negative if there is none.
    pub(super) fn check_index(
        &mut self,
        base: ir::Value,
        index: ir::Value,
        access: Access,
        imm: Imm,
    ) {
        let rest = self.rest(access, imm);
        let bytes = self.memory_bytes();
        let end = self.builder.ins().iadd(base, rest);
        let mut last = self.builder.ins().isub(bytes, end);
        if imm.scale_log2() > 0 {
            let scale = self.builder.ins().iconst(types::I32, i64::from(imm.scale_log2()));
            last = self.builder.ins().sshr(last, scale);
        }
        let beyond = self.builder.ins().icmp(IntCC::SignedGreaterThan, index, last);
        self.trap_if(beyond, TrapCode::MemoryOutOfBounds);
    }

    /// The distance from the start of an access without its static offset to its end.
    fn rest(&mut self, access: Access, imm: Imm) -> ir::Value {
        let rest = i64::from(imm.offset()) + i64::from(access.bytes);
        self.builder.ins().iconst(types::I64, rest)
    }

    /// Whether the base of an indexed access is the same in each iteration of the loop around it, and its index is not.
    pub(super) fn has_invariant_base(&self, block: Block, inst: Inst) -> bool {
        let Some(around) = self.loops.innermost(block.0) else { return false };
        let is_inside = |i: usize| {
            let value = self.func.operands(inst)[i];
            self.block_of.get(value.index()).is_some_and(|&of| self.loops.contains(around, of.0))
        };
        !self.block_of.is_empty() && !is_inside(0) && is_inside(1)
    }

    /// The least number of bytes that memory 0 ever has. Of a memory that the host lends code, and may exchange,
    /// nothing is known.
    pub(super) fn memory_bytes_min(&self) -> u64 {
        if self.options.imports.is_some() {
            return 0;
        }
        self.module.memories().first().map_or(0, |memory| u64::from(memory.min) * PAGE_BYTES)
    }
}

/// The block that defines each value.
fn blocks_of_values(f: &Function) -> Vec<Block> {
    let mut block_of = vec![Function::ENTRY; f.n_values()];
    for block in f.blocks() {
        let results = f.insts(block).iter().flat_map(|&inst| f.results(inst));
        for value in f.params(block).iter().copied().chain(results) {
            block_of[value.index()] = block;
        }
    }
    block_of
}

/// Whether a function has accesses that are checked.
fn has_checks(f: &Function, options: &LowerOptions) -> bool {
    let mut insts = f.blocks().flat_map(|block| f.insts(block));
    insts.any(|&inst| match f.opcode(inst) {
        Opcode::Op(op) if op.access_bytes().is_some() => {
            let imm = f.imm(inst);
            !f.is_in_bounds(inst) && !options.memory.covers(access_end_max(op, imm))
        }
        _ => false,
    })
}

/// Whether memory 0 may be larger after an instruction.
pub(super) fn may_grow_memory(opcode: Opcode) -> bool {
    match opcode {
        Opcode::Ir(op) => op == IrOp::Poll,
        Opcode::Op(Op::GlobalSet | Op::TableSet | Op::DataDrop | Op::ElemDrop) => false,
        // Bulk operations poll.
        Opcode::Op(op) => match op.effect() {
            Effect::Call => true,
            Effect::Write => op.access_bytes().is_none(),
            _ => false,
        },
    }
}
