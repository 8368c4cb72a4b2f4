//! Translation of single bytecode instructions.

use slotvm_bytecode::cost::bulk_fuel_shift;
use slotvm_bytecode::inst::vector;
use slotvm_bytecode::op::Signature;
use slotvm_bytecode::verified::{Block, Storage};
use slotvm_bytecode::{BranchHint, CodeReader, Imm, Op, ValType};

use super::slots::Slots;
use super::{Builder, NO_SLOT};
use crate::ir::branch_hints;
use crate::ir::entity::Value;
use crate::ir::irop::{IrOp, Opcode};

impl<S: Slots> Builder<'_, S> {
    /// Translates a basic block of the bytecode, its terminator included.
    pub(super) fn block(&mut self, block: &Block) {
        self.stack.start(block.shape, self.module.shape_depth(block.shape));
        self.next_direct = self.body.direct.partition_point(|d| d.offset < block.start);
        self.offset = block.start;
        // The poll comes first, so that the host can add fuel for the block.
        if self.options.polls && block.polls {
            self.emit_ir(IrOp::Poll, 0, &[], &[]);
        }
        if self.options.fuel {
            self.emit_ir(IrOp::Fuel, block.cost, &[], &[]);
        }
        let mut reader = CodeReader::new(self.code, block.start);
        let mut is_terminated = false;
        while reader.offset() < block.end {
            self.offset = reader.offset();
            let inst = reader.read().expect("verified code decodes");
            is_terminated = inst.op.is_terminator();
            self.inst(inst.op, inst.imm);
        }
        if !is_terminated {
            self.stack.write_surviving(&mut self.f, &mut self.slots);
            self.jump();
        }
    }

    fn inst(&mut self, op: Op, imm: Imm) {
        use Op::*;
        match op {
            Nop | Drop | Dup | Swap | Over | Rot => self.shuffle(op),
            LocalGet => self.read_local(imm.low()),
            LocalSet => {
                let value = self.pop();
                self.write_local(imm.low(), value);
            }
            LocalTee => {
                self.touch(1);
                let value = self.stack.operands().last().expect("an operand was touched").value;
                self.write_local(imm.low(), value);
            }
            LocalAddr => self.local_address(imm.low()),
            Unreachable | Trap | Br | BrKeep | BrIf | BrTable | Return | ReturnCall
            | ReturnCallIndirect => {
                self.terminator(op, imm);
            }
            Call | CallIndirect | Select | GlobalGet | GlobalSet | RefNull | RefIsNull
            | TableGet | TableSet | TableGrow | TableFill => self.special(op, imm),
            MemoryFill | MemoryCopy | MemoryInit | TableCopy | TableInit => {
                self.bulk_fuel(op);
                self.fixed(op, imm);
            }
            V128Const | I8x16Shuffle => {
                let imm = self.f.add_vector(vector(self.code, imm));
                self.fixed(op, imm);
            }
            _ => {
                if !(op.access().is_some() && self.direct_access(op)) {
                    self.fixed(op, imm);
                }
            }
        }
    }

    pub(super) fn touch(&mut self, n: usize) {
        self.stack.touch(n, self.module, &mut self.f, &mut self.slots, self.offset);
    }

    fn pop(&mut self) -> Value {
        self.touch(1);
        self.stack.pop()
    }

    fn shuffle(&mut self, op: Op) {
        let (n_operands, n_moved) = match op {
            Op::Dup => (1, 1),
            Op::Swap => (2, 2),
            Op::Over => (2, 1),
            Op::Rot => (3, 3),
            Op::Drop => return self.stack.drop_top(self.module),
            _ => return,
        };
        self.touch(n_operands);
        let operands = self.stack.operands();
        let first = operands.len() - n_operands;
        match op {
            Op::Swap | Op::Rot => operands[first..].rotate_left(1),
            _ => operands.push(operands[first]),
        }
        self.stack.repush(n_moved, &self.f, self.offset);
    }

    /// Emits an operation that pops `n_operands` from the operand stack and pushes its results.
    #[inline]
    fn operation(&mut self, op: Op, imm: Imm, n_operands: usize, results: &[ValType]) {
        self.touch(n_operands);
        let operands = self.stack.operands();
        let first = operands.len() - n_operands;
        if S::SIMPLIFIES {
            let values = operands[first..].iter().map(|operand| operand.value);
            let value = self.slots.simplify(&mut self.f, op, imm, values, self.offset);
            if let Some(value) = value {
                operands.truncate(first);
                return self.stack.push(value, &self.f, self.offset);
            }
        }
        self.f.operand_pool.extend(operands[first..].iter().map(|operand| operand.value));
        operands.truncate(first);
        let first_result = self.f.n_values() as u32;
        self.emit_of_pool(Opcode::Op(op), imm, n_operands as u32, results);
        for i in 0..results.len() as u32 {
            self.stack.push(Value(first_result + i), &self.f, self.offset);
        }
    }

    /// Translates an operation whose types the opcode table fixes.
    #[inline]
    fn fixed(&mut self, op: Op, imm: Imm) {
        let Signature { params, results } = op.signature().expect("the signature is fixed");
        self.operation(op, imm, params.len(), results);
    }

    /// Translates an operation whose types depend on an immediate or on operands.
    fn special(&mut self, op: Op, imm: Imm) {
        if bulk_fuel_shift(op).is_some() {
            self.bulk_fuel(op);
        }
        let (n_operands, results) = self.types(op, imm);
        self.note_waiting(op, imm, n_operands);
        self.operation(op, imm, n_operands, &results);
        self.result_types = results;
    }

    /// Charges for a bulk operation, whose topmost operand is the length.
    fn bulk_fuel(&mut self, op: Op) {
        if self.options.fuel {
            let shift = bulk_fuel_shift(op).expect("it is a bulk operation");
            self.touch(1);
            let length = self.stack.operands().last().expect("an operand was touched").value;
            self.emit_ir(IrOp::FuelBulk, shift, &[length], &[]);
        }
    }

    /// Translates the terminator of a block.
    fn terminator(&mut self, op: Op, imm: Imm) {
        let module = self.module;
        match op {
            Op::Unreachable | Op::Trap => self.operation(op, imm, 0, &[]),
            Op::Br => {
                self.stack.write_surviving(&mut self.f, &mut self.slots);
                self.jump();
            }
            Op::BrKeep => {
                let label = self.labels[imm.low() as usize];
                self.touch(imm.high() as usize);
                let depth = module.shape_depth(label.shape);
                self.stack.keep(imm.high(), depth, self.offset, &mut self.f, &mut self.slots);
                self.jump();
            }
            Op::BrIf | Op::BrTable => {
                let selector = self.pop();
                self.stack.write_surviving(&mut self.f, &mut self.slots);
                let hint = if op == Op::BrIf { self.hint() } else { None };
                self.emit(Opcode::Op(op), branch_hints::imm_of(hint), &[selector], &[]);
            }
            Op::Return | Op::ReturnCall | Op::ReturnCallIndirect => {
                let (n_operands, _) = self.types(op, imm);
                self.leave(op, imm, n_operands);
            }
            _ => unreachable!("{} does not end a block", op.mnemonic()),
        }
    }

    /// The hint of the branch that is translated. One of which a side is an exit has none: that side has never run, whatever
    /// the hint says.
    fn hint(&self) -> Option<BranchHint> {
        let mut sides = self.body.succs(self.number as usize).iter();
        let hint = self.def.hint_at(self.offset);
        hint.filter(|_| !sides.any(|&side| self.exits.has(side)))
    }

    /// Leaves the function with the topmost operands.
    fn leave(&mut self, op: Op, imm: Imm, n_operands: usize) {
        // Operands are read from their slots before the frame is released.
        self.touch(n_operands);
        self.epilogue();
        self.operation(op, imm, n_operands, &[]);
    }

    /// Pushes a local.
    fn read_local(&mut self, local: u32) {
        let slot = self.local_slots[local as usize];
        let ty = self.body.locals[local as usize].ty;
        if slot == NO_SLOT {
            let (_, op) = memory_ops(ty);
            self.emit(Opcode::Op(op), Imm::mem(self.frame_offset(local)), &[self.frame], &[ty]);
            self.stack.push(self.last_value(), &self.f, self.offset);
        } else {
            let value = self.slots.read(&mut self.f, slot, ty, self.offset);
            self.stack.push(value, &self.f, self.offset);
        }
    }

    /// Writes a local.
    pub(super) fn write_local(&mut self, local: u32, value: Value) {
        let slot = self.local_slots[local as usize];
        if slot == NO_SLOT {
            let (op, _) = memory_ops(self.body.locals[local as usize].ty);
            let imm = Imm::mem(self.frame_offset(local));
            self.emit(Opcode::Op(op), imm, &[self.frame, value], &[]);
        } else {
            self.slots.write(&mut self.f, slot, value, self.offset);
        }
    }

    /// Pushes the address of a local: a number if it escapes, else a token.
    fn local_address(&mut self, local: u32) {
        if self.local_slots[local as usize] != NO_SLOT {
            return self.stack.push_token(local);
        }
        let offset = self.frame_offset(local) as i32;
        let mut address = self.frame;
        if offset != 0 {
            self.emit(Opcode::Op(Op::I32Const), Imm::i32(offset), &[], &[ValType::I32]);
            let operands = [self.frame, self.last_value()];
            self.emit(Opcode::Op(Op::I32Add), Imm::NONE, &operands, &[ValType::I32]);
            address = self.last_value();
        }
        self.stack.push(address, &self.f, self.offset);
    }

    /// The offset of an escaping local in the function's frame.
    fn frame_offset(&self, local: u32) -> u32 {
        match self.body.locals[local as usize].storage {
            Storage::Escapes { frame_offset, .. } => frame_offset,
            Storage::Promotable => unreachable!("promotable locals have slots"),
        }
    }

    /// Translates a load or store to an access of a local if it is one.
    fn direct_access(&mut self, op: Op) -> bool {
        let Some(direct) = self.body.direct.get(self.next_direct) else { return false };
        if direct.offset != self.offset {
            return false;
        }
        self.next_direct += 1;
        let is_store = op.access().is_some_and(|access| access.store);
        let value = is_store.then(|| self.pop());
        let address = self.stack.operands().pop().expect("an address does not leave its block");
        debug_assert_eq!(address.token_local(), direct.local);
        match value {
            Some(value) => self.write_local(direct.local, value),
            None => self.read_local(direct.local),
        }
        true
    }
}

/// The full-width store and load of a number.
fn memory_ops(ty: ValType) -> (Op, Op) {
    match ty {
        ValType::I32 => (Op::I32Store, Op::I32Load),
        ValType::I64 => (Op::I64Store, Op::I64Load),
        ValType::F32 => (Op::F32Store, Op::F32Load),
        ValType::F64 => (Op::F64Store, Op::F64Load),
        ValType::FuncRef | ValType::ExternRef | ValType::Ref | ValType::V128 => {
            unreachable!("the address of such a local cannot be taken")
        }
    }
}
